"""Comparison of a table with its schema, cell by cell.

Privacy: this reads the rows without privacy protection, for the data owner only. The result is private and marked so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsyn.constraints import count_violations
from dpsyn.diagnose.file_syntax import describe_encoding
from dpsyn.encoding import (
    ABOVE,
    BELOW,
    EMPTY,
    IN_DOMAIN,
    UNREADABLE,
    arrays,
    column_codec_for,
    describe_structure,
    structural_problems,
    type_remarks,
)
from dpsyn.encoding.entry_parser import entry_texts
from dpsyn.encoding.unit_ids import normalize_ids
from dpsyn.schema import Attribute, Identifier, Schema, Total, UnitDeclaration
from dpsyn.sources import describe_irregular_lines, open_declared

MAX_OPEN_COUNTS = 100_000
"""Texts of an open attribute whose counts are kept; the others are rarer than all of these."""

PRIVATE_NOTICE = "PRIVATE: these figures come directly from the rows, without noise. Do not publish them."


@dataclass(frozen=True, slots=True, repr=False)
class AttributeCheck:
    """How the cells of one column fit the domain of its attribute.

    Attributes:
        name: the attribute.
        inside: cells in the domain.
        empty: null cells.
        unreadable: cells that are not in the list, or cannot be read as values of this kind.
        below: cells below the lowest value.
        above: cells above the highest value.
        empty_goes_to: the label that null cells are counted under.
        other_goes_to: the label that unreadable cells are counted under.
        misplaced: cells that are counted under another value: all except those inside and declared nulls.
    """

    name: str
    inside: int
    empty: int
    unreadable: int
    below: int
    above: int
    empty_goes_to: str
    other_goes_to: str
    misplaced: int


@dataclass(frozen=True, slots=True, repr=False)
class OpenCheck:
    """How often the texts of an open attribute occur.

    Attributes:
        name: the attribute.
        counts: the number of rows of every text, the most frequent first; empty cells are not counted. Of many texts,
            only those that occur most often.
    """

    name: str
    counts: tuple[int, ...]

    def count_listed(self, min_rows: int) -> tuple[int, int]:
        """The number of texts that are in at least so many rows, and the number of rows that they are in together."""
        frequent = [count for count in self.counts if count >= min_rows]
        return len(frequent), sum(frequent)


@dataclass(frozen=True, slots=True, repr=False)
class UnitCheck:
    """How many rows the persons of a privacy unit have.

    Attributes:
        name: the identifier that names the person.
        max_rows: the number of rows of one person that a release uses at most.
        persons: the number of persons.
        exceeding: the persons with more rows than that.
        dropped_rows: the rows that a release leaves out because of it.
        rows_without_id: the rows without an id, which a release leaves out.
    """

    name: str
    max_rows: int
    persons: int
    exceeding: int
    dropped_rows: int
    rows_without_id: int


@dataclass(frozen=True, slots=True, repr=False)
class SchemaCheck:
    """How well a table fits its schema.

    Attributes:
        where: the name of the table.
        rows: its number of rows.
        attributes: one entry per measured attribute with a public domain.
        open: one entry per measured attribute without a public domain.
        unit: the rows of persons, if the schema has a privacy unit whose id is in the table.
        identifiers: identifiers, which are never measured.
        derived: attributes that are computed from others, so they are not compared with the rows.
        extra: columns that are not in the schema; a release does not read them.
        skipped: entries of the schema that are not compared with the rows.
        problems: columns that are missing or duplicated; a release refuses the table.
        remarks: types of columns and lines of a text file that are probably a mistake; a release reads them as it can.
        rule_violations: the number of rows that violate each rule, by its number; synthetic rows satisfy it anyway.
    """

    where: str
    rows: int
    attributes: tuple[AttributeCheck, ...]
    open: tuple[OpenCheck, ...]
    unit: UnitCheck | None
    identifiers: tuple[str, ...]
    derived: tuple[str, ...]
    extra: tuple[str, ...]
    skipped: tuple[str, ...]
    problems: tuple[str, ...]
    remarks: tuple[str, ...]
    rule_violations: Mapping[int, int]

    def __repr__(self) -> str:
        return f"<SchemaCheck of {self.where}: private; see its attributes>"


def check_table(schema: Schema | str | Path, data: Any, *, query: str | None = None) -> SchemaCheck:
    """Count the cells of every attribute that are outside its domain, and the rows that violate each rule.

    ``schema`` is a Schema or the path of a schema file.

    Privacy: reads the rows without privacy protection; the result is private.
    """
    schema = Schema.coerce(schema)
    source = open_declared(data, schema, query=query)
    problems = structural_problems(schema, source.schema)
    coded = [
        attribute for attribute in schema.measured_attributes if attribute.coded and attribute.name not in problems
    ]
    columns = [column_codec_for(attribute) for attribute in coded]
    names = [attribute.name for attribute in coded]
    opens = {a.name: a for a in schema.open_attributes if a.name not in problems}
    unit = schema.privacy_unit if schema.privacy_unit and schema.privacy_unit.id not in problems else None
    statuses = np.zeros((len(coded), 5), np.int64)
    texts: dict[str, Counter[bytes | None]] = {name: Counter() for name in (*opens, *([unit.id] if unit else []))}
    checkable = _checkable_rules(schema, names)
    violations = dict.fromkeys(checkable, 0)
    rows = 0
    for batch in source.batches([*names, *texts] or source.schema.names[:1]):
        rows += batch.num_rows
        for index, (name, column) in enumerate(zip(names, columns, strict=True)):
            statuses[index] += np.bincount(column.read(batch.column(name)).statuses, minlength=5)
        for name, counter in texts.items():
            read = _read_texts if name in opens else normalize_ids
            _count_texts(counter, read(batch.column(name), schema[name]))
        for number, count in count_violations(schema, pa.Table.from_batches([batch]), checkable).items():
            violations[number] += count
    return SchemaCheck(
        where=source.label,
        rows=rows,
        attributes=tuple(_check_attribute(a, counts.tolist()) for a, counts in zip(coded, statuses, strict=True)),
        open=tuple(_check_open(name, texts[name]) for name in opens),
        unit=_check_unit(unit, texts[unit.id]) if unit else None,
        identifiers=tuple(attribute.name for attribute in schema if isinstance(attribute, Identifier)),
        derived=tuple(derive.name for derive in schema.derive),
        extra=tuple(name for name in source.schema.names if name not in schema),
        skipped=_list_skipped(schema, checkable),
        problems=tuple(describe_structure(problems, source.schema)),
        remarks=(
            *describe_encoding(data, schema.syntax),
            *type_remarks(schema, source.schema),
            *describe_irregular_lines(source),
        ),
        rule_violations=violations,
    )


def _read_texts(array: pa.Array, attribute: Attribute) -> pa.Array:
    """The texts of an open attribute without surrounding spaces; null for empty cells."""
    texts = pc.ascii_trim_whitespace(arrays.as_string(entry_texts(array)))
    empty = pc.is_in(texts, pa.array(attribute.null_spellings or ("",), texts.type))
    return pc.if_else(empty, pa.scalar(None, texts.type), texts).cast(pa.large_binary())


def _count_texts(counter: Counter[bytes | None], texts: pa.Array) -> None:
    for entry in pc.value_counts(texts).to_pylist():
        counter[entry["values"]] += entry["counts"]


def _check_open(name: str, counter: Counter[bytes | None]) -> OpenCheck:
    counts = sorted((count for text, count in counter.items() if text is not None), reverse=True)
    return OpenCheck(name, tuple(counts[:MAX_OPEN_COUNTS]))


def _check_unit(unit: UnitDeclaration, counter: Counter[bytes | None]) -> UnitCheck:
    without = counter.pop(None, 0)
    excess = [count - unit.max_rows for count in counter.values() if count > unit.max_rows]
    return UnitCheck(unit.id, unit.max_rows, len(counter), len(excess), sum(excess), without)


def _checkable_rules(schema: Schema, names: Sequence[str]) -> list[int]:
    """The numbers of the rules on single rows whose columns are all read."""
    rules = enumerate(schema.rules, start=1)
    return [n for n, rule in rules if not isinstance(rule, Total) and set(names).issuperset(rule.mentions())]


def _list_skipped(schema: Schema, checkable: Sequence[int]) -> tuple[str, ...]:
    return tuple(f"rule {n}" for n in range(1, len(schema.rules) + 1) if n not in checkable)


def _check_attribute(attribute: Attribute, counts: Sequence[int]) -> AttributeCheck:
    declared = counts[IN_DOMAIN] + (counts[EMPTY] if attribute.has_missing else 0)
    labels, bins = attribute.labels(), attribute.bin_of_cell()
    return AttributeCheck(
        name=attribute.name,
        inside=counts[IN_DOMAIN],
        empty=counts[EMPTY],
        unreadable=counts[UNREADABLE],
        below=counts[BELOW],
        above=counts[ABOVE],
        empty_goes_to=labels[bins[attribute.null_cell]],
        other_goes_to=labels[bins[attribute.other_cell]],
        misplaced=sum(counts) - declared,
    )
