"""Synthetic tables as counts: public tables, which the private rows are compared with."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.encoding import Codec, Codes, Recoding, check_structure
from dpsyn.encoding.counter import MarginalCounter
from dpsyn.encoding.entry_parser import count_texts
from dpsyn.errors import SourceError
from dpsyn.marginals import Clique
from dpsyn.release_files import find_table
from dpsyn.schema import Schema
from dpsyn.schema.attributes import MAX_LISTED_VALUES
from dpsyn.sources import Source, open_declared, open_source

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SyntheticTable:
    """A synthetic table in the codes of a schema's cells.

    Attributes:
        label: its name in messages.
        digest: the SHA-256 of its file, or of its codes if it is no single file.
        codes: rows × attributes.
    """

    label: str
    digest: str
    codes: Codes

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.codes)

    def count(self, cliques: Sequence[Clique], recoding: Recoding) -> list[Counts]:
        """The marginals of cliques under a recoding."""
        if not cliques:
            return []
        axes = [tuple(recoding.index_of(name) for name in clique) for clique in cliques]
        used = sorted({axis for clique in axes for axis in clique})
        position = {axis: index for index, axis in enumerate(used)}
        part = Recoding(tuple(recoding.columns[axis] for axis in used), recoding.origin)
        counter = MarginalCounter([tuple(position[axis] for axis in clique) for clique in axes], part.sizes)
        counter.add(part.apply(self.codes))
        return counter.tables()


def read_synthetic_tables(tables: Sequence[Any], schema: Schema) -> tuple[Schema, list[SyntheticTable]]:
    """Synthetic tables, and the schema in which open attributes have the values that occur in them.

    All other values of an open attribute count as its ``other``.

    Privacy: the tables are taken as public, so the values that occur in them are public, too.
    """
    schema_of_rows = msgspec.structs.replace(schema, privacy_unit=None)  # a synthetic table has no persons
    sources = [_open(table, schema_of_rows) for table in tables]
    read = [(source.label, _read(source, schema_of_rows)) for source in sources]
    for attribute in schema.open_attributes:
        values = {text for _, rows in read for text in count_texts(_column(rows, attribute.name), attribute)}
        if len(values) > MAX_LISTED_VALUES:
            raise SourceError(
                f"column {attribute.name!r} of the synthetic table holds more than {MAX_LISTED_VALUES:,} different "
                "texts, too many to compare; declare it kind: identifier in the schema to leave it out"
            )
        schema = schema.with_discovered_values(attribute.to_categorical(sorted(values)))
    codec = Codec(schema)
    found = []
    for table, (label, rows) in zip(tables, read, strict=True):
        codes = codec.encode(rows)
        found.append(SyntheticTable(label, _hash_table(table, codes), codes))
    return schema, found


def _open(table: Any, schema: Schema) -> Source:
    """Open a table that DPSyn wrote, or one that is written as the schema declares."""
    try:
        source = open_source(table)
        if schema.file is None or set(schema.columns) & set(source.schema.names):
            check_structure(schema, source.schema, source.label)
            return source
    except SourceError:
        if schema.file is None:
            raise
    source = open_declared(table, schema)
    check_structure(schema, source.schema, source.label)
    return source


def _read(source: Source, schema: Schema) -> pa.Table:
    names = [name for name in schema.columns if name in source.schema.names]
    batches = [batch.select(names) for batch in source.batches(names)]
    rows = sum(batch.num_rows for batch in batches)
    if not rows:
        raise SourceError(f"{source.label} has no rows; there is nothing to compare")
    return pa.Table.from_batches(batches)


def _column(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _hash_table(table: Any, codes: Codes) -> str:
    if isinstance(table, str | os.PathLike):
        path = find_table(Path(table))
        if path.is_file():
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
    return hashlib.sha256(np.ascontiguousarray(codes, np.uint32).tobytes()).hexdigest()
