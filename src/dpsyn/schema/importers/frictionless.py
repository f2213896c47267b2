"""Importer of Frictionless table schemas, alone or in a data package."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dpsyn.errors import SchemaError, quote_argument
from dpsyn.schema.attributes import Value, canonical_text
from dpsyn.schema.clock import parse_clock
from dpsyn.schema.importers.imported_attribute import (
    OPEN_NOTE,
    ImportedAttribute,
    describe_attribute,
    describe_dates,
    describe_times,
    distinct_values,
)
from dpsyn.schema.ranges import parse_instant

NAME = "a Frictionless table schema or data package"
SHAPE = '{"fields": [...]}'
HINT = ""

FieldDescriptor = dict[str, Any]

_DATE_PATTERNS = {"date": "%Y-%m-%d", "datetime": "%Y-%m-%dT%H:%M:%S", "yearmonth": "%Y-%m"}


def recognizes(data: dict[str, Any]) -> bool:
    """Whether a JSON mapping looks like a table schema or a data package."""
    return isinstance(data.get("fields"), list) or isinstance(data.get("resources"), list)


def import_attributes(data: dict[str, Any]) -> dict[str, ImportedAttribute]:
    """One attribute for every field."""
    schema = _table_schema(data)
    key = schema.get("primaryKey")
    key = key[0] if isinstance(key, list) and len(key) == 1 else key
    attributes: dict[str, ImportedAttribute] = {}
    for number, field in enumerate(schema["fields"], start=1):
        name = _name(field, number)
        if name in attributes:
            raise SchemaError(f"the field {name!r} is described twice; remove one of the two")
        attributes[name] = _import_attribute(field, schema, is_key=name == key)
    if not attributes:
        raise SchemaError("this table schema has no fields; add them there first")
    return attributes


def _table_schema(data: dict[str, Any]) -> dict[str, Any]:
    if isinstance(data.get("fields"), list):
        return data
    tables = [resource for resource in data["resources"] if isinstance(resource, dict) and resource.get("schema")]
    if len(tables) != 1:
        names = ", ".join(str(table.get("name", "without a name")) for table in tables)
        count = f"{len(tables)} tables ({names})" if tables else "no table"
        raise SchemaError(f"this data package describes {count}; keep one resource with a schema: and import again")
    schema = tables[0]["schema"]
    if isinstance(schema, str):
        raise SchemaError(f"the schema of this data package is in another file; import {schema} instead")
    if not isinstance(schema, dict) or not isinstance(schema.get("fields"), list):
        raise SchemaError("the schema of this data package has no list of fields; add them there first")
    return schema


def _name(field: object, number: int) -> str:
    if not isinstance(field, dict) or not isinstance(field.get("name"), str) or not field["name"]:
        raise SchemaError(f'field {number} has no name; write it as {{"name": "age", "type": "integer"}}')
    return str(field["name"])


def _import_attribute(field: FieldDescriptor, schema: dict[str, Any], *, is_key: bool) -> ImportedAttribute:
    constraints = _constraints(field)
    description = _text(field.get("description")) or _text(field.get("title"))
    if is_key or constraints.get("unique") is True:
        return replace(
            describe_attribute("identifier", "a key, so it is left out of synthetic tables"), description=description
        )
    spellings = _spellings(field, schema)
    missing = () if constraints.get("required") is True else spellings
    return replace(
        _import_domain(field, constraints, spellings).with_field("missing", missing), description=description
    )


def _constraints(field: FieldDescriptor) -> dict[str, Any]:
    constraints = field.get("constraints") or {}
    if not isinstance(constraints, dict):
        raise SchemaError(f"field {field['name']!r}: constraints must be a mapping, not {quote_argument(constraints)}")
    return constraints


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _spellings(field: FieldDescriptor, schema: dict[str, Any]) -> bool | tuple[Value, ...]:
    """The spellings of missing; True, for the default spellings of DPSyn, if neither field nor schema declares any."""
    given = field.get("missingValues", schema.get("missingValues"))
    return True if given is None else tuple(canonical_text(value) for value in _code_values(given))


def _code_values(values: object) -> tuple[Value, ...]:
    """Plain values, or the values of entries such as ``{"value": 1, "label": "one"}``."""
    if isinstance(values, list) and all(isinstance(value, dict) for value in values):
        return distinct_values([value.get("value") for value in values])
    return distinct_values(values)


def _import_domain(
    field: FieldDescriptor, constraints: dict[str, Any], spellings: bool | tuple[Value, ...]
) -> ImportedAttribute:
    values = _code_values(constraints.get("enum")) or _code_values(field.get("categories"))
    empty = set(spellings) if isinstance(spellings, tuple) else set()
    if spellings and constraints.get("required") is not True:
        empty.add("")  # in a text file it looks like an empty cell
    values = tuple(value for value in values if canonical_text(value) not in empty)
    kind = field.get("type", "string")
    if values and kind != "boolean":
        ordered = field.get("categoriesOrdered") is True or field.get("ordered") is True
        return describe_attribute("ordinal" if ordered else "categorical", values=values)
    return _import_by_type(field, kind)


def _import_by_type(field: FieldDescriptor, kind: object) -> ImportedAttribute:
    match kind:
        case "integer" | "year":
            return describe_attribute(
                "integer", low=_parse_bound(field, "minimum", _whole), high=_parse_bound(field, "maximum", _whole)
            )
        case "number":
            return describe_attribute(
                "real", low=_parse_bound(field, "minimum", _number), high=_parse_bound(field, "maximum", _number)
            )
        case "boolean":
            return describe_attribute("boolean")
        case "date" | "datetime" | "yearmonth":
            return _dates(field, str(kind))
        case "time":
            return _times(field)
        case _:
            return describe_attribute("open", OPEN_NOTE)


def _whole(value: Value) -> int:
    return int(canonical_text(value))


def _number(value: Value) -> float:
    number = float(canonical_text(value))
    return int(number) if number.is_integer() else number


def _dates(field: FieldDescriptor, kind: str) -> ImportedAttribute:
    given = _text(field.get("format")).removeprefix("fmt:")
    usual = _DATE_PATTERNS[kind]
    pattern = None if given == "any" else given if "%" in given else usual

    def instant(value: Value) -> str:
        text = str(value)
        if parse_instant(text):
            return text
        return dt.datetime.strptime(text, pattern or usual).isoformat()[: 10 if kind != "datetime" else None]

    return describe_dates(pattern, _parse_bound(field, "minimum", instant), _parse_bound(field, "maximum", instant))


def _times(field: FieldDescriptor) -> ImportedAttribute:
    given = _text(field.get("format")).removeprefix("fmt:")

    def clock(value: Value) -> str:
        if parse_clock(str(value)) is None:
            raise ValueError
        return str(value)

    bounds = _parse_bound(field, "minimum", clock), _parse_bound(field, "maximum", clock)
    return describe_times(given if "%" in given else "%H:%M:%S", *bounds)


def _parse_bound(field: FieldDescriptor, which: str, convert: Callable[[Any], Any]) -> Any:
    """A bound that the file declares; None if there is none, or if it is infinite."""
    value = _constraints(field).get(which)
    try:
        return None if value is None or _is_infinite(value) else convert(value)
    except (ValueError, TypeError, OverflowError):
        name, kind = field["name"], field.get("type")
        raise SchemaError(
            f"field {name!r}: {which} is {quote_argument(value)}, which is not of type {kind}; correct it"
        ) from None


def _is_infinite(value: object) -> bool:
    try:
        return not math.isfinite(float(value))  # type: ignore[arg-type]
    except (ValueError, TypeError, OverflowError):
        return False
