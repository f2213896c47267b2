"""Whether the relations of a schema fit its attributes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import SchemaError
from dpsyn.schema.attributes import MISSING, Attribute, Identifier, Open, Value, some
from dpsyn.schema.constraints import constraints_of
from dpsyn.schema.ranges import Integer, Ranged, Real
from dpsyn.schema.relations import (
    MOST_COMBINATIONS,
    MOST_ROWS,
    AnyRule,
    Condition,
    Derive,
    Impossible,
    Order,
    Sum,
    Total,
)
from dpsyn.schema.satisfying import witness
from dpsyn.schema.totals import check_totals

if TYPE_CHECKING:
    from dpsyn.schema.schema import Schema

Path = tuple[str | int, ...]


def check_relations(schema: Schema) -> None:
    """Refuse a unit, a derivation, a group or a rule that the attributes contradict."""
    _check_unit(schema)
    _check_derive(schema)
    _check_recode(schema)
    for index, rule in enumerate(schema.rules):
        _check_rule(schema, rule, ("rules", index))
    _check_rules_together(schema)


def _check_unit(schema: Schema) -> None:
    if schema.unit is None:
        return
    if schema.unit.id not in schema or not isinstance(schema[schema.unit.id], Identifier):
        raise SchemaError(
            f"unit: {schema.unit.id!r} must be an attribute of kind identifier, so that it is never measured",
            ("unit", "id"),
        )


def _check_derive(schema: Schema) -> None:
    names = Counter(derive.name for derive in schema.derive)
    for derive in schema.derive:
        path = ("derive", derive.name)
        _require(schema, [derive.name, derive.source], path)
        if derive.source in names:
            raise SchemaError(f"{derive.name!r} follows from {derive.source!r}, itself derived", path)
        if names[derive.name] > 1:
            raise SchemaError(f"{derive.name!r} is derived twice", path)
        _check_mapping(schema, derive, path)


def _check_mapping(schema: Schema, derive: Derive, path: Path) -> None:
    source, target = _coded(schema, derive.source, path), _coded(schema, derive.name, path)
    reached = np.zeros(source.cells, dtype=np.bool_)
    for value, derived in derive.mapping:
        entry = (*path, "mapping", str(value))
        chosen = _located(source, value, entry)
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


def _check_recode(schema: Schema) -> None:
    used: set[str] = set()
    groups = Counter(recode.name for recode in schema.recode)
    measured = {attribute.name for attribute in schema.measured}
    for recode in schema.recode:
        path = ("recode", recode.name)
        _require(schema, recode.attributes, path)
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
        if math.prod(sizes) > MOST_COMBINATIONS:
            raise SchemaError(
                f"{recode.name!r} has {math.prod(sizes):,} combinations of values, more than {MOST_COMBINATIONS:,}; "
                "give its attributes fewer bins, or leave one out",
                path,
            )
        used.update(recode.attributes)


def _check_rule(schema: Schema, rule: AnyRule, path: Path) -> None:
    _require(schema, rule.mentions(), path)
    match rule:
        case Impossible() if not rule.where:
            raise SchemaError("an impossible combination needs at least one condition", path)
        case Impossible() | Total():
            for name, condition in rule.where:
                if not isinstance(schema[name], Open):  # its values are checked once they are bought
                    _require_whole_cells(_coded(schema, name, path), condition, (*path, "where", name))
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
        case Total() if rule.count > MOST_ROWS:
            raise SchemaError(f"count is {rule.count:,}; tables have {MOST_ROWS:,} rows at most", (*path, "count"))


def _check_order(schema: Schema, rule: Order, path: Path) -> None:
    kinds = {_order_kind(schema[name]) for name in rule.attributes}
    if None in kinds or len(kinds) > 1:
        raise SchemaError("an order compares numbers with numbers, or dates with dates", path)


def _check_sum(schema: Schema, rule: Sum, path: Path) -> None:
    if any(_order_kind(schema[name]) != "numbers" for name in rule.mentions()):
        raise SchemaError("a sum is of attributes of kind integer or real", path)
    decimals = {name: _decimals(schema[name]) for name in rule.mentions()}
    if len(set(decimals.values())) > 1:
        told = ", ".join(f"{name} {number}" for name, number in decimals.items())
        raise SchemaError(f"a sum needs the same decimals in all its attributes; there are {told}", path)


def _check_rules_together(schema: Schema) -> None:
    """Refuse rules that no row can keep, by themselves or together, and totals that contradict each other."""
    known = constraints_of(schema)
    for places, rules in known.components():
        for last in range(1, len(rules) + 1):
            if witness([rules[last - 1]], known.sizes) is None:
                path: Path = ("rules", rules[last - 1].number - 1)
                raise SchemaError("no row can keep this rule: it contradicts the domains of its attributes", path)
        if witness(rules, known.sizes) is None:
            last = next(last for last in range(1, len(rules) + 1) if witness(rules[:last], known.sizes) is None)
            about = some([known.names[place] for place in places])
            message = f"no row can keep this rule and those before it that speak of the same attributes ({about})"
            raise SchemaError(message, ("rules", rules[last - 1].number - 1))
    check_totals(known)


def _coded(schema: Schema, name: str, path: Path) -> Attribute:
    attribute = schema[name]
    if not attribute.coded:
        raise SchemaError(f"{name!r} has no public list of values and cannot be used here", path)
    return attribute


def _require(schema: Schema, names: Iterable[str], path: Path) -> None:
    for name in names:
        if name not in schema:
            raise SchemaError(f"there is no attribute {name!r}; there are {some(schema.names)}", path)


def _order_kind(attribute: Attribute) -> str | None:
    if isinstance(attribute, Integer | Real):
        return "numbers"
    return "dates" if isinstance(attribute, Ranged) else None


def _decimals(attribute: Attribute) -> int:
    return attribute.places if isinstance(attribute, Real) else 0


def _require_whole_cells(attribute: Attribute, condition: Condition, path: Path) -> None:
    """Refuse a range that ends inside a cell, because a rule can only speak of the cell as a whole."""
    _located(attribute, condition, path)
    if not isinstance(attribute, Ranged):
        return
    for part in condition if isinstance(condition, tuple) else (condition,):
        if part != MISSING and attribute.whole_cells(part):
            raise SchemaError(
                f"{part!r} begins or ends inside a cell of {attribute.name!r}, so the rule would also hold for its "
                "neighbours; give that attribute bins that start at its first value and after its last, or spikes",
                path,
            )


def _located(attribute: Attribute, condition: object, path: Path) -> NDArray[np.bool_]:
    try:
        return attribute.select(condition)  # type: ignore[arg-type]
    except SchemaError as error:
        about = "" if repr(attribute.name) in str(error) else f"{attribute.name!r}: "
        raise SchemaError(f"{about}{error}", path) from None


def _require_exact(target: Attribute, value: Value, path: Path) -> None:
    """Refuse a derived value that shares its cell with others, because the cell stands for all of them."""
    cell = int(np.flatnonzero(_located(target, value, path))[0])
    if isinstance(target, Ranged) and cell < target.proper_cells:
        edges = target.grid().edges
        if edges[cell + 1] - edges[cell] > 1:
            raise SchemaError(f"{value} shares its cell of {target.name!r} with others; list it under spikes", path)
