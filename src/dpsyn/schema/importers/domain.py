"""Importer of domain files, the format of private-pgm: the number of codes of every attribute."""

from __future__ import annotations

from typing import Any

from dpsyn.errors import SchemaError, quote_argument
from dpsyn.schema.attributes import MAX_LISTED_VALUES
from dpsyn.schema.importers.imported_attribute import ImportedAttribute, describe_attribute

NAME = "a domain file"
SHAPE = '{"age": 100, "sex": 2}'
HINT = "The table holds the codes 0, 1, 2, ... of every attribute; everything else counts as 0."


def recognizes(data: dict[str, Any]) -> bool:
    """Whether a JSON mapping looks like a domain file."""
    return any(isinstance(size, int | float) for size in data.values())


def import_attributes(data: dict[str, Any]) -> dict[str, ImportedAttribute]:
    """One categorical attribute for every size."""
    return {name: _import_attribute(name, size) for name, size in data.items()}


def _import_attribute(name: str, size: object) -> ImportedAttribute:
    if not name:
        raise SchemaError("an attribute has an empty name; give it the name of its column")
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MAX_LISTED_VALUES:
        raise SchemaError(
            f"in a domain file the size of {name!r} is a whole number, 1 … {MAX_LISTED_VALUES:,}, not "
            f"{quote_argument(size)}"
        )
    return describe_attribute("categorical", codes=size, other=0)
