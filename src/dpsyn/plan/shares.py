"""How a plan divides the budget: pure ε steps first, then parts of ρ that add up to it exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsyn.accounting import Budget, exact_fraction, split_exactly
from dpsyn.errors import BudgetError, PlanError
from dpsyn.marginals import Clique
from dpsyn.plan.entries import share_fraction
from dpsyn.plan.plan import Plan
from dpsyn.plan.resolution import ResolvedPlan

DEFAULT_ONE_WAY_SHARE = 0.2
"""The part of ρ for one-way marginals if the size of the table is not public."""

MIN_ONE_WAY_SHARE, MAX_ONE_WAY_SHARE = 0.05, 0.7
"""Bounds of that part where it follows from the expected size."""


@dataclass(frozen=True, slots=True, eq=False)
class PlanShares:
    """Parts of ρ; together they are 1, or as amounts ρ itself.

    Attributes:
        one_way: for one-way marginals and histograms without a share of their own.
        joint: for joint attributes with a share of their own.
        histograms: for histograms inside bins with a share of their own, by attribute.
        mappings: for learned mappings, by attribute.
        entries: for each entry of marginals with Gaussian noise, in the order of the plan; 0 if it has no own
            share.
        rest: for all entries without a share of their own.
        selection: for marginals that are selected.
    """

    one_way: Fraction
    joint: Mapping[str, Fraction]
    histograms: Mapping[str, Fraction]
    mappings: Mapping[str, Fraction]
    entries: tuple[Fraction, ...]
    rest: Fraction
    selection: Fraction

    def in_rho(self, rho: Fraction) -> PlanShares:
        """The same parts as amounts of ρ; together they are ρ, exactly."""
        named = (self.joint, self.histograms, self.mappings)
        weights = [self.one_way, self.rest, self.selection, *self.entries]
        amounts = iter(split_exactly(rho, [*weights, *(part for parts in named for part in parts.values())]))
        one_way, rest, selection = (next(amounts) for _ in range(3))
        entries = tuple(next(amounts) for _ in self.entries)
        joint, histograms, mappings = ({name: next(amounts) for name in parts} for parts in named)
        return PlanShares(one_way, joint, histograms, mappings, entries, rest, selection)


def pure_steps(resolved: ResolvedPlan, epsilon: float) -> dict[Clique, Fraction]:
    """The ε of every marginal with Laplace noise; it is fixed before the first measurement."""
    steps: dict[Clique, Fraction] = {}
    for planned in resolved.marginals:
        if planned.entry.mechanism == "laplace" and planned.entry.share is not None:
            step = exact_fraction(epsilon) * share_fraction(planned.entry.share) / len(planned.cliques)
            for clique in planned.cliques:
                steps[clique] = steps.get(clique, Fraction(0)) + step
    return steps


def budget_for_plan(resolved: ResolvedPlan, epsilon: float, delta: float, *, thresholds: bool) -> Budget:
    """The budget of a planned release; the cost of Laplace noise is fixed before the first measurement."""
    pure = pure_steps(resolved, epsilon)
    budget = Budget.for_guarantee(epsilon, delta, pure_epsilons=list(pure.values()), thresholds=thresholds)
    if not budget.rho:
        raise BudgetError(
            f"at ε = {epsilon:g} the marginals with laplace noise leave nothing for all others, which need Gaussian "
            "noise; give them smaller shares, and a δ such as 1e-9"
        )
    return budget


def divide_budget(
    plan: Plan, resolved: ResolvedPlan, *, rho: float, sensitivity: float, rows: int | None
) -> PlanShares:
    """Divide ρ by the shares of a plan; a PlanError if they add up to more than 1."""
    joint = {name: share_fraction(e.share) for name, e in resolved.joint.items() if e.share is not None}
    histograms = {name: share_fraction(e.share) for name, e in resolved.histograms.items() if e.share is not None}
    mappings = {mapping.of: share_fraction(mapping.share) for mapping in resolved.mappings}
    gaussian = [w.entry for w in resolved.marginals if w.entry.mechanism == "gaussian"]
    entries = tuple(Fraction(0) if entry.share is None else share_fraction(entry.share) for entry in gaussian)
    one_way = None if plan.one_way is None else share_fraction(plan.one_way)
    selection_share = _selection_share(plan)
    named = [*joint.values(), *histograms.values(), *mappings.values()]
    fixed = sum([*named, *entries, one_way or 0, selection_share or 0], Fraction(0))
    sharing = any(entry.share is None for entry in gaussian)
    if fixed > 1 or (fixed == 1 and (one_way is None or sharing)):
        others = "one-way marginals" if one_way is None else "marginals without a share"
        problem = "they must not exceed 1" if fixed > 1 else f"nothing is left for {others}"
        message = f"the shares of the plan add up to {float(fixed):.4g} of ρ at some ε; {problem}"
        raise PlanError(message, ("marginals",))
    left = Fraction(1 - fixed)
    if one_way is None:
        one_way = left * exact_fraction(_default_one_way_share(resolved, rho, sensitivity, rows))
        left -= one_way
    rest, selection = _divide_rest(left, sharing=sharing, selecting=selection_share is None and _selects_more(plan))
    if not sharing and not rest and not selection:
        one_way += left
    return PlanShares(one_way, joint, histograms, mappings, entries, rest, selection + (selection_share or 0))


def _selection_share(plan: Plan) -> Fraction | None:
    if plan.selection is None or isinstance(plan.selection, bool):
        return None
    return share_fraction(plan.selection)


def _selects_more(plan: Plan) -> bool:
    return not plan.marginals if plan.selection is None else plan.selection is not False


def _divide_rest(left: Fraction, *, sharing: bool, selecting: bool) -> tuple[Fraction, Fraction]:
    """Divide what is left between marginals without a share and selection."""
    if sharing and selecting:
        return left / 2, left / 2
    return (left, Fraction(0)) if sharing else (Fraction(0), left) if selecting else (Fraction(0), Fraction(0))


def _default_one_way_share(resolved: ResolvedPlan, rho: float, sensitivity: float, rows: int | None) -> float:
    """The part of ρ for one-way marginals: 1.25·∛E, E their error with all of ρ, as in recipe ``dpsyn``."""
    if rows is None:
        return DEFAULT_ONE_WAY_SHARE
    sizes = [
        size
        for name, size in zip(resolved.recoding.names, resolved.recoding.sizes, strict=True)
        if name in resolved.one_way
    ]
    std = sensitivity * math.sqrt(len(sizes) / (2 * rho))
    error = float(np.mean(sizes)) * std * math.sqrt(2 / math.pi) / (2 * rows)
    return float(np.clip(1.25 * math.cbrt(error), MIN_ONE_WAY_SHARE, MAX_ONE_WAY_SHARE))


def one_way_shares(resolved: ResolvedPlan, shares: PlanShares) -> dict[tuple[str, str], Fraction]:
    """The ρ of one-way marginals: ``("codes", name)`` for attributes, ``("cells", name)`` for histograms inside codes.

    Divided by size^(2/3), half for each if both are measured. Histograms with a share of their own are included; joint
    attributes with a share of their own are not.
    """
    columns = {column.name: column for column in resolved.recoding.columns}
    holders = {resolved.recoding.origin[s][0]: c for c in columns.values() for s in c.sources}
    weights = {
        ("codes", name): columns[name].size ** (2 / 3) / (1 + (name in resolved.finer))
        for name in resolved.one_way
        if name not in shares.joint
    }
    sharing = [name for name in resolved.finer if name not in shares.histograms]
    weights |= {("cells", name): holders[name].size ** (2 / 3) / 2 for name in sharing}
    own = {("cells", name): share for name, share in shares.histograms.items()}
    return (
        own | dict(zip(weights, split_exactly(shares.one_way, list(weights.values())), strict=True)) if weights else own
    )


def marginal_shares(
    resolved: ResolvedPlan, shares: PlanShares, cells: Mapping[Clique, float]
) -> dict[Clique, Fraction]:
    """The ρ of each marginal with Gaussian noise, given their numbers of cells.

    The shares of a marginal that several entries name add up.
    """
    gaussian = [planned for planned in resolved.marginals if planned.entry.mechanism == "gaussian"]
    with_share = [(share, planned.cliques) for planned, share in zip(gaussian, shares.entries, strict=True) if share]
    rest = [c for planned, share in zip(gaussian, shares.entries, strict=True) if not share for c in planned.cliques]
    rhos: dict[Clique, Fraction] = {}
    for amount, cliques in (*with_share, (shares.rest, tuple(rest))):
        for clique, share in split_by_cells(amount, {c: cells[c] for c in cliques}, resolved.weights).items():
            rhos[clique] = rhos.get(clique, Fraction(0)) + share
    return rhos


def split_by_cells(
    total: Fraction, cells: Mapping[Clique, float], weights: Mapping[str, float]
) -> dict[Clique, Fraction]:
    """Divide ρ among marginals by (weight·cells)^(2/3), which minimizes the weighted sum of errors."""
    if not cells:
        return {}
    powers = [(math.prod(weights.get(n, 1.0) for n in clique) * number) ** (2 / 3) for clique, number in cells.items()]
    return dict(zip(cells, split_exactly(total, powers), strict=True))
