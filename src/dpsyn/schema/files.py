"""Schema files: YAML ⇄ Schema.

A file has the same structure as a Schema, except that names are keys: ``attributes``, ``derive`` and
``measure_together`` are mappings, and a ``where`` is a mapping of conditions. Only this module depends on the
difference.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any, get_args

import msgspec

from dpsyn.errors import DocumentError, SchemaError, describe_os_error, quote_argument
from dpsyn.schema import yaml_documents, yaml_io
from dpsyn.schema.attributes import Attribute
from dpsyn.schema.file_syntax import FileSyntax
from dpsyn.schema.relations import AnyRule, Derive, JointAttribute, NeighboringRelation, Rule, UnitDeclaration
from dpsyn.schema.schema import AnyAttribute, Schema
from dpsyn.schema.yaml_documents import convert, read_each, refuse_unknown_fields, require_tag
from dpsyn.suggestions import suggest_file

SCHEMA_FORMAT = 1
"""The version of the file format."""

SCHEMA_KEY = "dpsyn_schema"
"""The first key of a schema file; its value is the format."""

RESERVED_KEYS = ("weight", "household")
"""Keys that are reserved for later versions."""

ATTRIBUTE_KINDS: dict[str, type[Attribute]] = {str(k.__struct_config__.tag): k for k in get_args(AnyAttribute)}
RULE_KINDS: dict[str, type[Rule]] = {str(r.__struct_config__.tag): r for r in get_args(AnyRule)}

MAX_SCHEMA_BYTES = 100_000_000
"""Size of a schema or of other metadata; a list of a million values needs a tenth of that."""

FILE_PATH: yaml_io.YamlPath = ("file",)
"""The path of the section on how files are written, which is an entry by itself."""

_COMMON = ("missing", "provenance", "because", "description", "remark", "drafted")
_PLAIN_FIELDS: dict[str, Any] = {
    "dataset": str,
    "expected_size": int,
    "neighbors": NeighboringRelation,
    "groups": tuple[str, ...],
}


def load_schema(path: str | Path) -> Schema:
    """Read a schema file; an error names the file and the line."""
    return yaml_documents.load_document(path, read_text(path), parse_schema)


def read_text(path: str | Path, *, keep_mark: bool = False, error: type[DocumentError] = SchemaError) -> str:
    """The text of a schema or plan file, without its byte order mark unless ``keep_mark``."""
    try:
        return read_bytes(path, error).decode("utf-8" if keep_mark else "utf-8-sig")
    except UnicodeDecodeError:
        raise error(f"{path} is not UTF-8 text; check that it is the right file, and save it as UTF-8") from None


def read_bytes(path: str | Path, error: type[DocumentError] = SchemaError) -> bytes:
    """The content of a file. Devices, pipes and very large files are refused before they are read."""
    require_file(path, error)
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_SCHEMA_BYTES + 1)
    except OSError as failure:
        raise error(f"{path} cannot be read: {describe_os_error(failure)}") from None
    if len(content) > MAX_SCHEMA_BYTES:
        raise error(f"{path} is larger than {MAX_SCHEMA_BYTES // 10**6} MB, so it does not describe a table")
    return content


def require_file(path: str | Path, error: type[DocumentError] = SchemaError) -> None:
    """Refuse a path that does not lead to a file; links are followed."""
    if not str(path):
        raise error("no path was given; give the name of a file")
    try:
        mode = os.stat(path).st_mode
    except OSError as failure:
        if re.search(r"[\r\n]", str(path)):  # it is not quoted, because the text of a draft is private
            message = "the text of a file was given where its path is expected; read it with Schema.from_yaml(text)"
            raise error(message) from None
        raise error(f"{path} cannot be read: {describe_os_error(failure)}{suggest_file(path)}") from None
    except ValueError:  # a path with a zero byte
        raise error(f"{quote_argument(str(path))} cannot be read: no file has such a name") from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # reading a folder fails with the system's own message
        raise error(f"{path} cannot be read: it is a device or a pipe; give the name of a file")


def parse_schema(text: str) -> Schema:
    """Read a schema from YAML text; an error names the line."""
    return yaml_documents.parse_document(text, _build_schema)


def require_format(document: Any) -> None:
    """Refuse a document that is not a schema, or has the format of another version of DPSyn."""
    if not isinstance(document, dict) or SCHEMA_KEY not in document:
        raise SchemaError(f"this is not a DPSyn schema; its first line should be {SCHEMA_KEY}: {SCHEMA_FORMAT}")
    if type(document[SCHEMA_KEY]) is not int or document[SCHEMA_KEY] != SCHEMA_FORMAT:
        raise SchemaError(
            f"this schema has format {quote_argument(document[SCHEMA_KEY])}; this version of DPSyn "
            f"reads format {SCHEMA_FORMAT}",
            (SCHEMA_KEY,),
        )


def to_document(schema: Schema) -> dict[str, Any]:
    """The plain data of the file of a schema."""
    fields = msgspec.to_builtins(schema)
    for entry in fields.get("derive", []):
        entry["mapping"] = {str(value): derived for value, derived in entry["mapping"]}
    for entry in fields.get("rules", []):
        if "where" in entry:
            entry["where"] = dict(entry["where"])
    document: dict[str, Any] = {SCHEMA_KEY: SCHEMA_FORMAT}
    order = (
        "dataset",
        "expected_size",
        "neighbors",
        "privacy_unit",
        "file",
        "attributes",
        "derive",
        "measure_together",
        "rules",
        "groups",
    )
    for key in (key for key in order if key in fields):
        document[key] = fields[key]
    document["attributes"] = {a.pop("name"): _common_fields_last(a) for a in document["attributes"]}
    for key in ("derive", "measure_together"):
        if key in document:
            document[key] = {entry.pop("name"): entry for entry in document[key]}
    if "measure_together" in document:
        joint = document["measure_together"]
        document["measure_together"] = {name: entry["attributes"] for name, entry in joint.items()}
    return document


def _common_fields_last(entry: dict[str, Any]) -> dict[str, Any]:
    """The fields of the kind first, the fields that all kinds have last."""
    specific = {key: value for key, value in entry.items() if key not in _COMMON}
    return specific | {key: entry[key] for key in _COMMON if key in entry}


# ── plain data → values ──────────────────────────────────────────────────────────────────────────────────────


def _build_schema(document: Any) -> Schema:
    require_format(document)
    for key in RESERVED_KEYS:
        if key in document:
            raise SchemaError(f"{key}: not supported yet; remove it", (key,))
    refuse_unknown_fields(document, [SCHEMA_KEY, *Schema.__struct_fields__], ())
    given = {key: value for key, value in document.items() if value is not None}
    plain = {key: convert(given[key], kind, (key,), f"{key}: ") for key, kind in _PLAIN_FIELDS.items() if key in given}
    rules = convert(given.get("rules", []), list[Any], ("rules",), "rules: ")
    return Schema(
        attributes=read_each(_attribute, _mapping(given, "attributes").items()),
        privacy_unit=(
            convert(given["privacy_unit"], UnitDeclaration, ("privacy_unit",), "privacy_unit: ")
            if "privacy_unit" in given
            else None
        ),
        derive=tuple(_derive(*entry) for entry in _mapping(given, "derive").items()),
        measure_together=tuple(_joint_attribute(*entry) for entry in _mapping(given, "measure_together").items()),
        rules=tuple(_rule(entry, ("rules", index)) for index, entry in enumerate(rules)),
        file=_file(given["file"]) if "file" in given else None,
        **plain,
    )


def _mapping(given: dict[str, Any], key: str) -> dict[str, Any]:
    entries = given.get(key, {})
    if not isinstance(entries, dict):
        raise SchemaError(f"{key} must be a mapping from names to descriptions", (key,))
    return entries


def _attribute(name: str, entry: Any) -> AnyAttribute:
    path = ("attributes", name)
    fields = require_tag(entry, "kind", ATTRIBUTE_KINDS, path, f"attribute {name!r}")
    kind = ATTRIBUTE_KINDS[fields["kind"]]
    return convert(fields, kind, path, f"attribute {name!r}: ", name)  # type: ignore[return-value]


def check_entry(path: yaml_io.YamlPath, document: Any) -> None:
    """Refuse one entry of a document that is not valid by itself."""
    if path == FILE_PATH:
        _file(document["file"])
        return
    section, key = path
    entry = document[section][key]
    if section == "attributes":
        _attribute(str(key), entry)
    elif section == "derive":
        _derive(str(key), entry)
    else:
        _rule(entry, path)


def _file(entry: Any) -> FileSyntax:
    return convert(entry, FileSyntax, FILE_PATH, "file: ")


def _derive(name: str, entry: Any) -> Derive:
    path = ("derive", name)
    if not isinstance(entry, dict):
        raise SchemaError(f"derive {name!r} needs from: and mapping:", path)
    fields = _as_pairs(entry, "mapping", "values of the source to derived values", path)
    return convert(fields, Derive, path, f"derive {name!r}: ", name)


def _joint_attribute(name: str, entry: Any) -> JointAttribute:
    return convert(
        {"attributes": entry}, JointAttribute, ("measure_together", name), f"measure_together {name!r}: ", name
    )


def _rule(entry: Any, path: yaml_io.YamlPath) -> Any:
    fields = require_tag(entry, "rule", RULE_KINDS, path, "a rule")
    fields = _as_pairs(fields, "where", "attributes to conditions", path)
    return convert(fields, RULE_KINDS[fields["rule"]], path, f"rule {int(path[-1]) + 1}: ")


def _as_pairs(fields: dict[str, Any], key: str, content: str, path: yaml_io.YamlPath) -> dict[str, Any]:
    """The fields, one of which is a mapping in the file and becomes a list of pairs."""
    entries = fields.get(key)
    if entries is None:
        return fields
    if not isinstance(entries, dict):
        raise SchemaError(f"{key} must be a mapping from {content}", (*path, key))
    return {**fields, key: list(entries.items())}
