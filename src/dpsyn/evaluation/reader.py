"""Reads the real and the synthetic table with the schema's codec, and numbers and dates exactly.

Privacy: reads the real rows without protection and charges nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.encoding import (
    ABOVE,
    BELOW,
    EMPTY,
    MISSING_STEP,
    UNREADABLE,
    Codec,
    RangedCodec,
    check_structure,
    narrowest_dtype,
)
from dpsyn.encoding.entry_parser import count_texts
from dpsyn.errors import SourceError
from dpsyn.evaluation.tables import (
    CodeColumns,
    CodedTables,
    Domain,
    EvaluationTables,
    bootstrap_rows,
    make_generator,
    shuffle_columns,
    sort_rows,
)
from dpsyn.schema import Attribute, Schema
from dpsyn.schema.attributes import MAX_LISTED_VALUES
from dpsyn.sources import Source, map_in_threads, open_declared, open_source

ColumnCodes = list[NDArray[Any]]
"""For each attribute the code of every row: the cell of a listed value, the lattice step of a number or date."""


_TEXT_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")

TableSource = Source
"""A table that fits a schema."""

TableSources = tuple[TableSource, TableSource]
"""The real table and the synthetic one."""


def open_tables(
    real: Any, synthetic: Any, schema: Schema, *, query: str | None = None, reread: bool = False
) -> TableSources:
    """Open two tables that fit a schema, such that they can be read more than once if that is needed.

    The files of the real table are written as the schema declares.

    Privacy: a source returns rows.
    """
    source = open_declared(real, schema, query=query)
    return _prepare_source(source, schema, reread), open_table(synthetic, schema, reread=reread)


def open_table(table: Any, schema: Schema, *, reread: bool = False) -> Source:
    """Open a synthetic table that fits a schema, such that it can be read more than once if that is needed.

    It is read as DPSyn writes tables, in UTF-8 and with decimal points. If that finds none of the columns, it is read
    as the schema declares files to be written: it may be a second real table.

    Privacy: a source returns rows.
    """
    try:
        source = open_source(table)
        if schema.file is None or set(schema.columns) & set(source.schema.names):
            return _prepare_source(source, schema, reread)
    except SourceError:
        if schema.file is None:
            raise
    return _prepare_source(open_declared(table, schema), schema, reread)


def read_tables(
    real: Any, synthetic: Any, schema: Schema, *, seed: int = 0, query: str | None = None
) -> EvaluationTables:
    """Open two tables and read them with a schema; see ``read_sources``."""
    return read_sources(open_tables(real, synthetic, schema, query=query), schema, seed=seed)


def read_sources(sources: TableSources, schema: Schema, *, seed: int = 0) -> EvaluationTables:
    """Read two tables with a schema and make the baselines.

    The compared attributes are those that a release measures: not identifiers, and not derived attributes. An open
    attribute has the values seen in either table, so values that the synthetic table merged into ``other`` count as
    lost. The baselines have as many rows as the smaller table.

    Privacy: reads the real rows without protection and charges nothing. What is computed from the result is private.
    """
    schema = msgspec.structs.replace(schema, privacy_unit=None)  # a synthetic table has no persons
    codec = Codec(_add_seen_values(schema, sources))
    cells, outside = zip(*(_read_source(source, codec) for source in sources), strict=True)
    domains = tuple(
        Domain(attribute, schema[attribute.name].kind, _occurring_steps(column, [table[axis] for table in cells]))
        for axis, (attribute, column) in enumerate(zip(codec.attributes, codec.column_codecs, strict=True))
    )
    sizes = [domain.size for domain in domains]
    tables = [sort_rows(_encode_table(table, domains), sizes) for table in cells]
    rows = min(table.shape[1] for table in tables)
    floor = bootstrap_rows(tables[0], rows, make_generator(seed, "bootstrap"))
    independent = shuffle_columns(tables[0], rows, make_generator(seed, "shuffle"))
    view = CodedTables(tuple(sizes), (tables[0], tables[1], floor, independent))
    return EvaluationTables(sources[0].label, sources[1].label, domains, view, tuple(zip(*outside, strict=True)))


def _prepare_source(source: Source, schema: Schema, reread: bool) -> Source:
    """A source that fits the schema; held in memory if it must be read several times and cannot be."""
    reread = reread or bool(schema.open_attributes)
    schema = msgspec.structs.replace(schema, privacy_unit=None)
    if source.label.endswith(_TEXT_SUFFIXES) and not set(schema.columns) & set(source.schema.names):
        raise SourceError(
            f"{source.label}: the first line is not a header, for it has none of the schema's columns; put the names "
            "of the columns there"
        )
    check_structure(schema, source.schema, source.label)
    if source.rereadable or not reread:
        return source
    names = [name for name in schema.names if name in source.schema.names]
    batches = list(source.batches(names))
    in_memory = open_source(pa.Table.from_batches(batches, source.schema.empty_table().select(names).schema))
    in_memory.label = source.label
    return in_memory


def _add_seen_values(schema: Schema, sources: Sequence[Source]) -> Schema:
    """The schema with the values of open attributes that occur in either table, sorted."""
    opens = schema.open_attributes
    names = [attribute.name for attribute in opens]
    seen: dict[str, set[str]] = {name: set() for name in names}
    for source in sources if opens else ():
        for batch in source.batches(names):
            for attribute in opens:
                seen[attribute.name].update(count_texts(batch.column(attribute.name), attribute))
    for attribute in opens:
        values = sorted(seen[attribute.name])
        if len(values) > MAX_LISTED_VALUES:
            raise SourceError(
                f"column {attribute.name!r} holds more than {MAX_LISTED_VALUES:,} different texts, too many to compare;"
                " declare it kind: identifier in the schema to leave it out"
            )
        schema = schema.with_discovered_values(attribute.to_categorical(values))
    return schema


def _read_source(source: Source, codec: Codec) -> tuple[ColumnCodes, list[float]]:
    """All rows of a source, and for each attribute the share of cells outside its domain."""
    batches = list(map_in_threads(lambda batch: _encode_batch(batch, codec), source.batches(codec.columns)))
    rows = sum(len(cells[0]) for cells, _ in batches)
    if not rows:
        raise SourceError(f"{source.label} has no rows; there is nothing to compare")
    statuses = np.sum([counts for _, counts in batches], axis=0)
    for attribute, counts in zip(codec.attributes, statuses, strict=True):
        if counts[UNREADABLE] == rows and not _has_other_value(attribute):
            name, kind = attribute.name, attribute.kind
            raise SourceError(
                f"{source.label}: no cell of column {name!r} can be read as {kind}, its kind in the schema"
            )
    columns = [np.concatenate([cells[axis] for cells, _ in batches]) for axis in range(len(codec.names))]
    outside = [_count_outside(attribute, counts) for attribute, counts in zip(codec.attributes, statuses, strict=True)]
    return columns, [count / rows for count in outside]


def _encode_batch(batch: pa.RecordBatch, codec: Codec) -> tuple[ColumnCodes, NDArray[np.int64]]:
    """The codes of a batch, and for each attribute how many cells have each reading status."""
    readings = codec.read_steps(batch)
    statuses = [np.bincount(reading.statuses, minlength=ABOVE + 1) for reading in readings]
    return [reading.codes for reading in readings], np.array(statuses)


def _count_outside(attribute: Attribute, statuses: NDArray[np.int64]) -> int:
    """Count cells that were encoded as another value: out of range, or a kind of cell the schema does not allow for."""
    outside = [BELOW, ABOVE]
    outside += [] if _has_other_value(attribute) else [UNREADABLE]
    outside += [] if attribute.has_missing else [EMPTY]
    return int(statuses[outside].sum())


def _has_other_value(attribute: Attribute) -> bool:
    return getattr(attribute, "other", None) is not None


def _occurring_steps(column: object, cells: Sequence[NDArray[Any]]) -> NDArray[np.int64] | None:
    """The steps of a number or date that occur in either table."""
    if not isinstance(column, RangedCodec):
        return None
    seen = np.unique(np.concatenate([np.unique(table) for table in cells]))
    steps: NDArray[np.int64] = seen[seen != MISSING_STEP]
    return steps


def _encode_table(cells: ColumnCodes, domains: Sequence[Domain]) -> CodeColumns:
    """The codes of a table in the given domains."""
    columns = np.empty((len(domains), len(cells[0])), narrowest_dtype(max(domain.size for domain in domains)))
    for axis, (column, domain) in enumerate(zip(cells, domains, strict=True)):
        if domain.steps is None:
            columns[axis] = column
        else:
            columns[axis] = np.where(column == MISSING_STEP, domain.missing, np.searchsorted(domain.steps, column))
    return columns
