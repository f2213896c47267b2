"""Synthesis methods as option objects: how records are made from consistent tables of counts.

Three methods are available. `Gibbs` fits a maximum-entropy model and samples rows from it; it is the default. `GUM`
(gradual update method) and `MCF` (min-cost flow) are the methods of PrivSyn: they change random records until these
match the tables. The paper behind the defaults of GUM and MCF is PrivSyn (Zhang et al., USENIX Security 2021); the
DPSyn paper repeats its method in appendix A, and the subsections named below are those of that appendix.

An object with defaults is the method as published, or as tuned for Gibbs. All fields are plain values or other objects
of this module. They cannot be changed after they were checked. Privacy: the choice of a method costs nothing, because
every method sees released numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from types import MappingProxyType
from typing import ClassVar, Literal, get_args

from dpsyn.errors import UserError, quote_argument

# ── step sizes of GUM ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDecay:
    """Step decay: α = α₀·k^⌊t/s⌋ in round t. Best in all settings of PrivSyn, but not in docs/how-to/rows.md.

    Attributes:
        factor: k, by which α is multiplied at each step; 0.84 in the paper. Steps become smaller, because each table
            spoils those that were matched before it.
        every: s, the number of rounds between two steps; 20 in the paper.

    Example:
        >>> [round(StepDecay().share(t), 3) for t in (0, 19, 20, 40)]
        [1.0, 1.0, 0.84, 0.706]
    """

    name: ClassVar[str] = "step"

    factor: float = 0.84
    every: int = 20

    def __post_init__(self) -> None:
        _require_positive(self, "factor")
        _require_integer(self, every=1)

    def share(self, round_number: int) -> float:
        """The share of α₀ in a round; rounds count from 0."""
        return float(self.factor ** (round_number // self.every))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialDecay:
    """Exponential decay: α = α₀·e^(−kt) in round t (PrivSyn, "Improving the Convergence").

    Attributes:
        rate: k; 0.008 in the paper's comparison.

    Example:
        >>> round(ExponentialDecay().share(100), 3)
        0.449
    """

    name: ClassVar[str] = "exponential"

    rate: float = 0.008

    def __post_init__(self) -> None:
        _require_positive(self, "rate")

    def share(self, round_number: int) -> float:
        """The share of α₀ in a round; rounds count from 0."""
        return math.exp(-self.rate * round_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearDecay:
    """Linear decay: α = α₀/(1+kt) in round t (PrivSyn, "Improving the Convergence").

    Attributes:
        rate: k; 0.02 in the paper's comparison.

    Example:
        >>> LinearDecay().share(50)
        0.5
    """

    name: ClassVar[str] = "linear"

    rate: float = 0.02

    def __post_init__(self) -> None:
        _require_positive(self, "rate")

    def share(self, round_number: int) -> float:
        """The share of α₀ in a round; rounds count from 0."""
        return 1 / (1 + self.rate * round_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class SquareRootDecay:
    """Square-root decay: α = α₀/√(1+kt) in round t (PrivSyn, "Improving the Convergence").

    Attributes:
        rate: k; 0.12 in the paper's comparison.

    Example:
        >>> SquareRootDecay().share(25)
        0.5
    """

    name: ClassVar[str] = "square-root"

    rate: float = 0.12

    def __post_init__(self) -> None:
        _require_positive(self, "rate")

    def share(self, round_number: int) -> float:
        """The share of α₀ in a round; rounds count from 0."""
        return 1 / math.sqrt(1 + self.rate * round_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantDecay:
    """No decay: α = α₀ in all rounds, as in the NIST contest, where α was 0.2 ("Synthetic Data Generation").

    Example:
        >>> ConstantDecay().share(99)
        1.0
    """

    name: ClassVar[str] = "constant"

    def share(self, round_number: int) -> float:
        """The share of α₀ in a round, which is all of it."""
        return 1.0


Decay = StepDecay | ExponentialDecay | LinearDecay | SquareRootDecay | ConstantDecay

DECAYS: Mapping[str, type[Decay]] = MappingProxyType(
    {decay.name: decay for decay in (StepDecay, ExponentialDecay, LinearDecay, SquareRootDecay, ConstantDecay)}
)
"""The decays by name. Called without arguments, each gives the published values."""


# ── methods ──────────────────────────────────────────────────────────────────────────────────────────────────

Moves = Literal["mixture", "replace", "duplicate"]
"""How GUM fills a cell with freed records.

``replace`` changes only the attributes of the table. ``duplicate`` copies a whole record of the cell, and cannot fill
empty cells. ``mixture`` does a part by each in even rounds; in odd rounds it duplicates wherever there is a record to
copy.
"""

DUPLICATE_SHARES = (0.5, 0.5)
"""The shares of copies in even rounds of a mixture, in the first round and in the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GUM:
    """The gradual update method of PrivSyn ("Gradually Update Method").

    In each round, every table in turn changes some of the records, so that their counts come closer to its own but do
    not match it completely. Matching one table completely spoils the others.

    Attributes:
        rounds: the maximum number of rounds; 100 in the paper, where errors settle much earlier (``bench/gum.py``).
            GUM stops earlier if there is nothing left to move.
        alpha: α₀, the step size of the first round: an under-filled cell with n records gets at most α·n more. 1 in the
            paper, because the records start far from the tables; 0.2 in the NIST contest, with constant decay.
        decay: how the step size falls from α₀ in later rounds. Step decay in the paper, which compares it with the
            other decays ("Improving the Convergence").
        moves: how freed records fill a cell; a mixture in the paper. Replacing reaches new combinations of values,
            duplicating preserves those that were reached.
        duplicate_shares: with moves=mixture, the share of copies in the first round and in the last one; in between it
            changes linearly. This is for even rounds, because odd ones only copy. The paper prefers copies later,
            such as 0.5,1; we keep one half, because fewer combinations of values survive otherwise and triples become
            worse (``bench/gum.py``).
        beta: the maximum share of its records that an over-filled cell gives up. None, as in the paper, computes the
            share at which over-filled cells give up as many records as the others get. If a number is given, the
            smaller of the two sums is moved.

    Example:
        >>> method = GUM(alpha=0.2, decay=StepDecay(factor=0.5), duplicate_shares=(0.5, 1.0))
        >>> [method.step_size(t) for t in (0, 20, 40)]
        [0.2, 0.1, 0.05]
    """

    name: ClassVar[str] = "gum"

    rounds: int = 100
    alpha: float = 1.0
    decay: Decay = field(default_factory=StepDecay)
    moves: Moves = "mixture"
    duplicate_shares: tuple[float, float] = DUPLICATE_SHARES
    beta: float | None = None

    def __post_init__(self) -> None:
        _require_integer(self, rounds=0)
        _require_positive(self, "alpha")
        if type(self.decay) not in DECAYS.values():
            names = ", ".join(f"{decay.__name__}()" for decay in DECAYS.values())
            raise UserError(f"decay of GUM is {quote_argument(self.decay)}; give one of {names}")
        if self.moves not in get_args(Moves):
            raise UserError(f"moves of GUM is {quote_argument(self.moves)}; give one of {', '.join(get_args(Moves))}")
        shares = self.duplicate_shares
        if not isinstance(shares, tuple) or len(shares) != 2 or not all(0 <= _number(part) <= 1 for part in shares):
            raise _wrong_field(self, "duplicate_shares", "give two numbers from 0 to 1, such as (0.5, 1.0)")
        if self.moves != "mixture" and shares != DUPLICATE_SHARES:
            raise _wrong_field(self, "duplicate_shares", f"leave it out, or take moves mixture instead of {self.moves}")
        if self.beta is not None:
            _require_share(self, "beta")

    def step_size(self, round_number: int) -> float:
        """The α of a round; rounds count from 0."""
        return self.alpha * self.decay.share(round_number)

    def duplicate_share(self, round_number: int) -> float:
        """The share of the records that a non-empty cell gets as copies, in a round."""
        if self.moves != "mixture":
            return float(self.moves == "duplicate")
        if round_number % 2:
            return 1.0
        first, last = self.duplicate_shares
        return first + (last - first) * round_number / max(1, self.rounds - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MCF:
    """Min-cost flow, the method that PrivSyn compares GUM with ("Strawman Method: Min-Cost Flow").

    In each pass, every table in turn is matched exactly, by changing as few attribute values as possible.

    Attributes:
        passes: the maximum number of passes over all tables; 100, as many as GUM has rounds. The paper repeats passes
            "until the amount of changes is small".
        min_changed_share: the method stops after a pass that changes a smaller share of the records than this,
            averaged over the tables. With 45 pairs of Adult that is pass 32; distances hardly fall after pass 20
            (``bench/gum.py``).

    Example:
        >>> MCF(passes=10)
        MCF(passes=10, min_changed_share=0.005)
    """

    name: ClassVar[str] = "mcf"

    passes: int = 100
    min_changed_share: float = 0.005

    def __post_init__(self) -> None:
        _require_integer(self, passes=0)
        _require_share(self, "min_changed_share")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gibbs:
    """A maximum-entropy model, fitted by Gibbs sampling over synthetic records; rows are sampled from the model.

    The method is DPSyn's own (``inference/gibbs/maximum_entropy.py`` gives its formulas). The defaults were chosen on
    Adult, NLTCS and ACS at ε = 0.1, 1 and 10; results change little around them. λ below is the *stiffness* of a
    table: each record above the count of a cell lowers the logarithm of the cell's weight by λ. Distances are total
    variation distances between the counts of records and a table, averaged over the tables.

    Attributes:
        max_sweeps: the maximum number of sweeps until the records settle. Two-way marginals settle in four sweeps,
            three-way marginals in ten.
        min_improvement: the records have settled when a sweep lowers their distance to the tables by a smaller share
            than this.
        relaxing_sweeps: the sweeps after that in which λ is lowered while parameters of the model take over its effect.
        averaging_sweeps: the sweeps after those over which the parameters are averaged.
        polishing_sweeps: the last sweeps, in which rows are moved to the counts that the model expects.
        max_tightening_sweeps: the maximum number of further sweeps that move rows still closer, if tables are precise.
        tighten_below_noise: tables are precise if their noise alone makes a smaller distance than this.
        tightening_tolerance: the distance between rows and expected counts at which tightening stops.
        sampling_sweeps: the sweeps that turn a sample of the initial distribution into rows of the model.
        conditional_sweeps: the same for rows that must meet conditions.
        trust: how strongly records follow a table: λ = trust · (records per cell) / (variance of a cell). If both the
            noise and the differences between a table and what the other tables imply are normal, the best λ is
            s² · (records per cell) / variance, where s is the usual relative difference of a cell.
        max_stiffness: the limit of λ as tables become exact. The model is not bent for the last few records of a cell,
            because real counts differ by more than that from any model; polishing moves the rows to those counts.
        sweep_stiffness: the maximum λ in sweeps, so that records keep moving.
        polishing_stiffness: λ while polishing, when records are already near their final values.
        tightening_stiffness: the sum of λ over all tables of an attribute at the end of tightening. At 80, weights
            leave the range of single precision.
        max_force: the maximum by which all records above the count of a cell together lower the logarithm of its
            weight, so that records that start far from the tables do not overshoot.
        pseudocount_sigmas: records of the overall distribution that are added to each row of a table of the initial
            distribution, in standard deviations of the table's noise, and at least half a record. No cell is
            impossible then, in particular where counts below the noise were clipped.

    Example:
        >>> Gibbs(max_sweeps=40).max_sweeps
        40
    """

    name: ClassVar[str] = "gibbs"

    max_sweeps: int = 24
    min_improvement: float = 0.03
    relaxing_sweeps: int = 4
    averaging_sweeps: int = 8
    polishing_sweeps: int = 2
    max_tightening_sweeps: int = 28
    tighten_below_noise: float = 0.001
    tightening_tolerance: float = 0.004
    sampling_sweeps: int = 4
    conditional_sweeps: int = 12
    trust: float = 0.1
    max_stiffness: float = 0.1
    sweep_stiffness: float = 0.3
    polishing_stiffness: float = 1.0
    tightening_stiffness: float = 60.0
    max_force: float = 4.0
    pseudocount_sigmas: float = 0.3

    def __post_init__(self) -> None:
        _require_integer(self, max_sweeps=1, averaging_sweeps=1, relaxing_sweeps=0, polishing_sweeps=0)
        _require_integer(self, max_tightening_sweeps=0, sampling_sweeps=0, conditional_sweeps=0)
        _require_share(self, "min_improvement")
        _require_positive(self, "trust", "max_stiffness", "tightening_stiffness", "max_force")
        _require_nonnegative(self, "tighten_below_noise", "tightening_tolerance", "pseudocount_sigmas")
        _require_nonnegative(self, "sweep_stiffness", "polishing_stiffness")


Synthesis = Gibbs | GUM | MCF
"""A synthesis method with its options."""

SYNTHESIS_METHODS: Mapping[str, type[Synthesis]] = MappingProxyType(
    {method.name: method for method in (Gibbs, GUM, MCF)}
)
"""The synthesis methods by name. Called without arguments, each gives the defaults."""


# ── checks of fields ─────────────────────────────────────────────────────────────────────────────────────────


def _require_integer(options: object, **minimums: int) -> None:
    """Refuse fields that are not integers of at least a minimum."""
    for name, minimum in minimums.items():
        value = getattr(options, name)
        if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < minimum:
            raise _wrong_field(options, name, f"give a whole number of at least {minimum}")


def _require_positive(options: object, *names: str) -> None:
    """Refuse fields that are not finite numbers above 0."""
    for name in names:
        if not _number(getattr(options, name)) > 0:
            raise _wrong_field(options, name, "give a number above 0")


def _require_nonnegative(options: object, *names: str) -> None:
    """Refuse fields that are not finite numbers of at least 0."""
    for name in names:
        if not _number(getattr(options, name)) >= 0:
            raise _wrong_field(options, name, "give a number of at least 0")


def _require_share(options: object, *names: str) -> None:
    """Refuse fields that are not numbers from 0 to 1."""
    for name in names:
        if not 0 <= _number(getattr(options, name)) <= 1:
            raise _wrong_field(options, name, "give a number from 0 to 1")


def _number(value: object) -> float:
    """A value as a number; not a number (NaN), which fulfills no condition, if it is none or not finite."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        return math.nan
    return float(value)


def _wrong_field(options: object, name: str, advice: str) -> UserError:
    return UserError(f"{name} of {type(options).__name__} is {quote_argument(getattr(options, name))}; {advice}")
