"""Exact numbers: budgets are whole numbers of grains, so parts add up to the total exactly, as integers do."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction

from dpsyn.errors import BudgetError, quote_argument

GRAINS = 10**36
"""Grains in one unit of ρ, ε or δ.

Every part of a budget is a whole number of grains, and every cost is rounded up to one. So a cost that is at most its
part in real numbers is also at most its part in grains, and a sum over thousands of steps stays a short number (sums of
Δ²/2σ² as plain fractions would grow by a hundred digits with every new σ).
"""

SIGNIFICANT_DIGITS = 12
"""Significant digits of a budget that comes from a formula."""

Number = Fraction | int | float | str

_MAX_NUMBER_CHARACTERS = 1000
_HUGE_EXPONENT = re.compile(r"[eE][-+]?[0-9_]{4}")
"""An exponent of four digits or more: a few characters of a file would expand to gigabytes of digits."""


def exact_fraction(number: Number) -> Fraction:
    """The number as written: 0.1 is one tenth, not the nearest binary fraction."""
    if isinstance(number, float):
        if not math.isfinite(number):
            raise BudgetError(f"{number} is not a finite number; give a finite one")
        return Fraction(repr(float(number)))
    if isinstance(number, str) and (len(number) > _MAX_NUMBER_CHARACTERS or _HUGE_EXPONENT.search(number)):
        raise BudgetError(f"{number[:20]!r} … is not a usable number; write it like 0.5, 1e-9 or 1/3")
    try:
        return Fraction(number)
    except (ValueError, ZeroDivisionError):
        raise BudgetError(f"{quote_argument(number)} is not a number; write it like 0.5, 1e-9 or 1/3") from None


def round_up(value: Fraction) -> Fraction:
    """The smallest whole number of grains that is at least the value: for costs."""
    return Fraction(-(-value.numerator * GRAINS // value.denominator), GRAINS)


def round_down(value: Fraction) -> Fraction:
    """The largest whole number of grains that is at most the value: for budgets."""
    return Fraction(value.numerator * GRAINS // value.denominator, GRAINS)


def round_down_to_digits(value: float) -> Fraction:
    """A budget from a formula, rounded down to twelve significant digits and to whole grains."""
    if value <= 0:
        return Fraction(0)
    unit = Fraction(10) ** (math.floor(math.log10(value)) - SIGNIFICANT_DIGITS + 1)
    return round_down(Fraction(value) // unit * unit)


def split_exactly(total: Fraction, weights: Sequence[Number]) -> tuple[Fraction, ...]:
    """Split a total in proportion to the weights; the sum of the shares is exactly the total.

    Every share is rounded down to whole grains, and the remaining grains go to the first shares with a positive
    weight, one each.
    """
    parts = [exact_fraction(weight) for weight in weights]
    if not parts or min(parts) < 0 or sum(parts) == 0:
        raise BudgetError(f"a budget is split by weights of at least 0, not all 0; these were given: {list(weights)}")
    if round_down(total) != total or total < 0:
        raise BudgetError(f"{total} is not a whole number of grains of 10⁻³⁶, so it cannot be split exactly")
    whole = sum(parts)
    shares = [round_down(total * part / whole) for part in parts]
    left = int((total - sum(shares)) * GRAINS)
    for i in [i for i, part in enumerate(parts) if part > 0][:left]:
        shares[i] += Fraction(1, GRAINS)
    return tuple(shares)


def format_short(number: Fraction | float, digits: int = 6) -> str:
    """A number with some significant digits, and an exponent without zeros in front, as people write it: 1e-9."""
    return re.sub("e([+-])0+", r"e\1", f"{float(number):.{digits}g}")


def format_exact(value: Fraction) -> str:
    """An exact number as text that ``Fraction`` can read: a decimal, or p/q if there is no short decimal."""
    if (value * GRAINS).denominator != 1:
        return str(value)
    units, rest = divmod(abs(value.numerator) * GRAINS // value.denominator, GRAINS)
    digits = f"{rest:036d}".rstrip("0")
    return f"{'-' if value < 0 else ''}{units}{'.' if digits else ''}{digits}"
