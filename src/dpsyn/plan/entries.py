"""What a plan consists of: transforms, marginals and groups, each perhaps for some ε only. All of it is public."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import msgspec

from dpsyn.accounting import exact_fraction
from dpsyn.errors import BudgetError, PlanError, quote_argument
from dpsyn.schema import Value

_NUMBER = r"([0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)"
_CONDITION = re.compile(rf"\s*(?:{_NUMBER}\s*(<=?)\s*)?epsilon\s*(?:(<=?|>=?)\s*{_NUMBER})?\s*")


@dataclass(frozen=True, slots=True)
class BudgetCondition:
    """The range of ε in which an entry of a plan holds, such as ``0.3 <= epsilon < 2``; by default all ε.

    Attributes:
        low: the lower end of the range.
        high: the upper end.
        low_in: whether ``low`` itself is in the range.
        high_in: whether ``high`` itself is in the range.
    """

    low: float = 0.0
    high: float = math.inf
    low_in: bool = False
    high_in: bool = False

    def holds(self, epsilon: float) -> bool:
        """Whether an ε is in the range."""
        above = epsilon > self.low or (self.low_in and epsilon == self.low)
        return above and (epsilon < self.high or (self.high_in and epsilon == self.high))


def parse_budget_condition(text: str) -> BudgetCondition:
    """Read a condition; an empty text holds for all ε."""
    if not text.strip():
        return BudgetCondition()
    match = _CONDITION.fullmatch(text)
    if not match or not (match[1] or match[4]) or (match[1] and match[3] and match[3].startswith(">")):
        raise PlanError(
            f"{quote_argument(text)} is not a condition on the budget; write epsilon < 0.3 or 0.3 <= epsilon < 2",
            ("when",),
        )
    low, low_in, high, high_in = 0.0, False, math.inf, False
    if match[1]:
        low, low_in = float(match[1]), match[2] == "<="
    if match[4] and match[3].startswith(">"):
        low, low_in = float(match[4]), match[3] == ">="
    elif match[4]:
        high, high_in = float(match[4]), match[3] == "<="
    if low > high or (low == high and not (low_in and high_in)):
        raise PlanError(f"{quote_argument(text)} holds for no ε at all; swap the two numbers", ("when",))
    return BudgetCondition(low, high, low_in, high_in)


BudgetShare = float | str
"""A part of the budget: 0.05, or "1/24"."""

MechanismName = Literal["gaussian", "laplace"]

_MAX_WEIGHT = 1e6
"""Weights lie below this and above its inverse: beyond it, only one attribute would matter."""


class PlanEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An entry of a plan, perhaps for some ε only.

    Attributes:
        when: for which ε it holds, such as ``epsilon < 0.3``; by default for all.
    """

    when: str = ""

    def __post_init__(self) -> None:
        parse_budget_condition(self.when)
        for field in self.__struct_fields__:
            given = getattr(self, field)
            if isinstance(given, list):
                msgspec.structs.force_setattr(self, field, tuple(given))
        self._check()

    def _check(self) -> None:
        """Refuse what makes no sense under any schema."""

    @property
    def condition(self) -> BudgetCondition:
        """For which ε it holds."""
        return parse_budget_condition(self.when)

    def mentions(self) -> tuple[str, ...]:
        """The attributes that it names."""
        return ()


class Transform(PlanEntry, frozen=True, kw_only=True, tag_field="transform"):
    """A recoding of attributes, made from public facts or from released numbers."""


class Bucketize(Transform, frozen=True, kw_only=True, tag="bucketize"):
    """Bins of a number, a date or a list of values, instead of those of the schema.

    Attributes:
        of: the attribute.
        starts: the first value of each bin.
        fine: whether the histogram inside bins is measured; otherwise values are sampled uniformly.
        share: the part of ρ for that histogram; by default it is one of the one-way marginals.
    """

    of: str
    starts: tuple[Value, ...]
    fine: bool = True
    share: BudgetShare | None = None

    def _check(self) -> None:
        check_share(self.share)
        if self.share is not None and not self.fine:
            raise PlanError(f"{self.of!r} has a share for a histogram, but fine: false; leave one out", ("share",))
        if not self.starts:
            raise PlanError(f"the bins of {self.of!r} have no starts; list the first value of each", ("starts",))

    def mentions(self) -> tuple[str, ...]:
        """The attribute."""
        return (self.of,)


class MergingTransform(Transform, frozen=True, kw_only=True):
    """A transform that keeps the codes whose noisy count is high enough and merges the others.

    Attributes:
        threshold: how many standard deviations of the noise a count must reach; by default the plan's threshold.
        rows: how many rows it must reach as well.
        max_codes: the largest number of codes to keep; by default as many as can be measured.
    """

    threshold: float | None = None
    rows: float = 0.0
    max_codes: int | None = None

    def _check(self) -> None:
        if self.threshold is not None and not 0 <= self.threshold < math.inf:
            raise PlanError(f"threshold is {self.threshold}; give a number from 0", ("threshold",))
        if not 0 <= self.rows < math.inf:
            raise PlanError(f"rows is {self.rows}; give a number from 0", ("rows",))
        if self.max_codes is not None and self.max_codes < 1:
            raise PlanError(f"max_codes is {self.max_codes}; keep at least 1", ("max_codes",))


class Compress(MergingTransform, frozen=True, kw_only=True, tag="compress"):
    """Merge rare values of attributes into one, by their noisy one-way marginals.

    Attributes:
        of: the attributes; by default all that no other entry names.
    """

    of: tuple[str, ...] = ()

    def mentions(self) -> tuple[str, ...]:
        """The attributes."""
        return self.of


class Recode(MergingTransform, frozen=True, kw_only=True, tag="recode"):
    """Join attributes that depend closely on each other into one, over the tuples that are frequent enough.

    Their noisy counts are measured over the whole product of the public domains, tuples that never occur included.

    Attributes:
        to: the name of the joint attribute.
        of: its parts.
        share: the part of ρ for the counts; by default they are one of the one-way marginals.
    """

    to: str
    of: tuple[str, ...]
    share: BudgetShare | None = None

    def _check(self) -> None:
        MergingTransform._check(self)
        check_share(self.share)
        _check_joint(self.to, self.of)

    def mentions(self) -> tuple[str, ...]:
        """The parts."""
        return self.of


class Availability(MergingTransform, frozen=True, kw_only=True, tag="availability"):
    """Attributes of one event: which are missing, and how far they lie from an anchor, as one attribute.

    Attributes:
        to: the name of the joint attribute.
        of: its parts, such as the dates of one call.
        anchor: the attribute whose value all of them nearly have; by default they keep their own values.
        keep: differences from the anchor, in cells, that are distinguished; others are sampled from a histogram.
        fine: whether that histogram is measured; otherwise other differences are sampled uniformly.
        share: the part of ρ for the counts; by default they are one of the one-way marginals.
    """

    to: str
    of: tuple[str, ...]
    anchor: str | None = None
    keep: tuple[int, ...] = (0,)
    fine: bool = True
    share: BudgetShare | None = None

    def _check(self) -> None:
        MergingTransform._check(self)
        check_share(self.share)
        _check_joint(self.to, self.of, least=1)
        if self.anchor in self.of:
            raise PlanError(f"{self.anchor!r} is its own anchor; leave it out of the parts", ("anchor",))

    def mentions(self) -> tuple[str, ...]:
        """The parts and the anchor."""
        return (*self.of, *([self.anchor] if self.anchor else []))


class LearnedMapping(MergingTransform, frozen=True, kw_only=True, tag="mapping", rename={"source": "from"}):
    """An attribute that nearly always follows from another one; the mapping is derived from their noisy marginal.

    Attributes:
        of: the attribute.
        source: the attribute it follows from.
        share: the part of ρ for the marginal.
    """

    of: str
    source: str
    share: BudgetShare = 0.02

    def _check(self) -> None:
        MergingTransform._check(self)
        check_share(self.share)
        if self.of == self.source:
            raise PlanError(f"{self.of!r} cannot follow from itself", ("from",))

    def mentions(self) -> tuple[str, ...]:
        """Both attributes."""
        return (self.of, self.source)


class Unmeasured(Transform, frozen=True, kw_only=True, tag="random"):
    """Attributes whose domains are too large for the budget: their values are sampled uniformly, at no cost.

    Attributes:
        of: the attributes.
    """

    of: tuple[str, ...]

    def mentions(self) -> tuple[str, ...]:
        """The attributes."""
        return self.of


class MarginalsEntry(PlanEntry, frozen=True, kw_only=True):
    """Marginals to measure: one, or all pairs of some attributes.

    Attributes:
        of: the attributes of one marginal.
        pairs: attributes of which all pairs are measured.
        beside: with ``pairs``: pair each of those with each of these instead.
        share: the part of the budget for all of them together: of ρ for Gaussian noise, of ε for Laplace noise.
            By default they share what is left by their numbers of cells.
        mechanism: the noise: ``gaussian`` or, for a few important marginals, ``laplace``.
    """

    of: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    beside: tuple[str, ...] = msgspec.field(name="with", default=())
    share: BudgetShare | None = None
    mechanism: MechanismName = "gaussian"

    def _check(self) -> None:
        if bool(self.of) == bool(self.pairs):
            raise PlanError("give either of: [...], one marginal, or pairs: [...], all pairs of these", ("of",))
        if self.beside and not self.pairs:
            raise PlanError("with: belongs to pairs:", ("with",))
        if len(set(self.of)) < len(self.of):
            raise PlanError("a marginal names an attribute twice", ("of",))
        if self.pairs and not self.beside and len(set(self.pairs)) < 2:
            raise PlanError("pairs: needs at least two attributes, or with:", ("pairs",))
        check_share(self.share)
        if self.mechanism == "laplace" and self.share is None:
            raise PlanError("Laplace noise needs a share of ε, fixed beforehand, such as share: 1/24", ("share",))

    def mentions(self) -> tuple[str, ...]:
        """All attributes that it names."""
        return (*self.of, *self.pairs, *self.beside)

    def cliques(self) -> list[tuple[str, ...]]:
        """The marginals, in the order of the file."""
        if self.of:
            return [self.of]
        if self.beside:
            return [(one, other) for one in self.pairs for other in self.beside if one != other]
        return [(one, other) for n, one in enumerate(self.pairs) for other in self.pairs[n + 1 :]]


class AttributeGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Attributes that are synthesized apart from those of other groups: no marginal spans two groups.

    Attributes:
        name: its name.
        attributes: its attributes.
        join: how it is joined to the groups before it: ``rows``, in any order, or an attribute that both have.
    """

    name: str
    attributes: tuple[str, ...]
    join: str = "rows"

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "attributes", tuple(self.attributes))
        if not self.attributes:
            raise PlanError(f"the group {self.name!r} has no attributes", ("attributes",))
        if self.join != "rows" and self.join not in self.attributes:
            raise PlanError(f"the group {self.name!r} is joined on {self.join!r}, which it does not have", ("join",))


AnyTransform = Bucketize | Compress | Recode | Availability | LearnedMapping | Unmeasured


def share_fraction(share: BudgetShare) -> Fraction:
    """A share as an exact number."""
    return exact_fraction(share)


def check_share(share: BudgetShare | None, field: str = "share") -> None:
    """Raise a PlanError if a share is not a part of the budget."""
    if share is None:
        return
    try:
        part = share_fraction(share)
    except BudgetError as error:
        raise PlanError(f"{field}: {error}", (field,)) from None
    if not 0 < part <= 1:
        raise PlanError(f"{field} is {share}; give a part of the budget, above 0 and at most 1", (field,))


def check_weights(weights: dict[str, float]) -> None:
    """Raise a PlanError if a weight is not in the range that selection can use."""
    for name, weight in weights.items():
        if not 1 / _MAX_WEIGHT <= weight < _MAX_WEIGHT:
            span = f"from {1 / _MAX_WEIGHT:g} to below {_MAX_WEIGHT:g}"
            raise PlanError(f"the weight of {name!r} is {weight}; give a number {span}", ("weights", name))


def _check_joint(name: str, parts: tuple[str, ...], least: int = 2) -> None:
    if not name:
        raise PlanError("to: is empty; give the joint attribute a name", ("to",))
    if len(set(parts)) < max(least, len(parts)):
        raise PlanError(f"{name!r} needs at least {least} different attributes", ("of",))
