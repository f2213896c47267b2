"""What was probably meant by a name that does not exist."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpsyn
from dpsyn import suggestions
from dpsyn.cli.main import run
from dpsyn.demo import people, people_schema_text
from dpsyn.suggestions import find_similar, suggest_file, suggest_names


def test_similar_names_are_found_whatever_their_case_and_the_best_comes_first() -> None:
    assert find_similar("INCOM", ["age", "Income", "incomes"]) == ["Income", "incomes"]
    assert find_similar("town", ["age", "income"]) == []


def test_without_a_similar_name_the_first_known_ones_are_listed() -> None:
    known = [f"c{n}" for n in range(20)]

    assert suggest_names("town", known, "it has ") == "it has c0, c1, c2, c3, c4, c5, c6, c7 and 12 more"


def test_a_file_is_suggested_from_the_folder_of_the_path(tmp_path: Path) -> None:
    (tmp_path / "schema.yaml").write_text("secret: 1", "utf-8")
    (tmp_path / ".schema.yml").touch()

    assert suggest_file(tmp_path / "schema.yml") == f"; did you mean {tmp_path / 'schema.yaml'}?"
    assert suggest_file(tmp_path / "other.csv") == ""
    assert suggest_file(tmp_path / "b.yaml") == ""
    assert suggest_file(tmp_path / "schema.yaml") == ""
    assert suggest_file(tmp_path / "nowhere" / "schema.yml") == ""
    assert suggest_file("a\0b/schema.yml") == ""


def test_a_large_folder_is_not_listed_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggestions, "_MAX_LISTED_FILES", 0)
    (tmp_path / "schema.yaml").touch()

    assert suggest_file(tmp_path / "schema.yml") == ""


RELEASE = ["synthesize", "people.csv", "--epsilon", "1", "-o", "rows.csv"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ([*RELEASE, "-s", "schema.yml"], "; did you mean schema.yaml?"),
        (["synthesize", "peple.csv", *RELEASE[2:], "-s", "schema.yaml"], "; did you mean people.csv?"),
        ([*RELEASE, "-s", "schema.yaml", "--recipe", "dpsin"], "; did you mean dpsyn? There are dpsyn, privsyn"),
        ([*RELEASE, "-s", "schema.yaml", "--target", "incom"], "is not measured; did you mean income?"),
        ([*RELEASE, "-s", "schema.yaml", "--weight", "incme=2"], "is not measured; did you mean income?"),
        ([*RELEASE, "-s", "schema.yaml", "--set", "rare_row=2"], "; did you mean rare_rows? Its options are"),
        ([*RELEASE, "-s", "schema.yaml", "--ledger", "ledgr.db"], "; did you mean ledger.db? Correct the path, or"),
        ([*RELEASE, "-s", "schema.yaml", "--plan", "plan.yml"], "; did you mean plan.yaml?"),
        (["inspect", "s.dpsin"], "; did you mean s.dpsyn?"),
        (["recipes", "privsin"], "; did you mean privsyn? There are"),
        (["evaluate", "people.csv", "people.csv", "-s", "schema.yaml", "--target", "heath"], "; did you mean health?"),
    ],
)
def test_a_wrong_name_is_refused_with_the_one_that_was_probably_meant(
    words: list[str], hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("schema.yaml").write_text(people_schema_text(), "utf-8")
    dpsyn.write_table(people(5), "people.csv", synthetic=False)
    for name in ("ledger.db", "plan.yaml", "s.dpsyn"):
        Path(name).touch()

    assert run(words) == 2

    assert hint in capsys.readouterr().err
