"""How one entry of a table is read. This is the specification; ``column_codecs`` reads whole arrays faster, by it.

An entry is always read by itself: its code never depends on other entries. Otherwise one person's row could change the
codes of another person's row, and a marginal would have a larger sensitivity than the one that is charged.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from dpsyn.encoding import arrays
from dpsyn.schema import Attribute, Value

_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_WHOLE = re.compile(r"[-+]?[0-9]+", re.ASCII)
_INFINITE = re.compile(r"[-+]?inf(?:inity)?", re.ASCII | re.IGNORECASE)
_MAX_NUMBER_DIGITS = 4_000
"""Python refuses to read much longer integers, so those are read as floats, which are infinite at this size."""

TRUE_SPELLINGS = frozenset({"true", "t", "yes", "y", "1", "1.0", "on"})
FALSE_SPELLINGS = frozenset({"false", "f", "no", "n", "0", "0.0", "off"})


def text_of_bytes(raw: bytes) -> str:
    """Decode any bytes as UTF-8; invalid bytes become replacement characters."""
    return raw.decode("utf-8", errors="replace")


def text_of_entry(value: object) -> str | None:
    """The text of an entry of any type, in the spelling that listed values are compared with; None if it is null."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return text_of_bytes(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, dt.datetime):
        instant = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
        text = str(instant)
        return text.rstrip("0").removesuffix(".") if "." in text else text
    if isinstance(value, dt.timedelta):
        return _seconds_text(value // dt.timedelta(microseconds=1))
    return str(value)


def _seconds_text(micros: int) -> str:
    """A duration as a number of seconds."""
    whole, fraction = divmod(abs(micros), 1_000_000)
    return f"{'-' * (micros < 0)}{whole}{f'.{fraction:06}'.rstrip('0') if fraction else ''}"


def bytes_of_object(value: object) -> bytes | None:
    """The text of any Python object as bytes; a replacement character if the object cannot be converted.

    Bytes and surrogates, which are no text, are kept: different ids must stay different.
    """
    try:
        if isinstance(value, bytes):
            return value
        if str(value) in ("<NA>", "NaT") and type(value).__module__.startswith("pandas"):
            return None
        value = value.item() if isinstance(value, np.bool_ | np.number) else value
        text = text_of_entry(value.real if isinstance(value, complex) and not value.imag else value)
        return None if text is None else text.encode("utf-8", "surrogatepass")
    except (Exception, SystemExit):  # an object's own methods may raise anything; one entry must not stop the reading
        return "\ufffd".encode()


def bytes_of_objects(values: Iterable[object]) -> list[bytes | None]:
    """The texts of Python objects as bytes, see ``bytes_of_object``.

    Privacy: an object's own methods may issue warnings, which would be printed and could quote the object.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [bytes_of_object(value) for value in values]


def read_number(text: str) -> int | float | None:
    """Read a number in plain or scientific notation; None if the text is not one.

    Surrounding spaces are ignored. Groups of digits ("1,234") are not read, because many countries use the comma as
    the decimal separator.
    """
    stripped = text.strip()
    if _WHOLE.fullmatch(stripped) and len(stripped) <= _MAX_NUMBER_DIGITS:
        return int(stripped)
    if _NUMBER.fullmatch(stripped) or _INFINITE.fullmatch(stripped):
        return float(stripped)
    return None


def read_boolean(text: str) -> bool | None:
    """Read a truth value in one of its usual spellings; None if the text is not one."""
    word = text.strip().lower()
    if word in TRUE_SPELLINGS:
        return True
    return False if word in FALSE_SPELLINGS else None


def is_blank(text: str) -> bool:
    """Whether a text is empty, blank, or the not-a-number of floats, which means the same."""
    return text.strip().lower() in ("", "nan", "-nan", "+nan")


def are_numbers(values: tuple[Value, ...]) -> bool:
    """Whether all listed values are numbers; then entries are compared with them as numbers."""
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


# ── texts of whole columns ───────────────────────────────────────────────────────────────────────────────────


def entry_texts(array: pa.Array) -> pa.Array:
    """The text of every entry as bytes, in the spelling of ``text_of_entry``; nulls stay null.

    Every type has texts, also lists and structures, which no kind of attribute has as values. The text of a duration is
    its number of seconds.
    """
    kind = array.type
    if pa.types.is_dictionary(kind):
        return entry_texts(array.dictionary).take(array.indices)
    if pa.types.is_null(kind):
        return pa.nulls(len(array), pa.large_binary())
    if pa.types.is_floating(kind):
        array = _as_integers_if_whole(array)
    if arrays.is_text(array.type):
        texts = arrays.as_binary(array)
    elif pa.types.is_integer(array.type) or pa.types.is_boolean(kind):
        texts = array.cast(pa.large_string())
    elif arrays.is_instant(kind) or pa.types.is_time(kind):
        texts = arrays.instant_texts(array)
    elif arrays.is_number(array.type):
        texts = _texts_by_dictionary(array)
    elif pa.types.is_duration(kind):
        distinct = arrays.floor_to_microseconds(array).dictionary_encode()
        texts = pa.array(map(_bytes_of_scalar, distinct.dictionary), pa.large_binary()).take(distinct.indices)
    else:
        texts = pa.array([_bytes_of_scalar(scalar) for scalar in array], pa.large_binary())
    return texts.cast(pa.large_binary())


def _bytes_of_scalar(scalar: pa.Scalar) -> bytes | None:
    try:
        return bytes_of_object(scalar.as_py())
    except Exception:  # Python may have no such value, and one entry must not stop the reading
        return "\ufffd".encode()


def _as_integers_if_whole(array: pa.Array) -> pa.Array:
    """Convert floats to integers if all of them are whole: the texts are the same and are written faster."""
    try:
        return array.cast(pa.int64())
    except pa.ArrowInvalid:
        return array.cast(pa.float64())


def _texts_by_dictionary(array: pa.Array) -> pa.Array:
    encoded = arrays.widen_decimals(array).dictionary_encode()
    texts = [text_of_entry(value) for value in encoded.dictionary.to_pylist()]
    return pa.array([None if text is None else text.encode() for text in texts], pa.large_binary()).take(
        encoded.indices
    )


def count_texts(array: pa.Array, attribute: Attribute) -> Counter[str]:
    """Count the texts of an attribute, without surrounding spaces; empty and missing entries are left out."""
    counts: Counter[str] = Counter()
    nulls = attribute.null_spellings
    for pair in entry_texts(array).value_counts().to_pylist():
        if pair["values"] is not None:
            text = text_of_bytes(pair["values"])
            if not (is_blank(text) or text in nulls or text.strip() in nulls):
                counts[text.strip()] += pair["counts"]
    return counts
