"""Cells as a file writes them → cells in plain spelling, which codecs read.

A file may write numbers with a decimal comma, points between thousands, and a percent sign, and codes for missing. The
schema declares it (``file``, and the fields of numbers). Here every cell is respelled by itself: ``1.234,5 %`` becomes
``1234.5``, and a code for missing becomes null. A text that is not a number in the declared signs must not pass for
another number, so it becomes unreadable: with a decimal comma ``1.5`` is no number. Cells that are not text are numbers
already; only codes for missing are looked up among them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dpsyn.encoding import arrays, entry_parser
from dpsyn.errors import SchemaError
from dpsyn.schema import Attribute, Categorical, Integer, NumberSigns, Real, Schema
from dpsyn.schema.file_syntax import PLAIN_NUMBERS, SPACES
from dpsyn.schema.ranges import number_signs

UNREADABLE_TEXT = "\ufffd".encode()
"""A text that no attribute has as a value."""

Respelling = Callable[[pa.Array], pa.Array]


def find_respellings(schema: Schema, typed_cells: bool = False) -> dict[str, Respelling]:
    """How the columns of a table become plain; columns that are plain are left out.

    With ``typed_cells``, as in a spreadsheet, numbers are plain anyway.
    """
    respellings = {}
    for attribute in schema:
        codes = [code for code in schema.syntax.missing_codes if not _is_value(attribute, code)]
        signs = PLAIN_NUMBERS if typed_cells else _number_signs(attribute, schema)
        if codes or not signs.are_plain:
            respellings[attribute.name] = respell_column(signs, codes, attribute.null_spellings)
    return respellings


def _number_signs(attribute: Attribute, schema: Schema) -> NumberSigns:
    file = schema.syntax
    if isinstance(attribute, Integer | Real):
        return number_signs(attribute, file)
    is_number = isinstance(attribute, Categorical) and entry_parser.are_numbers(attribute.all_values())
    return NumberSigns(decimal=file.decimal, thousands=file.thousands) if is_number else PLAIN_NUMBERS


def _is_value(attribute: Attribute, code: str) -> bool:
    """Whether a code for missing is a value of an attribute, which it then keeps."""
    if not attribute.coded:
        return False
    try:
        attribute.select(code)
    except SchemaError:
        return False
    return True


def respell_column(signs: NumberSigns, codes: Sequence[str], nulls: Sequence[str] = ()) -> Respelling:
    """A function that respells the cells of one column.

    Args:
        signs: the signs in the texts of numbers; plain ones leave texts as they are.
        codes: the codes for missing, which become null.
        nulls: texts that are left as they are, because the attribute knows them.
    """
    code_texts = pa.array([code.encode() for code in codes], pa.binary())
    numbers = [number for number in map(entry_parser.read_number, codes) if number is not None]
    respell_numbers = None if signs.are_plain else _NumberRespelling(signs, nulls)

    def respell(array: pa.Array) -> pa.Array:
        if pa.types.is_dictionary(array.type):
            plain = respell(array.dictionary)
            return pa.DictionaryArray.from_arrays(array.indices, plain, ordered=array.type.ordered)
        if arrays.is_number(array.type):
            return _drop_numbers(array, numbers) if numbers else array
        if not arrays.is_text(array.type):
            return array
        texts = arrays.as_binary(array)
        if codes:
            stripped = pc.ascii_trim_whitespace(arrays.as_string(texts)).cast(texts.type)
            is_code = pc.is_in(stripped, value_set=code_texts.cast(texts.type))
            texts = pc.if_else(is_code, pa.scalar(None, texts.type), texts)
        return texts if respell_numbers is None else respell_numbers(texts)

    return respell


def _drop_numbers(array: pa.Array, numbers: Sequence[float]) -> pa.Array:
    """Numbers of which some, the codes for missing, become null."""
    plain = arrays.widen_decimals(array)
    values = arrays.as_numbers(plain.cast(pa.float64(), safe=False))
    mask = values == numbers[0]
    for number in numbers[1:]:
        mask |= values == number
    return pc.if_else(pa.array(mask & ~arrays.null_mask(array)), pa.scalar(None, array.type), array)


class _NumberRespelling:
    """Texts of numbers in declared signs → plain ones, such as 1234.5."""

    def __init__(self, signs: NumberSigns, nulls: Sequence[str]) -> None:
        decimal = re.escape(signs.decimal)
        spaces = _any_of(SPACES)
        self._groups = _group_pattern(signs.thousands)
        whole = f"(?:[0-9]{{1,3}}(?:{self._groups}[0-9]{{3}})+|[0-9]+)" if self._groups else "[0-9]+"
        number = rf"(?:{whole}(?:{decimal}[0-9]*)?|{decimal}[0-9]+)(?:[eE][-+]?[0-9]+)?"
        symbol = re.escape(signs.symbol)
        before, after = (f"(?:{symbol}{spaces}?)?", f"(?:{spaces}?{symbol})?") if signs.symbol else ("", "")
        self._pattern = rf"^[-+]?{before}[-+]?{number}{after}$"
        self._signs, self._nulls = signs, frozenset(nulls)
        self._symbol = rf"{spaces}*{symbol}{spaces}*" if signs.symbol else ""

    def __call__(self, texts: pa.Array) -> pa.Array:
        plain = pc.ascii_trim_whitespace(arrays.as_string(texts)).cast(texts.type)
        fits = pc.match_substring_regex(plain, self._pattern)
        for pattern in (self._symbol, self._groups):
            if pattern:
                plain = pc.replace_substring_regex(plain, pattern, "")
        if self._signs.decimal != ".":
            plain = pc.replace_substring(plain, self._signs.decimal, ".")
        others = pc.if_else(fits.fill_null(True), pa.scalar(None, texts.type), texts)
        return pc.if_else(fits, plain, _map_distinct_texts(others, self._respell_other))

    def _respell_other(self, raw: bytes) -> bytes:
        """A text that is not a number in the declared signs: it stays, unless it is one in other signs."""
        text = entry_parser.text_of_bytes(raw).strip()
        number = None if text in self._nulls else entry_parser.read_number(text)
        return raw if number is None or abs(number) == math.inf else UNREADABLE_TEXT


def _group_pattern(thousands: str) -> str:
    """A pattern for the sign between groups of digits; empty if there is none."""
    if not thousands:
        return ""
    if thousands in SPACES:
        return _any_of(SPACES)
    return _any_of("'’") if thousands in "'’" else re.escape(thousands)


def _any_of(letters: str) -> str:
    """A pattern for one of some characters, which also fits where a pattern is applied to bytes."""
    return f"(?:{'|'.join(letters)})"


def _map_distinct_texts(texts: pa.Array, respell: Callable[[bytes], bytes]) -> pa.Array:
    encoded: Any = texts.dictionary_encode()
    values = pa.array([respell(value) for value in encoded.dictionary.to_pylist()], texts.type)
    return values.take(encoded.indices)


def respell_batch(batch: pa.RecordBatch, respellings: Mapping[str, Respelling]) -> pa.RecordBatch:
    """A batch in plain spelling; each cell is respelled by itself."""
    if not respellings:
        return batch
    columns = zip(batch.schema.names, batch.columns, strict=True)
    plain = [respellings[name](column) if name in respellings else column for name, column in columns]
    return pa.RecordBatch.from_arrays(plain, names=batch.schema.names)
