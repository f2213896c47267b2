"""Violations: how many rows of a table violate each rule, by the values in the table."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.encoding import MISSING_STEP, read_attribute
from dpsyn.errors import InternalError
from dpsyn.schema import Impossible, Order, Schema, Sum, Total, compile_constraints
from dpsyn.schema.constraint_model import align_scales
from dpsyn.schema.relations import RowConditions


def count_violations(schema: Schema, table: pa.Table, rule_numbers: Collection[int] | None = None) -> dict[int, int]:
    """The number of rows that violate each rule, by its number from 1; for a total, the difference from its count.

    ``rule_numbers`` selects some of the rules. Derived columns are read from the table like all others.

    Privacy: counts of private rows are private.
    """
    violations = {}
    for number, rule in enumerate(schema.rules, start=1):
        if rule_numbers is not None and number not in rule_numbers:
            continue
        match rule:
            case Impossible():
                violations[number] = int(_match_conditions(schema, table, rule.where).sum())
            case Total():
                violations[number] = abs(int(_match_conditions(schema, table, rule.where).sum()) - rule.count)
            case Order():
                values, missing = _values_on_one_scale(schema, table, rule.attributes)
                violations[number] = int(_breaks_order(values, missing, rule.strict).sum())
            case Sum():
                values, missing = _values_on_one_scale(schema, table, (rule.total, *rule.parts))
                violations[number] = int((~missing.any(axis=0) & (values[0] != values[1:].sum(axis=0))).sum())
    return violations


def require_no_violations(schema: Schema, table: pa.Table) -> None:
    """Raise an InternalError if a row violates a rule, which would be a bug in DPSyn."""
    row_rules = {rule.number for rule in compile_constraints(schema).row_constraints}
    if any(count_violations(schema, table, row_rules).values()):
        raise InternalError("synthetic rows violate a rule of the schema")


def _match_conditions(schema: Schema, table: pa.Table, where: RowConditions) -> NDArray[np.bool_]:
    matches = np.ones(table.num_rows, np.bool_)
    for name, condition in where:
        matches &= schema[name].select(condition)[read_attribute(schema, table, name, steps=False)]
    return matches


def _values_on_one_scale(
    schema: Schema, table: pa.Table, names: tuple[str, ...]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The values of attributes on a common scale, attributes × rows, and which are missing."""
    values, missing = [], []
    for scale in align_scales(schema, names, dict.fromkeys([*schema.names, *names], 0)):
        steps = read_attribute(schema, table, scale.name, steps=True)
        missing.append(steps == MISSING_STEP)
        values.append(scale.to_common_scale(np.maximum(steps, 0)))
    return np.stack(values), np.stack(missing)


def _breaks_order(values: NDArray[np.int64], missing: NDArray[np.bool_], strict: bool) -> NDArray[np.bool_]:
    violated = np.zeros(values.shape[1], np.bool_)
    for right in range(1, len(values)):
        for left in range(right):
            descends = values[left] >= values[right] if strict else values[left] > values[right]
            violated |= descends & ~missing[left] & ~missing[right]
    return violated
