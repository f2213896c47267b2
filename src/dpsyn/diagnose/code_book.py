"""The code book of an SPSS, Stata or SAS file, in the draft of a schema.

Labels of values say which values are possible, also those that occur in no row, and codes for missing values are
declared there: this is what a draft can otherwise only guess. Files keep codes, so the schema lists codes; their labels
are written into the description.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpsyn.diagnose.profile import ColumnProfile
from dpsyn.encoding.entry_parser import read_number, text_of_entry
from dpsyn.schema.attributes import NULL_SPELLINGS, canonical_text
from dpsyn.sources import Source

MAX_RANGE_CODES = 50
"""Whole numbers of a range of missing values that are listed one by one; of a longer one, those with a label are."""

MAX_DESCRIBED_VALUES = 40
"""Labels of values that a description lists."""


def missing_codes(source: Source) -> dict[str, list[str]]:
    """For each column with codes for missing values in the code book of its file, the codes as texts."""
    book: Any = getattr(source, "code_book", None)
    if book is None:
        return {}
    labels: Mapping[str, Mapping[Any, str]] = book.value_labels
    return {
        name: sorted({code for low, high in ranges for code in _codes_between(low, high, labels.get(name, {}))})
        for name, ranges in book.missing.items()
    }


def _codes_between(low: Any, high: Any, labels: Mapping[Any, str]) -> list[str]:
    if low == high or not all(isinstance(end, int | float) for end in (low, high)):
        return [_text(low)]
    if high - low < MAX_RANGE_CODES and float(low).is_integer():
        return [str(number) for number in range(int(low), int(high) + 1)]
    return [_text(value) for value in labels if isinstance(value, int | float) and low <= value <= high]


def apply_code_book(
    source: Source, table_codes: Sequence[str], name: str, guess: tuple[dict[str, Any], str], profile: ColumnProfile
) -> tuple[dict[str, Any], str]:
    """The drafted fields of a column and their comment, completed by the code book of its file.

    ``table_codes`` are the codes for missing of the whole table.
    """
    fields, comment = guess
    book: Any = getattr(source, "code_book", None)
    if book is None:
        return fields, comment
    codes = missing_codes(source).get(name, [])
    labels = {_text(value): label for value, label in book.value_labels.get(name, {}).items()}
    empty = {*codes, *(code for code in table_codes if code not in profile.counts)}
    proper = [value for value in labels if value not in empty]
    if proper and set(profile.counts) <= set(labels):
        kind = "ordinal" if name in book.ordinal else "categorical"
        fields = {"kind": kind, "values": [_as_value(value) for value in proper]}
        fields |= {"missing": True} if profile.empties else {}
        comment = "the values with a label in the file"
    if codes:
        fields, left = _keep_codes_out(fields, codes, profile)
        spelled = [text for text in profile.empties if text and text not in NULL_SPELLINGS]
        fields |= {"missing": sorted({*left, *spelled})} if left else {}
        comment += "; missing values as in the file" if left else ""
    described = "; ".join(f"{value} = {label}" for value, label in list(labels.items())[:MAX_DESCRIBED_VALUES])
    description = ". ".join(filter(None, [book.labels.get(name, ""), described]))
    return {**fields, **({"description": description} if description else {})}, comment


def _keep_codes_out(
    fields: dict[str, Any], codes: list[str], profile: ColumnProfile
) -> tuple[dict[str, Any], list[str]]:
    """Bounds without the codes beyond all values, and the codes that are outside; others cannot be told from values."""
    if fields["kind"] not in ("integer", "real"):
        return fields, [code for code in codes if code not in map(canonical_text, fields.get("values", ()))]
    step = 10 ** -fields.get("decimals", 0)
    bounds = dict(fields)
    left = []
    for code in codes:
        number = read_number(code)
        if number is not None and bounds["low"] <= number <= bounds["high"]:
            if profile.high is not None and number > profile.high:
                bounds["high"] = number - step
            elif profile.low is not None and number < profile.low:
                bounds["low"] = number + step
            else:
                continue
        left.append(code)
    return bounds, left


def _text(value: Any) -> str:
    return text_of_entry(value) or ""


def _as_value(text: str) -> str | int | float:
    number = read_number(text)
    return text if number is None else number
