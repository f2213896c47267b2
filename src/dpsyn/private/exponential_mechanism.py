"""The exponential mechanism, sampled exactly.

If candidates are selected one after another without replacement, each with probability ∝ e^(score/t) among the
remaining ones, their order is that of score/t + G, largest first, where every candidate has an independent Gumbel
variable G = −ln(−ln u), u uniform between 0 and 1 (Yellott 1977). That order is determined without rounding errors: u
is a number with infinitely many random bits, and as many bits are generated as are needed for certainty. The first 52
bits are compared in floating point, with bounds that are wider than its errors; candidates whose bounds overlap get 64
more bits at a time, in decimal arithmetic with enough digits. No exponential of a score is ever computed.
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
"""Returns the given number of random 64-bit words."""

_FIRST_BITS, _MORE_BITS = 52, 64
_FLOAT_SLACK = 2.0**-45
"""A bound of the relative floating-point error: 256 times that of the logarithms, a quotient and a sum together."""


def system_random_words(count: int) -> NDArray[np.uint64]:
    """Random words from the operating system."""
    return np.frombuffer(secrets.token_bytes(8 * count), np.uint64)


def sample_exponential_mechanism(
    scores: NDArray[np.int64], scale: float, selections: int, words: RandomWords = system_random_words
) -> NDArray[np.int64]:
    """Positions of the selected candidates, in the order of their selection, P ∝ e^(score/scale).

    There must be at least as many candidates as selections, and at least one.
    """
    gaps = scores.max() - scores
    left = np.arange(len(scores))
    uniform = words(len(scores)) >> np.uint64(64 - _FIRST_BITS)
    low, high = _quick_bounds(gaps, scale, uniform)
    prefixes, bits = uniform.tolist(), _FIRST_BITS
    while (order := _certain_order(low, high, selections)) is None:
        possible = np.flatnonzero(high >= np.sort(low)[-selections])  # all others are certainly not selected
        left, more = left[possible], words(len(possible)).tolist()
        prefixes = [(prefixes[i] << _MORE_BITS) | word for i, word in zip(possible.tolist(), more, strict=True)]
        bits += _MORE_BITS
        low, high = _exact_bounds(gaps[left].tolist(), scale, prefixes, bits)
    return left[order]


def _certain_order(low: NDArray[Any], high: NDArray[Any], selections: int) -> NDArray[np.int64] | None:
    """The largest candidates in order, if the bounds make it certain: each lies above all that follow it."""
    order: NDArray[np.int64] = np.argsort(low, kind="stable")[::-1]
    largest_after = np.maximum.accumulate(high[order][::-1])[::-1][1 : selections + 1]
    certain = bool((low[order][: len(largest_after)] > largest_after).all())
    return order[:selections] if certain else None


def _quick_bounds(
    gaps: NDArray[np.int64], scale: float, uniform: NDArray[np.uint64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bounds of G − gap/scale from the first bits; both ends of the interval of u are exact in floating point."""
    behind = gaps / scale
    with np.errstate(divide="ignore"):  # the ends 0 and 1 give infinite bounds
        low, high = (-np.log(-np.log((uniform + np.uint64(end)) / 2.0**_FIRST_BITS)) for end in (0, 1))
    return (
        low - behind - _FLOAT_SLACK * (1 + behind + np.abs(low)),
        high - behind + _FLOAT_SLACK * (1 + behind + np.abs(high)),
    )


def _exact_bounds(
    gaps: Sequence[int], scale: float, prefixes: Sequence[int], bits: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The same bounds from the given number of bits, as decimals.

    With p = bits + 30 digits the relative error of u is 10^(1−p). Because −ln u is at least 2^−bits if it is not 0, the
    error of its logarithm is less than 10^(−29 − bits/2); the slack is larger than that and all later errors.
    """
    slack, whole = Decimal(10) ** -(20 + bits // 2), 1 << bits
    with decimal.localcontext(decimal.Context(prec=bits + 30)):
        ends = []
        for end, sign in ((0, -1), (1, 1)):
            bounds = np.empty(len(gaps), object)
            for i, (gap, prefix) in enumerate(zip(gaps, prefixes, strict=True)):
                behind = Decimal(gap) / Decimal(scale)
                gumbel = -(-(Decimal(prefix + end) / whole).ln()).ln()
                bounds[i] = gumbel - behind + sign * slack * (1 + behind + abs(gumbel))
            ends.append(bounds)
    return ends[0], ends[1]
