"""How much GUM corrects in each round: the α of its formulas, falling from round to round.

PrivSyn, section on GUM: large steps first, because the records are far from the tables; small ones later, because each
table spoils those before it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpsyn.errors import UserError


def _check_positive(**numbers: float) -> None:
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
        _check_positive(start=self.start, factor=self.factor, every=self.every)

    def step_size(self, round_number: int) -> float:
        """α in a round, counted from 0."""
        return self.start * self.factor ** (round_number // self.every)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialDecay:
    """e^(−kt).

    Attributes:
        rate: k; 0.008 in the paper's comparison.
    """

    rate: float = 0.008

    def __post_init__(self) -> None:
        _check_positive(rate=self.rate)

    def step_size(self, round_number: int) -> float:
        """α in a round, counted from 0."""
        return math.exp(-self.rate * round_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearDecay:
    """1/(1+kt).

    Attributes:
        rate: k; 0.02 in the paper's comparison.
    """

    rate: float = 0.02

    def __post_init__(self) -> None:
        _check_positive(rate=self.rate)

    def step_size(self, round_number: int) -> float:
        """α in a round, counted from 0."""
        return 1 / (1 + self.rate * round_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class SquareRootDecay:
    """1/√(1+kt).

    Attributes:
        rate: k; 0.12 in the paper's comparison.
    """

    rate: float = 0.12

    def __post_init__(self) -> None:
        _check_positive(rate=self.rate)

    def step_size(self, round_number: int) -> float:
        """α in a round, counted from 0."""
        return 1 / math.sqrt(1 + self.rate * round_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantDecay:
    """The same α in all rounds.

    Attributes:
        start: 0.2 in the NIST contest.
    """

    start: float = 0.2

    def __post_init__(self) -> None:
        _check_positive(alpha=self.start)

    def step_size(self, round_number: int) -> float:
        """α in a round, counted from 0."""
        return self.start


Decay = StepDecay | ExponentialDecay | LinearDecay | SquareRootDecay | ConstantDecay

DECAYS: dict[str, Decay] = {
    "step": StepDecay(),
    "exponential": ExponentialDecay(),
    "linear": LinearDecay(),
    "root": SquareRootDecay(),
    "constant": ConstantDecay(),
}
"""By name, as published."""
