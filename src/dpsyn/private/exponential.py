"""The exponential mechanism, sampled exactly.

Candidates that are drawn one after another without replacement, each with probability ∝ e^(score/t) among those that
are left, come in the order of score/t + G, largest first, where every candidate has a Gumbel variable G = −ln(−ln u)
of its own, u uniform between 0 and 1 (Yellott 1977). That order is found without rounding: u is a number of infinitely
many random bits, of which as many are drawn as are needed to be certain. The first 52 are compared in floating point
with bounds that are wider than its errors; candidates whose bounds overlap get 64 more at a time, in decimal arithmetic
of as many digits as it takes. No exponential of a score is ever computed.
"""

from __future__ import annotations

import decimal
import secrets
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

RandomWords = Callable[[int], NDArray[np.uint64]]
"""Gives so many random numbers of 64 bits."""

_FIRST_BITS, _MORE_BITS = 52, 64
_FLOAT_SLACK = 2.0**-45
"""What floating point may be off, relative: 256 times what logarithms, a quotient and a sum lose together."""


def system_random_words(number: int) -> NDArray[np.uint64]:
    """Random numbers from the operating system."""
    return np.frombuffer(secrets.token_bytes(8 * number), np.uint64)


def sample_exponential_mechanism(
    scores: NDArray[np.int64], scale: float, selections: int, words: RandomWords = system_random_words
) -> NDArray[np.int64]:
    """Positions of so many candidates, in the order of drawing, P ∝ e^(score/scale).

    There are at least as many candidates as draws, and at least one.
    """
    gaps = scores.max() - scores
    left = np.arange(len(scores))
    uniform = words(len(scores)) >> np.uint64(64 - _FIRST_BITS)
    low, high = _quick_bounds(gaps, scale, uniform)
    begun, bits = uniform.tolist(), _FIRST_BITS
    while (order := _certain_order(low, high, selections)) is None:
        maybe = high >= np.sort(low)[-selections]  # all others are surely not drawn
        left, low, high = left[maybe], low[maybe], high[maybe]
        more = words(len(left)).tolist()
        begun = [
            (number << _MORE_BITS) | word for number, word in zip(_select_numbers(begun, maybe), more, strict=True)
        ]
        bits += _MORE_BITS
        low, high = _exact_bounds(gaps[left].tolist(), scale, begun, bits)
    return left[order]


def _select_numbers(numbers: Sequence[int], maybe: NDArray[np.bool_]) -> list[int]:
    return [numbers[place] for place in np.flatnonzero(maybe).tolist()]


def _certain_order(low: NDArray[Any], high: NDArray[Any], selections: int) -> NDArray[np.int64] | None:
    """The first candidates by size, if no bound leaves a doubt: each lies above all that follow it."""
    order: NDArray[np.int64] = np.argsort(low, kind="stable")[::-1]
    above_all_after = np.maximum.accumulate(high[order][::-1])[::-1][1 : selections + 1]
    certain = bool((low[order][: len(above_all_after)] > above_all_after).all())
    return order[:selections] if certain else None


def _quick_bounds(
    gaps: NDArray[np.int64], scale: float, uniform: NDArray[np.uint64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bounds of G − gap/scale from the first bits; both ends of u are exact in floating point."""
    behind = gaps / scale
    with np.errstate(divide="ignore"):  # the ends 0 and 1 lie infinitely far
        low, high = (-np.log(-np.log((uniform + np.uint64(end)) / 2.0**_FIRST_BITS)) for end in (0, 1))
    return (
        low - behind - _FLOAT_SLACK * (1 + behind + np.abs(low)),
        high - behind + _FLOAT_SLACK * (1 + behind + np.abs(high)),
    )


def _exact_bounds(
    gaps: Sequence[int], scale: float, begun: Sequence[int], bits: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The same from so many bits, as decimals.

    With p = bits + 30 digits u is off by 10^(1−p), relative. As −ln u is at least 2^−bits where it is not 0, its
    logarithm is off by less than 10^(−29 − bits/2); the slack is larger than that and all later errors.
    """
    slack, whole = Decimal(10) ** -(20 + bits // 2), 1 << bits
    with decimal.localcontext(decimal.Context(prec=bits + 30)):
        ends = []
        for end, sign in ((0, -1), (1, 1)):
            bounds = np.empty(len(gaps), object)
            for place, (gap, number) in enumerate(zip(gaps, begun, strict=True)):
                behind = Decimal(gap) / Decimal(scale)
                gumbel = -(-(Decimal(number + end) / whole).ln()).ln()
                bounds[place] = gumbel - behind + sign * slack * (1 + behind + abs(gumbel))
            ends.append(bounds)
    return ends[0], ends[1]
