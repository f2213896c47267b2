"""Helpers for Arrow arrays, their types, and numpy arrays of codes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_TYPES = pa.types


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type of an array's values: for a dictionary-encoded array, that of its dictionary."""
    return kind.value_type if _TYPES.is_dictionary(kind) else kind


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is text or raw bytes, in any of Arrow's layouts."""
    return bool(
        _TYPES.is_string(kind)
        or _TYPES.is_large_string(kind)
        or _TYPES.is_string_view(kind)
        or _TYPES.is_binary(kind)
        or _TYPES.is_large_binary(kind)
        or _TYPES.is_binary_view(kind)
        or _TYPES.is_fixed_size_binary(kind)
    )


def is_number(kind: pa.DataType) -> bool:
    """Whether a type is an integer, a floating-point or a decimal type."""
    return bool(_TYPES.is_integer(kind) or _TYPES.is_floating(kind) or _TYPES.is_decimal(kind))


def is_instant(kind: pa.DataType) -> bool:
    """Whether a type is a date or a timestamp."""
    return bool(_TYPES.is_date(kind) or _TYPES.is_timestamp(kind))


def is_scalar(kind: pa.DataType) -> bool:
    """Whether every entry of a type is one plain value: text, a number, a truth value, a date, a time or a duration."""
    return (
        is_text(kind)
        or is_number(kind)
        or is_instant(kind)
        or bool(_TYPES.is_boolean(kind) or _TYPES.is_null(kind) or _TYPES.is_time(kind) or _TYPES.is_duration(kind))
    )


def as_binary(array: pa.Array) -> pa.Array:
    """The raw bytes of a text array, neither checked nor decoded."""
    kind = array.type
    if _TYPES.is_binary(kind) or _TYPES.is_large_binary(kind):
        return array
    if _TYPES.is_string_view(kind):
        array = array.cast(pa.large_string())
    return array.cast(pa.large_binary() if _TYPES.is_large_string(array.type) else pa.binary())


def as_string(array: pa.Array) -> pa.Array:
    """View raw bytes as text without checking them; only for Arrow kernels that accept any bytes."""
    kind = pa.large_string() if _TYPES.is_large_binary(array.type) else pa.string()
    return pa.Array.from_buffers(kind, len(array), array.buffers(), array.null_count, array.offset)


def drop_time_zone(array: pa.Array) -> pa.Array:
    """Timestamps as UTC without a time zone. The name of the zone is not used, because it may be unknown."""
    kind = array.type
    if not _TYPES.is_timestamp(kind) or kind.tz is None:
        return array
    return array.view(pa.int64()).view(pa.timestamp(kind.unit))


def widen_decimals(array: pa.Array) -> pa.Array:
    """Decimals in the precision for which Arrow has all kernels; any other array as it is."""
    kind = array.type
    if not _TYPES.is_decimal(kind) or _TYPES.is_decimal256(kind):
        return array
    return array.cast(pa.decimal128(38, kind.scale))


def floor_to_microseconds(array: pa.Array) -> pa.Array:
    """Durations of nanoseconds in microseconds, rounded down, because Python has no finer ones; others as they are."""
    if array.type.unit != "ns":
        return array
    ticks = as_numbers(array.view(pa.int64())) // 1000
    return pa.array(ticks, mask=null_mask(array)).view(pa.duration("us"))


def instant_texts(array: pa.Array) -> pa.Array:
    """Dates, timestamps and times of day as text, in UTC; fractions of a second without trailing zeros.

    The unit of a type says how many digits would be written, and one entry can decide about the unit.
    """
    texts = drop_time_zone(array).cast(pa.large_string())
    if getattr(array.type, "unit", "s") == "s":
        return texts
    return pc.replace_substring_regex(texts, r"(\.[0-9]*[1-9])0+$|\.0+$", r"\1")


def null_mask(array: pa.Array) -> NDArray[np.bool_]:
    """Which entries of an array are null."""
    mask: NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    return mask


def as_numbers(array: pa.Array) -> NDArray[Any]:
    """Convert a numeric or boolean array to a writable numpy array; nulls become zero."""
    values: NDArray[Any] = array.fill_null(pa.scalar(0, array.type)).to_numpy(zero_copy_only=False)
    return values if values.flags.writeable else values.copy()


def as_instants(array: pa.Array) -> NDArray[np.datetime64]:
    """Convert dates or timestamps to numpy instants, in microseconds or a coarser unit; nulls become 1970."""
    kind = array.type
    if _TYPES.is_date32(kind):
        return as_numbers(array.view(pa.int32())).astype(np.int64).view("datetime64[D]")
    unit = "ms" if _TYPES.is_date64(kind) else kind.unit
    ticks = as_numbers(array.view(pa.int64()))
    if unit == "ns":
        return (ticks // 1000).view("datetime64[us]")
    return ticks.view(f"datetime64[{unit}]")


def as_microseconds(array: pa.Array) -> NDArray[np.int64]:
    """Convert times of day to microseconds since midnight; nulls become midnight."""
    kind = array.type
    ticks = as_numbers(array.view(pa.int32() if _TYPES.is_time32(kind) else pa.int64())).astype(np.int64)
    return ticks // 1000 if kind.unit == "ns" else ticks * {"s": 1_000_000, "ms": 1_000, "us": 1}[kind.unit]


def contingency_table(columns: Sequence[NDArray[Any]], shape: Sequence[int]) -> NDArray[np.int64]:
    """Count rows into the contingency table of a clique.

    Use this for rows that are already in memory, such as sampled records; ``MarginalCounter`` counts private tables.

    Args:
        columns: the codes of every row, one array for each attribute of the clique; at least one attribute.
        shape: the number of codes of each attribute.
    """
    cells = np.ravel_multi_index(tuple(columns), tuple(shape))
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)


def map_distinct(
    array: pa.Array, read: Callable[[Any], tuple[Any, int]], dtype: np.dtype[Any]
) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """Read every entry as a value and a status; ``read`` is called once for each distinct entry, and for null."""
    encoded = array.dictionary_encode()
    pairs: Sequence[tuple[Any, int]] = [read(entry) for entry in [*encoded.dictionary.to_pylist(), None]]
    values = np.array([value for value, _ in pairs], dtype)
    statuses = np.array([status for _, status in pairs], np.uint8)
    indices = encoded.indices.fill_null(len(pairs) - 1).to_numpy(zero_copy_only=False)
    return values[indices], statuses[indices]
