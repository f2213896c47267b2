"""Engines of every kind over small tables, for the tests that all engines must pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from dpsyn.engines import Engine, open_engine
from dpsyn.schema import Schema
from dpsyn.sources import Source, open_source

KEY = bytes(range(16))

Opener = Callable[..., Engine]


class InBatches:
    """A source that gives another one's rows in batches of a few."""

    again = True
    bytes: int | None = None

    def __init__(self, table: pa.Table, rows: int) -> None:
        self.where, self.schema = "the test's table", table.schema
        self._table, self._rows = table, rows
        self.readings = 0

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        self.readings += 1
        yield from self._table.select(list(columns)).to_batches(self._rows)


def in_memory(data: Any, schema: Schema, key: bytes = KEY) -> Engine:
    return open_engine(_source(data), schema, kind="memory", key=key)


def streamed_by_three(data: Any, schema: Schema, key: bytes = KEY) -> Engine:
    source: Source = InBatches(data, 3) if isinstance(data, pa.Table) else _source(data)
    return open_engine(source, schema, kind="stream", key=key)


def streamed_at_once(data: Any, schema: Schema, key: bytes = KEY) -> Engine:
    return open_engine(_source(data), schema, kind="stream", key=key)


def _source(data: Any) -> Source:
    return data if hasattr(data, "batches") else open_source(data)


ALL: tuple[Opener, ...] = (in_memory, streamed_by_three, streamed_at_once)
