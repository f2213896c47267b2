"""How many rows of a table break each rule, by its values as they stand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.records import MISSING_STEP, RangedColumn, column_for
from dpsyn.schema import Impossible, Order, Schema, Sum, Total, constraints_of
from dpsyn.schema.relations import Where
from dpsyn.schema.scales import scales_of


def violations(schema: Schema, table: pa.Table) -> dict[int, int]:
    """For every rule, by its number from 1, how many rows break it; of a total, by how many rows it is missed.

    Every column is read as it stands, derived ones too.

    Privacy: of private rows these are private numbers.
    """
    found = {}
    for number, rule in enumerate(schema.rules, start=1):
        match rule:
            case Impossible():
                found[number] = int(_meeting(schema, table, rule.where).sum())
            case Total():
                found[number] = abs(int(_meeting(schema, table, rule.where).sum()) - rule.count)
            case Order():
                values, missing = _values(schema, table, rule.attributes)
                found[number] = int(_descending(values, missing, rule.strict).sum())
            case Sum():
                values, missing = _values(schema, table, (rule.total, *rule.parts))
                found[number] = int((~missing.any(axis=0) & (values[0] != values[1:].sum(axis=0))).sum())
    return found


def require_kept(schema: Schema, table: pa.Table) -> None:
    """Make sure that no row breaks a rule; it would be a mistake of DPSyn's own."""
    known = constraints_of(schema)
    by_row = {rule.number for rule in known.by_row}
    broken = {number: rows for number, rows in violations(schema, table).items() if rows and number in by_row}
    if broken:
        raise InternalError(f"{len(broken)} rules do not hold in rows that were made to keep them")


def _meeting(schema: Schema, table: pa.Table, where: Where) -> NDArray[np.bool_]:
    meeting = np.ones(table.num_rows, np.bool_)
    for name, condition in where:
        cells = column_for(schema[name]).read(table.column(name).combine_chunks()).cells
        meeting &= schema[name].select(condition)[cells]
    return meeting


def _values(schema: Schema, table: pa.Table, names: tuple[str, ...]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The values of attributes on one scale, attributes × rows, and which are missing."""
    values, missing = [], []
    for scale in scales_of(schema, names, dict.fromkeys(schema.names, 0)):
        column = column_for(schema[scale.name])
        assert isinstance(column, RangedColumn)
        steps, _ = column.steps(table.column(scale.name).combine_chunks())
        missing.append(steps == MISSING_STEP)
        values.append(scale.common(np.maximum(steps, 0)))
    return np.stack(values), np.stack(missing)


def _descending(values: NDArray[np.int64], missing: NDArray[np.bool_], strict: bool) -> NDArray[np.bool_]:
    broken = np.zeros(values.shape[1], np.bool_)
    for right in range(1, len(values)):
        for left in range(right):
            low = values[left] >= values[right] if strict else values[left] > values[right]
            broken |= low & ~missing[left] & ~missing[right]
    return broken
