"""JSON Schema of schema files, for editors: completion, explanations and immediate checks.

It is generated from the types and their docstrings, so it always agrees with them. Where a file differs from the
values (see ``files``), it follows the file: names are keys, and pairs are mappings. It checks structure only; DPSyn
itself checks, for example, that ``low`` is below ``high``. Regenerate it with ``python -m dpsyn.schema.json_schema``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from dpsyn.atomic_files import write_text
from dpsyn.schema.file_syntax import FileSyntax
from dpsyn.schema.files import ATTRIBUTE_KINDS, RULE_KINDS, SCHEMA_FORMAT, SCHEMA_KEY
from dpsyn.schema.relations import Derive, UnitDeclaration
from dpsyn.schema.schema import Schema
from dpsyn.schema.yaml_documents import field_docs, summary

Json = dict[str, Any]

JSON_SCHEMA_PATH = Path(__file__).with_name("schema.json")
"""The path of the generated file in the package."""

_NULL: Json = {"type": "null"}
_PAIRS = ("mapping", "where")


def build_json_schema() -> Json:
    """JSON Schema (draft 2020-12) of the plain data of a schema file."""
    structs: list[type[msgspec.Struct]] = [
        Schema,
        UnitDeclaration,
        FileSyntax,
        Derive,
        *ATTRIBUTE_KINDS.values(),
        *RULE_KINDS.values(),
    ]
    _, components = msgspec.json.schema_components([Schema], ref_template="#/$defs/{name}")
    entries = {struct.__name__: _entry(struct, components[struct.__name__]) for struct in structs}
    top = entries.pop("Schema")
    version = {"const": SCHEMA_FORMAT, "description": "the version of the file format"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "DPSyn schema",
        **top,
        "properties": {SCHEMA_KEY: version, **_top_fields(top["properties"])},
        "required": [SCHEMA_KEY, *top["required"]],
        "$defs": {"Attribute": _one_of("kind", ATTRIBUTE_KINDS), "Rule": _one_of("rule", RULE_KINDS), **entries},
    }


def format_json_schema() -> str:
    """The text of the generated file."""
    return json.dumps(build_json_schema(), indent=2, ensure_ascii=False) + "\n"


def _top_fields(fields: Json) -> Json:
    """The fields of the whole file; all except ``attributes`` may be left empty."""
    shapes: Json = {
        "attributes": {**_by_name({"$ref": "#/$defs/Attribute"}), "minProperties": 1},
        "derive": _by_name({"$ref": "#/$defs/Derive"}),
        "measure_together": _by_name({"type": "array", "items": {"type": "string"}}),
        "rules": {"type": "array", "items": {"$ref": "#/$defs/Rule"}},
    }
    described = {key: {**(shapes.get(key) or field), **_description(field)} for key, field in fields.items()}
    return {key: field if key == "attributes" else _or_empty(field) for key, field in described.items()}


def _by_name(entry: Json) -> Json:
    return {"type": "object", "additionalProperties": entry}


def _description(field: Json) -> Json:
    return {"description": field["description"]} if "description" in field else {}


def _or_empty(field: Json) -> Json:
    shape = {key: value for key, value in field.items() if key != "description"}
    return _description(field) | {"anyOf": [shape, _NULL]}


def _one_of(tag: str, known: dict[str, Any]) -> Json:
    """An entry whose tag selects its type. Each type is a separate case, so an editor can name the mistake."""
    cases = [
        {
            "if": {"properties": {tag: {"const": name}}, "required": [tag]},
            "then": {"$ref": f"#/$defs/{struct.__name__}"},
        }
        for name, struct in known.items()
    ]
    return {"type": "object", "properties": {tag: {"enum": list(known)}}, "required": [tag], "allOf": cases}


def _entry(struct: type[msgspec.Struct], component: Json) -> Json:
    """A type as an entry of a file: without its name, which is the key."""
    descriptions = {key: {"description": description} for key, description in field_docs(struct).items()}
    fields = {key: _field(key, field) for key, field in component["properties"].items() if key != "name"}
    return {
        "description": summary(struct),
        "type": "object",
        "properties": {key: {**descriptions.get(key, {}), **field} for key, field in fields.items()},
        "required": [key for key in component["required"] if key != "name"],
        "additionalProperties": False,
    }


def _field(key: str, field: Json) -> Json:
    """A field; pairs are written as a mapping in files."""
    compact = _compact(field)
    if key not in _PAIRS:
        return compact
    return {"type": "object", "additionalProperties": compact["items"]["prefixItems"][1]}


def _compact(field: Json) -> Json:
    """A shorter form of the same, without null: an empty field must be filled in or left out."""
    field = {name: value for name, value in field.items() if (name, value) != ("default", None)}
    if isinstance(field.get("items"), dict):
        field["items"] = _compact(field["items"])
    if "prefixItems" in field:
        field["prefixItems"] = [_compact(item) for item in field["prefixItems"]]
    options = [_compact(option) for option in field.pop("anyOf", []) if option != _NULL]
    return field | (_choice(options) if options else {})


def _choice(options: list[Json]) -> Json:
    """A choice between several; plain types are listed together, and number includes integer."""
    plain = [option["type"] for option in options if option.keys() == {"type"}]
    types = [name for name in plain if name != "integer" or "number" not in plain]
    listed = [{"type": types if len(types) > 1 else types[0]}] if types else []
    choices = listed + [option for option in options if option.keys() != {"type"}]
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


if __name__ == "__main__":
    write_text(JSON_SCHEMA_PATH, format_json_schema())
