"""Importer of SDV metadata of one table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dpsyn.errors import SchemaError
from dpsyn.schema.importers.imported_attribute import (
    OPEN_NOTE,
    ImportedAttribute,
    describe_attribute,
    describe_dates,
    distinct_values,
)

NAME = "SDV metadata of one table"
SHAPE = '{"columns": {...}}'
HINT = "It does not declare which columns have empty cells: add missing: true to those that do."

PERSONAL_TYPES = frozenset(
    {
        *("name", "first_name", "last_name", "user_name", "username", "email", "company_email", "phone_number"),
        *("address", "street_address", "secondary_address", "postcode", "latitude", "longitude"),
        *("ssn", "passport_number", "license_plate", "vin", "credit_card_number", "iban", "bban", "swift8", "swift11"),
        *("ipv4_address", "ipv6_address", "mac_address", "user_agent_string"),
    }
)
"""Types of columns that identify a person, unless the metadata declares ``pii: false``."""


def recognizes(data: dict[str, Any]) -> bool:
    """Whether a JSON mapping looks like SDV metadata."""
    return isinstance(data.get("columns"), dict) or isinstance(data.get("tables"), dict)


def import_attributes(data: dict[str, Any]) -> dict[str, ImportedAttribute]:
    """One attribute for every column."""
    table = _only_table(data)
    columns = table.get("columns")
    if not isinstance(columns, dict) or not columns:
        raise SchemaError("this SDV metadata describes no columns; add them there first")
    keys = set(_keys(table))
    return {name: _import_attribute(name, column, is_key=name in keys) for name, column in columns.items()}


def _only_table(data: dict[str, Any]) -> dict[str, Any]:
    tables = data.get("tables")
    if not isinstance(tables, dict):
        return data
    if len(tables) != 1:
        raise SchemaError(
            f"this SDV metadata describes {len(tables)} tables ({', '.join(tables)}); a schema describes one. "
            "Keep one of them under tables: and import again"
        )
    (table,) = tables.values()
    return table if isinstance(table, dict) else {}


def _keys(table: dict[str, Any]) -> Iterable[str]:
    """Columns that identify a row or a person by themselves; parts of a composite key do not."""
    keys = [table.get("primary_key"), table.get("sequence_key"), *distinct_values(table.get("alternate_keys"))]
    return [key for key in keys if isinstance(key, str)]


def _import_attribute(name: str, column: object, *, is_key: bool) -> ImportedAttribute:
    if not name or not isinstance(column, dict) or not isinstance(column.get("sdtype"), str):
        raise SchemaError(f'the column {name!r} needs a name and a type, such as {{"sdtype": "categorical"}}')
    if is_key:
        return describe_attribute("identifier", "a key, so it is left out of synthetic tables")
    if column.get("pii") is True or (column["sdtype"] in PERSONAL_TYPES and column.get("pii") is not False):
        return describe_attribute(
            "identifier", "personal, so it is left out of synthetic tables; if it is not personal: kind: open"
        )
    return _import_domain(column)


def _import_domain(column: dict[str, Any]) -> ImportedAttribute:
    match column["sdtype"]:
        case "numerical":
            return _number(str(column.get("computer_representation", "")))
        case "boolean":
            return describe_attribute("boolean")
        case "datetime":
            pattern = column.get("datetime_format")
            return describe_dates(pattern if isinstance(pattern, str) else None)
        case "id":
            return describe_attribute("identifier", "left out of synthetic tables; for new ids: output: fresh")
        case "categorical" if distinct_values(column.get("order")):
            return describe_attribute("ordinal", values=distinct_values(column["order"]))
        case _:
            return describe_attribute("open", OPEN_NOTE)


def _number(representation: str) -> ImportedAttribute:
    whole = representation.startswith(("Int", "UInt"))
    note = "" if whole or representation.startswith("Float") else "or integer, if these are whole numbers"
    return describe_attribute("integer" if whole else "real", note, low=None, high=None)
