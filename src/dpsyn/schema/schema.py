"""The public description of a table, as one value."""

from __future__ import annotations

import functools
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from dpsyn.atomic_files import write_text
from dpsyn.errors import SchemaError
from dpsyn.schema.attributes import (
    MISSING,
    Boolean,
    Categorical,
    Identifier,
    Open,
    Ordinal,
    canonical_text,
    format_names,
    freeze,
)
from dpsyn.schema.checks import check_relations
from dpsyn.schema.ranges import Datetime, Integer, Real
from dpsyn.schema.relations import (
    AnyRule,
    Derive,
    Impossible,
    JointAttribute,
    NeighboringRelation,
    Total,
    UnitDeclaration,
)

AnyAttribute = Categorical | Ordinal | Boolean | Integer | Real | Datetime | Open | Identifier


class Schema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, dict=True):
    """All that is public about a table: its attributes, their relations, and whom the guarantee protects.

    Attributes:
        attributes: one per column, in the order of the synthetic table.
        dataset: the name under which releases of this table share a privacy budget.
        expected_size: a public guess of the number of rows; never read off the data.
        neighbors: tables that the guarantee makes alike: ``add-remove`` one row, or ``replace`` one.
        privacy_unit: whose rows are protected together; left out, every row is its own.
        derive: attributes that follow from others.
        measure_together: attributes measured as one.
        rules: what holds in every row, or of the whole table.
    """

    attributes: tuple[AnyAttribute, ...]
    dataset: str = ""
    expected_size: int | None = None
    neighbors: NeighboringRelation = "add-remove"
    privacy_unit: UnitDeclaration | None = None
    derive: tuple[Derive, ...] = ()
    measure_together: tuple[JointAttribute, ...] = ()
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
        check_relations(self)
        if not self.measured_attributes:
            raise SchemaError("no attribute is left to measure; all are identifiers or derived", ("attributes",))

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema file; an error names its line."""
        from dpsyn.schema import files

        return files.load_schema(path)

    @classmethod
    def coerce(cls, value: object) -> Schema:
        """A schema from a schema, or from the path of a schema file; anything else is a SchemaError."""
        if isinstance(value, cls):
            return value
        if isinstance(value, str | Path):
            return cls.load(value)
        raise SchemaError(
            f"a schema was expected, but a {type(value).__name__} was given; "
            "give a Schema, or the path of a schema file such as 'schema.yaml'"
        )

    @classmethod
    def from_yaml(cls, text: str) -> Schema:
        """Read a schema from YAML text; an error names its line."""
        from dpsyn.schema import files

        return files.parse_schema(text)

    def to_yaml(self) -> str:
        """The schema as YAML text, which reads back as the same schema."""
        from dpsyn.schema import files, yaml_io

        return yaml_io.write_yaml(files.to_document(self))

    def save(self, path: str | Path) -> None:
        """Write a schema file."""
        write_text(Path(path), self.to_yaml())

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """JSON Schema of schema files, with which editors complete and check them."""
        from dpsyn.schema import json_schema

        return json_schema.build_json_schema()

    # ── looking ──────────────────────────────────────────────────────────────────────────────────────────

    def __getitem__(self, name: str) -> AnyAttribute:
        if name not in self._by_name:
            raise SchemaError(f"there is no attribute {name!r}; there are {format_names(self.names)}")
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    @functools.cached_property
    def _by_name(self) -> dict[object, AnyAttribute]:
        """Every attribute by its name: tables of thousands of columns look each of them up."""
        return {attribute.name: attribute for attribute in self.attributes}

    def __iter__(self) -> Iterator[AnyAttribute]:
        return iter(self.attributes)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all attributes."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def open_attributes(self) -> tuple[Open, ...]:
        """The attributes whose values are not public and must be discovered privately."""
        return tuple(attribute for attribute in self.measured_attributes if isinstance(attribute, Open))

    @property
    def row_count_is_public(self) -> bool:
        """Whether the number of rows is public, because all neighboring tables have the same number.

        Under ``replace`` one row is replaced by another row. With a privacy unit, the rows of one person are replaced
        by those of another, who may have more or fewer of them, so the number of rows stays private.
        """
        return self.neighbors == "replace" and self.privacy_unit is None

    @property
    def measured_attributes(self) -> tuple[AnyAttribute, ...]:
        """The attributes that a release measures: neither identifiers nor derived."""
        derived = {derive.name for derive in self.derive}
        return tuple(a for a in self.attributes if not isinstance(a, Identifier) and a.name not in derived)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns a private table must have: the measured ones and the unit's id."""
        ids = {self.privacy_unit.id} if self.privacy_unit else set()
        needed = {attribute.name for attribute in self.measured_attributes} | ids
        return tuple(name for name in self.names if name in needed)

    def replace_attribute(self, attribute: AnyAttribute) -> Schema:
        """The same schema with one attribute described anew, such as an open one whose values were bought."""
        self[attribute.name]
        return msgspec.structs.replace(self, attributes=self._attributes_with(attribute))

    def _attributes_with(self, attribute: AnyAttribute) -> tuple[AnyAttribute, ...]:
        return tuple(attribute if old.name == attribute.name else old for old in self.attributes)

    def with_discovered_values(self, attribute: Categorical) -> Schema:
        """The schema once the values of an open attribute are bought.

        Conditions on values that were not bought meet no row any more: a rule that consists of them is dropped. So are
        all rules on the attribute if no row could keep them with just these values: a release must not fail because of
        what is in a table.
        """
        known = {canonical_text(value) for value in attribute.all_values()}
        rules = tuple(_drop_unknown_values(rule, attribute.name, known) for rule in self.rules)
        kept = tuple(rule for rule in rules if rule is not None)
        try:
            return msgspec.structs.replace(self, rules=kept, attributes=self._attributes_with(attribute))
        except SchemaError:
            others = tuple(rule for rule in kept if attribute.name not in rule.mentions())
            return msgspec.structs.replace(self, rules=others, attributes=self._attributes_with(attribute))

    # ── the guarantee ────────────────────────────────────────────────────────────────────────────────────

    def unapproved_statements(self) -> tuple[str, ...]:
        """What was read off the data and not yet declared public, in words."""
        statements = [
            *((f"attribute {a.name!r}", a.provenance) for a in self.attributes),
            *((f"derive {d.name!r}", d.provenance) for d in self.derive),
            *((f"rule {number}", r.provenance) for number, r in enumerate(self.rules, start=1)),
        ]
        return tuple(words for words, provenance in statements if provenance == "data")

    def declared_public(self) -> tuple[str, ...]:
        """What a release takes as known without the data, with the reasons given, for its certificate."""
        stated = [(a.name, a.because) for a in self.attributes]
        stated += [(f"derive {d.name}", d.because) for d in self.derive]
        stated += [(f"rule {number}", r.because) for number, r in enumerate(self.rules, start=1)]
        return tuple(f"{what}: {because}" if because else what for what, because in stated)

    def require_public(self, file: str = "schema.yaml") -> None:
        """Refuse a release while anything here was read off the data; ``file`` is where a person would approve it.

        Privacy: a domain is part of what is published. If its values or bounds come from the rows, a single
        person can be seen in it — the one who is oldest, or the only one of an occupation — and no noise added
        later hides that.
        """
        found = self.unapproved_statements()
        if found:
            shown = ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
            raise SchemaError(
                f"{shown}: read off the data (provenance: data), so publishing it would leak: a bound or a rare "
                "value can belong to one person, and noise on counts does not hide it. Compare it with a public "
                "source such as a code book, correct it, and say so: "
                f'dpsyn schema approve {shlex.quote(file)} ATTRIBUTE... --because "code book 2024". '
                "Columns without a public list of values can be kind: open, whose values are bought."
            )


def _drop_unknown_values(rule: AnyRule, name: str, known: set[str]) -> AnyRule | None:
    """A rule whose condition on one attribute names known values only; None if none is left."""
    if not isinstance(rule, Impossible | Total) or name not in rule.mentions():
        return rule
    where = []
    for attribute, condition in rule.where:
        values = condition if isinstance(condition, tuple) else (condition,)
        left = tuple(v for v in values if attribute != name or canonical_text(v) in known or v == MISSING)
        if not left:
            return None
        where.append((attribute, left if isinstance(condition, tuple) else left[0]))
    return msgspec.structs.replace(rule, where=tuple(where))
