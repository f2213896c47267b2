"""Approval: records in the text of a schema that an entry drafted from the data is publicly known, and why.

An approved entry keeps the mark that it came from the data (``provenance: approved``), and the certificate of every
release states it: the values of a draft are exact facts about rows, and only its reader can judge the reason. An entry
that somebody wrote from a public source is ``provenance: public``.

Two kinds of entries need a separate yes: those with an open ``remark``, and those that are exactly as they were read
off the data, which the digest in ``drafted`` shows. Columns that share one entry by an alias (``*name``) are approved,
changed and left out together.

Only the fields concerned are edited in the text (``yaml_edits``). The result is parsed again and compared with the
expected document, and an edit that would change anything else is refused.
"""

from __future__ import annotations

import functools
import hashlib
import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from dpsyn.atomic_files import exclusive_edit, write_text
from dpsyn.errors import DocumentError, SchemaError, quote_argument
from dpsyn.schema import files, yaml_edits, yaml_io
from dpsyn.schema.attributes import UNCHANGED
from dpsyn.suggestions import suggest_names

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_BYTE_ORDER_MARK = "\ufeff"
_SECTIONS = ("attributes", "derive", "rules")
_MARKS = ("provenance", "because", "description", "remark", "drafted")
"""Fields that describe an entry and state nothing about the values of a column."""

_FACTS = ("values", "codes", "low", "high", "start", "end", "bins", "spikes", "mapping", "rule")
"""Fields that a draft fills with facts about rows."""


class LayoutError(SchemaError):
    """A text has a layout, such as an alias inside an entry, that cannot be edited in place."""


def _translate_mistakes(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let a function raise a SchemaError where the text is not valid YAML."""

    @functools.wraps(function)
    def call(*args: _Arguments.args, **options: _Arguments.kwargs) -> _Result:
        try:
            return function(*args, **options)
        except SchemaError:
            raise
        except DocumentError as error:
            raise SchemaError(str(error), error.path) from None

    return call


@dataclass(frozen=True, slots=True, repr=False)
class DraftEntry:
    """An entry of a schema file that was taken from the data and is not approved yet; its fields are private.

    Attributes:
        title: what it is about, such as ``age``, ``derive age_group``, ``rule 1`` or ``file``, how files are written;
            an approval accepts this name.
        names: the titles of all columns that share the entry; usually one.
        fields: what it declares.
        remark: the question of the draft that is still open; empty if there is none.
        unchanged: whether it states facts about rows exactly as they were read off the data.
    """

    title: str
    names: tuple[str, ...]
    fields: Mapping[str, Any]
    remark: str
    unchanged: bool

    def __repr__(self) -> str:
        return f"<DraftEntry {self.title}: private; see its attributes>"

    @property
    def declaration(self) -> str:
        """What the entry declares, on one line."""
        kind = self.fields.get("kind") or self.fields.get("rule") or ("derive" if "from" in self.fields else "")
        rest = {key: value for key, value in self.fields.items() if key not in ("kind", "rule")}
        parts = [str(kind), *(f"{key} {yaml_io.format_value(value)}" for key, value in rest.items())]
        return ", ".join(filter(None, parts))

    @property
    def relation(self) -> str:
        """What a relation between columns says, in words; empty for an entry that is none."""
        if self.fields.get("rule") == "sum":
            return f"{self.fields['total']} is the sum of {', '.join(self.fields['parts'])}"
        if self.fields.get("rule") == "order":
            return " is never above ".join(self.fields["attributes"])
        if "from" in self.fields:
            sources = self.fields["from"]
            names = sources if isinstance(sources, str) else ", ".join(sources)
            return f"{self.title.removeprefix('derive ')} follows from {names}"
        return self.declaration if "rule" in self.fields else ""


@dataclass(frozen=True, slots=True)
class Approval:
    """What an approval has approved, and what it has left.

    Attributes:
        approved: the titles of the entries that are approved now.
        left: entries that still need a separate yes.
    """

    approved: tuple[str, ...]
    left: tuple[DraftEntry, ...]


def approve_schema(
    path: str | Path,
    names: str | Sequence[str] = (),
    *,
    because: str,
    everything: bool = False,
    as_drafted: bool = False,
    despite_remarks: bool = False,
) -> Approval:
    """Record in a schema file that the entries of some attributes are publicly known, and why.

    A drafted schema can be used for a release only after this. The certificate lists the reasons, and states that the
    entries were drafted from the data. Nothing else in the file changes. Entries that are exactly as they were read
    off the data need ``as_drafted``, and entries with an open remark ``despite_remarks``, which removes the remark.
    ``everything`` approves all entries that need neither yes, or only the first, and returns those that are left.
    """
    approval = Approval((), ())

    def approve(text: str) -> str:
        nonlocal approval
        text, approval = _approve(text, (names,) if isinstance(names, str) else names, because, everything, yes)
        return text

    yes = _Yes(as_drafted=as_drafted, despite_remarks=despite_remarks)
    edit_file(path, approve)
    return approval


def approve_text(
    text: str,
    names: Sequence[str],
    because: str,
    *,
    everything: bool = False,
    as_drafted: bool = False,
    despite_remarks: bool = False,
) -> str:
    """The text of a schema in which the named attributes are approved, with a reason; the rest is unchanged.

    An attribute that is already public gets the new reason. A name also covers the derivation of that attribute, if
    the derivation has its own provenance; ``derive NAME`` and ``rule 1`` name derivations and rules, and ``file`` the
    section on how files are written, unless a column has that name. ``everything`` and the two kinds of yes are those
    of ``approve_schema``.
    """
    yes = _Yes(as_drafted=as_drafted, despite_remarks=despite_remarks)
    return _approve(text, names, because, everything, yes)[0]


@_translate_mistakes
def list_entries(text: str, names: Sequence[str] = ()) -> tuple[DraftEntry, ...]:
    """The entries of a schema that were taken from the data and are not approved; of these names, if any."""
    document = _Document(text)
    paths = list(document.paths_of_names(names)) if names else list(document.paths_read_from_data())
    return tuple(document.draft_entry(group) for group in document.group(paths) if document.is_draft(group[0]))


@_translate_mistakes
def list_shared_entries(text: str) -> tuple[tuple[str, ...], ...]:
    """The titles of columns that share one entry by an alias, approved or not."""
    return tuple(titles for titles in _Document(text).shared_titles() if len(titles) > 1)


@_translate_mistakes
def withdraw_approvals(before: str, after: str) -> str:
    """The text ``after``, in which only what was approved ``before`` is approved; the rest is taken from the data.

    An approval holds for an entry as it was: under its name, and with the same fields. Its reason may be reworded.
    """
    given, document = _Document(before).approved_entries(), _Document(after)
    approvals = set(given.values())
    void = [path for path, entry in document.approved_entries().items() if entry not in approvals]
    if not void:
        return after
    return document.change(document.sharing(void), lambda _: {"provenance": "data", "because": None, "drafted": None})


@_translate_mistakes
def edit_entry(text: str, name: str, changes: Mapping[str, Any]) -> str:
    """The text after fields of an entry were set; None removes a field. It answers the remark, which is removed.

    A new ``kind`` removes the fields that it does not have. The entry must be valid afterwards, and a schema that was
    valid stays valid.
    """
    document = _Document(text)
    paths = document.sharing([document.path_of_name(name)])
    entry = document.value_at(paths[0])
    new = {**changes, "remark": None}
    if entry.get("drafted") == UNCHANGED:
        new["drafted"] = None
    kind = files.ATTRIBUTE_KINDS.get(str(new.get("kind", "")))
    if kind and kind.__struct_config__.tag != entry.get("kind"):
        new = {**dict.fromkeys(key for key in entry if key not in ("kind", *kind.__struct_fields__)), **new}
    edited = document.change(paths, lambda _: new)
    files.check_entry(paths[0], yaml_io.read_yaml(edited)[0])
    return _refuse_new_mistakes(text, edited)


@_translate_mistakes
def replace_entry(text: str, name: str, fields: Mapping[str, Any]) -> str:
    """The text in which an attribute is described anew, from a public source."""
    document = _Document(text)
    old = document.value_at(document.path_of_name(name))
    return edit_entry(text, name, {**dict.fromkeys(old), **fields, "provenance": "public"})


@_translate_mistakes
def leave_out_entry(text: str, name: str) -> str:
    """The text without an entry: a release then neither reads nor measures the column.

    Columns that share the entry are left out with it.
    """
    document = _Document(text)
    return _refuse_new_mistakes(text, document.remove(document.sharing([document.path_of_name(name)])))


@_translate_mistakes
def describe_table(text: str, changes: Mapping[str, Any]) -> str:
    """The text after fields of the whole table were set, such as ``expected_size``; None removes a field."""
    return _refuse_new_mistakes(text, _Document(text).change_table(changes))


def draft_digest(fields: Mapping[str, Any]) -> str:
    """A digest of what an entry states, without marks such as its reason; shortened, as it is to notice edits only."""
    return hashlib.sha256(_canonical(_drop_marks(fields)).encode()).hexdigest()[:8]


def _drop_marks(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an entry, without its marks."""
    return {key: value for key, value in fields.items() if key not in _MARKS}


def states_facts(fields: Mapping[str, Any]) -> bool:
    """Whether a drafted entry states facts about rows: values, bounds or relations, not only a kind."""
    return any(key in fields for key in _FACTS)


@dataclass(frozen=True, slots=True)
class _Yes:
    as_drafted: bool
    despite_remarks: bool

    def covers(self, entry: DraftEntry) -> bool:
        """Whether an entry may be approved, given the kinds of yes that were given."""
        if entry.remark:
            return self.despite_remarks
        return self.as_drafted or not entry.unchanged


@_translate_mistakes
def _approve(text: str, names: Sequence[str], because: str, everything: bool, yes: _Yes) -> tuple[str, Approval]:
    reason = " ".join(because.split())
    if not reason:
        raise SchemaError('an approval needs a reason; state why this is public, such as "code book 2024"')
    if bool(names) == everything:
        raise SchemaError("either name the attributes to approve, or approve everything")
    if everything and yes.despite_remarks:
        raise SchemaError("entries with an open remark are not approved all at once; name those that you have compared")
    return _approve_document(_Document(text), names, reason, yes)


def _approve_document(document: _Document, names: Sequence[str], reason: str, yes: _Yes) -> tuple[str, Approval]:
    paths = list(document.paths_of_names(names)) if names else list(document.paths_read_from_data())
    groups = document.group(paths)
    drafts = {group[0]: document.draft_entry(group) for group in groups if document.is_draft(group[0])}
    left = tuple(entry for entry in drafts.values() if not yes.covers(entry))
    if names and left:
        raise SchemaError(_refusal(left))
    wanted = [group for group in groups if group[0] not in drafts or yes.covers(drafts[group[0]])]
    changed = [path for group in wanted for path in group]
    text = document.change(changed, lambda path: _edits(document, path, drafts, reason))
    return text, Approval(tuple(title_of(path) for path in changed), left)


def _edits(
    document: _Document, path: yaml_io.YamlPath, drafts: Mapping[yaml_io.YamlPath, DraftEntry], reason: str
) -> dict[str, Any]:
    """The fields that an approval sets and removes."""
    first = document.sharing([path])[0]
    if first not in drafts:
        return {"because": reason}
    unchanged = UNCHANGED if drafts[first].unchanged else None
    return {"provenance": "approved", "because": reason, "remark": None, "drafted": unchanged}


def _refusal(left: Sequence[DraftEntry]) -> str:
    """Why named entries are not approved. Remarks are not quoted, because they describe rows."""
    remarks = ", ".join(entry.title for entry in left if entry.remark)
    unchanged = ", ".join(entry.title for entry in left if not entry.remark)
    sentences = ["nothing was approved."]
    if remarks:
        sentences.append(
            f"{remarks}: the remark of the draft is open; correct the entry and remove the remark, leave the entry "
            "out, or approve it as it is (--despite-remarks, in Python despite_remarks=True)."
        )
    if unchanged:
        sentences.append(
            f"{unchanged}: exactly as it was read off the data; write what is possible, or approve it as it is if a "
            "public source agrees (--as-drafted, in Python as_drafted=True)."
        )
    return " ".join(sentences)


def _refuse_new_mistakes(before: str, after: str) -> str:
    """The edited text; refused if it is not a valid schema although it was one before the edit.

    Relations that a draft proposes and nobody has approved are removed if they do not fit the edited attributes.
    """
    try:
        files.parse_schema(before)
    except SchemaError:  # a draft or an import that a person still has to complete
        return after
    while True:
        try:
            files.parse_schema(after)
            return after
        except SchemaError as error:
            document, path = _Document(after), error.path[:2]
            if path not in document.paths_read_from_data() or path[0] not in ("derive", "rules"):
                raise
            after = document.remove([path])


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def edit_file(path: str | Path, edit: Callable[[str], str]) -> None:
    """Replace the text of a schema file by what ``edit`` makes of it; other editors of the file wait.

    An error names the file, and leaves it as it was.
    """
    files.require_file(path)
    with exclusive_edit(Path(path)):  # two simultaneous edits could lose one of them
        text = files.read_text(path, keep_mark=True)
        try:
            edited = edit(text)
        except SchemaError as error:
            raise SchemaError(f"{path}: {error}", error.path, error.private_details) from None
        write_text(Path(path), edited)


def _canonical(document: Any) -> str:
    return json.dumps(document, sort_keys=True)


def _set_fields(fields: dict[str, Any], changes: Mapping[str, Any]) -> None:
    for key, value in changes.items():
        if value is None:
            fields.pop(key, None)
        else:
            fields[key] = value


def title_of(path: yaml_io.YamlPath) -> str:
    """The name of an entry, by which an approval finds it."""
    if path == files.FILE_PATH:
        return "file"
    section, key = path
    if section == "attributes":
        return str(key)
    return f"derive {key}" if section == "derive" else f"rule {int(key) + 1}"


# ── the document ────────────────────────────────────────────────────────────────────────────────────────────────────


class _Document:
    """The text of a schema, its plain data, and the nodes of its entries."""

    def __init__(self, text: str) -> None:
        self._mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
        self._text = text.removeprefix(self._mark)
        self._data = yaml_io.read_yaml(self._text)[0]
        files.require_format(self._data)
        self._root: Any = yaml_io.compose_nodes(self._text)
        self._nodes = yaml_edits.entry_nodes(self._root)
        self._sharers: dict[int, list[yaml_io.YamlPath]] = {}
        for path, node in self._nodes.items():
            if path == files.FILE_PATH or (len(path) == 2 and path[0] in _SECTIONS):
                self._sharers.setdefault(id(node), []).append(path)

    def value_at(self, path: yaml_io.YamlPath) -> Any:
        """The plain data of an entry."""
        return functools.reduce(operator.getitem, path, self._data)

    def is_draft(self, path: yaml_io.YamlPath) -> bool:
        """Whether an entry was taken from the data."""
        return bool(self.value_at(path).get("provenance") == "data")

    def sharing(self, paths: Iterable[yaml_io.YamlPath]) -> list[yaml_io.YamlPath]:
        """These entries, and those that an alias makes one with them."""
        return list(dict.fromkeys(other for path in paths for other in self._sharers[id(self._nodes[path])]))

    def group(self, paths: Iterable[yaml_io.YamlPath]) -> list[list[yaml_io.YamlPath]]:
        """The entries in groups that share a node."""
        return list({id(self._nodes[path]): self.sharing([path]) for path in paths}.values())

    def draft_entry(self, group: Sequence[yaml_io.YamlPath]) -> DraftEntry:
        """The entry that a group of columns shares."""
        entry = self.value_at(group[0])
        fields = _drop_marks(entry)
        return DraftEntry(
            title=title_of(group[0]),
            names=tuple(title_of(path) for path in group),
            fields=fields,
            remark=str(entry.get("remark") or ""),
            unchanged=states_facts(fields) and entry.get("drafted") == draft_digest(fields),
        )

    def shared_titles(self) -> Iterator[tuple[str, ...]]:
        """The titles of each entry: several, if an alias makes columns share it."""
        for paths in self._sharers.values():
            yield tuple(title_of(path) for path in paths)

    def approved_entries(self) -> dict[yaml_io.YamlPath, str]:
        """What every approved entry states, with its name; rules have none, because their numbers change."""
        paths = [path for paths in self._sharers.values() for path in paths]
        entries = {path: self.value_at(path) for path in paths if isinstance(self.value_at(path), dict)}
        return {
            path: _canonical([path[0] if path[0] == "rules" else path, _drop_marks(entry), entry.get("drafted")])
            for path, entry in entries.items()
            if entry.get("provenance") == "approved"
        }

    # ── names of entries ────────────────────────────────────────────────────────────────────────────────────

    def path_of_name(self, name: str) -> yaml_io.YamlPath:
        """The path of a named entry."""
        return next(self.paths_of_names([name]))

    def paths_of_names(self, names: Iterable[str]) -> Iterator[yaml_io.YamlPath]:
        """The paths of the named entries."""
        attributes, derive = (self._entries(section) for section in ("attributes", "derive"))
        titles: dict[str, yaml_io.YamlPath] = {
            title_of(path): path for path in self._nodes if path[0] in ("derive", "rules") and len(path) == 2
        }
        if self._entries("file"):
            titles["file"] = files.FILE_PATH
        for name in names:
            if name not in attributes and name in titles:
                yield titles[name]
                continue
            if name not in attributes:
                raise SchemaError(f"there is no attribute {quote_argument(name)}; {suggest_names(name, [*attributes])}")
            if not isinstance(attributes[name], dict) or not attributes[name]:
                raise SchemaError(
                    f"attribute {quote_argument(name)} has no description; give its kind first", ("attributes", name)
                )
            yield "attributes", name
            if isinstance(derive.get(name), dict) and "provenance" in derive[name]:
                yield "derive", name

    def paths_read_from_data(self) -> Iterator[yaml_io.YamlPath]:
        """The paths of all entries that were taken from the data."""
        if self._entries("file").get("provenance") == "data":
            yield files.FILE_PATH
        for section in _SECTIONS:
            for key, entry in self._entries(section).items():
                if isinstance(entry, dict) and entry.get("provenance") == "data":
                    yield section, key

    def _entries(self, section: str) -> dict[Any, Any]:
        entries = self._data.get(section)
        if section == "rules" and isinstance(entries, list):
            return dict(enumerate(entries))
        return entries if isinstance(entries, dict) else {}

    # ── edits ───────────────────────────────────────────────────────────────────────────────────────────────

    def change(
        self, paths: Iterable[yaml_io.YamlPath], changes: Callable[[yaml_io.YamlPath], Mapping[str, Any]]
    ) -> str:
        """The text after fields of entries were set, or removed where the new value is None."""
        edits: dict[yaml_edits.Edit, None] = {}  # an ordered set, because an alias can make two entries one
        for path in paths:
            new = changes(path)
            edits |= dict.fromkeys(yaml_edits.set_fields(self._text, self._nodes[path], new))
            _set_fields(self.value_at(path), new)
        return self._apply(edits)

    def change_table(self, changes: Mapping[str, Any]) -> str:
        """The text after fields of the whole table were set, or removed where the new value is None."""
        edits = list(yaml_edits.set_fields(self._text, self._root, changes, below="neighbors"))
        _set_fields(self._data, changes)
        return self._apply(edits)

    def remove(self, paths: Sequence[yaml_io.YamlPath]) -> str:
        """The text without these entries, which are of one section."""
        if files.FILE_PATH in paths:
            return self.change_table({"file": None})
        section = str(paths[0][0])
        keys = [key for _, key in paths]
        edits = list(yaml_edits.remove_entries(self._text, self._root, section, keys))
        kept = {key: entry for key, entry in self._entries(section).items() if key not in keys}
        self._data[section] = list(kept.values()) if section == "rules" else kept
        if not kept:
            self._data[section] = None
        return self._apply(edits)

    def _apply(self, edits: Iterable[yaml_edits.Edit]) -> str:
        text = yaml_edits.apply_edits(self._text, edits)
        try:
            same = _canonical(yaml_io.read_yaml(text)[0]) == _canonical(self._data)
        except DocumentError:
            same = False
        if not same:
            raise LayoutError(
                "this file cannot be edited automatically, perhaps because of an alias (*name) or its layout; "
                "make the change by hand"
            )
        return self._mark + text
