"""What a recipe is: a whole algorithm that asks a private table its questions."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Protocol

from dpsyn.encoding import Recoding
from dpsyn.inference import MeasurementRound, Scores, SynthesisMethod
from dpsyn.marginals import Estimate
from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, ignore_progress
from dpsyn.schema import Schema
from dpsyn.synopsis import Synopsis


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Measurements:
    """What a recipe measured, and how to model it.

    Attributes:
        schema: what is public, with the values that were bought.
        recoding: the attributes to model.
        rounds: the marginals, in the order in which they were measured.
        scores: what they were chosen by.
        zeroed_attributes: attributes of the recoding whose last code counts as empty.
        row_count: the number of rows, where it is public.
        method: how records are fitted to the tables.
        tables: tables over the recoding that the recipe worked out itself from what it measured; if there are any, the
            model follows them alone.
    """

    schema: Schema
    recoding: Recoding
    rounds: tuple[MeasurementRound, ...]
    scores: tuple[Scores, ...] = ()
    zeroed_attributes: Set[str] = frozenset()
    row_count: int | None = None
    method: SynthesisMethod = "gibbs"
    tables: tuple[Estimate, ...] = ()


class Recipe(Protocol):
    """Spends the budget of a private table and gives what it measured.

    Privacy: a recipe sees nothing but the gate's answers, so whatever it does is paid for. It is a function of those
    answers: an interrupted run asks the same questions again and gets the stored answers.
    """

    def __call__(
        self, table: PrivateTable, *, previous: Synopsis | None = None, progress: Progress = ignore_progress
    ) -> Measurements:
        """Measure a table; ``previous`` is what earlier releases of it told."""
