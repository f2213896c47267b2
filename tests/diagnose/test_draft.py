"""A draft guesses what a person would write, and marks all of it as read off the data."""

from __future__ import annotations

import datetime as dt
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn import diagnose
from dpsyn.demo import people, people_schema
from dpsyn.diagnose import check_table
from dpsyn.diagnose.draft import NO_ROWS_WARNING, round_bounds
from dpsyn.diagnose.profile import DATE_FORMATS
from dpsyn.errors import SchemaError, SourceError
from dpsyn.schema import Attribute, Schema
from dpsyn.schema.approval import states_facts


def draft_schema(data: Any, **options: Any) -> str:
    """The text of a draft."""
    return diagnose.draft_schema(data, **options).to_yaml()


RNG = np.random.default_rng(5)
LETTERS = [f"L{i:03}" for i in range(500)]


def drafted_attribute(values: Any, name: str = "a") -> Attribute:
    """The attribute that a column is taken for."""
    table = pa.table({name: pa.array(values), "another": pa.array([True, False] * len(values)).slice(0, len(values))})
    return Schema.from_yaml(draft_schema(table))[name]


def fields(attribute: Attribute, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(attribute, name) for name in ("kind", *names))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["a", "b"] * 200, {"kind": "categorical", "values": ("a", "b")}),
        (["yes", "no"] * 200, {"kind": "boolean"}),
        ([True, False] * 200, {"kind": "boolean"}),
        ([1, 2, 4] * 100, {"kind": "ordinal", "values": (1, 2, 3, 4)}),
        ([94102, 94158, 94110] * 100, {"kind": "categorical", "values": (94102, 94110, 94158)}),
        (["01", "02", "13"] * 100, {"kind": "categorical", "values": ("01", "02", "13")}),
        (list(range(17, 91)) * 5, {"kind": "integer", "low": 0, "high": 100}),
        ([i * 37 % 99_999 for i in range(400)] * 2, {"kind": "integer", "low": 0, "high": 15_000}),
        (list(range(1994, 2017)) * 20, {"kind": "integer", "low": 1990, "high": 2020}),
        ([i / 4 for i in range(400)], {"kind": "real", "low": 0, "high": 100, "decimals": 2}),
        ([-i / 4 for i in range(400)], {"kind": "real", "low": -100, "high": 0, "decimals": 2}),
        (
            [dt.date(2016, 3, 1), dt.date(2017, 4, 1)] * 100,
            {"kind": "datetime", "start": "2016-01-01", "end": "2017-12-31"},
        ),
        (["2016-03-01T08:30", "2016-04-01T00:00"] * 100, {"kind": "datetime", "resolution": "minute"}),
        (["08:30", "17:00"] * 100, {"kind": "time", "resolution": "minute"}),
        (["8:30 am", "12:15 pm"] * 100, {"kind": "time", "resolution": "minute"}),
        ([dt.time(8, 30), dt.time(17, 0, 15)] * 100, {"kind": "time", "resolution": "second"}),
        (["08:30", "36:00"] * 100, {"kind": "categorical", "values": ("08:30", "36:00")}),
        (["03/01/2016", "12/31/2016"] * 100, {"kind": "datetime", "format": "%m/%d/%Y"}),
        (["14.04.2021", "01.05.2022"] * 100, {"kind": "datetime", "format": "%d.%m.%Y", "end": "2022-12-31"}),
        (["14.04.21", "01.05.22"] * 100, {"kind": "datetime", "format": "%d.%m.%y", "start": "2021-01-01"}),
        (["14-04-2021", "01-05-2022"] * 100, {"kind": "datetime", "format": "%d-%m-%Y"}),
        (["04-03-2021", "04-14-2021"] * 100, {"kind": "datetime", "format": "%m-%d-%Y"}),
        (["04-03-2021", "05-04-2021"] * 100, {"kind": "datetime", "format": "%m-%d-%Y"}),
        (["14 Apr 2021", "1 May 2021"] * 100, {"kind": "datetime", "format": "%d %b %Y"}),
        (["14-Apr-2021", "01-MAY-2021"] * 100, {"kind": "datetime", "format": "%d-%b-%Y"}),
        (["14 April 2021", "1 May 2021"] * 100, {"kind": "datetime", "format": "%d %B %Y"}),
        ([f"{day:02}.{month:02}.2021" for day in range(1, 29) for month in range(1, 13)], {"kind": "datetime"}),
        (["1.2.3", "2.0.1"] * 100, {"kind": "categorical", "values": ("1.2.3", "2.0.1")}),
        (["1.2.10", "1.2.11"] * 100, {"kind": "categorical", "values": ("1.2.10", "1.2.11")}),
        (["14.04.21", "1.2.3"] * 100, {"kind": "categorical", "values": ("1.2.3", "14.04.21")}),
        (["$5", "$10"] * 100, {"kind": "categorical", "values": ("$10", "$5")}),
        (LETTERS * 2, {"kind": "open"}),
        (LETTERS, {"kind": "identifier"}),
        (list(range(1000, 1400)), {"kind": "identifier"}),
        ([i * 1013 for i in range(300)], {"kind": "integer", "low": 0}),
        ([None] * 100, {"kind": "open", "missing": True}),
        (["a", "", None, "b"] * 100, {"kind": "categorical", "missing": True}),
        (["a", "?", "b"] * 100, {"kind": "categorical", "missing": ("?",)}),
        (["Other", "b"] * 100, {"kind": "categorical", "other": "Other"}),
    ],
)  # fmt: skip
def test_the_kind_of_a_column_is_guessed_from_its_cells(values: list[Any], expected: dict[str, Any]) -> None:
    attribute = drafted_attribute(values)

    assert fields(attribute, *[key for key in expected if key != "kind"]) == tuple(expected.values())
    assert attribute.provenance == "data"


@pytest.mark.parametrize("form", DATE_FORMATS)
def test_dates_in_each_format_are_read_as_they_are_drafted(form: str) -> None:
    dates = [dt.datetime(2021, month, day, 13, 30).strftime(form) for month in range(1, 13) for day in range(1, 29)]
    table = pa.table({"a": dates})

    schema = Schema.from_yaml(draft_schema(table))

    assert fields(schema["a"], "format") == ("datetime", form)
    assert check_table(schema, table).attributes[0].inside == len(dates)


@pytest.mark.parametrize("amount", ["${:,}.08", "{} EUR", "-€ {}", "{:,}.50", "{},00 kr", "{}.5 %"])
def test_amounts_with_signs_are_numbers(amount: str) -> None:
    table = pa.table({"a": [amount.format(number * 7) for number in range(900, 1_200)], "b": [1, 2] * 150})

    schema = Schema.from_yaml(draft_schema(table))

    assert schema["a"].kind in ("integer", "real")
    assert check_table(schema, table).attributes[0].inside == 300


def test_amounts_with_several_signs_get_a_comment_with_what_to_do() -> None:
    amounts = [f"{number * 7} {('EUR', 'USD', 'GBP')[number % 3]}" for number in range(900, 1_200)]

    text = draft_schema(pa.table({"a": amounts, "b": [1, 2] * 150}))

    assert Schema.from_yaml(text)["a"].kind == "open"
    assert "write all of them in one way" in text


@pytest.mark.parametrize("key", ["+49 30 {}", "{}-A", "10.0.0.{}", "030 123 {}", "AB {}"])
def test_keys_with_digits_are_not_taken_for_amounts(key: str) -> None:
    assert drafted_attribute([key.format(number) for number in range(100, 300)]).kind == "identifier"


def test_values_that_are_merely_frequent_become_no_spikes() -> None:
    values = [*range(0, 400_000, 1_000), *[7_298] * 40, *[0] * 100]

    attribute = drafted_attribute(values)

    assert fields(attribute, "spikes", "remark") == ("integer", (), "")


def test_a_drafted_schema_is_refused_with_the_reason() -> None:
    schema = Schema.from_yaml(draft_schema(pa.table({"a": [1, 2, 3] * 50})))

    with pytest.raises(SchemaError, match="can belong to one person"):
        schema.require_public()


def test_the_number_of_rows_is_not_in_the_draft() -> None:
    text = draft_schema(pa.table({"a": ["x", "y", "y"] * 4_567}))

    assert "expected_size:\n" in text
    assert "13701" not in text
    assert "13,701" not in text
    assert "4567" not in text


def test_the_draft_of_the_example_comes_near_its_own_schema() -> None:
    table = people(5_000)
    drafted = Schema.from_yaml(draft_schema(table))
    alike = {"ordinal": "categorical", "integer": "ordinal"}

    for mine in people_schema():
        theirs = drafted[mine.name]

        assert theirs.kind in {mine.kind, alike.get(mine.kind)}, mine.name


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=5), st.integers(0, 3))
def test_round_bounds_contain_all_values_and_equal_none_except_zero(values: list[float], places: int) -> None:
    rounded = [round(value, places) for value in values]

    low, high = round_bounds(min(rounded), max(rounded), places)

    assert low <= min(rounded)
    assert high >= max(rounded)
    assert low == 0 or low < min(rounded)
    assert high == 0 or high > max(rounded)


@pytest.mark.filterwarnings("ignore:The table has no rows")
@given(
    st.lists(
        st.one_of(
            st.none(),
            st.text(max_size=6),
            st.integers().map(str),
            st.floats(allow_infinity=False).map(repr),
            st.dates().map(str),
        ),
        max_size=30,
    )
)
def test_a_draft_of_any_column_is_a_valid_schema_that_the_column_fits(values: list[str | None]) -> None:
    table = pa.table({"a": pa.array(values, pa.string())})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about codes for missing
        schema = Schema.from_yaml(draft_schema(table))
    if not schema.measured_attributes or not schema["a"].coded:
        return

    fit = check_table(schema, table)

    assert fit.attributes[0].misplaced == 0


_TYPES = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float16(): st.floats(width=16).map(np.float16),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.decimal32(9, 4): st.decimals(-9_999, 9_999, places=4),
    pa.decimal64(18, 0): st.decimals(-(10**17), 10**17, places=0),
    pa.decimal256(76, 38): st.decimals(-(10**37), 10**37, places=9),
    pa.date32(): st.integers(-(2**31), 2**31 - 1),
    pa.date64(): st.dates(),
    pa.timestamp("s"): st.integers(-(2**63), 2**63 - 1),
    pa.timestamp("ns", "Nowhere/Bogus"): st.integers(-(2**63), 2**63 - 1),
    pa.time64("ns"): st.times(),
    pa.string(): st.text(max_size=4)
    | st.sampled_from(["missing", "inf", "1e400", "9" * 3999, "1e-99999999999999999999"]),
    pa.string_view(): st.text(max_size=4),
    pa.binary(): st.binary(max_size=3),
    pa.binary(2): st.binary(min_size=2, max_size=2),
    pa.null(): st.none(),
}


@st.composite
def typed_columns(draw: st.DrawFn) -> pa.Array:
    """Columns of any type whose cells are single values, some of them dictionaries, each value once or often."""
    kind = draw(st.sampled_from(list(_TYPES)))
    values = draw(st.lists(st.none() | _TYPES[kind], max_size=8)) * draw(st.sampled_from([1, 3, 50]))
    array = pa.array(values, kind)
    if draw(st.booleans()) and not pa.types.is_null(kind):
        return pa.DictionaryArray.from_arrays(pa.array(range(len(array)), pa.int32()), array)
    return array


@pytest.mark.filterwarnings("ignore:The table has no rows")
@given(st.lists(typed_columns(), min_size=1, max_size=3))
def test_a_draft_of_any_typed_table_loads(columns: list[pa.Array]) -> None:
    rows = min(map(len, columns))
    table = pa.table({f"c{index}": column.slice(0, rows) for index, column in enumerate(columns)})

    schema = Schema.from_yaml(draft_schema(table))

    assert schema.names == tuple(table.column_names)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "100", "1000", "inf"], {"kind": "integer", "low": 0, "high": 1100}),
        ([1.0, 100.0, 1000.0, float("inf")], {"kind": "integer", "low": 0, "high": 1100}),
        (["9" * 3999, "1", "2"] * 3, {"kind": "categorical", "values": ("1", "2", "9" * 3999)}),
        (["1", "1e-9999999999999999999999"], {"kind": "ordinal", "values": (0, 1)}),
        ([1e308, -1e308, 1.5], {"kind": "categorical"}),
        (["1", "1.0", "100", "10000"], {"kind": "categorical", "values": (1, 100, 10_000)}),
        (["1e3", "1000", "2e3"], {"kind": "categorical", "values": (1000, 2000)}),
        ([*range(0, 400_000, 1_000), *[float("inf")] * 200], {"kind": "integer", "spikes": ()}),
        (["missing", None, "a"] * 5, {"kind": "categorical", "values": ("a",), "missing": ("", "missing")}),
        (["missing", "a"] * 5, {"kind": "categorical", "values": ("a", "missing"), "missing": False}),
        (["missing", None] * 5, {"kind": "open", "missing": ("", "missing")}),
        ([-6 * 10**15, 6 * 10**15, *range(300)], {"kind": "open"}),
    ],
)
def test_far_and_odd_cells_do_not_break_a_draft(values: list[Any], expected: dict[str, Any]) -> None:
    attribute = drafted_attribute(values)

    assert fields(attribute, *[key for key in expected if key != "kind"]) == tuple(expected.values())


def test_long_codes_keep_all_their_digits() -> None:
    codes = [9_007_199_254_740_993 + number * 10**6 for number in range(30)]

    attribute: Any = drafted_attribute([str(code) for code in codes] * 2)

    assert attribute.values == tuple(codes)


def test_a_table_of_keys_alone_is_drafted_as_open() -> None:
    text = draft_schema(pa.table({"a": LETTERS}))

    assert Schema.from_yaml(text)["a"].kind == "open"
    assert "if it is a key, make it kind: identifier" in text


def test_mixed_python_objects_are_drafted() -> None:
    frame = pd.DataFrame({"a": pd.Series([1, "x", None, dt.date(2000, 1, 1)] * 50, dtype=object)})

    assert Schema.from_yaml(draft_schema(frame))["a"].kind == "categorical"


def test_a_column_without_a_name_or_there_twice_is_refused() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    nameless = pa.Table.from_arrays([pa.array([1])], names=[""])

    with pytest.raises(SourceError, match=r"2 columns 'a' \(columns 1, 2\)"):
        draft_schema(table)
    with pytest.raises(SourceError, match="column 1 has no name"):
        draft_schema(nameless)


def test_a_key_that_repeats_is_pointed_out() -> None:
    text = draft_schema(pa.table({"patient_id": [f"P{i % 150}" for i in range(400)], "b": [1, 2] * 200}))

    assert Schema.from_yaml(text)["patient_id"].kind == "identifier"
    assert "privacy_unit: {id: patient_id, max_rows: 3}" in Schema.from_yaml(text)["patient_id"].remark


def test_columns_of_lists_are_left_out_and_named() -> None:
    text = draft_schema(pa.table({"tags": [[1], [2]], "b": [1, 2]}))

    assert "not single values: tags." in text
    assert Schema.from_yaml(text).names == ("b",)
    with pytest.raises(SourceError, match="no column whose cells are single values"):
        draft_schema(pa.table({"tags": [[1], [2]]}))


def test_a_file_without_names_is_pointed_out() -> None:
    text = draft_schema(pa.table({"39": [f"{i},5" for i in range(200)], "b": [1, 2] * 100}))

    assert "does the first line of the file hold the names?" in text


# ── remarks ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("values", "kind", "codes"),
    [
        ([1, 2, 3, 4, 5, -9] * 50, "ordinal", ("-9",)),
        ([1, 2, 3, 4, 5, 8, 9] * 50, "ordinal", ("8", "9")),
        ([1, 2, 3, 4, 5, None, 99] * 50, "ordinal", ("", "99")),
        ([*range(80), *[999] * 20] * 3, "integer", ("999",)),
        ([*range(80), *[-9] * 20, *[-8] * 3] * 3, "integer", ("-8", "-9")),
        ([*range(0, 400_000, 1_000), *[999_998] * 40], "integer", ("999998",)),
        ([*(i / 4 for i in range(200)), *[-1.0] * 30], "real", ("-1",)),
        (["1", "2", "9", "9.0"] * 50, "ordinal", ("9", "9.0")),
    ],
)
def test_codes_of_missing_values_are_declared_missing_and_asked_about(values: Any, kind: str, codes: Any) -> None:
    table = pa.table({"a": values, "b": [True, False] * (len(values) // 2) + [True] * (len(values) % 2)})
    schema = Schema.from_yaml(draft_schema(table))

    assert fields(schema["a"], "missing") == (kind, codes)
    assert "looks like a code for no answer" in schema["a"].remark
    assert check_table(schema, table).attributes[0].misplaced == 0


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(list(range(1, 10)) * 20, id="a scale up to 9"),
        pytest.param(list(range(11)) * 20, id="a scale up to 10"),
        pytest.param(list(range(-9, 31)) * 10, id="temperatures"),
        pytest.param([*list(range(90)) * 5, 99], id="one person aged 99"),
        pytest.param(list(range(100)) * 5, id="all ages"),
        pytest.param([8, 9] * 50, id="nothing but codes"),
        pytest.param([-i / 4 for i in range(400)], id="negative amounts"),
    ],
)
def test_numbers_that_belong_to_the_range_are_not_taken_for_codes(values: list[Any]) -> None:
    assert fields(drafted_attribute(values), "missing", "remark")[1:] == (False, "")


@pytest.mark.parametrize(
    ("name", "values", "kind", "remark"),
    [
        ("note", [f"the patient came on day {i} and left" for i in range(150)] * 2, "open", "free text"),
        ("ward", [f"W{i}" for i in range(150)] * 2, "open", ""),
        ("ward", [f"W{i // 2 if i < 80 else i}" for i in range(400)], "open", "hardly any text"),
        ("surname", [f"W{i}" for i in range(150)] * 3, "open", "may name persons"),
        ("name", [f"Name {i}, A." for i in range(40)] * 5, "categorical", "may name persons"),
        ("zip", [10_000 + 7 * (i % 90) for i in range(300)], "integer", "look like codes"),
        ("a", [None] * 200, "open", "all cells are empty"),
        ("a", ["DE"] * 200, "categorical", "all cells are the same"),
        ("a", ["DE", None] * 100, "categorical", ""),
        ("a", ["03/04/2016", "05/06/2016"] * 100, "datetime", "can also be read as %d/%m/%Y"),
        ("a", ["03/04/2016", "05/16/2016"] * 100, "datetime", ""),
        ("a", ["03.04.2016", "2016-05-16", "1 May 2021"] * 100, "datetime", "in several formats"),
        ("mail", [f"p{i % 150}@example.org" for i in range(400)], "identifier", ""),
        ("telefon", [f"030 {i % 150:06}" for i in range(400)], "identifier", ""),
        ("iban", [f"DE02 1203 0000 0000 2020 {i % 150:02}" for i in range(400)], "identifier", ""),
    ],
)
def test_a_remark_asks_what_only_a_person_can_decide(name: str, values: Any, kind: str, remark: str) -> None:
    attribute = drafted_attribute(values, name)

    assert attribute.kind == kind
    assert (remark in attribute.remark) if remark else (attribute.remark == "")


def test_columns_add_up_to_recognized_ones_questions_and_those_left_out() -> None:
    table = pa.table(
        {
            "id": list(range(300)),
            "tags": [[1]] * 300,
            "empty": pa.nulls(300),
            "sex": ["F", "M"] * 150,
            "copy": [f"K{i // 2}" for i in range(300)],
            "again": [f"K{i // 2}" for i in range(300)],
        }
    )

    draft = diagnose.draft_schema(table)

    assert (draft.columns, draft.recognized) == (6, 2)
    assert set(draft.questions) == {"empty", "again"}
    assert dict(draft.left_out) == {"tags": "its cells are not single values", "id": "every value occurs once"}
    assert "K1" not in repr(draft)


def test_numbers_that_repeat_another_column_are_pointed_out() -> None:
    numbers = [i * 37 % 1_009 for i in range(300)]

    draft = diagnose.draft_schema(
        pa.table({"a": numbers, "b": [str(number) for number in numbers], "c": numbers[::-1]})
    )

    assert draft.questions == {"b": "it repeats a in every row; remove one of the two entries"}


def test_the_dataset_is_named_after_its_file(tmp_path: Path) -> None:
    (tmp_path / "people.2024.csv").write_text("a\n1\n2\n", "utf-8")

    assert Schema.from_yaml(draft_schema(tmp_path / "people.2024.csv")).dataset == "people"
    assert Schema.from_yaml(draft_schema(str(tmp_path / "*.csv"))).dataset == ""
    assert Schema.from_yaml(draft_schema(pa.table({"a": [1, 2]}))).dataset == ""


# ── types that declare their levels ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.Categorical(["lo", "hi", None] * 9, ["lo", "mid", "hi", "never"], ordered=True)),
        pl.Series(["lo", "hi", None] * 9, dtype=pl.Enum(["lo", "mid", "hi", "never"])),
        pa.DictionaryArray.from_arrays(
            pa.array([0, 2, None] * 9, pa.int8()), ["lo", "mid", "hi", "never"], ordered=True
        ),
    ],
    ids=["pandas", "polars", "arrow"],
)
def test_ordered_levels_come_from_the_type_with_unused_ones(column: Any) -> None:
    frames = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
    frame = frames[type(column).__module__.partition(".")[0]]({"grade": column})

    attribute: Any = Schema.from_yaml(draft_schema(frame))["grade"]

    assert fields(attribute, "values", "missing") == ("ordinal", ("lo", "mid", "hi", "never"), True)


def test_unused_categories_are_kept_without_an_order_unless_they_may_be_those_of_another_column() -> None:
    frame = pd.DataFrame({"a": pd.Categorical(["y", "x"] * 50, ["y", "x", "never"])})
    polars = pl.DataFrame({"a": pl.Series(["y", "x", "never"], dtype=pl.Categorical)})[:2]

    assert fields(Schema.from_yaml(draft_schema(frame))["a"], "values") == ("categorical", ("y", "x", "never"))
    assert fields(Schema.from_yaml(draft_schema(polars))["a"], "values") == ("categorical", ("x", "y"))


def test_words_for_missing_among_ordered_levels_keep_the_order() -> None:
    frame = pd.DataFrame({"a": pd.Categorical(["1", "3", "k.A."] * 20, ["3", "2", "1", "k.A."], ordered=True)})
    with pytest.warns(UserWarning, match=r"Read as missing in 1 column: k\.A\."):
        attribute = Schema.from_yaml(draft_schema(frame))["a"]

    assert fields(attribute, "values", "missing") == ("ordinal", (3, 2, 1), True)


def test_whole_numbers_as_levels_stay_numbers() -> None:
    frame = pd.DataFrame({"a": pd.Categorical([3, 1] * 50, [1, 2, 3], ordered=True)})

    assert fields(Schema.from_yaml(draft_schema(frame))["a"], "values") == ("ordinal", (1, 2, 3))


# ── blocks of columns ───────────────────────────────────────────────────────────────────────────────────────────────


def test_columns_with_the_same_answers_are_described_once() -> None:
    answers = {f"question_{i:02}": [1, 2, 3, 4 + (i != 2)] * 50 for i in range(1, 5)}
    codes = {"question_05": [1, 2, 3, 5, -9] * 40}
    text = draft_schema(pa.table({"sex": ["F", "M"] * 100, **answers, **codes}))

    schema = Schema.from_yaml(text)

    assert text.count("values: [1, 2, 3, 4, 5]") == 1
    assert "question_05: *question\n" in text
    assert {fields(schema[name], "values", "missing") for name in schema.names[1:]} == {
        ("ordinal", (1, 2, 3, 4, 5), ("-9",))
    }


def test_columns_with_other_answers_or_names_have_their_own_entries() -> None:
    columns = {"q1": ["a", "b"] * 50, "q2": ["c", "d"] * 50, "q3": ["e", "f"] * 50, "r": ["a", "b"] * 50}

    assert "*" not in draft_schema(pa.table(columns)).partition("\nattributes")[2]


def test_every_fresh_entry_is_known_as_unchanged() -> None:
    entries = diagnose.draft_schema(people(1_000)).entries()

    assert [entry.unchanged for entry in entries] == [states_facts(entry.fields) for entry in entries]
    assert any(entry.unchanged for entry in entries)


# ── relations ───────────────────────────────────────────────────────────────────────────────────────────────────────


def relations(**columns: Any) -> tuple[Schema, tuple[str, ...]]:
    draft = diagnose.draft_schema(pa.table(columns))
    schema = draft.to_schema()
    assert all(entry.remark and entry.provenance == "data" for entry in (*schema.derive, *schema.rules))
    return schema, draft.proposals


def test_a_hierarchy_of_lists_is_proposed_from_its_finest_column() -> None:
    city = RNG.integers(0, 12, 600)
    schema, proposals = relations(
        region=[("east", "west")[c // 6] for c in city],
        city=[f"C{c:02}" for c in city],
        district=[f"D{c // 3}" for c in city],
        sex=[("F", "M")[i] for i in RNG.integers(0, 2, 600)],
    )

    assert proposals == ("region follows from city", "district follows from city")
    assert dict(schema.derive[1].mapping) == {f"C{c:02}": f"D{c // 3}" for c in range(12)}


def test_of_two_columns_with_the_same_content_the_second_is_derived() -> None:
    sex = RNG.integers(0, 2, 400)

    _, proposals = relations(sex=[("F", "M")[s] for s in sex], geschlecht=[("w", "m")[s] for s in sex])

    assert proposals == ("geschlecht follows from sex",)


def test_groups_of_a_number_are_derived_by_ranges() -> None:
    age = [*range(98)] * 10

    schema, _ = relations(age=age, group=["minor" if a < 18 else "adult" if a < 65 else "senior" for a in age])

    assert schema.derive[0].mapping == (("0..17", "minor"), ("18..64", "adult"), ("65..100", "senior"))


def test_sums_and_orders_are_proposed() -> None:
    wages, rents, other = RNG.integers(0, 5_000, (3, 500)).tolist()
    admitted = [dt.date(2020, 1, 1) + dt.timedelta(int(day)) for day in RNG.integers(0, 700, 500)]
    left = [day + dt.timedelta(int(days)) for day, days in zip(admitted, RNG.integers(0, 30, 500), strict=True)]

    _, proposals = relations(
        other=other,
        wages=wages,
        income=[w + r for w, r in zip(wages, rents, strict=True)],
        rents=rents,
        left=left,
        admitted=admitted,
        bp_max=[w + 1 for w in wages],
        bp_min=[w // 2 for w in wages],
    )

    assert proposals == (
        "income is the sum of wages, rents",
        "admitted is never above left",
        "bp_min is never above bp_max",
    )


def test_columns_that_are_independent_or_break_a_relation_once_get_no_proposal() -> None:
    city = RNG.integers(0, 12, 600).tolist()
    region = [("east", "west")[c // 6] for c in city]
    region[17] = "west" if region[17] == "east" else "east"

    _, proposals = relations(city=[f"C{c:02}" for c in city], region=region, n=RNG.integers(0, 5_000, 600).tolist())

    assert proposals == ()


def test_a_table_without_rows_is_drafted() -> None:
    with pytest.warns(UserWarning, match="The table has no rows"):
        text = draft_schema(pa.table({"a": pa.array([], pa.string())}))

    assert Schema.from_yaml(text)["a"].kind == "open"
    assert text.startswith(f"# {NO_ROWS_WARNING}\n")
    assert NO_ROWS_WARNING not in draft_schema(pa.table({"a": pa.array([None], pa.string())}))


def test_only_so_many_rows_are_looked_at() -> None:
    table = pa.table({"a": ["x"] * 70_000 + ["y"] * 70_000})

    attribute: Any = Schema.from_yaml(draft_schema(table, rows=1_000))["a"]

    assert attribute.values == ("x",)
