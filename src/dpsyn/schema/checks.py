"""Checks of a schema as a whole: its relations must fit its attributes, and its rules must be satisfiable."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import SchemaError, quote_argument
from dpsyn.schema.attributes import MISSING, Attribute, Identifier, Open, Value
from dpsyn.schema.clock import Time
from dpsyn.schema.constraint_model import ConstraintModel, TotalConstraint, compile_constraints
from dpsyn.schema.ranges import Integer, Ranged, Real
from dpsyn.schema.relations import (
    MAX_JOINT_VALUES,
    MAX_PUBLIC_TOTAL,
    AnyRule,
    Condition,
    Derive,
    Impossible,
    Order,
    Sum,
    Total,
)
from dpsyn.schema.solver import SatisfyingRow, find_satisfying_row
from dpsyn.suggestions import format_names, suggest_names

if TYPE_CHECKING:
    from dpsyn.schema.schema import Schema


ErrorPath = tuple[str | int, ...]


def check_relations(schema: Schema) -> None:
    """Refuse a privacy unit, a derivation, a joint attribute, a rule or a group that does not fit the attributes."""
    _check_privacy_unit(schema)
    _check_derive(schema)
    _check_measure_together(schema)
    for index, rule in enumerate(schema.rules):
        _check_rule(schema, rule, ("rules", index))
    _check_rules_together(schema)
    _check_groups(schema)


def _check_privacy_unit(schema: Schema) -> None:
    if schema.privacy_unit is None:
        return
    if schema.privacy_unit.id not in schema or not isinstance(schema[schema.privacy_unit.id], Identifier):
        raise SchemaError(
            f"privacy_unit: {schema.privacy_unit.id!r} must be of kind identifier, which is never measured",
            ("privacy_unit", "id"),
        )


def _check_derive(schema: Schema) -> None:
    names = Counter(derive.name for derive in schema.derive)
    for derive in schema.derive:
        path = ("derive", derive.name)
        _require_attributes(schema, [derive.name, derive.source], path)
        if derive.source in names:
            raise SchemaError(
                f"{derive.name!r} is derived from {derive.source!r}, which is itself derived; use a measured attribute",
                path,
            )
        if names[derive.name] > 1:
            raise SchemaError(f"{derive.name!r} is derived twice", path)
        _check_mapping(schema, derive, path)


def _check_mapping(schema: Schema, derive: Derive, path: ErrorPath) -> None:
    source, target = _require_coded(schema, derive.source, path), _require_coded(schema, derive.name, path)
    reached = np.zeros(source.cells, dtype=np.bool_)
    for value, derived in derive.mapping:
        entry = (*path, "mapping", str(value))
        selected = _select_cells(source, value, entry)
        if (reached & selected).any():
            raise SchemaError(
                f"{derive.name!r}: {value!r} overlaps another entry, or ends inside a cell of {derive.source!r}; "
                "give that attribute bins that start where the ranges start",
                entry,
            )
        reached |= selected
        _require_exact(target, derived, entry)
    if derive.otherwise is not None:
        _require_exact(target, derive.otherwise, (*path, "otherwise"))
    elif not reached[: source.proper_cells].all():
        unmapped = int((~reached[: source.proper_cells]).sum())
        raise SchemaError(
            f"{derive.name!r}: the mapping leaves out {unmapped} values of {derive.source!r}; "
            "list them, or add otherwise: VALUE",
            (*path, "mapping"),
        )


def _check_measure_together(schema: Schema) -> None:
    used: set[str] = set()
    groups = Counter(joint.name for joint in schema.measure_together)
    measured = {attribute.name for attribute in schema.measured_attributes}
    for joint in schema.measure_together:
        path = ("measure_together", joint.name)
        _require_attributes(schema, joint.attributes, path)
        if len(set(joint.attributes)) < max(2, len(joint.attributes)):
            raise SchemaError(f"{joint.name!r} needs at least two different attributes", path)
        if joint.name in schema:
            raise SchemaError(f"{joint.name!r} is an attribute; give the joint attribute another name", path)
        if groups[joint.name] > 1:
            raise SchemaError(f"two joint attributes are named {joint.name!r}; rename one", path)
        if not joint.name:
            raise SchemaError("a joint attribute has an empty name; give it one", path)
        if used.intersection(joint.attributes):
            raise SchemaError(f"{joint.name!r} uses an attribute that is part of another joint attribute", path)
        unmeasured = set(joint.attributes) - measured
        if unmeasured:
            raise SchemaError(f"{min(unmeasured)!r} is not measured, so it cannot be part of a joint attribute", path)
        sizes = [schema[name].size for name in joint.attributes if schema[name].coded]
        if math.prod(sizes) > MAX_JOINT_VALUES:
            raise SchemaError(
                f"{joint.name!r} has {math.prod(sizes):,} combinations of values, more than {MAX_JOINT_VALUES:,}; "
                "give its attributes fewer bins, or remove one",
                path,
            )
        used.update(joint.attributes)


def _check_groups(schema: Schema) -> None:
    """Refuse groups by attributes that no evaluation compares, or whose values nobody knows before a release.

    How many values they have is checked where groups are listed: bins may change during a release, which must not fail.
    """
    names = schema.groups
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        raise SchemaError(f"groups is {quote_argument(names)}; give a list, such as [sex, region]", ("groups",))
    compared = {attribute.name: attribute for attribute in schema.modeled_attributes}
    for index, name in enumerate(schema.groups):
        path = ("groups", index)
        if name not in compared:
            raise SchemaError(f"groups: {name!r} is not compared; {suggest_names(name, list(compared))}", path)
        if isinstance(compared[name], Open):
            raise SchemaError(f"groups: {name!r} has no public list of values, so its groups are not known", path)
        if name in schema.groups[:index]:
            raise SchemaError(f"groups: {name!r} is named twice", path)


def _check_rule(schema: Schema, rule: AnyRule, path: ErrorPath) -> None:
    _require_attributes(schema, rule.mentions(), path)
    match rule:
        case Impossible() if not rule.where:
            raise SchemaError("an impossible combination needs at least one condition", path)
        case Impossible() | Total():
            for name, condition in rule.where:
                if not isinstance(schema[name], Open):  # its values are checked once they are discovered
                    _require_whole_cells(_require_coded(schema, name, path), condition, (*path, "where", name))
        case Order() if len(set(rule.attributes)) < max(2, len(rule.attributes)):
            raise SchemaError("an order needs at least two different attributes", path)
        case Sum() if not rule.parts or rule.total in rule.parts:
            raise SchemaError("a sum needs parts, and the total must not be one of them", path)
    match rule:
        case Order():
            _check_order(schema, rule, path)
        case Sum():
            _check_sum(schema, rule, path)
        case Total() if rule.count < 0:
            raise SchemaError(f"count is {rule.count}; it cannot be negative", (*path, "count"))
        case Total() if rule.count > MAX_PUBLIC_TOTAL:
            raise SchemaError(f"count is {rule.count:,}; give at most {MAX_PUBLIC_TOTAL:,}", (*path, "count"))


def _check_order(schema: Schema, rule: Order, path: ErrorPath) -> None:
    kinds = {_order_kind(schema[name]) for name in rule.attributes}
    if None in kinds or len(kinds) > 1:
        raise SchemaError(
            "an order compares numbers with numbers, dates with dates or times with times; it cannot mix them or use "
            "other kinds",
            path,
        )


def _check_sum(schema: Schema, rule: Sum, path: ErrorPath) -> None:
    if any(_order_kind(schema[name]) != "numbers" for name in rule.mentions()):
        raise SchemaError("a sum needs attributes of kind integer or real", path)
    decimals = {name: _decimals(schema[name]) for name in rule.mentions()}
    if len(set(decimals.values())) > 1:
        shown = ", ".join(f"{name} {number}" for name, number in decimals.items())
        raise SchemaError(f"a sum needs the same decimals in all its attributes; they are {shown}", path)


def _check_rules_together(schema: Schema) -> None:
    """Refuse rules that no row can satisfy, alone or together, and totals that contradict each other."""
    model = compile_constraints(schema)
    for indices, rules in model.components():
        if not isinstance(find_satisfying_row(rules, model.sizes), SatisfyingRow):  # else each of them has a row, too
            for rule in rules:
                if find_satisfying_row([rule], model.sizes) is None:
                    path: ErrorPath = ("rules", rule.number - 1)
                    raise SchemaError(
                        "no row can satisfy this rule: it contradicts the domains of its attributes", path
                    )
            last, found = next(
                (last, found)
                for last in range(1, len(rules) + 1)
                if not isinstance(found := find_satisfying_row(rules[:last], model.sizes), SatisfyingRow)
            )
            names = format_names([model.names[index] for index in indices])
            message = f"this rule together with the earlier rules on the same attributes ({names})"
            if found is None:
                message = f"no row can satisfy {message}"
            else:
                message = f"no row was found that satisfies {message}; give simpler rules"
            raise SchemaError(message, ("rules", rules[last - 1].number - 1))
    check_totals(model)


def _require_coded(schema: Schema, name: str, path: ErrorPath) -> Attribute:
    attribute = schema[name]
    if not attribute.coded:
        raise SchemaError(f"{name!r} has no public list of values, so it cannot be used here", path)
    return attribute


def _require_attributes(schema: Schema, names: Iterable[str], path: ErrorPath) -> None:
    for name in names:
        if name not in schema:
            raise SchemaError(f"there is no attribute {name!r}; {suggest_names(name, schema.names)}", path)


def _order_kind(attribute: Attribute) -> str | None:
    if isinstance(attribute, Integer | Real):
        return "numbers"
    if isinstance(attribute, Time):
        return "times"
    return "dates" if isinstance(attribute, Ranged) else None


def _decimals(attribute: Attribute) -> int:
    return attribute.decimal_places if isinstance(attribute, Real) else 0


def _require_whole_cells(attribute: Attribute, condition: Condition, path: ErrorPath) -> None:
    """Refuse a range that begins or ends inside a cell, because a rule applies to whole cells only."""
    _select_cells(attribute, condition, path)
    if not isinstance(attribute, Ranged):
        return
    for part in condition if isinstance(condition, tuple) else (condition,):
        if part != MISSING and attribute.widen_to_whole_cells(part):
            raise SchemaError(
                f"{part!r} begins or ends inside a cell of {attribute.name!r}, so the rule would also apply to other "
                "values of it; give the attribute bins that start at the first value and after the last, or spikes",
                path,
            )


def _select_cells(attribute: Attribute, condition: object, path: ErrorPath) -> NDArray[np.bool_]:
    try:
        return attribute.select(condition)  # type: ignore[arg-type]
    except SchemaError as error:
        prefix = "" if repr(attribute.name) in str(error) else f"{attribute.name!r}: "
        raise SchemaError(f"{prefix}{error}", path) from None


def _require_exact(target: Attribute, value: Value, path: ErrorPath) -> None:
    """Refuse a derived value that shares its cell with other values, because the cell represents all of them."""
    cell = int(np.flatnonzero(_select_cells(target, value, path))[0])
    if isinstance(target, Ranged) and cell < target.proper_cells:
        edges = target.grid().edges
        if edges[cell + 1] - edges[cell] > 1:
            raise SchemaError(
                f"{value} shares its cell of {target.name!r} with other values; list it under spikes", path
            )


# ── public totals ────────────────────────────────────────────────────────────────────────────────────────────


def check_totals(model: ConstraintModel) -> None:
    """Refuse totals that cannot all be true: parts larger than the whole, or rows that the rules exclude."""
    for total in model.totals:
        if total.count and find_satisfying_row(model.row_constraints, model.sizes, dict(total.selection)) is None:
            raise _contradiction(total, "the rules exclude every row that it counts")
    for one, other in permutations(model.totals, 2):
        if one.count > other.count and _is_subset(one, other, model.sizes):
            raise _contradiction(
                one, f"its {one.count:,} rows are among the rows of rule {other.number}, which are {other.count:,}"
            )
    for whole in model.totals:
        parts = [total for total in model.totals if total is not whole and _is_subset(total, whole, model.sizes)]
        for axis in sorted({axis for part in parts for axis, _ in part.selection}):
            _check_parts(whole, [p for p in parts if [index for index, _ in p.selection] == [axis]], axis, model)


def _check_parts(whole: TotalConstraint, parts: list[TotalConstraint], axis: int, model: ConstraintModel) -> None:
    """Refuse parts by one attribute that add up to more than the whole, or that cover it and add up to less."""
    masks = [dict(part.selection)[axis] for part in parts]
    covered = np.sum(masks, axis=0) if masks else np.zeros(model.sizes[axis])
    counts = sum(part.count for part in parts)
    if not parts or covered.max() > 1:
        return
    complete = (covered > 0)[dict(whole.selection).get(axis, np.ones(model.sizes[axis], np.bool_))].all()
    if counts > whole.count or (complete and counts < whole.count):
        raise _contradiction(
            parts[-1], f"the totals by {model.names[axis]!r} add up to {counts:,}, but the whole is {whole.count:,}"
        )


def _is_subset(part: TotalConstraint, whole: TotalConstraint, sizes: tuple[int, ...]) -> bool:
    """Whether every row that ``part`` counts is also counted by ``whole``."""
    selected = dict(part.selection)
    return all(
        not (selected.get(index, np.ones(sizes[index], np.bool_)) & ~mask).any() for index, mask in whole.selection
    )


def _contradiction(total: TotalConstraint, reason: str) -> SchemaError:
    return SchemaError(f"this total cannot be true: {reason}", ("rules", total.number - 1, "count"))
