"""A source and a schema → an engine."""

from __future__ import annotations

from typing import Literal

from dpsyn.engines.engine import Engine
from dpsyn.engines.memory import MemoryEngine
from dpsyn.engines.rows import Rows
from dpsyn.engines.stream import StreamEngine
from dpsyn.schema import Schema
from dpsyn.sources import Source

Kind = Literal["auto", "memory", "stream"]

MOST_BYTES = 1 << 30
"""Files up to this size are held in memory: their codes take about as much, and a steward's machine has it."""


def open_engine(source: Source, schema: Schema, *, kind: Kind = "auto", key: bytes) -> Engine:
    """An engine that counts the rows of a source. Its structure is checked here; no row is read yet.

    ``auto`` streams files and folders above ``MOST_BYTES`` and holds all else in memory. ``key`` is 16 secret bytes,
    drawn anew for each run, by which the rows of a person are chosen.

    Privacy: the choice of an engine depends on the size of the file, which is public, and never on the number of
    rows.
    """
    rows = Rows(source, schema, key)
    if kind == "auto":
        kind = "stream" if (source.bytes or 0) > MOST_BYTES and source.again else "memory"
    return StreamEngine(rows) if kind == "stream" else MemoryEngine(rows)
