"""The costs of mechanisms: one frozen value per mechanism, whose docstring is the whole mathematical statement.

Every cost has four properties, each rounded up to whole grains:

- ``rho``: the cost in zCDP, which the ledger adds up over releases;
- ``mu_squared``: the step is at least as private as a continuous Gaussian step with (Δ/σ)² = μ²;
- ``pure_epsilons``: the step is at least as private as independent ε-DP steps with these ε;
- ``delta``: the probability that a threshold of partition selection fails.

At most one of ``mu_squared`` and ``pure_epsilons`` is not empty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpsyn.accounting.conversion import sigma_for
from dpsyn.accounting.exact_numbers import Number, exact_fraction, format_exact, round_down, round_up, split_exactly
from dpsyn.accounting.privacy_unit import PrivacyUnit
from dpsyn.errors import BudgetError, InternalError

MIN_LATTICE_SIGMA = 2**10
"""The smallest standard deviation of Gaussian noise, in steps of its lattice."""

SMOOTHING_VARIANCE = 3
"""The variance, in squared steps of the lattice, that makes a continuous Gaussian discrete; see ``Gaussian``."""

LATTICE_OVERHEAD = Fraction(SMOOTHING_VARIANCE, MIN_LATTICE_SIGMA**2 - SMOOTHING_VARIANCE)
"""The largest relative increase of μ² by the lattice: three parts in a million."""

MIN_STD = 1e-6
"""The smallest standard deviation that is reported. It is reached if noise changes one count in 10¹² by 1; a standard
deviation of 0, to which that of Laplace noise would be rounded, is no weight for an estimate."""

MAX_SELECTIONS = 1_000_000
"""Of one exponential step: each selection takes memory, so a number that is read from a file must be bounded."""


class MechanismCost:
    """The base class of costs; a property that a mechanism does not override is zero or empty."""

    __slots__ = ()

    @property
    def rho(self) -> Fraction:
        """The cost in zCDP."""
        return Fraction(0)

    @property
    def mu_squared(self) -> Fraction:
        """(Δ/σ)² of a continuous Gaussian step that is at most as private."""
        return Fraction(0)

    @property
    def pure_epsilons(self) -> tuple[Fraction, ...]:
        """The ε of pure steps that are at most as private."""
        return ()

    @property
    def delta(self) -> Fraction:
        """The probability that a threshold of partition selection fails."""
        return Fraction(0)

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        raise InternalError(f"a {type(self).__name__} cannot be recorded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(MechanismCost):
    """Discrete Gaussian noise on every cell of a vector of whole numbers.

    Sensitivity: two neighbors' vectors differ by at most Δ in L2; ``sensitivity_squared`` is Δ².
    Noise: counts are multiplied by 2^s (``lattice`` is s), noise from the discrete Gaussian N_ℤ(0, (2^s σ)²)
    is added, and the sum is read as multiples of 2^−s. It needs 2^s σ ≥ 1024.
    Cost: ρ = Δ²/2σ² (Canonne, Kamath and Steinke 2020: the same as continuous noise).
    Also: at least as private as a continuous Gaussian step with μ² = Δ²/(σ² − 3/4^s). Proof, in steps of the lattice:
    let S = 2^s σ. Sample y from N(0, S² − 3) and then x from the discrete Gaussian on ℤ with variance 3 around y;
    its normalizer is √(6π)·(1 ± β) for every y with β = 2e^(−6π²) + … < 10⁻²⁵ (Poisson summation), so x has the
    probabilities of N_ℤ(0, S²) up to a factor 1 ± 3β. The second sampling step commutes with integer shifts of y.
    Hence the discrete mechanism is, up to that factor, post-processing of the continuous one with variance
    σ² − 3/4^s, for every shift, also if steps are chosen adaptively. The factor changes ε by less than 10⁻¹² over 10⁹
    steps and changed cells, which the rounding of ε covers.

    Attributes:
        sensitivity_squared: Δ², exactly: 1 or 2 for a marginal of rows, see ``PrivacyUnit``.
        sigma: σ in counts.
        lattice: s; the released numbers are multiples of 2^−s.
    """

    sensitivity_squared: Fraction
    sigma: float
    lattice: int

    def __post_init__(self) -> None:
        _require_positive("Gaussian", sensitivity_squared=self.sensitivity_squared, sigma=self.sigma)
        if (
            not (isinstance(self.lattice, int) and 0 <= self.lattice <= 1000)
            or self.sigma * 2**self.lattice < MIN_LATTICE_SIGMA
        ):
            raise BudgetError(
                f"Gaussian noise with σ = {self.sigma} on the lattice 2^-{self.lattice} is too coarse; "
                f"use lattice {lattice_for(self.sigma)}"
            )

    @classmethod
    def for_rho(cls, rho: Fraction, sensitivity_squared: Number) -> Gaussian:
        """The smallest noise that costs at most ρ."""
        squared = exact_fraction(sensitivity_squared)
        sigma = sigma_for(rho, squared)
        return cls(sensitivity_squared=squared, sigma=sigma, lattice=lattice_for(sigma))

    @property
    def rho(self) -> Fraction:
        """Δ²/2σ²."""
        return round_up(self.sensitivity_squared / (2 * Fraction(self.sigma) ** 2))

    @property
    def mu_squared(self) -> Fraction:
        """Δ²/(σ² − 3/4^s)."""
        return round_up(
            self.sensitivity_squared / (Fraction(self.sigma) ** 2 - Fraction(SMOOTHING_VARIANCE, 4**self.lattice))
        )

    @property
    def std(self) -> float:
        """The standard deviation of the noise, in counts: σ, because the lattice is so fine."""
        return self.sigma

    def log_tail(self, count: int) -> float:
        """An upper bound of ln P(noise ≥ count): the sum of the density is below its integral from one step earlier."""
        from scipy.special import log_ndtr

        return float(log_ndtr(-(count * 2**self.lattice - 1) / (self.sigma * 2**self.lattice)))

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        squared = format_exact(self.sensitivity_squared)
        return {"kind": "gaussian", "sensitivity_squared": squared, "sigma": self.sigma, "lattice": self.lattice}


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(MechanismCost):
    """Discrete Laplace noise on every cell of a vector of whole numbers.

    Sensitivity: two neighbors' vectors differ by at most Δ in L1.
    Noise: P(x) ∝ e^(−|x|/b) on the whole numbers, for every cell independently.
    Cost: pure ε = Δ/b (Ghosh, Roughgarden and Sundararajan 2009), hence ρ = ε²/2 (Bun and Steinke 2016,
    proposition 1.4). It enters compositions as (ε, 0), the worst of all ε-DP steps.

    Attributes:
        sensitivity: Δ in L1: 1 or 2 for a marginal of rows, see ``PrivacyUnit``.
        scale: b in counts.
        charged_epsilon: the ε that is charged, at least Δ/b, so parts of a budget add up although b is rounded; by
            default Δ/b.
    """

    sensitivity: Fraction
    scale: float
    charged_epsilon: Fraction | None = None

    def __post_init__(self) -> None:
        _require_positive("Laplace", sensitivity=self.sensitivity, scale=self.scale)
        if self.charged_epsilon is not None and self.charged_epsilon < self.sensitivity / Fraction(self.scale):
            raise BudgetError(
                f"Laplace noise of scale {self.scale} costs more than ε = {format_exact(self.charged_epsilon)}"
            )

    @classmethod
    def for_epsilon(cls, epsilon: Fraction, sensitivity: Number) -> Laplace:
        """The smallest noise that costs at most ε; ε is charged."""
        _require_positive("Laplace", epsilon=epsilon)
        return cls(
            sensitivity=exact_fraction(sensitivity),
            scale=_round_up_to_float(exact_fraction(sensitivity) / epsilon),
            charged_epsilon=exact_fraction(epsilon),
        )

    @property
    def pure_epsilons(self) -> tuple[Fraction, ...]:
        """ε, once."""
        return (
            round_up(self.sensitivity / Fraction(self.scale)) if self.charged_epsilon is None else self.charged_epsilon,
        )

    @property
    def lattice(self) -> int:
        """0: the released numbers are whole counts."""
        return 0

    @property
    def rho(self) -> Fraction:
        """ε²/2."""
        return pure_rho(self.pure_epsilons)

    @property
    def std(self) -> float:
        """The standard deviation of the noise, in counts: √(2q)/(1 − q) with q = e^(−1/b), a little less than √2·b."""
        return max(math.sqrt(2 * math.exp(-1 / self.scale)) / -math.expm1(-1 / self.scale), MIN_STD)

    def log_tail(self, count: int) -> float:
        """ln P(noise ≥ count) for a count of at least 1: q^count / (1 + q) with q = e^(−1/b)."""
        return -count / self.scale - math.log1p(math.exp(-1 / self.scale))

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        charged = {} if self.charged_epsilon is None else {"charged_epsilon": format_exact(self.charged_epsilon)}
        return {"kind": "laplace", "sensitivity": format_exact(self.sensitivity), "scale": self.scale, **charged}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential(MechanismCost):
    """The exponential mechanism: chooses one or several candidates, those with higher scores more likely.

    Sensitivity: two neighbors' scores of any candidate differ by at most Δ; monotone scores all change in the
    same direction.
    Noise: P(candidate) ∝ e^(score/t). Several are selected one after another without replacement, each from the
    remaining ones (peeling).
    Cost: pure ε = 2Δ/t per selection (McSherry and Talwar 2007), Δ/t if the scores are monotone: then the sum over the
    candidates changes in the same direction as each of its parts. Selections compose; ρ = ε²/2 each.
    (A bounded range would give ε²/8; the ledger charges every pure step alike.)

    Attributes:
        sensitivity: Δ of a score.
        scale: t, in units of the score.
        charged_epsilon: the ε that is charged for all selections together.
        monotone: whether one unit changes all scores in the same direction.
        selections: how many candidates are selected.
    """

    sensitivity: Fraction
    scale: float
    charged_epsilon: Fraction
    monotone: bool = False
    selections: int = 1

    def __post_init__(self) -> None:
        _require_positive("Exponential", sensitivity=self.sensitivity, scale=self.scale)
        _require_positive("Exponential", charged_epsilon=self.charged_epsilon, selections=self.selections)
        if self.selections > MAX_SELECTIONS:
            raise BudgetError(f"Exponential: selections is {self.selections:,}; give at most {MAX_SELECTIONS:,}")
        if min(self.pure_epsilons) < self._sensitivity_factor * self.sensitivity / Fraction(self.scale):
            raise BudgetError(
                f"{self.selections} selections by the exponential mechanism with scale {self.scale} cost more than "
                f"ε = {format_exact(self.charged_epsilon)}"
            )

    @classmethod
    def for_epsilon(
        cls, epsilon: Fraction, sensitivity: Number, *, monotone: bool = False, selections: int = 1
    ) -> Exponential:
        """The most accurate choice that costs ε for all selections together."""
        _require_positive("Exponential", epsilon=epsilon, selections=selections)
        charged, factor = round_down(exact_fraction(epsilon)), 1 if monotone else 2
        each = round_down(charged / min(selections, MAX_SELECTIONS))
        _require_positive("Exponential", epsilon=each)
        scale = _round_up_to_float(factor * exact_fraction(sensitivity) / each)
        return cls(
            sensitivity=exact_fraction(sensitivity),
            scale=scale,
            charged_epsilon=charged,
            monotone=monotone,
            selections=selections,
        )

    @property
    def pure_epsilons(self) -> tuple[Fraction, ...]:
        """Equal parts of ε, one for each selection; their sum is exactly ε."""
        return split_exactly(self.charged_epsilon, [1] * self.selections)

    @property
    def rho(self) -> Fraction:
        """ε²/2 per selection."""
        return pure_rho(self.pure_epsilons)

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "kind": "exponential",
            "sensitivity": format_exact(self.sensitivity),
            "scale": self.scale,
            "charged_epsilon": format_exact(self.charged_epsilon),
            "monotone": self.monotone,
            "selections": self.selections,
        }

    @property
    def _sensitivity_factor(self) -> int:
        return 1 if self.monotone else 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSelection(MechanismCost):
    """Partition selection: noisy counts of the keys that occur; a key is listed if its count reaches a threshold.

    Sensitivity: that of ``noise`` on the keys that occur in both tables; beyond these each table has at most k keys
    that the other lacks (those of the unit in which they differ), with counts of at most k.
    Noise: ``noise`` on the count of each key that occurs; those below ``threshold`` are not listed.
    Cost: that of the noise, and δ ≥ k·P(noise ≥ threshold − k). The guarantee of a run is (ε, δ_noise + Σδᵢ), where
    (ε, δ_noise) is that of all its noise without the thresholds, and δᵢ is charged for the i-th partition selection.
    Proof, for runs of any length that decide adaptively: a key that one of two neighboring tables lacks is *lone*. Let
    P and Q be the probabilities of transcripts on the two tables, and p and q those of the same run if it never lists
    lone keys; p(S) ≤ e^ε·q(S) + δ_noise for every event S, because then only the noise on common keys matters. In step
    i, whatever the transcript so far, some lone key is listed with probability at most δᵢ, on either table: there are
    at most k with counts of at most k, and their noise is independent of that of the common keys. So a transcript
    without lone keys has between W = Π(1 − δᵢ) times and once its probability p, or q. A run is outside S only if, for
    instance, it is outside S and lists no lone key, hence P(S) ≤ 1 − W·(1 − p(S)) = 1 − W + W·p(S); and
    Q(S) ≥ W·q(S). Together: P(S) ≤ 1 − W + W·(e^ε·q(S) + δ_noise) ≤ e^ε·Q(S) + δ_noise + 1 − W, and 1 − W ≤ Σδᵢ. No
    term of second order is left, because δᵢ bounds both tables. It holds under both neighboring relations.

    Attributes:
        noise: the noise on each count.
        max_rows: k, the largest number of rows of one unit.
        threshold: the smallest noisy count that is listed.
        charged_delta: the δ that is charged.
    """

    noise: Gaussian | Laplace
    max_rows: int
    threshold: int
    charged_delta: Fraction

    def __post_init__(self) -> None:
        _require_positive(
            "PartitionSelection",
            max_rows=self.max_rows,
            threshold=self.threshold,
            charged_delta=self.charged_delta,
        )
        if not isinstance(self.noise, Gaussian | Laplace):
            raise BudgetError(f"partition selection needs Gaussian or Laplace noise, not {type(self.noise).__name__}")
        if self.threshold <= self.max_rows or not self._is_high_enough(
            self.noise, self.max_rows, self.threshold, self.charged_delta
        ):
            lowest = self._lowest_threshold(self.noise, self.max_rows, self.charged_delta)
            raise BudgetError(
                f"with a threshold of {self.threshold}, a key of one unit with {self.max_rows} rows is listed too "
                f"often for δ = {format_exact(self.charged_delta)}; use {lowest}"
            )

    @classmethod
    def for_delta(cls, delta: Number, noise: Gaussian | Laplace, max_rows: int = 1) -> PartitionSelection:
        """Partition selection with the lowest threshold that fails with probability at most δ."""
        charged = exact_fraction(delta)
        _require_positive("PartitionSelection", delta=charged, max_rows=max_rows)
        return cls(
            noise=noise,
            max_rows=max_rows,
            threshold=cls._lowest_threshold(noise, max_rows, charged),
            charged_delta=charged,
        )

    @property
    def rho(self) -> Fraction:
        """The cost of the noise."""
        return self.noise.rho

    @property
    def mu_squared(self) -> Fraction:
        """The μ² of the noise."""
        return self.noise.mu_squared

    @property
    def pure_epsilons(self) -> tuple[Fraction, ...]:
        """The ε of the noise."""
        return self.noise.pure_epsilons

    @property
    def delta(self) -> Fraction:
        """The δ that is charged."""
        return self.charged_delta

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "kind": "partition_selection",
            "noise": self.noise.to_data(),
            "max_rows": self.max_rows,
            "threshold": self.threshold,
            "delta": format_exact(self.charged_delta),
        }

    @staticmethod
    def _is_high_enough(noise: Gaussian | Laplace, max_rows: int, threshold: int, delta: Fraction) -> bool:
        floating_point_error = 1e-9  # relative; the true one is about 1e-13
        return math.log(max_rows) + noise.log_tail(threshold - max_rows) <= math.log(delta) - floating_point_error

    @classmethod
    def _lowest_threshold(cls, noise: Gaussian | Laplace, max_rows: int, delta: Fraction) -> int:
        low, high = max_rows, max_rows + 1
        while not cls._is_high_enough(noise, max_rows, high, delta):
            low, high = high, high + 2 * (high - max_rows)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if cls._is_high_enough(noise, max_rows, middle, delta) else (middle, high)
        return high


def pure_rho(steps: tuple[Fraction, ...]) -> Fraction:
    """The cost of pure steps in zCDP: Σε²/2."""
    return sum((round_up(step**2 / 2) for step in steps), Fraction(0))


def lattice_for(sigma: float) -> int:
    """The coarsest lattice 2^−s on which noise of standard deviation σ is fine enough."""
    return max(0, MIN_LATTICE_SIGMA.bit_length() - math.frexp(sigma)[1])


def cost_from_data(data: dict[str, Any]) -> MechanismCost:
    """Read a cost back from plain data; it is checked like a new one."""
    fields = dict(data)
    kind = fields.pop("kind", None)
    try:
        if kind == "gaussian":
            return Gaussian(**fields | {"sensitivity_squared": exact_fraction(fields["sensitivity_squared"])})
        if kind in ("laplace", "exponential"):
            cost_type = Laplace if kind == "laplace" else Exponential
            numbers: dict[str, Any] = {
                n: exact_fraction(fields[n]) for n in ("sensitivity", "charged_epsilon") if n in fields
            }
            return cost_type(**fields | numbers)
        if kind == "partition_selection":
            noise, charged = cost_from_data(fields.pop("noise")), exact_fraction(fields.pop("delta"))
            return PartitionSelection(noise=noise, charged_delta=charged, **fields)  # type: ignore[arg-type]
    except (KeyError, TypeError) as error:
        raise BudgetError(f"a {kind} step is not recorded as this version of DPSyn writes it: {error}") from None
    raise BudgetError(f"there is no step of kind {kind!r}; it may come from a newer version of DPSyn")


def check_sensitivity(purpose: str, cost: MechanismCost, privacy_unit: PrivacyUnit) -> None:
    """Refuse a cost whose sensitivity is below that of a marginal or of a score, which is the smallest there is."""
    if isinstance(cost, PartitionSelection):
        if cost.max_rows < privacy_unit.max_rows:
            raise BudgetError(
                f"{purpose}: the threshold is for units of {cost.max_rows} rows; a unit has {privacy_unit.max_rows}"
            )
        cost = cost.noise
    if isinstance(cost, Gaussian) and cost.sensitivity_squared < privacy_unit.l2_sensitivity_squared:
        raise BudgetError(
            f"{purpose}: the noise is for Δ² = {cost.sensitivity_squared}, not {privacy_unit.l2_sensitivity_squared}"
        )
    if isinstance(cost, Laplace | Exponential) and cost.sensitivity < privacy_unit.max_rows:
        raise BudgetError(
            f"{purpose}: the noise is for Δ = {cost.sensitivity}; a unit has {privacy_unit.max_rows} rows"
        )
    if isinstance(cost, Exponential) and cost.monotone and privacy_unit.neighbors == "replace":
        raise BudgetError(
            f"{purpose}: the scores are not monotone if units are replaced; one can rise while another falls"
        )
    if isinstance(cost, Laplace) and cost.sensitivity < privacy_unit.l1_sensitivity:
        raise BudgetError(f"{purpose}: the noise is for Δ = {cost.sensitivity}, not {privacy_unit.l1_sensitivity}")


def _require_positive(what: str, **numbers: Fraction | float | int) -> None:
    for name, number in numbers.items():
        if not (number > 0 and math.isfinite(number)):
            raise BudgetError(f"{what}: {name} is {number}; give a positive number")


def _round_up_to_float(value: Fraction) -> float:
    number = float(value)
    return number if Fraction(number) >= value else math.nextafter(number, math.inf)
