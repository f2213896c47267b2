"""Counts of a table whose codes are held in memory."""

from __future__ import annotations

import functools

import numpy as np

from dpsyn.encoding import Codes, Recoding
from dpsyn.encoding.counter import MarginalCounter
from dpsyn.engines.bounded_rows import BoundedRows
from dpsyn.engines.engine import CliqueAxes, Counts
from dpsyn.engines.stream import BatchEngine, require_origin


class MemoryEngine(BatchEngine):
    """Reads the table once and keeps its codes: an ``Engine``.

    Memory is about one byte for each cell of the table, twice that while it is read or recoded; with a unit also
    some sixty bytes for each row while it is read.

    Privacy: see ``Engine``. The codes of rows that do not count are dropped as soon as all rows are read.
    """

    def __init__(self, rows: BoundedRows) -> None:
        if rows.open_attributes:
            rows.require_rereadable(
                f"the values of {', '.join(rows.open_attributes)} are bought in readings of their own"
            )
        super().__init__(rows)
        self._latest: tuple[Recoding, Codes] | None = None

    def prepare(self) -> None:
        """Read the table now."""
        _ = self._fine

    def count(self, cliques: CliqueAxes, recoding: Recoding) -> list[Counts]:
        """For each clique the table of counts of the rows that count."""
        require_origin(recoding, self._rows.codec)
        tally = MarginalCounter(cliques, recoding.sizes)
        tally.add(self._recode(recoding))
        return tally.tables()

    def _recode(self, recoding: Recoding) -> Codes:
        """The codes under a recoding; the latest is kept, because a recipe asks under the same one many times."""
        latest = self._latest
        if latest is None or latest[0] is not recoding:
            self._latest = None  # gives the memory back before more is taken
            latest = self._latest = (recoding, recoding.apply(self._fine))
        return latest[1]  # not that of the field: another thread may have put its own there

    @functools.cached_property
    def _fine(self) -> Codes:
        parts = self._rows.read_codes()
        attributes = len(self._rows.codec.names)
        dtype = parts[0].dtype if parts else np.dtype(np.uint8)
        codes = np.empty((sum(map(len, parts)), attributes), dtype, order="F")
        filled = len(codes)
        while parts:  # from the end, so that each part can be given back
            part = parts.pop()
            codes[filled - len(part) : filled] = part
            filled -= len(part)
        return codes
