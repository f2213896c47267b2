"""Tables ⇄ fine codes, by a public schema; and whether the columns of a table fit a schema."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.encoding import arrays
from dpsyn.encoding.binning import Grouping
from dpsyn.encoding.column_codecs import (
    ColumnCodec,
    EncodedColumn,
    RangedCodec,
    TimestampCodec,
    column_codec_for,
    narrowest_dtype,
)
from dpsyn.errors import SchemaError, SourceError, quote_argument
from dpsyn.schema import MISSING, Attribute, Categorical, Derive, Identifier, Ranged, Schema, Value, canonical_text
from dpsyn.suggestions import format_names

Codes = NDArray[Any]
"""Rows × attributes, column-major, in the narrowest unsigned type that holds every code."""

MAX_COLUMN_HINTS = 5
"""Missing columns for which a similar name is searched; the search is slow."""

MAX_PROBLEMS_SHOWN = 5
"""Columns that one message lists."""


class Codec:
    """Reads tables into codes and writes codes as tables.

    There are two resolutions. ``encode`` returns and ``decode`` takes the codes of *cells*, the finest distinction that
    the schema makes. Marginals of several attributes use *bins*: ``Recoding`` merges cells into bins and samples a cell
    inside each bin from a released histogram, so spikes survive.

    A timestamp has the codes of its parts: the date, the weekday and the time of day. It is one column of a table, of
    which ``columns`` are the names.

    Open attributes have no codes until their values are discovered privately; until then they are left out.

    Privacy: encoding is total. Every entry of a table whose structure fits has a declared code, whatever it holds, and
    the codes of a row depend on that row alone. So one row changes one count of a marginal, by one.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.attributes = tuple(attribute for attribute in schema.modeled_attributes if attribute.coded)
        self.names = tuple(attribute.name for attribute in self.attributes)
        self.fine_sizes = tuple(attribute.cells for attribute in self.attributes)
        self.domain = tuple(zip(self.names, self.fine_sizes, strict=True))
        self.columns = tuple(attribute.name for attribute in schema.measured_attributes if attribute.coded)
        self.groupings = tuple(Grouping(attribute.bin_of_cell()) for attribute in self.attributes)
        self.coarse_sizes = tuple(grouping.size for grouping in self.groupings)
        self._derived = {derive.name: _derived_values(derive, schema) for derive in schema.derive}

    @cached_property
    def column_codecs(self) -> tuple[ColumnCodec, ...]:
        """How each attribute is read and written; most codecs are asked for names and sizes alone."""
        return tuple(column_codec_for(attribute) for attribute in self.attributes)

    @cached_property
    def _timestamps(self) -> dict[str, TimestampCodec]:
        return {
            name: TimestampCodec(self.schema[name], parts)  # type: ignore[arg-type]
            for name, parts in self.schema.timestamp_parts.items()
        }

    def encode(self, batch: pa.RecordBatch | pa.Table) -> Codes:
        """The fine codes of a batch whose structure fits the schema (see ``check_structure``)."""
        codes = np.empty((batch.num_rows, len(self.names)), narrowest_dtype(max(self.fine_sizes, default=1)), order="F")
        for name in self.columns:
            array = _combine_chunks(batch.column(name))
            if name in self._timestamps:
                for axis, part in zip(self._axes(name), self._timestamps[name].read(array), strict=True):
                    codes[:, axis] = part
            else:
                (axis,) = self._axes(name)
                codes[:, axis] = self.column_codecs[axis].read(array).codes
        return codes

    def read_steps(self, batch: pa.RecordBatch | pa.Table) -> list[EncodedColumn]:
        """For each attribute the step of every entry if it is a number, date or time, otherwise its code."""
        encoded: list[EncodedColumn] = []
        for name in self.columns:
            array = _combine_chunks(batch.column(name))
            if name in self._timestamps:
                encoded += self._timestamps[name].read_parts(array)
                continue
            column = self.column_codecs[len(encoded)]
            if isinstance(column, RangedCodec):
                encoded.append(EncodedColumn(*column.read_steps(array)))
            else:
                encoded.append(column.read(array))
        return encoded

    def _axes(self, name: str) -> list[int]:
        """The axes of a column: one, or those of the parts of a timestamp."""
        return [self.names.index(part) for part in self.schema.parts_of(name)]

    def decode(
        self,
        codes: Codes,
        rng: np.random.Generator,
        *,
        first_row: int = 0,
        steps: Mapping[str, NDArray[np.int64]] | None = None,
    ) -> pa.Table:
        """Convert fine codes to a table with the types of the schema.

        A value inside a cell is sampled uniformly from ``rng``, except for the attributes in ``steps``, which gives the
        step of every row. Derived attributes are computed. Identifiers are left out, or numbered from ``first_row``.
        """
        open_names = [attribute.name for attribute in self.schema.modeled_attributes if not attribute.coded]
        if open_names:
            raise SchemaError(
                f"the values of {', '.join(open_names)} are open; they must be discovered privately before decoding"
            )
        columns = {}
        for name in self.columns:
            axis, *others = self._axes(name)
            column = self.column_codecs[axis]
            if others:
                date, _, time = self.schema.parts_of(name)
                given = [steps.get(part) if steps else None for part in (date, time)]
                columns[name] = self._timestamps[name].write(codes[:, [axis, *others]], rng, *given)
            elif steps and name in steps and isinstance(column, RangedCodec):
                columns[name] = column.write_at(steps[name], codes[:, axis])
            else:
                columns[name] = column.write(codes[:, axis], rng)
        for derive in self.schema.derive:
            source = codes[:, self.names.index(derive.source)]
            columns[derive.name] = self._derived[derive.name].take(pa.array(source))
        for attribute in self.schema:
            if isinstance(attribute, Identifier) and attribute.output == "fresh":
                columns[attribute.name] = pa.array(np.arange(first_row, first_row + len(codes)))
        return pa.table({name: columns[name] for name in self.schema.names if name in columns})


def read_attribute(schema: Schema, table: pa.Table, name: str, *, steps: bool) -> NDArray[Any]:
    """The codes of one attribute of a table, or its steps; it may be derived, or a part of a timestamp."""
    for column, parts in schema.timestamp_parts.items():
        names = [part.name for part in parts]
        if name in names:
            codec = TimestampCodec(schema[column], parts)  # type: ignore[arg-type]
            array = _combine_chunks(table.column(column))
            found = [part.codes for part in codec.read_parts(array)] if steps else codec.read(array)
            return found[names.index(name)]
    own, array = column_codec_for(schema[name]), _combine_chunks(table.column(name))
    return own.read_steps(array)[0] if steps and isinstance(own, RangedCodec) else own.read(array).codes


def check_structure(schema: Schema, table: pa.Schema, label: str) -> None:
    """Refuse a table that lacks a column, or has one twice.

    Privacy: the names of columns are public structure of a table. Their types are not, because libraries infer them
    from entries (see ``column_codecs``), so a type never refuses a table. No entry is read.
    """
    problems = structural_problems(schema, table)
    if problems:
        raise SourceError(f"{label} does not fit the schema: {'; '.join(describe_structure(problems, table))}")


def describe_structure(problems: Mapping[str, str], table: pa.Schema) -> list[str]:
    """What ``structural_problems`` found, in a few clauses: the first ones, how many more, and what the table has."""
    clauses = list(problems.values())
    if len(clauses) <= MAX_PROBLEMS_SHOWN:
        return clauses
    return [
        *clauses[:MAX_PROBLEMS_SHOWN],
        f"and {len(clauses) - MAX_PROBLEMS_SHOWN} more columns of the schema are missing or not unique",
        f"the table has {len(table.names)} columns: {format_names(table.names)}"
        if len(table.names) > 1
        else f"the table has one column, {quote_argument(table.names[0])}: is the separator right?",
    ]


def structural_problems(schema: Schema, table: pa.Schema) -> dict[str, str]:
    """What is wrong with the columns of a table, by the name of the column; empty if the table fits."""
    occurrences = Counter(table.names)
    problems: dict[str, str] = {}
    for name in schema.columns:
        if name not in occurrences:
            hint = _column_hint(name, table.names) if len(problems) < MAX_COLUMN_HINTS else ""
            problems[name] = f"there is no column {name!r}{hint}"
        elif occurrences[name] > 1:
            problems[name] = f"{_describe_duplicate(name, table.names)}, rename all but one"
    return problems


def header_problems(names: Sequence[str]) -> list[str]:
    """What is wrong with the names of columns, before there is a schema: names that occur twice or are empty."""
    unnamed = [position for position, name in enumerate(names, start=1) if not name.strip()]
    problems = [f"{_describe_duplicate(name, names)}" for name, n in Counter(names).items() if n > 1 and name.strip()]
    if unnamed:
        what = "column" if len(unnamed) == 1 else "columns"
        problems.append(f"{what} {_list_positions(unnamed)} {'has' if len(unnamed) == 1 else 'have'} no name")
    if len(problems) > MAX_PROBLEMS_SHOWN:
        problems = [*problems[:MAX_PROBLEMS_SHOWN], f"and {len(problems) - MAX_PROBLEMS_SHOWN} more such names"]
    return [*problems, "give each column a name of its own"] if problems else []


def _describe_duplicate(name: str, names: Sequence[str]) -> str:
    positions = [position for position, other in enumerate(names, start=1) if other == name]
    return f"there are {len(positions)} columns {name!r} (columns {_list_positions(positions)})"


def _list_positions(positions: Sequence[int]) -> str:
    shown = [str(position) for position in positions[:MAX_PROBLEMS_SHOWN]]
    more = len(positions) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def type_remarks(schema: Schema, table: pa.Schema) -> list[str]:
    """What the data owner should know about the types of columns; a release reads all of them without a word.

    Privacy: types may depend on entries, so the result is private.
    """
    fields = [(schema[name], table.field(name).type) for name in schema.columns if table.names.count(name) == 1]
    return [remark for attribute, kind in fields if (remark := _type_remark(attribute, kind))]


def _type_remark(attribute: Attribute, kind: pa.DataType) -> str | None:
    if not arrays.is_scalar(arrays.value_type(kind)):
        return f"column {attribute.name!r} holds {kind}, so its cells are not single values of kind {attribute.kind}"
    padded = [value for value in _listed_values(attribute) if isinstance(value, str) and re.fullmatch("0[0-9]+", value)]
    if not padded or not arrays.is_number(arrays.value_type(kind)):
        return None
    return (
        f"column {attribute.name!r} holds {kind}, which has no leading zeros, but the schema lists {padded[0]!r}, so "
        "every such row is counted as another value; read the column as text (with pandas: "
        f"dtype={{{attribute.name!r}: str}})"
    )


def _listed_values(attribute: Attribute) -> tuple[Value, ...]:
    return attribute.values if isinstance(attribute, Categorical) else ()


def _combine_chunks(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def uniform_weights(attribute: Attribute) -> NDArray[np.float64]:
    """The weights of an attribute's cells if nothing is known about them: the number of values in each cell."""
    if isinstance(attribute, Ranged):
        widths = np.diff(attribute.grid().edges).astype(np.float64)
        return np.append(widths, 1.0) if attribute.has_missing else widths
    return np.ones(attribute.cells)


def _derived_values(derive: Derive, schema: Schema) -> pa.Array:
    """The derived value for every fine code of the source."""
    source, target = schema[derive.source], schema[derive.name]
    values: list[Any] = [derive.otherwise] * source.cells
    for condition, value in derive.mapping:
        for cell in np.flatnonzero(source.select(condition)):
            values[cell] = value
    nulls = (None, MISSING) if target.has_missing else (None,)
    texts = pa.array([None if value in nulls else canonical_text(value) for value in values], pa.string())
    column = column_codec_for(target)
    return column.write(column.read(texts).codes, np.random.default_rng(0))  # each value has a cell of its own


def _column_hint(name: str, names: Sequence[str]) -> str:
    """A hint at the column whose name is most similar, if there is one."""
    folded = {other.strip().casefold(): other for other in names}
    close = difflib.get_close_matches(name.strip().casefold(), folded, 1, cutoff=0.75)
    return f" (did you mean {folded[close[0]]!r}?)" if close else ""
