"""The text of whole columns, each cell spelled as lists of values compare it."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from dpsyn.records import arrays
from dpsyn.records.cells import is_blank, text_of_bytes, text_of_cell
from dpsyn.schema import Attribute


def texts_of(array: pa.Array) -> pa.Array:
    """The bytes of the text of every cell, spelled as ``records`` compares it; nulls stay null."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return texts_of(array.dictionary).take(array.indices)
    if pa.types.is_null(kind):
        return pa.nulls(len(array), pa.large_binary())
    if pa.types.is_floating(kind):
        array = _whole_where_possible(array)
    if arrays.is_text(array.type):
        texts = arrays.as_binary(array)
    elif pa.types.is_integer(array.type) or pa.types.is_boolean(kind) or arrays.is_instant(kind) or _is_time(kind):
        texts = arrays.without_zone(array).cast(pa.large_string())
    else:
        texts = _each_once(array)
    return texts.cast(pa.large_binary())


def _whole_where_possible(array: pa.Array) -> pa.Array:
    """Floats as whole numbers if all of them are; they have the same texts and are written faster."""
    try:
        return array.cast(pa.int64())
    except pa.ArrowInvalid:
        return array.cast(pa.float64())


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_time(kind))


def _each_once(array: pa.Array) -> pa.Array:
    encoded = array.dictionary_encode()
    words = [text_of_cell(value) for value in encoded.dictionary.to_pylist()]
    return pa.array([None if word is None else word.encode() for word in words], pa.large_binary()).take(
        encoded.indices
    )


def count_texts(array: pa.Array, attribute: Attribute) -> Counter[str]:
    """How often each text occurs, without spaces around it and without what counts as empty."""
    counts: Counter[str] = Counter()
    for pair in texts_of(array).value_counts().to_pylist():
        if pair["values"] is not None:
            text = text_of_bytes(pair["values"])
            if not _means_nothing(text, attribute):
                counts[text.strip()] += pair["counts"]
    return counts


def _means_nothing(text: str, attribute: Attribute) -> bool:
    nulls = attribute.null_spellings
    return is_blank(text) or text in nulls or text.strip() in nulls
