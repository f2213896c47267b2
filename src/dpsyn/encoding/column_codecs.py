"""One column of a table ⇄ fine codes.

Encoding is total: an array of any type has a code for each of its entries. A type never decides whether a table can be
read, because libraries infer types from entries: one empty cell makes a column of integers floating-point, one word
makes it text, and a column that is empty but for one entry has the type of that entry, whatever it is. An entry of a
type that an attribute does not have, such as a date where numbers are declared, is read like its text in a CSV file.

Arrow reads all entries in the usual spelling at once. Entries in any other spelling are read one by one, each distinct
text once, by the specification in ``entry_parser``. The fast path takes only entries that match a pattern on which
Arrow and the specification agree: the code of an entry must not depend on other entries.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsyn.encoding import arrays, entry_parser
from dpsyn.encoding.binning import CellLookup
from dpsyn.errors import InternalError
from dpsyn.schema import (
    Attribute,
    Boolean,
    Categorical,
    Datetime,
    Integer,
    Ranged,
    Real,
    Time,
    canonical_text,
    parse_clock,
    parse_instant,
)
from dpsyn.schema.date_formats import to_python_format
from dpsyn.schema.timestamps import TimestampParts

FineCodes = NDArray[Any]
"""The fine codes of one attribute, in the narrowest unsigned type."""

EntryStatuses = NDArray[np.uint8]
"""The status of every entry: IN_DOMAIN, EMPTY, UNREADABLE, BELOW or ABOVE."""

IN_DOMAIN, EMPTY, UNREADABLE, BELOW, ABOVE = range(5)
"""In the domain; null; not listed, or not a value of the kind; below the lower bound; above the upper bound."""

_FAR = 2**60
"""Beyond every bound that a schema can have; numbers further out are replaced by this one."""

MISSING_STEP = -1
"""The step of a missing value."""

MAX_HASHED_VALUES = 50_000
"""The longest list that Arrow looks up. Arrow rebuilds its hash table for every batch, so longer lists use a dict."""

_TRUTH_NUMBERS = {"true": 1, "false": 0}

_WHOLE_NUMBER = r"^-?[0-9]{1,18}$"
_DECIMAL_NUMBER = r"^-?[0-9]{1,15}(\.[0-9]{1,15})?$"
_ISO = r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?$"
_CLOCK = r"^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?$"


@dataclass(frozen=True, slots=True, repr=False)
class EncodedColumn:
    """The fine codes of a column, and the status of every entry."""

    codes: FineCodes
    statuses: EntryStatuses


class ColumnCodec(Protocol):
    """How the column of one attribute is read from a table and written to a table."""

    def read(self, array: pa.Array) -> EncodedColumn:
        """Encode an array of any type."""

    def write(self, codes: FineCodes, rng: np.random.Generator) -> pa.Array:
        """Decode codes to values; where a code stands for several values, one is sampled uniformly."""


def column_codec_for(attribute: Attribute) -> ColumnCodec:
    """The codec of an attribute that has codes."""
    match attribute:
        case Categorical() | Boolean():
            return ListedCodec(attribute)
        case Integer() | Real():
            return NumberCodec(attribute)
        case Datetime():
            return DateCodec(attribute)
        case Time():
            return TimeCodec(attribute)
    raise InternalError(f"attribute {attribute.name!r} of kind {type(attribute).__name__} has no codes")


def narrowest_dtype(size: int) -> np.dtype[Any]:
    """The smallest unsigned type that holds the codes 0 … size−1."""
    return np.min_scalar_type(max(size - 1, 0))


class ListedCodec:
    """Categories, ordered categories and truth values: a code is a position in the list of values."""

    def __init__(self, attribute: Categorical | Boolean) -> None:
        self.attribute = attribute
        values = (False, True) if isinstance(attribute, Boolean) else attribute.all_values()
        self.values: tuple[Any, ...] = values
        self.dtype = narrowest_dtype(attribute.cells)
        self._cell_of = {canonical_text(value): cell for cell, value in enumerate(values)}
        self._listed = pa.array([text.encode() for text in self._cell_of], pa.binary())
        self._as_numbers = entry_parser.are_numbers(values)
        self._nulls = frozenset(attribute.null_spellings)
        self._null_cell, self._other_cell = attribute.null_cell, attribute.other_cell
        self._value_array = build_value_array([*values, *([None] if attribute.has_missing else [])])

    def read(self, array: pa.Array) -> EncodedColumn:
        """Encode every entry by its text."""
        if pa.types.is_dictionary(array.type):
            return read_through_dictionary(array, self.read)
        if arrays.is_number(array.type) or pa.types.is_boolean(array.type) or pa.types.is_null(array.type):
            return EncodedColumn(*arrays.map_distinct(arrays.widen_decimals(array), self._read_value, self.dtype))
        texts = arrays.as_binary(array) if arrays.is_text(array.type) else entry_parser.entry_texts(array)
        if len(self.values) <= MAX_HASHED_VALUES:
            return self._read_text(texts)
        return EncodedColumn(*arrays.map_distinct(texts, self._read_value, self.dtype))

    def _read_text(self, texts: pa.Array) -> EncodedColumn:
        indices = pc.index_in(texts, value_set=self._listed.cast(texts.type))
        codes = arrays.as_numbers(indices).astype(self.dtype)
        statuses = np.zeros(len(codes), np.uint8)
        if indices.null_count:
            rows = np.flatnonzero(arrays.null_mask(indices))
            unlisted = texts.take(pa.array(rows))
            codes[rows], statuses[rows] = arrays.map_distinct(unlisted, self._read_value, self.dtype)
        return EncodedColumn(codes, statuses)

    def _read_value(self, value: object) -> tuple[int, int]:
        text = entry_parser.text_of_entry(value)
        if text is None:
            return self._null_cell, EMPTY
        cell = self._find(text)
        if cell is not None:
            return cell, IN_DOMAIN
        if text in self._nulls or text.strip() in self._nulls or entry_parser.is_blank(text):
            return self._null_cell, EMPTY
        return self._other_cell, UNREADABLE

    def _find(self, text: str) -> int | None:
        cell = self._cell_of.get(text, self._cell_of.get(text.strip()))
        if cell is None and isinstance(self.attribute, Boolean):
            truth = entry_parser.read_boolean(text)
            return None if truth is None else int(truth)
        if cell is None and self._as_numbers:
            number = entry_parser.read_number(text)
            return None if number is None else self._cell_of.get(canonical_text(number))
        return cell

    def write(self, codes: FineCodes, rng: np.random.Generator) -> pa.Array:
        """Decode codes to the listed values."""
        return self._value_array.take(pa.array(codes))


class RangedCodec:
    """The common part of numbers, dates and times: integer coordinates on a lattice, which is divided into cells."""

    def __init__(self, attribute: Ranged) -> None:
        self.dtype = narrowest_dtype(attribute.cells)
        self._grid = attribute.grid()
        self._low, self._high = attribute.origin, attribute.origin + attribute.steps - 1
        self._cell_of = CellLookup(self._grid.edges)
        self._nulls = frozenset(attribute.null_spellings)
        self._null_cell, self._other_cell = attribute.null_cell, attribute.other_cell
        bottom = MISSING_STEP if attribute.has_missing else 0
        self._other_step = bottom if attribute.other is None else attribute.step_of(attribute.other)
        self._null_step = MISSING_STEP if attribute.has_missing else self._other_step

    def read(self, array: pa.Array) -> EncodedColumn:
        """Encode every entry by its coordinate; entries beyond a bound get the code of the bound."""
        if pa.types.is_dictionary(array.type):
            return read_through_dictionary(array, self.read)
        steps, statuses = self._locate(array)
        codes = self._cell_of(steps).astype(self.dtype)
        codes[statuses == EMPTY] = self._null_cell
        codes[statuses == UNREADABLE] = self._other_cell
        return EncodedColumn(codes, statuses)

    def read_steps(self, array: pa.Array) -> tuple[NDArray[np.int64], EntryStatuses]:
        """The step of every entry on the lattice, which is finer than its code; −1 if missing. And its status."""
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        steps, statuses = self._locate(array)
        steps[statuses == EMPTY] = self._null_step
        steps[statuses == UNREADABLE] = self._other_step
        return steps, statuses

    def encode_steps(self, steps: NDArray[np.int64]) -> FineCodes:
        """The code of every step; −1 is missing."""
        codes = self._cell_of(np.maximum(steps, 0)).astype(self.dtype)
        codes[steps == MISSING_STEP] = self._null_cell
        return codes

    def _locate(self, array: pa.Array) -> tuple[NDArray[np.int64], EntryStatuses]:
        """The step of every readable entry, moved to the nearer bound if it is out of range; and its status."""
        coordinates, statuses = self.read_coordinates(array)
        clipped = np.clip(coordinates, self._low, self._high)
        statuses[(clipped > coordinates) & (statuses == IN_DOMAIN)] = BELOW
        statuses[(clipped < coordinates) & (statuses == IN_DOMAIN)] = ABOVE
        return clipped.astype(np.int64) - self._low, statuses

    def read_coordinates(self, array: pa.Array) -> tuple[NDArray[Any], EntryStatuses]:
        """The lattice coordinate of every entry, a whole number of any numeric type; and its status."""
        raise InternalError("RangedCodec is abstract; use NumberCodec, DateCodec or TimeCodec")

    def _parse_texts(
        self, texts: pa.Array, pattern: str, kind: pa.DataType, read_one: Callable[[str], Any]
    ) -> tuple[NDArray[Any], EntryStatuses]:
        """Read text entries: those that match the pattern all at once, the others one by one."""
        plain = _matches(texts, pattern)
        values = _cast_where(plain, texts, kind)
        if values is None:  # a date that does not exist; the specification reads all others the same way
            plain, values = pa.array(np.zeros(len(texts), np.bool_)), np.zeros(len(texts), np.int64)
        statuses = np.where(self._spells_null(values), EMPTY, IN_DOMAIN).astype(np.uint8)
        rows = np.flatnonzero(~plain.to_numpy(zero_copy_only=False))
        if len(rows):
            odd = texts.take(pa.array(rows))
            values[rows], statuses[rows] = arrays.map_distinct(odd, self._entry_reader(read_one), values.dtype)
        return values, statuses

    def _spells_null(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which values are a spelling of missing. Spellings are compared one at a time, in the type of the values."""
        return np.zeros(len(values), np.bool_)

    def _entry_reader(self, read_one: Callable[[str], Any]) -> Callable[[bytes | None], tuple[Any, int]]:
        """A function that reads one text entry, with all spellings of null."""

        def read(raw: bytes | None) -> tuple[Any, int]:
            text = "" if raw is None else entry_parser.text_of_bytes(raw)
            if entry_parser.is_blank(text) or text in self._nulls or text.strip() in self._nulls:
                return 0, EMPTY
            value = read_one(text)
            if value is None:
                return 0, UNREADABLE
            return (0, EMPTY) if value != value else (value, IN_DOMAIN)  # not-a-number is a spelling of missing

        return read

    def write(self, codes: FineCodes, rng: np.random.Generator) -> pa.Array:
        """Decode codes to values of the attribute's type, sampled uniformly inside each cell."""
        steps, missing = self.sample_steps(codes, rng)
        return self.write_steps(steps, missing)

    def write_at(self, steps: NDArray[np.int64], codes: FineCodes) -> pa.Array:
        """The values at the given steps; null where the code means missing."""
        return self.write_steps(steps, np.asarray(codes >= self._grid.cells))

    def write_steps(self, steps: NDArray[np.int64], missing: NDArray[np.bool_]) -> pa.Array:
        """The values at the given steps; null where they are missing."""
        raise InternalError("RangedCodec is abstract; use NumberCodec, DateCodec or TimeCodec")

    def sample_steps(self, codes: FineCodes, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """A step sampled uniformly from the cell of each code, and which codes mean missing."""
        missing = np.asarray(codes >= self._grid.cells)
        cell = np.where(missing, 0, codes).astype(np.int64)
        first, width = self._grid.edges[:-1], np.diff(self._grid.edges)
        return first[cell] + rng.integers(0, width[cell]), missing


class NumberCodec(RangedCodec):
    """Integers, and numbers with decimals."""

    def __init__(self, attribute: Integer | Real) -> None:
        super().__init__(attribute)
        self._attribute = attribute
        self._scale = attribute.scale if isinstance(attribute, Real) else 1
        self._whole = isinstance(attribute, Integer)
        self._values_at = attribute.values_at
        numbers = {entry_parser.read_number(text) for text in attribute.null_spellings}
        self._null_numbers = {number for number in numbers if number is not None and abs(number) < _FAR}

    def read_coordinates(self, array: pa.Array) -> tuple[NDArray[Any], EntryStatuses]:
        """The nearest lattice point of every number; numbers far beyond a bound are moved just beyond it."""
        numbers, statuses = self._read_numbers(array)
        if self._whole and numbers.dtype.kind == "i":
            return numbers, statuses
        statuses[np.isnan(numbers) & (statuses == IN_DOMAIN)] = EMPTY
        clipped = np.clip(np.nan_to_num(numbers), (self._low - 1) / self._scale, (self._high + 1) / self._scale)
        return np.rint(clipped * self._scale), statuses

    def _read_numbers(self, array: pa.Array) -> tuple[NDArray[Any], EntryStatuses]:
        kind = array.type
        if arrays.is_text(kind):
            return self._read_texts(arrays.as_binary(array))
        if pa.types.is_null(kind):
            return np.zeros(len(array), np.int64), np.full(len(array), EMPTY, np.uint8)
        if pa.types.is_boolean(kind):
            array = array.cast(pa.int8())
        if not arrays.is_number(array.type):
            return self._read_texts(entry_parser.entry_texts(array))
        fits_int64 = pa.types.is_integer(array.type) and array.type != pa.uint64()
        numbers = arrays.as_numbers(array.cast(pa.int64() if fits_int64 else pa.float64(), safe=False))
        empty = arrays.null_mask(array) | self._spells_null(numbers)
        return numbers, np.where(empty, EMPTY, IN_DOMAIN).astype(np.uint8)

    def _spells_null(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        mask = super()._spells_null(values)
        for number in self._null_numbers:
            if values.dtype.kind == "f" or number == int(number):
                mask |= values == values.dtype.type(number)
        return mask

    def _read_texts(self, texts: pa.Array) -> tuple[NDArray[Any], EntryStatuses]:
        if self._whole:
            return self._parse_texts(texts, _WHOLE_NUMBER, pa.int64(), self._read_number)
        return self._parse_texts(texts, _DECIMAL_NUMBER, pa.float64(), self._read_number)

    def _read_number(self, text: str) -> int | float | None:
        """Read one number by the specification, clipped to 64 bits; not-a-number if it is a spelling of missing.

        The truth values are 1 and 0, as in a column of them, which one empty cell turns into text.
        """
        number = _TRUTH_NUMBERS.get(text.strip().lower(), entry_parser.read_number(text))
        if number is None:
            return None
        if number in self._null_numbers:
            return math.nan
        clipped = max(-_FAR, min(_FAR, number))
        return round(clipped) if self._whole else float(clipped)

    def write_steps(self, steps: NDArray[np.int64], missing: NDArray[np.bool_]) -> pa.Array:
        """Integers for integer attributes; otherwise floats with the declared decimals."""
        return pa.array(self._values_at(steps), mask=missing)


class DateCodec(RangedCodec):
    """Dates and timestamps."""

    def __init__(self, attribute: Datetime) -> None:
        super().__init__(attribute)
        self._attribute = attribute
        self._unit = attribute.unit
        instants = {_read_micros(text) for text in attribute.null_spellings}
        self._null_micros = {micros for micros in instants if micros is not None}

    def read_coordinates(self, array: pa.Array) -> tuple[NDArray[Any], EntryStatuses]:
        """The time unit, such as the day, that every instant falls into."""
        if not arrays.is_instant(array.type):  # texts; years, or the digits of another format, may be numbers
            texts = arrays.as_binary(array) if arrays.is_text(array.type) else entry_parser.entry_texts(array)
            micros, statuses = self._read_texts(texts)
            return self._floor(micros.view("datetime64[us]")), statuses
        instants = arrays.as_instants(array)
        empty = arrays.null_mask(array) | self._spells_null(instants)
        return self._floor(instants), np.where(empty, EMPTY, IN_DOMAIN).astype(np.uint8)

    def _read_texts(self, texts: pa.Array) -> tuple[NDArray[np.int64], EntryStatuses]:
        formats = self._attribute.formats
        if not formats:
            return self._parse_texts(texts, _ISO, pa.timestamp("us"), _read_micros)
        return self._read_formatted_texts(texts, formats)

    def _read_formatted_texts(self, texts: pa.Array, formats: Sequence[str]) -> tuple[NDArray[np.int64], EntryStatuses]:
        """The microseconds of texts in declared formats; of several, the first that fits an entry is used.

        Arrow reads those in the first format. It accepts dates that do not exist, so its result is used only if writing
        it back gives the same text. Arrow cannot write UTC offsets, so texts with an offset are read one by one.
        """
        form = formats[0]
        stripped = pc.ascii_trim_whitespace(arrays.as_string(texts))
        parsed = pc.strptime(stripped, format=form.replace("%z", ""), unit="us", error_is_null=True)
        rewritten = pc.strftime(parsed.cast(pa.timestamp("s")), format=form.replace("%z", ""))
        same = pc.and_(pc.equal(rewritten, stripped).fill_null(False), "%z" not in form)
        values = arrays.as_numbers(pc.if_else(same, parsed, pa.scalar(None, parsed.type)).view(pa.int64()))
        statuses = np.where(self._spells_null(values), EMPTY, IN_DOMAIN).astype(np.uint8)
        rows = np.flatnonzero(~same.to_numpy(zero_copy_only=False))
        odd = texts.take(pa.array(rows))
        reader = self._entry_reader(lambda text: _read_formatted(text, formats))
        values[rows], statuses[rows] = arrays.map_distinct(odd, reader, values.dtype)
        return values, statuses

    def _spells_null(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        unit = "us" if values.dtype.kind == "i" else np.datetime_data(values.dtype)[0]
        step = int(np.timedelta64(1, unit).astype("timedelta64[us]").astype(np.int64))  # type: ignore[call-overload]
        mask, ticks = super()._spells_null(values), values.view(np.int64)
        for micros in self._null_micros:
            if micros % step == 0:
                mask |= ticks == micros // step
        return mask

    def _floor(self, instants: NDArray[np.datetime64]) -> NDArray[np.int64]:
        """Units since 1970. Instants far beyond a bound are first moved close to it, so that no unit overflows."""
        input_unit = np.datetime_data(instants.dtype)[0]
        ends = np.array([self._low - 1, self._high + 2]).view(f"datetime64[{self._unit}]")
        low, high = ends.astype(f"datetime64[{input_unit}]") + np.array([0, 1])  # a coarser unit rounds the end down
        return np.clip(instants, low, high).astype(f"datetime64[{self._unit}]").astype(np.int64)

    def write_steps(self, steps: NDArray[np.int64], missing: NDArray[np.bool_]) -> pa.Array:
        """Dates if the resolution is a day or coarser, timestamps if it is finer."""
        instants = self._attribute.values_at(steps)
        if self._attribute.is_date:
            return pa.array(instants.astype("datetime64[D]"), pa.date32(), mask=missing)
        unit = self._unit if self._unit in ("ms", "us") else "s"
        return pa.array(instants.astype(f"datetime64[{unit}]"), pa.timestamp(unit), mask=missing)


class TimestampCodec:
    """Timestamps in parts: the date, the weekday and the time of day."""

    def __init__(self, attribute: Datetime, parts: TimestampParts) -> None:
        self._attribute, self._parts = attribute, parts
        self._whole, self._date, self._time = DateCodec(attribute), DateCodec(parts.date), TimeCodec(parts.time)
        self._missing_weekday = parts.weekday.proper_cells

    def read_parts(self, array: pa.Array) -> tuple[EncodedColumn, EncodedColumn, EncodedColumn]:
        """The steps of the date, the codes of the weekday, the steps of the time; each entry is read once.

        The status of an entry counts for all parts.
        """
        steps, statuses = self._whole.read_steps(array)
        missing = steps == MISSING_STEP
        days, weekdays, times = self._parts.split(self._attribute, np.maximum(steps, 0))
        days[missing], weekdays[missing], times[missing] = MISSING_STEP, self._missing_weekday, MISSING_STEP
        return EncodedColumn(days, statuses), EncodedColumn(weekdays, statuses), EncodedColumn(times, statuses)

    def read(self, array: pa.Array) -> list[FineCodes]:
        """The fine codes of the parts."""
        days, weekdays, times = self.read_parts(array)
        return [self._date.encode_steps(days.codes), weekdays.codes, self._time.encode_steps(times.codes)]

    def write(
        self,
        codes: NDArray[Any],
        rng: np.random.Generator,
        days: NDArray[np.int64] | None = None,
        clock: NDArray[np.int64] | None = None,
    ) -> pa.Array:
        """Join the fine codes of the parts, rows × 3; the date decides whether the timestamp is missing.

        The day is sampled among those of its cell with the weekday, and the time uniformly inside its cell, unless the
        steps of the date (``days``) or of the time (``clock``) are given.
        """
        dates, weekdays, times = (codes[:, axis].astype(np.int64) for axis in range(3))
        missing = dates >= self._parts.date.proper_cells
        if days is None:
            days = self._parts.sample_days(np.where(missing, 0, dates), np.minimum(weekdays, 6), rng)
        if clock is None:
            clock, _ = self._time.sample_steps(times, rng)
        return self._whole.write_steps(self._parts.join(self._attribute, days, clock), missing)


class TimeCodec(RangedCodec):
    """Times of day."""

    def __init__(self, attribute: Time) -> None:
        super().__init__(attribute)
        self._attribute = attribute
        self._null_micros = {micros for text in attribute.null_spellings if (micros := parse_clock(text)) is not None}

    def read_coordinates(self, array: pa.Array) -> tuple[NDArray[Any], EntryStatuses]:
        """The unit of the clock, such as the minute, that every time falls into."""
        if pa.types.is_time(array.type):
            micros = arrays.as_microseconds(array)
            empty = arrays.null_mask(array) | self._spells_null(micros)
            statuses = np.where(empty, EMPTY, IN_DOMAIN).astype(np.uint8)
        else:
            texts = arrays.as_binary(array) if arrays.is_text(array.type) else entry_parser.entry_texts(array)
            micros, statuses = self._parse_texts(texts, _CLOCK, pa.time64("us"), self._read_clock)
        return micros // self._attribute.unit_micros, statuses

    def _read_clock(self, text: str) -> int | None:
        """The microseconds since midnight of a text in the usual format, or in one of the declared ones."""
        usual = parse_clock(text)
        instant = _parse_format(text, self._attribute.formats) if usual is None else None
        return usual if instant is None else parse_clock(instant.time().isoformat())

    def _spells_null(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        return np.isin(values, list(self._null_micros))

    def write_steps(self, steps: NDArray[np.int64], missing: NDArray[np.bool_]) -> pa.Array:
        """Times in seconds, or in a finer unit if the resolution is finer."""
        micros, resolution = self._attribute.micros_at(steps), self._attribute.resolution
        if resolution == "microsecond":
            return pa.array(micros, pa.time64("us"), mask=missing)
        unit = "ms" if resolution == "millisecond" else "s"
        ticks = micros // (1_000 if unit == "ms" else 1_000_000)
        return pa.array(ticks.astype(np.int32), pa.time32(unit), mask=missing)


def read_through_dictionary(array: pa.Array, read: Callable[[pa.Array], EncodedColumn]) -> EncodedColumn:
    """Encode a dictionary-encoded array by reading the values of its dictionary that occur."""
    used = array.indices.unique().drop_null()
    dictionary = arrays.as_binary(array.dictionary) if arrays.is_text(array.dictionary.type) else array.dictionary
    values = pa.concat_arrays([dictionary.take(used), pa.nulls(1, dictionary.type)])
    encoded = read(values)
    positions = pc.index_in(array.indices, value_set=used)
    indices = arrays.as_numbers(positions.cast(pa.int64()).fill_null(len(used)))
    return EncodedColumn(encoded.codes[indices], encoded.statuses[indices])


def _matches(texts: pa.Array, pattern: str) -> pa.Array:
    """Which texts match a pattern; a column of digits is recognized without the pattern, which is faster."""
    if pattern == _WHOLE_NUMBER:
        digits = pc.and_(pc.ascii_is_decimal(arrays.as_string(texts)), pc.less_equal(pc.binary_length(texts), 18))
        if pc.all(digits, skip_nulls=False).as_py():
            return digits
    return pc.match_substring_regex(texts, pattern).fill_null(False)


def _cast_where(plain: pa.Array, texts: pa.Array, kind: pa.DataType) -> NDArray[Any] | None:
    """Convert the texts that are plain, the others to 0; None if Arrow refuses one of the plain ones."""
    plain_texts = texts if pc.all(plain).as_py() else pc.if_else(plain, texts, pa.scalar(None, texts.type))
    if pa.types.is_time(kind):  # Arrow reads no times of day, but those of a date
        date, space = (pa.scalar(text, texts.type) for text in (b"1970-01-01", b" "))
        plain_texts = pc.binary_join_element_wise(date, plain_texts, space)
        kind = pa.timestamp("us")
    try:
        cast = arrays.as_string(plain_texts).cast(kind)
    except pa.ArrowInvalid:
        return None
    return arrays.as_numbers(cast.view(pa.int64()) if pa.types.is_timestamp(kind) else cast)


def _read_micros(text: str) -> int | None:
    instant = parse_instant(text)
    return None if instant is None else int(np.datetime64(instant, "us").astype(np.int64))


def _read_formatted(text: str, formats: Sequence[str]) -> int | None:
    """Read a date in the first format that fits; otherwise in ISO format, which written tables use."""
    instant = _parse_format(text, formats)
    return _read_micros(text if instant is None else instant.isoformat())


def _parse_format(text: str, formats: Sequence[str]) -> dt.datetime | None:
    """Read a text in the first format that fits, with Python's parser; None if none does.

    Privacy: a failure concerns this entry alone.
    """
    for form in formats:
        with contextlib.suppress(Exception):  # an unreadable date is a ValueError; some formats raise other errors
            return dt.datetime.strptime(text.strip(), to_python_format(form))
    return None


def build_value_array(values: list[Any]) -> pa.Array:
    """Listed values as an array of the first type that fits all: boolean, integer, float, text."""
    proper = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in proper):
        return pa.array(values, pa.bool_())
    if not entry_parser.are_numbers(tuple(proper)) or any(abs(value) >= 2**63 for value in proper):
        return pa.array([None if value is None else canonical_text(value) for value in values], pa.string())
    if all(isinstance(value, int) for value in proper):
        return pa.array(values, pa.int64())
    if any(isinstance(value, int) and int(float(value)) != value for value in proper):
        return pa.array([None if value is None else canonical_text(value) for value in values], pa.string())
    return pa.array([None if value is None else float(value) for value in values], pa.float64())
