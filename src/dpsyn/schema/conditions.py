"""Conditions on rows in queries: ``sex=F``, ``age=30..39``, ``job=nurse|doctor``, ``job=missing``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import QueryError, SchemaError, quote_argument
from dpsyn.schema.attributes import MISSING, Attribute, Value, canonical_text
from dpsyn.schema.ranges import Datetime, Ranged
from dpsyn.schema.relations import Condition
from dpsyn.schema.timestamps import split_condition
from dpsyn.suggestions import suggest_names

if TYPE_CHECKING:
    from dpsyn.schema.schema import Schema

AttributeConditions = Mapping[str, Any]
"""Conditions by attribute: a value, a text such as ``30..39``, a pair that is a range, or a list of values."""

VALUE_SEPARATOR = "|"
"""Separates alternative values in a condition."""


def parse_conditions(texts: Iterable[str], names: Collection[str] = ()) -> dict[str, str]:
    """Conditions by attribute, as texts, from texts such as ``age=30..39``.

    ``names`` are the names of the attributes, because a name may itself contain an equals sign.
    """
    conditions: dict[str, str] = {}
    for text in texts:
        name, equals, condition = _split_at_equals(text, names)
        if names and name not in names:
            _refuse_comparison(text)
        if not (name.strip() and equals and condition):
            raise QueryError(
                f"{quote_argument(text)} is not a condition; write ATTRIBUTE=VALUE, ATTRIBUTE=LOW..HIGH or A=ONE|OTHER"
            )
        if name in conditions:
            raise QueryError(
                f"there are two conditions on {quote_argument(name)}; combine them into one: "
                f"{name}=LOW..HIGH is a range, "
                f"{name}=ONE|OTHER is either of two values"
            )
        conditions[name] = condition
    return conditions


def _split_at_equals(text: str, names: Collection[str]) -> tuple[str, str, str]:
    """Split a text at the equals sign after the longest matching name, or else at the first equals sign."""
    for name in sorted(names, key=len, reverse=True):
        rest = text[len(name) :].lstrip()
        if text.startswith(name) and rest.startswith("="):
            return name, "=", rest[1:].strip()
    name, equals, condition = (part.strip() for part in text.partition("="))
    return name, equals, condition


def _refuse_comparison(text: str) -> None:
    """Refuse ``age>=30`` and similar texts, with the condition to write instead."""
    compared = re.fullmatch(r"([^<>!=]+?)\s*([<>!])=?\s*(.*)", text, re.DOTALL)
    if not compared:
        return
    name, sign, value = compared[1].strip(), compared[2], compared[3]
    instead = {
        ">": f"a range with both ends, such as {name}={value or 'LOW'}..HIGH",
        "<": f"a range with both ends, such as {name}=LOW..{value or 'HIGH'}",
        "!": f"the values to include, such as {name}=ONE|OTHER",
    }
    raise QueryError(f"{quote_argument(text)} is a comparison, which is not supported; write {instead[sign]}")


def select_cells(schema: Schema, where: Mapping[str, object]) -> dict[str, NDArray[np.bool_]]:
    """For each modeled attribute with a condition, which of its cells meet it.

    A condition on a timestamp is one on its parts.

    A condition is a value; a text as on the command line; a pair ``(30, 39)``, which is a range; or a list or set of
    alternative values. Values may also be dates and numpy scalars.
    """
    if not isinstance(where, Mapping):
        raise QueryError(
            f"{quote_argument(where)} is not a mapping of conditions; give them by attribute, such as "
            f"{{'age': (30, 39), 'sex': 'F'}}"
        )
    selected: dict[str, NDArray[np.bool_]] = {}
    for name, given in where.items():
        if name not in schema:
            raise QueryError(
                f"there is no attribute {quote_argument(name)} to put a condition on; "
                f"{suggest_attributes(schema, name)}"
            )
        derived = next((derive for derive in schema.derive if derive.name == name), None)
        if derived:
            raise QueryError(
                f"{quote_argument(name)} is derived from {derived.source!r}; put the condition on {derived.source!r}"
            )
        if not schema[name].coded:
            raise QueryError(
                f"{quote_argument(name)} is of kind {schema[name].kind}, so nothing is released about its values"
            )
        condition = _parse_condition(schema[name], given)
        try:
            for part, part_condition in _split_condition(schema, name, condition).items():
                mask = schema[part].select(part_condition)
                selected[part] = selected[part] & mask if part in selected else mask
                _require_whole_cells(schema[part], part_condition)
        except SchemaError as error:
            raise QueryError(_with_attribute_name(name, str(error))) from None
    for part, mask in selected.items():
        if not mask.any():
            raise QueryError(f"no value of {part!r} meets all of the conditions; give others")
    return selected


def _split_condition(schema: Schema, name: str, condition: Condition) -> dict[str, Condition]:
    """A condition on a timestamp as conditions on its parts; any other condition as it is."""
    timestamp = schema[name]
    if name not in schema.timestamp_parts or not isinstance(timestamp, Datetime):
        return {name: condition}
    return dict(split_condition(timestamp, schema.timestamp_parts[name], condition))


def format_conditions(schema: Schema, where: Mapping[str, object]) -> str:
    """Valid conditions as one text, each as on the command line, separated by commas."""
    conditions = {name: _parse_condition(schema[name], given) for name, given in where.items()}
    return ", ".join(
        f"{name}={VALUE_SEPARATOR.join(map(canonical_text, given if isinstance(given, tuple) else (given,)))}"
        for name, given in conditions.items()
    )


def suggest_attributes(schema: Schema, name: object) -> str:
    """A suggestion for an unknown attribute name, among the attributes that can be queried."""
    return suggest_names(name, [attribute.name for attribute in schema.modeled_attributes if attribute.coded])


def _with_attribute_name(name: str, message: str) -> str:
    """The error message about a value, with the name of the attribute."""
    if repr(name) in message:
        return message
    return f"{message}; a condition on {quote_argument(name)} is a value, or a range with both ends such as LOW..HIGH"


def _require_whole_cells(attribute: Attribute, condition: Condition) -> None:
    if not isinstance(attribute, Ranged):
        return
    for part in condition if isinstance(condition, tuple) else (condition,):
        if part != MISSING and (whole := attribute.widen_to_whole_cells(part)):
            raise QueryError(
                f"{quote_argument(part)} begins or ends inside a cell of {attribute.name!r}, and "
                "nothing was measured inside cells; "
                f"use {whole}"
            )


def _parse_condition(attribute: Attribute, given: object) -> Condition:
    name, given = attribute.name, _to_plain_value(given)
    if isinstance(given, str):
        return _parse_text(attribute, given)
    if isinstance(given, bool | int | float):
        return given
    if isinstance(given, tuple) and len(given) == 2:
        return "..".join(canonical_text(end) for end in _to_plain_values(name, given))
    if isinstance(given, Sequence | set | frozenset) and not isinstance(given, bytes | bytearray) and given:
        return tuple(_to_plain_values(name, sorted(given, key=str) if isinstance(given, set | frozenset) else given))
    raise QueryError(
        f"{quote_argument(given)} is not a condition on {quote_argument(name)}; give a value, a pair "
        "(low, high) or a list of values"
    )


def _parse_text(attribute: Attribute, text: str) -> Condition:
    """A value, or several values separated by bars; a value may itself contain a bar."""
    values = tuple(part.strip() for part in text.split(VALUE_SEPARATOR))
    if (len(values) == 1 and values[0]) or _is_value(attribute, text.strip()):
        return text.strip()
    if not all(values):
        raise QueryError(f"{quote_argument(text)} on {attribute.name!r} has an empty value; write it as ONE|OTHER")
    return values


def _is_value(attribute: Attribute, text: str) -> bool:
    try:
        attribute.select(text)
    except SchemaError:
        return False
    return True


def _to_plain_value(value: object) -> object:
    """Convert numpy scalars and dates to plain Python values; anything else is returned unchanged."""
    if isinstance(value, np.datetime64):
        return str(value)
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return value.isoformat() if isinstance(value, date | time) else value


def _to_plain_values(name: str, given: Iterable[object]) -> list[Value]:
    values = [_to_plain_value(value) for value in given]
    for value in values:
        if not isinstance(value, str | bool | int | float):
            raise QueryError(
                f"{quote_argument(value)} is not a value of {quote_argument(name)}; "
                "give text, a number, a date or a time"
            )
    return values  # type: ignore[return-value]  # every value was checked
