from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as papq

from dpsyn.diagnose import UnitCheck, check_table
from dpsyn.schema import Categorical, Schema


def test_rows_that_break_a_rule_are_counted_rule_by_rule() -> None:
    schema = Schema.from_yaml(
        "dpsyn_schema: 1\nattributes:\n  a: {kind: integer, low: 0, high: 9}\n  b: {kind: integer, low: 0, high: 9}\n"
        "rules:\n  - {rule: order, attributes: [a, b]}\n  - {rule: impossible, where: {a: 0..3, b: 9}}\n"
        "  - {rule: total, count: 4}\n"
    )

    fit = check_table(schema, pa.table({"a": [1, 5, 6, 7], "b": [9, 4, 6, 2]}))

    assert fit.rule_violations == {1: 2, 2: 1}
    assert fit.skipped == ("rule 3",)


def test_numbers_that_lost_their_leading_zeros_are_remarked_on(tmp_path: Path) -> None:
    papq.write_table(pa.table({"ward": [1, 7]}), tmp_path / "wards.parquet")
    schema = Schema(attributes=(Categorical(name="ward", values=("001", "007")),))

    fit = check_table(schema, tmp_path / "wards.parquet")

    (remark,) = fit.remarks
    assert "column 'ward' holds int64, which has no leading zeros, but the schema lists '001'" in remark
    assert not fit.problems


def test_irregular_lines_are_remarked_on_file_by_file(tmp_path: Path) -> None:
    """A cell of more than 131,072 characters, which Python's csv module refuses, and a ragged line."""
    (tmp_path / "a.csv").write_text("ward,b\n1,2\n" + "x" * 200_000 + ",1\n3\n")
    (tmp_path / "b.csv").write_text("ward,b\n1,2\n")
    schema = Schema(attributes=(Categorical(name="ward", values=("1", "3")),))

    fit = check_table(schema, str(tmp_path / "*.csv"))

    ragged, long = fit.remarks
    assert ragged.startswith(f"{tmp_path / 'a.csv'}: line 4 has more or fewer cells than the first line")
    assert long.startswith(f"{tmp_path / 'a.csv'}: line 3 has a cell of more than 65,536 bytes")
    assert (fit.rows, fit.attributes[0].inside) == (4, 3)


def test_texts_of_open_attributes_are_counted_by_how_often_they_occur() -> None:
    schema = Schema.from_yaml("dpsyn_schema: 1\nattributes:\n  a: {kind: open, missing: ['?']}\n")

    (entry,) = check_table(schema, pa.table({"a": ["x", " x", "y", None, "?", "z", "x", "y"]})).open

    assert entry.counts == (3, 2, 1)
    assert [entry.count_listed(rows) for rows in (1, 2, 4)] == [(3, 6), (2, 5), (0, 0)]


def test_persons_with_more_rows_than_the_privacy_unit_allows_are_counted() -> None:
    schema = Schema.from_yaml(
        "dpsyn_schema: 1\nprivacy_unit: {id: who, max_rows: 2}\nattributes:\n"
        "  who: {kind: identifier}\n  a: {kind: boolean}\n"
    )
    who = ["p", "p", "p", "p ", "q", "q", "r", None, ""]

    fit = check_table(schema, pa.table({"who": who, "a": [True] * 9}))

    assert fit.unit == UnitCheck("who", max_rows=2, persons=3, exceeding=1, dropped_rows=2, rows_without_id=2)
    assert fit.identifiers == ("who",)
