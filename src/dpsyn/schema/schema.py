"""The public description of a table, as one value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from dpsyn.errors import SchemaError
from dpsyn.outputs import write_text
from dpsyn.schema.attributes import (
    MISSING,
    Attribute,
    Boolean,
    Categorical,
    Identifier,
    Open,
    Ordinal,
    Value,
    freeze,
    split_range,
)
from dpsyn.schema.ranges import Datetime, Integer, Ranged, Real
from dpsyn.schema.relations import (
    AnyRule,
    Condition,
    Derive,
    Impossible,
    Neighbours,
    Order,
    Recode,
    Sum,
    Total,
    Unit,
)

AnyAttribute = Categorical | Ordinal | Boolean | Integer | Real | Datetime | Open | Identifier


class Schema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """All that is public about a table: its attributes, their relations, and whom the guarantee protects.

    Attributes:
        attributes: one per column, in the order of the synthetic table.
        dataset: the name under which releases of this table share a privacy budget.
        expected_size: a public guess of the number of rows; never read off the data.
        neighbours: tables that the guarantee makes alike: ``add-remove`` one row, or ``replace`` one.
        unit: whose rows are protected together; left out, every row is its own.
        derive: attributes that follow from others.
        recode: attributes measured as one.
        rules: what holds in every row, or of the whole table.
    """

    attributes: tuple[AnyAttribute, ...]
    dataset: str = ""
    expected_size: int | None = None
    neighbours: Neighbours = "add-remove"
    unit: Unit | None = None
    derive: tuple[Derive, ...] = ()
    recode: tuple[Recode, ...] = ()
    rules: tuple[AnyRule, ...] = ()

    def __post_init__(self) -> None:
        freeze(self)
        if not self.attributes:
            raise SchemaError("a schema needs at least one attribute", ("attributes",))
        names = Counter(attribute.name for attribute in self.attributes)
        for name, times in names.items():
            if times > 1:
                raise SchemaError(f"attribute {name!r} is described twice", ("attributes", name))
        if self.expected_size is not None and self.expected_size < 1:
            raise SchemaError(f"expected_size is {self.expected_size}; it must be at least 1", ("expected_size",))
        self._check_unit()
        self._check_derive()
        self._check_recode()
        for index, rule in enumerate(self.rules):
            self._check_rule(rule, ("rules", index))
        if not self.measured:
            raise SchemaError("no attribute is left to measure; all are identifiers or derived", ("attributes",))

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema file; an error names its line."""
        from dpsyn.schema import files

        return files.load(Path(path))

    @classmethod
    def from_yaml(cls, text: str) -> Schema:
        """Read a schema from YAML text; an error names its line."""
        from dpsyn.schema import files

        return files.parse(text)

    def to_yaml(self) -> str:
        """The schema as YAML text, which reads back as the same schema."""
        from dpsyn.schema import files, yamltext

        return yamltext.write(files.document_of(self))

    def save(self, path: str | Path) -> None:
        """Write a schema file."""
        write_text(Path(path), self.to_yaml())

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """JSON Schema of schema files, with which editors complete and check them."""
        from dpsyn.schema import jsonschema

        return jsonschema.json_schema()

    # ── looking ──────────────────────────────────────────────────────────────────────────────────────────

    def __getitem__(self, name: str) -> AnyAttribute:
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise SchemaError(f"there is no attribute {name!r}; there are {', '.join(self.names)}")

    def __contains__(self, name: object) -> bool:
        return any(attribute.name == name for attribute in self.attributes)

    def __iter__(self) -> Iterator[AnyAttribute]:
        return iter(self.attributes)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all attributes."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def measured(self) -> tuple[AnyAttribute, ...]:
        """The attributes that a release measures: neither identifiers nor derived."""
        derived = {derive.name for derive in self.derive}
        return tuple(a for a in self.attributes if not isinstance(a, Identifier) and a.name not in derived)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns a private table must have: the measured ones and the unit's id."""
        ids = {self.unit.id} if self.unit else set()
        measured = {attribute.name for attribute in self.measured}
        return tuple(name for name in self.names if name in measured | ids)

    def replace_attribute(self, attribute: AnyAttribute) -> Schema:
        """The same schema with one attribute described anew, such as an open one whose values were bought."""
        self[attribute.name]
        changed = tuple(attribute if old.name == attribute.name else old for old in self.attributes)
        return msgspec.structs.replace(self, attributes=changed)

    # ── the guarantee ────────────────────────────────────────────────────────────────────────────────────

    def unapproved(self) -> tuple[str, ...]:
        """What was read off the data and not yet declared public, in words."""
        statements = [
            *((f"attribute {a.name!r}", a.provenance) for a in self.attributes),
            *((f"derive {d.name!r}", d.provenance) for d in self.derive),
            *((f"rule {number}", r.provenance) for number, r in enumerate(self.rules, start=1)),
        ]
        return tuple(words for words, provenance in statements if provenance == "data")

    def require_public(self) -> None:
        """Refuse a release while anything here was read off the data.

        Privacy: a domain is part of what is published. If its values or bounds come from the rows, a single
        person can be seen in it — the one who is oldest, or the only one of an occupation — and no noise added
        later hides that.
        """
        found = self.unapproved()
        if found:
            shown = ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
            raise SchemaError(
                f"{shown}: read off the data (provenance: data), so publishing it would leak: a bound or a rare "
                "value can belong to one person, and noise on counts does not hide it. Compare it with a public "
                "source such as a code book, correct it, and say so: "
                'dpsyn schema approve schema.yaml ATTRIBUTE... --because "code book 2024". '
                "Columns without a public list of values can be kind: open, whose values are bought."
            )

    # ── validity ─────────────────────────────────────────────────────────────────────────────────────────

    def _check_unit(self) -> None:
        if self.unit is None:
            return
        if self.unit.id not in self or not isinstance(self[self.unit.id], Identifier):
            raise SchemaError(
                f"unit: {self.unit.id!r} must be an attribute of kind identifier, so that it is never measured",
                ("unit", "id"),
            )

    def _check_derive(self) -> None:
        names = [derive.name for derive in self.derive]
        for derive in self.derive:
            path = ("derive", derive.name)
            self._require([derive.name, derive.source], path)
            if derive.source in names:
                raise SchemaError(f"{derive.name!r} follows from {derive.source!r}, itself derived", path)
            if names.count(derive.name) > 1:
                raise SchemaError(f"{derive.name!r} is derived twice", path)
            self._check_mapping(derive, path)

    def _check_mapping(self, derive: Derive, path: tuple[str | int, ...]) -> None:
        source, target = self._coded(derive.source, path), self._coded(derive.name, path)
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

    def _check_recode(self) -> None:
        used: set[str] = set()
        for recode in self.recode:
            path = ("recode", recode.name)
            self._require(recode.attributes, path)
            if len(set(recode.attributes)) < max(2, len(recode.attributes)):
                raise SchemaError(f"{recode.name!r} needs at least two different attributes", path)
            if recode.name in self:
                raise SchemaError(f"{recode.name!r} is an attribute; give the group another name", path)
            if [other.name for other in self.recode].count(recode.name) > 1:
                raise SchemaError(f"two groups are called {recode.name!r}; rename one", path)
            if not recode.name:
                raise SchemaError("a group has an empty name; give it one", path)
            if used.intersection(recode.attributes):
                raise SchemaError(f"{recode.name!r} uses an attribute that is in another group", path)
            unmeasured = set(recode.attributes) - {attribute.name for attribute in self.measured}
            if unmeasured:
                raise SchemaError(f"{min(unmeasured)!r} is not measured and cannot be recoded", path)
            used.update(recode.attributes)

    def _check_rule(self, rule: AnyRule, path: tuple[str | int, ...]) -> None:
        self._require(rule.mentions(), path)
        match rule:
            case Impossible() if not rule.where:
                raise SchemaError("an impossible combination needs at least one condition", path)
            case Impossible() | Total():
                for name, condition in rule.where:
                    if not isinstance(self[name], Open):  # its values are checked once they are bought
                        _require_whole_cells(self._coded(name, path), condition, (*path, "where", name))
            case Order() if len(set(rule.attributes)) < max(2, len(rule.attributes)):
                raise SchemaError("an order needs at least two different attributes", path)
            case Sum() if not rule.parts or rule.total in rule.parts:
                raise SchemaError("a sum needs parts, and the total is not one of them", path)
        match rule:
            case Order():
                self._check_order(rule, path)
            case Sum():
                self._check_sum(rule, path)
            case Total() if rule.count < 0:
                raise SchemaError(f"count is {rule.count}; it cannot be negative", (*path, "count"))

    def _check_order(self, rule: Order, path: tuple[str | int, ...]) -> None:
        kinds = {_order_kind(self[name]) for name in rule.attributes}
        if None in kinds or len(kinds) > 1:
            raise SchemaError("an order compares numbers with numbers, or dates with dates", path)

    def _check_sum(self, rule: Sum, path: tuple[str | int, ...]) -> None:
        if any(_order_kind(self[name]) != "numbers" for name in rule.mentions()):
            raise SchemaError("a sum is of attributes of kind integer or real", path)

    def _coded(self, name: str, path: tuple[str | int, ...]) -> Attribute:
        attribute = self[name]
        if not attribute.coded:
            raise SchemaError(f"{name!r} has no public list of values and cannot be used here", path)
        return attribute

    def _require(self, names: Iterable[str], path: tuple[str | int, ...]) -> None:
        for name in names:
            if name not in self:
                raise SchemaError(f"there is no attribute {name!r}; there are {', '.join(self.names)}", path)


def _order_kind(attribute: Attribute) -> str | None:
    if isinstance(attribute, Integer | Real):
        return "numbers"
    return "dates" if isinstance(attribute, Ranged) else None


def _require_whole_cells(attribute: Attribute, condition: Condition, path: tuple[str | int, ...]) -> None:
    """Refuse a range that ends inside a cell, because a rule can only speak of the cell as a whole."""
    _located(attribute, condition, path)
    if not isinstance(attribute, Ranged):
        return
    edges = set(attribute.grid().edges.tolist())
    for part in condition if isinstance(condition, tuple) else (condition,):
        if part == MISSING:
            continue
        first, last = (attribute.step_of(end) for end in split_range(part) or (part, part))
        if not {first, last + 1} <= edges:
            raise SchemaError(
                f"{part!r} begins or ends inside a cell of {attribute.name!r}, so the rule would also hold for its "
                "neighbours; give that attribute bins that start at its first value and after its last, or spikes",
                path,
            )


def _located(attribute: Attribute, condition: object, path: tuple[str | int, ...]) -> np.ndarray:
    try:
        return attribute.select(condition)  # type: ignore[arg-type]
    except SchemaError as error:
        raise SchemaError(str(error), path) from None


def _require_exact(target: Attribute, value: Value, path: tuple[str | int, ...]) -> None:
    """Refuse a derived value that shares its cell with others, because the cell stands for all of them."""
    cell = int(np.flatnonzero(_located(target, value, path))[0])
    if isinstance(target, Ranged) and cell < target.proper_cells:
        edges = target.grid().edges
        if edges[cell + 1] - edges[cell] > 1:
            raise SchemaError(f"{value} shares its cell of {target.name!r} with others; list it under spikes", path)
