"""YAML documents that people write: YAML text to typed values, with the line of every mistake and how to fix it.

Schemas and plans are such documents. This module does not depend on their content.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from dpsyn.errors import DocumentError, SchemaError, quote_argument
from dpsyn.schema import yaml_io
from dpsyn.suggestions import find_similar

MAX_MISTAKES_SHOWN = 20
"""Mistakes that one error message lists."""

SYNONYMS = {
    "nominal": "categorical", "category": "categorical", "enum": "categorical", "factor": "categorical",
    "string": "categorical", "str": "categorical", "text": "open", "float": "real", "double": "real",
    "number": "real", "numeric": "real", "numerical": "real", "decimal": "real", "int": "integer", "bool": "boolean",
    "date": "datetime", "clock": "time", "timestamp": "datetime", "id": "identifier", "key": "identifier",
    "min": "low", "minimum": "low", "lower": "low", "max": "high", "maximum": "high", "upper": "high",
    "categories": "values", "levels": "values", "null": "missing", "nullable": "missing", "optional": "missing",
    "type": "kind", "size": "codes", "begin": "start", "precision": "decimals", "rows": "expected_size",
    "columns": "attributes", "fields": "attributes", "neighbours": "neighbors", "neighbor": "neighbors",
    "unit": "privacy_unit", "protection": "privacy_unit", "recode": "measure_together", "group": "groups",
    "by": "groups", "joint": "measure_together", "reason": "because", "constraints": "rules",
}  # fmt: skip
"""Kinds and fields by the names that other tools, or earlier versions of DPSyn, give them."""

_T = TypeVar("_T")


def load_document(
    path: str | Path, text: str, parse: Callable[[str], _T], error: type[DocumentError] = SchemaError
) -> _T:
    """Parse the text of a file; an error names the file and the line."""
    try:
        return parse(text)
    except DocumentError as mistake:
        has_line = str(mistake).startswith("line ")
        raise error(f"{path}, {mistake}" if has_line else f"{path}: {mistake}", mistake.path) from None


def parse_document(text: str, read: Callable[[Any], _T], error: type[DocumentError] = SchemaError) -> _T:
    """Parse YAML text and build a value from it.

    An exception of the class ``error`` names the line of the mistake. If there are several, it lists them all.
    """
    lines: yaml_io.LineNumbers = {}
    try:
        document, lines = yaml_io.read_yaml(text)
        return read(document)
    except SeveralError as several:
        mistakes = several.mistakes
    except DocumentError as mistake:
        mistakes = [mistake]
    messages = [_with_line(mistake, lines) for mistake in mistakes]
    if len(messages) > 1:
        more = len(messages) - MAX_MISTAKES_SHOWN
        listed = [f"  {message}" for message in messages[:MAX_MISTAKES_SHOWN]] + [f"  and {more} more"] * (more > 0)
        messages = ["\n".join([f"{len(messages)} mistakes", *listed])]
    raise error(messages[0], mistakes[0].path) from None


class SeveralError(DocumentError):
    """Several entries are wrong, independently of each other, and all of them are reported at once."""

    def __init__(self, mistakes: list[DocumentError]) -> None:
        super().__init__(str(mistakes[0]))
        self.mistakes = mistakes


def _with_line(mistake: DocumentError, lines: yaml_io.LineNumbers) -> str:
    """The message, after the line of the innermost entry on its path that has one."""
    parents = (mistake.path[:length] for length in range(len(mistake.path), 0, -1))
    line = next((lines[path] for path in parents if path in lines), None)
    return f"line {line}: {mistake}" if line else str(mistake)


def read_each(read: Callable[..., _T], entries: Iterable[tuple[Any, ...]]) -> tuple[_T, ...]:
    """Read all entries; an error reports all that are wrong."""
    values, mistakes = [], []
    for entry in entries:
        try:
            values.append(read(*entry))
        except SeveralError as several:
            mistakes += several.mistakes
        except DocumentError as mistake:
            mistakes.append(mistake)
    if mistakes:
        raise SeveralError(mistakes)
    return tuple(values)


def require_tag(entry: Any, tag: str, known: dict[str, Any], path: yaml_io.YamlPath, what: str) -> dict[str, Any]:
    """The fields of an entry; its ``tag`` must name one of the known types."""
    if not isinstance(entry, dict) or tag not in entry:
        raise DocumentError(f"{what} needs {tag}: one of {', '.join(known)}", path)
    if not isinstance(entry[tag], str) or entry[tag] not in known:
        hint = did_you_mean(str(entry[tag]), known)
        raise DocumentError(
            f"{what}: there is no {tag} {quote_argument(entry[tag])}; use {', '.join(known)}{hint}", (*path, tag)
        )
    return entry


def convert(data: Any, kind: type[_T], path: yaml_io.YamlPath, what: str = "", name: str | None = None) -> _T:
    """Convert plain data to a typed value, with ``name`` as its name; errors carry the path of the entry."""
    if isinstance(data, dict) and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        refuse_unknown_fields(data, _file_fields(kind), path, what)
        empty = [key for key, value in data.items() if value is None]
        if empty:
            raise SeveralError(
                [
                    DocumentError(f"{what}{key} is empty; fill it in{_field_hint(kind, key)}", (*path, key))
                    for key in empty
                ]
            )
    try:
        return msgspec.convert(data if name is None else {**data, "name": name}, kind)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, DocumentError):
            raise DocumentError(f"{what}{error.__cause__}", (*path, *error.__cause__.path)) from None
        message, _, location = str(error).partition(" - at `$")
        if location == "[...]`":  # an entry of a mapping from names: convert them one by one to find out which
            for key, value in data.items():
                convert(value, get_args(kind)[1], (*path, key), f"{what}{key}: ")
        inner = tuple(part for part in re.split(r"[.\[\]`]+", location) if part)
        field = f"{inner[0]}: " if inner and not inner[0].isdigit() else ""
        problem = _translate_message(message, _choices(kind, inner), _value_at(data, _as_path(inner)))
        raise DocumentError(f"{what}{field}{problem}", (*path, *_as_path(inner))) from None


def _value_at(data: Any, inner: yaml_io.YamlPath) -> Any:
    """The value at a path in the data, as far as the path exists."""
    for step in inner:
        if isinstance(data, dict) or (isinstance(data, list) and isinstance(step, int)):
            data = data[step]  # type: ignore[index]
    return data


def _choices(kind: Any, inner: tuple[str, ...]) -> tuple[str, ...]:
    """The values that a field can have, if it is one of a few."""
    if not inner:
        return get_args(kind)
    return get_args(get_type_hints(kind).get(inner[0])) if isinstance(kind, type) else ()  # list[str] has no fields


_IN_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "object": "a mapping",
    "array": "a list",
}


def _translate_message(message: str, choices: tuple[str, ...], given: Any) -> str:
    """A message of msgspec in plain words, with the given value."""
    if re.fullmatch(r"Invalid enum value .*", message):
        return f"there is no {quote_argument(given)}; use {', '.join(choices)}"
    missing = re.fullmatch(r"Object missing required field `(.*)`", message)
    if missing:
        return f"{missing[1]} is not given"
    expected = re.fullmatch(r"Expected `(.*)`, got `(.*)`", message)
    if not expected:
        return message[0].lower() + message[1:].replace("`", "")
    kinds = [kind for kind in re.split(r" \| ", expected[1]) if kind != "null"]
    words = " or ".join(_IN_WORDS.get(kind, kind) for kind in kinds)
    return f"{_describe_value(given)} is not {words}{_suggest_fix(given, kinds)}"


def _describe_value(given: Any) -> str:
    return _IN_WORDS["object"] if isinstance(given, dict) else "a list" if isinstance(given, list) else repr(given)


def _suggest_fix(given: Any, kinds: list[str]) -> str:
    """What to write instead, if it can be guessed."""
    if "str" in kinds and isinstance(given, int | float):
        return "; put it in quotes"
    text = given if isinstance(given, str) else ""
    if re.fullmatch(r"[-+]?[0-9]+,[0-9]+", text) and not re.fullmatch(r"[-+]?[1-9][0-9]{0,2},[0-9]{3}", text):
        text = text.replace(",", ".")  # a decimal comma; with three digits after it, it separates thousands
    bare = re.sub(r"[ _,'\u00a0\u202f]", "", text)
    return f"; write {bare}" if {"int", "float"} & set(kinds) and re.fullmatch(r"[-+]?[0-9]+(\.[0-9]+)?", bare) else ""


def _as_path(inner: tuple[str, ...]) -> yaml_io.YamlPath:
    return tuple(int(part) if part.isdecimal() else part for part in inner)


def _field_hint(kind: type[msgspec.Struct], key: str) -> str:
    description = field_docs(kind).get(key)
    return f": {first_clause(description)}" if description else ""


def _file_fields(kind: type[msgspec.Struct]) -> list[str]:
    """The keys that an entry of a file may have."""
    tag = [str(kind.__struct_config__.tag_field)] if kind.__struct_config__.tag_field else []
    return [*tag, *(name for name in kind.__struct_encode_fields__ if name != "name")]


def refuse_unknown_fields(data: dict[str, Any], known: list[str], path: yaml_io.YamlPath, what: str = "") -> None:
    """Refuse an unknown field, with a suggestion of the one that was probably meant."""
    for key in data:
        if key not in known:
            hint = did_you_mean(key, known) or f"; there are {', '.join(known)}"
            raise DocumentError(f"{what}there is no field {quote_argument(key)}{hint}", (*path, key))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A suggestion for an unknown word: its synonym or the known word most like it; empty if there is none."""
    synonym = SYNONYMS.get(word.lower(), "")
    close = [synonym] if synonym in known else find_similar(word, known, 1)
    return f"; did you mean {close[0]}?" if close else ""


# ── descriptions of fields, taken from docstrings, for error messages and editors ───────────────────────────


def summary(kind: type) -> str:
    """The first sentence of the docstring of a type."""
    return inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].replace("``", "")


def field_docs(kind: type[msgspec.Struct]) -> dict[str, str]:
    """The description of every field, by its key in a file; a type's own description precedes those of its bases."""
    keys = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    docs: dict[str, str] = {}
    for base in kind.__mro__:
        for name, description in _attributes_section(inspect.cleandoc(base.__doc__ or "")):
            if name in keys:
                docs.setdefault(keys[name], description)
    return docs


def first_clause(description: str) -> str:
    """The first clause of a description."""
    return re.split(r"[;.](?:\s|$)", description)[0]


def _attributes_section(doc: str) -> Iterator[tuple[str, str]]:
    """The entries below ``Attributes:``, each with its continuation lines."""
    _, _, section = doc.partition("\nAttributes:\n")
    for entry in re.split(r"^ {4}(?=\w)", section, flags=re.MULTILINE)[1:]:
        name, _, description = entry.partition(":")
        yield name, " ".join(description.replace("``", "").split())
