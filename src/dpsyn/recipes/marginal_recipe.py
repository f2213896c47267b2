"""Recipes whose steps are marginals and pure choices: their noise is Gaussian or Laplace, whichever is less.

k marginals with Laplace noise share ε and have standard deviations that grow with k; with Gaussian noise they share ρ,
and the standard deviations grow with √k. So Laplace noise is less for a few marginals, and it needs no δ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from dpsyn.accounting import Budget, Gaussian, Laplace, exact_fraction
from dpsyn.errors import UserError
from dpsyn.private import privacy_unit_of
from dpsyn.recipes.base import Noise, NoiseChoice, Recipe
from dpsyn.schema import Schema


@dataclass(frozen=True, kw_only=True)
class MarginalRecipe(Recipe):
    """A recipe whose steps are marginals, and pure choices among them, so that it can keep a guarantee of pure ε.

    Attributes:
        noise: ``laplace`` is pure ε, so the guarantee has δ = 0; ``gaussian`` needs a δ. ``auto`` takes the one with
            the smaller standard deviations where public facts decide them; Gaussian noise where they do not, where
            values must be discovered, and in a ledger, which adds up releases as ρ: there Gaussian noise costs less.
    """

    noise: Literal["auto", "gaussian", "laplace"] = "auto"

    def planned_shares(self, schema: Schema) -> Sequence[float]:
        """The part of the budget that each marginal gets, where public facts decide it; empty where they do not.

        It is for marginals whose noise matters. A first count of the rows, which only guides what follows, is not one.
        """
        return ()

    def choose_noise(self, schema: Schema, epsilon: float, delta: float, *, in_ledger: bool = False) -> NoiseChoice:
        """Gaussian or Laplace noise, from public facts; fixed before the first measurement."""
        if delta != 0:
            self.plan_budget(schema, epsilon, delta)  # refuses what is no δ, whichever noise it is for
        if self.noise == "laplace" and schema.open_attributes:
            raise UserError(
                f"noise is 'laplace', but the attribute {schema.open_attributes[0].name!r} is open: its values are "
                "discovered by partition selection, which needs a δ, and Laplace noise is pure ε. Leave noise 'auto', "
                "or list the values in the schema"
            )
        if self.noise != "auto":
            return NoiseChoice(self.noise, "asked for")
        if delta == 0:
            return NoiseChoice("laplace", "δ is 0")
        if schema.open_attributes:
            return NoiseChoice("gaussian", "values of open attributes are discovered, which needs a δ")
        if in_ledger:
            return NoiseChoice("gaussian", "the ledger adds up releases as ρ, of which it costs less")
        shares = self.planned_shares(schema)
        if not shares:
            return NoiseChoice("gaussian", "what is measured depends on noisy answers")
        return _compare_noise(schema, shares, self.plan_budget(schema, epsilon, delta))

    def plan_budget(self, schema: Schema, epsilon: float, delta: float) -> Budget:
        """The privacy budget for a guarantee of (ε, δ); if δ is 0, one step of ε that all marginals share."""
        if delta == 0:
            return Budget.for_guarantee(epsilon, 0, pure_epsilons=[epsilon], thresholds=bool(schema.open_attributes))
        return super().plan_budget(schema, epsilon, delta)


def _compare_noise(schema: Schema, shares: Sequence[float], budget: Budget) -> NoiseChoice:
    """The noise with the smaller standard deviations, on average over the marginals that are planned."""
    unit, numbers = privacy_unit_of(schema), Counter(shares)  # many marginals have the same share
    parts, weights = [exact_fraction(share) for share in numbers], list(numbers.values())
    gaussian = fmean((Gaussian.for_rho(budget.rho * p, unit.l2_sensitivity_squared).std for p in parts), weights)
    laplace = fmean((Laplace.for_epsilon(budget.epsilon * p, unit.l1_sensitivity).std for p in parts), weights)
    kinds: tuple[Noise, Noise] = ("laplace", "gaussian") if laplace < gaussian else ("gaussian", "laplace")
    return NoiseChoice(kinds[0], f"less than {kinds[1]} noise for the {len(shares)} marginals that are planned")
