"""How a plan splits a budget: pure steps first, then parts of ρ that add up to it exactly."""

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
"""The part of ρ for 1-way marginals if nothing is known about the size of the table."""

LEAST_SINGLES, MOST_SINGLES = 0.05, 0.7
"""Bounds of that part where it follows from the expected size."""


@dataclass(frozen=True, slots=True, eq=False)
class PlanShares:
    """Parts of ρ; together they are 1, or as amounts ρ itself.

    Attributes:
        one_way: for 1-way marginals and histograms without a share of their own.
        joint: for joint attributes with a share of their own.
        histograms: for histograms inside bins with a share of their own, by attribute.
        mappings: for learned mappings, by attribute.
        entries: for each entry of marginals with Gaussian noise, in the order of the layout; 0 if it is to share.
        rest: for all entries that share what is left.
        selection: for marginals that are chosen.
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
        singles, rest, selection = (next(amounts) for _ in range(3))
        entries = tuple(next(amounts) for _ in self.entries)
        joint, histograms, mappings = ({name: next(amounts) for name in parts} for parts in named)
        return PlanShares(singles, joint, histograms, mappings, entries, rest, selection)


def pure_steps(layout: ResolvedPlan, epsilon: float) -> dict[Clique, Fraction]:
    """The ε of every marginal with Laplace noise; they are fixed before the first draw."""
    found: dict[Clique, Fraction] = {}
    for wanted in layout.marginals:
        if wanted.entry.mechanism == "laplace" and wanted.entry.share is not None:
            each = exact_fraction(epsilon) * share_fraction(wanted.entry.share) / len(wanted.cliques)
            for clique in wanted.cliques:
                found[clique] = found.get(clique, Fraction(0)) + each
    return found


def budget_for_plan(layout: ResolvedPlan, epsilon: float, delta: float, *, thresholds: bool) -> Budget:
    """The budget of a planned release: what marginals with Laplace noise cost is fixed before the first draw."""
    pure = pure_steps(layout, epsilon)
    budget = Budget.for_guarantee(epsilon, delta, pure_epsilons=list(pure.values()), thresholds=thresholds)
    if not budget.rho:
        raise BudgetError(
            f"at ε = {epsilon:g} the marginals with laplace noise leave nothing for all others, which need Gaussian "
            "noise; give them smaller shares, and a δ such as 1e-9"
        )
    return budget


def divide_budget(plan: Plan, layout: ResolvedPlan, *, rho: float, sensitivity: float, rows: int | None) -> PlanShares:
    """How ρ is split; a PlanError if a plan gives away more than there is."""
    joint = {name: share_fraction(e.share) for name, e in layout.joint.items() if e.share is not None}
    histograms = {name: share_fraction(e.share) for name, e in layout.histograms.items() if e.share is not None}
    mappings = {mapping.of: share_fraction(mapping.share) for mapping in layout.mappings}
    gaussian = [w.entry for w in layout.marginals if w.entry.mechanism == "gaussian"]
    entries = tuple(Fraction(0) if entry.share is None else share_fraction(entry.share) for entry in gaussian)
    singles = None if plan.one_way is None else share_fraction(plan.one_way)
    chosen = _selection_share(plan)
    named = [*joint.values(), *histograms.values(), *mappings.values()]
    fixed = sum([*named, *entries, singles or 0, chosen or 0], Fraction(0))
    sharing = any(entry.share is None for entry in gaussian)
    if fixed > 1 or (fixed == 1 and (singles is None or sharing)):
        others = "1-way marginals" if singles is None else "marginals without a share"
        wanted = "they must not exceed 1" if fixed > 1 else f"nothing is left for {others}"
        message = f"the shares of the plan add up to {float(fixed):.4g} of ρ at some budget; {wanted}"
        raise PlanError(message, ("marginals",))
    left = Fraction(1 - fixed)
    if singles is None:
        singles = left * exact_fraction(_default_one_way_share(layout, rho, sensitivity, rows))
        left -= singles
    rest, selection = _divide_rest(left, sharing=sharing, choosing=chosen is None and _selects_more(plan))
    if not sharing and not rest and not selection:
        singles += left
    return PlanShares(singles, joint, histograms, mappings, entries, rest, selection + (chosen or 0))


def _selection_share(plan: Plan) -> Fraction | None:
    if plan.selection is None or isinstance(plan.selection, bool):
        return None
    return share_fraction(plan.selection)


def _selects_more(plan: Plan) -> bool:
    return not plan.marginals if plan.selection is None else plan.selection is not False


def _divide_rest(left: Fraction, *, sharing: bool, choosing: bool) -> tuple[Fraction, Fraction]:
    """What is left, for marginals without shares and for selection."""
    if sharing and choosing:
        return left / 2, left / 2
    return (left, Fraction(0)) if sharing else (Fraction(0), left) if choosing else (Fraction(0), Fraction(0))


def _default_one_way_share(layout: ResolvedPlan, rho: float, sensitivity: float, rows: int | None) -> float:
    """The part of ρ for 1-way marginals: 1.25·∛E with E their error if they had all, as in the default recipe."""
    if rows is None:
        return DEFAULT_ONE_WAY_SHARE
    sizes = [
        size for name, size in zip(layout.recoding.names, layout.recoding.sizes, strict=True) if name in layout.one_way
    ]
    deviation = sensitivity * math.sqrt(len(sizes) / (2 * rho))
    error = float(np.mean(sizes)) * deviation * math.sqrt(2 / math.pi) / (2 * rows)
    return float(np.clip(1.25 * math.cbrt(error), LEAST_SINGLES, MOST_SINGLES))


def one_way_shares(layout: ResolvedPlan, shares: PlanShares) -> dict[tuple[str, str], Fraction]:
    """What 1-way marginals cost: ``("codes", name)`` of attributes and ``("cells", name)`` inside of their codes.

    By size^(2/3), half for each if both are measured. Histograms with a share of their own come with it; joint
    attributes with a share of their own are not among them.
    """
    columns = {column.name: column for column in layout.recoding.columns}
    holders = {layout.recoding.origin[s][0]: c for c in columns.values() for s in c.sources}
    weights = {
        ("codes", name): columns[name].size ** (2 / 3) / (1 + (name in layout.finer))
        for name in layout.one_way
        if name not in shares.joint
    }
    sharing = [name for name in layout.finer if name not in shares.histograms]
    weights |= {("cells", name): holders[name].size ** (2 / 3) / 2 for name in sharing}
    own = {("cells", name): share for name, share in shares.histograms.items()}
    return (
        own | dict(zip(weights, split_exactly(shares.one_way, list(weights.values())), strict=True)) if weights else own
    )


def marginal_shares(layout: ResolvedPlan, shares: PlanShares, cells: Mapping[Clique, float]) -> dict[Clique, Fraction]:
    """What each marginal with Gaussian noise costs, given their numbers of cells.

    A table that several entries name costs what they give it together.
    """
    gaussian = [wanted for wanted in layout.marginals if wanted.entry.mechanism == "gaussian"]
    asked = [(share, wanted.cliques) for wanted, share in zip(gaussian, shares.entries, strict=True) if share]
    rest = [c for wanted, share in zip(gaussian, shares.entries, strict=True) if not share for c in wanted.cliques]
    found: dict[Clique, Fraction] = {}
    for amount, cliques in (*asked, (shares.rest, tuple(rest))):
        for clique, share in split_by_cells(amount, {c: cells[c] for c in cliques}, layout.weights).items():
            found[clique] = found.get(clique, Fraction(0)) + share
    return found


def split_by_cells(
    total: Fraction, cells: Mapping[Clique, float], weights: Mapping[str, float]
) -> dict[Clique, Fraction]:
    """A part of ρ for each of some marginals, by (importance·cells)^(2/3), which makes the sum of errors least."""
    if not cells:
        return {}
    powers = [(math.prod(weights.get(n, 1.0) for n in clique) * number) ** (2 / 3) for clique, number in cells.items()]
    return dict(zip(cells, split_exactly(total, powers), strict=True))
