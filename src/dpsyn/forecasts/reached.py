"""What a release reached, as predicted from its synopsis, beside what was to be expected.

Privacy: only released numbers and public facts are used. No real row is read, so it costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import epsilon_for
from dpsyn.forecasts.closed_form import expect_errors
from dpsyn.forecasts.results import UNCERTAINTY, ExpectedErrors
from dpsyn.inference import estimate_one_way, iterate_marginals, norm_sub
from dpsyn.marginals import Estimate
from dpsyn.selection import PredictedErrors
from dpsyn.synopsis import Synopsis

PAIRLESS_RECIPES = ("independent",)
"""Recipes that measure no pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedErrors:
    """What a release is off by as its own numbers tell, beside what was to be expected of it.

    Distances are those of the attributes as they were modeled: rare values merged, numbers in ranges.

    Attributes:
        epsilon: the ε of all releases together.
        rows: the released estimate of the number of rows.
        one_way: the mean total variation distance of one-way marginals that noise implies.
        two_way: the mean over pairs: by the noise of those that were measured, by the score of the others. None if
            no pair was measured or scored.
        expected: the forecast for that ε and that number of rows, at moderate dependence.
    """

    epsilon: float
    rows: int
    one_way: float
    two_way: float | None
    expected: ExpectedErrors

    @property
    def description(self) -> str:
        """The comparison in words."""
        start = f"Forecast for ε = {self.epsilon:.3g} and about {self.rows:,} rows: "
        errors = f"one-way error {self.expected.one_way:.4f}, two-way {self.expected.two_way:.4f}"
        reached = f"By the released numbers, the one-way error is about {self.one_way:.4f}"
        if self.two_way is None:
            return f"{start}{errors}. {reached}; about pairs they tell nothing."
        return (
            f"{start}{errors} (shuffled columns {self.expected.shuffled:.4f}). {reached} and the two-way error about "
            f"{self.two_way:.4f}, {self._judgement(self.two_way)}."
        )

    def _judgement(self, two_way: float) -> str:
        if two_way > UNCERTAINTY * self.expected.two_way:
            return "more than expected: attributes depend on each other more strongly, or have more frequent values"
        if two_way < self.expected.two_way / UNCERTAINTY:
            return "less than expected"
        return "about as expected"


def predict_reached(synopsis: Synopsis) -> ReachedErrors | None:
    """What a release reached, beside its forecast; None if its cost is not certified, or it found no rows.

    None also if no marginal was measured, as of recipe ``fourier``.

    Privacy: post-processing of the synopsis; costs nothing.
    """
    accounts = [certificate.account for certificate in synopsis.certificates if certificate is not None]
    rho = float(sum(account.budget.reserved_rho for account in accounts))
    delta = min((float(account.budget.delta) for account in accounts), default=0.0)
    if len(accounts) < len(synopsis.releases) or synopsis.rows < 1 or rho <= 0:
        return None
    one_way = _one_way_error(synopsis)
    if one_way is None:
        return None
    all_epsilon = float(sum(account.budget.epsilon for account in accounts))
    epsilon = all_epsilon if len(accounts) == 1 or delta == 0 else epsilon_for(rho, delta)
    pairs = any(release.recipe.get("name") not in PAIRLESS_RECIPES for release in synopsis.releases)
    target = synopsis.releases[-1].recipe.get("target")
    return ReachedErrors(
        epsilon=epsilon,
        rows=synopsis.rows,
        one_way=one_way,
        two_way=_two_way_error(synopsis),
        expected=expect_errors(synopsis.schema, epsilon, rows=synopsis.rows, delta=delta, pairs=pairs, target=target),
    )


def _one_way_error(synopsis: Synopsis) -> float | None:
    """By the noise of one-way marginals; of attributes without one, by that of a marginal that contains them."""
    recoding = synopsis.model.recoding
    alone = {m.clique[0] for _, m in iterate_marginals(synopsis.releases) if len(m.clique) == 1}
    within = _best_projections(synopsis, 1)
    estimates = [
        estimate_one_way(synopsis.releases, recoding, name) if name in alone else within[frozenset([name])]
        for name in recoding.names
        if name in alone or frozenset([name]) in within
    ]
    return float(np.mean(_noise_errors(estimates, synopsis))) if estimates else None


def _two_way_error(synopsis: Synopsis) -> float | None:
    names, best = {*synopsis.model.recoding.names}, _best_projections(synopsis, 2)
    errors = dict(zip(best, _noise_errors(list(best.values()), synopsis), strict=True)) if best else {}
    for release in synopsis.releases:
        for scores in (each for each in release.scores if each.are_distances):
            for clique, score in zip(scores.cliques, scores.values.tolist(), strict=True):
                if len(clique) == 2 and {*clique} <= names and frozenset(clique) not in best:
                    errors[frozenset(clique)] = min(max(score, 0.0) / (2 * synopsis.rows), 1.0)
    return float(np.mean(list(errors.values()))) if errors else None


def _best_projections(synopsis: Synopsis, ways: int) -> dict[frozenset[str], Estimate]:
    """Of every so many attributes that a marginal contains, the sums of the marginal that leaves the least noise."""
    names = {*synopsis.model.recoding.names}
    best: dict[frozenset[str], Estimate] = {}
    for _, marginal in iterate_marginals(synopsis.releases):
        whole = Estimate.of(marginal)
        for clique in combinations([name for name in marginal.clique if name in names], ways):
            counts = whole.project(clique)
            estimate = Estimate(clique, counts, whole.variance * whole.values.size / counts.size)
            known = best.setdefault(frozenset(clique), estimate)
            if estimate.variance < known.variance:
                best[frozenset(clique)] = estimate
    return best


def _noise_errors(estimates: list[Estimate], synopsis: Synopsis) -> NDArray[np.float64]:
    """The total variation distance that the noise of each estimate leaves after negative counts are removed."""
    total = max(synopsis.model.total, 1.0)
    tables = [norm_sub(estimate.values, total) for estimate in estimates]
    stds = np.array([max(math.sqrt(estimate.variance), 1e-9) for estimate in estimates])
    knots = np.geomspace(stds.min(), max(stds.max(), 2 * stds.min()), 9)
    return np.minimum(PredictedErrors.simulate(tables, knots).interpolate(stds) / (2 * total), 1.0)
