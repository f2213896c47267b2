"""How many rows of a table break each rule, by its values as they stand."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.encoding import MISSING_STEP, RangedCodec, column_codec_for
from dpsyn.errors import InternalError
from dpsyn.schema import Impossible, Order, Schema, Sum, Total, compile_constraints
from dpsyn.schema.constraint_model import align_scales
from dpsyn.schema.relations import RowConditions


def count_violations(schema: Schema, table: pa.Table, rule_numbers: Collection[int] | None = None) -> dict[int, int]:
    """For every rule, by its number from 1, how many rows break it; of a total, by how many rows it is missed.

    ``rule_numbers`` are those of the rules to look at, if not all.

    Every column is read as it stands, derived ones too.

    Privacy: of private rows these are private numbers.
    """
    found = {}
    for number, rule in enumerate(schema.rules, start=1):
        if rule_numbers is not None and number not in rule_numbers:
            continue
        match rule:
            case Impossible():
                found[number] = int(_match_conditions(schema, table, rule.where).sum())
            case Total():
                found[number] = abs(int(_match_conditions(schema, table, rule.where).sum()) - rule.count)
            case Order():
                values, missing = _values_on_one_scale(schema, table, rule.attributes)
                found[number] = int(_breaks_order(values, missing, rule.strict).sum())
            case Sum():
                values, missing = _values_on_one_scale(schema, table, (rule.total, *rule.parts))
                found[number] = int((~missing.any(axis=0) & (values[0] != values[1:].sum(axis=0))).sum())
    return found


def require_no_violations(schema: Schema, table: pa.Table) -> None:
    """Make sure that no row breaks a rule; it would be a mistake of DPSyn's own."""
    by_row = {rule.number for rule in compile_constraints(schema).row_constraints}
    if any(count_violations(schema, table, by_row).values()):
        raise InternalError("a rule does not hold in rows that were made to keep it")


def _match_conditions(schema: Schema, table: pa.Table, where: RowConditions) -> NDArray[np.bool_]:
    meeting = np.ones(table.num_rows, np.bool_)
    for name, condition in where:
        cells = column_codec_for(schema[name]).read(table.column(name).combine_chunks()).codes
        meeting &= schema[name].select(condition)[cells]
    return meeting


def _values_on_one_scale(
    schema: Schema, table: pa.Table, names: tuple[str, ...]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The values of attributes on one scale, attributes × rows, and which are missing."""
    values, missing = [], []
    for scale in align_scales(schema, names, dict.fromkeys(schema.names, 0)):
        column = column_codec_for(schema[scale.name])
        assert isinstance(column, RangedCodec)
        steps, _ = column.read_steps(table.column(scale.name).combine_chunks())
        missing.append(steps == MISSING_STEP)
        values.append(scale.to_common_scale(np.maximum(steps, 0)))
    return np.stack(values), np.stack(missing)


def _breaks_order(values: NDArray[np.int64], missing: NDArray[np.bool_], strict: bool) -> NDArray[np.bool_]:
    broken = np.zeros(values.shape[1], np.bool_)
    for right in range(1, len(values)):
        for left in range(right):
            low = values[left] >= values[right] if strict else values[left] > values[right]
            broken |= low & ~missing[left] & ~missing[right]
    return broken
