"""Approval: the record, in a schema's own text, that something is known without the data, and why.

The text is edited where it must change and nowhere else, so that comments, order and quoting stay as people wrote
them. The marks of YAML nodes say where; the result is read again and compared, so that an edit that would change
anything else is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from dpsyn.atomic_files import exclusive_edit, write_text
from dpsyn.errors import DocumentError, SchemaError
from dpsyn.schema import files, yaml_io
from dpsyn.schema.attributes import suggest_names

Edit = tuple[int, int, str]
"""From where, to where, and what will stand there."""

FieldNodes = tuple[yaml.Node, yaml.Node]
"""The nodes of a key and its value."""

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_BYTE_ORDER_MARK = "\ufeff"


def approve_schema(
    path: str | Path, names: str | Sequence[str] = (), *, because: str, everything: bool = False
) -> None:
    """Record in a schema file that what it says of some attributes is publicly known, and why.

    This is what makes a drafted schema fit for a release; the certificate lists the reasons. ``everything`` stands
    for all that was read off the data. Nothing else in the file changes.
    """
    files.require_file(path)
    names = (names,) if isinstance(names, str) else names
    with exclusive_edit(Path(path)):  # two approvals at a time would lose one of them
        text = files.read_text(path, keep_mark=True)
        try:
            approved = approve_text(text, names, because, everything=everything)
        except SchemaError as error:
            raise SchemaError(f"{path}: {error}", error.path) from None
        write_text(Path(path), approved)


def approve_text(text: str, names: Sequence[str], because: str, *, everything: bool = False) -> str:
    """The text of a schema in which the attributes named are public, for a reason; all else stays as it was.

    An attribute that is public already gets the new reason. A name stands for the derivation of that attribute
    too, if it has a provenance of its own. ``everything`` approves all that was read off the data, rules included.
    """
    reason = " ".join(because.split())
    if not reason:
        raise SchemaError('an approval needs a reason; say why this is public, such as "code book 2024"')
    if bool(names) == everything:
        raise SchemaError("name the attributes to approve, or approve everything; one of the two")
    mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
    try:
        return mark + _approve_document(text.removeprefix(mark), names, reason)
    except DocumentError as error:
        raise SchemaError(str(error), error.path) from None


def _approve_document(text: str, names: Sequence[str], reason: str) -> str:
    document, _ = yaml_io.read_yaml(text)
    files.require_format(document)
    nodes = _entry_nodes(yaml_io.compose_nodes(text))
    edits: dict[Edit, None] = {}  # in order, and once where an alias makes two entries one
    for path in _paths_of_names(document, names) if names else _paths_read_from_data(document):
        entry = _value_at(document, path)
        if names or not _is_approved(entry):
            edits |= dict.fromkeys(_edits(text, nodes[path], reason))
            entry |= {"because": reason} | ({"provenance": "public"} if "provenance" in entry else {})
    result = _apply_edits(text, edits)
    if _canonical(yaml_io.read_yaml(result)[0]) != _canonical(document):
        raise SchemaError(
            "this file cannot be edited where it stands, perhaps because of an alias (*name); "
            f"write provenance: public and because: {yaml_io.format_scalar(reason)} yourself"
        )
    return result


def _canonical(document: Any) -> str:
    return json.dumps(document, sort_keys=True)


# ── what to approve ──────────────────────────────────────────────────────────────────────────────────────────


def _paths_of_names(document: dict[str, Any], names: Iterable[str]) -> Iterator[yaml_io.YamlPath]:
    attributes, derive = (_entries(document, section) for section in ("attributes", "derive"))
    for name in names:
        if name not in attributes:
            raise _unknown_attribute(name, list(attributes))
        if not isinstance(attributes[name], dict) or not attributes[name]:
            raise SchemaError(f"attribute {name!r} is not described; give its kind first", ("attributes", name))
        yield "attributes", name
        if isinstance(derive.get(name), dict) and "provenance" in derive[name]:
            yield "derive", name


def _paths_read_from_data(document: dict[str, Any]) -> Iterator[yaml_io.YamlPath]:
    """The paths of all entries that were read off the data."""
    rules = document.get("rules")
    for section in ("attributes", "derive", "rules"):
        entries = _entries(document, section)
        if section == "rules" and isinstance(rules, list):
            entries = dict(enumerate(rules))
        for key, entry in entries.items():
            if isinstance(entry, dict) and entry.get("provenance") == "data":
                yield section, key


def _entries(document: dict[str, Any], section: str) -> dict[Any, Any]:
    entries = document.get(section)
    return entries if isinstance(entries, dict) else {}


def _unknown_attribute(name: str, known: list[str]) -> SchemaError:
    return SchemaError(f"there is no attribute {name!r}; {suggest_names(name, known)}")


def _is_approved(entry: dict[str, Any]) -> bool:
    return entry.get("provenance", "public") == "public" and bool(entry.get("because"))


# ── where it stands ──────────────────────────────────────────────────────────────────────────────────────────


def _value_at(document: Any, path: yaml_io.YamlPath) -> Any:
    for step in path:
        document = document[step]
    return document


def _entry_nodes(root: Any) -> dict[yaml_io.YamlPath, yaml.MappingNode]:
    """The nodes of all entries that can be approved, by their paths."""
    found: dict[yaml_io.YamlPath, Any] = {}
    for section, (_, node) in _fields(root).items():
        if isinstance(node, yaml.MappingNode):
            found |= {(section, key): value for key, (_, value) in _fields(node).items()}
        elif isinstance(node, yaml.SequenceNode):
            found |= {(section, index): value for index, value in enumerate(node.value)}
    return found


def _fields(node: yaml.MappingNode) -> dict[str, FieldNodes]:
    return {key.value: (key, value) for key, value in node.value}


def _end(node: yaml.Node) -> int:
    """Where a value ends; the mark of a block list or mapping is where the next thing begins."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        last = node.value[-1]
        return _end(last[1] if isinstance(node, yaml.MappingNode) else last)
    return node.end_mark.index


# ── what changes ─────────────────────────────────────────────────────────────────────────────────────────────


def _edits(text: str, node: yaml.MappingNode, reason: str) -> Iterator[Edit]:
    fields = _fields(node)
    if "provenance" in fields and fields["provenance"][1].value != "public":
        yield _replace_value(text, fields["provenance"][1], "public")
    if "because" in fields:
        yield _replace_value(text, fields["because"][1], reason)
    else:
        beside = fields.get("provenance") or list(fields.values())[-1]
        yield (_insert_in_braces if node.flow_style else _insert_below)(text, beside, reason)


def _replace_value(text: str, value: yaml.Node, new: str) -> Edit:
    """Another value in the same place; what was empty begins behind its colon."""
    start, end = value.start_mark.index, _end(value)
    if start == end:
        colon = _end_of_text(text, start)
        return colon, colon, f" {_quote_like(new, value)}"
    end = start + len(text[start:end].rstrip())  # a block of text ends with its line breaks
    return start, end, _quote_like(new, value)


def _end_of_text(text: str, end: int) -> int:
    """Where the last thing before a place ends that is no space."""
    while text[end - 1 : end].isspace():
        end -= 1
    return end


def _insert_in_braces(text: str, beside: FieldNodes, reason: str) -> Edit:
    """One more field between braces."""
    end = _end(beside[1])
    return end, end, f", {_quote_like('because', beside[0])}: {_quote_like(reason, beside[0])}"


def _insert_below(text: str, beside: FieldNodes, reason: str) -> Edit:
    """One more field on a line of its own, below the whole of another one and its comment."""
    key, value = beside
    end = _end(value)
    line = " " * key.start_mark.column + f"{_quote_like('because', key)}: {_quote_like(reason, key)}"
    if _BREAK.fullmatch(text[end - 1 : end]):  # a block of text ends with its line breaks
        return end, end, line + _line_break(text)
    found = _BREAK.search(text, end)
    end = found.start() if found else len(text)
    return end, end, _line_break(text) + line


def _line_break(text: str) -> str:
    """The kind of line break that the text has."""
    found = _BREAK.search(text)
    return found[0] if found else "\n"


def _quote_like(new: str, like: yaml.Node) -> str:
    """A text, in double quotes if its neighbor has them."""
    quoted = isinstance(like, yaml.ScalarNode) and like.style == '"' and new.isprintable()
    return json.dumps(new, ensure_ascii=False) if quoted else yaml_io.format_scalar(new)


def _apply_edits(text: str, edits: Iterable[Edit]) -> str:
    pieces, position = [], 0
    for start, end, new in sorted(edits, key=lambda edit: edit[0]):
        pieces += [text[position:start], new]
        position = end
    return "".join([*pieces, text[position:]])
