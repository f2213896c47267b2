"""YAML text ⇄ plain data, with the line of every entry and comments for people.

Reading follows YAML 1.2's core rules: ``NO`` is Norway and not false, dates stay text. ``09`` is refused without
quotes, for it would lose its zero. Keys are always text. Only lists, mappings and scalars exist; nothing in a file can
run code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from dpsyn.errors import DocumentError

YamlPath = tuple[str | int, ...]
LineNumbers = dict[YamlPath, int]

_UNLIMITED_WIDTH = 2**30
_MAX_ALIAS_ENTRIES = 300_000
"""Entries that aliases may add: ten lists of thirty thousand values."""
_MAX_DEPTH = 100
"""Lists and mappings inside each other: a schema has six, and the library that composes them breaks at thousands."""
_TOO_DEEP = "this YAML is nested too deeply, or an alias stands inside its own anchor"
_TAG = "tag:yaml.org,2002:"
_RESOLVERS = (
    ("null", r"^(?:~|null|Null|NULL|)$", "~nN\0"),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    (
        "float",
        r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
        "-+.0123456789",
    ),
)


class _Loader(yaml.CSafeLoader):
    yaml_implicit_resolvers: dict[str, Any] = {}


class _Dumper(yaml.CSafeDumper):
    yaml_implicit_resolvers: dict[str, Any] = {}

    def ignore_aliases(self, data: Any) -> bool:
        return True


for _name, _pattern, _first in _RESOLVERS:
    for _class in (_Loader, _Dumper):
        _letters = ["" if letter == "\0" else letter for letter in _first]
        _class.add_implicit_resolver(_TAG + _name, re.compile(_pattern), _letters)


def _is_flat(values: Sequence[Any]) -> bool:
    return not any(isinstance(value, dict | list | tuple) for value in values)


def _represent_list(dumper: _Dumper, data: Sequence[Any]) -> yaml.Node:
    """Plain values side by side, everything else below each other."""
    return dumper.represent_sequence(_TAG + "seq", data, flow_style=_is_flat(data))


def _represent_text(dumper: _Dumper, data: str) -> yaml.Node:
    """On one line: breaks and control characters are escaped, for a key cannot span lines."""
    return dumper.represent_scalar(_TAG + "str", data, style=None if data.isprintable() else '"')


_Dumper.add_representer(str, _represent_text)
for _sequence in (list, tuple):
    _Dumper.add_representer(_sequence, _represent_list)


def read_yaml(text: str) -> tuple[Any, LineNumbers]:
    """Plain data and the line, counted from 1, of every entry by its path."""
    lines: LineNumbers = {}
    if not text.isascii() and (stray := re.search("[\ud800-\udfff]", text)):
        line = text.count("\n", 0, stray.start()) + 1
        raise DocumentError(f"line {line}: this is not YAML: half of a surrogate pair is no character")
    node = compose_nodes(text)
    try:
        return (None if node is None else _to_plain_data(node, (), lines, len(text) + _MAX_ALIAS_ENTRIES)), lines
    except RecursionError:
        raise DocumentError(_TOO_DEEP) from None


def compose_nodes(text: str) -> yaml.Node | None:
    """The nodes of the text, whose marks tell where each begins and ends; a byte order mark is not counted."""
    try:
        _require_shallow(text)
        node: yaml.Node | None = yaml.compose(text, Loader=_Loader)
        return node
    except yaml.MarkedYAMLError as error:
        raise DocumentError(_syntax_error(error)) from None
    except yaml.YAMLError as error:
        raise DocumentError(f"this is not YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise DocumentError(_TOO_DEEP) from None


def _require_shallow(text: str) -> None:
    """Refuse deep nesting before composing, which would overflow the stack of the process."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise DocumentError(_TOO_DEEP)


def _syntax_error(error: yaml.MarkedYAMLError) -> str:
    """Where YAML stopped, where what it was reading began, and what is usually wrong."""
    found, begun = error.problem_mark or error.context_mark, error.context_mark
    since = f" (begun on line {begun.line + 1})" if begun and found and begun.line < found.line else ""
    line = found.line + 1 if found else 1
    return (
        f"line {line}: this is not YAML: {error.problem or error.context}{since}; look for a quote or bracket that is "
        "not closed, a wrong indentation, a colon without a space behind it, or a value such as ? or * without quotes"
    )


def _to_plain_data(node: yaml.Node, path: YamlPath, lines: LineNumbers, most: int) -> Any:
    lines[path] = node.start_mark.line + 1
    if len(lines) > most:  # without aliases every entry takes at least a letter
        raise DocumentError(f"line {lines[path]}: the aliases up to here repeat too much; write it out")
    if not isinstance(node, yaml.ScalarNode) and node.tag not in (f"{_TAG}seq", f"{_TAG}map"):
        raise _forbidden_tag(node)
    if isinstance(node, yaml.SequenceNode):
        return [_to_plain_data(child, (*path, index), lines, most) for index, child in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, lines, most)
    return _scalar(node)


def _mapping(node: yaml.MappingNode, path: YamlPath, lines: LineNumbers, most: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise DocumentError(f"line {line}: a key must be a plain word or number")
        key: str = key_node.value
        if key in result:
            raise DocumentError(f"line {line}: {key!r} stands twice; the first is on line {lines[(*path, key)]}")
        result[key] = _to_plain_data(value_node, (*path, key), lines, most)
        lines[(*path, key)] = line
    return result


def _scalar(node: yaml.Node) -> Any:
    kind = node.tag.removeprefix(_TAG)
    text: str = node.value
    line = node.start_mark.line + 1
    match kind:
        case "str":
            return text
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int" | "float":
            return _number(kind, text, line)
        case _:
            raise _forbidden_tag(node)


def _forbidden_tag(node: yaml.Node) -> DocumentError:
    return DocumentError(f"line {node.start_mark.line + 1}: the tag {node.tag} is not allowed; write plain values")


def _number(kind: str, text: str, line: int) -> int | float:
    if re.match("[-+]?0[0-9]", text):
        shown = text if len(text) <= 20 else f"{text[:20]}…"
        bare = re.sub("^([-+]?)0+(?=[0-9])", r"\1", shown)
        raise DocumentError(f"line {line}: {shown} would lose its leading zeros; write '{shown}' in quotes, or {bare}")
    try:
        return int(text) if kind == "int" else float(re.sub(r"\.(inf|nan)$", r"\1", text.lower()))
    except ValueError:  # a number of thousands of digits, or a word with a number's tag
        shown = text if len(text) <= 20 else f"{text[:20]}… with {len(text):,} digits"
        raise DocumentError(f"line {line}: {shown} cannot be read as a number; put it in quotes") from None


def write_yaml(document: Mapping[str, Any], comments: Mapping[YamlPath, str] | None = None) -> str:
    """YAML text of a document, each top-level entry and each attribute apart, with comments where given.

    The comment of an entry stands above it; that of a single field behind it; that of the empty path heads the file.
    """
    comments = comments or {}
    header = _with_comment("\n", comments[()], behind=False) if () in comments else ""
    return header + _block(document, (), comments)


def _block(mapping: Mapping[Any, Any], path: YamlPath, comments: Mapping[YamlPath, str]) -> str:
    parts = []
    for key, value in mapping.items():
        here = (*path, key)
        comment = comments.get(here, "")
        if isinstance(value, Mapping) and value:
            body = f"{_head(key)}\n{_indent(_block(value, here, comments))}"
        elif value is None:
            body = f"{_head(key)}\n"
        elif isinstance(value, list | tuple) and _is_flat(value):
            body = f"{_head(key)} {_format_flow_list(value)}\n"
        else:
            body = yaml.dump({key: value}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_UNLIMITED_WIDTH)
        parts.append(_with_comment(body, comment, behind=len(path) >= 2))
    return "".join(parts)


def _head(key: str) -> str:
    """The key and its colon; YAML wants a question mark before keys of more than 1,024 characters."""
    text = format_scalar(key)
    return f"{text}:" if len(text) <= 1024 else f"? {text}\n:"


def _format_flow_list(values: Sequence[Any]) -> str:
    """Plain values in brackets, lines broken between them."""
    wrapped = [[value] for value in values]
    lines = yaml.dump(wrapped, Dumper=_Dumper, allow_unicode=True, width=_UNLIMITED_WIDTH, default_flow_style=None)
    items = (
        [line.removeprefix("- [").removesuffix("]") + "," for line in lines.removesuffix("\n").split("\n")]
        if values
        else []
    )
    rows, row = [], ""
    for item in items:
        if row and len(row) + len(item) >= 100:
            rows.append(row)
            row = "  "
        row += f" {item}" if row.strip() else item
    return "[" + "\n".join([*rows, row]).removesuffix(",") + "]"


def _indent(text: str) -> str:
    """Two spaces before every line, and a line ends with a newline only: other breaks are inside of texts."""
    return "".join(f"  {line}\n" if line else "\n" for line in text.removesuffix("\n").split("\n"))


def _with_comment(body: str, comment: str, *, behind: bool) -> str:
    if not comment:
        return body
    lines = ["".join(letter if letter.isprintable() else " " for letter in line) for line in comment.splitlines()]
    if behind and len(lines) == 1 and body.count("\n") == 1:
        return f"{body.removesuffix(chr(10))}  # {lines[0]}".rstrip(" ") + "\n"
    above = "".join(f"# {line}".rstrip() + "\n" for line in lines)
    return above + body


def format_scalar(value: Any) -> str:
    """One value as YAML text on one line."""
    text: str = yaml.dump([value], Dumper=_Dumper, allow_unicode=True, width=_UNLIMITED_WIDTH, default_flow_style=True)
    return text.strip("\n")[1:-1]
