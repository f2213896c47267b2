"""The promise (ε, δ) and what it buys: ρ for Gaussian steps, pure steps, and δ for thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpsyn.accounting.composition import FFT_ERROR, LARGEST_PLD_EPSILON, Composition, log_delta
from dpsyn.accounting.conversion import MARGIN, largest_mu, positive_boundary, rho_for
from dpsyn.accounting.exact import Number, exact, few_digits, round_down, round_up, split, text_of
from dpsyn.accounting.spends import COARSENESS, pure_rho
from dpsyn.errors import BudgetError

ROOM = 1e-5
"""The part of ε that calibration leaves free, so that the certificate, which rounds against us, keeps the promise."""

THRESHOLD_SHARE = Fraction(1, 10)
"""The part of δ that goes to thresholds where there are any; the rest is for noise."""


MOST_EPSILON = 10**6
"""Beyond it the noise is below what 64 bits hold; tests of algorithms without noise use it."""

MOST_DELTA = 0.001
"""A δ is a probability that somebody is not protected at all; a larger one is a slip of the finger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one release promises and may spend; made by ``Budget.plan``.

    Whatever stays within the parts is certified within (ε, δ): Gaussian steps that cost at most ``rho``
    together, pure steps that can be matched to planned ones of at least their ε (or share the only one that is
    planned), and thresholds that are charged at most ``threshold_delta`` together.

    Attributes:
        epsilon: the ε of the promise.
        delta: the δ of the promise, thresholds included.
        rho: what Gaussian steps may cost together.
        pure: the ε of the pure steps, fixed before the first draw.
        threshold_delta: the part of δ for thresholds.
    """

    epsilon: Fraction
    delta: Fraction
    rho: Fraction
    pure: tuple[Fraction, ...] = ()
    threshold_delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        parts = (self.epsilon, self.delta, self.rho, self.threshold_delta, *self.pure)
        if any(round_down(part) != part or part < 0 for part in parts):
            raise BudgetError("a budget consists of whole grains of 10⁻³⁶; make one with Budget.plan")

    @classmethod
    def plan(cls, epsilon: Number, delta: Number, *, pure: Sequence[Number] = (), thresholds: bool = False) -> Budget:
        """The largest budget that keeps the promise (ε, δ).

        Args:
            epsilon: ε, more than 0.
            delta: δ, less than 1; 0 if all steps are pure.
            pure: the ε of the Laplace and exponential steps that are mixed in.
            thresholds: whether keys will be bought by thresholds, which take a tenth of δ.
        """
        promise = round_down(exact(epsilon)), round_down(exact(delta))
        steps = tuple(sorted((round_down(exact(step)) for step in pure), reverse=True))
        _check_promise(*promise, steps, thresholds)
        if exact(delta) > promise[1] == 0:
            raise BudgetError(f"δ is {delta}, less than can be counted; give at least 1e-36, or 0 for pure steps")
        kept = round_down(promise[1] * THRESHOLD_SHARE) if thresholds else Fraction(0)
        rho = _gaussian_part(promise[0], promise[1] - kept, steps)
        return cls(epsilon=promise[0], delta=promise[1], rho=rho, pure=steps, threshold_delta=kept)

    @classmethod
    def plan_pure(cls, epsilon: Number, weights: Sequence[Number], delta: Number = 0, **options: bool) -> Budget:
        """A budget of pure steps alone, whose ε are shares of the promised one."""
        return cls.plan(epsilon, delta, pure=split(round_down(exact(epsilon)), weights), **options)

    def shares(self, weights: Sequence[Number]) -> tuple[Fraction, ...]:
        """Split ρ in proportion to the weights; the sum of shares is ρ, exactly."""
        return split(self.rho, weights)

    @property
    def reserved_rho(self) -> Fraction:
        """What the ledger sets aside: ρ of the Gaussian steps and Σε²/2 of the pure ones."""
        return self.rho + pure_rho(self.pure)

    @property
    def worst_case(self) -> Composition:
        """The costliest run within the budget, with Gaussian noise on the coarsest lattice allowed."""
        mu_squared = round_up(2 * self.rho * (1 + COARSENESS))
        return Composition(rho=self.reserved_rho, mu_squared=mu_squared, pure=self.pure, delta=self.threshold_delta)

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON, every number exact."""
        numbers = {name: text_of(getattr(self, name)) for name in _NUMBERS}
        return {**numbers, "pure": [text_of(step) for step in self.pure]}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Budget:
        """Read a budget back from plain data."""
        numbers = {name: exact(data[name]) for name in _NUMBERS}
        return cls(**numbers, pure=tuple(exact(step) for step in data["pure"]))


_NUMBERS = ("epsilon", "delta", "rho", "threshold_delta")


def _check_promise(epsilon: Fraction, delta: Fraction, pure: tuple[Fraction, ...], thresholds: bool) -> None:
    if epsilon <= 0:
        raise BudgetError(f"ε is {text_of(epsilon)}; give a positive number, such as 1")
    if epsilon > MOST_EPSILON:
        raise BudgetError(f"ε is {float(epsilon):g}, which protects nobody; give at most {MOST_EPSILON:,}")
    if not 0 <= delta <= MOST_DELTA:
        raise BudgetError(f"δ is {float(delta):g}; give a small probability, such as 1e-9, and at most {MOST_DELTA}")
    if any(step <= 0 for step in pure):
        raise BudgetError(f"a pure step has ε = {text_of(min(pure))}; give each a positive one")
    if thresholds and delta == 0:
        raise BudgetError("δ is 0, but values that are bought by a threshold need a δ, such as 1e-9")


def _gaussian_part(epsilon: Fraction, delta: Fraction, pure: tuple[Fraction, ...]) -> Fraction:
    """The ρ that is left for Gaussian steps beside the pure ones."""
    rho = Fraction(0)
    if max(pure, default=epsilon) > epsilon:
        raise _too_much(pure, epsilon)
    if delta > 0 and (epsilon > LARGEST_PLD_EPSILON or (pure and delta < 100 * FFT_ERROR)):
        rho = rho_for(epsilon, float(delta) * (1 - 2 * MARGIN), "zcdp") * exact(1 - 2 * MARGIN) - pure_rho(pure)
    elif delta > 0:
        rho = few_digits(_mu(float(epsilon) * (1 - ROOM), float(delta), pure) ** 2 / 2 / (1 + float(COARSENESS)))
    if rho <= 0 and sum(pure) > epsilon:
        raise _too_much(pure, epsilon)
    if rho <= 0 and not pure:
        raise BudgetError(
            f"ε = {float(epsilon):g} and δ = {float(delta):g} leave nothing for Gaussian noise; "
            f"give a δ such as 1e-9, or plan pure steps"
        )
    return round_down(max(rho, Fraction(0)))


def _too_much(pure: tuple[Fraction, ...], epsilon: Fraction) -> BudgetError:
    return BudgetError(
        f"the pure steps cost ε = {float(sum(pure)):.6g} together, more than the promised "
        f"{float(epsilon):.6g} allows; give them smaller shares"
    )


def _mu(epsilon: float, delta: float, pure: tuple[Fraction, ...]) -> float:
    """The largest μ of a Gaussian step that keeps (ε, δ) together with the pure steps; 0 if there is none."""
    if not pure:
        return largest_mu(epsilon, delta * (1 - 2 * MARGIN))
    goal = math.log(delta - 2 * FFT_ERROR)
    mu = positive_boundary(lambda mu: log_delta(epsilon, mu, pure) <= goal)[0]
    return mu if log_delta(epsilon, mu, pure) <= goal else 0.0
