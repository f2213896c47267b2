"""A drafted schema in memory: edited, approved and passed on without a file.

Privacy: a draft holds exact facts about rows. No message and no repr of it shows anything but the names of columns;
``to_yaml`` shows all of it, to whoever asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from dpsyn import notebook
from dpsyn.atomic_files import write_text
from dpsyn.errors import SchemaError, quote_argument
from dpsyn.schema import approval, files, yaml_io
from dpsyn.schema.attributes import format_names, suggest_names
from dpsyn.schema.schema import AnyAttribute, Schema
from dpsyn.schema.yaml_documents import parse_document

_KEPT_FIELDS = ("missing", "provenance", "because", "description")
"""The fields of an attribute that stay if it gets another kind."""

_TABLE_FIELDS = ("dataset", "expected_size", "neighbors", "privacy_unit")
"""The fields of the whole table that ``describe_table`` sets."""


class SchemaDraft:
    """A schema that was drafted from private rows, which a person corrects and approves: what ``draft_schema`` returns.

    Every method returns a new draft. It can be given wherever a schema is expected; a release refuses it until all of
    it is approved.

    Privacy: a draft is private until everything in it is approved. Only ``to_yaml``, ``save`` and ``to_schema`` show
    what was read off the rows; the repr and all messages name columns only.

    >>> import dpsyn
    >>> from dpsyn.demo import people
    >>> rows = people(rows=500).select(["age", "sex"])
    >>> draft = dpsyn.draft_schema(rows)                     # a private look: print(draft.to_yaml())
    >>> draft = draft.edit("age", low=0, high=120)           # what is possible, not what occurs
    >>> draft = draft.approve("age", "sex", because="questionnaire 2024")
    >>> draft
    SchemaDraft(2 attributes, all approved: age, sex)
    >>> synopsis = dpsyn.measure(rows, draft, epsilon=1.0, recipe="independent")
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise SchemaError(
                f"the text of a draft is {quote_argument(text)}; give YAML text, as draft_schema makes it"
            )
        self._text = text

    # ── what it shows ────────────────────────────────────────────────────────────────────────────────────────

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple(self._attributes())

    @property
    def unapproved(self) -> tuple[str, ...]:
        """The names of the attributes that were taken from the data and are not approved yet."""
        attributes = self._attributes().items()
        return tuple(
            name for name, entry in attributes if isinstance(entry, dict) and entry.get("provenance") == "data"
        )

    def __repr__(self) -> str:
        waiting = len(self.unapproved)
        state = f"{waiting} not approved" if waiting else "all approved"
        number = len(self.names)
        return f"SchemaDraft({number} attribute{'s' * (number != 1)}, {state}: {format_names(self.names)})"

    def _repr_html_(self) -> str:
        rows = [(name, "not yet" if name in self.unapproved else "yes") for name in self.names]
        notes = ("print(draft.to_yaml()) shows what was read off the rows.",)
        notice = "PRIVATE until everything is approved." if self.unapproved else ""
        return notebook.html_table(repr(self), ("attribute", "approved"), rows, notice=notice, notes=notes)

    def to_yaml(self) -> str:
        """The draft as YAML text, with comments for the person who completes it; private."""
        return self._text

    def save(self, path: str | Path) -> None:
        """Write the draft as a schema file that only its owner can read."""
        write_text(Path(path), self._text, private=True)

    def to_schema(self) -> Schema:
        """The draft as a schema; a SchemaError names the attribute that is not valid, without its values."""
        try:
            return files.parse_schema(self._text)
        except SchemaError as error:
            raise self._without_values(error) from None

    # ── edits ────────────────────────────────────────────────────────────────────────────────────────────────

    def edit(self, name: str, /, **fields: Any) -> SchemaDraft:
        """The draft with other fields of an attribute, such as ``edit("age", low=0, high=120)``.

        None removes a field. Another ``kind`` removes all fields that belong to the old one. The attribute is approved
        separately, with ``approve``. ``docs/schema.md`` lists the fields of every kind.
        """
        entry = self._entry(name)
        if fields.get("kind", entry.get("kind")) != entry.get("kind"):
            entry = {key: entry[key] for key in _KEPT_FIELDS if key in entry}
        changed = {**entry, **{key: _plain(value) for key, value in fields.items()}}
        first = {"kind": changed.pop("kind", None), **{k: v for k, v in changed.items() if k not in _KEPT_FIELDS}}
        last = {key: changed[key] for key in _KEPT_FIELDS if key in changed}
        return self._replace_entry(name, {k: v for k, v in (first | last).items() if v is not None})

    def replace_attribute(self, attribute: AnyAttribute) -> SchemaDraft:
        """The draft with a new description of an attribute, such as ``dpsyn.Integer(name="age", low=0, high=120)``.

        What it says is taken as you wrote it, from a public source: ``provenance: public``.
        """
        name = getattr(attribute, "name", None)
        self._entry(name)
        document = files.to_document(Schema(attributes=(attribute,)))["attributes"]
        return self._replace_entry(str(name), document[name])

    def drop(self, *names: str) -> SchemaDraft:
        """The draft without some attributes; their columns are not read."""
        text = self._text
        for name in names:
            self._entry(name)
            key, value = _attribute_nodes(text)[name]
            start = text.rfind("\n", 0, key.start_mark.index) + 1
            text = text[:start] + text[_end_of_line(text, approval.end_of_node(value)) :]
        return SchemaDraft(text)

    def describe_table(self, **fields: Any) -> SchemaDraft:
        """The draft with the dataset's name, its expected size, the neighboring relation, or the privacy unit.

        For example ``describe_table(dataset="survey 2024", expected_size=40_000)``.
        """
        for field in fields:
            if field not in _TABLE_FIELDS:
                raise SchemaError(f"a table has no field {field!r}; {suggest_names(field, _TABLE_FIELDS)}")
        text = self._text
        for field, value in fields.items():
            nodes = _fields(yaml_io.compose_nodes(text))
            line = yaml_io.write_yaml({field: _plain(value)})
            if field in nodes:
                key, old = nodes[field]
                end = _end_of_line(text, max(key.end_mark.index, approval.end_of_node(old)))
                text = text[: key.start_mark.index] + line + text[end:]
            else:
                before = nodes["attributes"][0].start_mark.index
                text = text[:before] + line + text[before:]
        return SchemaDraft(text)

    def approve(self, *names: str, because: str, everything: bool = False) -> SchemaDraft:
        """The draft in which some attributes are declared public, with the reason, as ``dpsyn schema approve`` does.

        Compare them with a public source first, and correct them. The certificate of a release lists them as drafted
        from the data, with the reason. ``everything`` approves all that was taken from the data.
        """
        return SchemaDraft(approval.approve_text(self._text, names, because, everything=everything))

    # ── entries of the text ──────────────────────────────────────────────────────────────────────────────────

    def _attributes(self) -> Mapping[str, Any]:
        entries: Any = parse_document(self._text, lambda document: document.get("attributes"))
        return entries if isinstance(entries, dict) else {}

    def _entry(self, name: object) -> dict[str, Any]:
        attributes = self._attributes()
        if not isinstance(name, str) or name not in attributes:
            raise SchemaError(f"there is no attribute {quote_argument(name)}; {suggest_names(name, list(attributes))}")
        entry = attributes[name]
        return entry if isinstance(entry, dict) else {}

    def _replace_entry(self, name: str, entry: dict[str, Any]) -> SchemaDraft:
        """The draft with other fields of an attribute; the rest of the text, and its comments, stay."""
        text = self._text
        key, value = _attribute_nodes(text)[name]
        indent = " " * (key.start_mark.column + 2)
        body = "".join(f"{indent}{line}\n" for line in yaml_io.write_yaml(entry).splitlines())
        end = _end_of_line(text, approval.end_of_node(value))
        return SchemaDraft(f"{text[: key.end_mark.index]}:\n{body}{text[end:]}")

    def _without_values(self, error: SchemaError) -> SchemaError:
        """An error without its message, which may quote what was taken from the data."""
        if not self.unapproved:
            return error
        section, name = (*error.path, "", "")[:2]
        where = f"attribute {name!r}" if section == "attributes" and name in self.names else "an entry"
        field = f", field {error.path[2]!r}" if where != "an entry" and len(error.path) > 2 else ""
        return SchemaError(
            f"{where} of the draft is not valid{field}. The draft is private, so this message does not quote it; "
            "look at draft.to_yaml(), and correct it with draft.edit(...)",
            error.path,
        )


def _plain(value: Any) -> Any:
    """A value as YAML has it."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, Sequence) and not isinstance(value, str) else value


def _fields(node: Any) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    return {key.value: (key, value) for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}


def _attribute_nodes(text: str) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    return _fields(_fields(yaml_io.compose_nodes(text))["attributes"][1])


def _end_of_line(text: str, position: int) -> int:
    """The start of the line after a position."""
    line_break = text.find("\n", position)
    return len(text) if line_break < 0 else line_break + 1
