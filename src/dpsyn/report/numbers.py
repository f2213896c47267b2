"""Numbers as people read them: few digits, and rounded so that what is printed is still true."""

from __future__ import annotations

import math
from collections.abc import Callable

_ROUNDING_SLACK = 1e-9
"""What is closer to a short number than this, relative, is that number: budgets are rounded by 10⁻¹⁰."""


def format_number(number: float, digits: int = 6) -> str:
    """The nearest short number: ``4``, ``0.25``, ``12,300``, ``1e-9``."""
    short = float(f"{float(number):.{digits}g}")
    if short == 0 or 1e-4 <= abs(short) < 1e9:
        return f"{short:,.12g}"
    mantissa, _, exponent = f"{short:.{digits}g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def format_rounded_down(number: float, digits: int = 3) -> str:
    """A short number that is not more than this one: for what is left."""
    return _format_rounded(number, digits, math.floor, 1 + _ROUNDING_SLACK)


def format_rounded_up(number: float, digits: int = 3) -> str:
    """A short number that is not less than this one: for what was spent."""
    return _format_rounded(number, digits, math.ceil, 1 - _ROUNDING_SLACK)


def format_percent(share: float) -> str:
    """A share in whole percent, rounded up, so that ``0 %`` is nothing and ``100 %`` may be all."""
    return f"{math.ceil(share * 100 * (1 - _ROUNDING_SLACK))} %"


def format_count(number: int, noun: str) -> str:
    """A number with its noun: ``1 run``, ``2 runs``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _format_rounded(number: float, digits: int, whole: Callable[[float], int], slack: float) -> str:
    if number <= 0 or math.isinf(number):
        return format_number(number)
    unit = 10.0 ** (math.floor(math.log10(number)) - digits + 1)
    return format_number(whole(number * slack / unit) * unit)
