"""Conditions on rows, as people write them: ``sex=F``, ``age=30..39``, ``job=nurse|doctor``, ``job=missing``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import SchemaError, UserError
from dpsyn.schema.attributes import MISSING, Attribute, Value, some, text_of
from dpsyn.schema.ranges import Ranged
from dpsyn.schema.relations import Condition

if TYPE_CHECKING:
    from dpsyn.schema.schema import Schema

EITHER = "|"
"""Between values of which one is enough."""


def parse_where(texts: Iterable[str]) -> dict[str, str]:
    """Conditions by attribute, each still a text, from texts such as ``age=30..39``."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, condition = (part.strip() for part in text.partition("="))
        if not (name and equals and condition):
            raise UserError(f"{text!r} is not a condition; write ATTRIBUTE=VALUE, ATTRIBUTE=LOW..HIGH or A=ONE|OTHER")
        if name in found:
            raise UserError(f"there are two conditions on {name!r}; list all its values in one: {name}=ONE|OTHER")
        if not all(_split(condition)):
            raise UserError(f"{text!r} has an empty value; write {name}=ONE|OTHER")
        found[name] = condition
    return found


def _split(condition: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in condition.split(EITHER))


def select_cells(schema: Schema, where: Mapping[str, object]) -> dict[str, NDArray[np.bool_]]:
    """For each attribute with a condition, which of its cells meet it.

    A condition is a value; a text as on the command line; a pair ``(30, 39)``, which is a range; or a list or set of
    values of which one is enough.
    """
    found = {}
    for name, given in where.items():
        if name not in schema:
            raise UserError(f"there is no attribute {name!r} to put a condition on; there are {some(schema.names)}")
        derived = next((derive for derive in schema.derive if derive.name == name), None)
        if derived:
            raise UserError(f"{name!r} follows from {derived.source!r}; put the condition on {derived.source!r}")
        if not schema[name].coded:
            raise UserError(f"{name!r} is of kind {schema[name].kind}: no numbers are released about its values")
        condition = _condition(name, given)
        try:
            found[name] = schema[name].select(condition)
            _require_whole_cells(schema[name], condition)
        except SchemaError as error:
            raise UserError(str(error)) from None
    return found


def _require_whole_cells(attribute: Attribute, condition: Condition) -> None:
    if not isinstance(attribute, Ranged):
        return
    for part in condition if isinstance(condition, tuple) else (condition,):
        if part != MISSING and (whole := attribute.whole_cells(part)):
            raise UserError(
                f"{part!r} begins or ends inside a cell of {attribute.name!r}, within which nothing was measured; "
                f"use {whole}"
            )


def _condition(name: str, given: object) -> Condition:
    if isinstance(given, str):
        values = _split(given)
        if not all(values):
            raise UserError(f"{given!r} on {name!r} has an empty value; write it as ONE|OTHER")
        return values[0] if len(values) == 1 else values
    if isinstance(given, bool | int | float):
        return given
    if isinstance(given, tuple) and len(given) == 2:
        return "..".join(text_of(end) for end in _values(name, given))
    if isinstance(given, Sequence | set | frozenset) and given:
        return tuple(_values(name, sorted(given, key=str) if isinstance(given, set | frozenset) else given))
    raise UserError(f"{given!r} is not a condition on {name!r}; give a value, a pair (low, high) or a list of values")


def _values(name: str, given: Iterable[object]) -> list[Value]:
    values = list(given)
    for value in values:
        if not isinstance(value, str | bool | int | float):
            raise UserError(f"{value!r} is not a value of {name!r}; give text or a number")
    return values  # type: ignore[return-value]  # every one was looked at
