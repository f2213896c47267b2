"""Entries of a schema as forms: which fields a kind has, a field as text, and a text as a field.

The fields and their explanations are those of the JSON Schema of schema files.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import dpsyn
from dpsyn.errors import UserError

MARKS = ("kind", "provenance", "because", "remark", "drafted")
"""What an entry has besides its fields."""

FIRST = ("values", "low", "high", "decimals", "start", "end", "resolution", "missing", "other", "output")
"""The fields that most entries have; the others are folded."""

LINES = ("values",)
"""Lists with a line for each value; other lists have commas."""

LABELS = {
    "values": "values, one per line, in their order",
    "codes": "number of codes",
    "low": "lowest possible",
    "high": "highest possible",
    "start": "first possible",
    "end": "last possible",
    "missing": "may be missing: yes, or its codes",
    "other": "value that unlisted cells count as",
    "output": "in synthetic rows",
}

KIND_WORDS = {
    "categorical": "one of a list",
    "ordinal": "one of an ordered list",
    "boolean": "true or false",
    "integer": "whole number",
    "real": "number",
    "datetime": "date or timestamp",
    "time": "time of day",
    "open": "text without a public list",
    "identifier": "names a person or a thing",
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a kind.

    Attributes:
        name: its name in a schema file.
        label: its name for people.
        hint: what it means.
        choices: what it may be; empty if that is not a list.
        types: the JSON types that it may have.
    """

    name: str
    label: str
    hint: str
    choices: tuple[str, ...]
    types: frozenset[str]

    @property
    def has_lines(self) -> bool:
        """Whether it is written as lines."""
        return self.name in LINES

    @property
    def comes_first(self) -> bool:
        """Whether it is always shown."""
        return self.name in FIRST

    def to_text(self, value: Any) -> str:
        """A value as a person writes it."""
        if value is None:
            return ""
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, list):
            return ("\n" if self.has_lines else ", ").join(map(str, value))
        return str(value)

    def to_value(self, text: str) -> Any:
        """The value that a person wrote; None if the field is empty."""
        text = text.replace("\r\n", "\n").strip()
        if not text:
            return None
        if self.types == {"string"} or self.choices:
            return text
        if self.has_lines:
            return _read_list(text.split("\n"))
        if "boolean" in self.types and text.lower() in ("yes", "no", "true", "false"):
            return text.lower() in ("yes", "true")
        if self.name == "missing":
            return [part.strip() for part in text.split(",")]
        if "array" in self.types and ("," in text or not self.types & {"integer", "string"}):
            return _read_list(text.split(","))
        return _read_scalar(text)


@functools.cache
def fields_of_kinds() -> Mapping[str, tuple[Field, ...]]:
    """The fields of every kind of attribute, the usual ones first."""
    definitions = dpsyn.Schema.json_schema()["$defs"]
    kinds: dict[str, tuple[Field, ...]] = {}
    for definition in definitions.values():
        properties = definition.get("properties", {})
        (kind, *_) = properties.get("kind", {}).get("enum", [""])
        if kind in KIND_WORDS and "missing" in properties:
            fields = [_field(name, shape) for name, shape in properties.items() if name not in MARKS]
            order = {name: index for index, name in enumerate(FIRST)}
            kinds[kind] = tuple(sorted(fields, key=lambda each: order.get(each.name, len(order))))
    return {kind: kinds[kind] for kind in KIND_WORDS}


def _field(name: str, shape: Mapping[str, Any]) -> Field:
    return Field(
        name=name,
        label=LABELS.get(name, name.replace("_", " ")),
        hint=str(shape.get("description", "")),
        choices=tuple(map(str, shape.get("enum", ()))),
        types=frozenset(_types(shape)),
    )


def _types(shape: Mapping[str, Any]) -> Iterator[str]:
    for option in shape.get("anyOf", [shape]):
        given = option.get("type", ())
        yield from [given] if isinstance(given, str) else given


def _read_list(parts: list[str]) -> list[Any]:
    """Values; numbers only if all of them are, so that a list of codes does not become a mixture."""
    texts = [part.strip() for part in parts if part.strip()]
    numbers = [_read_scalar(text) for text in texts]
    return numbers if all(not isinstance(number, str) for number in numbers) else list(texts)


def _read_scalar(text: str) -> str | int | float:
    """A number if the text is exactly how it is written, so that 007 stays a text."""
    for kind in (int, float):
        try:
            number = kind(text)
        except (ValueError, OverflowError):
            continue
        if str(number) == text or (kind is float and text.replace(".", "", 1).lstrip("-").isdigit() and "." in text):
            return number
    return text


def read_entry(kind: str, form: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an entry from a form; None for those that are empty."""
    fields = fields_of_kinds().get(kind)
    if fields is None:
        raise UserError(f"there is no kind {kind!r}; choose one of the list")
    changes = {
        field.name: field.to_value(str(form[f"field.{field.name}"]))
        for field in fields
        if f"field.{field.name}" in form
    }
    return {"kind": kind, **changes}


# ── what the page shows ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class EntryView:
    """An entry of a schema as the page shows it; private as long as it is not approved.

    Attributes:
        number: its position on the page.
        entry: what it declares.
        provenance: ``data``, ``approved`` or ``public``.
        because: why it is public.
    """

    number: int
    entry: dpsyn.DraftEntry
    provenance: str
    because: str

    @property
    def title(self) -> str:
        """The name by which an approval finds it."""
        return self.entry.title

    @property
    def kind(self) -> str:
        """The kind of an attribute; empty for other entries."""
        return str(self.entry.fields.get("kind", ""))

    @property
    def texts(self) -> Mapping[str, str]:
        """The fields of an attribute as a person writes them."""
        return {field.name: field.to_text(self.entry.fields.get(field.name)) for field in fields_of_kinds()[self.kind]}

    @property
    def is_open(self) -> bool:
        """Whether somebody has to approve it."""
        return self.provenance == "data"

    @property
    def state(self) -> str:
        """What has to be done with it, in a word."""
        if not self.is_open:
            return self.provenance
        return "question" if self.entry.remark else "as read" if self.entry.unchanged else "edited"


def view_entries(draft: dpsyn.SchemaDraft) -> list[EntryView]:
    """All entries: how files are written, attributes, derivations, rules. Columns that share an entry are one."""
    document = draft.document
    drafts = {name: entry for entry in draft.entries() for name in entry.names}
    found: list[tuple[str, Any]] = []
    if isinstance(document.get("file"), Mapping):
        found.append(("file", document["file"]))
    found += list((document.get("attributes") or {}).items())
    found += [(f"derive {name}", fields) for name, fields in (document.get("derive") or {}).items()]
    found += [(f"rule {number}", fields) for number, fields in enumerate(document.get("rules") or [], start=1)]
    groups = {names[0]: names for names in draft.shared_entries()}
    shared = {name for names in groups.values() for name in names[1:]}
    shown = [(str(title), fields) for title, fields in found if title not in shared]
    return [_view(number, groups.get(title, (title,)), fields, drafts) for number, (title, fields) in enumerate(shown)]


def _view(number: int, names: tuple[str, ...], fields: Any, drafts: Mapping[str, dpsyn.DraftEntry]) -> EntryView:
    known = fields if isinstance(fields, Mapping) else {}
    entry = drafts.get(names[0]) or dpsyn.DraftEntry(
        title=names[0],
        names=names,
        fields={key: value for key, value in known.items() if key not in MARKS or key == "kind"},
        remark="",
        unchanged=False,
    )
    return EntryView(number, entry, str(known.get("provenance", "public")), str(known.get("because", "")))
