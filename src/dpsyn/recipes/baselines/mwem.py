"""Baseline ``mwem``: Hardt, Ligett and McSherry, *A Simple and Practical Algorithm for Data Release* (NIPS 2012).

Multiplicative weights and the exponential mechanism: a joint table of all attributes, uniform at first, is corrected
again and again by a marginal that it gets wrong, which the exponential mechanism chooses. The authors' practical
variant replays all answers many times in each round and keeps the last table; the basic one uses each answer once and
returns the mean of all tables, the uniform one included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import Budget, split_exactly
from dpsyn.errors import UserError
from dpsyn.inference import MeasurementRound, PreviousReleases
from dpsyn.marginals import Clique, Estimate, Marginal
from dpsyn.options import check_options
from dpsyn.private import PrivateTable, ReleaseLimits, initial_recoding
from dpsyn.progress import Progress, ignore_progress
from dpsyn.recipes.base import Measurements, refuse_to_extend
from dpsyn.recipes.marginal_recipe import MarginalRecipe
from dpsyn.recipes.one_way import count_cells, count_preparation_passes, prepare_table
from dpsyn.schema import Schema

JointTable = NDArray[np.float64]

MAX_JOINT_CELLS = 1 << 18
"""Cells of the joint table: it is held in memory and changed as a whole."""


@dataclass(frozen=True, kw_only=True)
class MWEM(MarginalRecipe):
    """Correct a joint table by marginals that it gets wrong.

    >>> MWEM(rounds=20, replay=100).replay  # the practical variant
    100

    Attributes:
        ways: the number of attributes of the marginals that are considered: all of this many.
        rounds: T, the number of marginals that are measured; the paper tries several and reports the best, which is
            not private.
        replay: how often all answers are replayed in each round (section 3.1 of the paper; the authors take 100); 0 is
            the basic variant, which uses each answer once and averages all tables.
    """

    name: ClassVar[str] = "mwem"
    summary: ClassVar[str] = (
        "Multiplicative weights on the joint table (Hardt et al., NIPS 2012); replay=100 is the practical variant."
    )
    is_baseline: ClassVar[bool] = True

    ways: int = 2
    rounds: int = 10
    replay: int = 0

    def __post_init__(self) -> None:
        check_options(self, ways=1, rounds=1, replay=0)

    def check(self, schema: Schema, previous: PreviousReleases | None) -> None:
        """Refuse what cannot be held as one joint table, too many noisy values, and earlier releases."""
        super().check(schema, previous)
        refuse_to_extend(previous, self.name)
        unknown = [attribute.name for attribute in schema.open_attributes]
        if unknown:
            raise UserError(f"recipe 'mwem' needs public values, but {unknown[0]!r} is open; use another recipe")
        sizes = initial_recoding(schema).sizes
        cells = math.prod(sizes)
        if cells > MAX_JOINT_CELLS:
            raise UserError(
                f"recipe 'mwem' works on the joint table of all attributes, which would have {cells:,} cells, more "
                f"than {MAX_JOINT_CELLS:,}; use another recipe, such as 'priview'"
            )
        largest, limit = math.prod(sorted(sizes)[-self.ways :]), ReleaseLimits().max_noisy_values
        prepared = sum(sizes) + sum(attribute.cells for attribute in schema.modeled_attributes)
        if self.rounds * largest + prepared > limit:
            raise UserError(
                f"{self.rounds} marginals of up to {largest:,} cells may be more than {limit:,} noisy values; set "
                "fewer rounds or ways"
            )

    def measure(
        self, table: PrivateTable, *, previous: PreviousReleases | None = None, progress: Progress = ignore_progress
    ) -> Measurements:
        """In each round: score marginals against the current table, measure the worst one, correct the table.

        Privacy: spends the whole budget. The exponential mechanism chooses a marginal with pure ε; the marginal's noise
        costs ρ, or, as in the paper, the same ε if the budget is pure.
        """
        self.check(table.schema, previous)
        prepared = prepare_table(table)
        table = prepared.table
        names, sizes = table.recoding.names, table.recoding.sizes
        cliques = _candidate_cliques(table, self.ways)
        current = np.full(sizes, prepared.row_count / math.prod(sizes))
        answers: list[tuple[Marginal, NDArray[np.intp]]] = []
        mean = current / (self.rounds + 1)
        for round_number, (epsilon, amount) in enumerate(_divide_budget(table.budget, prepared.rho_left, self.rounds)):
            progress("measuring a marginal that the current table gets wrong", round_number / self.rounds)
            joint = Estimate(names, current.copy(), 0.0)
            worst = table.choose_worst_prediction(cliques, [joint.project(clique) for clique in cliques], epsilon)
            [answer] = table.measure([cliques[worst]], [amount])
            answers.append((answer, _cells_in_answer(answer, names, sizes)))
            for correction in answers * self.replay if self.replay else answers[-1:]:
                current = _correct(current, *correction)
            mean += current / (self.rounds + 1)
        final = current if self.replay else mean
        std = min(answer.std for answer, _ in answers)
        return Measurements(
            schema=table.schema,
            recoding=table.recoding,
            rounds=(*prepared.rounds, MeasurementRound(table.recoding, tuple(answer for answer, _ in answers))),
            zeroed_attributes=prepared.zeroed_attributes,
            row_count=table.public_row_count(),
            tables=(Estimate(names, final, std**2 / final.size),),
        )

    def plan_budget(self, schema: Schema, epsilon: float, delta: float) -> Budget:
        """A pure step of ε′ for each choice, and ρ for the marginals; one step of ε for all if δ is 0, as in the paper.

        T choices cost Tε′²/2 of ρ, and ε′ is such that this is half of what (ε, δ) allows: choices and marginals have
        equal parts, as in the paper.
        """
        planned = super().plan_budget(schema, epsilon, delta)
        if planned.is_pure:
            return planned
        steps = [math.sqrt(planned.rho / self.rounds)] * self.rounds
        return Budget.for_guarantee(epsilon, delta, pure_epsilons=steps)

    def max_passes(self, schema: Schema) -> int:
        """The preparation, and two passes for each round."""
        return count_preparation_passes(schema) + 2 * self.rounds


def _candidate_cliques(table: PrivateTable, ways: int) -> list[Clique]:
    """All marginals of this many attributes that are small enough to be measured."""
    names = table.recoding.names
    cliques: list[Clique] = list(combinations(names, min(ways, len(names))))
    return [
        clique for clique, cells in zip(cliques, count_cells(table, cliques), strict=True) if cells <= MAX_JOINT_CELLS
    ]


def _divide_budget(budget: Budget, amount: Fraction, rounds: int) -> list[tuple[Fraction, Fraction]]:
    """For each round, the ε of its choice and what its marginal spends of ``amount``: ρ, or half of ε if it is pure."""
    chosen = sum(budget.pure_epsilons, Fraction(0))
    if budget.is_pure:
        chosen, amount = split_exactly(amount, [1, 1])
    return list(zip(split_exactly(chosen, [1] * rounds), split_exactly(amount, [1] * rounds), strict=True))


def _cells_in_answer(answer: Marginal, names: Sequence[str], sizes: Sequence[int]) -> NDArray[np.intp]:
    """For each cell of the joint table, flattened, the cell of the answer that contains it."""
    cells = np.unravel_index(np.arange(math.prod(sizes)), sizes)
    return np.ravel_multi_index([cells[names.index(name)] for name in answer.clique], answer.raw.shape)


def _correct(current: JointTable, answer: Marginal, cells: NDArray[np.intp]) -> JointTable:
    """Multiply each cell by e^((answer − current)/2n) of the sum it belongs to, then scale the table back to n rows."""
    total, flat = float(current.sum()), current.ravel()
    missing = answer.counts.ravel() - np.bincount(cells, flat, answer.raw.size)
    changed = flat * np.exp(np.clip(missing / (2 * total), -50.0, 50.0))[cells]
    changed *= total / changed.sum()
    return np.asarray(changed, np.float64).reshape(current.shape)
