"""Documents that people write: YAML text to typed values, every mistake with its line and what to do about it.

Schemas and plans are such documents. This module knows nothing of what they say.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from dpsyn.errors import DocumentError, SchemaError
from dpsyn.schema import yaml_io

MAX_MISTAKES_SHOWN = 20
"""Mistakes that are told of at once."""

SYNONYMS = {
    "nominal": "categorical", "category": "categorical", "enum": "categorical", "factor": "categorical",
    "string": "categorical", "str": "categorical", "text": "open", "float": "real", "double": "real",
    "number": "real", "numeric": "real", "numerical": "real", "decimal": "real", "int": "integer", "bool": "boolean",
    "date": "datetime", "time": "datetime", "timestamp": "datetime", "id": "identifier", "key": "identifier",
    "min": "low", "minimum": "low", "lower": "low", "max": "high", "maximum": "high", "upper": "high",
    "categories": "values", "levels": "values", "null": "missing", "nullable": "missing", "optional": "missing",
    "type": "kind", "size": "codes", "begin": "start", "precision": "decimals", "rows": "expected_size",
    "columns": "attributes", "fields": "attributes", "neighbours": "neighbors", "unit": "privacy_unit", "recode": "measure_together",
}  # fmt: skip
"""What other tools call kinds and fields."""

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
    """Read all entries, and tell of all that are wrong."""
    found, mistakes = [], []
    for entry in entries:
        try:
            found.append(read(*entry))
        except SeveralError as several:
            mistakes += several.mistakes
        except DocumentError as mistake:
            mistakes.append(mistake)
    if mistakes:
        raise SeveralError(mistakes)
    return tuple(found)


def require_tag(entry: Any, tag: str, known: dict[str, Any], path: yaml_io.YamlPath, what: str) -> dict[str, Any]:
    """The fields of an entry whose ``tag`` names one of the known types."""
    if not isinstance(entry, dict) or tag not in entry:
        raise DocumentError(f"{what} needs {tag}: one of {', '.join(known)}", path)
    if not isinstance(entry[tag], str) or entry[tag] not in known:
        hint = did_you_mean(str(entry[tag]), known)
        raise DocumentError(f"{what}: there is no {tag} {entry[tag]!r}; use {', '.join(known)}{hint}", (*path, tag))
    return entry


def convert(data: Any, kind: type[_T], path: yaml_io.YamlPath, what: str = "", name: str | None = None) -> _T:
    """A typed value, named if its key is a name; errors are turned into DocumentErrors that know their path."""
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
        message, _, place = str(error).partition(" - at `$")
        if place == "[...]`":  # somewhere in a mapping from names: take them one by one
            for key, value in data.items():
                convert(value, get_args(kind)[1], (*path, key), f"{what}{key}: ")
        inner = tuple(part for part in re.split(r"[.\[\]`]+", place) if part)
        field = f"{inner[0]}: " if inner and not inner[0].isdigit() else ""
        words = _translate_message(message, _choices(kind, inner), _value_at(data, _as_path(inner)))
        raise DocumentError(f"{what}{field}{words}", (*path, *_as_path(inner))) from None


def _value_at(data: Any, inner: yaml_io.YamlPath) -> Any:
    """What stands at a place of the data."""
    for step in inner:
        if isinstance(data, dict) or (isinstance(data, list) and isinstance(step, int)):
            data = data[step]  # type: ignore[index]
    return data


def _choices(kind: Any, inner: tuple[str, ...]) -> tuple[str, ...]:
    """The words a field can have, where it is one of a few."""
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
    """msgspec's words in ours, with what was given."""
    if re.fullmatch(r"Invalid enum value .*", message):
        return f"there is no {given!r}; use {', '.join(choices)}"
    missing = re.fullmatch(r"Object missing required field `(.*)`", message)
    if missing:
        return f"{missing[1]} is not given"
    wanted = re.fullmatch(r"Expected `(.*)`, got `(.*)`", message)
    if not wanted:
        return message[0].lower() + message[1:].replace("`", "")
    kinds = [kind for kind in re.split(r" \| ", wanted[1]) if kind != "null"]
    words = " or ".join(_IN_WORDS.get(kind, kind) for kind in kinds)
    return f"{_describe_value(given)} is not {words}{_suggest_fix(given, kinds)}"


def _describe_value(given: Any) -> str:
    return _IN_WORDS["object"] if isinstance(given, dict) else "a list" if isinstance(given, list) else repr(given)


def _suggest_fix(given: Any, kinds: list[str]) -> str:
    """What to write instead, where it can be guessed."""
    if "str" in kinds and isinstance(given, int | float):
        return "; put it in quotes"
    bare = re.sub(r"[ _,'\u00a0\u202f]", "", given) if isinstance(given, str) else ""
    return f"; write {bare}" if {"int", "float"} & set(kinds) and re.fullmatch(r"[-+]?[0-9]+(\.[0-9]+)?", bare) else ""


def _as_path(inner: tuple[str, ...]) -> yaml_io.YamlPath:
    return tuple(int(part) if part.isdecimal() else part for part in inner)


def _field_hint(kind: type[msgspec.Struct], key: str) -> str:
    meaning = field_docs(kind).get(key)
    return f": {first_clause(meaning)}" if meaning else ""


def _file_fields(kind: type[msgspec.Struct]) -> list[str]:
    """The keys an entry of a file may have."""
    tag = [str(kind.__struct_config__.tag_field)] if kind.__struct_config__.tag_field else []
    return [*tag, *(name for name in kind.__struct_encode_fields__ if name != "name")]


def refuse_unknown_fields(data: dict[str, Any], known: list[str], path: yaml_io.YamlPath, what: str = "") -> None:
    """Refuse a field that there is not, with the one that is probably meant."""
    for key in data:
        if key not in known:
            hint = did_you_mean(key, known) or f"; there are {', '.join(known)}"
            raise DocumentError(f"{what}there is no field {key!r}{hint}", (*path, key))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question to the person who wrote a word that is not known; empty if nothing is near it."""
    other = SYNONYMS.get(word.lower(), "")
    close = [other] if other in known else difflib.get_close_matches(word.lower(), known, 1)
    return f"; did you mean {close[0]}?" if close else ""


# ── What the fields of a schema mean, in the words of the docstrings, for error messages and editors ──


def summary(kind: type) -> str:
    """The first sentence about a type."""
    return inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].replace("``", "")


def field_docs(kind: type[msgspec.Struct]) -> dict[str, str]:
    """What every field means, by its key in a file; a type's own words come before those of its bases."""
    keys = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    found: dict[str, str] = {}
    for base in kind.__mro__:
        for name, meaning in _attributes_section(inspect.cleandoc(base.__doc__ or "")):
            if name in keys:
                found.setdefault(keys[name], meaning)
    return found


def first_clause(meaning: str) -> str:
    """The first clause of a meaning."""
    return re.split(r"[;.](?:\s|$)", meaning)[0]


def _attributes_section(doc: str) -> Iterator[tuple[str, str]]:
    """The entries below ``Attributes:``, each with its continuation lines."""
    _, _, section = doc.partition("\nAttributes:\n")
    for entry in re.split(r"^ {4}(?=\w)", section, flags=re.MULTILINE)[1:]:
        name, _, meaning = entry.partition(":")
        yield name, " ".join(meaning.replace("``", "").split())
