"""The public API: exactly these names, all of them load, and what they return is among them."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import duckdb
import pandas
import polars
import pyarrow
import pytest

import dpsyn
from dpsyn import errors

NAMESPACE: dict[str, Any] = {name: getattr(dpsyn, name) for name in dpsyn.__all__}

INTERNAL = {
    "Measurements": "what a recipe hands to the fit; only those who write a recipe meet it",
    "RowSampler": "what sampling.parallel sends to its workers",
    "Composition": "the sum of costs inside a budget",
    "Grid": "the cells of a number or a date, for the encoding",
}
"""Types that public methods return and that are not exported, with the reason."""


def is_own(cls: type) -> bool:
    return cls.__module__.split(".")[0] == "dpsyn"


def public_functions(name: str) -> Iterator[tuple[str, Any]]:
    """A function, or the public methods and properties of a class and its bases."""
    value = NAMESPACE[name]
    if inspect.isfunction(value):
        yield name, value
    for base in value.__mro__ if isinstance(value, type) else ():
        for attribute, member in vars(base).items() if is_own(base) else ():
            function = getattr(member, "__func__", getattr(member, "fget", member))
            if inspect.isfunction(function) and not attribute.startswith("_"):
                yield f"{name}.{attribute}", function


def return_types(function: Any) -> Iterator[type]:
    """Every class in the return annotation; names that are imported for type checkers only are public ones."""
    hints = typing.get_type_hints(function, localns=NAMESPACE | TYPE_CHECKING_NAMES)
    waiting = [hints.get("return")]
    while waiting:
        hint = waiting.pop()
        if isinstance(hint, type):
            yield hint
        waiting += typing.get_args(hint)


TYPE_CHECKING_NAMES: dict[str, Any] = {
    **dict.fromkeys(("ReconstructionMethod", "RowSampler", "Uncertainty", "WorkerKind"), Any),
    "duckdb": duckdb,
    "pa": pyarrow,
    "pd": pandas,
    "pl": polars,
}


def test_all_lists_exactly_what_the_module_offers() -> None:
    public = {
        name for name, value in vars(dpsyn).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    offered = public - {"TYPE_CHECKING", "Any", "annotations"} | set(dpsyn._HOMES) | {"__version__"}

    assert len(dpsyn.__all__) == len(set(dpsyn.__all__))
    assert set(dpsyn.__all__) == offered


def test_every_error_is_exported() -> None:
    tree = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}

    assert tree - set(dpsyn.__all__) == set()


@pytest.mark.parametrize("name", sorted(set(dpsyn.__all__) - {"__version__", "RECIPES", "PRIVATE_NOTICE"}))
def test_what_a_public_function_returns_is_public(name: str) -> None:
    missing = {
        f"{where} -> {cls.__name__}"
        for where, function in public_functions(name)
        for cls in return_types(function)
        if is_own(cls) and cls.__name__ not in dpsyn.__all__ and cls.__name__ not in INTERNAL
    }

    assert missing == set()


@pytest.mark.parametrize("name", sorted(set(dpsyn.__all__) - {"__version__", "RECIPES", "PRIVATE_NOTICE"}))
def test_every_public_name_has_a_docstring(name: str) -> None:
    assert inspect.getdoc(NAMESPACE[name])
