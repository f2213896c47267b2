"""Schemas from metadata that people already have: domain files, SDV metadata, Frictionless table schemas.

What a source cannot say is left empty in the text, with a comment that asks for it. So an import never guesses,
and a file that still needs a person does not load.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpsyn.errors import SchemaError
from dpsyn.schema import yamltext
from dpsyn.schema.files import FORMAT, KEY, read_bytes
from dpsyn.schema.imports import domain, frictionless, sdv
from dpsyn.schema.imports.entries import Entry

__all__ = ["import_schema"]

_SOURCES = (sdv, frictionless, domain)  # a domain file has no mark of its own, so it is tried last
_EXPECTED_SIZE = "a public guess of the number of rows; leave it empty if there is none"


def import_schema(path: str | Path) -> str:
    """The commented YAML text of a schema, from metadata that is recognised by its content."""
    data = _read(path)
    for source in _SOURCES:
        if isinstance(data, dict) and source.recognises(data):
            try:
                return _text(
                    source.entries(data), _printable(Path(path).name), f"{source.NAME}.\n{source.HINT}".strip()
                )
            except SchemaError as error:
                raise SchemaError(f"{path}: {error}") from None
    raise _not_understood(path, f"it is {_shape(data)}")


def _read(path: str | Path) -> Any:
    content = read_bytes(path)
    try:
        data = json.loads(content, object_pairs_hook=_unrepeated)
        json.dumps(data, ensure_ascii=False).encode()  # half a character is JSON, but no text
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from None
    except (ValueError, RecursionError):
        raise _not_understood(path, "it is not JSON") from None
    return data


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise SchemaError(f"{repeated!r} stands twice; remove one of the two")
    return found


def _not_understood(path: str | Path, found: str) -> SchemaError:
    kinds = " or ".join(f"{source.NAME} {source.SHAPE}" for source in _SOURCES)
    return SchemaError(f"{path} cannot be imported: {found}. Give {kinds}")


def _shape(data: Any) -> str:
    """What was found, without a word of it: the file might hold rows."""
    if isinstance(data, dict):
        return "a JSON mapping of another shape" if data else "an empty JSON mapping"
    return "a JSON list" if isinstance(data, list) else "a single JSON value"


def _printable(name: str) -> str:
    return yamltext.scalar(name.encode(errors="replace").decode())


def _text(entries: Mapping[str, Entry], name: str, about: str) -> str:
    attributes = {attribute: entry.fields_with(f"{name} declares it") for attribute, entry in entries.items()}
    notes: dict[yamltext.Path, str] = {
        ("attributes", attribute, field): note
        for attribute, entry in entries.items()
        for field, note in entry.notes.items()
    }
    header = _header(name, about, unfinished=any(entry.unfinished for entry in entries.values()))
    document = {KEY: FORMAT, "expected_size": None, "attributes": attributes}
    return yamltext.write(document, {(): header, ("expected_size",): _EXPECTED_SIZE} | notes)


def _header(name: str, about: str, *, unfinished: bool) -> str:
    todo = "Fill in the empty fields from public knowledge, never from the data.\n" if unfinished else ""
    return f"Imported from {name}, {about}\n{todo}Next: dpsyn schema check schema.yaml"
