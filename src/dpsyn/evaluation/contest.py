"""The metrics of the NIST contest together."""

from __future__ import annotations

from collections.abc import Sequence

from dpsyn.errors import UserError
from dpsyn.evaluation.density import density_score, density_triples
from dpsyn.evaluation.income import IncomeColumns, income_score
from dpsyn.evaluation.presets import Preset
from dpsyn.evaluation.randomness import generator
from dpsyn.evaluation.range_queries import random_queries, range_score
from dpsyn.evaluation.results import ContestScore, Figure
from dpsyn.evaluation.tables import Comparison


def contest_score(
    comparison: Comparison, preset: Preset, income: IncomeColumns | None = None, *, seed: int = 0
) -> ContestScore:
    """The contest's metrics with the parameters of a preset, and their mean."""
    triples = density_triples(comparison, preset, generator(seed, "density"))
    queries = random_queries(comparison, preset, generator(seed, "range queries"))
    density, ranges = density_score(comparison, triples), range_score(comparison, queries)
    incomes = None if income is None else income_score(comparison, income)
    return ContestScore(
        preset=preset.name,
        density=density,
        triples=len(triples),
        range_queries=ranges,
        queries=len(queries),
        income=incomes,
        mean=Figure.mean([density, ranges, *([] if incomes is None else [incomes.score])]),
    )


def combined_score(scores: Sequence[ContestScore]) -> Figure:
    """The score of several files, such as those of different ε, as the contest ranked its teams: the mean of all.

    They must have been scored alike, by the same metrics and preset.
    """
    if not scores:
        raise UserError("there are no scores to combine")
    if len({(score.preset, score.income is None) for score in scores}) > 1:
        raise UserError("scores of different presets, or with and without incomes, cannot be combined")
    return Figure.mean([score.mean for score in scores])
