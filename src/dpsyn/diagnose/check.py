"""How well a table fits its schema, cell by cell.

Privacy: this is the steward's own, unpaid look at the rows. The result is private and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dpsyn.constraints import count_violations
from dpsyn.encoding import ABOVE, BELOW, EMPTY, IN_DOMAIN, UNREADABLE, column_codec_for, structural_problems
from dpsyn.errors import SourceError
from dpsyn.schema import Attribute, Schema, Total
from dpsyn.sources import Source, open_source
from dpsyn.sources.csv import CsvSource

PRIVATE_NOTICE = "PRIVATE: these figures come straight from the rows and are not protected. Do not publish them."


@dataclass(frozen=True, slots=True)
class AttributeCheck:
    """What became of the cells of one column.

    Attributes:
        name: the attribute.
        inside: cells in the domain.
        empty: null cells.
        unreadable: cells that are not in the list, or not of the kind at all.
        below: cells under the lowest value.
        above: cells over the highest value.
        empty_goes_to: the label that null cells get.
        other_goes_to: the label that unreadable cells get.
        misplaced: cells that take a place which is not theirs: all but those inside and declared nulls.
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
class SchemaCheck:
    """How well a table fits its schema.

    Attributes:
        where: the table.
        rows: how many it has.
        attributes: one entry per measured attribute with a public domain.
        unchecked: measured attributes without a public domain.
        extra: columns that the schema does not mention; a release does not read them.
        skipped: statements of the schema that are not compared with the rows.
        problems: columns that are missing, there twice or of a type that does not fit; a release refuses them.
        rule_violations: by its number, how many rows break each rule; synthetic rows will keep it all the same.
    """

    where: str
    rows: int
    attributes: tuple[AttributeCheck, ...]
    unchecked: tuple[str, ...]
    extra: tuple[str, ...]
    skipped: tuple[str, ...]
    problems: tuple[str, ...]
    rule_violations: Mapping[int, int]

    def __repr__(self) -> str:
        return f"<Fit of {self.where} to its schema: private; see its attributes>"


def check_table(schema: Schema | str | Path, data: Any, *, query: str | None = None) -> SchemaCheck:
    """Count, for every attribute, the cells that fall outside its domain.

    Privacy: unpaid look at the rows; the result is private.
    """
    schema = Schema.coerce(schema)
    source = open_source(data, query=query)
    problems = structural_problems(schema, source.schema)
    coded = [
        attribute for attribute in schema.measured_attributes if attribute.coded and attribute.name not in problems
    ]
    columns = [column_codec_for(attribute) for attribute in coded]
    names = [attribute.name for attribute in coded]
    fates = np.zeros((len(coded), 5), np.int64)
    checkable = _checkable_rules(schema, names)
    broken = dict.fromkeys(checkable, 0)
    rows = 0
    for batch in _read_batches(source, names or source.schema.names[:1]):
        rows += batch.num_rows
        for place, (name, column) in enumerate(zip(names, columns, strict=True)):
            fates[place] += np.bincount(column.read(batch.column(name)).statuses, minlength=5)
        for number, times in count_violations(schema, pa.Table.from_batches([batch]), checkable).items():
            broken[number] += times
    return SchemaCheck(
        where=source.label,
        rows=rows,
        attributes=tuple(_check_attribute(a, counts.tolist()) for a, counts in zip(coded, fates, strict=True)),
        unchecked=tuple(attribute.name for attribute in schema.measured_attributes if not attribute.coded),
        extra=tuple(name for name in source.schema.names if name not in schema),
        skipped=_list_skipped(schema, checkable),
        problems=tuple(problems.values()),
        rule_violations=broken,
    )


def _checkable_rules(schema: Schema, names: Sequence[str]) -> list[int]:
    """The numbers of rules about single rows whose columns are all read."""
    rules = enumerate(schema.rules, start=1)
    return [n for n, rule in rules if not isinstance(rule, Total) and set(names).issuperset(rule.mentions())]


def _list_skipped(schema: Schema, checkable: Sequence[int]) -> tuple[str, ...]:
    derived = tuple(f"{derive.name} (derived)" for derive in schema.derive)
    rules = tuple(f"rule {n}" for n in range(1, len(schema.rules) + 1) if n not in checkable)
    return (*derived, *rules, *((f"rows per {schema.privacy_unit.id}",) if schema.privacy_unit else ()))


def _read_batches(source: Source, names: Sequence[str]) -> Iterator[Any]:
    """The rows; if the file breaks off, the error says where, which a release must not."""
    try:
        yield from source.batches(names)
    except SourceError as error:
        line = source.find_ragged_line() if isinstance(source, CsvSource) else None
        if line is None:
            raise
        raise SourceError(f"{error}. Line {line} is the first with another number of cells (this is private)") from None


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
