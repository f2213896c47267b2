"""What every page about a release states: dataset, date and recipe, how to use its rows, and what was left out."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from math import comb, prod
from typing import TYPE_CHECKING

from dpsyn import __version__
from dpsyn.accounting import PartitionSelection
from dpsyn.inference import iterate_marginals
from dpsyn.report.content import LeftOut
from dpsyn.report.numbers import format_count, format_number
from dpsyn.report.verdict import join_names
from dpsyn.synopsis.replicates import how_to_use_replicates

if TYPE_CHECKING:
    from dpsyn.inference import Release
    from dpsyn.synopsis import Synopsis
    from dpsyn.synopsis.dependence import PairDependence

_SMALL_COUNT_STDS = 4.0
"""A count of fewer standard deviations of noise is mostly noise: a 95 % interval is as wide as the count itself."""

_MAX_LISTED = 12
"""Attributes or pairs that are listed."""


def page_facts(synopsis: Synopsis | None, made: date | None = None) -> tuple[tuple[str, str], ...]:
    """Dataset, recipe, guarantee, date and version, each with its name; ``made`` is today by default."""
    day = made or datetime.now(tz=UTC).date()
    common = (("report made", day.isoformat()), ("made by", f"DPSyn {__version__}"))
    if synopsis is None:
        return common
    return (
        *((("dataset", synopsis.schema.dataset),) if synopsis.schema.dataset else ()),
        ("recipe", ", ".join(dict.fromkeys(release.title.removeprefix("recipe ") for release in synopsis.releases))),
        ("guarantee", "; ".join(map(_describe_budget, synopsis.releases))),
        *common,
    )


def usage_lines(synopsis: Synopsis | None) -> tuple[str, ...]:
    """How to use synthetic rows, and how not to, in a few lines."""
    replicates = (
        "Conclusions need replicates (dpsyn generate --replicates 20, then dpsyn pool): an interval from one synthetic "
        "table knows nothing of the privacy noise.",
    )
    return (
        "Counts: ask the synopsis, not the rows. dpsyn query answers from the released counts, with an error bar.",
        "Rows: use them for shapes and models, and to write and test an analysis before it runs on real data.",
        *(replicates if synopsis is None else how_to_use_replicates(synopsis)),
        f"Small groups: {_describe_small_counts(synopsis)}",
        "Do not look for a person in the rows, do not report p-values from them as if they were real observations, and "
        "do not rely on a dependence that was not measured.",
    )


def release_omissions(synopsis: Synopsis, dependence: Sequence[PairDependence] | None) -> Iterator[LeftOut]:
    """What a release left out: columns, values, pairs, and measurements that could not be made."""
    schema = synopsis.schema
    modeled = {attribute.name for attribute in schema.modeled_attributes}
    columns = [name for name in schema.names if not {*schema.parts_of(name)} & modeled]
    if columns:
        yield LeftOut(
            heading="Columns",
            entries=(
                f"{join_names(columns, _MAX_LISTED)}: not measured. Identifiers get new values, and derived columns "
                "are computed from the others.",
            ),
        )
    values = [*_describe_thresholds(synopsis), *_describe_merged_values(synopsis)]
    if values:
        yield LeftOut(heading="Values", entries=tuple(values))
    pairs = list(_describe_unmeasured_pairs(synopsis, dependence))
    if pairs:
        yield LeftOut(heading="Pairs", entries=tuple(pairs))
    unmade = [
        purpose
        for release in synopsis.releases
        if release.certificate
        for purpose in release.certificate.outcome.left_out
    ]
    if unmade:
        yield LeftOut(heading="Measurements that were planned and not made", entries=tuple(unmade))


def _describe_budget(release: Release) -> str:
    return "not verified" if release.certificate is None else release.certificate.guarantee


def _describe_small_counts(synopsis: Synopsis | None) -> str:
    """From which count on a cell of a pair tells something."""
    stds = [m.std for _, m in iterate_marginals(synopsis.releases) if len(m.clique) > 1] if synopsis else []
    if not stds:
        return "the fewer rows a group has, the more of what the rows show about it is noise."
    rows = format_number(_SMALL_COUNT_STDS * statistics.median(stds), 2)
    return f"what the rows show about groups of fewer than about {rows} rows is mostly noise."


def _describe_thresholds(synopsis: Synopsis) -> Iterator[str]:
    """The count from which on a value of an open attribute was listed."""
    for release in synopsis.releases:
        for record in release.certificate.account.measurements if release.certificate else ():
            if isinstance(record.cost, PartitionSelection):
                yield f"{record.purpose}: values in fewer than about {record.cost.threshold:,} rows are not listed."


def _describe_merged_values(synopsis: Synopsis) -> Iterator[str]:
    """The attributes whose rare values, or neighboring cells, were merged where dependence was measured."""
    origin = synopsis.model.recoding.origin
    joined, merged = [], []
    for column in synopsis.model.recoding.columns:
        size = prod(origin[source][1] for source in column.sources)
        if len(column.sources) > 1:
            joined.append(f"{column.name} ({' and '.join(origin[source][0] for source in column.sources)})")
        elif size > column.size:
            merged.append(f"{column.name} ({size:,} → {column.size:,})")
    if merged:
        yield (
            "Rare values, and cells of numbers and dates, were merged in the model of dependence; within a merged "
            f"group the rows follow the attribute alone: {join_names(merged, _MAX_LISTED)}."
        )
    if joined:
        yield f"Measured as one attribute: {join_names(joined, _MAX_LISTED)}."


def _describe_unmeasured_pairs(synopsis: Synopsis, dependence: Sequence[PairDependence] | None) -> Iterator[str]:
    """How many pairs no released marginal contains, and the strongest of them."""
    names = {*synopsis.model.recoding.names}
    measured = {
        frozenset((first, second))
        for _, marginal in iterate_marginals(synopsis.releases)
        for first in marginal.clique
        for second in marginal.clique
        if first != second and {first, second} <= names
    }
    pairs = comb(len(names), 2)
    if len(measured) >= pairs:
        return
    if measured:
        yield (
            f"{pairs - len(measured):,} of {format_count(pairs, 'pair')} were not measured; the rows have of their "
            "dependence only what measured pairs imply."
        )
    else:
        yield f"None of {format_count(pairs, 'pair')} was measured."
    strongest = sorted((pair for pair in dependence or () if not pair.measured), key=lambda pair: -pair.strength)
    listed = [f"{pair.first} × {pair.second} ({pair.strength:.1f} σ)" for pair in strongest[:5] if pair.strength > 0]
    if listed:
        yield f"The strongest of them, in standard deviations of the noise of their scores: {', '.join(listed)}."
