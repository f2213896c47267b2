"""The kind ``time``: times of day."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import SchemaError, quote_argument
from dpsyn.schema.attributes import Value
from dpsyn.schema.date_formats import as_formats, clock_format_problem
from dpsyn.schema.ranges import Ranged, round_durations

ClockResolution = Literal["hour", "minute", "second", "millisecond", "microsecond"]

MICROSECONDS: dict[ClockResolution, int] = {
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
"""The lengths of the units of a clock."""

DAY_MICROSECONDS = 24 * MICROSECONDS["hour"]

_CLOCK = re.compile(
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,9}))?)?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?",
    re.ASCII,
)


class Time(Ranged, frozen=True, kw_only=True, tag="time"):
    """Times of day, such as 08:30.

    Attributes:
        start: the earliest possible time, such as 08:00; earlier times are replaced by it.
        end: the latest possible time; later times are replaced by it. A time without seconds includes all of its
            minute.
        resolution: hour, minute, second, millisecond or microsecond.
        format: how a text file writes times if not as 08:30, in the letters of strptime, such as %H.%M; or several.
    """

    start: str = "00:00"
    end: str = "23:59"
    resolution: ClockResolution = "minute"
    format: str | tuple[str, ...] | None = None

    def _check(self) -> None:
        for field in ("start", "end"):
            given = getattr(self, field)
            micros = parse_clock(given) if isinstance(given, str) else None
            if micros is None or micros >= DAY_MICROSECONDS:
                raise SchemaError(f"{field} is {quote_argument(given)}; write it as 08:30 or 08:30:15", (field,))
        for form in self.formats:
            problem = clock_format_problem(form)
            if problem:
                raise SchemaError(f"format {quote_argument(form)}: {problem}", ("format",))
        self._check_order("start", "end")
        self._check_cuts()

    @property
    def formats(self) -> tuple[str, ...]:
        """The declared formats; none for the usual one."""
        return as_formats(self.format)

    @property
    def unit_micros(self) -> int:
        """The resolution in microseconds."""
        return MICROSECONDS[self.resolution]

    @property
    def origin(self) -> int:
        """``start`` in units since midnight."""
        return self.coordinate_of(self.start)

    @property
    def steps(self) -> int:
        """The number of units from start to end, both included."""
        return self._last_coordinate_of(self.end) - self.origin + 1

    def coordinate_of(self, value: Value) -> int:
        """Units since midnight."""
        micros = parse_clock(str(value))
        if micros is None:
            raise SchemaError(f"{quote_argument(value)} is not a time of day; write it as 08:30 or 08:30:15")
        return micros // self.unit_micros

    def _last_coordinate_of(self, value: Value) -> int:
        """The last unit of a time; a time without seconds includes all of its minute."""
        first, length = self.coordinate_of(value), MICROSECONDS[_written_unit(str(value))]
        following = (parse_clock(str(value)) or 0) + length
        return max(first, following // self.unit_micros - 1)

    def _last_step_of(self, value: Value) -> int:
        return max(self.step_of(value), min(self._last_coordinate_of(value) - self.origin, self.steps - 1))

    def text_at(self, step: int) -> str:
        """The time at the resolution; hours are written with their minutes."""
        micros = (self.origin + step) * self.unit_micros
        unit = {"hour": "m", "minute": "m", "second": "s", "millisecond": "ms", "microsecond": "us"}[self.resolution]
        return str(np.datetime64(micros, "us").astype(f"datetime64[{unit}]")).partition("T")[2]

    def micros_at(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """The microseconds since midnight at the given steps."""
        return (steps + self.origin) * self.unit_micros

    def _round_widths(self) -> Sequence[int]:
        return round_durations(self.resolution)

    @property
    def _max_cells(self) -> int:
        return 24 * 60


def parse_clock(text: str) -> int | None:
    """The microseconds since midnight of a time such as 8:30, 08:30:15.5 or 8:30 pm; None if the text is none.

    24:00, the end of a day, is one; digits beyond microseconds are dropped.
    """
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        return None
    hour, minute, second = int(found["hour"]), int(found["minute"]), int(found["second"] or 0)
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (found["half"] in "Pp")
    micros = int((found["fraction"] or "0")[:6].ljust(6, "0"))
    total = ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros
    return total if minute < 60 and second < 60 and total <= DAY_MICROSECONDS else None


def _written_unit(text: str) -> ClockResolution:
    """The unit to which a time is written."""
    found = _CLOCK.fullmatch(text.strip())
    if found and found["fraction"]:
        return "microsecond"
    return "second" if found and found["second"] else "minute"
