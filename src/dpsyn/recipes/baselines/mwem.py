"""Recipes ``mwem`` and ``mwem-practical``: Hardt, Ligett, McSherry (NIPS 2012). Yardsticks for PriView.

Multiplicative weights: a table of all attributes at once, uniform at first, is corrected by the table of few attributes
that it is most wrong about, again and again. The practical variant replays all answers so far many times in each round
and keeps the last table; the basic one takes each answer once and the mean of all tables, the uniform one included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import split_exactly
from dpsyn.errors import UserError
from dpsyn.inference import MeasurementRound, Scores
from dpsyn.marginals import Clique, Estimate, Marginal
from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, ignore_progress
from dpsyn.recipes.base import Measurements
from dpsyn.recipes.one_way import count_cells, prepare_table, refuse_to_extend
from dpsyn.schema import Open
from dpsyn.synopsis import Synopsis

JointTable = NDArray[np.float64]

MAX_JOINT_CELLS = 1 << 18
"""Of the table of all attributes: it is held in memory and changed as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MWEM:
    """The choices of the algorithm.

    Attributes:
        ways: attributes of the tables it may ask for.
        rounds: questions asked; the paper tries several numbers and reports the best, which is not private.
        candidates: tables that are scored in a round, drawn anew at random. All scores are released, with noise that
            grows with the root of their number; the paper's exponential mechanism releases the best one's name only.
        replays: times that all answers are replayed in each round, practical only (section 3.1 of the paper).
        practical: whether to replay and keep the last table, or to take the mean of all.
    """

    ways: int = 2
    rounds: int = 10
    candidates: int = 50
    replays: int = 100
    practical: bool = False


def mwem(
    table: PrivateTable,
    *,
    previous: Synopsis | None = None,
    progress: Progress = ignore_progress,
    options: MWEM = MWEM(),
) -> Measurements:
    """In each round: score tables against the present one, measure the one that is most wrong, correct.

    Privacy: spends the whole ρ of the budget, half of each round's share on scores.
    """
    refuse_to_extend(previous, "mwem")
    _require_small(table)
    ready = prepare_table(table)
    table = ready.table
    names, sizes = table.recoding.names, table.recoding.sizes
    cliques = _candidate_cliques(table, options.ways)
    rng, present = np.random.default_rng(0), np.full(sizes, ready.row_count / math.prod(sizes))
    answers: list[tuple[Marginal, NDArray[np.intp]]] = []
    scores: list[Scores] = []
    tables = present / (options.rounds + 1)
    for number, share in enumerate(split_exactly(ready.rho_left, [1] * options.rounds)):
        progress("asking what the present table is most wrong about", number / options.rounds)
        for_scores, for_answer = split_exactly(share, [1, 1])
        some = [cliques[i] for i in sorted(rng.permutation(len(cliques))[: options.candidates])]
        scored, wrong = _score(table, some, present, for_scores)
        scores.append(scored)
        [answer] = table.measure([wrong], [for_answer])
        answers.append((answer, _cells_in_answer(answer, names, sizes)))
        for told in answers * options.replays if options.practical else answers[-1:]:
            present = _correct(present, *told)
        tables += present / (options.rounds + 1)
    final = present if options.practical else tables
    deviation = min(answer.std for answer, _ in answers)
    return Measurements(
        schema=table.schema,
        recoding=table.recoding,
        rounds=(*ready.rounds, MeasurementRound(table.recoding, tuple(answer for answer, _ in answers))),
        scores=tuple(scores),
        zeroed_attributes=ready.zeroed_attributes,
        row_count=table.public_row_count(),
        tables=(Estimate(names, final, deviation**2 / final.size),),
    )


def mwem_practical(
    table: PrivateTable, *, previous: Synopsis | None = None, progress: Progress = ignore_progress
) -> Measurements:
    """MWEM as its authors recommend it for use.

    Privacy: as ``mwem``.
    """
    return mwem(table, previous=previous, progress=progress, options=MWEM(practical=True))


def _require_small(table: PrivateTable) -> None:
    """Refuse, before anything is paid for, what cannot be held as one table."""
    unknown = [attribute.name for attribute in table.schema.measured_attributes if isinstance(attribute, Open)]
    if unknown:
        raise UserError(f"the recipe 'mwem' needs to know all values, but {unknown[0]!r} is open; use another recipe")
    cells = math.prod(table.recoding.sizes)
    if cells > MAX_JOINT_CELLS:
        raise UserError(
            f"the recipe 'mwem' works on the table of all attributes at once, which would have {cells:,} cells, more "
            f"than {MAX_JOINT_CELLS:,}; use another recipe, such as 'priview'"
        )


def _candidate_cliques(table: PrivateTable, ways: int) -> list[Clique]:
    """All tables of so many attributes that are small enough to be measured."""
    names = table.recoding.names
    cliques: list[Clique] = list(combinations(names, min(ways, len(names))))
    return [
        clique for clique, cells in zip(cliques, count_cells(table, cliques), strict=True) if cells <= MAX_JOINT_CELLS
    ]


def _score(table: PrivateTable, cliques: Sequence[Clique], present: JointTable, rho: Fraction) -> tuple[Scores, Clique]:
    """Noisy distances of tables from the present one, and the clique of the largest."""
    whole = Estimate(table.recoding.names, present.copy(), 0.0)
    values = table.score_predictions(cliques, [whole.project(clique) for clique in cliques], rho)
    deviation = math.sqrt(len(cliques) * table.privacy_unit.score_sensitivity(1) ** 2 / (2 * rho))
    return Scores("distance from the model", tuple(cliques), values, deviation), cliques[int(np.argmax(values))]


def _cells_in_answer(answer: Marginal, names: Sequence[str], sizes: Sequence[int]) -> NDArray[np.intp]:
    """For each cell of the table of all attributes, flat, the cell of the answer that it counts for."""
    cells = np.unravel_index(np.arange(math.prod(sizes)), sizes)
    return np.ravel_multi_index([cells[names.index(name)] for name in answer.clique], answer.raw.shape)


def _correct(present: JointTable, answer: Marginal, places: NDArray[np.intp]) -> JointTable:
    """Multiplicative weights: each cell times e^((answer − present)/2n) of the sum it counts for, then to n again."""
    total, flat = float(present.sum()), present.ravel()
    lacking = answer.counts.ravel() - np.bincount(places, flat, answer.raw.size)
    changed = flat * np.exp(np.clip(lacking / (2 * total), -50.0, 50.0))[places]
    changed *= total / changed.sum()
    return np.asarray(changed, np.float64).reshape(present.shape)
