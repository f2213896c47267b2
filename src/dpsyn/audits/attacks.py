"""The three attacks: replay on neighboring tables, goodness of fit of the noise, canaries."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincc, gammaincinv, kolmogorov, ndtr, ndtri, stdtr

from dpsyn.accounting import Budget, Composition, Exponential, Gaussian, Laplace, PartitionSelection
from dpsyn.audits.bounds import bound_epsilon, bound_mu
from dpsyn.audits.cases import AuditCase, describe_outcome
from dpsyn.audits.likelihood import (
    listing_probability,
    log_likelihood_ratio,
    reached_loss,
    release_with_less_noise,
    standardized_noise,
    uniform_values,
)
from dpsyn.audits.results import REDUCTIONS, BoundFinding, NoiseFinding, ReplayFinding
from dpsyn.errors import DPSynError
from dpsyn.private import Rehearsal, RehearsedAnswer, Transcript

MAX_NOISE_VALUES = 100_000
"""Values of noise of one mechanism of one case that are compared; more would show differences that do not matter."""

_TAIL_ERROR = 0.01
"""How much the tail of a continuous distribution may differ from that on its lattice, relatively."""

Floats = NDArray[np.float64]

# ── replay ───────────────────────────────────────────────────────────────────────────────────────────────────


def replay_on_neighbors(cases: Sequence[AuditCase], seeds: Iterable[int]) -> ReplayFinding:
    """Replay one program, under several relations and units, on neighboring tables of several seeds.

    Each pair is replayed both ways: what was released on one table is the transcript on the other.
    """
    pairs, answers, largest = 0, 0, 0.0
    faults: list[str] = []
    for case, seed, side in product(cases, seeds, (0, 1)):
        rehearsal = Rehearsal(case.kind, neighbors=case.neighbors, max_rows=case.max_rows, seed=seed)
        budget = case.budget(rehearsal.schema)
        pairs += 1
        try:
            first = rehearsal.run(case.program, budget, cast(Any, side))
            second = rehearsal.replay(case.program, budget, cast(Any, 1 - side), first)
        except (
            DPSynError
        ) as error:  # the gate refused what it should release, or the neighbor was asked other questions
            faults.append(f"{error} ({case.title})")
            continue
        answers += len(first.answers)
        for one, other in zip(first.answers, second.answers, strict=True):
            change, problem = compare_with_charge(one, other.exact)
            largest = max(largest, change)
            faults += [f"{problem} ({case.title})"] if problem else []
        if first.charged != tuple(answer.cost for answer in first.answers):
            faults.append(f"answers were released that were not charged, or charged otherwise ({case.title})")
        if describe_outcome(first.outcome) != describe_outcome(second.outcome):
            faults.append(f"the same released answers led to other results on a neighbor ({case.title})")
    return ReplayFinding(
        name=cases[0].name, pairs=pairs, answers=answers, largest=largest, faults=tuple(dict.fromkeys(faults))
    )


def compare_with_charge(answer: RehearsedAnswer, neighbor: Any) -> tuple[float, str]:
    """The change of an exact answer as a part of what was charged, and what is wrong with it; exact arithmetic."""
    cost = answer.cost
    if isinstance(cost, PartitionSelection):
        return _compare_listings(answer.exact, neighbor, cost)
    difference = np.asarray(answer.exact, object) - np.asarray(neighbor, object)
    if isinstance(cost, Gaussian):
        squares, charged = Fraction(int((difference**2).sum())), cost.sensitivity_squared
        return math.sqrt(squares / charged), _exceeds("the square of a change in L2", squares, charged)
    if isinstance(cost, Laplace):
        total = Fraction(int(np.abs(difference).sum()))
        return float(total / cost.sensitivity), _exceeds("a change in L1", total, cost.sensitivity)
    change = Fraction(int(np.abs(difference).max()))
    problem = _exceeds("a change of a score", change, cost.sensitivity)
    if cost.monotone and (difference < 0).any() and (difference > 0).any():
        problem = "scores that are charged as monotone change in both directions"
    return float(change / cost.sensitivity), problem


def _compare_listings(one: dict[str, int], other: dict[str, int], cost: PartitionSelection) -> tuple[float, str]:
    changes = [one[key] - other[key] for key in one.keys() & other.keys()]
    if isinstance(cost.noise, Gaussian):
        total, charged = Fraction(sum(change**2 for change in changes)), cost.noise.sensitivity_squared
    else:
        total, charged = Fraction(sum(map(abs, changes))), cost.noise.sensitivity
    problem = _exceeds("a change of counts of keys", total, charged)
    for counts, others in ((one, other), (other, one)):
        lone = counts.keys() - others.keys()
        if len(lone) > cost.max_rows or any(counts[key] > cost.max_rows for key in lone):
            problem = f"{len(lone)} keys of a single unit, or their counts, are above the limit of {cost.max_rows}"
    if cost.max_rows * listing_probability(cost.max_rows, cost) > float(cost.charged_delta) * (1 + _TAIL_ERROR):
        problem = f"keys of a single unit are listed more often than the δ that was charged, {float(cost.delta):.2g}"
    return math.sqrt(total / charged) if isinstance(cost.noise, Gaussian) else float(total / charged), problem


def _exceeds(what: str, change: Fraction, charged: Fraction) -> str:
    return f"{what} is {float(change):g}, and {float(charged):g} was charged" if change > charged else ""


# ── canaries ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class NoiseSample:
    """Noise of one mechanism: values by the stated distribution function, and standardized ones."""

    uniform: list[Floats] = field(default_factory=list)
    standardized: list[Floats] = field(default_factory=list)
    size: int = 0

    def add(self, answer: RehearsedAnswer, rng: np.random.Generator) -> None:
        """Take the noise of an answer, unless there is enough."""
        if self.size >= MAX_NOISE_VALUES:
            return
        values = uniform_values(answer, rng)
        self.uniform.append(values)
        self.size += len(values)
        if isinstance(answer.cost, Gaussian | Laplace):
            self.standardized.append(standardized_noise(answer))


@dataclass(frozen=True, slots=True)
class CanaryRuns:
    """Runs of a case on both tables.

    Attributes:
        case: what was run.
        budget: its budget.
        total: what a run cost, as charged.
        scores: log-likelihood ratios with and without the canary, for the stated noise and for ``REDUCTIONS``.
        reached: the loss that the two tables can cause at most, the mean over runs.
        noise: the noise of each mechanism.
        failure: why a run or its replay failed; empty if none did.
    """

    case: AuditCase
    budget: Budget
    total: Composition
    scores: tuple[Floats, Floats]
    reached: float
    noise: dict[str, NoiseSample]
    failure: str = ""

    @property
    def is_gaussian(self) -> bool:
        """Whether all noise is Gaussian, so that the claim is a μ."""
        return not self.total.pure_epsilons and not self.total.delta


def run_canaries(case: AuditCase, runs: int) -> CanaryRuns:
    """Run a case on both of its tables, and compute how well each transcript tells them apart."""
    rehearsal = Rehearsal(case.kind, neighbors=case.neighbors, max_rows=case.max_rows)
    budget, rng = case.budget(rehearsal.schema), np.random.default_rng()
    noise: dict[str, NoiseSample] = defaultdict(NoiseSample)
    scores = (np.zeros((runs, 1 + len(REDUCTIONS))), np.zeros((runs, 1 + len(REDUCTIONS))))
    reached, total, failure = [], Composition(), ""
    known: dict[int, Transcript] = {}  # the answers of the neighbor, where questions are always the same
    for run, side in product(range(runs), (0, 1)):
        try:
            first = rehearsal.run(case.program, budget, cast(Any, side), stop_when_spent=True)
            if case.adaptive or side not in known:
                known[side] = rehearsal.replay(case.program, budget, cast(Any, 1 - side), first, stop=True)
        except DPSynError as error:
            failure = str(error)
            break
        pairs = [*zip(first.answers, (answer.exact for answer in known[side].answers), strict=True)]
        sign = 1 if side == 0 else -1
        scores[side][run] = [sign * ratio for ratio in _score(pairs, rng)]
        reached.append(_combine([reached_loss(*pair) for pair in pairs], [answer.cost for answer in first.answers]))
        total = first.total if first.total.mu_squared > total.mu_squared or not run else total
        for answer in first.answers:
            noise[_mechanism(answer.cost)].add(answer, rng)
    return CanaryRuns(case, budget, total, scores, float(np.mean(reached or [0.0])), noise, failure)


def _score(pairs: Sequence[tuple[RehearsedAnswer, Any]], rng: np.random.Generator) -> Iterator[float]:
    yield sum(log_likelihood_ratio(answer, neighbor) for answer, neighbor in pairs)
    for reduction in REDUCTIONS:
        yield sum(
            log_likelihood_ratio(answer, neighbor, release_with_less_noise(answer, 1 - reduction, rng))
            for answer, neighbor in pairs
        )


def _combine(losses: Sequence[float], costs: Sequence[Any]) -> float:
    """Losses of several answers together: μ add up as squares, ε as they are."""
    gaussian = sum(loss**2 for loss, cost in zip(losses, costs, strict=True) if cost.mu_squared)
    return math.sqrt(gaussian) + sum(loss for loss, cost in zip(losses, costs, strict=True) if not cost.mu_squared)


def _mechanism(cost: Gaussian | Laplace | Exponential | PartitionSelection) -> str:
    names = {Gaussian: "gaussian", Laplace: "laplace", Exponential: "exponential"}
    return names.get(type(cost), "partition selection")


def bound_loss(found: CanaryRuns, alpha: float) -> BoundFinding:
    """The lower bound of the loss of a case, at an error rate of α, compared with its claim."""
    with_canary, without = found.scores

    def bound(column: int, level: float) -> float:
        if found.is_gaussian:
            return bound_mu(with_canary[:, column], without[:, column], level)
        return bound_epsilon(with_canary[:, column], without[:, column], float(found.budget.delta), level)

    claim = math.sqrt(found.total.mu_squared) if found.is_gaussian else float(found.budget.epsilon)
    shown = bound(0, alpha)
    faults = [f"a loss of at least {shown:.3g} was shown, and {claim:.3g} was charged"] if shown > claim else []
    faults += [found.failure] if found.failure else []
    return BoundFinding(
        name=found.case.title,
        measure="μ" if found.is_gaussian else "ε",
        runs=len(with_canary),
        claim=claim,
        reached=found.reached if found.is_gaussian or not found.total.mu_squared else None,
        bound=shown,
        likely=bound(0, 0.05),
        with_less_noise=tuple(bound(1 + column, alpha) for column in range(len(REDUCTIONS))),
        faults=tuple(faults),
    )


# ── goodness of fit of the noise ─────────────────────────────────────────────────────────────────────────────

NOISE_TESTS = 3
"""How many tests the noise of each mechanism gets."""


def fit_noise(name: str, mechanism: str, sample: NoiseSample, alpha: float) -> NoiseFinding:
    """Compare noise with its stated distribution; too little and too much are faults alike, and so is dependence.

    By the stated distribution function values are uniform, and by the quantile function of the normal distribution
    they are normal, whatever the mechanism. So the sum of squares has a χ² distribution.
    """
    uniform = np.concatenate(sample.uniform)
    normal = ndtri(np.clip(uniform, 1e-15, 1 - 1e-15))
    p_values = {
        "scale": _sum_of_squares(normal),
        "distribution": _kolmogorov_smirnov(uniform),
        "independence": _serial_correlation(normal),
    }
    ratio: float | None = None
    power: tuple[float, ...] = ()
    if sample.standardized:
        ratio = float(np.sqrt((np.concatenate(sample.standardized) ** 2).mean()))
        power = tuple(_scale_power(mechanism, 1 - reduction, len(normal), alpha) for reduction in REDUCTIONS)
    shown = "" if ratio is None else f", standard deviation {ratio:.3f} of the stated one"
    return NoiseFinding(
        name=name,
        mechanism=mechanism,
        values=len(normal),
        ratio=ratio,
        p_values=p_values,
        power=power,
        faults=tuple(
            f"the {test} of {mechanism} noise is not as stated (p = {p:.1g}{shown})"
            for test, p in p_values.items()
            if not p >= alpha
        ),
    )


def _sum_of_squares(normal: Floats) -> float:
    half, size = float((normal**2).sum()) / 2, len(normal) / 2
    return min(1.0, 2 * min(float(gammainc(size, half)), float(gammaincc(size, half))))


def _kolmogorov_smirnov(uniform: Floats) -> float:
    ordered, size = np.sort(uniform), len(uniform)
    steps = np.arange(size + 1) / size
    distance = max(float((steps[1:] - ordered).max()), float((ordered - steps[:-1]).max()))
    return float(kolmogorov(distance * (math.sqrt(size) + 0.12 + 0.11 / math.sqrt(size))))


def _serial_correlation(normal: Floats) -> float:
    """Whether consecutive values are correlated, as cells with the same noise would be."""
    before, after = normal[:-1], normal[1:]
    correlation = float((before * after).sum()) / math.sqrt(float((before**2).sum() * (after**2).sum()) or 1.0)
    degrees = len(before) - 1
    if degrees < 1:
        return 1.0
    return float(2 * stdtr(degrees, -abs(correlation) * math.sqrt(degrees / max(1 - correlation**2, 1e-300))))


def _scale_power(mechanism: str, factor: float, size: int, alpha: float) -> float:
    """The probability that the test of scale finds noise that is off by a factor; by a normal approximation."""
    shares = (np.arange(20_000) + 0.5) / 20_000
    if mechanism == "gaussian":
        squares = (factor * ndtri(shares)) ** 2
    else:
        tails = 0.5 * np.exp(factor * np.log(2 * np.minimum(shares, 1 - shares)))  # the smaller tail of scaled noise
        squares = ndtri(tails) ** 2
    critical = [2 * float(gammaincinv(size / 2, q)) / size for q in (alpha / 2, 1 - alpha / 2)]
    mean, error = float(squares.mean()), float(squares.std()) / math.sqrt(size)
    return float(ndtr((critical[0] - mean) / error) + ndtr((mean - critical[1]) / error))
