"""Conditions on the budget: ``epsilon < 0.3``, ``0.3 <= epsilon < 2``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from dpsyn.errors import SchemaError

_NUMBER = r"([0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)"
_WRITTEN = re.compile(rf"\s*(?:{_NUMBER}\s*(<=?)\s*)?epsilon\s*(?:(<=?|>=?)\s*{_NUMBER})?\s*")


@dataclass(frozen=True, slots=True)
class When:
    """The ε for which something of a plan holds; all of them if nothing is said.

    Attributes:
        low: below it it does not hold.
        high: above it it does not hold.
        low_in: whether it holds at ``low`` itself.
        high_in: whether it holds at ``high`` itself.
    """

    low: float = 0.0
    high: float = math.inf
    low_in: bool = False
    high_in: bool = False

    def holds(self, epsilon: float) -> bool:
        """Whether it holds at a budget."""
        above = epsilon > self.low or (self.low_in and epsilon == self.low)
        return above and (epsilon < self.high or (self.high_in and epsilon == self.high))


def parse_when(text: str) -> When:
    """Read a condition; an empty text is none."""
    if not text.strip():
        return When()
    found = _WRITTEN.fullmatch(text)
    if not found or not (found[1] or found[4]) or (found[1] and found[3] and found[3].startswith(">")):
        raise SchemaError(
            f"{text!r} is not a condition on the budget; write epsilon < 0.3 or 0.3 <= epsilon < 2", ("when",)
        )
    low, low_in, high, high_in = 0.0, False, math.inf, False
    if found[1]:
        low, low_in = float(found[1]), found[2] == "<="
    if found[4] and found[3].startswith(">"):
        low, low_in = float(found[4]), found[3] == ">="
    elif found[4]:
        high, high_in = float(found[4]), found[3] == "<="
    if low > high or (low == high and not (low_in and high_in)):
        raise SchemaError(f"{text!r} holds for no ε at all; swap the two numbers", ("when",))
    return When(low, high, low_in, high_in)
