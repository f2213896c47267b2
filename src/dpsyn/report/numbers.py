"""Numbers as text for people: few digits, rounded so that the printed statement stays true."""

from __future__ import annotations

import math
from collections.abc import Callable

_ROUNDING_SLACK = 1e-9
"""A number that differs from a short one by less than this, relative, is printed as the short one.

Budgets are rounded by 10⁻¹⁰.
"""


def format_number(number: float, digits: int = 6) -> str:
    """The nearest short number: ``4``, ``0.25``, ``12,300``, ``1e-9``."""
    short = float(f"{float(number):.{digits}g}")
    if short == 0 or 1e-4 <= abs(short) < 1e9:
        return f"{short:,.12g}"
    mantissa, _, exponent = f"{short:.{digits}g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def format_rounded_down(number: float, digits: int = 3) -> str:
    """A short number that is at most this one: for the remaining budget."""
    return _format_rounded(number, digits, math.floor, 1 + _ROUNDING_SLACK)


def format_rounded_up(number: float, digits: int = 3) -> str:
    """A short number that is at least this one: for the spent budget."""
    return _format_rounded(number, digits, math.ceil, 1 - _ROUNDING_SLACK)


def format_percent(share: float) -> str:
    """A share in whole percent, rounded up: ``0 %`` means exactly nothing, ``100 %`` can be a little less than all."""
    return f"{math.ceil(share * 100 * (1 - _ROUNDING_SLACK))} %"


def format_count(count: int, noun: str) -> str:
    """A count with its noun: ``1 run``, ``2 runs``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _format_rounded(number: float, digits: int, round_to_integer: Callable[[float], int], slack: float) -> str:
    if number <= 0 or math.isinf(number):
        return format_number(number)
    unit = 10.0 ** (math.floor(math.log10(number)) - digits + 1)
    return format_number(round_to_integer(number * slack / unit) * unit)
