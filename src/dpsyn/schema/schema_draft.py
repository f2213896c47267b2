"""A drafted schema: edited, approved and passed on, in memory or in its file.

Privacy: a draft holds exact facts about rows. No message and no repr of it shows anything but the names of columns;
``to_yaml``, ``entries`` and the summary show what was read off the rows, to whoever asks for it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from dpsyn import notebook
from dpsyn.atomic_files import write_text
from dpsyn.errors import DocumentError, SchemaError, quote_argument
from dpsyn.schema import approval, files, yaml_io
from dpsyn.schema.schema import AnyAttribute, Schema
from dpsyn.schema.yaml_documents import load_document, parse_document
from dpsyn.suggestions import format_names, suggest_names

_T = TypeVar("_T")

_TABLE_FIELDS = ("dataset", "expected_size", "neighbors", "privacy_unit", "groups")
"""The fields of the whole table that ``describe_table`` sets."""


class SchemaDraft:
    """A schema that was drafted from private rows, which a person corrects and approves: what ``draft_schema`` returns.

    Methods that change a draft return a new one. It can be given wherever a schema is expected; a release refuses it
    until all of it is approved.

    Privacy: a draft is private until everything in it is approved. The repr and all messages name columns only.

    >>> import dpsyn
    >>> from dpsyn.demo import people
    >>> rows = people(rows=500).select(["age", "sex"])
    >>> draft = dpsyn.draft_schema(rows)                     # a private look: print(draft.to_yaml())
    >>> draft = draft.edit("age", low=0, high=120)           # what is possible, not what occurs
    >>> draft = draft.approve("age", because="questionnaire 2024")
    >>> draft = draft.approve("sex", because="questionnaire 2024", as_drafted=True)   # it lists the same values
    >>> draft
    SchemaDraft(2 attributes, all approved: age, sex)
    >>> synopsis = dpsyn.measure(rows, draft, epsilon=1.0, recipe="independent")

    Attributes:
        notes: remarks about the table as a whole.
    """

    __slots__ = ("_columns", "_left_out", "_text", "notes")

    notes: tuple[str, ...]

    def __init__(
        self,
        text: str,
        *,
        columns: int | None = None,
        left_out: Mapping[str, str] = MappingProxyType({}),
        notes: Sequence[str] = (),
    ) -> None:
        if not isinstance(text, str):
            raise SchemaError(
                f"the text of a draft is {quote_argument(text)}; give YAML text, as draft_schema makes it"
            )
        self._text = text
        self._left_out = left_out
        self._columns = columns
        self.notes = tuple(notes)

    @classmethod
    def load(cls, path: str | Path) -> SchemaDraft:
        """Read the file of a draft; what is wrong with an entry is found when the entry is used."""
        text = files.read_text(path)
        load_document(path, text, approval.list_entries)
        return cls(text)

    @classmethod
    def update(cls, path: str | Path, change: Callable[[SchemaDraft], SchemaDraft]) -> None:
        """Change the draft in a file, such as ``SchemaDraft.update(path, lambda draft: draft.leave_out("note"))``.

        Other editors of the file wait. Nothing but the entries concerned changes in it.
        """
        approval.edit_file(path, lambda text: change(cls(text)).to_yaml())

    # ── what it shows ────────────────────────────────────────────────────────────────────────────────────────

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple(self._attributes())

    @property
    def document(self) -> Mapping[str, Any]:
        """The whole draft as plain data, as its text states it; private."""
        document: Mapping[str, Any] = parse_document(self._text, lambda document: document)
        return document

    @property
    def columns(self) -> int:
        """The number of columns of the table, as far as they are known."""
        return len(self.names) if self._columns is None else self._columns

    @property
    def unapproved(self) -> tuple[str, ...]:
        """What was taken from the data and is not approved yet: names, and titles such as ``rule 1``."""
        return tuple(name for entry in self.entries() for name in entry.names)

    @property
    def questions(self) -> Mapping[str, str]:
        """The open remark of every attribute that needs a person; private."""
        entries = [entry for entry in self.entries() if entry.remark and "kind" in entry.fields]
        return {name: entry.remark for entry in entries for name in entry.names}

    @property
    def left_out(self) -> Mapping[str, str]:
        """Why a column is left out of synthetic tables, for every such column."""
        attributes, questions = self._attributes(), self.questions
        identifiers = [
            name
            for name, entry in attributes.items()
            if isinstance(entry, dict) and entry.get("kind") == "identifier" and name not in questions
        ]
        never_read = [name for name in self._left_out if name not in attributes]
        return {name: self._left_out.get(name, "an identifier") for name in (*never_read, *identifiers)}

    @property
    def proposals(self) -> tuple[str, ...]:
        """The relations between columns that the draft proposes, such as ``age_group follows from age``; private."""
        return tuple(entry.relation for entry in self.entries() if entry.relation)

    @property
    def recognized(self) -> int:
        """The number of columns that were recognized: without a question, and not left out."""
        return self.columns - len(self.questions) - len(self.left_out)

    def entries(self, *names: str) -> tuple[approval.DraftEntry, ...]:
        """The entries that were taken from the data and are not approved, or those of these names; private."""
        return approval.list_entries(self._text, names)

    def shared_entries(self) -> tuple[tuple[str, ...], ...]:
        """The columns that share one entry, approved or not: they are changed and approved together."""
        return approval.list_shared_entries(self._text)

    def __repr__(self) -> str:
        waiting = len(self.unapproved)
        state = f"{waiting} not approved" if waiting else "all approved"
        number = len(self.names)
        return f"SchemaDraft({number} attribute{'s' * (number != 1)}, {state}: {format_names(self.names)})"

    def _repr_html_(self) -> str:
        waiting = self.unapproved
        titles = dict.fromkeys((*self.names, *waiting))
        rows = [(title, "not yet" if title in waiting else "yes") for title in titles]
        notes = ("print(draft.to_yaml()) shows what was read off the rows.",)
        notice = "PRIVATE until everything is approved." if waiting else ""
        return notebook.html_table(repr(self), ("attribute", "approved"), rows, notice=notice, notes=notes)

    def to_yaml(self) -> str:
        """The draft as YAML text, with comments for the person who completes it; private."""
        return self._text

    def save(self, path: str | Path) -> None:
        """Write the draft as a schema file that only its owner can read."""
        write_text(Path(path), self._text, private=True)

    def to_schema(self) -> Schema:
        """The draft as a schema; a SchemaError names the attribute that is not valid, without its values."""
        return self._hide_values(lambda: files.parse_schema(self._text))

    # ── edits ────────────────────────────────────────────────────────────────────────────────────────────────

    def edit(self, name: str, changes: str = "", /, **fields: Any) -> SchemaDraft:
        """The draft with other fields of an entry, such as ``edit("age", low=0, high=120)``.

        ``changes`` are fields as YAML text, such as ``"high: 120"``. None removes a field. Another ``kind`` removes the
        fields that it does not have. ``file`` names the section on how files are written. An edit answers the remark of
        the entry, which is removed; the entry is approved separately, with ``approve``. Columns that share an entry are
        changed together, and proposed relations that no longer fit are removed. ``docs/reference/schema.md`` lists the
        fields of every kind.
        """
        self.entries(name)
        new = {**_read_fields(changes), **{key: _plain(value) for key, value in fields.items()}}
        return self._replace(self._hide_values(lambda: approval.edit_entry(self._text, name, new)))

    def replace_attribute(self, attribute: AnyAttribute) -> SchemaDraft:
        """The draft with a new description of an attribute, such as ``dpsyn.Integer(name="age", low=0, high=120)``.

        What it says is taken as you wrote it, from a public source: ``provenance: public``.
        """
        name = str(getattr(attribute, "name", quote_argument(attribute)))
        self.entries(name)
        document = files.to_document(Schema(attributes=(attribute,)))["attributes"]
        return self._replace(self._hide_values(lambda: approval.replace_entry(self._text, name, document[name])))

    def leave_out(self, *names: str) -> SchemaDraft:
        """The draft without some entries; a column without one is not read. ``rule 1`` names a rule.

        Columns that share an entry are left out together, and relations with them that the draft proposes.
        """
        draft = self
        for name in sorted(names, key=_rule_number, reverse=True):  # the rules after one that is removed are renumbered
            draft = draft._leave_out(name)
        return draft

    def describe_table(self, **fields: Any) -> SchemaDraft:
        """The draft with the dataset's name, its expected size, the neighboring relation, the privacy unit, or groups.

        For example ``describe_table(dataset="survey 2024", expected_size=40_000)``.
        """
        for field in fields:
            if field not in _TABLE_FIELDS:
                raise SchemaError(f"a table has no field {field!r}; {suggest_names(field, _TABLE_FIELDS)}")
        new = {field: _plain(value) for field, value in fields.items()}
        return self._replace(self._hide_values(lambda: approval.describe_table(self._text, new)))

    def approve(
        self,
        *names: str,
        because: str,
        everything: bool = False,
        as_drafted: bool = False,
        despite_remarks: bool = False,
    ) -> SchemaDraft:
        """The draft in which some entries are declared public, with the reason, as ``dpsyn schema approve`` does.

        Compare them with a public source first, and correct them. The certificate of a release lists them as drafted
        from the data, with the reason. Entries that are exactly as they were read off the data need ``as_drafted``, and
        entries with an open remark ``despite_remarks``; others are refused. ``everything`` approves all that was taken
        from the data and needs neither, or only the first; ``unapproved`` lists what is left.
        """
        text = approval.approve_text(
            self._text, names, because, everything=everything, as_drafted=as_drafted, despite_remarks=despite_remarks
        )
        return self._replace(text)

    def withdraw_approvals(self, earlier: SchemaDraft) -> SchemaDraft:
        """The draft with those approvals that an earlier one has for the same entries; others need another approval.

        For a text that somebody has edited as a whole: an approval must not outlive the entry that it was given for.
        """
        if not isinstance(earlier, SchemaDraft):
            raise SchemaError(
                f"the earlier draft is {quote_argument(earlier)}; give a draft, as SchemaDraft.load reads it"
            )
        return self._replace(approval.withdraw_approvals(earlier._text, self._text))

    # ── the text ─────────────────────────────────────────────────────────────────────────────────────────────

    def _attributes(self) -> Mapping[str, Any]:
        entries: Any = parse_document(self._text, lambda document: document.get("attributes"))
        return entries if isinstance(entries, dict) else {}

    def _leave_out(self, name: str) -> SchemaDraft:
        self.entries(name)
        text = self._hide_values(lambda: approval.leave_out_entry(self._text, name))
        gone = [name for name in self.names if name not in SchemaDraft(text).names]
        left_out = {**self._left_out, **dict.fromkeys(gone, "you left it out")}
        return SchemaDraft(text, columns=self.columns, left_out=left_out, notes=self.notes)

    def _replace(self, text: str) -> SchemaDraft:
        return SchemaDraft(text, columns=self.columns, left_out=self._left_out, notes=self.notes)

    def _hide_values(self, call: Callable[[], _T]) -> _T:
        """Call a function; its error does not quote what was taken from the data."""
        try:
            return call()
        except SchemaError as error:
            raise self._without_values(error) from None

    def _without_values(self, error: SchemaError) -> SchemaError:
        """An error without its message, which may quote what was taken from the data."""
        if not self.unapproved or isinstance(error, approval.LayoutError):
            return error
        length = 1 if error.path[:1] == files.FILE_PATH else 2
        path, field = error.path[:length], error.path[length : length + 1]
        known = path == files.FILE_PATH or (
            len(path) == 2 and (path[0] in ("derive", "rules") or path[1] in self.names)
        )
        where = f"{approval.title_of(path)!r} of the draft" if known else "an entry of the draft"
        what = f"{where} is not valid, field {field[0]!r}" if known and field else f"{where} is not valid"
        return SchemaError(
            f"{what}. The draft is private, so this message does not quote it; look at draft.to_yaml(), and correct it "
            "with draft.edit(...)",
            error.path,
            str(error),
        )


def _read_fields(text: str) -> Mapping[str, Any]:
    """Fields that were written as YAML text."""
    try:
        fields = yaml_io.read_yaml(text)[0] if text.strip() else {}
    except DocumentError as error:
        raise SchemaError(str(error)) from None
    if not isinstance(fields, Mapping):
        raise SchemaError("fields are written as  name: value , such as  high: 120")
    return fields


def _plain(value: Any) -> Any:
    """A value as YAML has it."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, Sequence):
        return [_plain(each) for each in value]
    raise SchemaError(f"a field is {quote_argument(value)}; give a text, a number, a date, or a list of them")


def _rule_number(name: str) -> int:
    """The number in ``rule 3``; 0 for any other name."""
    found = re.fullmatch(r"rule (\d+)", name)
    return int(found[1]) if found else 0
