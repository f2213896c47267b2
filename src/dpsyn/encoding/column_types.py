"""The types of a table's columns, which synthetic rows get back: small integers, decimals, categories, time zones.

A schema says what the values of a column are, and synthetic rows are sampled as values of a few plain types: truth
values, integers of 64 bits, floats of 64 bits, texts, dates, timestamps and times. The table that was measured may have
declared another type for the same values. That type is recorded here, is stored with the synopsis, and is given to the
synthetic column wherever it can hold every value that the schema allows.

Privacy: a type is public metadata only if nobody chose it by looking at the rows. Libraries do: one empty cell makes
integers floats, and one word makes them texts. So the types that readers choose by themselves are not recorded; in
their place the schema decides. Neither are the categories of a column, which may be the values that occur: the
categories of a synthetic column are the values of the schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsyn.encoding.column_codecs import build_value_array
from dpsyn.errors import InternalError
from dpsyn.schema import (
    Attribute,
    Boolean,
    Categorical,
    Datetime,
    Identifier,
    Integer,
    Real,
    Schema,
    Time,
    canonical_text,
)

PANDAS_FLAVOR = b"dpsyn.pandas"
"""The key of a field's metadata that names the pandas flavor of its column."""

PandasFlavor = Literal["", "nullable", "pyarrow"]
"""How pandas stores a column: as a numpy array, with a mask (``Int64``), or as an Arrow array (``int64[pyarrow]``)."""

_POLARS_ENUM = b"_PL_ENUM_VALUES"
"""How the key begins by which polars marks a field as an Enum."""

MAX_CATEGORY_INDEX = pa.int32()
"""The index of a dictionary if the recorded one is too small for the values of the schema."""

_TICKS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""Decimal places of a second, by unit."""

_EXACT_FLOATS = {"halffloat": 2**11, "float": 2**24}
"""Up to which whole number all whole numbers are floats of a type."""

MAX_EXACT_FLOAT = 2**53
"""Up to which whole number all whole numbers are floats of 64 bits."""


class ColumnType(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The declared type of a column.

    Attributes:
        values: Arrow's name of the type of its values, such as ``uint8`` or ``timestamp[us, tz=Europe/Berlin]``; empty
            if the schema decides.
        index: Arrow's name of the index type of a dictionary, such as ``int8``; empty if the column is none.
        ordered: whether the categories of a dictionary are ordered.
        enum: whether a dictionary is an Enum of polars or DuckDB, whose categories are part of its type.
        pandas: how pandas stores the column.
    """

    values: str = ""
    index: str = ""
    ordered: bool = False
    enum: bool = False
    pandas: PandasFlavor = ""

    def __post_init__(self) -> None:
        if self.values:
            parse_type(self.values)
        if self.index and not pa.types.is_integer(parse_type(self.index)):
            raise ValueError(f"the index of a dictionary cannot be {self.index}")


ColumnTypes = Mapping[str, ColumnType]
"""The declared types of some columns, by name."""


def parse_type(name: str) -> pa.DataType:
    """The Arrow type of a name, as ``str(type)`` writes it; a ValueError if no column can have it."""
    if decimal := re.fullmatch(r"decimal(32|64|128|256)\((\d{1,2}), (-?\d{1,2})\)", name):
        make = getattr(pa, f"decimal{decimal[1]}")
        return make(int(decimal[2]), int(decimal[3]))
    if zoned := re.fullmatch(r"timestamp\[(s|ms|us|ns), tz=([\w/+:-]{1,64})\]", name, re.ASCII):
        return pa.timestamp(zoned[1], zoned[2])
    if name not in _NAMED_TYPES:
        raise ValueError(f"{name!r} is not the type of a column")
    return _NAMED_TYPES[name]


_NAMED_TYPES: dict[str, pa.DataType] = {
    str(kind): kind
    for kind in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.large_string(), pa.string_view(), pa.date64()),
        *(pa.timestamp(unit) for unit in _TICKS),
        *(pa.duration(unit) for unit in _TICKS),
        *(pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    )
}
"""The types without parameters that can be recorded."""

_CHOSEN_BY_READERS: dict[str, frozenset[pa.DataType]] = {
    "pandas": frozenset({pa.int64(), pa.large_string()}),
    "polars": frozenset({pa.int64(), pa.large_string(), pa.string_view(), pa.timestamp("us"), pa.time64("ns")}),
    "duckdb": frozenset({pa.int64(), pa.timestamp("us"), pa.time64("us")}),
    "arrow": frozenset({pa.int64(), pa.timestamp("s")}),
}
"""The types among these that a library gives to a column by itself. Types that are not in the list above are never
recorded: truth values, floats of 64 bits, texts, dates, and columns without values. pandas also has timestamps, see
``usual_pandas_unit``."""


def usual_pandas_unit() -> str:
    """The unit of the timestamps that pandas reads from texts: nanoseconds before version 3, then microseconds."""
    import pandas

    return np.datetime_data(pandas.to_datetime(["2020-01-01"]).dtype)[0]  # type: ignore[arg-type]


# ── what is recorded ─────────────────────────────────────────────────────────────────────────────────────────


def record_types(schema: Schema, columns: pa.Schema, library: str) -> dict[str, ColumnType]:
    """The declared types of the columns that a schema describes.

    Args:
        schema: what is public about the table.
        columns: the names and types of its columns.
        library: the one whose table it is: ``pandas``, ``polars``, ``duckdb``, or ``arrow`` for all others.
    """
    recorded = {}
    for name in schema.names:
        if columns.names.count(name) == 1:
            kind = _record_type(columns.field(name), library)
            if kind != ColumnType():
                recorded[name] = kind
    return recorded


def _record_type(field: pa.Field, library: str) -> ColumnType:
    metadata = field.metadata or {}
    flavor: Any = metadata.get(PANDAS_FLAVOR, b"").decode()
    chosen_by_readers = _CHOSEN_BY_READERS["arrow" if flavor == "pyarrow" else library]
    kind, index, ordered, enum = field.type, "", False, False
    if pa.types.is_dictionary(kind):
        enum = any(key.startswith(_POLARS_ENUM) for key in metadata)
        index, ordered, kind = str(kind.index_type), kind.ordered and not enum, kind.value_type
    usual = kind in chosen_by_readers or (library == "pandas" and not flavor and kind == _usual_pandas_timestamp())
    declared = "" if usual or not _can_be_recorded(kind) else str(kind)
    return ColumnType(values=declared, index=index, ordered=ordered, enum=enum, pandas=flavor)


def _usual_pandas_timestamp() -> pa.DataType:
    return pa.timestamp(usual_pandas_unit())


def _can_be_recorded(kind: pa.DataType) -> bool:
    try:
        return bool(parse_type(str(kind)) == kind)
    except ValueError:
        return False


# ── what synthetic columns get ───────────────────────────────────────────────────────────────────────────────


def restore_types(table: pa.Table | pa.RecordBatch, schema: Schema, types: ColumnTypes) -> Any:
    """Synthetic rows, with each recorded type that can hold all values of its attribute."""
    if not types:
        return table
    names = table.schema.names
    columns = [
        _restore_type(column, schema[name], types[name]) if name in types else column
        for name, column in zip(names, table.columns, strict=True)
    ]
    return type(table).from_arrays(columns, names=names)


def _restore_type(column: Any, attribute: Attribute, declared: ColumnType) -> Any:
    if isinstance(attribute, Identifier):  # new numbers, of which there may be any number
        return column
    if declared.index:
        return _as_categories(column, attribute, declared)
    if declared.values and holds_all_values(parse_type(declared.values), attribute):
        return _cast(column, parse_type(declared.values), _decimals_of(attribute))
    return column


def holds_all_values(kind: pa.DataType, attribute: Attribute) -> bool:
    """Whether a type can hold every value that an attribute may have; it depends on the schema alone."""
    match attribute:
        case Integer() | Real():
            return _holds_numbers(kind, attribute.low, attribute.high, _decimals_of(attribute))
        case Categorical():
            return _holds_listed(kind, attribute)
        case Datetime():
            return _holds_instants(kind, attribute)
        case Time():
            return bool(pa.types.is_time(kind)) and _TICKS[kind.unit] >= _CLOCK_PLACES.get(attribute.resolution, 0)
    return False


_CLOCK_PLACES = {"millisecond": 3, "microsecond": 6}
"""Decimal places of a second that a resolution needs."""


def _holds_listed(kind: pa.DataType, attribute: Categorical) -> bool:
    values = attribute.all_values()
    plain = build_value_array([*values, None]).type
    if pa.types.is_string(plain):
        return bool(pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
    if pa.types.is_boolean(plain):
        return False
    numbers: Any = values
    return _holds_numbers(kind, min(numbers), max(numbers), _decimals_of(attribute))


def _decimals_of(attribute: Attribute) -> int:
    """The decimal places that the numbers of an attribute may have."""
    if isinstance(attribute, Real):
        return attribute.decimal_places
    listed = attribute.all_values() if isinstance(attribute, Categorical) else ()
    places = [-int(Decimal(str(value)).as_tuple().exponent) for value in listed if isinstance(value, float)]
    return max([0, *places])


def _holds_numbers(kind: pa.DataType, low: float, high: float, decimals: int) -> bool:
    largest = max(abs(low), abs(high))
    if pa.types.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        return decimals == 0 and limits.min <= low and high <= limits.max
    if pa.types.is_floating(kind):
        return largest <= _EXACT_FLOATS[str(kind)] or (decimals > 0 and largest < np.finfo(kind.to_pandas_dtype()).max)
    if pa.types.is_decimal(kind):
        return decimals <= kind.scale and bool(largest < 10 ** (kind.precision - kind.scale))
    if pa.types.is_duration(kind):  # numbers of seconds
        return decimals <= _TICKS[kind.unit] and largest * 10 ** _TICKS[kind.unit] < 2**63
    return False


def _holds_instants(kind: pa.DataType, attribute: Datetime) -> bool:
    if pa.types.is_date(kind):
        return attribute.is_date
    if not pa.types.is_timestamp(kind):
        return False
    needed = {"ms": 3, "us": 6}.get(attribute.unit, 0)
    first, last = attribute.values_at(np.array([0, attribute.steps - 1])).astype("datetime64[s]").astype(np.int64)
    seconds = max(abs(int(first)), abs(int(last)) + 1)
    return _TICKS[kind.unit] >= needed and bool(seconds * 10 ** _TICKS[kind.unit] < 2**63)


def _cast(column: Any, kind: pa.DataType, decimals: int = 0) -> Any:
    """A column in a type that holds its values; ``decimals`` are the decimal places of numbers."""
    if pa.types.is_duration(kind):  # of a number of seconds
        steps = column if decimals == 0 else pc.round(pc.multiply(column, 10.0**decimals))
        return pc.multiply(steps.cast(pa.int64()), 10 ** (_TICKS[kind.unit] - decimals)).cast(kind)
    if pa.types.is_decimal(kind):
        return column.cast(pa.decimal256(76, decimals), safe=False).cast(kind)
    if pa.types.is_timestamp(kind) and kind.tz:  # values are counted in UTC
        return column.cast(pa.timestamp(kind.unit)).cast(pa.int64()).cast(kind)
    return column.cast(kind, safe=not pa.types.is_floating(kind))


def _as_categories(column: Any, attribute: Attribute, declared: ColumnType) -> Any:
    """A column whose categories are all values of the schema; unchanged if the schema lists no values."""
    if not isinstance(attribute, Categorical | Boolean):
        return column
    values = (False, True) if isinstance(attribute, Boolean) else attribute.all_values()
    plain = build_value_array(list(values))
    if plain.type != column.type:
        raise InternalError(f"the values of {attribute.name!r} are {plain.type}, but its column holds {column.type}")
    indices = pc.index_in(column, value_set=plain)
    categories = pa.array([canonical_text(value) for value in values], pa.string()) if declared.enum else plain
    if declared.values and holds_all_values(parse_type(declared.values), attribute):
        categories = _cast(categories, parse_type(declared.values), _decimals_of(attribute))
    index = parse_type(declared.index)
    if len(values) > np.iinfo(index.to_pandas_dtype()).max:
        index = MAX_CATEGORY_INDEX
    if isinstance(indices, pa.ChunkedArray):
        indices = indices.combine_chunks()
        indices = indices.chunk(0) if isinstance(indices, pa.ChunkedArray) else indices
    return pa.DictionaryArray.from_arrays(indices.cast(index), categories, ordered=declared.ordered)
