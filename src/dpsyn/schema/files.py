"""Schema files: YAML ⇄ Schema.

The file's shape is the Schema's, with names as keys: ``attributes``, ``derive`` and ``recode`` are mappings, a
``where`` is a mapping of conditions. This module is the only place that knows the difference.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, get_args

import msgspec

from dpsyn.errors import SchemaError, in_words
from dpsyn.schema import documents, yamltext
from dpsyn.schema.attributes import Attribute
from dpsyn.schema.documents import convert, each, refuse_unknown, tagged
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

_COMMON = ("missing", "provenance", "because", "description")
_PLAIN_FIELDS: dict[str, Any] = {"dataset": str, "expected_size": int, "neighbours": Neighbours}


def load(path: str | Path) -> Schema:
    """Read a schema file; an error names the file and the line."""
    return documents.loaded(path, read_text(path), parse)


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
    return documents.parsed(text, _schema)


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
    refuse_unknown(document, [KEY, *Schema.__struct_fields__], ())
    given = {key: value for key, value in document.items() if value is not None}
    plain = {key: convert(given[key], kind, (key,), f"{key}: ") for key, kind in _PLAIN_FIELDS.items() if key in given}
    rules = convert(given.get("rules", []), list[Any], ("rules",), "rules: ")
    return Schema(
        attributes=each(_attribute, _mapping(given, "attributes").items()),
        unit=convert(given["unit"], Unit, ("unit",), "unit: ") if "unit" in given else None,
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
    fields = tagged(entry, "kind", KINDS, path, f"attribute {name!r}")
    kind = KINDS[fields["kind"]]
    return convert(fields, kind, path, f"attribute {name!r}: ", name)  # type: ignore[return-value]


def _derive(name: str, entry: Any) -> Derive:
    path = ("derive", name)
    if not isinstance(entry, dict):
        raise SchemaError(f"derive {name!r} needs from: and mapping:", path)
    fields = _as_pairs(entry, "mapping", "values of the source to values derived from them", path)
    return convert(fields, Derive, path, f"derive {name!r}: ", name)


def _recode(name: str, entry: Any) -> Recode:
    return convert({"attributes": entry}, Recode, ("recode", name), f"recode {name!r}: ", name)


def _rule(entry: Any, path: yamltext.Path) -> Any:
    fields = tagged(entry, "rule", RULES, path, "a rule")
    fields = _as_pairs(fields, "where", "attributes to conditions", path)
    return convert(fields, RULES[fields["rule"]], path, f"rule {int(path[-1]) + 1}: ")


def _as_pairs(fields: dict[str, Any], key: str, words: str, path: yamltext.Path) -> dict[str, Any]:
    """The fields with one that is a mapping in the file and pairs in the value."""
    entries = fields.get(key)
    if entries is None:
        return fields
    if not isinstance(entries, dict):
        raise SchemaError(f"{key} is a mapping from {words}", (*path, key))
    return {**fields, key: list(entries.items())}
