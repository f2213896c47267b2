"""The rules of a schema by plain reading of rows: slow and obviously right."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa

from dpsyn.schema import MISSING, AnyRule, Attribute, Impossible, Order, Ranged, Schema, Sum, Total, canonical_text
from dpsyn.schema.attributes import split_range


def naive_violations(schema: Schema, table: pa.Table) -> dict[int, int]:
    """For every rule on rows the number of rows that break it; of a total the number by which it is missed."""
    rows = table.to_pylist()
    return {number: _naive_violations(schema, rule, rows) for number, rule in enumerate(schema.rules, start=1)}


def _naive_violations(schema: Schema, rule: AnyRule, rows: list[dict[str, Any]]) -> int:
    match rule:
        case Impossible():
            return sum(_meets(schema, rule.where, row) for row in rows)
        case Total():
            return abs(sum(_meets(schema, rule.where, row) for row in rows) - rule.count)
        case Order():
            return sum(not _ascends([row[name] for name in rule.attributes], rule.strict) for row in rows)
        case Sum():
            return sum(not _adds_up(row[rule.total], [row[part] for part in rule.parts]) for row in rows)


def _ascends(values: list[Any], strict: bool) -> bool:
    there = [_instant(value) for value in values if value is not None]
    return all(a < b or (a == b and not strict) for a, b in pairwise(there))


def _instant(value: Any) -> Any:
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value


def _adds_up(total: Any, parts: list[Any]) -> bool:
    if total is None or None in parts:
        return True
    return Decimal(str(total)) == sum(Decimal(str(part)) for part in parts)


def _meets(schema: Schema, where: Any, row: dict[str, Any]) -> bool:
    return all(_meets_one(schema[name], condition, row[name]) for name, condition in where)


def _meets_one(attribute: Attribute, condition: Any, value: Any) -> bool:
    for part in condition if isinstance(condition, tuple) else (condition,):
        if part == MISSING and attribute.has_missing:
            if value is None:
                return True
        elif value is not None and _is(attribute, part, value):
            return True
    return False


def _is(attribute: Attribute, part: Any, value: Any) -> bool:
    if isinstance(attribute, Ranged):
        first, last = attribute.span_of(part)
        return first <= attribute.step_of(value if isinstance(value, int | float) else value.isoformat()) <= last
    ends = None if canonical_text(part) == canonical_text(value) else split_range(part)
    if ends is not None and attribute.kind == "ordinal":
        labels = list(attribute.labels())
        return labels.index(ends[0]) <= labels.index(canonical_text(value)) <= labels.index(ends[1])
    return canonical_text(part) == canonical_text(value)
