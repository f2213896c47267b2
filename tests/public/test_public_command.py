"""Public rows on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.csv as pacsv
import pytest

import dpsyn
from dpsyn.cli.main import run as run_command
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
    assert "is given twice" in output


def test_the_private_table_is_refused_in_python_too(folder: Path) -> None:
    table, path = people(1), folder / "private.csv"

    for data, public in ((table, table), (path, str(path))):
        with pytest.raises(dpsyn.UserError, match="the private table itself"):
            dpsyn.measure(data, schema(), epsilon=1, public=public, public_because=BECAUSE)
