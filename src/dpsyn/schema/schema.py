"""The schema: the public description of a table, as one value."""

from __future__ import annotations

import functools
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dpsyn import notebook
from dpsyn.atomic_files import write_text
from dpsyn.errors import SchemaError, UserError, quote_argument
from dpsyn.schema.attributes import (
    MISSING,
    UNCHANGED,
    Boolean,
    Categorical,
    Identifier,
    Open,
    Ordinal,
    Provenance,
    canonical_text,
    freeze,
)
from dpsyn.schema.checks import check_relations
from dpsyn.schema.clock import Time
from dpsyn.schema.file_syntax import PLAIN_FILE, FileSyntax
from dpsyn.schema.ranges import Datetime, Integer, Real, number_signs
from dpsyn.schema.relations import (
    AnyRule,
    Derive,
    Impossible,
    JointAttribute,
    NeighboringRelation,
    Total,
    UnitDeclaration,
)
from dpsyn.schema.timestamps import TimestampParts, has_parts, split_timestamp
from dpsyn.suggestions import format_names, suggest_names

THREE_STEPS = """It states what is public about the table, which nothing can learn from private rows. Three steps:

  draft = dpsyn.draft_schema(data)                                  1. a private look at the rows
  print(draft.to_yaml())                                            2. compare it with a code book, correct, approve
  draft = draft.edit("age", low=0, high=120).approve("age", because="code book 2024")
  synopsis = dpsyn.measure(data, draft, epsilon=1)                  3. the release

If you have a schema file, give its path: dpsyn.measure(data, "schema.yaml", epsilon=1)"""
"""How to get a schema, for those who start without one."""

AnyAttribute = Categorical | Ordinal | Boolean | Integer | Real | Datetime | Time | Open | Identifier


class Schema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, dict=True):
    """Everything that is public about a table: its attributes, their relations, and the privacy unit.

    Attributes:
        attributes: one entry per column, in the order of the synthetic table.
        dataset: the name under which releases of this table share a privacy budget.
        expected_size: a public estimate of the number of rows; never taken from the data.
        neighbors: the neighboring relation: two tables are neighbors if one unit is added or removed (``add-remove``),
            or replaced by another (``replace``).
        privacy_unit: whose rows are protected together; if left out, every row is a unit of its own.
        derive: attributes that are computed from others.
        measure_together: attributes that are measured as one.
        rules: constraints that hold in every row, or on the whole table.
        groups: attributes whose values divide the rows into groups, such as ``[sex, region]``; evaluations and reports
            show the error of each group.
        file: how the files of the table are written; if left out, as UTF-8 with decimal points.
    """

    attributes: tuple[AnyAttribute, ...]
    dataset: str = ""
    expected_size: int | None = None
    neighbors: NeighboringRelation = "add-remove"
    privacy_unit: UnitDeclaration | None = None
    derive: tuple[Derive, ...] = ()
    measure_together: tuple[JointAttribute, ...] = ()
    rules: tuple[AnyRule, ...] = ()
    groups: tuple[str, ...] = ()
    file: FileSyntax | None = None

    def __post_init__(self) -> None:
        freeze(self)
        if not self.attributes:
            raise SchemaError("a schema needs at least one attribute", ("attributes",))
        names = Counter(attribute.name for attribute in self.attributes)
        for name, times in names.items():
            if times > 1:
                raise SchemaError(f"attribute {quote_argument(name)} is described twice", ("attributes", name))
        if self.expected_size is not None and self.expected_size < 1:
            raise SchemaError(f"expected_size is {self.expected_size}; it must be at least 1", ("expected_size",))
        for name in (part.name for parts in self.timestamp_parts.values() for part in parts):
            if name in names:
                raise SchemaError(
                    f"attribute {quote_argument(name)} has the name of a part of a timestamp; rename the column",
                    ("attributes", name),
                )
        for attribute in self.attributes:
            if isinstance(attribute, Integer | Real):
                _check_signs(attribute, self.syntax)
        check_relations(self)
        if not self.measured_attributes:
            raise SchemaError("no attribute is left to measure; all are identifiers or derived", ("attributes",))

    def __repr__(self) -> str:
        dataset = f"{self.dataset}: " if self.dataset else ""
        number = len(self.attributes)
        return f"Schema({dataset}{number} attribute{'s' * (number != 1)}: {format_names(self.names)})"

    def _repr_html_(self) -> str:
        rows = [(a.name, a.kind, a.cells if a.coded else "", a.provenance, a.because) for a in self.attributes]
        headings = ("attribute", "kind", "distinguished values", "provenance", "because")
        private = "PRIVATE until everything is approved." if self.unapproved_statements() else ""
        return notebook.html_table(repr(self), headings, rows, notice=private)

    def plot(self, axes: notebook.Axes | None = None) -> notebook.Axes:
        """Draw how many values of each attribute are distinguished, on a logarithmic scale. Needs matplotlib."""
        coded = [a for a in self.attributes if a.coded]
        names, cells = [a.name for a in coded], [float(a.cells) for a in coded]
        drawn = notebook.plot_bars(axes, names, cells, title="Distinguished values", unit="values")
        drawn.set_xscale("log")
        return drawn

    # ── files ──────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema file; an error names the line."""
        from dpsyn.schema import files

        return files.load_schema(path)

    @classmethod
    def coerce(cls, value: object) -> Schema:
        """A schema from a schema, a draft, or the path of a schema file; anything else is a SchemaError."""
        from dpsyn.schema.schema_draft import SchemaDraft

        if isinstance(value, cls):
            return value
        if isinstance(value, SchemaDraft):
            return value.to_schema()
        if isinstance(value, str | Path):
            return cls.load(value)
        if value is None:
            raise SchemaError(f"a schema is needed. {THREE_STEPS}")
        raise SchemaError(
            f"a schema was expected, but a {type(value).__name__} was given; "
            "give a Schema, a draft of one, or the path of a schema file such as 'schema.yaml'"
        )

    @classmethod
    def from_yaml(cls, text: str) -> Schema:
        """Read a schema from YAML text; an error names the line."""
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
        """JSON Schema of schema files, which lets editors complete and check them."""
        from dpsyn.schema import json_schema

        return json_schema.build_json_schema()

    @property
    def syntax(self) -> FileSyntax:
        """How the files of the table are written."""
        return self.file or PLAIN_FILE

    # ── attributes ──────────────────────────────────────────────────────────────────────────────────────────

    def __getitem__(self, name: str) -> AnyAttribute:
        if name not in self._by_name:
            raise SchemaError(f"there is no attribute {quote_argument(name)}; {suggest_names(name, self.names)}")
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    @functools.cached_property
    def _by_name(self) -> dict[object, AnyAttribute]:
        """The attributes and the parts of timestamps by name; cached, because tables may have thousands of columns."""
        by_name: dict[object, AnyAttribute] = {
            part.name: part for parts in self.timestamp_parts.values() for part in parts
        }
        return by_name | {attribute.name: attribute for attribute in self.attributes}

    @functools.cached_property
    def timestamp_parts(self) -> dict[str, TimestampParts]:
        """The parts of each timestamp that is modeled in parts: the date, the weekday and the time of day.

        A timestamp that a rule, ``derive`` or ``measure_together`` names is modeled as one attribute.
        """
        named = {name for rule in self.rules for name in rule.mentions()}
        named |= {name for derive in self.derive for name in (derive.name, derive.source)}
        named |= {name for group in self.measure_together for name in group.attributes}
        return {
            attribute.name: split_timestamp(attribute)
            for attribute in self.attributes
            if isinstance(attribute, Datetime) and attribute.name not in named and has_parts(attribute)
        }

    @property
    def modeled_attributes(self) -> tuple[AnyAttribute, ...]:
        """The measured attributes, with timestamps in parts: what marginals are measured of."""
        parts = self.timestamp_parts
        return tuple(part for a in self.measured_attributes for part in parts.get(a.name, (a,)))

    def parts_of(self, name: str) -> tuple[str, ...]:
        """The names of the modeled attributes that a column is modeled as: its own, or those of its parts."""
        return tuple(part.name for part in self.timestamp_parts.get(name, ())) or (name,)

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
        """The columns that a private table must have: the measured ones and the id of the privacy unit."""
        ids = {self.privacy_unit.id} if self.privacy_unit else set()
        required = {attribute.name for attribute in self.measured_attributes} | ids
        return tuple(name for name in self.names if name in required)

    def replace_attribute(self, attribute: AnyAttribute) -> Schema:
        """The same schema with a new description of one attribute, such as other bins; or of a part of a timestamp."""
        self[attribute.name]
        for name, parts in self.timestamp_parts.items():
            if attribute.name in (parts.date.name, parts.time.name):
                attribute = parts.with_cuts_of(self[name], attribute)  # type: ignore[arg-type]
        return msgspec.structs.replace(self, attributes=self._attributes_with(attribute))

    def _attributes_with(self, attribute: AnyAttribute) -> tuple[AnyAttribute, ...]:
        return tuple(attribute if old.name == attribute.name else old for old in self.attributes)

    def with_discovered_values(self, attribute: Categorical) -> Schema:
        """The schema in which an open attribute is replaced by a categorical one with its discovered values.

        Conditions on values that were not discovered match no row, so a rule that needs one of them is dropped. If no
        row could satisfy the rules on the attribute with these values, all of them are dropped: a release must not
        fail because of the content of a table.
        """
        known = {canonical_text(value) for value in attribute.all_values()}
        rules = tuple(_drop_unknown_values(rule, attribute.name, known) for rule in self.rules)
        kept = tuple(rule for rule in rules if rule is not None)
        try:
            return msgspec.structs.replace(self, rules=kept, attributes=self._attributes_with(attribute))
        except SchemaError:
            others = tuple(rule for rule in kept if attribute.name not in rule.mentions())
            return msgspec.structs.replace(self, rules=others, attributes=self._attributes_with(attribute))

    # ── what is public ────────────────────────────────────────────────────────────────────────────────────

    def unapproved_statements(self) -> tuple[str, ...]:
        """The entries that were taken from the data and not yet declared public, such as ``attribute 'age'``."""
        statements = [
            *([("file", self.file.provenance)] if self.file else []),
            *((f"attribute {a.name!r}", a.provenance) for a in self.attributes),
            *((f"derive {d.name!r}", d.provenance) for d in self.derive),
            *((f"rule {number}", r.provenance) for number, r in enumerate(self.rules, start=1)),
        ]
        return tuple(entry for entry, provenance in statements if provenance == "data")

    def declared_public(self) -> tuple[str, ...]:
        """The entries that a release assumes to be known without the data, with their reasons, for its certificate."""
        entries = [
            *([("file", self.file)] if self.file else []),
            *((a.name, a) for a in self.attributes),
            *((f"derive {d.name}", d) for d in self.derive),
            *((f"rule {number}", r) for number, r in enumerate(self.rules, start=1)),
        ]
        return tuple(_describe_declaration(name, e.provenance, e.because, e.drafted) for name, e in entries)

    def with_dataset(self, name: str | None) -> Schema:
        """The schema under another name of its dataset in the ledger; the schema itself if none is given."""
        if name is None:
            return self
        if not isinstance(name, str):
            raise UserError(f"the name of the dataset is {quote_argument(name)}; give a text")
        return msgspec.structs.replace(self, dataset=name)

    def with_groups(self, names: Sequence[str] | None) -> Schema:
        """The schema with other groups that evaluations and reports show; the schema itself if none are given."""
        return self if names is None else msgspec.structs.replace(self, groups=names)

    def require_public(self, file: str = "schema.yaml") -> None:
        """Refuse a release if any entry was taken from the data; the error shows how to approve it in ``file``.

        Privacy: a domain is published together with the release. If its values or bounds come from the rows, they can
        reveal a single person, such as the oldest, or the only one with an occupation. Noise that is added later does
        not hide that.
        """
        unapproved = self.unapproved_statements()
        if unapproved:
            shown = ", ".join(unapproved[:5]) + (f" and {len(unapproved) - 5} more" if len(unapproved) > 5 else "")
            raise SchemaError(
                f"{shown}: taken from the data (provenance: data), so publishing it would leak: a bound or a rare "
                "value can belong to one person, and noise on counts does not hide it. Compare it with a public "
                "source such as a code book, correct it, and approve it: "
                f'dpsyn schema approve {shlex.quote(file)} ATTRIBUTE... --because "code book 2024" '
                '(in Python: draft.approve("ATTRIBUTE", because="code book 2024")). '
                "A column without a public list of values can be kind: open; a release discovers its values privately."
            )


def _check_signs(attribute: Integer | Real, file: FileSyntax) -> None:
    """Refuse signs of numbers that contradict those of the file."""
    try:
        number_signs(attribute, file)
    except SchemaError as error:
        raise SchemaError(f"attribute {attribute.name!r}: {error}", ("attributes", attribute.name)) from None


def _describe_declaration(name: str, provenance: Provenance, because: str, drafted: str) -> str:
    """An entry that was declared public, as the certificate lists it."""
    if provenance == "approved":
        changed = ", unchanged," if drafted == UNCHANGED else ","
        return f"{name}: drafted from the data{changed} and declared public because: {because}"
    return f"{name}: {because}" if because else name


def _drop_unknown_values(rule: AnyRule, name: str, known: set[str]) -> AnyRule | None:
    """A rule without the unknown values in its condition on one attribute; None if no value is left."""
    if not isinstance(rule, Impossible | Total) or name not in rule.mentions():
        return rule
    where = []
    for attribute, condition in rule.where:
        values = condition if isinstance(condition, tuple) else (condition,)
        kept = tuple(v for v in values if attribute != name or canonical_text(v) in known or v == MISSING)
        if not kept:
            return None
        where.append((attribute, kept if isinstance(condition, tuple) else kept[0]))
    return msgspec.structs.replace(rule, where=tuple(where))
