"""Cuts of dates at calendar boundaries: days, parts of months, months, quarters, years."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpsyn.schema.grid import cut_at_round_steps

Instants = NDArray[np.datetime64]

DAYS_OF_MONTH = (2, 5, 10)
"""Parts of a month: every so many days from its first; the rest at its end belongs to the last part."""

MONTHS = (1, 3, 6, 12, 24, 60)
"""Numbers of months that begin with a month, a quarter, a half-year, or a year of a round number."""

EXCESS = 1.2
"""So many times the pieces that were asked for are accepted: 36 thirds of a month are about 32 pieces of a year."""


def cut_at_calendar(start: int, stop: int, pieces: int, *, origin: int, unit: str, ladder: Sequence[int]) -> list[int]:
    """Cut the steps ``start … stop−1`` into about ``pieces`` pieces; the first step of each.

    Args:
        start: the first step.
        stop: the step after the last.
        pieces: about how many pieces.
        origin: the coordinate of step 0: units since 1970.
        unit: the unit of steps, as a letter of numpy.
        ladder: round widths up to a day, in steps, for units that are shorter than a day.
    """
    limit = max(pieces, int(EXCESS * pieces))
    if ladder and (stop - start - 1) // ladder[-1] < limit:
        return cut_at_round_steps(start, stop, limit, origin=origin, ladder=ladder)
    if stop - start <= limit:
        return list(range(start, stop))
    first, last = (np.datetime64(origin + step, unit) for step in (start, stop - 1))  # type: ignore[call-overload]
    coarsest = [partial(_month_starts, months=120 * 10**power) for power in range(4)]
    boundaries: list[Callable[[np.datetime64, np.datetime64], Instants]] = [
        *(partial(_day_starts, days=days) for days in DAYS_OF_MONTH if unit not in ("Y", "M")),
        *(partial(_month_starts, months=months) for months in MONTHS),
        *coarsest,
    ]
    starts = [start]
    for find in boundaries:
        steps = find(first, last).astype(f"datetime64[{unit}]").astype(np.int64) - origin
        starts = sorted({start, *(int(step) for step in steps if start < step < stop)})
        if len(starts) <= limit + 1:
            break
    return starts


def _month_starts(first: np.datetime64, last: np.datetime64, months: int) -> Instants:
    """The beginnings of periods of some months."""
    begin, end = (int(instant.astype("datetime64[M]").astype(np.int64)) + 1970 * 12 for instant in (first, last))
    starts = np.arange(begin // months * months, end + 1, months) - 1970 * 12
    return starts.astype("datetime64[M]")


def _day_starts(first: np.datetime64, last: np.datetime64, days: int) -> Instants:
    """Every so many days from the first of each month, without a rest of less than half of them at its end."""
    month_starts = _month_starts(first, last, 1)
    lengths = ((month_starts + 1).astype("datetime64[D]") - month_starts.astype("datetime64[D]")).astype(np.int64)
    offsets = np.arange(0, 31, days)
    kept = lengths[:, None] - offsets[None, :] > days // 2
    starts: Instants = (month_starts.astype("datetime64[D]")[:, None] + offsets[None, :])[kept]
    return starts
