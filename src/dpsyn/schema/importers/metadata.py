"""Schemas from existing metadata: domain files, SDV metadata, Frictionless table schemas.

Fields that a source does not declare are left empty, with a comment that asks for them. So an import never guesses,
and a schema that is not complete does not load.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpsyn.errors import SchemaError, quote_argument
from dpsyn.schema import yaml_io
from dpsyn.schema.files import SCHEMA_FORMAT, SCHEMA_KEY, read_bytes
from dpsyn.schema.importers import domain, frictionless, sdv
from dpsyn.schema.importers.imported_attribute import ImportedAttribute

__all__ = ["import_schema"]

_SOURCES = (sdv, frictionless, domain)  # a domain file has no key of its own, so it is tried last
_EXPECTED_SIZE = "a public estimate of the number of rows; leave it empty if there is none"


def import_schema(path: str | Path) -> str:
    """Import metadata, whose format is recognized by its content, as the YAML text of a schema with comments."""
    data = _read_json(path)
    for source in _SOURCES:
        if isinstance(data, dict) and source.recognizes(data):
            try:
                return _schema_text(
                    source.import_attributes(data),
                    _printable(Path(path).name),
                    f"{source.NAME}.\n{source.HINT}".strip(),
                )
            except SchemaError as error:
                raise SchemaError(f"{path}: {error}") from None
    raise _not_understood(path, f"it is {_describe_shape(data)}")


def _read_json(path: str | Path) -> Any:
    content = read_bytes(path)
    try:
        data = json.loads(content, object_pairs_hook=_refuse_repeated_keys)
        json.dumps(data, ensure_ascii=False).encode()  # an unpaired surrogate is valid JSON, but not valid text
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from None
    except (ValueError, RecursionError):
        raise _not_understood(path, "it is not JSON") from None
    return data


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        repeated, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise SchemaError(f"{quote_argument(repeated)} occurs twice; remove one of the two")
    return mapping


def _not_understood(path: str | Path, reason: str) -> SchemaError:
    kinds = " or ".join(f"{source.NAME} {source.SHAPE}" for source in _SOURCES)
    return SchemaError(f"{path} cannot be imported: {reason}. Give {kinds}")


def _describe_shape(data: Any) -> str:
    """A description of the file without any of its content, because it might hold rows."""
    if isinstance(data, dict):
        return "a JSON mapping of another structure" if data else "an empty JSON mapping"
    return "a JSON list" if isinstance(data, list) else "a single JSON value"


def _printable(name: str) -> str:
    return yaml_io.format_scalar(name.encode(errors="replace").decode())


def _schema_text(entries: Mapping[str, ImportedAttribute], name: str, about: str) -> str:
    attributes = {attribute: entry.entry(f"{name} declares it") for attribute, entry in entries.items()}
    notes: dict[yaml_io.YamlPath, str] = {
        ("attributes", attribute, field): note
        for attribute, entry in entries.items()
        for field, note in entry.notes.items()
    }
    header = _header(name, about, unfinished=any(entry.is_incomplete for entry in entries.values()))
    document = {SCHEMA_KEY: SCHEMA_FORMAT, "expected_size": None, "attributes": attributes}
    return yaml_io.write_yaml(document, {(): header, ("expected_size",): _EXPECTED_SIZE} | notes)


def _header(name: str, about: str, *, unfinished: bool) -> str:
    todo = "Fill in the empty fields from public knowledge, never from the data.\n" if unfinished else ""
    return (
        f"Imported from {name}, {about}\n{todo}"
        "Such metadata is often made from the data, so its values and bounds are  provenance: data\n"
        f"If {name} is public, or was written from a public source:\n"
        'dpsyn schema approve schema.yaml --all --because "the published code book"'
    )
