"""What an audit found, as values; reading them loads no recipe."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

FAMILYWISE_ERROR = 1e-4
"""The probability that an audit of a package without fault reports one, all its statistical tests together."""

REDUCTIONS = (0.1, 0.2, 0.5)
"""By how much less noise there might have been: for each, what would have been found is stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayFinding:
    """A program replayed on neighboring tables with the same released answers: an exact comparison.

    Attributes:
        name: what was replayed.
        pairs: pairs of neighboring tables.
        answers: answers that were compared.
        largest: the largest change of an exact answer, as a part of what was charged; above 1 is a violation.
        faults: what was wrong, in words.
    """

    name: str
    pairs: int
    answers: int
    largest: float
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFinding:
    """The noise of a case compared with its stated distribution, from both sides.

    Attributes:
        name: whose noise it is.
        mechanism: gaussian, laplace, exponential or partition selection.
        values: how many values were compared.
        ratio: the standard deviation as a part of the stated one; None for choices and listings.
        p_values: of each test: ``scale``, ``distribution``, ``independence``.
        power: the probability to find noise that is smaller by ``REDUCTIONS``, by the test of scale; empty without one.
        faults: what was wrong, in words.
    """

    name: str
    mechanism: str
    values: int
    ratio: float | None
    p_values: dict[str, float]
    power: tuple[float, ...] = ()
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundFinding:
    """A lower bound of the privacy loss, from runs with and without a canary.

    Attributes:
        name: what was attacked.
        measure: ``μ`` of Gaussian differential privacy, or ``ε``.
        runs: runs on each of the two tables.
        claim: what was charged.
        reached: the loss that these two tables can cause at most: how near to the claim a bound can come; None where
            Gaussian and pure steps are mixed.
        bound: the lower bound, at the error rate of the whole audit; above the claim is a violation.
        likely: the lower bound at 95 % confidence, for comparison with other audits.
        with_less_noise: the bounds had the noise been smaller by ``REDUCTIONS``; those above the claim would have been
            found.
        faults: what was wrong, in words.
    """

    name: str
    measure: Literal["μ", "ε"]
    runs: int
    claim: float
    reached: float | None
    bound: float
    likely: float
    with_less_noise: tuple[float, ...]
    faults: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """The bound as a part of the claim."""
        return self.bound / self.claim if self.claim else 0.0

    @property
    def would_be_found(self) -> tuple[bool, ...]:
        """For each of ``REDUCTIONS``, whether the audit would have found that the noise is too small."""
        return tuple(bound > self.claim for bound in self.with_less_noise)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """The result of an audit of the installed package.

    Attributes:
        version: the version of DPSyn.
        runs: the runs on each table that cases of full share had.
        tests: statistical tests that share ``FAMILYWISE_ERROR``.
        replays: exact comparisons on neighboring tables.
        noise: comparisons of noise with its distribution.
        bounds: lower bounds of the privacy loss.
        seconds: how long it took.
    """

    version: str
    runs: int
    tests: int
    replays: tuple[ReplayFinding, ...]
    noise: tuple[NoiseFinding, ...]
    bounds: tuple[BoundFinding, ...]
    seconds: float

    @property
    def faults(self) -> tuple[str, ...]:
        """All that was wrong, in words; empty if the audit found nothing."""
        parts: tuple[ReplayFinding | NoiseFinding | BoundFinding, ...] = (*self.replays, *self.noise, *self.bounds)
        return tuple(f"{part.name}: {fault}" for part in parts for fault in part.faults)

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.faults

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        if self.passed:
            return (
                f"No fault was found: {sum(replay.answers for replay in self.replays):,} exact answers on neighboring "
                f"tables, {sum(fit.values for fit in self.noise):,} values of noise, {len(self.bounds)} lower bounds."
            )
        number = "1 fault was" if len(self.faults) == 1 else f"{len(self.faults)} faults were"
        return f"{number} found. Releases of this installation may not keep their guarantee."

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            **asdict(self),
            "passed": self.passed,
            "faults": list(self.faults),
            "familywise_error": FAMILYWISE_ERROR,
        }
