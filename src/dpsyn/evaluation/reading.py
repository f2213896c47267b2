"""Two tables → a comparison: read by the schema's codec, exactly where that is coarse.

Privacy: this is the steward's own, unpaid look at the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.errors import SourceError
from dpsyn.evaluation.randomness import generator
from dpsyn.evaluation.rows import in_order
from dpsyn.evaluation.tables import Columns, Comparison, Domain, View
from dpsyn.evaluation.yardsticks import bootstrap, shuffled
from dpsyn.records import (
    ABOVE,
    BELOW,
    EMPTY,
    MISSING_STEP,
    UNREADABLE,
    Codec,
    RangedColumn,
    Reading,
    check_structure,
    narrowest,
)
from dpsyn.records.texts import count_texts
from dpsyn.schema import Attribute, Open, Schema
from dpsyn.schema.attributes import MOST_VALUES
from dpsyn.sources import Source, in_threads, open_source

Cells = list[NDArray[Any]]
"""For each attribute the code of every row: cells of listed values, steps of numbers and dates."""


def compare(real: Any, synthetic: Any, schema: Schema, *, seed: int = 0, query: str | None = None) -> Comparison:
    """Read two tables under a schema and make the yardsticks.

    Compared are the attributes that a release measures: not identifiers, nor what is derived from others. An open
    attribute has the values seen in either table: what the synthetic table merged into ``other`` counts as lost. The
    yardsticks have as many rows as the smaller table.

    Privacy: unpaid look at the rows; what is computed from the result is private.
    """
    schema = msgspec.structs.replace(schema, unit=None)  # a synthetic table has no persons
    sources = [_checked(open_source(real, query=query), schema), _checked(open_source(synthetic), schema)]
    codec = Codec(_with_seen_values(schema, sources))
    cells, outside = zip(*(_read(source, codec) for source in sources), strict=True)
    domains = tuple(
        Domain(attribute, schema[attribute.name].kind, _steps_of(column, [table[place] for table in cells]))
        for place, (attribute, column) in enumerate(zip(codec.attributes, codec.columns, strict=True))
    )
    sizes = [domain.size for domain in domains]
    tables = [in_order(_coded(table, domains), sizes) for table in cells]
    rows = min(table.shape[1] for table in tables)
    floor = bootstrap(tables[0], rows, generator(seed, "bootstrap"))
    independent = shuffled(tables[0], rows, generator(seed, "shuffle"))
    view = View(tuple(sizes), (tables[0], tables[1], floor, independent))
    return Comparison(sources[0].where, sources[1].where, domains, view, tuple(zip(*outside, strict=True)))


def _checked(source: Source, schema: Schema) -> Source:
    """A source that fits the schema and can be read twice if values are to be looked for first."""
    check_structure(schema, source.schema, source.where)
    if source.again or not _opens(schema):
        return source
    batches = list(source.batches(schema.columns))
    held = open_source(pa.Table.from_batches(batches, source.schema.empty_table().select(schema.columns).schema))
    held.where = source.where
    return held


def _opens(schema: Schema) -> list[Open]:
    return [attribute for attribute in schema.measured if isinstance(attribute, Open)]


def _with_seen_values(schema: Schema, sources: Sequence[Source]) -> Schema:
    """The schema with the values of open attributes that occur in some table, sorted."""
    opens = _opens(schema)
    names = [attribute.name for attribute in opens]
    seen: dict[str, set[str]] = {name: set() for name in names}
    for source in sources if opens else ():
        for batch in source.batches(names):
            for attribute in opens:
                seen[attribute.name].update(count_texts(batch.column(attribute.name), attribute))
    for attribute in opens:
        values = sorted(seen[attribute.name])
        if len(values) > MOST_VALUES:
            raise SourceError(
                f"column {attribute.name!r} holds more than {MOST_VALUES:,} different texts, which cannot be compared; "
                "make it kind: identifier to leave it out"
            )
        schema = schema.with_bought(attribute.bought(values))
    return schema


def _read(source: Source, codec: Codec) -> tuple[Cells, list[float]]:
    """All rows of a source, and for each attribute the share of cells outside its domain."""
    parts = list(in_threads(lambda batch: _cells_of(batch, codec), source.batches(codec.names)))
    rows = sum(len(cells[0]) for cells, _ in parts)
    if not rows:
        raise SourceError(f"{source.where} has no rows; there is nothing to compare")
    fates = np.sum([each for _, each in parts], axis=0)
    for attribute, counts in zip(codec.attributes, fates, strict=True):
        if counts[UNREADABLE] == rows and not _takes_others(attribute):
            name, kind = attribute.name, attribute.kind
            raise SourceError(f"{source.where}: no cell of column {name!r} can be read as the schema says ({kind})")
    cells = [np.concatenate([cells[place] for cells, _ in parts]) for place in range(len(codec.names))]
    outside = [_outside(attribute, counts) for attribute, counts in zip(codec.attributes, fates, strict=True)]
    return cells, [count / rows for count in outside]


def _cells_of(batch: pa.RecordBatch, codec: Codec) -> tuple[Cells, NDArray[np.int64]]:
    """The codes of a batch, and for each attribute how many cells have each fate."""
    cells, fates = [], []
    for name, column in zip(codec.names, codec.columns, strict=True):
        array = batch.column(name)
        reading = Reading(*column.steps(array)) if isinstance(column, RangedColumn) else column.read(array)
        cells.append(reading.cells)
        fates.append(np.bincount(reading.fates, minlength=ABOVE + 1))
    return cells, np.array(fates)


def _outside(attribute: Attribute, fates: NDArray[np.int64]) -> int:
    """Cells that took the place of another value: out of range, or with no place that the schema declares for them."""
    lost = [BELOW, ABOVE]
    lost += [] if _takes_others(attribute) else [UNREADABLE]
    lost += [] if attribute.has_missing else [EMPTY]
    return int(fates[lost].sum())


def _takes_others(attribute: Attribute) -> bool:
    return getattr(attribute, "other", None) is not None


def _steps_of(column: object, cells: Sequence[NDArray[Any]]) -> NDArray[np.int64] | None:
    """The steps of a number or date that occur in some table."""
    if not isinstance(column, RangedColumn):
        return None
    seen = np.unique(np.concatenate([np.unique(table) for table in cells]))
    steps: NDArray[np.int64] = seen[seen != MISSING_STEP]
    return steps


def _coded(cells: Cells, domains: Sequence[Domain]) -> Columns:
    """The codes of a table."""
    columns = np.empty((len(domains), len(cells[0])), narrowest(max(domain.size for domain in domains)))
    for place, (own, domain) in enumerate(zip(cells, domains, strict=True)):
        if domain.steps is None:
            columns[place] = own
        else:
            columns[place] = np.where(own == MISSING_STEP, domain.missing, np.searchsorted(domain.steps, own))
    return columns
