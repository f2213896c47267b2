"""The schema of baskets is checked when it is built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsyn.errors import SchemaError
from dpsyn.schema import BasketSchema, UnitDeclaration, read_items


def test_a_range_is_a_universe() -> None:
    assert read_items("1..4") == (("1", "2", "3", "4"), "the range 1..4")
    assert read_items(" -1 .. 1 ")[0] == ("-1", "0", "1")


def test_a_file_lists_a_universe(tmp_path: Path) -> None:
    path = tmp_path / "items.txt"
    path.write_bytes("\ufeffmilk\r\n\n  crème brûlée \nbread".encode())

    assert read_items(path) == (("milk", "crème brûlée", "bread"), "listed in items.txt")
    assert read_items(str(path)) == read_items(path)


def test_texts_and_numbers_are_items() -> None:
    assert read_items(["a", 1, 2.0, np.int64(3)])[0] == ("a", "1", "2", "3")
    assert read_items(range(2))[0] == ("0", "1")


@pytest.mark.parametrize(
    ("items", "complaint"),
    [
        ("9..1", "smaller number first"),
        ("1..100000000", "more than 10,000,000"),
        ("no such file", "give a file with one item on each line, or a range"),
        ([], "empty"),
    ],
)
def test_an_invalid_universe_is_refused(items: Any, complaint: str) -> None:
    with pytest.raises(SchemaError, match=complaint):
        read_items(items)


def test_files_that_list_nothing_or_are_not_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n \n", "utf-8")
    (tmp_path / "latin").write_bytes(b"caf\xe9\n")

    with pytest.raises(SchemaError, match="lists no item"):
        read_items(tmp_path / "empty")
    with pytest.raises(SchemaError, match="is not UTF-8 text"):
        read_items(tmp_path / "latin")


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"items": ("a", "a")}, "listed twice"),
        ({"items": ("a ",)}, "cannot be an item"),
        ({"items": ("",)}, "cannot be an item"),
        ({"items": ("NaN",)}, "cannot be an item"),
        ({"items": ("a\nb",)}, "cannot be an item"),
        ({"items": ("a\x00",)}, "cannot be an item"),
        ({"items": ("\ud800",)}, "cannot be an item"),
        ({"items": ("a",), "item": "basket"}, "different names"),
        ({"items": ("a",), "privacy_unit": UnitDeclaration(id="item")}, "different names"),
    ],
)
def test_a_basket_schema_cannot_be_built_wrong(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SchemaError, match=complaint):
        BasketSchema(**fields)


def test_spaces_of_any_kind_may_be_within_an_item() -> None:
    assert BasketSchema(items=("crème brûlée", "caf\xe9\xa0noir", "日本\u3000茶")).items is not None


def test_a_public_universe_is_declared_and_a_discovered_one_is_not() -> None:
    given = BasketSchema(items=("a", "b"), because="the range a..b")
    discovered = BasketSchema(items=("a", "b"), items_discovered=True)

    assert given.declared_public() == ("the universe of 2 items: the range a..b",)
    assert discovered.declared_public() == BasketSchema(items=None).declared_public() == ()
    assert BasketSchema(items=None, privacy_unit=UnitDeclaration(id="who")).columns == ("basket", "item", "who")
