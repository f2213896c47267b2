"""Approval: records in the text of a schema that an entry drafted from the data is publicly known, and why.

An approved entry keeps the mark that it came from the data (``provenance: approved``), and the certificate of every
release states it: the values of a draft are exact facts about rows, and only its reader can judge the reason. An entry
that somebody wrote from a public source is ``provenance: public``.

Only the approved fields of the text are edited, so comments, order and quoting stay as people wrote them. The edits
are located by the position marks of YAML nodes. The result is parsed again and compared with the expected document,
and an edit that would change anything else is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from dpsyn.atomic_files import exclusive_edit, write_text
from dpsyn.errors import DocumentError, SchemaError, quote_argument
from dpsyn.schema import files, yaml_io
from dpsyn.schema.attributes import suggest_names

Edit = tuple[int, int, str]
"""The start and end of the replaced text, and the new text."""

FieldNodes = tuple[yaml.Node, yaml.Node]
"""The nodes of a key and its value."""

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_BYTE_ORDER_MARK = "\ufeff"


def approve_schema(
    path: str | Path, names: str | Sequence[str] = (), *, because: str, everything: bool = False
) -> None:
    """Record in a schema file that the entries of some attributes are publicly known, and why.

    A drafted schema can be used for a release only after this. The certificate lists the reasons, and states that the
    entries were drafted from the data. ``everything`` approves all entries that were. Nothing else in the file changes.
    """
    files.require_file(path)
    names = (names,) if isinstance(names, str) else names
    with exclusive_edit(Path(path)):  # two simultaneous approvals could lose one of them
        text = files.read_text(path, keep_mark=True)
        try:
            approved = approve_text(text, names, because, everything=everything)
        except SchemaError as error:
            raise SchemaError(f"{path}: {error}", error.path) from None
        write_text(Path(path), approved)


def approve_text(text: str, names: Sequence[str], because: str, *, everything: bool = False) -> str:
    """The text of a schema in which the named attributes are approved, with a reason; the rest is unchanged.

    An attribute that is already public gets the new reason. The name ``file`` is that of the section on how files are
    written, unless a column has it. A name also covers the derivation of that attribute, if
    the derivation has its own provenance. ``everything`` approves all entries that were taken from the data, including
    rules.
    """
    reason = " ".join(because.split())
    if not reason:
        raise SchemaError('an approval needs a reason; state why this is public, such as "code book 2024"')
    if bool(names) == everything:
        raise SchemaError("either name the attributes to approve, or approve everything")
    mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
    try:
        return mark + _approve_document(text.removeprefix(mark), names, reason)
    except DocumentError as error:
        raise SchemaError(str(error), error.path) from None


def _approve_document(text: str, names: Sequence[str], reason: str) -> str:
    document, _ = yaml_io.read_yaml(text)
    files.require_format(document)
    nodes = _entry_nodes(yaml_io.compose_nodes(text))
    edits: dict[Edit, None] = {}  # an ordered set, because an alias can make two entries one
    for path in _paths_of_names(document, names) if names else _paths_read_from_data(document):
        entry = _value_at(document, path)
        if names or not _is_approved(entry):
            edits |= dict.fromkeys(_edits(text, nodes[path], reason))
            entry |= {"because": reason} | ({"provenance": "approved"} if entry.get("provenance") == "data" else {})
    result = _apply_edits(text, edits)
    if _canonical(yaml_io.read_yaml(result)[0]) != _canonical(document):
        raise SchemaError(
            "this file cannot be edited automatically, perhaps because of an alias (*name); "
            f"write provenance: approved and because: {yaml_io.format_scalar(reason)} by hand"
        )
    return result


def _canonical(document: Any) -> str:
    return json.dumps(document, sort_keys=True)


# ── entries to approve ──────────────────────────────────────────────────────────────────────────────────────────


def _paths_of_names(document: dict[str, Any], names: Iterable[str]) -> Iterator[yaml_io.YamlPath]:
    attributes, derive = (_entries(document, section) for section in ("attributes", "derive"))
    for name in names:
        if name == "file" and name not in attributes and _entries(document, "file"):
            yield ("file",)
            continue
        if name not in attributes:
            raise _unknown_attribute(name, list(attributes))
        if not isinstance(attributes[name], dict) or not attributes[name]:
            raise SchemaError(
                f"attribute {quote_argument(name)} has no description; give its kind first", ("attributes", name)
            )
        yield "attributes", name
        if isinstance(derive.get(name), dict) and "provenance" in derive[name]:
            yield "derive", name


def _paths_read_from_data(document: dict[str, Any]) -> Iterator[yaml_io.YamlPath]:
    """The paths of all entries that were taken from the data."""
    if _entries(document, "file").get("provenance") == "data":
        yield ("file",)
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
    return SchemaError(f"there is no attribute {quote_argument(name)}; {suggest_names(name, known)}")


def _is_approved(entry: dict[str, Any]) -> bool:
    return entry.get("provenance") != "data" and bool(entry.get("because"))


# ── positions in the text ──────────────────────────────────────────────────────────────────────────────────────────


def _value_at(document: Any, path: yaml_io.YamlPath) -> Any:
    for step in path:
        document = document[step]
    return document


def _entry_nodes(root: Any) -> dict[yaml_io.YamlPath, yaml.MappingNode]:
    """The nodes of all entries that can be approved, by their paths."""
    nodes: dict[yaml_io.YamlPath, Any] = {}
    for section, (_, node) in _fields(root).items():
        nodes[(section,)] = node
        if isinstance(node, yaml.MappingNode):
            nodes |= {(section, key): value for key, (_, value) in _fields(node).items()}
        elif isinstance(node, yaml.SequenceNode):
            nodes |= {(section, index): value for index, value in enumerate(node.value)}
    return nodes


def _fields(node: yaml.MappingNode) -> dict[str, FieldNodes]:
    return {key.value: (key, value) for key, value in node.value}


def _end(node: yaml.Node) -> int:
    """The end of a value. The end mark of a block list or mapping is the start of the next entry, so it is not used."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        last = node.value[-1]
        return _end(last[1] if isinstance(node, yaml.MappingNode) else last)
    return node.end_mark.index


# ── edits ─────────────────────────────────────────────────────────────────────────────────────────────


def _edits(text: str, node: yaml.MappingNode, reason: str) -> Iterator[Edit]:
    fields = _fields(node)
    if "provenance" in fields and fields["provenance"][1].value == "data":
        yield _replace_value(text, fields["provenance"][1], "approved")
    if "because" in fields:
        yield _replace_value(text, fields["because"][1], reason)
    else:
        previous = fields.get("provenance") or list(fields.values())[-1]
        yield (_insert_in_braces if node.flow_style else _insert_below)(text, previous, reason)


def _replace_value(text: str, value: yaml.Node, new: str) -> Edit:
    """Replace a value; an empty value is written after its colon."""
    start, end = value.start_mark.index, _end(value)
    if start == end:
        colon = _end_of_text(text, start)
        return colon, colon, f" {_quote_like(new, value)}"
    end = start + len(text[start:end].rstrip())  # a block of text ends with its line breaks
    return start, end, _quote_like(new, value)


def _end_of_text(text: str, end: int) -> int:
    """The end of the last text before a position, without spaces."""
    while text[end - 1 : end].isspace():
        end -= 1
    return end


def _insert_in_braces(text: str, previous: FieldNodes, reason: str) -> Edit:
    """Add a field inside braces, after another field."""
    end = _end(previous[1])
    return end, end, f", {_quote_like('because', previous[0])}: {_quote_like(reason, previous[0])}"


def _insert_below(text: str, previous: FieldNodes, reason: str) -> Edit:
    """Add a field on its own line, below another field and its comment."""
    key, value = previous
    end = _end(value)
    line = " " * key.start_mark.column + f"{_quote_like('because', key)}: {_quote_like(reason, key)}"
    if _BREAK.fullmatch(text[end - 1 : end]):  # a block of text ends with its line breaks
        return end, end, line + _line_break(text)
    line_break = _BREAK.search(text, end)
    end = line_break.start() if line_break else len(text)
    return end, end, _line_break(text) + line


def _line_break(text: str) -> str:
    """The kind of line break that the text uses."""
    first = _BREAK.search(text)
    return first[0] if first else "\n"


def _quote_like(new: str, like: yaml.Node) -> str:
    """A YAML scalar, in double quotes if a given node has them."""
    quoted = isinstance(like, yaml.ScalarNode) and like.style == '"' and new.isprintable()
    return json.dumps(new, ensure_ascii=False) if quoted else yaml_io.format_scalar(new)


def _apply_edits(text: str, edits: Iterable[Edit]) -> str:
    pieces, position = [], 0
    for start, end, new in sorted(edits, key=lambda edit: edit[0]):
        pieces += [text[position:start], new]
        position = end
    return "".join([*pieces, text[position:]])
