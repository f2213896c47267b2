"""What an analysis needs that no released table holds: effects that its intervals may miss."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from dpsyn.encoding import Codec
from dpsyn.inference.measurements import Model, Release
from dpsyn.schema import Schema

MAX_NAMED_PAIRS = 3
"""Pairs that a note names."""


def describe_unheld(schema: Schema, model: Model, releases: Sequence[Release], names: Sequence[str]) -> list[str]:
    """A note if no table of the model holds all attributes of an analysis; none if one does."""
    derived = {derive.name: derive.source for derive in schema.derive}
    known = dict.fromkeys(part for name in names for part in schema.parts_of(derived.get(name, name)))
    codec_names = Codec(schema).names
    column_of = {codec_names[source]: column.name for column in model.recoding.columns for source in column.sources}
    needed = {name: column_of[name] for name in known if name in column_of}
    tables = [{*table.clique} for table in model.tables]
    if any({*needed.values()} <= table for table in tables):
        return []
    pairs = {pair: {needed[name] for name in pair} for pair in combinations(needed, 2)}
    unheld = [pair for pair, columns in pairs.items() if not any(columns <= table for table in tables)]
    if not unheld:
        return [
            f"Every two of {', '.join(needed)} were measured together, but not all of them: effects that only show in "
            "three at once, such as a difference that reverses between groups, are taken to be absent. Intervals do "
            "not include them."
        ]
    scored = any(each.are_distances and each.cliques for release in releases for each in release.scores)
    listed = "; ".join(f"{one} and {other}" for one, other in unheld[:MAX_NAMED_PAIRS])
    more = f"; {len(unheld) - MAX_NAMED_PAIRS} more pairs" if len(unheld) > MAX_NAMED_PAIRS else ""
    assumed = (
        "their dependence is drawn at random, as large as the released scores allow"
        if scored
        else "they are taken to be independent, given what was measured"
    )
    return [
        f"Not measured together: {listed}{more}. In replicates {assumed}. Effects that show in three attributes at "
        "once are taken to be absent. Declare an analysis before a release to have its tables measured."
    ]
