"""Ids of privacy units: which cells of an identifier name the same unit, and which name none."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from dpsyn.encoding import arrays
from dpsyn.encoding.entry_parser import entry_texts
from dpsyn.schema import Attribute

MAX_ID_BYTES = 10_000
"""Bytes of an id; every reader reads texts of this length whole."""


def normalize_ids(array: pa.Array, attribute: Attribute) -> pa.Array:
    """The ids of rows as texts without surrounding spaces; null for rows without an id.

    The integer 42, the float 42.0 and the texts "42" and "42.0" are the same id, because libraries convert them into
    each other: one empty cell turns all ids of a table or of a file into floats. Bytes that are not UTF-8 are kept,
    because different units must not get the same id. For the same reason a text with a replacement character, which
    stands for an entry without a text, and a text of more than ``MAX_ID_BYTES``, which readers may cut, is not an id.
    """
    texts = arrays.as_string(entry_texts(array))
    stripped = pc.ascii_trim_whitespace(texts)
    if pc.any(pc.match_substring(stripped, ".")).as_py():
        stripped = pc.replace_substring_regex(stripped.cast(pa.large_binary()), r"^([+-]?[0-9]+)\.0+$", r"\1")
        stripped = arrays.as_string(stripped)
    blanks = pa.array(["", "nan", "-nan", "+nan"], stripped.type)
    nulls = pa.array(attribute.null_spellings, stripped.type)
    empty = pc.or_(
        pc.is_in(pc.ascii_lower(stripped), blanks), pc.or_(pc.is_in(stripped, nulls), pc.is_in(texts, nulls))
    )
    empty = pc.or_(empty, pc.greater(pc.binary_length(stripped), MAX_ID_BYTES).fill_null(False))
    without_text = pc.match_substring(stripped.cast(pa.large_binary()), "\ufffd").fill_null(False)
    empty = pc.or_kleene(empty, without_text)
    return pc.if_else(empty, pa.scalar(None, stripped.type), stripped).cast(pa.large_binary())
