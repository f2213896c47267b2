"""Results of R and Stata in a CSV file, and the file that describes replicates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpsyn
from dpsyn.analysis import ReplicatesRecord, load_record
from dpsyn.errors import SourceError, UserError

BROOM = """"","replicate","term","estimate","std.error","statistic"
"1",1,"(Intercept)",3.2,0.1,32
"2",1,"age",0.2,0.01,20
"1",2,"(Intercept)",3.3,0.3,33
"2",2,"age",2.1e-1,0.01,21
"1",3,"(Intercept)",3.1,0.2,31
"2",3,"age",0.19,0.01,19
"""


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "rows-replicates.json"
    ReplicatesRecord(count=3, rows=100, uncertainty="all", private_rows=50.0, seed=7, tables=("ä.csv",)).save(path)
    return path


def write(folder: Path, text: str) -> Path:
    path = folder / "results.csv"
    path.write_bytes(text.encode())
    return path


def test_results_of_broom_are_pooled(tmp_path: Path, record: Path) -> None:
    pooled = dpsyn.pool_results_file(write(tmp_path, BROOM), record)

    assert pooled.terms == ("(Intercept)", "age")
    np.testing.assert_allclose(pooled.estimate, [3.2, 0.2])
    np.testing.assert_allclose(pooled.standard_error, [0.1 * np.sqrt(4 / 3), 0.01 * np.sqrt(4 / 3)])
    assert pooled.sampling_variance == pytest.approx(np.array([(0.01 + 0.09 + 0.04) / 3 * 2, 2e-4]))


@pytest.mark.parametrize(
    "text",
    [
        BROOM.replace(",", ";").replace(".", ",").replace("std,error", "std.error"),
        BROOM.replace(",", "\t"),
        BROOM.replace("\n", "\r\n"),
        "\ufeff" + BROOM,
        BROOM.replace("std.error", "STD_ERROR") + "\n\n",
    ],
    ids=["semicolons and decimal commas", "tabs", "Windows", "byte order mark", "Stata"],
)
def test_spellings_of_csv_are_read_alike(text: str, tmp_path: Path, record: Path) -> None:
    plain = dpsyn.pool_results_file(write(tmp_path, BROOM), record).to_arrow()

    assert dpsyn.pool_results_file(write(tmp_path, text), record).to_arrow().equals(plain)


def test_variances_may_stand_instead_of_standard_errors(tmp_path: Path, record: Path) -> None:
    text = "replicate,term,estimate,variance\n1,a,1,0.04\n2,a,2,0.02\n"

    pooled = dpsyn.pool_results_file(write(tmp_path, text), record)

    assert pooled.sampling_variance == pytest.approx(np.array([0.06]))
    assert "There are results of 2 of 3 replicates." in str(pooled)


def test_without_a_record_the_result_says_what_is_assumed(tmp_path: Path) -> None:
    pooled = dpsyn.pool_results_file(write(tmp_path, "replicate,term,estimate\n1,a,1\n2,a,2\n"))

    assert pooled.sampling_share is None
    assert "that they carry the privacy noise is assumed" in str(pooled)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no file of results: it needs the columns replicate, term and estimate"),
        ("age,sex\n1,2\n", "is no file of results"),
        ("replicate,term,estimate\n", "has no results"),
        ("replicate,term,estimate\n1,a,1\n", "there is 1 estimate"),
        ("replicate,term,estimate\n1,a,1\n2,b,2\n", "replicate 2 has no term 'a'"),
        ("replicate,term,estimate\n1,a,1\n2,a,2\n2,b,2\n", "replicate 1 has no term 'b'"),
        ("replicate,term,estimate\n1,a,1\n1,a,2\n", "line 3: the term 'a' is there twice"),
        ("replicate,term,estimate\n1,a,NA\n", "line 2: 'NA' is not a finite number"),
        ("replicate,term,estimate\n1,a,inf\n", "line 2: 'inf' is not a finite number"),
        ("replicate,term,estimate\n1,a\n", "line 2: 2 fields instead of 3"),
        ("replicate,term,estimate,std.error\n1,a,1,-1\n", "line 2: std.error is negative"),
        ("replicate,term,estimate\n1,a,1\n2,a,2\n3,a,1\n4,a,1\n", "there are 4 estimates of 3 replicates"),
    ],
)
def test_a_bad_file_of_results_is_refused_with_its_line(text: str, message: str, tmp_path: Path, record: Path) -> None:
    with pytest.raises(UserError, match=message):
        dpsyn.pool_results_file(write(tmp_path, text), record)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes("replicate,term,estimate\n1,größe,1\n".encode("latin-1"))

    with pytest.raises(SourceError, match="not text in UTF-8"):
        dpsyn.pool_results_file(tmp_path / "latin.csv")
    with pytest.raises(SourceError, match="cannot be read: no such file"):
        dpsyn.pool_results_file(tmp_path / "none.csv")
    with pytest.raises(SourceError, match="cannot be read: is a directory"):
        dpsyn.pool_results_file(tmp_path)
    results: Any = {"a": 1}
    with pytest.raises(UserError, match="give the path of a CSV file"):
        dpsyn.pool_results_file(results)


# ── the file that describes replicates ───────────────────────────────────────────────────────────────────────


def test_a_record_is_read_as_it_was_written(record: Path) -> None:
    found = load_record(record)

    assert (found.count, found.rows, found.private_rows, found.seed) == (3, 100, 50.0, 7)
    assert found.tables == ("ä.csv",)
    assert found.sampling_factor == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "does not describe replicates; give the file"),
        ("[1]", "does not describe replicates"),
        ('{"a": 1}', "does not describe replicates"),
        ('{"dpsyn_replicates": 2}', "written by a newer version"),
        ('{"dpsyn_replicates": 1}', "is damaged"),
        ('{"dpsyn_replicates": 1, "count": 3, "rows": 1, "uncertainty": "some"}', "is damaged"),
        ('{"dpsyn_replicates": 1, "count": 0, "rows": 1, "uncertainty": "all"}', "is damaged: a number is negative"),
    ],
)
def test_a_damaged_record_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(SourceError, match=message):
        load_record(path)
