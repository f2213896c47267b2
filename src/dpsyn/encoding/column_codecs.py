"""One column of a table ⇄ fine codes.

Encoding is total: every array whose type fits gives a code for each of its cells. Where the usual spelling
allows it, Arrow reads the whole array at once; the cells that are spelled otherwise are read one by one, each
different text once, by the specification in ``cells``. The fast path takes only cells that match a pattern on
which Arrow and the specification agree: a cell's code must not depend on its neighbors.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsyn.encoding import arrays, cells
from dpsyn.encoding.binning import CellLookup
from dpsyn.errors import InternalError
from dpsyn.schema import Attribute, Boolean, Categorical, Datetime, Integer, Ranged, Real, canonical_text, parse_instant
from dpsyn.schema.ranges import to_python_format

FineCodes = NDArray[Any]
"""Fine codes of one attribute, in the narrowest unsigned type."""

CellStatuses = NDArray[np.uint8]
"""What became of each cell."""

IN_DOMAIN, EMPTY, UNREADABLE, BELOW, ABOVE = range(5)
"""In the domain; null; not in the list or not a value at all; beyond a bound."""

_FAR = 2**60
"""Beyond every bound a schema can have; numbers further out are as good as this one."""

MISSING_STEP = -1
"""Stands for an empty cell where steps of a lattice are asked for."""

MAX_HASHED_VALUES = 50_000
"""Listed values that Arrow looks up; it builds their table anew for every batch, so longer lists are looked up here."""

_WHOLE_NUMBER = r"^-?[0-9]{1,18}$"
_DECIMAL_NUMBER = r"^-?[0-9]{1,15}(\.[0-9]{1,15})?$"
_ISO = r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?$"


@dataclass(frozen=True, slots=True, repr=False)
class EncodedColumn:
    """The fine codes of a column, and what became of each cell."""

    codes: FineCodes
    statuses: CellStatuses


class ColumnCodec(Protocol):
    """How one attribute is read from a table and written to one."""

    def accepts(self, kind: pa.DataType) -> bool:
        """Whether arrays of a type can be read at all."""

    def read(self, array: pa.Array) -> EncodedColumn:
        """Codes of an array whose type fits."""

    def write(self, codes: FineCodes, rng: np.random.Generator) -> pa.Array:
        """Values of codes; where a code stands for several values, one is drawn evenly."""


def column_codec_for(attribute: Attribute) -> ColumnCodec:
    """The column of an attribute that has codes."""
    match attribute:
        case Categorical() | Boolean():
            return ListedCodec(attribute)
        case Integer() | Real():
            return NumberCodec(attribute)
        case Datetime():
            return DateCodec(attribute)
    raise InternalError(f"attribute {attribute.name!r} of kind {type(attribute).__name__} has no codes")


def accepts_type(attribute: Attribute, kind: pa.DataType) -> bool:
    """Whether an attribute can be read from arrays of a type, whatever is in them."""
    kind = arrays.value_type(kind)
    instant = arrays.is_instant(kind) or pa.types.is_time(kind)
    match attribute:
        case Integer() | Real():
            return arrays.is_scalar(kind) and not instant
        case Datetime():
            years = attribute.resolution == "year" and pa.types.is_integer(kind)
            return bool(arrays.is_text(kind) or arrays.is_instant(kind) or pa.types.is_null(kind) or years)
    return arrays.is_scalar(kind)


def narrowest_dtype(size: int) -> np.dtype[Any]:
    """The smallest unsigned type that holds the codes 0 … size−1."""
    return np.min_scalar_type(max(size - 1, 0))


class ListedCodec:
    """Categories, ordered categories and truth values: codes are positions in a list."""

    def __init__(self, attribute: Categorical | Boolean) -> None:
        self.attribute = attribute
        values = (False, True) if isinstance(attribute, Boolean) else attribute.all_values()
        self.values: tuple[Any, ...] = values
        self.dtype = narrowest_dtype(attribute.cells)
        self._cell_of = {canonical_text(value): cell for cell, value in enumerate(values)}
        self._listed = pa.array([text.encode() for text in self._cell_of], pa.binary())
        self._as_numbers = cells.are_numbers(values)
        self._nulls = frozenset(attribute.null_spellings)
        self._null_cell, self._other_cell = attribute.null_cell, attribute.other_cell
        self._value_array = _build_typed_array([*values, *([None] if attribute.has_missing else [])])

    def accepts(self, kind: pa.DataType) -> bool:
        """Whether each cell has one plain value: text, a truth value, a number, a date."""
        return accepts_type(self.attribute, kind)

    def read(self, array: pa.Array) -> EncodedColumn:
        """Codes by the text of each cell."""
        if pa.types.is_dictionary(array.type):
            return read_through_dictionary(array, self.read)
        if arrays.is_instant(array.type) or pa.types.is_time(array.type):
            array = arrays.drop_time_zone(array).cast(pa.string())
        if pa.types.is_decimal(array.type) and not pa.types.is_decimal256(array.type):
            array = array.cast(pa.decimal128(38, array.type.scale))
        if arrays.is_text(array.type):
            array = arrays.as_binary(array)
            if len(self.values) <= MAX_HASHED_VALUES:
                return self._read_text(array)
        return EncodedColumn(*arrays.map_distinct(array, self._read_value, self.dtype))

    def _read_text(self, texts: pa.Array) -> EncodedColumn:
        found = pc.index_in(texts, value_set=self._listed.cast(texts.type))
        codes = arrays.as_numbers(found).astype(self.dtype)
        fates = np.zeros(len(codes), np.uint8)
        if found.null_count:
            rows = np.flatnonzero(arrays.null_mask(found))
            unlisted = texts.take(pa.array(rows))
            codes[rows], fates[rows] = arrays.map_distinct(unlisted, self._read_value, self.dtype)
        return EncodedColumn(codes, fates)

    def _read_value(self, value: object) -> tuple[int, int]:
        text = cells.text_of_cell(value)
        if text is None:
            return self._null_cell, EMPTY
        cell = self._find(text)
        if cell is not None:
            return cell, IN_DOMAIN
        if text in self._nulls or text.strip() in self._nulls or cells.is_blank(text):
            return self._null_cell, EMPTY
        return self._other_cell, UNREADABLE

    def _find(self, text: str) -> int | None:
        cell = self._cell_of.get(text, self._cell_of.get(text.strip()))
        if cell is None and isinstance(self.attribute, Boolean):
            truth = cells.read_boolean(text)
            return None if truth is None else int(truth)
        if cell is None and self._as_numbers:
            number = cells.read_number(text)
            return None if number is None else self._cell_of.get(canonical_text(number))
        return cell

    def write(self, codes: FineCodes, rng: np.random.Generator) -> pa.Array:
        """The listed values."""
        return self._value_array.take(pa.array(codes))


class RangedCodec:
    """What numbers and dates have in common: coordinates on a lattice, cut into cells."""

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
        """Codes by the coordinate of each cell; those beyond a bound go to it."""
        if pa.types.is_dictionary(array.type):
            return read_through_dictionary(array, self.read)
        steps, fates = self._locate(array)
        codes = self._cell_of(steps).astype(self.dtype)
        codes[fates == EMPTY] = self._null_cell
        codes[fates == UNREADABLE] = self._other_cell
        return EncodedColumn(codes, fates)

    def read_steps(self, array: pa.Array) -> tuple[NDArray[np.int64], CellStatuses]:
        """The step of every cell on the lattice, exact where codes are not, −1 if missing; and what became of it."""
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        steps, fates = self._locate(array)
        steps[fates == EMPTY] = self._null_step
        steps[fates == UNREADABLE] = self._other_step
        return steps, fates

    def _locate(self, array: pa.Array) -> tuple[NDArray[np.int64], CellStatuses]:
        """The step of every cell that can be read, at the nearer bound if it is beyond one."""
        coordinates, fates = self.read_coordinates(array)
        near = np.clip(coordinates, self._low, self._high)
        fates[(near > coordinates) & (fates == IN_DOMAIN)] = BELOW
        fates[(near < coordinates) & (fates == IN_DOMAIN)] = ABOVE
        return near.astype(np.int64) - self._low, fates

    def read_coordinates(self, array: pa.Array) -> tuple[NDArray[Any], CellStatuses]:
        """A lattice coordinate for every cell, integral but of any numeric type, and what became of it."""
        raise InternalError("a ranged column is either of numbers or of dates")

    def _parse_texts(
        self, texts: pa.Array, pattern: str, kind: pa.DataType, read_one: Callable[[str], Any]
    ) -> tuple[NDArray[Any], CellStatuses]:
        """Values of text cells: those that match the pattern all at once, the others one by one."""
        plain = _matches(texts, pattern)
        values = _cast_where(plain, texts, kind)
        if values is None:  # a day that does not exist; the specification reads the others just the same
            plain, values = pa.array(np.zeros(len(texts), np.bool_)), np.zeros(len(texts), np.int64)
        fates = np.where(self._spells_null(values), EMPTY, IN_DOMAIN).astype(np.uint8)
        rows = np.flatnonzero(~plain.to_numpy(zero_copy_only=False))
        if len(rows):
            odd = texts.take(pa.array(rows))
            values[rows], fates[rows] = arrays.map_distinct(odd, self._cell_reader(read_one), values.dtype)
        return values, fates

    def _spells_null(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which values are a spelling of missing; compared one spelling at a time, in the values' own type."""
        return np.zeros(len(values), np.bool_)

    def _cell_reader(self, read_one: Callable[[str], Any]) -> Callable[[bytes | None], tuple[Any, int]]:
        """How one text cell is read, nulls in all their spellings included."""

        def read(raw: bytes | None) -> tuple[Any, int]:
            text = "" if raw is None else cells.text_of_bytes(raw)
            if cells.is_blank(text) or text in self._nulls or text.strip() in self._nulls:
                return 0, EMPTY
            value = read_one(text)
            if value is None:
                return 0, UNREADABLE
            return (0, EMPTY) if value != value else (value, IN_DOMAIN)  # not-a-number: it spells missing

        return read

    def write(self, codes: FineCodes, rng: np.random.Generator) -> pa.Array:
        """Values of their own kind, drawn evenly from each code's cell."""
        steps, missing = self._sample_steps(codes, rng)
        return self._write_steps(steps, missing)

    def write_at(self, steps: NDArray[np.int64], codes: FineCodes) -> pa.Array:
        """The values at these steps; where the code means missing, none."""
        return self._write_steps(steps, np.asarray(codes >= self._grid.cells))

    def _write_steps(self, steps: NDArray[np.int64], missing: NDArray[np.bool_]) -> pa.Array:
        raise InternalError("a ranged column is either of numbers or of dates")

    def _sample_steps(self, codes: FineCodes, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """A step drawn evenly from each code's cell, and which codes mean missing."""
        missing = np.asarray(codes >= self._grid.cells)
        cell = np.where(missing, 0, codes).astype(np.int64)
        first, width = self._grid.edges[:-1], np.diff(self._grid.edges)
        return first[cell] + rng.integers(0, width[cell]), missing


class NumberCodec(RangedCodec):
    """Whole numbers and numbers with decimals."""

    def __init__(self, attribute: Integer | Real) -> None:
        super().__init__(attribute)
        self._attribute = attribute
        self._scale = attribute.scale if isinstance(attribute, Real) else 1
        self._whole = isinstance(attribute, Integer)
        self._values_at = attribute.values_at
        spelled = {cells.read_number(text) for text in attribute.null_spellings}
        self._null_numbers = {number for number in spelled if number is not None and abs(number) < _FAR}

    def accepts(self, kind: pa.DataType) -> bool:
        """Whether the type is a number, a truth value, text, or a dictionary of those."""
        return accepts_type(self._attribute, kind)

    def read_coordinates(self, array: pa.Array) -> tuple[NDArray[Any], CellStatuses]:
        """The nearest lattice point of every number; those far beyond the bounds are brought near them."""
        numbers, fates = self._read_numbers(array)
        if self._whole and numbers.dtype.kind == "i":
            return numbers, fates
        fates[np.isnan(numbers) & (fates == IN_DOMAIN)] = EMPTY
        near = np.clip(np.nan_to_num(numbers), (self._low - 1) / self._scale, (self._high + 1) / self._scale)
        return np.rint(near * self._scale), fates

    def _read_numbers(self, array: pa.Array) -> tuple[NDArray[Any], CellStatuses]:
        kind = array.type
        if arrays.is_text(kind):
            return self._read_texts(arrays.as_binary(array))
        if pa.types.is_null(kind):
            return np.zeros(len(array), np.int64), np.full(len(array), EMPTY, np.uint8)
        if pa.types.is_boolean(kind):
            array = array.cast(pa.int8())
        fits_int64 = pa.types.is_integer(array.type) and array.type != pa.uint64()
        numbers = arrays.as_numbers(array.cast(pa.int64() if fits_int64 else pa.float64(), safe=False))
        empty = arrays.null_mask(array) | self._spells_null(numbers)
        return numbers, np.where(empty, EMPTY, IN_DOMAIN).astype(np.uint8)

    def _spells_null(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        found = super()._spells_null(values)
        for number in self._null_numbers:
            if values.dtype.kind == "f" or number == int(number):
                found |= values == values.dtype.type(number)
        return found

    def _read_texts(self, texts: pa.Array) -> tuple[NDArray[Any], CellStatuses]:
        if self._whole:
            return self._parse_texts(texts, _WHOLE_NUMBER, pa.int64(), self._read_number)
        return self._parse_texts(texts, _DECIMAL_NUMBER, pa.float64(), self._read_number)

    def _read_number(self, text: str) -> int | float | None:
        """One number by the specification, brought into 64 bits; not-a-number if it spells missing."""
        number = cells.read_number(text)
        if number is None:
            return None
        if number in self._null_numbers:
            return math.nan
        near = max(-_FAR, min(_FAR, number))
        return round(near) if self._whole else float(near)

    def _write_steps(self, steps: NDArray[np.int64], missing: NDArray[np.bool_]) -> pa.Array:
        """Numbers of their own kind: whole ones stay whole, others keep their decimals."""
        return pa.array(self._values_at(steps), mask=missing)


class DateCodec(RangedCodec):
    """Dates and times."""

    def __init__(self, attribute: Datetime) -> None:
        super().__init__(attribute)
        self._attribute = attribute
        self._unit = attribute.unit
        spelled = {_read_micros(text) for text in attribute.null_spellings}
        self._null_micros = {micros for micros in spelled if micros is not None}

    def accepts(self, kind: pa.DataType) -> bool:
        """Whether the type is a date, a time stamp or text; whole numbers fit where they are years."""
        return accepts_type(self._attribute, kind)

    def read_coordinates(self, array: pa.Array) -> tuple[NDArray[Any], CellStatuses]:
        """The unit of time into which every instant falls."""
        if arrays.is_text(array.type):
            micros, fates = self._read_texts(arrays.as_binary(array))
            return self._floor(micros.view("datetime64[us]")), fates
        fates = np.where(arrays.null_mask(array), EMPTY, IN_DOMAIN).astype(np.uint8)
        if pa.types.is_null(array.type):
            return np.zeros(len(array), np.int64), fates
        if pa.types.is_integer(array.type):
            return arrays.as_numbers(array.cast(pa.float64(), safe=False)) - 1970, fates
        instants = arrays.as_instants(array)
        fates[self._spells_null(instants)] = EMPTY
        return self._floor(instants), fates

    def _read_texts(self, texts: pa.Array) -> tuple[NDArray[np.int64], CellStatuses]:
        if self._attribute.format is None:
            return self._parse_texts(texts, _ISO, pa.timestamp("us"), _read_micros)
        return self._read_formatted_texts(texts, self._attribute.format)

    def _read_formatted_texts(self, texts: pa.Array, form: str) -> tuple[NDArray[np.int64], CellStatuses]:
        """Microseconds of texts in a declared format.

        Arrow reads days that do not exist, so only what it writes back as it stood is taken from it. It cannot write
        offsets: those are read one by one.
        """
        bare = pc.ascii_trim_whitespace(arrays.as_string(texts))
        found = pc.strptime(bare, format=form.replace("%z", ""), unit="us", error_is_null=True)
        again = pc.strftime(found.cast(pa.timestamp("s")), format=form.replace("%z", ""))
        same = pc.and_(pc.equal(again, bare).fill_null(False), "%z" not in form)
        values = arrays.as_numbers(pc.if_else(same, found, pa.scalar(None, found.type)).view(pa.int64()))
        fates = np.where(self._spells_null(values), EMPTY, IN_DOMAIN).astype(np.uint8)
        rows = np.flatnonzero(~same.to_numpy(zero_copy_only=False))
        odd = texts.take(pa.array(rows))
        reader = self._cell_reader(lambda text: _read_formatted(text, form))
        values[rows], fates[rows] = arrays.map_distinct(odd, reader, values.dtype)
        return values, fates

    def _spells_null(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        unit = "us" if values.dtype.kind == "i" else np.datetime_data(values.dtype)[0]
        step = int(np.timedelta64(1, unit).astype("timedelta64[us]").astype(np.int64))  # type: ignore[call-overload]
        found, ticks = super()._spells_null(values), values.view(np.int64)
        for micros in self._null_micros:
            if micros % step == 0:
                found |= ticks == micros // step
        return found

    def _floor(self, instants: NDArray[np.datetime64]) -> NDArray[np.int64]:
        """Units since 1970; instants far beyond the bounds are first brought near, so that no unit overflows."""
        theirs = np.datetime_data(instants.dtype)[0]
        ends = np.array([self._low - 1, self._high + 2]).view(f"datetime64[{self._unit}]")
        low, high = ends.astype(f"datetime64[{theirs}]") + np.array([0, 1])  # a coarser unit rounds the end down
        return np.clip(instants, low, high).astype(f"datetime64[{self._unit}]").astype(np.int64)

    def _write_steps(self, steps: NDArray[np.int64], missing: NDArray[np.bool_]) -> pa.Array:
        """Dates up to a resolution of days, time stamps beyond it."""
        instants = self._attribute.values_at(steps)
        if self._attribute.is_date:
            return pa.array(instants.astype("datetime64[D]"), pa.date32(), mask=missing)
        unit = self._unit if self._unit in ("ms", "us") else "s"
        return pa.array(instants.astype(f"datetime64[{unit}]"), pa.timestamp(unit), mask=missing)


def read_through_dictionary(array: pa.Array, read: Callable[[pa.Array], EncodedColumn]) -> EncodedColumn:
    """Codes of a dictionary-encoded array, by reading the values of its dictionary that occur."""
    used = array.indices.unique().drop_null()
    known = arrays.as_binary(array.dictionary) if arrays.is_text(array.dictionary.type) else array.dictionary
    values = pa.concat_arrays([known.take(used), pa.nulls(1, known.type)])
    reading = read(values)
    places = pc.index_in(array.indices, value_set=used)
    indices = arrays.as_numbers(places.cast(pa.int64()).fill_null(len(used)))
    return EncodedColumn(reading.codes[indices], reading.statuses[indices])


def _matches(texts: pa.Array, pattern: str) -> pa.Array:
    """Which texts match a pattern; a column of digits alone is recognised without it."""
    if pattern == _WHOLE_NUMBER:
        digits = pc.and_(pc.ascii_is_decimal(arrays.as_string(texts)), pc.less_equal(pc.binary_length(texts), 18))
        if pc.all(digits, skip_nulls=False).as_py():
            return digits
    return pc.match_substring_regex(texts, pattern).fill_null(False)


def _cast_where(plain: pa.Array, texts: pa.Array, kind: pa.DataType) -> NDArray[Any] | None:
    """Numbers of the texts that are plain, 0 for the others; None where Arrow refuses one of them."""
    chosen = texts if pc.all(plain).as_py() else pc.if_else(plain, texts, pa.scalar(None, texts.type))
    try:
        cast = arrays.as_string(chosen).cast(kind)
    except pa.ArrowInvalid:
        return None
    return arrays.as_numbers(cast.view(pa.int64()) if pa.types.is_timestamp(kind) else cast)


def _read_micros(text: str) -> int | None:
    instant = parse_instant(text)
    return None if instant is None else int(np.datetime64(instant, "us").astype(np.int64))


def _read_formatted(text: str, form: str) -> int | None:
    """A date in a declared format by Python's own reading; else in ISO form, as written tables have it.

    Privacy: whatever goes wrong, it goes wrong for this cell alone.
    """
    try:
        instant = dt.datetime.strptime(text.strip(), to_python_format(form))
    except Exception:  # an unreadable date is a ValueError; some formats raise others
        return _read_micros(text)
    return _read_micros(instant.isoformat())


def _build_typed_array(values: list[Any]) -> pa.Array:
    """Listed values as an array of their own type: truth values, whole numbers, numbers, or else text."""
    proper = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in proper):
        return pa.array(values, pa.bool_())
    if not cells.are_numbers(tuple(proper)) or any(abs(value) >= 2**63 for value in proper):
        return pa.array([None if value is None else canonical_text(value) for value in values], pa.string())
    if all(isinstance(value, int) for value in proper):
        return pa.array(values, pa.int64())
    if any(isinstance(value, int) and int(float(value)) != value for value in proper):
        return pa.array([None if value is None else canonical_text(value) for value in values], pa.string())
    return pa.array([None if value is None else float(value) for value in values], pa.float64())
