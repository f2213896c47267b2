"""Relations between columns that a draft proposes: derived columns and hierarchies, sums, orders, repetitions.

They are searched in the first rows only, so a proposal is a question: it is kept if the relation holds by definition.

Privacy: part of the draft, which is private. A proposed entry has ``provenance: data`` and a remark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsyn.diagnose.profile import read_date
from dpsyn.encoding.entry_parser import entry_texts, read_number
from dpsyn.errors import SchemaError
from dpsyn.schema import files, parse_instant, yaml_io
from dpsyn.schema.approval import draft_digest

MAX_COMPARED_ROWS = 20_000
"""Rows in which relations are searched."""

MIN_COMPARED_ROWS = 100
"""Rows that a relation must hold in; in fewer it may hold by chance."""

MIN_ROWS_PER_VALUE = 5
"""Rows per value of a column, on average, from which another column may follow from it."""

MAX_RELATED_COLUMNS = 300
"""Columns among which relations are searched; all pairs of more would take minutes."""

MAX_SUM_COLUMNS = 40
"""Numeric columns among which sums are searched."""

FITTED_ROWS = 2_000
"""Rows from which the parts of a sum are guessed; all others confirm it."""

_REMARK = "it holds in the rows that were read; keep it only if it holds by definition, otherwise remove this entry"
_LOW_AND_HIGH = (("min", "max"), ("von", "bis"), ("from", "to"), ("start", "end"), ("low", "high"), ("first", "last"))


@dataclass(frozen=True, slots=True)
class SampledColumn:
    """The cells of a column as codes of its distinct texts; −1 for an empty cell."""

    name: str
    fields: Mapping[str, Any]
    codes: NDArray[np.int64]
    texts: Sequence[str]

    @property
    def is_list(self) -> bool:
        """Whether the column has a list of values, and at least two of them occur."""
        return self.fields["kind"] in ("categorical", "ordinal") and len(self.texts) >= 2

    def numbers(self) -> NDArray[np.float64]:
        """The cells as numbers or days; NaN where there is none."""
        values = [_as_number(text, self.fields) for text in self.texts]
        return np.array([*values, np.nan])[self.codes]


def read_columns(entries: Mapping[str, Mapping[str, Any]], rows: Sequence[pa.RecordBatch]) -> list[SampledColumn]:
    """The columns of these entries in the first rows of a table; none if there are too few rows to compare."""
    if sum(batch.num_rows for batch in rows) < MIN_COMPARED_ROWS:
        return []
    table = pa.Table.from_batches(rows)
    first = list(entries.items())[:MAX_RELATED_COLUMNS]
    return [_read_column(name, fields, table.column(name)) for name, fields in first]


def find_repetitions(columns: Sequence[SampledColumn]) -> dict[str, str]:
    """The columns whose cells are those of another column in every row, with the name of the first of them.

    Columns of listed values are not among them: for these a derivation is proposed.
    """
    first: dict[tuple[str, ...], SampledColumn] = {}
    repeated: dict[str, str] = {}
    for column in columns:
        if column.is_list or len(column.texts) < 2:
            continue
        known = first.setdefault(tuple(column.texts), column)
        if known is not column and np.array_equal(known.codes, column.codes):
            repeated[column.name] = known.name
    return repeated


def propose_relations(document: dict[str, Any], columns: Sequence[SampledColumn]) -> None:
    """Add the relations that hold in these columns to the document of a draft."""
    for section, key, entry in (*_find_derivations(columns), *_find_sums(columns), *_find_orders(columns)):
        marked = {**entry, "provenance": "data", "remark": _REMARK, "drafted": draft_digest(entry)}
        _add_entry(document, section, key, marked)


def _add_entry(document: dict[str, Any], section: str, key: str, entry: dict[str, Any]) -> None:
    """Add an entry to a section, unless the schema would not be valid with it."""
    old = document.get(section)
    new: Any = [*(old or []), entry] if section == "rules" else {**(old or {}), key: entry}
    try:
        files.parse_schema(yaml_io.write_yaml({**document, section: new}))
    except SchemaError:
        return
    document[section] = new


Proposal = tuple[str, str, dict[str, Any]]
"""The section, the key and the fields of a proposed entry."""


def _read_column(name: str, fields: Mapping[str, Any], cells: pa.ChunkedArray) -> SampledColumn:
    texts = pa.chunked_array([entry_texts(chunk) for chunk in cells.chunks], pa.large_binary()).combine_chunks()
    encoded = pc.dictionary_encode(texts)
    words = [text.decode("utf-8", "replace").strip() for text in encoded.dictionary.to_pylist()]
    missing = fields.get("missing", False)
    empty = {"", "NA", "NaN", "nan", "NULL", "null", "None"} if missing is True else {*missing} if missing else set()
    distinct = {text: code for code, text in enumerate(dict.fromkeys(word for word in words if word not in empty))}
    new = np.array([*(distinct.get(word, -1) for word in words), -1], np.int64)
    codes = encoded.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)
    return SampledColumn(name, fields, new[codes], list(distinct))


def _as_number(text: str, fields: Mapping[str, Any]) -> float:
    if fields["kind"] == "datetime":
        formats = fields.get("format") or ()
        dates = (read_date(text, form) for form in ((formats,) if isinstance(formats, str) else formats))
        instant = next(filter(None, dates), None) or parse_instant(text)
        return np.nan if instant is None else instant.toordinal()
    number = read_number(text)
    return np.nan if number is None else number


# ── columns that follow from another ────────────────────────────────────────────────────────────────────────────────


def _find_derivations(columns: Sequence[SampledColumn]) -> Iterator[Proposal]:
    """Columns that follow from another one: derived from the one with the fewest values that itself follows from none.

    Of two columns that determine each other, the first is kept.
    """
    sources = [column for column in columns if column.is_list or column.fields["kind"] == "integer"]
    rank = {column.name: (len(column.texts), -position) for position, column in enumerate(sources)}
    following = {
        target.name: [
            source for source in sources if rank[source.name] > rank[target.name] and _follows(target, source)
        ]
        for target in sources
        if target.is_list
    }
    known = {name for name, found in following.items() if found}
    for target in columns:
        roots = [source for source in following.get(target.name, ()) if source.name not in known]
        for source in sorted(roots, key=lambda column: len(column.texts)):
            if mapping := _derive_mapping(target, source):
                yield "derive", target.name, {"from": source.name, **mapping}
                break


def _follows(target: SampledColumn, source: SampledColumn) -> bool:
    """Whether each value of the source has one value of the target, in enough rows; the first few rule most out."""
    if len(source.codes) < MIN_ROWS_PER_VALUE * len(source.texts):
        return False
    return all(_determines(source.codes[:rows], target.codes[:rows]) for rows in (200, len(source.codes)))


def _determines(source: NDArray[np.int64], target: NDArray[np.int64]) -> bool:
    first = np.full(source.max() + 2, -2)
    first[source] = target
    return bool((first[source] == target).all())


def _derive_mapping(target: SampledColumn, source: SampledColumn) -> dict[str, Any] | None:
    """The mapping of a derivation; by ranges if the source is a number whose values are grouped."""
    firsts = dict(zip(source.codes.tolist(), target.codes.tolist(), strict=True))
    labels = [_find_listed_value(target, text) for text in target.texts]
    value_of = {code: "missing" if label < 0 else labels[label] for code, label in firsts.items()}
    if source.is_list:
        mapping = {source.texts[code]: value for code, value in value_of.items() if code >= 0}
        missing = {"missing": value_of[-1]} if -1 in value_of else {}
        listed = {str(value) for value in source.fields["values"]}
        left = listed - set(mapping)
        return {"mapping": mapping | missing, **({"otherwise": target.fields["values"][0]} if left else {})}
    numbers = sorted((_as_number(text, source.fields), value_of[code]) for code, text in enumerate(source.texts))
    return _range_mapping(numbers, source.fields, value_of.get(-1))


def _range_mapping(
    numbers: Sequence[tuple[float, Any]], fields: Mapping[str, Any], missing: Any
) -> dict[str, Any] | None:
    """Ranges of the source that have one value each, without gaps between them; None if a value has several ranges."""
    starts = [(int(number), value) for i, (number, value) in enumerate(numbers) if i == 0 or value != numbers[i - 1][1]]
    if len({value for _, value in starts}) < len(starts):
        return None
    ends = [start - 1 for start, _ in starts[1:]] + [fields["high"]]
    lows = [fields["low"], *(start for start, _ in starts[1:])]
    mapping = {f"{low}..{high}": value for low, high, (_, value) in zip(lows, ends, starts, strict=True)}
    return {"mapping": mapping | ({} if missing is None else {"missing": missing})}


def _find_listed_value(column: SampledColumn, text: str) -> Any:
    """The value of the list that a text stands for; a whole number if the list has numbers."""
    return next((value for value in column.fields["values"] if str(value) == text), text)


# ── sums and orders ─────────────────────────────────────────────────────────────────────────────────────────────────


def _find_sums(columns: Sequence[SampledColumn]) -> Iterator[Proposal]:
    """Columns that are the sum of others in every row, found by least squares with coefficients 0 and 1."""
    numeric = [column for column in columns if column.fields["kind"] in ("integer", "real")][:MAX_SUM_COLUMNS]
    if len(numeric) < 3:
        return
    cells = np.stack([column.numbers() for column in numeric], axis=1)
    filled = np.nan_to_num(cells)
    used: set[int] = set()
    for total in range(len(numeric)):
        others = [index for index in range(len(numeric)) if index != total and index not in used]
        weights, *_ = np.linalg.lstsq(filled[:FITTED_ROWS, others], filled[:FITTED_ROWS, total], rcond=None)
        parts = [index for index, weight in zip(others, weights, strict=True) if abs(weight - 1) < 1e-6]
        if len(parts) < 2 or any(min(abs(weight), abs(weight - 1)) > 1e-6 for weight in weights):
            continue
        rows = ~np.isnan(cells[:, [total, *parts]]).any(axis=1)
        difference = np.abs(cells[rows][:, parts].sum(axis=1) - cells[rows, total])
        if rows.sum() >= MIN_COMPARED_ROWS and difference.max() < 1e-6:
            used.add(total)
            names = [numeric[index].name for index in parts]
            yield "rules", "", {"rule": "sum", "total": numeric[total].name, "parts": names}


def _find_orders(columns: Sequence[SampledColumn]) -> Iterator[Proposal]:
    """Pairs of dates, and of numbers named min and max and the like, that ascend in every row."""
    dates = [c for c in columns if c.fields["kind"] == "datetime" and c.fields.get("resolution", "day") == "day"]
    numbers = [c for c in columns if c.fields["kind"] in ("integer", "real")]
    pairs = [(a, b) for a, b in permutations(dates, 2) if _ascends(a, b)]
    direct = [
        (a, b) for a, b in pairs if not any((a, c) in pairs and (c, b) in pairs for c in dates if c not in (a, b))
    ]
    direct += [(a, b) for a, b in permutations(numbers, 2) if _are_low_and_high(a.name, b.name) and _ascends(a, b)]
    for low, high in direct:
        yield "rules", "", {"rule": "order", "attributes": [low.name, high.name]}


def _ascends(low: SampledColumn, high: SampledColumn) -> bool:
    difference = high.numbers() - low.numbers()
    difference = difference[~np.isnan(difference)]
    return len(difference) >= MIN_COMPARED_ROWS and difference.min() >= 0 and difference.max() > 0


def _are_low_and_high(low: str, high: str) -> bool:
    words = [re.split(r"[^a-z]+", name.lower()) for name in (low, high)]
    return any(
        first in words[0] and [last if word == first else word for word in words[0]] == words[1]
        for first, last in _LOW_AND_HIGH
    )
