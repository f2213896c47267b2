"""Ids that tell persons apart, and keyed hashes of texts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsyn.engines import kernels
from dpsyn.records import arrays
from dpsyn.records.texts import texts_of
from dpsyn.schema import Attribute

_NO_TEXT = b"\xff null"
"""What is hashed for a null; no text in UTF-8 is like it."""


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
