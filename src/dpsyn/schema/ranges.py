"""Attribute kinds whose values form a range: integers, reals, dates and times."""

from __future__ import annotations

import datetime as dt
import functools
import math
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Literal, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import SchemaError, quote_argument
from dpsyn.schema.attributes import MAX_LISTED_VALUES, Attribute, NotCodedError, Value, split_range
from dpsyn.schema.calendar import cut_at_calendar
from dpsyn.schema.date_formats import as_formats, format_problem
from dpsyn.schema.file_syntax import FileSyntax, NumberSigns, require_text
from dpsyn.schema.grid import MAX_GRID_CELLS, Grid, cut_at_round_steps, make_grid

MAX_LATTICE_STEPS = 2**53
"""Lattice points of one attribute: each of them is exact as a 64-bit float."""

MAX_REAL_COORDINATE = 2**51
"""Bound on the lattice coordinates of a real, below which they survive a conversion to 64-bit floats and back: dividing
by a power of ten and multiplying again errs by less than a quarter, and floats of this size are at most a quarter
apart."""

MAX_ROUND_DIGITS = 6
"""How many zeros at the end make a number rounder than others."""

Resolution = Literal["year", "month", "day", "hour", "minute", "second", "millisecond", "microsecond"]

NUMPY_UNITS: dict[Resolution, str] = {
    "year": "Y",
    "month": "M",
    "day": "D",
    "hour": "h",
    "minute": "m",
    "second": "s",
    "millisecond": "ms",
    "microsecond": "us",
}
"""The resolutions as units of numpy."""

_MAX_EXPONENT = 400
"""Larger than the exponent of any float. Writing out a text such as 1e999999999 would fill the memory."""

_ROUND_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
_PER_SECOND = {
    "hour": Fraction(1, 3600),
    "minute": Fraction(1, 60),
    "second": Fraction(1),
    "millisecond": Fraction(1_000),
    "microsecond": Fraction(1_000_000),
}


class Ranged(Attribute, frozen=True, kw_only=True):
    """The base class of numbers and dates: a lattice of steps, cut into cells and bins.

    Attributes:
        bins: the first values of the bins that marginals use, or their number; if left out, a recipe chooses them.
        spikes: frequent values that get a cell of their own even if the range is wide, such as a code 999998 or a
            placeholder date. Zero always gets one.
        other: the value that replaces cells that cannot be read.
        cuts: the first values of further cells. A release adds them to its schema where it finds many rows under its
            budget; there is no need to declare any.
    """

    bins: int | tuple[Value, ...] | None = None
    spikes: tuple[Value, ...] = ()
    other: Value | None = None
    cuts: tuple[Value, ...] = ()

    @property
    def origin(self) -> int:
        """The lattice coordinate of the lowest value. Cells begin at round coordinates."""
        raise NotCodedError(self)

    @property
    def steps(self) -> int:
        """The number of lattice points from the lowest to the highest value."""
        raise NotCodedError(self)

    def coordinate_of(self, value: Value) -> int:
        """The lattice coordinate of a value as people write it; a SchemaError if it cannot be read."""
        raise NotCodedError(self)

    def text_at(self, step: int) -> str:
        """The value at a step, as a person would write it."""
        raise NotCodedError(self)

    def value_at(self, step: int) -> Value:
        """The value at a step, as a schema file writes it."""
        return self.text_at(step)

    def with_cuts(self, steps: Iterable[int]) -> Self:
        """The same attribute with further cells that begin at these steps."""
        known = set(self.grid().edges.tolist())
        found = sorted({*(self.step_of(cut) for cut in self.cuts), *(step for step in steps if step not in known)})
        return msgspec.structs.replace(self, cuts=tuple(self.value_at(step) for step in found))

    def cut(self, start: int, stop: int, pieces: int) -> list[int]:
        """Cut the steps ``start … stop−1`` at round values into about ``pieces`` pieces; the first step of each."""
        return cut_at_round_steps(start, stop, pieces, origin=self.origin, ladder=self._round_widths())

    def roundness(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """How round the values at these steps are: 1 and more, the larger the rounder."""
        coordinates = steps + self.origin
        result = np.ones(len(steps), np.int64)
        for width in self._rounder_widths():
            result += coordinates % width == 0
        return result

    def cut_round_values(self, start: int, stop: int, pieces: int) -> list[int]:
        """Cut round values out of the steps ``start … stop−1``; the first step of each of at most ``pieces`` pieces.

        All values become pieces of their own if they are so few.
        """
        if stop - start <= pieces:
            return list(range(start, stop))
        for width in self._rounder_widths():
            values = range(start + (-(start + self.origin)) % width, stop, width)
            if len(values) == 0:
                break
            if 2 * len(values) + 1 <= pieces:
                return sorted({start, *(step for value in values for step in (value, value + 1))} - {stop})
        return [start]

    def usual_codes(self) -> list[int]:
        """The steps of values that often stand for something else: both bounds, and numbers such as 99 999."""
        nines = [10**digits - 1 - self.origin for digits in range(1, 16)]
        return sorted({0, self.steps - 1, *(step for step in nines if 0 <= step < self.steps)})

    def _rounder_widths(self) -> Sequence[int]:
        """Widths above one step whose multiples are round values: halves and wholes of every power of ten."""
        return [half * 10**power for power in range(MAX_ROUND_DIGITS) for half in (5, 10)]

    def step_of(self, value: Value) -> int:
        """The number of steps from the lowest value to this one; a SchemaError if it is out of range."""
        step = self.coordinate_of(value) - self.origin
        if not 0 <= step < self.steps:
            raise SchemaError(f"{value} is outside {self.text_at(0)} … {self.text_at(self.steps - 1)}")
        return step

    def _first_step_of(self, value: Value) -> int:
        """The first step of a range that begins with this value."""
        return self.step_of(value)

    def _last_step_of(self, value: Value) -> int:
        """The last step of a range that ends with this value."""
        return self.step_of(value)

    def grid(self) -> Grid:
        """The cells and bins: they begin at round coordinates, at declared bins, and around spikes."""
        return _build_grid(self)

    def spike_steps(self) -> list[int]:
        """The steps of zero and of the declared spikes; each has a cell of its own."""
        return [*(self.step_of(spike) for spike in self.spikes), *self._zero_steps()]

    def _zero_steps(self) -> list[int]:
        return [-self.origin] if 0 <= -self.origin < self.steps else []

    def _round_widths(self) -> Sequence[int]:
        return ()

    @property
    def _max_cells(self) -> int:
        return MAX_GRID_CELLS

    def bin_of_cell(self) -> NDArray[np.int64]:
        """The bin of every cell; ``missing`` has its own bin."""
        grid = self.grid()
        return np.append(grid.bin_of_cell, grid.bins) if self.has_missing else grid.bin_of_cell

    @property
    def proper_cells(self) -> int:
        """The number of grid cells."""
        return self.grid().cells

    def _declared_other(self) -> int | None:
        return None if self.other is None else int(self.grid().cell_of(np.array([self.step_of(self.other)]))[0])

    def _proper_labels(self) -> Sequence[str]:
        edges = self.grid().bin_edges()
        return [
            self.text_at(first) if last == first else f"{self.text_at(first)}..{self.text_at(last)}"
            for first, last in zip(edges[:-1].tolist(), (edges[1:] - 1).tolist(), strict=True)
        ]

    def span_of(self, part: Value) -> tuple[int, int]:
        """The first and the last step of a value or a range ``30..39``."""
        begin, end = split_range(part) or (part, part)
        first, last = self._first_step_of(begin), self._last_step_of(end)
        if first > last:
            raise SchemaError(
                f"the condition {quote_argument(part)} on {self.name!r} ends before it begins; swap its ends"
            )
        return first, last

    def widen_to_whole_cells(self, part: Value) -> str | None:
        """None if a value or range consists of whole cells; otherwise the range of all cells that it overlaps."""
        (first, last), edges = self.span_of(part), self.grid().edges
        overlapping = np.flatnonzero((edges[1:] > first) & (edges[:-1] <= last))
        low, high = int(edges[overlapping[0]]), int(edges[overlapping[-1] + 1]) - 1
        return None if (low, high) == (first, last) else f"{self.text_at(low)}..{self.text_at(high)}"

    def _select_one(self, part: Value) -> NDArray[np.int64]:
        (first, last), edges = self.span_of(part), self.grid().edges
        return np.flatnonzero((edges[1:] > first) & (edges[:-1] <= last))

    def _check_order(self, low_field: str, high_field: str) -> None:
        low, high = getattr(self, low_field), getattr(self, high_field)
        if self.steps < 1:
            raise SchemaError(f"{low_field} ({low}) is above {high_field} ({high})", (low_field,))
        if self.steps > MAX_LATTICE_STEPS:
            raise SchemaError(
                f"{low_field} … {high_field} has more than 2^53 values; give nearer bounds", (high_field,)
            )

    def _check_cuts(self) -> None:
        """Refuse bins, spikes and an ``other`` that are outside the range."""
        for field in ("bins", "spikes", "cuts"):
            given = getattr(self, field)
            if not isinstance(given, tuple | int | None):
                raise SchemaError(f"{field} is {quote_argument(given)}; give a list of values", (field,))
        bin_count = self.bins if isinstance(self.bins, int) else 1 if self.bins is None else len(self.bins)
        if not 1 <= bin_count <= MAX_LISTED_VALUES:
            message = f"bins must be a number from 1 to {MAX_LISTED_VALUES:,}, or a list of the first value of each bin"
            raise SchemaError(message, ("bins",))
        starts = self._steps_of_all("bins", self.bins if isinstance(self.bins, tuple) else ())
        if sorted(set(starts)) != starts:
            raise SchemaError("the first values of bins must be in ascending order", ("bins",))
        self._steps_of_all("spikes", self.spikes)
        self._steps_of_all("cuts", self.cuts)
        self._steps_of_all("other", () if self.other is None else (self.other,))
        for spelling in self.null_spellings:
            if self._holds(spelling):
                raise SchemaError(f"{spelling!r} is both a value of the range and a spelling of missing", ("missing",))

    def _holds(self, text: str) -> bool:
        try:
            self.step_of(text)
        except SchemaError:
            return False
        return True

    def _steps_of_all(self, field: str, values: Sequence[Value]) -> list[int]:
        try:
            return [self.step_of(value) for value in values]
        except SchemaError as error:
            raise SchemaError(f"{field}: {error}", (field,)) from None


class Number(Ranged, frozen=True, kw_only=True):
    """The base class of integers and reals, which a text file may write in several ways.

    Attributes:
        decimal: the decimal sign in texts, a point or a comma; if left out, that of the file.
        thousands: the sign between groups of three digits in texts; if left out, that of the file.
        symbol: what texts have before or after each number, such as % or €; it is no part of the number.
    """

    decimal: str | None = None
    thousands: str | None = None
    symbol: str = ""

    def _check_signs(self) -> None:
        """Refuse signs that no file can have."""
        thousands = "" if self.thousands is None else self.thousands
        require_text(thousands, "thousands")
        usual = "," if thousands == "." else "."
        decimal = usual if self.decimal is None else self.decimal
        NumberSigns(decimal=decimal, thousands=thousands, symbol=self.symbol)


def number_signs(attribute: Number, file: FileSyntax) -> NumberSigns:
    """The signs in the texts of an attribute's numbers: its own, or else those of the file."""
    decimal = file.decimal if attribute.decimal is None else attribute.decimal
    thousands = file.thousands if attribute.thousands is None else attribute.thousands
    if attribute.thousands is None and thousands == decimal:  # a column with points in a file with commas
        thousands = ""
    return NumberSigns(decimal=decimal, thousands=thousands, symbol=attribute.symbol)


class Integer(Number, frozen=True, kw_only=True, tag="integer"):
    """Whole numbers.

    Attributes:
        low: the lowest possible value; lower values are replaced by it.
        high: the highest possible value; higher values are replaced by it.
    """

    low: int
    high: int

    def _check(self) -> None:
        if max(abs(self.low), abs(self.high)) >= MAX_LATTICE_STEPS:
            raise SchemaError("bounds must be within ±2^53", ("low" if abs(self.low) >= MAX_LATTICE_STEPS else "high",))
        self._check_order("low", "high")
        self._check_cuts()
        self._check_signs()

    @property
    def origin(self) -> int:
        """``low`` itself."""
        return self.low

    @property
    def steps(self) -> int:
        """The number of whole numbers in the range."""
        return self.high - self.low + 1

    def coordinate_of(self, value: Value) -> int:
        """The number itself."""
        number = _parse_decimal(value)
        if number != number.to_integral_value():
            raise SchemaError(f"{value} is not a whole number")
        return int(number)

    def text_at(self, step: int) -> str:
        """The number itself."""
        return str(self.low + step)

    def value_at(self, step: int) -> int:
        """The number itself."""
        return self.low + step

    def values_at(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers at the given steps."""
        return steps + self.low


class Real(Number, frozen=True, kw_only=True, tag="real"):
    """Numbers with a fixed number of decimals.

    Attributes:
        low: the lowest possible value; lower values are replaced by it.
        high: the highest possible value; higher values are replaced by it.
        decimals: digits after the decimal point in synthetic tables; if left out, enough for a million values.
    """

    low: float
    high: float
    decimals: int | None = None

    def _check(self) -> None:
        for field in ("low", "high"):
            if not math.isfinite(getattr(self, field)):
                raise SchemaError(f"{field} is {getattr(self, field)}; it must be a finite number", (field,))
        if self.decimals is not None and not 0 <= self.decimals <= 15:
            raise SchemaError(f"decimals is {self.decimals}; it must be 0 … 15", ("decimals",))
        if max(abs(self.low), abs(self.high)) * self.scale >= MAX_REAL_COORDINATE:
            limit = f"±{MAX_REAL_COORDINATE / self.scale:.3g}"
            message = f"with {self.decimal_places} decimals, bounds must be within {limit}; give fewer decimals"
            raise SchemaError(message, ("decimals",))
        for field in ("low", "high"):
            if _parse_decimal(getattr(self, field)).scaleb(self.decimal_places) % 1:
                message = f"{field} ({getattr(self, field)}) has more than {self.decimal_places} decimals"
                raise SchemaError(message, (field,))
        self._check_order("low", "high")
        self._check_cuts()
        self._check_signs()

    @property
    def decimal_places(self) -> int:
        """Digits after the decimal point."""
        if self.decimals is not None:
            return self.decimals
        width = self.high - self.low
        for_a_million_values = 6 - math.floor(math.log10(width)) if 0 < width < math.inf else 0
        return min(15, max(0, for_a_million_values, _count_decimals(self.low), _count_decimals(self.high)))

    @property
    def scale(self) -> int:
        """Lattice points per unit."""
        return int(10**self.decimal_places)

    @property
    def origin(self) -> int:
        """``low`` in lattice points."""
        return self.coordinate_of(self.low)

    @property
    def steps(self) -> int:
        """The number of lattice points in the range."""
        return self.coordinate_of(self.high) - self.origin + 1

    def coordinate_of(self, value: Value) -> int:
        """The nearest lattice point."""
        return int(_parse_decimal(value).scaleb(self.decimal_places).to_integral_value())

    def text_at(self, step: int) -> str:
        """The number with its decimals."""
        return f"{Decimal(self.origin + step).scaleb(-self.decimal_places):f}"

    def value_at(self, step: int) -> float:
        """The float nearest to the decimal text."""
        return float(self.text_at(step))

    def values_at(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """The numbers at the given steps, each the float nearest to its decimal text."""
        return (steps + self.origin) / np.float64(self.scale)


class Datetime(Ranged, frozen=True, kw_only=True, tag="datetime"):
    """Dates or times.

    Attributes:
        start: the earliest possible date, as ISO text such as 2016-01-01 or 2016-01-01T08:30; earlier dates are
            replaced by it.
        end: the latest possible date; later dates are replaced by it. A day, month or year without a time includes all
            of it.
        resolution: year, month, day, hour, minute, second, millisecond or microsecond. With year, month or day the
            synthetic column holds dates, otherwise times.
        format: how a text file writes dates, in the letters of strptime, such as %d.%m.%Y; or several formats, of which
            the first that fits a cell is used. ISO 8601 in its usual forms needs none. Times with an offset (%z) are
            converted to UTC.
        time_cuts: as ``cuts``, for the time of day of a timestamp.
    """

    start: str | int
    end: str | int
    resolution: Resolution = "day"
    format: str | tuple[str, ...] | None = None
    time_cuts: tuple[str, ...] = ()

    def _check(self) -> None:
        for field in ("start", "end"):
            if parse_instant(str(getattr(self, field))) is None:
                raise SchemaError(
                    f"{field} is {quote_argument(getattr(self, field))}; write it as 2016-01-31", (field,)
                )
        for form in self.formats:
            problem = format_problem(form, self.resolution)
            if problem:
                raise SchemaError(f"format {quote_argument(form)}: {problem}", ("format",))
        self._check_order("start", "end")
        self._check_cuts()

    @property
    def formats(self) -> tuple[str, ...]:
        """The declared formats; none for ISO 8601."""
        return as_formats(self.format)

    @property
    def unit(self) -> str:
        """The resolution as a unit of numpy."""
        return NUMPY_UNITS[self.resolution]

    @property
    def is_date(self) -> bool:
        """Whether the column holds dates rather than times."""
        return self.resolution in ("year", "month", "day")

    @property
    def origin(self) -> int:
        """``start`` in units since 1970."""
        return self.coordinate_of(self.start)

    @property
    def steps(self) -> int:
        """The number of units from start to end, both included."""
        return self._last_coordinate_of(self.end) - self.origin + 1

    def coordinate_of(self, value: Value) -> int:
        """Units since 1970."""
        instant = parse_instant(str(value))
        if instant is None:
            raise SchemaError(f"{quote_argument(value)} is not a date; write it as 2016-01-31 or 2016-01-31T08:30")
        return self._units(np.datetime64(instant, "us"))

    def _last_coordinate_of(self, value: Value) -> int:
        """The last unit of a date; a year, month or day without a time includes all of it."""
        first, period = self.coordinate_of(value), _written_period(str(value))
        if period is None:
            return first
        following = np.datetime64(parse_instant(str(value)), period) + 1
        return max(first, self._units(following) - 1)

    def _first_step_of(self, value: Value) -> int:
        """A year, month or day during which the range begins includes all of it that is in the range."""
        begun = self.coordinate_of(value) < self.origin <= self._last_coordinate_of(value)
        return 0 if begun else self.step_of(value)

    def _last_step_of(self, value: Value) -> int:
        return max(self._first_step_of(value), min(self._last_coordinate_of(value) - self.origin, self.steps - 1))

    def _units(self, instant: np.datetime64) -> int:
        return int(instant.astype(f"datetime64[{self.unit}]").astype(np.int64))

    def text_at(self, step: int) -> str:
        """The date in ISO form, at the resolution."""
        return str(np.datetime64(self.origin + step, self.unit))  # type: ignore[call-overload]

    def values_at(self, steps: NDArray[np.int64]) -> NDArray[np.datetime64]:
        """The instants at the given steps."""
        return (steps + self.origin).astype(f"datetime64[{self.unit}]")

    def _zero_steps(self) -> list[int]:
        return []

    def _rounder_widths(self) -> Sequence[int]:
        return [width for width in self._round_widths() if width > 1]  # days of a month are as round as each other

    def _round_widths(self) -> Sequence[int]:
        return round_durations(self.resolution)

    def cut(self, start: int, stop: int, pieces: int) -> list[int]:
        """Cut at calendar boundaries: round times, days, parts of months, months, quarters, years."""
        return cut_at_calendar(start, stop, pieces, origin=self.origin, unit=self.unit, ladder=self._round_widths())


def round_durations(resolution: Resolution) -> list[int]:
    """Round widths of cells of times, up to a day, in units of the resolution; none if it is a day or coarser."""
    per_second = _PER_SECOND.get(resolution, Fraction(0))
    return [int(seconds * per_second) for seconds in _ROUND_SECONDS if seconds * per_second >= 1]


@functools.lru_cache(maxsize=1024)
def _build_grid(attribute: Ranged) -> Grid:
    """The grid of an attribute; cached, because sizes, labels and codes all need it."""
    declared = attribute.bins
    return make_grid(
        attribute.steps,
        bins=[attribute.step_of(edge) for edge in declared] if isinstance(declared, tuple) else declared,
        spikes=attribute.spike_steps(),
        cut=attribute.cut,
        cuts=[attribute.step_of(cut) for cut in attribute.cuts],
        max_cells=attribute._max_cells,
    )


def parse_instant(text: str) -> dt.datetime | None:
    """An ISO 8601 date, time, year or month, with an offset converted to UTC; None if the text is none of these."""
    text = text.strip()
    if re.fullmatch(r"[0-9]{4}(-[0-9]{2})?", text, re.ASCII):
        text += "-01" if len(text) == 7 else "-01-01"
    try:
        instant = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    if instant.tzinfo is not None:
        try:
            return instant.astimezone(dt.UTC).replace(tzinfo=None)
        except OverflowError:
            return None
    return instant


def _written_period(text: str) -> Literal["Y", "M", "D"] | None:
    """The period that a text without a time covers: a year, a month or a day."""
    text = text.strip()
    if re.fullmatch(r"[0-9]{4}(-[0-9]{2})?", text):
        return "M" if "-" in text else "Y"
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return None
    return "D"


def _parse_decimal(value: Value) -> Decimal:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise SchemaError(f"{quote_argument(value)} is not a number") from None
    if isinstance(value, bool) or not number.is_finite():
        raise SchemaError(f"{quote_argument(value)} is not a number")
    if number.adjusted() > _MAX_EXPONENT:
        raise SchemaError(f"{value} is outside every possible range")
    return number


def _count_decimals(value: float) -> int:
    exponent = _parse_decimal(value).normalize().as_tuple().exponent
    return max(0, -int(exponent))
