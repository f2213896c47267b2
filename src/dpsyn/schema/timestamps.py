"""Timestamps in parts: the date, the weekday and the time of day.

On one line of minutes, the hour of the day and the weekday would be lost: no release can measure every minute of some
years. So a timestamp that is finer than a day is modeled as three attributes, which are measured like any others. Files
have the timestamp itself. The date says whether it is missing; all parts are missing together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import SchemaError, quote_argument
from dpsyn.schema.attributes import MISSING, Ordinal, Value
from dpsyn.schema.clock import MICROSECONDS, Time
from dpsyn.schema.ranges import Datetime

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

Steps = NDArray[np.int64]


class TimestampParts(NamedTuple):
    """The attributes that a timestamp is modeled as; they are named ``admitted.date`` and so on."""

    date: Datetime
    weekday: Ordinal
    time: Time

    def split(self, timestamp: Datetime, steps: Steps) -> tuple[Steps, Steps, Steps]:
        """The day of the date, the number of the weekday and the step of the time, at steps of the timestamp."""
        days, times = np.divmod(np.asarray(steps, np.int64) + timestamp.origin, _units_per_day(timestamp))
        return days - self.date.origin, weekday_of(days), times - self.time.origin

    def join(self, timestamp: Datetime, days: Steps, times: Steps) -> Steps:
        """The steps of the timestamp at steps of the date and of the time, moved to a bound if they are beyond it."""
        coordinates = (days + self.date.origin) * _units_per_day(timestamp) + times + self.time.origin
        steps: Steps = np.clip(coordinates - timestamp.origin, 0, timestamp.steps - 1)
        return steps

    def days_by_weekday(self) -> Steps:
        """For each cell of the date, how many of its days are each weekday; missing has none."""
        edges = np.asarray(self.date.grid().edges) + self.date.origin
        first = np.array([_first_on_or_after(edges, weekday) for weekday in range(7)])
        counts = (first[:, 1:] - first[:, :-1]).T // 7
        return np.vstack([counts, np.zeros((1, 7), np.int64)]) if self.date.has_missing else counts

    def sample_days(self, cells: Steps, weekdays: Steps, rng: np.random.Generator) -> Steps:
        """A step of the date in each of the given cells, on the given weekday if the cell has one."""
        edges = np.asarray(self.date.grid().edges)
        choices = self.days_by_weekday()[cells, weekdays]
        matching = _first_on_or_after(edges[cells] + self.date.origin, weekdays) - self.date.origin
        matching = matching + 7 * rng.integers(0, np.maximum(choices, 1))
        anywhere = edges[cells] + rng.integers(0, np.diff(edges)[cells])
        return np.where(choices > 0, matching, anywhere)

    def with_cuts_of(self, timestamp: Datetime, part: Datetime | Time) -> Datetime:
        """The timestamp with the cells of a part that was divided."""
        field = "time_cuts" if isinstance(part, Time) else "cuts"
        return msgspec.structs.replace(timestamp, **{field: part.cuts})


def weekday_of(days: Steps) -> Steps:
    """The number of the weekday, 0 for Monday, of days since 1970."""
    return (np.asarray(days, np.int64) + 3) % 7


def _first_on_or_after(days: Steps, weekday: int | Steps) -> Steps:
    """The first day with a weekday that is not before the given one."""
    return days + (weekday - weekday_of(days)) % 7


def _units_per_day(timestamp: Datetime) -> int:
    return 24 * MICROSECONDS["hour"] // MICROSECONDS[timestamp.resolution]  # type: ignore[index]


def has_parts(timestamp: Datetime) -> bool:
    """Whether an attribute is finer than a day; bins that begin during a day need a single line of steps."""
    if timestamp.is_date:
        return False
    declared = timestamp.bins if isinstance(timestamp.bins, tuple) else ()
    return all(timestamp.coordinate_of(start) % _units_per_day(timestamp) == 0 for start in declared)


def split_timestamp(timestamp: Datetime) -> TimestampParts:
    """The parts of a timestamp, with its bounds, bins, spikes and cuts."""
    name, per_day = timestamp.name, _units_per_day(timestamp)
    ends = timestamp.origin, timestamp.origin + timestamp.steps - 1
    first, last = (str(np.datetime64(end // per_day, "D")) for end in ends)
    common: dict[str, Any] = {
        "missing": timestamp.has_missing,  # its spellings are those of the timestamp
        "provenance": timestamp.provenance,
        "because": timestamp.because,
    }
    spikes = [_written(timestamp, spike) for spike in timestamp.spikes]
    bins = timestamp.bins
    date = Datetime(
        name=f"{name}.date",
        start=first,
        end=last,
        bins=tuple(_written(timestamp, start)[:10] for start in bins) if isinstance(bins, tuple) else bins,
        spikes=tuple(dict.fromkeys(spike[:10] for spike in spikes)),
        cuts=timestamp.cuts,
        **common,
    )
    clock = Time(name=f"{name}.time", resolution=timestamp.resolution)  # type: ignore[arg-type]
    within: dict[str, Any] = {}
    if first == last:
        within = {"start": clock.text_at(ends[0] % per_day), "end": clock.text_at(ends[1] % per_day)}
    time = Time(
        name=f"{name}.time",
        resolution=timestamp.resolution,  # type: ignore[arg-type]
        spikes=tuple(dict.fromkeys(_clock_text(spike) for spike in spikes)),
        cuts=timestamp.time_cuts,
        **within,
        **common,
    )
    weekday = Ordinal(name=f"{name}.weekday", values=WEEKDAYS, **common)
    return TimestampParts(date, weekday, time)


def _written(timestamp: Datetime, value: Value) -> str:
    """A value of the timestamp in ISO form."""
    return timestamp.text_at(timestamp.step_of(value))


def _clock_text(instant: str) -> str:
    clock = instant.partition("T")[2]
    return clock if ":" in clock else f"{clock}:00"


# ── conditions ───────────────────────────────────────────────────────────────────────────────────────────────


def split_condition(
    timestamp: Datetime, parts: TimestampParts, condition: Value | Sequence[Value]
) -> dict[str, tuple[Value, ...]]:
    """A condition on a timestamp as conditions on its parts, all of which must hold.

    Whole days are a condition on the date. A range within one day is one on the date and the time. Anything else is not
    a combination of both, and refused.
    """
    given = tuple(condition) if isinstance(condition, tuple | list) else (condition,)
    dates: list[Value] = []
    times: set[str] = set()
    for part in given:
        if part == MISSING and timestamp.has_missing:
            dates.append(MISSING)
            times.add("")
            continue
        ends = np.array(timestamp.span_of(part))
        days, _, clock = parts.split(timestamp, ends)
        low, high = parts.date.text_at(int(days[0])), parts.date.text_at(int(days[1]))
        dates.append(low if low == high else f"{low}..{high}")
        whole = _is_whole_days(timestamp, ends)
        if not whole and low != high:
            raise SchemaError(
                f"the condition {quote_argument(part)} on {timestamp.name!r} begins or ends during a day, but not "
                f"within one day; use whole days, such as {low}..{high}, and a condition on {parts.time.name!r}"
            )
        texts = [parts.time.text_at(int(step)) for step in clock]
        times.add("" if whole else "..".join(texts if texts[0] != texts[1] else texts[:1]))
    if len(times) > 1:
        raise SchemaError(
            f"the condition {quote_argument(condition)} on {timestamp.name!r} combines different times of day; use "
            f"separate conditions on {parts.date.name!r} and {parts.time.name!r}"
        )
    (only,) = times
    return {parts.date.name: tuple(dates)} | ({parts.time.name: (only,)} if only else {})


def _is_whole_days(timestamp: Datetime, ends: Steps) -> bool:
    """Whether a range of steps begins and ends with a day, or with a bound of the timestamp."""
    per_day = _units_per_day(timestamp)
    begins = ends[0] == 0 or (ends[0] + timestamp.origin) % per_day == 0
    return bool(begins and (ends[1] == timestamp.steps - 1 or (ends[1] + timestamp.origin + 1) % per_day == 0))
