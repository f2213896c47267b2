from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError

import pytest

from dpsyn import errors
from dpsyn.errors import MissingExtraError


def test_the_docstring_shows_the_whole_tree() -> None:
    shown = re.findall(r"\b(\w+Error)\b", (errors.__doc__ or "").split("\n\n")[1])

    defined = [
        name for name, value in vars(errors).items() if isinstance(value, type) and value.__module__ == "dpsyn.errors"
    ]

    assert sorted(shown) == sorted(defined)


@pytest.mark.parametrize("line", (errors.__doc__ or "").split("\n\n")[1].splitlines()[1:])
def test_the_docstring_shows_every_class_below_its_base(line: str) -> None:
    """A class is indented by four characters more than its base, which is the last one above with less."""
    tree = (errors.__doc__ or "").split("\n\n")[1].splitlines()
    above = tree[: tree.index(line)]
    match = re.search(r"\w+Error", line)
    assert match

    base = next(m[0] for other in reversed(above) if (m := re.search(r"\w+Error", other)) and m.start() < match.start())

    assert getattr(errors, base) in getattr(errors, match[0]).__bases__


@pytest.mark.parametrize("kind", [errors.SchemaError, errors.PlanError])
def test_an_error_in_a_document_carries_the_path_of_its_entry(kind: type[errors.DocumentError]) -> None:
    assert kind("message", ("attributes", "age")).path == ("attributes", "age")
    assert issubclass(kind, ValueError)


def test_a_missing_library_is_named_by_the_packages_that_pip_finds_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name dpsyn may not be on an index, or belong to somebody else there."""
    listed = ["numpy>=1", "duckdb>=1.3; extra == 'duckdb'", 'sqlglot>=28; extra == "duckdb"', "x; extra == 'duckdb2'"]
    monkeypatch.setattr("importlib.metadata.requires", lambda name: listed)

    message = str(MissingExtraError("sqlglot", "duckdb", "a query"))

    assert message == (
        "a query needs sqlglot, which is not installed: pip install 'duckdb>=1.3' 'sqlglot>=28' (the extra 'duckdb' of "
        "DPSyn; in a clone of DPSyn also: pip install '.[duckdb]')"
    )


def test_a_missing_library_is_named_by_itself_where_dpsyn_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.requires", refuse)

    assert "pip install 'polars' (the extra" in str(MissingExtraError("polars", "polars", "a polars DataFrame"))
