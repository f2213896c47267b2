"""Counts of a table that is read anew for every question, so that it may be larger than memory."""

from __future__ import annotations

from dpsyn.engines.engine import Cliques, Counts
from dpsyn.engines.questions import Marginals
from dpsyn.engines.reading import ReadingEngine, require_origin
from dpsyn.engines.rows import Rows
from dpsyn.transforms import Recoding


class StreamEngine(ReadingEngine):
    """Counts batch by batch, all cliques of a question in one reading: an ``Engine``.

    Memory is bounded by a few batches and the counts; with a unit also by k keys of each person, which one more reading
    finds before the first question. While a batch is counted, the next ones are read into codes.

    Privacy: see ``Engine``. No row outlives the question.
    """

    def __init__(self, rows: Rows) -> None:
        rows.require_again("streaming reads the table anew for every question")
        super().__init__(rows)

    def prepare(self) -> None:
        """Read the table once and keep nothing of it, but which rows of a person count if there is a unit."""
        self._rows.try_reading()

    def count(self, cliques: Cliques, recoding: Recoding) -> list[Counts]:
        """For each clique the table of counts of the rows that count."""
        require_origin(recoding, self._rows.codec)
        question = Marginals.of(cliques, recoding)
        counting = question.counting()
        for codes, chosen in self._rows.batches(question.take):
            counting.add(codes if chosen is None else codes[chosen])
        return counting.tables()
