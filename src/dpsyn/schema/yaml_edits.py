"""Edits of YAML text: fields of an entry are set and removed where they stand, and nothing else changes.

Comments, order and quoting stay as people wrote them. Edits are located by the position marks of YAML nodes. Whoever
applies them parses the result again and compares it with the expected document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from dpsyn.schema import yaml_io

Edit = tuple[int, int, str]
"""The start and end of the replaced text, and the new text."""

FieldNodes = tuple[yaml.Node, yaml.Node]
"""The nodes of a key and its value."""

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


def entry_nodes(root: Any) -> dict[yaml_io.YamlPath, yaml.MappingNode]:
    """The nodes of all sections of a document and of their entries, by their paths; aliases share a node."""
    nodes: dict[yaml_io.YamlPath, Any] = {}
    for section, (_, node) in _fields(root).items():
        nodes[(section,)] = node
        if isinstance(node, yaml.MappingNode):
            nodes |= {(section, key): value for key, (_, value) in _fields(node).items()}
        elif isinstance(node, yaml.SequenceNode):
            nodes |= {(section, index): value for index, value in enumerate(node.value)}
    return nodes


def set_fields(
    text: str, node: yaml.MappingNode, changes: Mapping[str, Any], *, below: str = "provenance"
) -> Iterator[Edit]:
    """Set fields of a mapping; None removes one. New fields are written below the field ``below``, or at the end."""
    fields = _fields(node)
    kept = {name: nodes for name, nodes in fields.items() if name not in changes or changes[name] is not None}
    previous = kept.get(below) or list((kept or fields).values())[-1]
    for name, value in changes.items():
        if name not in fields:
            if value is not None:
                yield (_insert_in_braces if node.flow_style else _insert_below)(text, previous, name, value)
        elif value is None:
            yield _remove_field(text, node, name)
        else:
            yield _replace_value(text, fields[name][1], value)


def remove_entries(text: str, root: Any, section: str, keys: Iterable[str | int]) -> Iterator[Edit]:
    """Remove whole entries of a section, with their lines."""
    node = _fields(root)[section][1]
    starts = (
        [key.start_mark.index for key, _ in node.value]
        if isinstance(node, yaml.MappingNode)
        else [text.rindex("-", 0, value.start_mark.index) for value in node.value]
    )
    names: list[Any] = list(_fields(node)) if isinstance(node, yaml.MappingNode) else list(range(len(starts)))
    for key in keys:
        index = names.index(key)
        start = _line_start(text, starts[index])
        last = max(starts[index], _end(node))  # the value of an alias is where its anchor is
        end = _line_start(text, starts[index + 1]) if index + 1 < len(starts) else _line_after(text, last)
        yield start, end, ""


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text after all edits; of two that begin at the same position, an insertion comes first."""
    pieces, position = [], 0
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        pieces += [text[position:start], new]
        position = end
    return "".join([*pieces, text[position:]])


# ── positions in the text ──────────────────────────────────────────────────────────────────────────────────────────


def _fields(node: yaml.MappingNode) -> dict[str, FieldNodes]:
    return {key.value: (key, value) for key, value in node.value}


def _end(node: yaml.Node) -> int:
    """The end of a value. The end mark of a block list or mapping is the start of the next entry, so it is not used."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        last = node.value[-1]
        return _end(last[1] if isinstance(node, yaml.MappingNode) else last)
    return node.end_mark.index


def _line_start(text: str, position: int) -> int:
    return max(text.rfind(each, 0, position) for each in "\n\r\x85\u2028\u2029") + 1


def _line_after(text: str, position: int) -> int:
    """The start of the line after a position; a block of text ends with its line breaks."""
    if _BREAK.fullmatch(text[position - 1 : position]):
        return position
    found = _BREAK.search(text, position)
    return found.end() if found else len(text)


# ── edits of one field ─────────────────────────────────────────────────────────────────────────────────────────────


def _replace_value(text: str, value: yaml.Node, new: Any) -> Edit:
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


def _remove_field(text: str, node: yaml.MappingNode, name: str) -> Edit:
    """Remove a field: its lines, or what stands between it and its neighbor in braces."""
    names = [key.value for key, _ in node.value]
    index = names.index(name)
    key, value = node.value[index]
    if index == 0:
        return key.start_mark.index, node.value[1][0].start_mark.index, ""
    if node.flow_style:
        return _end(node.value[index - 1][1]), _end(value), ""
    return _line_start(text, key.start_mark.index), _line_after(text, _end(value)), ""


def _insert_in_braces(text: str, previous: FieldNodes, name: str, new: Any) -> Edit:
    """Add a field inside braces, after another field."""
    end = _end(previous[1])
    return end, end, f", {_quote_like(name, previous[0])}: {_quote_like(new, previous[0])}"


def _insert_below(text: str, previous: FieldNodes, name: str, new: Any) -> Edit:
    """Add a field on its own line, below another field and its comment."""
    key, value = previous
    end = _end(value)
    line = " " * key.start_mark.column + f"{_quote_like(name, key)}: {_quote_like(new, key)}"
    if _BREAK.fullmatch(text[end - 1 : end]):  # a block of text ends with its line breaks
        return end, end, line + _line_break(text)
    line_break = _BREAK.search(text, end)
    end = line_break.start() if line_break else len(text)
    return end, end, _line_break(text) + line


def _line_break(text: str) -> str:
    """The kind of line break that the text uses."""
    first = _BREAK.search(text)
    return first[0] if first else "\n"


def _quote_like(new: Any, like: yaml.Node) -> str:
    """A value as YAML, in double quotes if it is a text and a given node has them."""
    quoted = isinstance(like, yaml.ScalarNode) and like.style == '"'
    if quoted and (not isinstance(new, str) or new.isprintable()):
        return json.dumps(new, ensure_ascii=False)
    return yaml_io.format_value(new)
