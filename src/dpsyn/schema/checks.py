"""Whether the relations of a schema fit its attributes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import SchemaError
from dpsyn.schema.attributes import MISSING, Attribute, Identifier, Open, Value, format_names
from dpsyn.schema.constraint_model import ConstraintModel, Mask, TotalConstraint, compile_constraints
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
from dpsyn.schema.solver import find_satisfying_row

if TYPE_CHECKING:
    from dpsyn.schema.schema import Schema


ErrorPath = tuple[str | int, ...]


def check_relations(schema: Schema) -> None:
    """Refuse a unit, a derivation, a group or a rule that the attributes contradict."""
    _check_privacy_unit(schema)
    _check_derive(schema)
    _check_measure_together(schema)
    for index, rule in enumerate(schema.rules):
        _check_rule(schema, rule, ("rules", index))
    _check_rules_together(schema)


def _check_privacy_unit(schema: Schema) -> None:
    if schema.privacy_unit is None:
        return
    if schema.privacy_unit.id not in schema or not isinstance(schema[schema.privacy_unit.id], Identifier):
        raise SchemaError(
            f"unit: {schema.privacy_unit.id!r} must be an attribute of kind identifier, so that it is never measured",
            ("privacy_unit", "id"),
        )


def _check_derive(schema: Schema) -> None:
    names = Counter(derive.name for derive in schema.derive)
    for derive in schema.derive:
        path = ("derive", derive.name)
        _require_attributes(schema, [derive.name, derive.source], path)
        if derive.source in names:
            raise SchemaError(f"{derive.name!r} follows from {derive.source!r}, itself derived", path)
        if names[derive.name] > 1:
            raise SchemaError(f"{derive.name!r} is derived twice", path)
        _check_mapping(schema, derive, path)


def _check_mapping(schema: Schema, derive: Derive, path: ErrorPath) -> None:
    source, target = _require_coded(schema, derive.source, path), _require_coded(schema, derive.name, path)
    reached = np.zeros(source.cells, dtype=np.bool_)
    for value, derived in derive.mapping:
        entry = (*path, "mapping", str(value))
        chosen = _select_cells(source, value, entry)
        if (reached & chosen).any():
            raise SchemaError(
                f"{derive.name!r}: {value!r} overlaps another entry, or ends inside a cell of {derive.source!r}; "
                "give that attribute bins that start where the ranges do",
                entry,
            )
        reached |= chosen
        _require_exact(target, derived, entry)
    if derive.otherwise is not None:
        _require_exact(target, derive.otherwise, (*path, "otherwise"))
    elif not reached[: source.proper_cells].all():
        missed = int((~reached[: source.proper_cells]).sum())
        raise SchemaError(
            f"{derive.name!r}: the mapping leaves out {missed} values of {derive.source!r}; "
            "list them or say otherwise: VALUE",
            (*path, "mapping"),
        )


def _check_measure_together(schema: Schema) -> None:
    used: set[str] = set()
    groups = Counter(recode.name for recode in schema.measure_together)
    measured = {attribute.name for attribute in schema.measured_attributes}
    for recode in schema.measure_together:
        path = ("measure_together", recode.name)
        _require_attributes(schema, recode.attributes, path)
        if len(set(recode.attributes)) < max(2, len(recode.attributes)):
            raise SchemaError(f"{recode.name!r} needs at least two different attributes", path)
        if recode.name in schema:
            raise SchemaError(f"{recode.name!r} is an attribute; give the group another name", path)
        if groups[recode.name] > 1:
            raise SchemaError(f"two groups are called {recode.name!r}; rename one", path)
        if not recode.name:
            raise SchemaError("a group has an empty name; give it one", path)
        if used.intersection(recode.attributes):
            raise SchemaError(f"{recode.name!r} uses an attribute that is in another group", path)
        unmeasured = set(recode.attributes) - measured
        if unmeasured:
            raise SchemaError(f"{min(unmeasured)!r} is not measured and cannot be recoded", path)
        sizes = [schema[name].size for name in recode.attributes if schema[name].coded]
        if math.prod(sizes) > MAX_JOINT_VALUES:
            raise SchemaError(
                f"{recode.name!r} has {math.prod(sizes):,} combinations of values, more than {MAX_JOINT_VALUES:,}; "
                "give its attributes fewer bins, or leave one out",
                path,
            )
        used.update(recode.attributes)


def _check_rule(schema: Schema, rule: AnyRule, path: ErrorPath) -> None:
    _require_attributes(schema, rule.mentions(), path)
    match rule:
        case Impossible() if not rule.where:
            raise SchemaError("an impossible combination needs at least one condition", path)
        case Impossible() | Total():
            for name, condition in rule.where:
                if not isinstance(schema[name], Open):  # its values are checked once they are bought
                    _require_whole_cells(_require_coded(schema, name, path), condition, (*path, "where", name))
        case Order() if len(set(rule.attributes)) < max(2, len(rule.attributes)):
            raise SchemaError("an order needs at least two different attributes", path)
        case Sum() if not rule.parts or rule.total in rule.parts:
            raise SchemaError("a sum needs parts, and the total is not one of them", path)
    match rule:
        case Order():
            _check_order(schema, rule, path)
        case Sum():
            _check_sum(schema, rule, path)
        case Total() if rule.count < 0:
            raise SchemaError(f"count is {rule.count}; it cannot be negative", (*path, "count"))
        case Total() if rule.count > MAX_PUBLIC_TOTAL:
            raise SchemaError(
                f"count is {rule.count:,}; tables have {MAX_PUBLIC_TOTAL:,} rows at most", (*path, "count")
            )


def _check_order(schema: Schema, rule: Order, path: ErrorPath) -> None:
    kinds = {_order_kind(schema[name]) for name in rule.attributes}
    if None in kinds or len(kinds) > 1:
        raise SchemaError("an order compares numbers with numbers, or dates with dates", path)


def _check_sum(schema: Schema, rule: Sum, path: ErrorPath) -> None:
    if any(_order_kind(schema[name]) != "numbers" for name in rule.mentions()):
        raise SchemaError("a sum is of attributes of kind integer or real", path)
    decimals = {name: _decimals(schema[name]) for name in rule.mentions()}
    if len(set(decimals.values())) > 1:
        told = ", ".join(f"{name} {number}" for name, number in decimals.items())
        raise SchemaError(f"a sum needs the same decimals in all its attributes; there are {told}", path)


def _check_rules_together(schema: Schema) -> None:
    """Refuse rules that no row can keep, by themselves or together, and totals that contradict each other."""
    known = compile_constraints(schema)
    for places, rules in known.components():
        for last in range(1, len(rules) + 1):
            if find_satisfying_row([rules[last - 1]], known.sizes) is None:
                path: ErrorPath = ("rules", rules[last - 1].number - 1)
                raise SchemaError("no row can keep this rule: it contradicts the domains of its attributes", path)
        if find_satisfying_row(rules, known.sizes) is None:
            last = next(
                last for last in range(1, len(rules) + 1) if find_satisfying_row(rules[:last], known.sizes) is None
            )
            about = format_names([known.names[place] for place in places])
            message = f"no row can keep this rule and those before it that speak of the same attributes ({about})"
            raise SchemaError(message, ("rules", rules[last - 1].number - 1))
    check_totals(known)


def _require_coded(schema: Schema, name: str, path: ErrorPath) -> Attribute:
    attribute = schema[name]
    if not attribute.coded:
        raise SchemaError(f"{name!r} has no public list of values and cannot be used here", path)
    return attribute


def _require_attributes(schema: Schema, names: Iterable[str], path: ErrorPath) -> None:
    for name in names:
        if name not in schema:
            raise SchemaError(f"there is no attribute {name!r}; there are {format_names(schema.names)}", path)


def _order_kind(attribute: Attribute) -> str | None:
    if isinstance(attribute, Integer | Real):
        return "numbers"
    return "dates" if isinstance(attribute, Ranged) else None


def _decimals(attribute: Attribute) -> int:
    return attribute.decimal_places if isinstance(attribute, Real) else 0


def _require_whole_cells(attribute: Attribute, condition: Condition, path: ErrorPath) -> None:
    """Refuse a range that ends inside a cell, because a rule can only speak of the cell as a whole."""
    _select_cells(attribute, condition, path)
    if not isinstance(attribute, Ranged):
        return
    for part in condition if isinstance(condition, tuple) else (condition,):
        if part != MISSING and attribute.widen_to_whole_cells(part):
            raise SchemaError(
                f"{part!r} begins or ends inside a cell of {attribute.name!r}, so the rule would also hold for its "
                "neighbors; give that attribute bins that start at its first value and after its last, or spikes",
                path,
            )


def _select_cells(attribute: Attribute, condition: object, path: ErrorPath) -> NDArray[np.bool_]:
    try:
        return attribute.select(condition)  # type: ignore[arg-type]
    except SchemaError as error:
        about = "" if repr(attribute.name) in str(error) else f"{attribute.name!r}: "
        raise SchemaError(f"{about}{error}", path) from None


def _require_exact(target: Attribute, value: Value, path: ErrorPath) -> None:
    """Refuse a derived value that shares its cell with others, because the cell stands for all of them."""
    cell = int(np.flatnonzero(_select_cells(target, value, path))[0])
    if isinstance(target, Ranged) and cell < target.proper_cells:
        edges = target.grid().edges
        if edges[cell + 1] - edges[cell] > 1:
            raise SchemaError(f"{value} shares its cell of {target.name!r} with others; list it under spikes", path)


# ── Whether public numbers of rows contradict each other ──


def check_totals(known: ConstraintModel) -> None:
    """Refuse totals that cannot all be true: parts larger than the whole, or rows that rules exclude."""
    for total in known.totals:
        if total.count and find_satisfying_row(known.row_constraints, known.sizes, dict(total.selection)) is None:
            raise _contradiction(total, "the rules allow no row that it counts")
    for one, other in permutations(known.totals, 2):
        if one.count > other.count and _is_subset(one, other, known.sizes):
            raise _contradiction(one, f"it counts {one.count:,} rows among the {other.count:,} of rule {other.number}")
    for whole in known.totals:
        parts = [total for total in known.totals if total is not whole and _is_subset(total, whole, known.sizes)]
        for place in sorted({place for part in parts for place, _ in part.selection}):
            _check_parts(whole, [p for p in parts if [at for at, _ in p.selection] == [place]], place, known)


def _check_parts(whole: TotalConstraint, parts: list[TotalConstraint], place: int, known: ConstraintModel) -> None:
    """Refuse parts by one attribute that add up to more than the whole, or cover it and add up to less."""
    masks = [dict(part.selection)[place] for part in parts]
    covered = np.sum(masks, axis=0) if masks else np.zeros(known.sizes[place])
    counts = sum(part.count for part in parts)
    if not parts or covered.max() > 1:
        return
    complete = (covered > 0)[dict(whole.selection).get(place, np.ones(known.sizes[place], np.bool_))].all()
    if counts > whole.count or (complete and counts < whole.count):
        told = (
            f"the totals by {known.names[place]!r} add up to {counts:,}, and those of all of them are {whole.count:,}"
        )
        raise _contradiction(parts[-1], told)


def _is_subset(part: TotalConstraint, whole: TotalConstraint, sizes: tuple[int, ...]) -> bool:
    """Whether every row that the first counts is one that the second counts."""
    narrow = dict(part.selection)

    def everything(place: int) -> Mask:
        return np.ones(sizes[place], np.bool_)

    return all(not (narrow.get(place, everything(place)) & ~mask).any() for place, mask in whole.selection)


def _contradiction(total: TotalConstraint, why: str) -> SchemaError:
    return SchemaError(f"this total cannot be true: {why}", ("rules", total.number - 1, "count"))
