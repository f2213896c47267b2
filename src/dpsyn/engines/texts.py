"""The text of whole columns: of open attributes, whose values are bought, and of ids."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsyn.engines import kernels
from dpsyn.records import arrays
from dpsyn.records.cells import is_blank, text_of_bytes, text_of_cell
from dpsyn.schema import Attribute

_NO_TEXT = b"\xff null"
"""What is hashed for a null; no text in UTF-8 is like it."""


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


def ids_of(array: pa.Array, attribute: Attribute) -> pa.Array:
    """Texts that tell persons apart: without spaces around them; null for rows without an id.

    The whole number 42, the float 42.0 and the text "42" are the same id, because files and databases turn them into
    each other. Bytes that are not UTF-8 stay as they are: persons must not be mistaken for one another.
    """
    texts = arrays.as_string(texts_of(array))
    bare = pc.ascii_trim_whitespace(texts)
    nothing = pa.array(["", "nan", "-nan", "+nan"], bare.type)
    spelled = pa.array(attribute.null_spellings, bare.type)
    empty = pc.or_(pc.is_in(pc.ascii_lower(bare), nothing), pc.or_(pc.is_in(bare, spelled), pc.is_in(texts, spelled)))
    return pc.if_else(empty, pa.scalar(None, bare.type), bare).cast(pa.large_binary())


def hashes_of(texts: pa.Array, key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A keyed hash of every text of an array of bytes; nulls have one too."""
    filled = texts.fill_null(_NO_TEXT)
    _, ends, data = filled.buffers()
    offsets = np.frombuffer(ends, np.int64, len(filled) + 1, 8 * filled.offset).copy() if len(filled) else np.zeros(1)
    raw = np.frombuffer(data, np.uint8).copy() if data is not None and data.size else np.zeros(0, np.uint8)
    hashes = np.empty(len(filled), np.uint64)
    kernels.hash_texts(raw, offsets.astype(np.int64), key, hashes)
    return hashes
