"""Columns of a replicate as numbers and as groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsyn.analysis.conclusion import FloatArray
from dpsyn.errors import QueryError, quote_argument
from dpsyn.schema import MISSING, Boolean, Categorical, Integer, Ordinal, Real, Schema, canonical_text
from dpsyn.suggestions import suggest_names

MAX_GROUPS = 1_000
"""Groups of one answer; more would have few rows each."""

MAX_LEVELS = 200
"""Values of one attribute in a regression."""

AllowedCells = Mapping[str, NDArray[np.bool_]]
"""Which cells of attributes meet the conditions on rows."""


def require_attributes(schema: Schema, names: Sequence[str]) -> None:
    """Refuse names that are not columns with released values."""
    known = [attribute.name for attribute in schema.attributes if attribute.coded]
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise QueryError(f"there is no attribute {quote_argument(name)} here; {suggest_names(name, known)}")


def is_number(schema: Schema, name: str) -> bool:
    """Whether the values of an attribute are numbers: listed ones included, and truth values as 0 and 1."""
    attribute = schema[name]
    if isinstance(attribute, Categorical):
        values = attribute.all_values()
        return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    return isinstance(attribute, Integer | Real | Boolean)


def require_number(schema: Schema, name: str, purpose: str) -> None:
    """Refuse an attribute that has no numbers."""
    require_attributes(schema, [name])
    if not is_number(schema, name):
        raise QueryError(
            f"{quote_argument(name)} is {schema[name].kind}, so it has no {purpose}; give a number or a truth value. "
            "Counts of its values are answered by marginal"
        )


def read_numbers(table: pa.Table, name: str) -> FloatArray:
    """A column of numbers or truth values; NaN where it is missing."""
    column = table.column(name)
    numbers = column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column
    return np.asarray(numbers.cast(pa.float64()).to_numpy(), dtype=np.float64)


def read_ranks(table: pa.Table, schema: Schema, name: str) -> FloatArray:
    """A column as numbers whose order is that of its values; NaN where it is missing."""
    attribute = schema[name]
    if not isinstance(attribute, Ordinal):
        return read_numbers(table, name)
    codes = read_levels(table, name, [canonical_text(value) for value in attribute.all_values()])
    return np.where(codes < 0, np.nan, codes)


def read_levels(table: pa.Table, name: str, levels: Sequence[str]) -> NDArray[np.int64]:
    """The position of each value among levels, given as texts; −1 where it is missing or not among them."""
    encoded = pc.dictionary_encode(table.column(name).combine_chunks())
    positions = {level: position for position, level in enumerate(levels)}
    found = [positions.get(cell_text(value), -1) for value in encoded.dictionary.to_pylist()]
    codes = encoded.indices.fill_null(len(found)).to_numpy()
    levels_of_rows: NDArray[np.int64] = np.array([*found, -1], dtype=np.int64)[codes]
    return levels_of_rows


def list_levels(schema: Schema, name: str, allowed: AllowedCells) -> list[str]:
    """The values of an attribute that rows may have, without missing, as texts."""
    attribute = schema[name]
    if isinstance(attribute, Integer) and attribute.high - attribute.low < MAX_LEVELS:
        return [canonical_text(value) for value in range(attribute.low, attribute.high + 1)]
    if not isinstance(attribute, Categorical | Boolean):
        raise QueryError(
            f"{quote_argument(name)} is {attribute.kind}, which has no list of categories; use numbers, truth values "
            "or attributes with listed values"
        )
    labels = list(attribute.labels())[: attribute.proper_cells]
    levels = [label for label, meets in zip(labels, allowed.get(name, [True] * len(labels)), strict=False) if meets]
    if len(levels) > MAX_LEVELS:
        raise QueryError(
            f"{quote_argument(name)} has {len(levels):,} values, more than {MAX_LEVELS} in a regression; use another "
            "attribute, or conditions on it"
        )
    return levels


def find_groups(table: pa.Table, schema: Schema, by: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    """The rows of each group, by its name such as ``sex=female``; one group without a name if there are no names."""
    if not by:
        return {"": np.arange(table.num_rows)}
    group, names = np.zeros(table.num_rows, dtype=np.int64), [""]
    for name in by:
        encoded = pc.dictionary_encode(table.column(name).combine_chunks(), null_encoding="encode")
        values = encoded.dictionary.to_pylist()
        ranks = {position: rank for rank, position in enumerate(_order(schema, name, values))}
        codes = np.array([ranks[position] for position in range(len(values))], dtype=np.int64)
        group = group * len(values) + codes[encoded.indices.to_numpy()]
        ordered = [f"{name}={cell_text(values[position])}" for position in ranks]
        present, group = np.unique(group, return_inverse=True)
        if len(present) > MAX_GROUPS:
            raise QueryError(
                f"there are more than {MAX_GROUPS:,} groups by {', '.join(by)}; use attributes of fewer values"
            )
        pairs = [divmod(int(code), len(values)) for code in present]
        names = [", ".join(filter(None, (names[old], ordered[new]))) for old, new in pairs]
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(np.bincount(group, minlength=len(names)))
    return dict(zip(names, np.split(order, ends[:-1]), strict=True))


def _order(schema: Schema, name: str, values: Sequence[object]) -> list[int]:
    """Positions of values in the order of the schema, or of the numbers and dates themselves; missing last."""
    attribute = schema[name]
    if isinstance(attribute, Categorical | Boolean):
        ranks = {label: rank for rank, label in enumerate(attribute.labels())}
        return sorted(range(len(values)), key=lambda position: ranks[cell_text(values[position])])
    known = [position for position, value in enumerate(values) if value is not None]
    missing = [position for position, value in enumerate(values) if value is None]
    return sorted(known, key=lambda position: values[position]) + missing  # type: ignore[arg-type, return-value]


def cell_text(value: object) -> str:
    """A value as a text."""
    if value is None:
        return MISSING
    return canonical_text(value) if isinstance(value, str | int | float) else str(value)
