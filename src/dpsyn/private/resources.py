"""What a release will read and hold in memory, told before anything is read, from public facts alone."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from dpsyn.encoding import Codec, check_structure, narrowest_dtype
from dpsyn.engines import EngineKind, choose_engine_kind, open_table
from dpsyn.private.table import MAX_COUNTED_CELLS
from dpsyn.schema import Schema
from dpsyn.sources import BATCH_ROWS

PROGRAM_BYTES = 350 << 20
"""Bytes that Python, Arrow and the compiled kernels take by themselves; the model of a release included."""

CELL_BYTES = 32
"""Bytes of a cell of a batch: as it is stored, as text, as a code, and as a code of bins."""

PERSON_BYTES = 40
"""Bytes that tell which rows of a person count: its two words, a priority and two numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceEstimate:
    """How a table will be read.

    Attributes:
        engine: ``memory``, ``stream`` or ``spark``.
        passes: how often the whole table is read, at most.
        bytes: the size of the files; None for what is in memory or elsewhere.
        memory: about how many bytes this process will need; None if the number of rows decides and nothing is known
            about it.
    """

    engine: str
    passes: int
    bytes: int | None
    memory: int | None

    def describe(self) -> str:
        """One sentence."""
        size = f"{format_bytes(self.bytes)} are" if self.bytes else "the table is"
        how = {"memory": "held in memory", "stream": "streamed", "spark": "counted by Spark"}[self.engine]
        often = "once" if self.passes == 1 else f"at most {self.passes} times"
        need = f"; this takes about {format_bytes(self.memory)} of memory" if self.memory else ""
        return f"{size} {how} and read {often}{need}"


def estimate_reading(
    data: Any, schema: Schema, questions: int, *, query: str | None = None, engine: EngineKind
) -> ResourceEstimate:
    """How a table will be read for so many questions.

    Privacy: from the size of files, which is public, the schema, and the expected size, if that is declared. No row is
    read.
    """
    source = open_table(data, query=query, kind=engine)
    check_structure(schema, source.schema, source.label)
    kind = choose_engine_kind(source, engine)
    opens = len(schema.open_attributes)
    readings = 1 + questions  # first to see that all can be read, and which rows of a person count
    if kind == "memory":  # codes are kept, but for the texts of open attributes
        readings = 1 + (opens + 1 + (schema.privacy_unit is not None) if opens else 0)
    elif kind == "spark":
        readings = questions
    return ResourceEstimate(
        engine=kind, passes=readings, bytes=source.byte_size, memory=_estimate_memory(kind, schema, source.byte_size)
    )


def _estimate_memory(kind: str, schema: Schema, size: int | None) -> int | None:
    """About how many bytes are held at once."""
    counts = 8 * MAX_COUNTED_CELLS
    if kind == "spark":
        return PROGRAM_BYTES + counts
    if kind == "stream":
        batches = (2 * (os.cpu_count() or 1) + 2) * BATCH_ROWS * CELL_BYTES * len(schema.columns)
        persons = PERSON_BYTES * (schema.expected_size or 0) if schema.privacy_unit else 0
        return PROGRAM_BYTES + counts + batches + persons
    if schema.expected_size is None:
        return None if size is None else PROGRAM_BYTES + counts + 2 * size
    codec = Codec(schema)
    width = narrowest_dtype(max(codec.fine_sizes, default=1)).itemsize * len(codec.names)
    return PROGRAM_BYTES + counts + schema.expected_size * (2 * width + (64 if schema.privacy_unit else 0))


def format_bytes(number: int) -> str:
    """A size in the unit that suits it."""
    for unit, power in (("GB", 30), ("MB", 20)):
        if number >= 1 << power:
            return f"{number / (1 << power):,.1f} {unit}"
    return f"{max(1, number >> 10):,} KB"
