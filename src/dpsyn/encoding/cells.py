"""How one text cell is read. This is the specification; ``columns`` reads whole arrays by it, faster.

A cell is always read by itself: what it becomes never depends on the cells around it. Otherwise one person's
row could change the codes of another's, and a marginal would have more than its sensitivity.
"""

from __future__ import annotations

import math
import re
from collections import Counter

import pyarrow as pa

from dpsyn.encoding import arrays
from dpsyn.schema import Attribute, Value

_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_WHOLE = re.compile(r"[-+]?[0-9]+", re.ASCII)
_INFINITE = re.compile(r"[-+]?inf(?:inity)?", re.ASCII | re.IGNORECASE)
_MAX_NUMBER_DIGITS = 4_000
"""Python refuses to read much longer numbers; they are infinite for our purposes."""

TRUE_SPELLINGS = frozenset({"true", "t", "yes", "y", "1", "1.0", "on"})
FALSE_SPELLINGS = frozenset({"false", "f", "no", "n", "0", "0.0", "off"})


def text_of_bytes(raw: bytes) -> str:
    """Text of any bytes; those that are not UTF-8 become replacement marks."""
    return raw.decode("utf-8", errors="replace")


def text_of_cell(value: object) -> str | None:
    """The text of a cell of any type, in the spelling that categories are compared in; None if it is null."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return text_of_bytes(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def bytes_of_object(value: object) -> bytes | None:
    """The text of any Python object as bytes; a replacement mark for one that has none, whatever the reason."""
    try:
        if str(value) in ("<NA>", "NaT") and type(value).__module__.startswith("pandas"):
            return None
        text = text_of_cell(value)
        return None if text is None else text.encode("utf-8", "replace")
    except Exception:  # an object's own methods may raise anything, and one cell must not stop the reading
        return "\ufffd".encode()


def read_number(text: str) -> int | float | None:
    """A number in plain or scientific notation; None if it is not one.

    Spaces around it do not matter. Groups of digits ("1,234") are not read, because the comma is a decimal
    sign to half of the world.
    """
    bare = text.strip()
    if _WHOLE.fullmatch(bare) and len(bare) <= _MAX_NUMBER_DIGITS:
        return int(bare)
    if _NUMBER.fullmatch(bare) or _INFINITE.fullmatch(bare):
        return float(bare)
    return None


def read_boolean(text: str) -> bool | None:
    """A truth value in one of its usual spellings; None if it is not one."""
    word = text.strip().lower()
    if word in TRUE_SPELLINGS:
        return True
    return False if word in FALSE_SPELLINGS else None


def is_blank(text: str) -> bool:
    """Whether a cell holds nothing, or a float's not-a-number, which means the same."""
    return text.strip().lower() in ("", "nan", "-nan", "+nan")


def are_numbers(values: tuple[Value, ...]) -> bool:
    """Whether all values are numbers, so that cells can be compared with them as numbers."""
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


# ── The text of whole columns, each cell spelled as lists of values compare it ──


def cell_texts(array: pa.Array) -> pa.Array:
    """The bytes of the text of every cell, spelled as ``records`` compares it; nulls stay null."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return cell_texts(array.dictionary).take(array.indices)
    if pa.types.is_null(kind):
        return pa.nulls(len(array), pa.large_binary())
    if pa.types.is_floating(kind):
        array = _as_integers_if_whole(array)
    if arrays.is_text(array.type):
        texts = arrays.as_binary(array)
    elif pa.types.is_integer(array.type) or pa.types.is_boolean(kind) or arrays.is_instant(kind) or _is_time(kind):
        texts = arrays.drop_time_zone(array).cast(pa.large_string())
    else:
        texts = _texts_by_dictionary(array)
    return texts.cast(pa.large_binary())


def _as_integers_if_whole(array: pa.Array) -> pa.Array:
    """Floats as whole numbers if all of them are; they have the same texts and are written faster."""
    try:
        return array.cast(pa.int64())
    except pa.ArrowInvalid:
        return array.cast(pa.float64())


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_time(kind))


def _texts_by_dictionary(array: pa.Array) -> pa.Array:
    encoded = array.dictionary_encode()
    words = [text_of_cell(value) for value in encoded.dictionary.to_pylist()]
    return pa.array([None if word is None else word.encode() for word in words], pa.large_binary()).take(
        encoded.indices
    )


def count_texts(array: pa.Array, attribute: Attribute) -> Counter[str]:
    """How often each text occurs, without spaces around it and without what counts as empty."""
    counts: Counter[str] = Counter()
    for pair in cell_texts(array).value_counts().to_pylist():
        if pair["values"] is not None:
            text = text_of_bytes(pair["values"])
            if not _is_empty(text, attribute):
                counts[text.strip()] += pair["counts"]
    return counts


def _is_empty(text: str, attribute: Attribute) -> bool:
    nulls = attribute.null_spellings
    return is_blank(text) or text in nulls or text.strip() in nulls
