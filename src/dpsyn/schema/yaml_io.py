"""YAML text ⇄ plain data, with the line of every entry, and with comments.

Reading follows the core schema of YAML 1.2: ``NO`` is the text NO and not false, and dates stay text. ``09`` without
quotes is refused, because it would lose its zero. Keys are always text. Only lists, mappings and scalars are read;
nothing in a file can run code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from dpsyn.errors import DocumentError, quote_argument

YamlPath = tuple[str | int, ...]
LineNumbers = dict[YamlPath, int]

_UNLIMITED_WIDTH = 2**30
_MAX_ALIAS_ENTRIES = 300_000
"""Entries that aliases may add, such as ten lists of thirty thousand values."""
_MAX_DEPTH = 100
"""Levels of nesting: a schema has six, and the YAML library overflows the stack at thousands."""
_TOO_DEEP = "this YAML is nested too deeply, or an alias is inside its own anchor"
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
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 -- declared like this in the base class


class _Dumper(yaml.CSafeDumper):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 -- declared like this in the base class

    def ignore_aliases(self, data: Any) -> bool:
        return True


for _name, _pattern, _first in _RESOLVERS:
    for _class in (_Loader, _Dumper):
        _letters = ["" if letter == "\0" else letter for letter in _first]
        _class.add_implicit_resolver(_TAG + _name, re.compile(_pattern), _letters)


def _is_flat(values: Sequence[Any]) -> bool:
    return not any(isinstance(value, dict | list | tuple) for value in values)


def _represent_list(dumper: _Dumper, data: Sequence[Any]) -> yaml.Node:
    """Lists of plain values on one line, other lists with one entry per line."""
    return dumper.represent_sequence(_TAG + "seq", data, flow_style=_is_flat(data))


def _represent_text(dumper: _Dumper, data: str) -> yaml.Node:
    """Text on one line, with escaped line breaks and control characters, because a key cannot span lines."""
    return dumper.represent_scalar(_TAG + "str", data, style=None if data.isprintable() else '"')


_Dumper.add_representer(str, _represent_text)
for _sequence in (list, tuple):
    _Dumper.add_representer(_sequence, _represent_list)


def read_yaml(text: str) -> tuple[Any, LineNumbers]:
    """Plain data and the line, counted from 1, of every entry by its path."""
    lines: LineNumbers = {}
    if not text.isascii() and (stray := re.search("[\ud800-\udfff]", text)):
        line = text.count("\n", 0, stray.start()) + 1
        raise DocumentError(
            f"line {line}: this is not YAML: it contains an unpaired surrogate, which is not a character"
        )
    node = compose_nodes(text)
    try:
        return (None if node is None else _to_plain_data(node, (), lines, len(text) + _MAX_ALIAS_ENTRIES)), lines
    except RecursionError:
        raise DocumentError(_TOO_DEEP) from None


def compose_nodes(text: str) -> yaml.Node | None:
    """The nodes of the text, with marks of where each begins and ends; a byte order mark is not counted."""
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
    """Refuse deep nesting before the nodes are composed, which would overflow the stack of the process."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise DocumentError(_TOO_DEEP)


def _syntax_error(error: yaml.MarkedYAMLError) -> str:
    """The line where YAML could not be read, the line where the surrounding entry began, and the usual causes."""
    end, start = error.problem_mark or error.context_mark, error.context_mark
    since = f" (begun on line {start.line + 1})" if start and end and start.line < end.line else ""
    line = end.line + 1 if end else 1
    return (
        f"line {line}: this is not YAML: {error.problem or error.context}{since}; look for a quote or bracket that is "
        "not closed, a wrong indentation, a colon without a space after it, or a value such as ? or * without quotes"
    )


def _to_plain_data(node: yaml.Node, path: YamlPath, lines: LineNumbers, max_entries: int) -> Any:
    lines[path] = node.start_mark.line + 1
    if len(lines) > max_entries:  # without aliases every entry has at least one character
        raise DocumentError(f"line {lines[path]}: the aliases up to here repeat too many entries; write them out")
    if not isinstance(node, yaml.ScalarNode) and node.tag not in (f"{_TAG}seq", f"{_TAG}map"):
        raise _forbidden_tag(node)
    if isinstance(node, yaml.SequenceNode):
        return [_to_plain_data(child, (*path, index), lines, max_entries) for index, child in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, lines, max_entries)
    return _scalar(node)


def _mapping(node: yaml.MappingNode, path: YamlPath, lines: LineNumbers, max_entries: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise DocumentError(f"line {line}: a key must be a plain word or number")
        key: str = key_node.value
        if key in result:
            raise DocumentError(
                f"line {line}: {quote_argument(key)} occurs twice; the first is on line "
                f"{lines[(*path, key)]}; remove one"
            )
        result[key] = _to_plain_data(value_node, (*path, key), lines, max_entries)
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
    except ValueError:  # a number with thousands of digits, or a word with the tag of a number
        shown = text if len(text) <= 20 else f"{text[:20]}… with {len(text):,} digits"
        raise DocumentError(f"line {line}: {shown} cannot be read as a number; put it in quotes") from None


def write_yaml(
    document: Mapping[str, Any],
    comments: Mapping[YamlPath, str] | None = None,
    anchors: Mapping[YamlPath, str] | None = None,
) -> str:
    """YAML text of a document, with optional comments.

    The comment of an entry is written above it, the comment of a single field after it, and the comment of the empty
    path at the top of the file. Of the mappings at paths with the same anchor, which must be equal, the first is
    written with that anchor and the others as its alias.
    """
    comments = comments or {}
    header = _with_comment("\n", comments[()], after=False) if () in comments else ""
    first: dict[str, YamlPath] = {}
    for path, name in (anchors or {}).items():
        first.setdefault(name, path)
    marks = {path: f"{'&' if first[name] == path else '*'}{name}" for path, name in (anchors or {}).items()}
    return header + _block(document, (), comments, marks)


def _block(
    mapping: Mapping[Any, Any], path: YamlPath, comments: Mapping[YamlPath, str], marks: Mapping[YamlPath, str]
) -> str:
    parts = []
    for key, value in mapping.items():
        entry_path = (*path, key)
        comment, mark = comments.get(entry_path, ""), marks.get(entry_path, "")
        if mark.startswith("*"):
            body = f"{_head(key)} {mark}\n"
        elif isinstance(value, Mapping) and value:
            head = f"{_head(key)} {mark}".rstrip()
            body = f"{head}\n{_indent(_block(value, entry_path, comments, marks))}"
        elif value is None:
            body = f"{_head(key)}\n"
        elif isinstance(value, list | tuple) and _is_flat(value):
            body = f"{_head(key)} {_format_flow_list(value)}\n"
        else:
            body = yaml.dump({key: value}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_UNLIMITED_WIDTH)
        parts.append(_with_comment(body, comment, after=len(path) >= 2))
    return "".join(parts)


def _head(key: str) -> str:
    """The key and its colon; YAML needs a question mark before keys of more than 1,024 characters."""
    text = format_scalar(key)
    return f"{text}:" if len(text) <= 1024 else f"? {text}\n:"


def _format_flow_list(values: Sequence[Any]) -> str:
    """Plain values in brackets, with line breaks between them."""
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
    """Indent every line by two spaces. Only newlines end a line: other line breaks are inside texts."""
    return "".join(f"  {line}\n" if line else "\n" for line in text.removesuffix("\n").split("\n"))


def _with_comment(body: str, comment: str, *, after: bool) -> str:
    if not comment:
        return body
    lines = ["".join(letter if letter.isprintable() else " " for letter in line) for line in comment.splitlines()]
    if after and len(lines) == 1 and body.count("\n") == 1:
        return f"{body.removesuffix(chr(10))}  # {lines[0]}".rstrip(" ") + "\n"
    above = "".join(f"# {line}".rstrip() + "\n" for line in lines)
    return above + body


def format_value(value: Any) -> str:
    """A value, list or mapping as YAML text on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{format_scalar(key)}: {format_value(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(format_value, value))}]"
    return format_scalar(value)


def format_scalar(value: Any) -> str:
    """One value as YAML text on one line."""
    text: str = yaml.dump([value], Dumper=_Dumper, allow_unicode=True, width=_UNLIMITED_WIDTH, default_flow_style=True)
    return text.strip("\n")[1:-1]
