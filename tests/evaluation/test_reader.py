"""Two tables become codes of one domain, and what cannot be compared is refused with a reason."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as papq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.errors import SourceError
from dpsyn.evaluation import reader
from dpsyn.evaluation.reader import read_tables
from dpsyn.schema import (
    Boolean,
    Categorical,
    Datetime,
    Derive,
    Identifier,
    Integer,
    Open,
    Real,
    Schema,
    UnitDeclaration,
)
from tests.evaluation.small_tables import LETTERS, few, letters, rows_of, table_of, tables_from_rows

SCHEMA = Schema(
    attributes=(
        Identifier(name="id"),
        Integer(name="age", low=0, high=120, missing=True),
        Categorical(name="sex", values=("F", "M")),
        Categorical(name="group", values=("young", "old")),
    ),
    privacy_unit=UnitDeclaration(id="id", max_rows=2),
    derive=(Derive(name="group", source="sex", mapping=(("F", "young"), ("M", "old"))),),
)
REAL = pa.table({"id": ["a", "b", "c"], "age": [30, None, 200], "sex": ["F", "M", "F"]})
SYNTHETIC = pa.table({"age": [30, 31], "sex": ["M", "M"]})


def test_only_measured_attributes_are_compared() -> None:
    comparison = read_tables(REAL, SYNTHETIC, SCHEMA)

    assert [domain.name for domain in comparison.domains] == ["age", "sex"]
    assert sorted(rows_of(comparison, 0)) == [("120", "F"), ("30", "F"), ("missing", "M")]
    assert sorted(rows_of(comparison, 1)) == [("30", "M"), ("31", "M")]


def test_numbers_keep_their_exact_values() -> None:
    schema = Schema(attributes=(Integer(name="n", low=0, high=10**9), Real(name="r", low=0, high=1, decimals=3)))

    comparison = tables_from_rows(schema, [(123_456_789, 0.125), (0, 1.0)], [(123_456_788, 0.125)])

    assert sorted(rows_of(comparison, 0)) == [("0", "1.000"), ("123456789", "0.125")]
    assert rows_of(comparison, 1) == [("123456788", "0.125")]
    assert [domain.numbers().tolist()[:-1] for domain in comparison.domains] == [  # type: ignore[union-attr]
        [0, 123_456_788, 123_456_789],
        [0.125, 1.0],
    ]


def test_an_open_attribute_has_the_values_of_either_table() -> None:
    schema = Schema(attributes=(Open(name="town", missing=True),))

    comparison = tables_from_rows(schema, [("Ur",), ("Uruk",), (None,), ("missing",)], [("Ur",), ("other",), ("Kish",)])

    (domain,) = comparison.domains
    assert domain.kind == "open"
    assert domain.attribute.labels() == ("Kish", "Ur", "Uruk", "other", "missing")
    assert sorted(rows_of(comparison, 0)) == [("Ur",), ("Uruk",), ("missing",), ("other",)]
    assert sorted(rows_of(comparison, 1)) == [("Kish",), ("Ur",), ("other",)]


def test_an_open_attribute_of_a_stream_is_compared() -> None:
    schema = Schema(attributes=(Open(name="town"), Boolean(name="b")))
    table = pa.table({"town": ["Ur", "Uruk"], "b": [True, False], "more": [1, 2]})

    comparison = read_tables(table.to_reader(), table, schema)

    assert sorted(rows_of(comparison, 0)) == sorted(rows_of(comparison, 1)) == [("Ur", "true"), ("Uruk", "false")]
    assert comparison.real == "the given RecordBatchReader"


def test_too_many_different_texts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_LISTED_VALUES", 2)
    schema = Schema(attributes=(Open(name="town"),))

    with pytest.raises(SourceError, match=r"'town' holds more than 2 different texts.*declare it kind: identifier"):
        tables_from_rows(schema, [("Ur",), ("Uruk",)], [("Kish",)])


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas", "polars", "reader"])
def test_every_kind_of_table_gives_the_same_result(kind: str, tmp_path: Path) -> None:
    table = pa.table(
        {"age": [30, None, 61], "sex": ["F", "M", "F"], "day": [dt.date(2016, 1, day) for day in (1, 2, 9)]}
    )
    schema = Schema(
        attributes=(
            Integer(name="age", low=0, high=99, missing=True),
            Categorical(name="sex", values=("F", "M")),
            Datetime(name="day", start="2016-01-01", end="2016-12-31"),
        )
    )
    pacsv.write_csv(table, tmp_path / "t.csv")
    papq.write_table(table, tmp_path / "t.parquet")
    given: dict[str, Any] = {
        "csv": tmp_path / "t.csv",
        "parquet": str(tmp_path / "t.parquet"),
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
        "reader": table.to_reader(),
    }

    comparison = read_tables(table, given[kind], schema)

    assert rows_of(comparison, 0) == rows_of(comparison, 1)


def test_dictionaries_are_read_by_their_values() -> None:
    frame = pd.DataFrame({"age": pd.Categorical([30, 200, None]), "sex": pd.Categorical(["F", "M", "F"])})

    comparison = read_tables(frame, frame, msgspec.structs.replace(SCHEMA, privacy_unit=None))

    assert sorted(rows_of(comparison, 0)) == [("120", "M"), ("30", "F"), ("missing", "F")]


@few
@given(letters(), letters(), st.randoms(use_true_random=False), st.integers(0, 5))
def test_the_order_of_rows_does_not_matter(real: Any, synthetic: Any, random: Any, seed: int) -> None:
    others = [random.sample(rows, len(rows)) for rows in (real, synthetic)]

    first, second = (
        tables_from_rows(LETTERS, real, synthetic, seed),
        tables_from_rows(LETTERS, others[0], others[1], seed),
    )

    for mine, theirs in zip(first.exact.tables, second.exact.tables, strict=True):
        assert np.array_equal(mine, theirs)


@few
@given(letters(), letters())
def test_baselines_consist_of_real_rows_and_have_the_size_of_the_smaller_table(real: Any, synthetic: Any) -> None:
    comparison = tables_from_rows(LETTERS, real, synthetic)

    rows = min(len(real), len(synthetic))
    assert comparison.exact.rows == (len(real), len(synthetic), rows, rows)
    assert {*rows_of(comparison, 2)} <= {*rows_of(comparison, 0)}
    if rows == len(real):
        for column, shuffled in zip(comparison.exact.tables[0], comparison.exact.tables[3], strict=True):
            assert sorted(column) == sorted(shuffled)


def test_columns_are_shuffled_independently_and_by_the_seed() -> None:
    rows = [("xyz"[n % 3], "pq"[n % 2], n % 10) for n in range(500)]

    first, second = (tables_from_rows(LETTERS, rows, rows, seed) for seed in (0, 1))

    pairs = [(a, n) for a, _, n in rows_of(first, 3)]
    assert len({*pairs}) == 30
    assert len({(a, n) for a, _, n in rows_of(first, 2)}) == 30
    assert not np.array_equal(first.exact.tables[2], second.exact.tables[2])
    assert not np.array_equal(first.exact.tables[3], second.exact.tables[3])


@pytest.mark.parametrize(
    ("synthetic", "complaint"),
    [
        (pa.table({"age": [1]}), "the given Table does not fit the schema: there is no column 'sex'"),
        (pa.table({"Age": [1], "sex": ["F"]}), r"there is no column 'age' \(did you mean 'Age'\?\)"),
        (pa.table([[1], ["F"], [2]], ["age", "sex", "age"]), "there are 2 columns 'age'"),
        (pa.table({"age": [dt.date(2016, 1, 1)], "sex": ["F"]}), "no cell of column 'age' can be read as integer"),
        (pa.table({"age": [[1]], "sex": ["F"]}), "no cell of column 'age' can be read as integer"),
        (SYNTHETIC.slice(0, 0), "the given Table has no rows; there is nothing to compare"),
        (
            pa.table({"age": ["old"], "sex": ["F"]}),
            "no cell of column 'age' can be read as integer, its kind in the schema",
        ),
        (
            pa.table({"age": [1], "sex": ["female"]}),
            "no cell of column 'sex' can be read as categorical, its kind in the schema",
        ),
        (42, "an object of type int is not a table"),
        ("nowhere.csv", "there is no file or folder nowhere.csv"),
    ],
)
def test_a_table_that_cannot_be_compared_is_refused_with_a_reason(synthetic: Any, complaint: str) -> None:
    with pytest.raises(SourceError, match=complaint):
        read_tables(REAL, synthetic, SCHEMA)


def test_the_real_table_may_be_a_query_on_a_database(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "people.duckdb") as connection:
        connection.execute("CREATE TABLE people AS SELECT 30 AS age, 'F' AS sex, 'x' AS id")

    comparison = read_tables(tmp_path / "people.duckdb", SYNTHETIC, SCHEMA, query="people")

    assert rows_of(comparison, 0) == [("30", "F")]


def test_an_empty_real_table_is_refused() -> None:
    with pytest.raises(SourceError, match="has no rows"):
        read_tables(REAL.slice(0, 0), SYNTHETIC, SCHEMA)


def test_a_column_of_only_other_values_is_compared_if_other_is_declared() -> None:
    schema = Schema(attributes=(Categorical(name="c", values=("a",), other="else"),))

    comparison = tables_from_rows(schema, [("zzz",), ("yyy",)], [("else",)])

    assert rows_of(comparison, 0) == [("else",)] * 2


def test_cells_outside_the_schema_are_counted() -> None:
    schema = Schema(
        attributes=(
            Integer(name="n", low=0, high=9),
            Integer(name="m", low=0, high=9, missing=True),
            Categorical(name="c", values=("a", "b"), other="else"),
            Categorical(name="d", values=("a", "b")),
        )
    )
    real = [("-1", "", "z", "a"), ("10", "5", "z", "z"), ("", "x", "a", ""), ("9", "0", "b", "b")]

    comparison = tables_from_rows(schema, real, [("99", "99", "a", "a"), ("1", "1", "b", "b")])

    assert comparison.outside == ((0.75, 0.5), (0.25, 0.5), (0.0, 0.0), (0.5, 0.0))


def test_the_repr_shows_no_rows() -> None:
    comparison = read_tables(REAL, SYNTHETIC, SCHEMA)

    shown = repr(comparison) + repr(comparison.exact) + repr(comparison.domains)
    assert "30" not in re.sub("at 0x[0-9a-f]+", "", shown)  # an address may have these digits


def test_tables_of_one_column_have_one_attribute() -> None:
    schema = Schema(attributes=(Boolean(name="b"),))

    comparison = read_tables(table_of(schema, [(True,)]), table_of(schema, [(False,)]), schema)

    assert (rows_of(comparison, 0), rows_of(comparison, 1)) == ([("true",)], [("false",)])
