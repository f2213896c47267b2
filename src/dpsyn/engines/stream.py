"""Counts of a table that is read anew for every question, so that it may be larger than memory."""

from __future__ import annotations

import numpy as np

from dpsyn.engines.engine import Cliques, Counts
from dpsyn.engines.reading import ReadingEngine
from dpsyn.engines.rows import Part, Rows
from dpsyn.records import Codes
from dpsyn.records.tally import Tally
from dpsyn.transforms import Recoding


class StreamEngine(ReadingEngine):
    """Counts batch by batch, all cliques of a question in one reading: an ``Engine``.

    Memory is bounded by a few batches and the counts; with a unit also by k keys of each person, and each question
    then takes two readings. While a batch is counted, the next ones are read into codes.

    Privacy: see ``Engine``. No row outlives the question.
    """

    def __init__(self, rows: Rows) -> None:
        rows.require_again("streaming reads the table anew for every question")
        super().__init__(rows)

    def prepare(self) -> None:
        """Nothing to do: rows are read for each question."""

    def count(self, cliques: Cliques, recoding: Recoding) -> list[Counts]:
        """For each clique the table of counts of the rows that count."""
        self._check(recoding)
        tally = Tally(cliques, recoding.sizes)

        def recoded(part: Part) -> Codes:
            return recoding.apply(part.codes) if recoding.columns else np.empty((part.batch.num_rows, 0), np.uint8)

        for codes, chosen in self._rows.batches(recoded):
            tally.add(codes if chosen is None else codes[chosen])
        return tally.tables()
