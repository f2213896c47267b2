"""A release folder stands for its table and its synopsis, wherever one of them is read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import dpsyn
from dpsyn.cli.main import run
from dpsyn.demo import people, people_schema, people_schema_text
from dpsyn.errors import SourceError, SynopsisError
from dpsyn.release_files import RESERVED_NAMES, find_synopsis, find_table, is_release


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    synopsis = dpsyn.measure(people(400), people_schema(), 1.0, recipe="independent")
    synopsis.write(f"{folder}/release/", 300, seed=1)
    synopsis.write(f"{folder}/parts/", 300, seed=1)
    (folder / "parts" / "synthetic.csv").unlink()
    (folder / "parts" / "synthetic").mkdir()
    dpsyn.write_table(people(300), folder / "parts" / "synthetic" / "part-00000.parquet", synthetic=True)
    dpsyn.write_table(people(400), folder / "people.csv", synthetic=False)
    (folder / "schema.yaml").write_text(people_schema_text(), "utf-8")
    return folder


@pytest.fixture
def release(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return Path("release")


def test_the_reserved_names_are_those_that_a_release_has_besides_its_table(release: Path) -> None:
    assert {path.name for path in release.iterdir()} == {*RESERVED_NAMES, "synthetic.csv"}


def test_a_release_folder_stands_for_its_table_and_its_synopsis(release: Path) -> None:
    assert is_release(release)
    assert find_table("release/") == release / "synthetic.csv"
    assert find_synopsis("release/") == release / "synopsis.dpsyn"
    assert dpsyn.read_table(release).num_rows == 300
    assert dpsyn.Synopsis.load("release/").schema.dataset == "demo-people"


def test_a_table_of_many_files_is_found_too(release: Path) -> None:
    assert find_table("parts") == Path("parts/synthetic")
    assert dpsyn.read_table("parts").num_rows == 300


def test_other_paths_stay_as_they_are(release: Path) -> None:
    (release / "certificate.json").unlink()

    assert not is_release(release)
    assert find_table(release) == find_synopsis(release) == release
    with pytest.raises(SynopsisError, match="is a folder, but not a release folder"):
        dpsyn.Synopsis.load(release)


def test_a_report_in_the_folder_does_not_hide_the_table_and_a_second_table_is_refused(release: Path) -> None:
    (release / "report.html").touch()
    assert find_table(release) == release / "synthetic.csv"

    (release / "more.parquet").touch()
    with pytest.raises(SourceError, match=r"holds several tables: more\.parquet, synthetic\.csv; give the path"):
        find_table(release)
    (release / "more.parquet").unlink()
    (release / "synthetic.csv").unlink()
    with pytest.raises(SourceError, match="holds no table; give the path"):
        find_table(release)


SYNOPSIS, TABLE = "release/synopsis.dpsyn", "release/synthetic.csv"


@pytest.mark.parametrize(
    ("by_folder", "by_file"),
    [
        ("inspect release/ --json", f"inspect {SYNOPSIS} --json"),
        ("query release sex --json", f"query {SYNOPSIS} sex --json"),
        ("generate release/ --rows 2 --seed 1 -q", f"generate {SYNOPSIS} --rows 2 --seed 1 -q -o -"),
        (
            "evaluate people.csv release/ -s schema.yaml --certificate release --json - -q",
            f"evaluate people.csv {TABLE} -s schema.yaml --certificate {SYNOPSIS} --json - -q",
        ),
        (
            "evaluate --against-release release/ --json - -q",
            f"evaluate --against-release {SYNOPSIS} {TABLE} --json - -q",
        ),
    ],
)
def test_commands_read_a_release_folder_as_they_read_its_files(
    by_folder: str, by_file: str, release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(by_file.split()) == 0
    expected = capsys.readouterr().out

    assert run(by_folder.split()) == 0
    assert capsys.readouterr().out == expected


def test_a_report_may_be_written_into_the_release_that_it_is_about(release: Path) -> None:
    assert run(["evaluate", "--against-release", "release/", "--json", "release/scores.json", "-q"]) == 0

    assert (release / "scores.json").is_file()


def test_an_output_without_a_suffix_is_explained_with_the_folder_that_was_probably_meant(
    release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["generate", "release/", "-o", "mine"]) == 2

    assert capsys.readouterr().err.rstrip().endswith("the rows, the synopsis and the certificate: mine/")


def test_without_a_file_rows_go_to_standard_output_and_a_terminal_gets_ten(
    release: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = dpsyn.Synopsis.load(release).rows
    assert run(["generate", "release/", "-q"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == rows + 1

    monkeypatch.setattr("dpsyn.cli.output.is_terminal", lambda stream: True)
    assert run(["generate", "release/"]) == 0
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 11
    assert "These are 10 rows" in shown.err
