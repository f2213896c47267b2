"""Kinds with listed values, and what all kinds have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.errors import SchemaError
from dpsyn.schema import (
    MISSING,
    AnyAttribute,
    Attribute,
    Boolean,
    Categorical,
    Datetime,
    Identifier,
    Integer,
    Open,
    Ordinal,
    Real,
    Value,
    canonical_text,
)
from dpsyn.schema.attributes import MAX_LISTED_VALUES, NULL_SPELLINGS, NotCodedError, split_range
from tests.strategies import attributes, coded

SEX = Categorical(name="sex", values=("F", "M"))
SCHOOL = Ordinal(name="school", values=("none", "primary", "secondary", "tertiary"))


# ── every kind ───────────────────────────────────────────────────────────────────────────────────────────────


@given(coded())
def test_cells_and_bins_are_counted_without_gaps(attribute: AnyAttribute) -> None:
    bins = attribute.bin_of_cell()

    assert len(bins) == attribute.cells == attribute.proper_cells + attribute.has_missing
    assert sorted(set(bins.tolist())) == list(range(attribute.size))
    assert (np.diff(bins) >= 0).all()


@given(coded())
def test_there_is_one_label_per_bin_and_no_two_are_alike(attribute: AnyAttribute) -> None:
    labels = attribute.labels()

    assert len(labels) == len(set(labels)) == attribute.size
    assert (labels[-1] == MISSING) >= attribute.has_missing


@given(coded())
def test_missing_is_a_bin_of_its_own_at_the_end(attribute: AnyAttribute) -> None:
    bins = attribute.bin_of_cell()

    if attribute.has_missing:
        assert attribute.null_cell == attribute.cells - 1
        assert (bins == bins[-1]).sum() == 1


@given(coded())
def test_every_null_and_every_unreadable_cell_has_a_code(attribute: AnyAttribute) -> None:
    assert 0 <= attribute.null_cell < attribute.cells
    assert 0 <= attribute.other_cell < attribute.cells


@given(attributes())
def test_attributes_are_hashable_and_cannot_be_changed(attribute: AnyAttribute) -> None:
    with pytest.raises(AttributeError):
        attribute.name = "else"  # type: ignore[misc]

    assert {attribute: 1}[attribute] == 1


def test_an_attribute_needs_a_name() -> None:
    with pytest.raises(SchemaError, match="empty name; give it the name of its column"):
        Boolean(name="")


@pytest.mark.parametrize(
    ("missing", "has_missing", "spellings"),
    [
        (False, False, ()),
        ((), False, ()),
        (True, True, NULL_SPELLINGS),
        ("-9", True, ("-9",)),
        ("", True, ("",)),
        (("-9", "unknown"), True, ("-9", "unknown")),
    ],
)
def test_missing_is_declared_by_yes_no_or_its_spellings(
    missing: bool | str | tuple[str, ...], has_missing: bool, spellings: tuple[str, ...]
) -> None:
    attribute = Boolean(name="a", missing=missing)

    assert attribute.has_missing == has_missing
    assert attribute.null_spellings == spellings


@pytest.mark.parametrize("kind", [Open(name="job"), Identifier(name="person")])
def test_kinds_without_codes_raise_an_error_that_names_the_kind(kind: Attribute) -> None:
    assert not kind.coded
    for ask in (lambda: kind.cells, lambda: kind.size, kind.labels, lambda: kind.select("x")):
        with pytest.raises(NotCodedError, match="has no codes"):
            ask()


def test_the_codes_of_an_open_attribute_need_discovered_values() -> None:
    with pytest.raises(NotCodedError, match="'job' is open and has no codes; its values must be discovered first"):
        Open(name="job").labels()


# ── where nulls and strangers go ─────────────────────────────────────────────────────────────────────────────

AGE: dict[str, Any] = {"name": "age", "low": 0, "high": 9}
COST: dict[str, Any] = {"name": "cost", "low": 0.0, "high": 0.9, "decimals": 1}
DAY: dict[str, Any] = {"name": "day", "start": "2016-01-01", "end": "2016-01-10"}
ABC: dict[str, Any] = {"name": "abc", "values": ("a", "b", "c")}


@pytest.mark.parametrize(
    ("attribute", "null_cell", "other_cell"),
    [
        (Categorical(**ABC), 0, 0),
        (Categorical(**ABC, missing=True), 3, 3),
        (Categorical(**ABC, other="b"), 1, 1),
        (Categorical(**ABC, other="else"), 3, 3),
        (Categorical(**ABC, other="else", missing=True), 4, 3),
        (Categorical(**ABC, other="b", missing=True), 3, 1),
        (Categorical(name="abc", codes=3), 0, 0),
        (Categorical(name="abc", codes=3, other=2), 2, 2),
        (Categorical(name="abc", codes=3, other=99, missing=True), 4, 3),
        (Ordinal(**ABC, other="c"), 2, 2),
        (Boolean(name="b"), 0, 0),
        (Boolean(name="b", missing=True), 2, 2),
        (Boolean(name="b", other=True), 1, 1),
        (Boolean(name="b", other=False, missing=True), 2, 0),
        (Integer(**AGE), 0, 0),
        (Integer(**AGE, missing=True), 10, 10),
        (Integer(**AGE, other=4), 4, 4),
        (Integer(**AGE, other="4", missing=True), 10, 4),
        (Real(**COST), 0, 0),
        (Real(**COST, missing=True), 10, 10),
        (Real(**COST, other=0.4), 4, 4),
        (Datetime(**DAY), 0, 0),
        (Datetime(**DAY, missing=True), 10, 10),
        (Datetime(**DAY, other="2016-01-05", missing=True), 10, 4),
    ],
)
def test_nulls_and_unlisted_values_count_as_the_schema_declares(
    attribute: AnyAttribute, null_cell: int, other_cell: int
) -> None:
    assert (attribute.null_cell, attribute.other_cell) == (null_cell, other_cell)


# ── lists of values ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_new_name_for_other_values_joins_the_list() -> None:
    attribute = Categorical(name="job", values=("nurse", "cook"), other="else", missing=True)

    assert attribute.all_values() == ("nurse", "cook", "else")
    assert attribute.labels() == ("nurse", "cook", "else", "missing")
    assert attribute.cells == 4


def test_a_listed_name_for_other_values_is_not_added_again() -> None:
    attribute = Categorical(name="job", values=("1", "2"), other=2)

    assert attribute.all_values() == ("1", "2")


@pytest.mark.parametrize("other", ["007", "-1", "9", "٣", "1" * 5000])
def test_only_the_plain_number_of_a_code_names_it(other: str) -> None:
    attribute = Categorical(name="job", codes=9, other=other)

    assert attribute.all_values() == (*range(9), other)
    assert attribute.other_cell == 9
    assert attribute.select(other).tolist() == [False] * 9 + [True]


def test_codes_stand_for_the_numbers_below() -> None:
    attribute = Categorical(name="job", codes=3)

    assert attribute.all_values() == (0, 1, 2)
    assert attribute.labels() == ("0", "1", "2")


def test_the_null_texts_of_missing_true_may_be_values() -> None:
    attribute = Categorical(name="country", values=("NA", "DE"), missing=True)

    assert attribute.labels() == ("NA", "DE", "missing")


@pytest.mark.parametrize(
    ("fields", "phrase", "path"),
    [
        ({}, "either values: [...] or codes: n", ("values",)),
        ({"values": ("a",), "codes": 3}, "either values: [...] or codes: n", ("values",)),
        ({"codes": 0}, "codes is 0; it must be 1 …", ("codes",)),
        ({"codes": MAX_LISTED_VALUES + 1}, "it must be 1 … 1,000,000", ("codes",)),
        ({"values": ("a", True)}, "use kind: boolean, or put them in quotes", ("values", 1)),
        ({"values": ("a",), "other": False}, "use kind: boolean, or put them in quotes", ("other",)),
        ({"values": ("a", float("nan"))}, "nan is not a category; remove it, or put it in quotes", ("values", 1)),
        ({"values": ("a", float("inf"))}, "inf is not a category; remove it, or put it in quotes", ("values", 1)),
        ({"values": ("a",), "other": float("nan")}, "nan is not a category", ("other",)),
        ({"values": ("a", "b", "a")}, "'a' is listed twice", ("values", 2)),
        ({"values": (1, "1")}, "'1' is listed twice", ("values", 1)),
        ({"values": (1, 1.0)}, "'1' is listed twice", ("values", 1)),
        ({"values": ("", "")}, "'' is listed twice", ("values", 1)),
        ({"values": ("a", "-9"), "missing": "-9"}, "'-9' is both a value and a spelling of missing", ("missing",)),
        ({"values": ("a", -9), "missing": ("-8", "-9")}, "'-9' is both a value and a spelling", ("missing",)),
        ({"values": ("a",), "other": -9, "missing": "-9"}, "'-9' is both a value and a spelling", ("missing",)),
        ({"values": ("a", "missing"), "missing": True}, "write missing: [missing]", ("missing",)),
        ({"values": ("a",), "other": "missing", "missing": True}, "write missing: [missing]", ("missing",)),
    ],
)
def test_an_invalid_list_of_values_is_refused(fields: dict[str, Any], phrase: str, path: tuple[str | int]) -> None:
    with pytest.raises(SchemaError) as caught:
        Categorical(name="a", **fields)

    assert phrase in str(caught.value)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "a"),
        ("01", "01"),
        (1, "1"),
        (1.0, "1"),
        (-0.0, "0"),
        (1.5, "1.5"),
        (True, "true"),
        (False, "false"),
        (1e16, "10000000000000000"),
        (10**30, "1" + "0" * 30),
    ],
)
def test_values_are_compared_by_their_text(value: Value, text: str) -> None:
    assert canonical_text(value) == text


# ── conditions ───────────────────────────────────────────────────────────────────────────────────────────────


@given(coded(), st.data())
def test_the_label_of_a_value_selects_that_value(attribute: AnyAttribute, data: st.DataObject) -> None:
    if not isinstance(attribute, Categorical | Boolean):
        return
    code = data.draw(st.integers(0, attribute.size - 1))

    chosen = attribute.select(attribute.labels()[code])

    assert chosen.tolist() == [index == code for index in range(attribute.cells)]


@pytest.mark.parametrize(
    ("attribute", "condition", "cells"),
    [
        (SEX, "M", [1]),
        (SEX, ("M", "F"), [0, 1]),
        (Categorical(name="a", codes=5), 3, [3]),
        (Categorical(name="a", codes=5), (3, "1"), [1, 3]),
        (Categorical(name="a", values=("a",), missing=True), "missing", [1]),
        (Categorical(name="a", values=("a", "missing")), "missing", [1]),
        (Categorical(name="a", values=("a", "b"), other="else"), "else", [2]),
        (Categorical(name="a", values=(1.0, 2)), "1", [0]),
        (SCHOOL, "primary..tertiary", [1, 2, 3]),
        (SCHOOL, ("none", "secondary .. tertiary"), [0, 2, 3]),
        (Ordinal(name="a", values=("1..2", "1", "2")), "1..2", [0]),
        (Boolean(name="b"), True, [1]),
        (Boolean(name="b"), "false", [0]),
        (Boolean(name="b", missing=True), (False, "missing"), [0, 2]),
    ],
)
def test_a_condition_selects_cells(
    attribute: AnyAttribute, condition: Value | tuple[Value, ...], cells: list[int]
) -> None:
    chosen = attribute.select(condition)

    assert chosen.dtype == np.bool_
    assert np.flatnonzero(chosen).tolist() == cells


@pytest.mark.parametrize(
    ("attribute", "condition", "phrase"),
    [
        (SEX, "X", "'X' is not a value of 'sex'; it has F, M"),
        (SEX, "F..M", "'F..M' is not a value of 'sex'"),
        (SEX, "missing", "'missing' is not a value of 'sex'"),
        (SEX, (), "matches no value"),
        (Categorical(name="a", codes=1000), "x", "it has 0, 1, 2, 3, 4, 5, 6, 7 and 992 more"),
        (SCHOOL, "tertiary..none", "matches no value"),
        (SCHOOL, "none..college", "'college' is not a value of 'school'"),
        (Boolean(name="b"), "yes", "a condition on it is true or false, not 'yes'"),
    ],
)
def test_a_condition_that_meets_nothing_is_refused(
    attribute: AnyAttribute, condition: Value | tuple[Value, ...], phrase: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        attribute.select(condition)

    assert phrase in str(caught.value)


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("30..39", ("30", "39")),
        ("30 .. 39", ("30", "39")),
        ("-5..-1", ("-5", "-1")),
        ("a", None),
        ("..", None),
        ("30..", None),
        ("1..2..3", None),
        (30, None),
        (1.5, None),
    ],
)
def test_a_range_is_two_ends_with_two_dots_between(text: Value, ends: tuple[str, str] | None) -> None:
    assert split_range(text) == ends


# ── open and identifier ──────────────────────────────────────────────────────────────────────────────────────


def test_discovered_values_make_an_open_attribute_categorical() -> None:
    attribute = Open(name="job", missing="-", because="job register", description="last job", other="else")

    discovered = attribute.to_categorical(["cook", "nurse"])

    assert discovered == Categorical(
        name="job",
        values=("cook", "nurse"),
        other="else",
        missing="-",
        because="job register",
        description="last job",
    )


def test_without_discovered_values_only_other_is_left() -> None:
    discovered = Open(name="job", missing=True).to_categorical([])

    assert discovered.labels() == ("other", "missing")


def test_a_discovered_value_that_equals_other_counts_as_other() -> None:
    discovered = Open(name="job", other="else").to_categorical(["cook", "else"])

    assert discovered.labels() == ("cook", "else")
    assert discovered.other_cell == 1


@pytest.mark.parametrize("missing", [True, "-", ("-", "none")])
def test_a_discovered_value_with_the_name_of_an_empty_cell_counts_as_other(missing: Any) -> None:
    attribute = Open(name="job", missing=missing)

    discovered = attribute.to_categorical(["cook", "missing", *([] if missing is True else ["-"])])

    assert discovered.labels() == ("cook", "other", "missing")


@pytest.mark.parametrize(("other", "missing"), [("missing", True), ("-", "-"), ("-", ("-", "none"))])
def test_other_cannot_have_the_name_of_an_empty_cell(other: str, missing: Any) -> None:
    with pytest.raises(SchemaError, match="missing"):
        Open(name="job", other=other, missing=missing)


def test_more_values_than_a_person_can_mean_are_refused() -> None:
    with pytest.raises(SchemaError, match="1,000,001 values are too many; list at most 1,000,000"):
        Categorical(name="a", values=tuple(range(MAX_LISTED_VALUES + 1)))


@pytest.mark.parametrize("missing", [True, "?", ("?", "-")])
@pytest.mark.parametrize(
    ("kind", "fields"),
    [(Categorical, {"values": ("", "a")}), (Ordinal, {"values": ("a",), "other": ""}), (Open, {"other": ""})],
)
def test_an_empty_text_cannot_be_a_value_beside_missing(kind: Any, fields: dict[str, Any], missing: Any) -> None:
    with pytest.raises(SchemaError) as caught:
        kind(name="a", missing=missing, **fields)

    assert (
        str(caught.value)
        == "'' is a value, but in a text file it looks like an empty cell; remove it, or remove missing"
    )


def test_an_empty_text_is_a_value_where_missing_is_not_declared() -> None:
    assert Categorical(name="a", values=("", "a")).labels() == ("", "a")


def test_a_discovered_empty_text_counts_as_other_if_missing_is_declared() -> None:
    assert Open(name="a", missing="?").to_categorical(["", "a"]).labels() == ("a", "other", "missing")
    assert Open(name="a").to_categorical(["", "a"]).labels() == ("", "a", "other")
