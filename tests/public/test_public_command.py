"""Public rows on the command line."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pyarrow.csv as pacsv
import pytest

import dpsyn
from dpsyn.cli.main import run as run_command
from dpsyn.public import open_public
from tests.recipes.test_public_prior import BECAUSE, people, schema

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pacsv.write_csv(people(1), tmp_path / "private.csv")
    pacsv.write_csv(people(2), tmp_path / "public.csv")
    (tmp_path / "schema.yaml").write_text(schema("people").to_yaml())
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command with the schema; returns the exit code and all that was printed."""

    def call(*arguments: str) -> tuple[int, str]:
        code = run_command([*arguments, "-s", str(folder / "schema.yaml")])
        printed = capsys.readouterr()
        return code, " ".join((printed.out + printed.err).split())

    return call


def test_measure_takes_public_rows_and_says_how_far_they_are_trusted(folder: Path, run: Run) -> None:
    release = ("measure", str(folder / "private.csv"), "--epsilon", "0.5", "-o", str(folder / "s.dpsyn"))
    public = ("--public", str(folder / "public.csv"))

    code, output = run(*release, *public)
    assert (code, "need a reason" in output) == (2, True)

    code, output = run(*release, *public, "--public-because", BECAUSE)
    assert code == 0, output
    assert "Public rows (1,500) were a prior" in output
    certificate = dpsyn.Synopsis.load(folder / "s.dpsyn").certificates[0]
    assert certificate is not None
    assert certificate.recipe["public"]["attributes"] == ["a", "b", "c", "d"]


def test_forecast_tells_what_public_rows_bring(folder: Path, run: Run) -> None:
    code, output = run(
        "forecast", "--epsilon", "0.3", "--rows", "500", "--public", str(folder / "public.csv"), "--json"
    )

    assert code == 0, output
    assert json.loads(output)["public_rows"] == 1_500


def test_the_private_table_itself_is_no_public_data(folder: Path, run: Run) -> None:
    code, output = run(
        *("measure", str(folder / "private.csv"), "--epsilon", "1", "-o", str(folder / "s.dpsyn")),
        *("--public", str(folder / "private.csv"), "--public-because", BECAUSE),
    )

    assert code == 2
    assert "the public rows are the private table itself" in output


def test_the_private_table_is_refused_in_python_too(folder: Path) -> None:
    table, path = people(1), folder / "private.csv"

    for data, public in ((table, table), (path, str(path))):
        with pytest.raises(dpsyn.UserError, match="the private table itself"):
            dpsyn.measure(data, schema(), epsilon=1, public=public, public_because=BECAUSE)


@pytest.mark.parametrize(
    ("data", "public"),
    [
        ("private.csv", "linked.csv"),
        ("private.csv", "symbolic.csv"),
        ("private.csv", "priv*.csv"),
        ("parts/*.csv", "parts/one.csv"),
        ("parts/*.csv", "parts/*.c?v"),
        ("parts/one.csv", "private.csv"),
    ],
)
def test_the_private_table_is_refused_under_another_name(folder: Path, data: str, public: str) -> None:
    os.link(folder / "private.csv", folder / "linked.csv")
    os.symlink(folder / "private.csv", folder / "symbolic.csv")
    (folder / "parts").mkdir()
    os.link(folder / "private.csv", folder / "parts" / "one.csv")
    pacsv.write_csv(people(3), folder / "parts" / "two.csv")

    with pytest.raises(dpsyn.UserError, match="the private table itself"):
        dpsyn.measure(f"{folder}/{data}", schema(), 1, public=f"{folder}/{public}", public_because=BECAUSE)


@pytest.mark.parametrize(
    "public", ["release/synthetic.csv", "release/*.csv", "link.csv", "parts/synthetic", "parts/*/*"]
)
def test_rows_of_an_earlier_release_are_refused_under_another_name(folder: Path, public: str) -> None:
    """Together with the new release they cost what only the ledger adds up."""
    ledger = dpsyn.Ledger.create(folder / "ledger.db")
    released = dpsyn.measure(folder / "private.csv", schema("people"), 1, ledger=ledger, recipe="independent")
    released.write(f"{folder}/release/", 50, seed=1)
    os.symlink(folder / "release" / "synthetic.csv", folder / "link.csv")
    shutil.copytree(folder / "release", folder / "parts")
    (folder / "parts" / "synthetic").mkdir()
    (folder / "parts" / "synthetic.csv").rename(folder / "parts" / "synthetic" / "part-0.csv")

    with pytest.raises(dpsyn.LedgerError, match="is a release of the dataset 'people' itself"):
        open_public(f"{folder}/{public}", schema("people"), BECAUSE, ledger)


def test_a_public_file_that_is_written_in_another_way_is_read_by_a_schema_of_its_own(folder: Path, run: Run) -> None:
    """A separator, a decimal comma, dates, a code for missing and codes of values that the private file has not."""
    (folder / "schema.yaml").write_text(
        """
        dpsyn_schema: 1
        dataset: visits
        attributes:
          sex: {kind: categorical, values: [female, male]}
          weight: {kind: real, low: 0, high: 200, decimals: 1, missing: true}
          admitted: {kind: datetime, start: 2024-01-01, end: 2024-12-31}
          ward: {kind: open}
        """
    )
    (folder / "public.yaml").write_text(
        """
        dpsyn_schema: 1
        file: {separator: ";", decimal: ",", encoding: cp1252}
        attributes:
          gender: {kind: categorical, values: [1, 2]}
          sex: {kind: categorical, values: [female, male]}
          weight: {kind: real, low: 0, high: 200, decimals: 1, missing: "-9"}
          admitted: {kind: datetime, start: 2024-01-01, end: 2024-12-31, format: "%d.%m.%Y"}
          ward: {kind: open}
        derive:
          sex: {from: gender, mapping: {1: female}, otherwise: male}
        """
    )
    written = [(1, "61,5", "24.12.2024", "Süd"), (2, "80,1", "01.02.2024", "Nord"), (2, "-9", "01.02.2024", "Süd")]
    lines = ["gender;weight;admitted;ward", *(";".join(map(str, row)) for row in written * 100)]
    (folder / "public.csv").write_text("\n".join(lines), encoding="cp1252")
    (folder / "private.csv").write_text("sex,weight,admitted,ward\n" + "male,80.1,2024-02-01,Nord\n" * 300)

    private, own = (dpsyn.Schema.load(folder / name) for name in ("schema.yaml", "public.yaml"))
    table = open_public(folder / "public.csv", private, BECAUSE, own_schema=own).table

    assert table.slice(0, 3).to_pylist() == [
        {"sex": "female", "weight": 61.5, "admitted": date(2024, 12, 24), "ward": "Süd"},
        {"sex": "male", "weight": 80.1, "admitted": date(2024, 2, 1), "ward": "Nord"},
        {"sex": "male", "weight": None, "admitted": date(2024, 2, 1), "ward": "Süd"},
    ]

    release = ("measure", str(folder / "private.csv"), "--epsilon", "1", "-o", str(folder / "s.dpsyn"))
    public = ("--public", str(folder / "public.csv"), "--public-because", BECAUSE)
    code, output = run(*release, *public, "--public-schema", str(folder / "public.yaml"))
    assert code == 0, output
    certificate = dpsyn.Synopsis.load(folder / "s.dpsyn").certificates[0]
    assert certificate is not None
    assert certificate.recipe["public"]["attributes"] == ["sex", "weight", "admitted", "ward"]
    assert any("read by a schema of its own, SHA-256" in fact for fact in certificate.declared_public)


def test_a_schema_of_public_rows_needs_public_rows_of_its_own(folder: Path, run: Run) -> None:
    release = ("measure", str(folder / "private.csv"), "--epsilon", "1", "-o", str(folder / "s.dpsyn"))
    own = ("--public-schema", str(folder / "own.yaml"))
    (folder / "own.yaml").write_text("dpsyn_schema: 1\nattributes:\n  z: {kind: categorical, values: [x]}\n")

    code, output = run(*release, *own)
    assert (code, "none are given" in output) == (2, True)

    code, output = run(*release, *own, "--public", str(folder / "public.csv"), "--public-because", BECAUSE)
    assert (code, "has no column 'z'" in output or "z" in output) == (2, True), output

    dpsyn.measure(people(2), schema("others"), epsilon=1, recipe="independent").save(folder / "others.dpsyn")
    code, output = run(*release, *own, "--public", str(folder / "others.dpsyn"), "--public-because", BECAUSE)
    assert (code, "holds its schema" in output) == (2, True), output
