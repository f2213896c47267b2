"""How much GUM corrects in each round: the α of its formulas, falling from round to round.

PrivSyn, section on GUM: large steps first, because the records are far from the tables; small ones later, because each
table spoils those before it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpsyn.errors import UserError


def _check(**numbers: float) -> None:
    for name, number in numbers.items():
        if not (math.isfinite(number) and number > 0):
            raise UserError(f"the {name} of a decay is {number}; give a number above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDecay:
    """α₀·k^⌊t/s⌋, the paper's choice.

    Attributes:
        start: α₀; 1 in the paper.
        factor: k; 0.84 in the paper.
        every: s, the rounds of a step; 20 in the paper.
    """

    start: float = 1.0
    factor: float = 0.84
    every: int = 20

    def __post_init__(self) -> None:
        _check(start=self.start, factor=self.factor, every=self.every)

    def at(self, number: int) -> float:
        """α in a round, counted from 0."""
        return self.start * self.factor ** (number // self.every)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialDecay:
    """e^(−kt).

    Attributes:
        rate: k; 0.008 in the paper's comparison.
    """

    rate: float = 0.008

    def __post_init__(self) -> None:
        _check(rate=self.rate)

    def at(self, number: int) -> float:
        """α in a round, counted from 0."""
        return math.exp(-self.rate * number)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearDecay:
    """1/(1+kt).

    Attributes:
        rate: k; 0.02 in the paper's comparison.
    """

    rate: float = 0.02

    def __post_init__(self) -> None:
        _check(rate=self.rate)

    def at(self, number: int) -> float:
        """α in a round, counted from 0."""
        return 1 / (1 + self.rate * number)


@dataclass(frozen=True, slots=True, kw_only=True)
class RootDecay:
    """1/√(1+kt).

    Attributes:
        rate: k; 0.12 in the paper's comparison.
    """

    rate: float = 0.12

    def __post_init__(self) -> None:
        _check(rate=self.rate)

    def at(self, number: int) -> float:
        """α in a round, counted from 0."""
        return 1 / math.sqrt(1 + self.rate * number)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantAlpha:
    """The same α in all rounds.

    Attributes:
        alpha: 0.2 in the NIST contest.
    """

    alpha: float = 0.2

    def __post_init__(self) -> None:
        _check(alpha=self.alpha)

    def at(self, number: int) -> float:
        """α in a round, counted from 0."""
        return self.alpha


Decay = StepDecay | ExponentialDecay | LinearDecay | RootDecay | ConstantAlpha

DECAYS: dict[str, Decay] = {
    "step": StepDecay(),
    "exponential": ExponentialDecay(),
    "linear": LinearDecay(),
    "root": RootDecay(),
    "constant": ConstantAlpha(),
}
"""By name, as published."""
