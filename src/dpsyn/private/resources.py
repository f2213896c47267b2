"""Estimates how often a release reads the table and how much memory it needs, from public facts alone."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from dpsyn.encoding import Codec, check_structure, narrowest_dtype
from dpsyn.engines import EngineKind, choose_engine_kind, open_table
from dpsyn.private.counted_table import MAX_COUNTED_CELLS
from dpsyn.schema import Schema
from dpsyn.sources import BATCH_ROWS, Protect

PROGRAM_BYTES = 350 << 20
"""Bytes of Python, Arrow and the compiled kernels; the model of a release included."""

CELL_BYTES = 32
"""Bytes of a cell of a batch: the stored value, its text, its fine code, and its code of bins."""

UNIT_BYTES = 40
"""Bytes per privacy unit for contribution bounding: two words of its id, a priority and two numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceEstimate:
    """How a table will be read.

    Attributes:
        engine: ``memory``, ``stream`` or ``spark``.
        passes: the largest number of passes over the whole table.
        bytes: the size of the files; None for data in memory or elsewhere.
        memory: about how many bytes this process will need; None if this depends on an unknown number of rows.
    """

    engine: str
    passes: int
    bytes: int | None
    memory: int | None

    def describe(self) -> str:
        """The estimate in one sentence."""
        size = f"{format_bytes(self.bytes)} are" if self.bytes else "the table is"
        how = {"memory": "held in memory", "stream": "streamed", "spark": "counted by Spark"}[self.engine]
        often = "once" if self.passes == 1 else f"at most {self.passes} times"
        need = f"; this takes about {format_bytes(self.memory)} of memory" if self.memory else ""
        return f"{size} {how} and read {often}{need}"


def estimate_reading(
    data: Any,
    schema: Schema,
    questions: int,
    *,
    reopenings: int = 0,
    query: str | None = None,
    protect: Protect = "base rows",
    engine: EngineKind,
) -> ResourceEstimate:
    """Estimate how a table will be read for a number of questions, if it is encoded again ``reopenings`` times.

    Privacy: uses the size of files, which is public, the schema, and the declared expected size, if any. No row is
    read.
    """
    source = open_table(data, query=query, protect=protect, kind=engine, syntax=schema.syntax)
    check_structure(schema, source.schema, source.label)
    kind = choose_engine_kind(source, engine)
    open_attributes = len(schema.open_attributes)
    passes = 1 + questions  # the first pass checks that all rows can be read, and bounds contributions
    if kind == "memory":  # codes are kept, but not the texts of open attributes
        passes = 1 + (open_attributes + 1 + (schema.privacy_unit is not None) if open_attributes else 0) + reopenings
    elif kind == "stream" and schema.privacy_unit is not None:  # which rows count is found again
        passes += reopenings
    elif kind == "spark":
        passes = questions
    return ResourceEstimate(
        engine=kind, passes=passes, bytes=source.byte_size, memory=_estimate_memory(kind, schema, source.byte_size)
    )


def _estimate_memory(kind: str, schema: Schema, size: int | None) -> int | None:
    """About how many bytes are held at once."""
    counts = 8 * MAX_COUNTED_CELLS
    if kind == "spark":
        return PROGRAM_BYTES + counts
    if kind == "stream":
        batches = (2 * (os.cpu_count() or 1) + 2) * BATCH_ROWS * CELL_BYTES * len(schema.columns)
        units = UNIT_BYTES * (schema.expected_size or 0) if schema.privacy_unit else 0
        return PROGRAM_BYTES + counts + batches + units
    if schema.expected_size is None:
        return None if size is None else PROGRAM_BYTES + counts + 2 * size
    codec = Codec(schema)
    width = narrowest_dtype(max(codec.fine_sizes, default=1)).itemsize * len(codec.names)
    return PROGRAM_BYTES + counts + schema.expected_size * (2 * width + (64 if schema.privacy_unit else 0))


def format_bytes(size: int) -> str:
    """A number of bytes in KB, MB or GB."""
    for unit, power in (("GB", 30), ("MB", 20)):
        if size >= 1 << power:
            return f"{size / (1 << power):,.1f} {unit}"
    return f"{max(1, size >> 10):,} KB"
