"""From noisy answers to figures with intervals.

Privacy: post-processing of released numbers and the synthetic table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import Certificate
from dpsyn.assessment.criteria import AnyCriterion
from dpsyn.assessment.evaluation_plan import EvaluationPlan, PlannedDistance
from dpsyn.assessment.intervals import Z, ratio_interval
from dpsyn.assessment.results import (
    PUBLISHABLE_NOTICE,
    TEST_NOISE_NOTICE,
    WIDE_INTERVAL,
    CriterionResult,
    GroupDistance,
    ReleasedDistance,
    ReleasedEvaluation,
    ReleasedFigure,
    Verdict,
)
from dpsyn.encoding import Codec
from dpsyn.marginals import Marginal
from dpsyn.marginals.comparison import SMALL_GROUP_ROWS
from dpsyn.private import NoisyScores

_MEAN_ABSOLUTE_NORMAL = math.sqrt(2 / math.pi)
"""The mean absolute value of a normal variable with standard deviation 1."""


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationAnswers:
    """What the gate released.

    Attributes:
        rows: the number of rows and the standard deviation of its noise, which is 0 if the number is public.
        distances: for each distance of the plan its noisy numbers, in half rows.
        groups: the noisy sizes of groups, for each attribute of groups.
        sums: the noisy sums.
    """

    rows: tuple[float, float]
    distances: list[NoisyScores]
    groups: list[Marginal]
    sums: list[NoisyScores]


def describe_answers(plan: EvaluationPlan, answers: EvaluationAnswers, certificate: Certificate) -> ReleasedEvaluation:
    """Every figure with its interval."""
    found: dict[str, list[ReleasedDistance]] = {"overall": [], "attribute": [], "criterion": []}
    groups: list[GroupDistance] = []
    sizes = dict(zip(plan.groups, answers.groups, strict=True))
    for planned, noisy in zip(plan.distances, answers.distances, strict=True):
        if planned.role == "group":
            groups += _describe_groups(plan, planned, noisy, sizes[planned.label])
        else:
            floor = None
            if planned.query.summary == "mean":
                shares = [target.ravel() / plan.table.rows for target in planned.query.targets]
                floor = _sampling_floor(shares, plan.table.rows)
            number = float(noisy.values[0])
            found[planned.role].append(_distance(planned.label, number, noisy.std, *answers.rows, floor))
    one_way, largest_one_way, *two_way = found["overall"]
    return ReleasedEvaluation(
        notice=PUBLISHABLE_NOTICE if certificate.uses_real_noise else TEST_NOISE_NOTICE,
        synthetic=plan.table.label,
        synthetic_hash=plan.table.digest,
        synthetic_rows=plan.table.rows,
        rows=_count(*answers.rows),
        one_way=one_way,
        largest_one_way=largest_one_way,
        two_way=two_way[0] if two_way else None,
        largest_two_way=two_way[1] if two_way else None,
        attributes=tuple(found["attribute"]),
        groups=tuple(groups),
        criteria=_order_criteria(plan, found["criterion"], list(_describe_statistics(plan, answers))),
        left_out=plan.left_out,
        certificate=certificate,
    )


def _distance(
    label: str, number: float, std: float, rows: float, rows_std: float, floor: float | None
) -> ReleasedDistance:
    """A distance from its noisy number, which was rounded down: twice the rows that would have to change."""
    low, high = ratio_interval((number, number + 1), std, 2 * rows, 2 * rows_std, (0.0, 1.0))
    value = (number + 0.5) / (2 * rows) if rows > 0 else (low + high) / 2
    return ReleasedDistance(label=label, value=_clip(value), low=low, high=high, floor=floor)


def _describe_groups(
    plan: EvaluationPlan, planned: PlannedDistance, noisy: NoisyScores, sizes: Marginal
) -> Iterator[GroupDistance]:
    """The distance of each value of an attribute of groups."""
    attribute = next(a for a in Codec(plan.schema).attributes if a.name == planned.label)
    synthetic = planned.query.targets[0].sum(axis=1)
    for index, group in enumerate(attribute.labels()):
        size, own_rows = float(sizes.counts[index]), int(synthetic[index])
        shares = [target[index].ravel() / max(own_rows, 1) for target in planned.query.targets]
        floor = _sampling_floor(shares, own_rows)
        label = f"{attribute.name} = {group}"
        distance = _distance(label, float(noisy.values[index]), noisy.std, size, sizes.std, floor)
        yield GroupDistance(
            attribute=attribute.name,
            group=group,
            rows=_count(size, sizes.std),
            synthetic_rows=own_rows,
            distance=distance,
            small=size < SMALL_GROUP_ROWS or distance.high - distance.low > WIDE_INTERVAL,
        )


def _describe_statistics(plan: EvaluationPlan, answers: EvaluationAnswers) -> Iterator[CriterionResult]:
    """The criteria on means and coefficients: the private figure minus that of the synthetic table."""
    sums = iter(zip(plan.sums, answers.sums, strict=True))
    for planned in plan.statistics:
        needed = list(islice(sums, len(planned.statistic.sums())))
        real = planned.statistic.solve([(float(n.values[0]) / s.unit, n.std / s.unit) for s, n in needed])
        counts = plan.table.count([s.clique for s, _ in needed], plan.sum_recoding)
        own = planned.statistic.solve(
            [(int((table * s.weights).sum()) / s.unit, 0.0) for table, (s, _) in zip(counts, needed, strict=True)]
        ).value
        error = ReleasedFigure(value=real.value - own, low=_finite(real.low - own), high=_finite(real.high - own))
        yield judge_criterion(planned.criterion, error, own)


def _order_criteria(
    plan: EvaluationPlan, distances: list[ReleasedDistance], statistics: list[CriterionResult]
) -> tuple[CriterionResult, ...]:
    """The results in the order of the file."""
    by_text = {result.criterion: result for result in statistics}
    declared = {criterion.text: criterion for criterion in plan.criteria}
    for each in distances:
        figure = ReleasedFigure(value=each.value, low=each.low, high=each.high)
        by_text[each.label] = judge_criterion(declared[each.label], figure, None)
    return tuple(by_text[criterion.text] for criterion in plan.criteria)


def judge_criterion(criterion: AnyCriterion, error: ReleasedFigure, synthetic: float | None) -> CriterionResult:
    """Whether the whole interval of the error is within the bound, or none of it."""
    low = -math.inf if error.low is None else error.low
    high = math.inf if error.high is None else error.high
    verdict: Verdict = "not decided"
    if -criterion.bound <= low and high <= criterion.bound:
        verdict = "met"
    elif low > criterion.bound or high < -criterion.bound:
        verdict = "not met"
    return CriterionResult(
        criterion=criterion.text, error=error, bound=criterion.bound, synthetic=synthetic, verdict=verdict
    )


def _count(rows: float, std: float) -> ReleasedFigure:
    return ReleasedFigure(value=max(rows, 0.0), low=max(rows - Z * std, 0.0), high=max(rows + Z * std, 0.0))


def _sampling_floor(shares: list[NDArray[np.float64]], rows: int) -> float | None:
    """About the mean distance of a sample of so many rows from a table with the given shares."""
    if rows < 1:
        return None
    means = []
    for share in shares:
        stds = np.sqrt(share * (1 - share) / rows)
        means.append(float(np.minimum(_MEAN_ABSOLUTE_NORMAL * stds, 2 * share).sum()) / 2)
    return sum(means) / len(means)


def _clip(number: float) -> float:
    return min(max(number, 0.0), 1.0)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
