"""Conditions on rows, as people write them: ``sex=F``, ``age=30..39``, ``job=nurse|doctor``, ``job=missing``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import QueryError, SchemaError
from dpsyn.schema.attributes import MISSING, Attribute, Value, canonical_text, suggest_names
from dpsyn.schema.ranges import Ranged
from dpsyn.schema.relations import Condition

if TYPE_CHECKING:
    from dpsyn.schema.schema import Schema

VALUE_SEPARATOR = "|"
"""Between values of which one is enough."""


def parse_conditions(texts: Iterable[str], names: Collection[str] = ()) -> dict[str, str]:
    """Conditions by attribute, each still a text, from texts such as ``age=30..39``.

    ``names`` are those of the attributes: one of them may have an equals sign in it itself.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, condition = _split_at_equals(text, names)
        if names and name not in names:
            _refuse_comparison(text)
        if not (name.strip() and equals and condition):
            raise QueryError(f"{text!r} is not a condition; write ATTRIBUTE=VALUE, ATTRIBUTE=LOW..HIGH or A=ONE|OTHER")
        if name in found:
            raise QueryError(
                f"there are two conditions on {name!r}; make them one: {name}=LOW..HIGH is a range, "
                f"{name}=ONE|OTHER is either of two values"
            )
        found[name] = condition
    return found


def _split_at_equals(text: str, names: Collection[str]) -> tuple[str, str, str]:
    """A text before and after its equals sign: that which follows the longest name, otherwise the first."""
    for name in sorted(names, key=len, reverse=True):
        before, after = text[: len(name)], text[len(name) :].lstrip()
        if before == name and after.startswith("="):
            return name, "=", after[1:].strip()
    name, equals, condition = (part.strip() for part in text.partition("="))
    return name, equals, condition


def _refuse_comparison(text: str) -> None:
    """Tell whoever writes ``age>=30`` how that is written here."""
    compared = re.fullmatch(r"([^<>!=]+?)\s*([<>!])=?\s*(.*)", text, re.DOTALL)
    if not compared:
        return
    name, sign, value = compared[1].strip(), compared[2], compared[3]
    instead = {
        ">": f"a range with both ends, such as {name}={value or 'LOW'}..HIGH",
        "<": f"a range with both ends, such as {name}=LOW..{value or 'HIGH'}",
        "!": f"the values that are meant, such as {name}=ONE|OTHER",
    }
    raise QueryError(f"{text!r} compares, which conditions do not; write {instead[sign]}")


def _split_values(condition: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in condition.split(VALUE_SEPARATOR))


def select_cells(schema: Schema, where: Mapping[str, object]) -> dict[str, NDArray[np.bool_]]:
    """For each attribute with a condition, which of its cells meet it.

    A condition is a value; a text as on the command line; a pair ``(30, 39)``, which is a range; or a list or set of
    values of which one is enough. Values may be dates, and numbers of numpy.
    """
    if not isinstance(where, Mapping):
        raise QueryError(
            f"{where!r} are no conditions; give them by attribute, such as {{'age': (30, 39), 'sex': 'F'}}"
        )
    found = {}
    for name, given in where.items():
        if name not in schema:
            raise QueryError(
                f"there is no attribute {name!r} to put a condition on; {suggest_attributes(schema, name)}"
            )
        derived = next((derive for derive in schema.derive if derive.name == name), None)
        if derived:
            raise QueryError(f"{name!r} follows from {derived.source!r}; put the condition on {derived.source!r}")
        if not schema[name].coded:
            raise QueryError(f"{name!r} is of kind {schema[name].kind}: no numbers are released about its values")
        condition = _parse_condition(schema[name], given)
        try:
            found[name] = schema[name].select(condition)
            _require_whole_cells(schema[name], condition)
        except SchemaError as error:
            raise QueryError(_with_attribute_name(name, str(error))) from None
    return found


def format_conditions(schema: Schema, where: Mapping[str, object]) -> str:
    """Conditions that fit a schema as they are written on the command line, with commas between them."""
    conditions = {name: _parse_condition(schema[name], given) for name, given in where.items()}
    return ", ".join(
        f"{name}={VALUE_SEPARATOR.join(map(canonical_text, one)) if isinstance(one, tuple) else canonical_text(one)}"
        for name, one in conditions.items()
    )


def suggest_attributes(schema: Schema, name: object) -> str:
    """Which attributes someone may have meant; only such as have numbers released about them."""
    return suggest_names(name, [attribute.name for attribute in schema.measured_attributes if attribute.coded])


def _with_attribute_name(name: str, complaint: str) -> str:
    """What an attribute says about a value, and whose it is."""
    if repr(name) in complaint:
        return complaint
    return f"{complaint}; a condition on {name!r} is a value, or a range with both ends such as LOW..HIGH"


def _require_whole_cells(attribute: Attribute, condition: Condition) -> None:
    if not isinstance(attribute, Ranged):
        return
    for part in condition if isinstance(condition, tuple) else (condition,):
        if part != MISSING and (whole := attribute.widen_to_whole_cells(part)):
            raise QueryError(
                f"{part!r} begins or ends inside a cell of {attribute.name!r}, within which nothing was measured; "
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
    raise QueryError(f"{given!r} is not a condition on {name!r}; give a value, a pair (low, high) or a list of values")


def _parse_text(attribute: Attribute, text: str) -> Condition:
    """A value, or several with bars between them; a value may have a bar in it itself."""
    values = _split_values(text)
    if (len(values) == 1 and values[0]) or _is_value(attribute, text.strip()):
        return text.strip()
    if not all(values):
        raise QueryError(f"{text!r} on {attribute.name!r} has an empty value; write it as ONE|OTHER")
    return values


def _is_value(attribute: Attribute, text: str) -> bool:
    try:
        attribute.select(text)
    except SchemaError:
        return False
    return True


def _to_plain_value(value: object) -> object:
    """A value of numpy, or a date, as one of Python's own; anything else as it is."""
    if isinstance(value, np.datetime64):
        return str(value)
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return value.isoformat() if isinstance(value, date) else value


def _to_plain_values(name: str, given: Iterable[object]) -> list[Value]:
    values = [_to_plain_value(value) for value in given]
    for value in values:
        if not isinstance(value, str | bool | int | float):
            raise QueryError(f"{value!r} is not a value of {name!r}; give text, a number or a date")
    return values  # type: ignore[return-value]  # every one was looked at
