"""What a released evaluation measures: decided from public facts and the synthetic table, before a row is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Literal

from dpsyn.assessment.criteria import (
    AnyCriterion,
    CoefficientCriterion,
    Criteria,
    DistanceCriterion,
    MeanCriterion,
)
from dpsyn.assessment.noisy_sums import Coefficient, Mean, WeightedSum, make_recoding
from dpsyn.assessment.synthetic_table import Counts, SyntheticTable
from dpsyn.encoding import Codec, Recoding
from dpsyn.errors import InternalError, UserError
from dpsyn.marginals import Clique
from dpsyn.marginals.comparison import MAX_GROUPS
from dpsyn.private import DistanceQuery, ReleaseLimits
from dpsyn.schema import Schema

MAX_CELLS = 200_000_000
"""Cells of all marginals together: their synthetic counts are held in memory."""

SHARES = {"rows": 1, "overall": 6, "attributes": 6, "groups": 6, "criteria": 6}
"""The parts of ρ of what is measured; what is not asked for has none. The number of rows matters least: its relative
error is that of a distance, which is a small share."""

GROUP_SIZE_SHARE = Fraction(1, 4)
"""The part of the budget of groups that goes to their sizes."""

Role = Literal["overall", "attribute", "group", "criterion"]


@dataclass(frozen=True, slots=True, eq=False)
class PlannedDistance:
    """A distance that is measured, what it is for, and its part of ρ."""

    role: Role
    label: str
    query: DistanceQuery
    share: Fraction


@dataclass(frozen=True, slots=True, eq=False)
class PlannedCriterion:
    """A criterion on a mean or a coefficient, and the part of ρ of all its sums."""

    criterion: AnyCriterion
    statistic: Mean | Coefficient
    share: Fraction


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvaluationPlan:
    """Everything that an evaluation measures.

    Attributes:
        schema: the schema, with the values of open attributes.
        table: the synthetic table.
        recoding: the attributes in the schema's bins.
        distances: the distances, the overall ones first.
        groups: the attributes of groups, whose sizes are measured.
        criteria: all criteria, as they were declared.
        statistics: those on means and coefficients.
        sum_recoding: the attributes of their sums.
        left_out: pairs whose marginals have too many cells.
    """

    schema: Schema
    table: SyntheticTable
    recoding: Recoding
    distances: tuple[PlannedDistance, ...]
    groups: tuple[str, ...]
    criteria: tuple[AnyCriterion, ...]
    statistics: tuple[PlannedCriterion, ...]
    sum_recoding: Recoding
    left_out: tuple[str, ...]

    @property
    def sums(self) -> list[WeightedSum]:
        """The sums of all statistics."""
        return [each for planned in self.statistics for each in planned.statistic.sums()]

    @property
    def shares(self) -> list[Fraction]:
        """The parts of ρ: of the distances, of the sizes of groups, and of the sums."""
        sizes = [SHARES["groups"] * GROUP_SIZE_SHARE / len(self.groups) for _ in self.groups]
        sums = [
            planned.share / len(planned.statistic.sums())
            for planned in self.statistics
            for _ in planned.statistic.sums()
        ]
        return [*(planned.share for planned in self.distances), *sizes, *sums]


def plan_evaluation(
    schema: Schema, table: SyntheticTable, groups: tuple[str, ...], criteria: Criteria, *, attributes: bool
) -> EvaluationPlan:
    """Decide what is measured, and refuse what is too large."""
    recoding = Recoding.coarse(Codec(schema))
    sizes = dict(zip(recoding.names, recoding.sizes, strict=True))
    singles: list[Clique] = [(name,) for name in recoding.names]
    pairs, too_large = split_by_size(list(combinations(recoding.names, 2)), sizes)
    drafts: list[tuple[Role, str, list[Clique], Literal["mean", "max"], Fraction]] = []
    overall = [("one-way", singles), *([("two-way", pairs)] if pairs else [])]
    for ways, cliques in overall:
        for summary, word in (("mean", "mean"), ("max", "largest")):
            label = f"{word} of {len(cliques)} {ways} marginal{'s' * (len(cliques) > 1)}"
            share = Fraction(SHARES["overall"], 2 * len(overall))
            drafts.append(("overall", label, cliques, summary, share))  # type: ignore[arg-type]
    for clique in singles if attributes else ():
        drafts.append(("attribute", clique[0], [clique], "mean", Fraction(SHARES["attributes"], len(singles))))
    for name in groups:
        share = SHARES["groups"] * (1 - GROUP_SIZE_SHARE) / len(groups)
        drafts.append(("group", name, _cliques_within_groups(name, recoding, sizes), "mean", share))
    each_share = Fraction(SHARES["criteria"], max(1, len(criteria.criteria)))
    for criterion in criteria.criteria:
        if isinstance(criterion, DistanceCriterion):
            _refuse_large(criterion.distance, sizes)
            drafts.append(("criterion", criterion.text, [criterion.distance], "mean", each_share))
    unique = list(dict.fromkeys(clique for draft in drafts for clique in draft[2]))
    if sum(math.prod(sizes[name] for name in clique) for clique in unique) > MAX_CELLS:
        raise UserError(
            f"the marginals to compare have more than {MAX_CELLS:,} cells together; declare fewer values or bins"
        )
    counts = dict(zip(unique, table.count(unique, recoding), strict=True))
    statistics = tuple(
        PlannedCriterion(criterion, _statistic(schema, criterion), each_share)
        for criterion in criteria.criteria
        if not isinstance(criterion, DistanceCriterion)
    )
    means = {planned.statistic.name for planned in statistics if isinstance(planned.statistic, Mean)}
    numbers = [planned.statistic for planned in statistics if isinstance(planned.statistic, Coefficient)]
    return EvaluationPlan(
        schema=schema,
        table=table,
        recoding=recoding,
        distances=tuple(
            PlannedDistance(role, label, _make_query(role, label, of, summary, counts), share)
            for role, label, of, summary, share in drafts
        ),
        groups=groups,
        criteria=criteria.criteria,
        statistics=statistics,
        sum_recoding=make_recoding(schema, means, {name for each in numbers for name in each.values}),
        left_out=tuple(" × ".join(pair) for pair in too_large),
    )


def split_by_size(cliques: Sequence[Clique], sizes: dict[str, int]) -> tuple[list[Clique], list[Clique]]:
    """Cliques that a release accepts, and those with too many cells."""
    limit = ReleaseLimits().max_marginal_cells
    cells = {clique: math.prod(sizes[name] for name in clique) for clique in cliques}
    return [c for c in cliques if cells[c] <= limit], [c for c in cliques if cells[c] > limit]


def _make_query(
    role: Role, label: str, cliques: Sequence[Clique], summary: Literal["mean", "max"], counts: dict[Clique, Counts]
) -> DistanceQuery:
    purposes: dict[Role, str] = {
        "overall": f"distance, {label}",
        "attribute": f"distance of {label}",
        "group": f"distances within groups by {label}",
        "criterion": label,
    }
    targets = tuple(counts[clique] for clique in cliques)
    return DistanceQuery(purposes[role], tuple(cliques), targets, summary, role == "group")


def _statistic(schema: Schema, criterion: AnyCriterion) -> Mean | Coefficient:
    if isinstance(criterion, MeanCriterion):
        return Mean.of(schema, criterion.mean)
    if isinstance(criterion, CoefficientCriterion):
        return Coefficient.of(schema, criterion.coefficient, criterion.parse(schema))
    raise InternalError(f"a {type(criterion).__name__} needs no sums")


def _cliques_within_groups(name: str, recoding: Recoding, sizes: dict[str, int]) -> list[Clique]:
    """An attribute of groups with every other attribute, as far as their tables are not too large."""
    if sizes[name] > MAX_GROUPS:
        raise UserError(f"{name!r} has {sizes[name]:,} values in the synthetic table; give at most {MAX_GROUPS} groups")
    kept, _ = split_by_size([(name, other) for other in recoding.names if other != name], sizes)
    if not kept:
        raise UserError(f"no other attribute can be compared within groups by {name!r}; leave it out of by")
    return kept


def _refuse_large(clique: Clique, sizes: dict[str, int]) -> None:
    if split_by_size([clique], sizes)[1]:
        raise UserError(
            f"the marginal of {', '.join(clique)} has more than {ReleaseLimits().max_marginal_cells:,} cells; declare "
            "a criterion on fewer attributes"
        )
