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

from dpsyn.accounting import split
from dpsyn.errors import UserError
from dpsyn.marginals import Clique, Estimate, Marginal
from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, silent
from dpsyn.recipes.compressing import cells_of
from dpsyn.recipes.preparing import prepare, refuse_to_extend
from dpsyn.recipes.recipe import Findings
from dpsyn.schema import Open
from dpsyn.synopsis import Scores, Stage, Synopsis

Table = NDArray[np.float64]

MOST_CELLS = 1 << 18
"""Of the table of all attributes: it is held in memory and changed as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MwemOptions:
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
    before: Synopsis | None = None,
    progress: Progress = silent,
    options: MwemOptions = MwemOptions(),  # noqa: B008 -- frozen
) -> Findings:
    """In each round: score tables against the present one, measure the one that is most wrong, correct.

    Privacy: spends the whole ρ of the budget, half of each round's share on scores.
    """
    refuse_to_extend(before, "mwem")
    _require_small(table)
    ready = prepare(table)
    table = ready.table
    names, sizes = table.recoding.names, table.recoding.sizes
    cliques = _workload(table, options.ways)
    rng, present = np.random.default_rng(0), np.full(sizes, ready.rows / math.prod(sizes))
    answers: list[tuple[Marginal, NDArray[np.intp]]] = []
    scores: list[Scores] = []
    tables = present / (options.rounds + 1)
    for number, share in enumerate(split(ready.left, [1] * options.rounds)):
        progress("asking what the present table is most wrong about", number / options.rounds)
        for_scores, for_answer = split(share, [1, 1])
        some = [cliques[i] for i in sorted(rng.permutation(len(cliques))[: options.candidates])]
        scored, wrong = _scored(table, some, present, for_scores)
        scores.append(scored)
        [answer] = table.measure([wrong], [for_answer])
        answers.append((answer, _sums_of(answer, names, sizes)))
        for told in answers * options.replays if options.practical else answers[-1:]:
            present = _corrected(present, *told)
        tables += present / (options.rounds + 1)
    final = present if options.practical else tables
    deviation = min(answer.deviation for answer, _ in answers)
    return Findings(
        schema=table.schema,
        recoding=table.recoding,
        stages=(*ready.stages, Stage(table.recoding, tuple(answer for answer, _ in answers))),
        scores=tuple(scores),
        zeroed=ready.zeroed,
        rows=table.public_rows(),
        tables=(Estimate(names, final, deviation**2 / final.size),),
    )


def mwem_practical(table: PrivateTable, *, before: Synopsis | None = None, progress: Progress = silent) -> Findings:
    """MWEM as its authors recommend it for use.

    Privacy: as ``mwem``.
    """
    return mwem(table, before=before, progress=progress, options=MwemOptions(practical=True))


def _require_small(table: PrivateTable) -> None:
    """Refuse, before anything is paid for, what cannot be held as one table."""
    unknown = [attribute.name for attribute in table.schema.measured if isinstance(attribute, Open)]
    if unknown:
        raise UserError(f"the recipe 'mwem' needs to know all values, but {unknown[0]!r} is open; use another recipe")
    cells = math.prod(table.recoding.sizes)
    if cells > MOST_CELLS:
        raise UserError(
            f"the recipe 'mwem' works on the table of all attributes at once, which would have {cells:,} cells, more "
            f"than {MOST_CELLS:,}; use another recipe, such as 'priview'"
        )


def _workload(table: PrivateTable, ways: int) -> list[Clique]:
    """All tables of so many attributes that are small enough to be measured."""
    names = table.recoding.names
    cliques: list[Clique] = list(combinations(names, min(ways, len(names))))
    return [clique for clique, cells in zip(cliques, cells_of(table, cliques), strict=True) if cells <= MOST_CELLS]


def _scored(table: PrivateTable, cliques: Sequence[Clique], present: Table, share: Fraction) -> tuple[Scores, Clique]:
    """Noisy distances of tables from the present one, and the clique of the largest."""
    whole = Estimate(table.recoding.names, present.copy(), 0.0)
    values = table.score(cliques, [whole.onto(clique) for clique in cliques], share)
    deviation = math.sqrt(len(cliques) * table.protection.score(1) ** 2 / (2 * share))
    return Scores("distance from the model", tuple(cliques), values, deviation), cliques[int(np.argmax(values))]


def _sums_of(answer: Marginal, names: Sequence[str], sizes: Sequence[int]) -> NDArray[np.intp]:
    """For each cell of the table of all attributes, flat, the cell of the answer that it counts for."""
    cells = np.unravel_index(np.arange(math.prod(sizes)), sizes)
    return np.ravel_multi_index([cells[names.index(name)] for name in answer.clique], answer.raw.shape)


def _corrected(present: Table, answer: Marginal, places: NDArray[np.intp]) -> Table:
    """Multiplicative weights: each cell times e^((answer − present)/2n) of the sum it counts for, then to n again."""
    total, flat = float(present.sum()), present.ravel()
    lacking = answer.counts.ravel() - np.bincount(places, flat, answer.raw.size)
    changed = flat * np.exp(np.clip(lacking / (2 * total), -50.0, 50.0))[places]
    changed *= total / changed.sum()
    return np.asarray(changed, np.float64).reshape(present.shape)
