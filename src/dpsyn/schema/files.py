"""Schema files: YAML ⇄ Schema.

The file's shape is the Schema's, with names as keys: ``attributes``, ``derive`` and ``recode`` are mappings, a
``where`` is a mapping of conditions. This module is the only place that knows the difference.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from dpsyn.errors import SchemaError, in_words
from dpsyn.schema import yamltext
from dpsyn.schema.attributes import Attribute
from dpsyn.schema.meanings import field_meanings, in_short
from dpsyn.schema.relations import AnyRule, Derive, Neighbours, Recode, Rule, Unit
from dpsyn.schema.schema import AnyAttribute, Schema

FORMAT = 1
"""The version of the file format."""

KEY = "dpsyn_schema"
"""The first key of a schema file; its value is the format."""

RESERVED = ("weight", "household")
"""Words that will mean something one day."""

KINDS: dict[str, type[Attribute]] = {str(k.__struct_config__.tag): k for k in get_args(AnyAttribute)}
RULES: dict[str, type[Rule]] = {str(r.__struct_config__.tag): r for r in get_args(AnyRule)}

MOST_BYTES = 100_000_000
"""Of a schema or of other metadata: a list of a million values has a tenth of that."""

MOST_MISTAKES = 20
"""Mistakes that are told of at once."""

OTHER_WORDS = {
    "nominal": "categorical", "category": "categorical", "enum": "categorical", "factor": "categorical",
    "string": "categorical", "str": "categorical", "text": "open", "float": "real", "double": "real",
    "number": "real", "numeric": "real", "numerical": "real", "decimal": "real", "int": "integer", "bool": "boolean",
    "date": "datetime", "time": "datetime", "timestamp": "datetime", "id": "identifier", "key": "identifier",
    "min": "low", "minimum": "low", "lower": "low", "max": "high", "maximum": "high", "upper": "high",
    "categories": "values", "levels": "values", "null": "missing", "nullable": "missing", "optional": "missing",
    "type": "kind", "size": "codes", "begin": "start", "precision": "decimals", "rows": "expected_size",
    "columns": "attributes", "fields": "attributes", "neighbors": "neighbours",
}  # fmt: skip
"""What other tools call kinds and fields."""

_COMMON = ("missing", "provenance", "because", "description")
_PLAIN_FIELDS: dict[str, Any] = {"dataset": str, "expected_size": int, "neighbours": Neighbours}
_T = TypeVar("_T")


def load(path: str | Path) -> Schema:
    """Read a schema file; an error names the file and the line."""
    text = read_text(path)
    try:
        return parse(text)
    except SchemaError as error:
        raise SchemaError(f"{path}, {error}" if _has_line(error) else f"{path}: {error}", error.path) from None


def read_text(path: str | Path, *, keep_mark: bool = False) -> str:
    """The text of a schema file, without its byte order mark unless that is wanted."""
    try:
        return read_bytes(path).decode("utf-8" if keep_mark else "utf-8-sig")
    except UnicodeDecodeError:
        raise SchemaError(f"{path} is not UTF-8 text, so it is not a schema") from None


def read_bytes(path: str | Path) -> bytes:
    """All that is in a file; what would never end, or fill the memory, is refused before it is read."""
    require_file(path)
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise SchemaError(f"{path} cannot be read: {in_words(error)}") from None
    if len(content) > MOST_BYTES:
        raise SchemaError(f"{path} is larger than {MOST_BYTES // 10**6} MB, so it is no description of a table")
    return content


def require_file(path: str | Path) -> None:
    """Refuse a path that leads to no file; links are followed."""
    if not str(path):
        raise SchemaError("no path was given; give the name of a file")
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise SchemaError(f"{path} cannot be read: {in_words(error)}") from None
    except ValueError:  # a path with a zero byte
        raise SchemaError(f"{str(path)!r} cannot be read: no file has such a name") from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # a folder is refused in the system's own words
        raise SchemaError(f"{path} cannot be read: it is a device or a pipe; give the name of a file")


def parse(text: str) -> Schema:
    """Read a schema from YAML text; an error names the line."""
    document, lines = yamltext.read(text)
    try:
        return _schema(document)
    except _SeveralError as several:
        mistakes = [_with_line(mistake, lines) for mistake in several.mistakes]
    except SchemaError as mistake:
        mistakes = [_with_line(mistake, lines)]
    first = mistakes[0]
    if len(mistakes) == 1:
        raise first from None
    listed = "\n".join(f"  {mistake}" for mistake in mistakes[:MOST_MISTAKES])
    more = f"\n  and {len(mistakes) - MOST_MISTAKES} more" if len(mistakes) > MOST_MISTAKES else ""
    raise SchemaError(f"{len(mistakes)} mistakes\n{listed}{more}", first.path) from None


class _SeveralError(SchemaError):
    """Several entries are wrong, each by itself; a person would rather hear of all at once."""

    def __init__(self, mistakes: list[SchemaError]) -> None:
        super().__init__(str(mistakes[0]))
        self.mistakes = mistakes


def _with_line(error: SchemaError, lines: yamltext.Lines) -> SchemaError:
    line = next((lines[p] for p in _upwards(error.path) if p in lines), None)
    return SchemaError(f"line {line}: {error}" if line else str(error), error.path)


def _each(read: Callable[..., _T], entries: Iterable[tuple[Any, ...]]) -> tuple[_T, ...]:
    """Read all entries, and tell of all that are wrong."""
    found, mistakes = [], []
    for entry in entries:
        try:
            found.append(read(*entry))
        except _SeveralError as several:
            mistakes += several.mistakes
        except SchemaError as mistake:
            mistakes.append(mistake)
    if mistakes:
        raise _SeveralError(mistakes)
    return tuple(found)


def require_format(document: Any) -> None:
    """Refuse data that is not of a schema file, or of one that another DPSyn wrote."""
    if not isinstance(document, dict) or KEY not in document:
        raise SchemaError(f"this is not a DPSyn schema; its first line should be {KEY}: {FORMAT}")
    if type(document[KEY]) is not int or document[KEY] != FORMAT:
        raise SchemaError(f"this schema has format {document[KEY]!r}; this DPSyn reads format {FORMAT}", (KEY,))


def document_of(schema: Schema) -> dict[str, Any]:
    """The plain data of a schema's file."""
    fields = msgspec.to_builtins(schema)
    for entry in fields.get("derive", []):
        entry["mapping"] = {str(value): derived for value, derived in entry["mapping"]}
    for entry in fields.get("rules", []):
        if "where" in entry:
            entry["where"] = dict(entry["where"])
    document: dict[str, Any] = {KEY: FORMAT}
    order = ("dataset", "expected_size", "neighbours", "unit", "attributes", "derive", "recode", "rules")
    for key in (key for key in order if key in fields):
        document[key] = fields[key]
    document["attributes"] = {a.pop("name"): _readable(a) for a in document["attributes"]}
    for key in ("derive", "recode"):
        if key in document:
            document[key] = {entry.pop("name"): entry for entry in document[key]}
    if "recode" in document:
        document["recode"] = {name: entry["attributes"] for name, entry in document["recode"].items()}
    return document


def _readable(entry: dict[str, Any]) -> dict[str, Any]:
    """Fields of the kind first, those that all kinds have last."""
    own = {key: value for key, value in entry.items() if key not in _COMMON}
    return own | {key: entry[key] for key in _COMMON if key in entry}


# ── plain data → values ──────────────────────────────────────────────────────────────────────────────────────


def _schema(document: Any) -> Schema:
    require_format(document)
    for word in RESERVED:
        if word in document:
            raise SchemaError(f"{word}: not supported yet; leave it out", (word,))
    _refuse_unknown(document, [KEY, *Schema.__struct_fields__], ())
    given = {key: value for key, value in document.items() if value is not None}
    plain = {key: _convert(given[key], kind, (key,), f"{key}: ") for key, kind in _PLAIN_FIELDS.items() if key in given}
    rules = _convert(given.get("rules", []), list[Any], ("rules",), "rules: ")
    return Schema(
        attributes=_each(_attribute, _mapping(given, "attributes").items()),
        unit=_convert(given["unit"], Unit, ("unit",), "unit: ") if "unit" in given else None,
        derive=tuple(_derive(*entry) for entry in _mapping(given, "derive").items()),
        recode=tuple(_recode(*entry) for entry in _mapping(given, "recode").items()),
        rules=tuple(_rule(entry, ("rules", index)) for index, entry in enumerate(rules)),
        **plain,
    )


def _mapping(given: dict[str, Any], key: str) -> dict[str, Any]:
    entries = given.get(key, {})
    if not isinstance(entries, dict):
        raise SchemaError(f"{key} is a mapping from names to descriptions", (key,))
    return entries


def _attribute(name: str, entry: Any) -> AnyAttribute:
    path = ("attributes", name)
    fields = _tagged(entry, "kind", KINDS, path, f"attribute {name!r}")
    kind = KINDS[fields["kind"]]
    return _convert(fields, kind, path, f"attribute {name!r}: ", name)  # type: ignore[return-value]


def _derive(name: str, entry: Any) -> Derive:
    path = ("derive", name)
    if not isinstance(entry, dict):
        raise SchemaError(f"derive {name!r} needs from: and mapping:", path)
    fields = _as_pairs(entry, "mapping", "values of the source to values derived from them", path)
    return _convert(fields, Derive, path, f"derive {name!r}: ", name)


def _recode(name: str, entry: Any) -> Recode:
    return _convert({"attributes": entry}, Recode, ("recode", name), f"recode {name!r}: ", name)


def _rule(entry: Any, path: yamltext.Path) -> Any:
    fields = _tagged(entry, "rule", RULES, path, "a rule")
    fields = _as_pairs(fields, "where", "attributes to conditions", path)
    return _convert(fields, RULES[fields["rule"]], path, f"rule {int(path[-1]) + 1}: ")


def _as_pairs(fields: dict[str, Any], key: str, words: str, path: yamltext.Path) -> dict[str, Any]:
    """The fields with one that is a mapping in the file and pairs in the value."""
    entries = fields.get(key)
    if entries is None:
        return fields
    if not isinstance(entries, dict):
        raise SchemaError(f"{key} is a mapping from {words}", (*path, key))
    return {**fields, key: list(entries.items())}


def _tagged(entry: Any, tag: str, known: dict[str, Any], path: yamltext.Path, what: str) -> dict[str, Any]:
    """The fields of an entry whose ``tag`` names one of the known types."""
    if not isinstance(entry, dict) or tag not in entry:
        raise SchemaError(f"{what} needs {tag}: one of {', '.join(known)}", path)
    if not isinstance(entry[tag], str) or entry[tag] not in known:
        hint = _did_you_mean(str(entry[tag]), known)
        raise SchemaError(f"{what}: there is no {tag} {entry[tag]!r}; use {', '.join(known)}{hint}", (*path, tag))
    return entry


def _convert(data: Any, kind: type[_T], path: yamltext.Path, what: str = "", name: str | None = None) -> _T:
    """A typed value, named if its key is a name; errors are turned into SchemaErrors that know their path."""
    if isinstance(data, dict) and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        _refuse_unknown(data, _file_fields(kind), path, what)
        empty = [key for key, value in data.items() if value is None]
        if empty:
            raise _SeveralError(
                [SchemaError(f"{what}{key} is empty; fill it in{_meaning(kind, key)}", (*path, key)) for key in empty]
            )
    try:
        return msgspec.convert(data if name is None else {**data, "name": name}, kind)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, SchemaError):
            raise SchemaError(f"{what}{error.__cause__}", (*path, *error.__cause__.path)) from None
        message, _, place = str(error).partition(" - at `$")
        inner = tuple(part for part in re.split(r"[.\[\]`]+", place) if part)
        field = f"{inner[0]}: " if inner else ""
        words = _plainly(message, _choices(kind, inner), _given(data, _as_path(inner)))
        raise SchemaError(f"{what}{field}{words}", (*path, *_as_path(inner))) from None


def _given(data: Any, inner: yamltext.Path) -> Any:
    """What stands at a place of the data."""
    for step in inner:
        if isinstance(data, dict) or (isinstance(data, list) and isinstance(step, int)):
            data = data[step]  # type: ignore[index]
    return data


def _choices(kind: Any, inner: tuple[str, ...]) -> tuple[str, ...]:
    """The words a field can have, where it is one of a few."""
    return get_args(get_type_hints(kind).get(inner[0]) if inner else kind)


_IN_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "object": "a mapping",
    "array": "a list",
}


def _plainly(message: str, choices: tuple[str, ...], given: Any) -> str:
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
    return f"{_shown(given)} is not {words}{_advice(given, kinds)}"


def _shown(given: Any) -> str:
    return _IN_WORDS["object"] if isinstance(given, dict) else "a list" if isinstance(given, list) else repr(given)


def _advice(given: Any, kinds: list[str]) -> str:
    """What to write instead, where it can be guessed."""
    if "str" in kinds and isinstance(given, int | float):
        return "; put it in quotes"
    bare = re.sub(r"[ _,'\u00a0\u202f]", "", given) if isinstance(given, str) else ""
    return f"; write {bare}" if {"int", "float"} & set(kinds) and re.fullmatch(r"[-+]?[0-9]+(\.[0-9]+)?", bare) else ""


def _as_path(inner: tuple[str, ...]) -> yamltext.Path:
    return tuple(int(part) if part.isdecimal() else part for part in inner)


def _meaning(kind: type[msgspec.Struct], key: str) -> str:
    meaning = field_meanings(kind).get(key)
    return f": {in_short(meaning)}" if meaning else ""


def _file_fields(kind: type[msgspec.Struct]) -> list[str]:
    """The keys an entry of a file may have."""
    tag = [str(kind.__struct_config__.tag_field)] if kind.__struct_config__.tag_field else []
    return [*tag, *(name for name in kind.__struct_encode_fields__ if name != "name")]


def _refuse_unknown(data: dict[str, Any], known: list[str], path: yamltext.Path, what: str = "") -> None:
    for key in data:
        if key not in known:
            hint = _did_you_mean(key, known) or f"; there are {', '.join(known)}"
            raise SchemaError(f"{what}there is no field {key!r}{hint}", (*path, key))


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    other = OTHER_WORDS.get(word.lower(), "")
    close = [other] if other in known else difflib.get_close_matches(word.lower(), known, 1)
    return f"; did you mean {close[0]}?" if close else ""


def _upwards(path: yamltext.Path) -> list[yamltext.Path]:
    """The path and those above it, nearest first, the root left out."""
    return [path[:length] for length in range(len(path), 0, -1)]


def _has_line(error: SchemaError) -> bool:
    return str(error).startswith("line ")
