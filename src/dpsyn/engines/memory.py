"""The engine for tables whose codes fit in memory."""

from __future__ import annotations

import functools

import numpy as np

from dpsyn.encoding import Codes, Recoding
from dpsyn.encoding.counter import MarginalCounter
from dpsyn.engines.bounded_rows import BoundedRows
from dpsyn.engines.engine import CliqueAxes, Counts
from dpsyn.engines.stream import BatchEngine, require_origin


class MemoryEngine(BatchEngine):
    """An ``Engine`` that reads the table once and keeps its codes.

    It needs about one byte for each entry of the table, and twice that while the table is read or recoded. With a
    privacy unit it also needs about sixty bytes for each row while the table is read.

    Privacy: see ``Engine``. The codes of rows that do not count are dropped as soon as all rows are read.
    """

    def __init__(self, rows: BoundedRows) -> None:
        if rows.open_attributes:
            rows.require_rereadable(
                f"discovering the values of {', '.join(rows.open_attributes)} needs further readings"
            )
        super().__init__(rows)
        self._latest: tuple[Recoding, Codes] | None = None

    def prepare(self) -> None:
        """Read the table now."""
        _ = self._fine

    def count(self, cliques: CliqueAxes, recoding: Recoding) -> list[Counts]:
        """The contingency table of each clique, over the rows that count."""
        require_origin(recoding, self._rows.codec)
        counter = MarginalCounter(cliques, recoding.sizes)
        counter.add(self._recode(recoding))
        return counter.tables()

    def _recode(self, recoding: Recoding) -> Codes:
        """The codes under a recoding; the latest are kept, because a recipe uses the same recoding many times."""
        latest = self._latest
        if latest is None or latest[0] is not recoding:
            self._latest = None  # frees the memory before more is allocated
            latest = self._latest = (recoding, recoding.apply(self._fine))
        return latest[1]  # not that of self._latest, which another thread may have replaced

    @functools.cached_property
    def _fine(self) -> Codes:
        parts = self._rows.read_codes()
        attributes = len(self._rows.codec.names)
        dtype = parts[0].dtype if parts else np.dtype(np.uint8)
        codes = np.empty((sum(map(len, parts)), attributes), dtype, order="F")
        filled = len(codes)
        while parts:  # from the end, so that the memory of each part is freed
            part = parts.pop()
            codes[filled - len(part) : filled] = part
            filled -= len(part)
        return codes
