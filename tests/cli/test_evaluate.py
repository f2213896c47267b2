"""``dpsyn evaluate`` against a real table."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from dpsyn.cli import evaluate
from dpsyn.cli.main import run
from dpsyn.evaluation import EVALUATION_NOTICE, IDENTICAL_ROWS_NOTE, PRESETS, IncomeColumns

SCHEMA = """
dpsyn_schema: 1
attributes:
  id: {kind: identifier}
  age: {kind: integer, low: 0, high: 99, bins: 10}
  sex: {kind: categorical, values: [F, M]}
  town: {kind: open}
  wage: {kind: integer, low: 0, high: 100000}
"""
SCORES = ["evaluate", "people.csv", "synthetic.csv", "-s", "schema.yaml", "-q"]
INCOME = ["--nist-income", "region=town,sex=sex,income=wage"]


@pytest.fixture(autouse=True)
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("schema.yaml").write_text(SCHEMA, "utf-8")
    towns = ("Ur", "Uruk", "Kish")
    lines = [f"{n},{n % 90},{'FM'[n % 2]},{towns[n % 3]},{n * 37 % 5000}" for n in range(300)]
    Path("people.csv").write_text("\n".join(["id,age,sex,town,wage", *lines]) + "\n", "utf-8")
    others = [f"{n % 45},{'FM'[n // 2 % 2]},{towns[n % 2]},{n * 31 % 5000}" for n in range(200)]
    Path("synthetic.csv").write_text("\n".join(["age,sex,town,wage", *others]) + "\n", "utf-8")
    return tmp_path


def printed_rows(text: str) -> dict[str, list[str]]:
    """The lines of the tables: first column → the cells after it."""
    cells = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    return {first: rest for first, *rest in cells if len(rest) >= 3}


def test_every_figure_is_printed_beside_its_references(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SCORES, *INCOME, "--target", "sex"]) == 0

    shown = capsys.readouterr().out
    rows = printed_rows(shown)
    assert "synthetic.csv against people.csv: 200 rows against 300, 4 attributes" in shown
    for name in (
        "distance of 4 one-way marginals",
        "distance of 6 two-way marginals",
        "distance of 4 three-way marginals",
        "difference of Cramér's V",
        "difference of Spearman's ρ",
        "NIST density (4 sets of columns)",
        "NIST range queries (300)",
        "NIST Gini and gender gap (3 regions)",
        "NIST mean (preset paper)",
        "rows identical to a real row",
    ):
        assert len(rows.pop(name)) == 4, name
    assert sum(name.startswith("sex predicted") for name in rows) == 2
    assert rows["town"][0] == "0.3333"
    assert "age × town" in rows


def test_the_notice_comes_first_and_identical_rows_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(SCORES) == 0

    shown = capsys.readouterr().out
    assert shown.startswith(EVALUATION_NOTICE)
    assert IDENTICAL_ROWS_NOTE in shown
    assert "Not compared: id." in shown


def test_identical_tables_score_a_million(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", "people.csv", "people.csv", "-s", "schema.yaml", "-q"]) == 0

    rows = printed_rows(capsys.readouterr().out)
    assert rows["NIST mean (preset paper)"][0] == "1,000,000"
    assert rows["distance of 6 two-way marginals"][0] == "0.0000"


def test_json_holds_everything_and_is_for_its_owner_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SCORES, "--json", "scores.json", "--preset", "match3", "--seed", "3"]) == 0

    data = json.loads(Path("scores.json").read_text("utf-8"))
    assert data["notice"] == EVALUATION_NOTICE
    assert (data["contest"]["preset"], data["seed"], len(data["pairs"])) == ("match3", 3, 6)
    assert Path("scores.json").stat().st_mode & 0o777 == 0o600
    assert capsys.readouterr().out == ""


def test_without_quiet_the_figures_are_printed_and_the_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SCORES[:-1], "--json", "scores.json"]) == 0

    shown = capsys.readouterr().out
    assert shown.startswith(EVALUATION_NOTICE)
    assert shown.endswith("Wrote scores.json.\n")


def test_nothing_else_goes_to_standard_output_with_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SCORES, "--json", "-"]) == 0

    shown = capsys.readouterr()
    assert json.loads(shown.out)["synthetic_rows"] == 200
    assert shown.err == ""


def test_the_same_seed_gives_the_same_file(capsys: pytest.CaptureFixture[str]) -> None:
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        assert run([*SCORES, "--json", name, "--seed", seed]) == 0

    first, second, third = (Path(name).read_text("utf-8") for name in "abc")
    assert first == second != third


def test_several_tables_are_scored_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SCORES[:3], "people.csv", *SCORES[3:-1], "--json", "both.json"]) == 0

    shown, data = capsys.readouterr().out, json.loads(Path("both.json").read_text("utf-8"))
    means = [each["contest"]["mean"]["synthetic"] for each in data["evaluations"]]
    assert means[1] == 1_000_000
    assert data["combined"]["synthetic"] == pytest.approx(sum(means) / 2)
    assert data["notice"] == EVALUATION_NOTICE
    assert f"NIST mean of 2 tables: {sum(means) / 2:,.0f}" in shown
    assert shown.count("rows against 300") == 2


def test_progress_is_printed_in_phases_unless_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(SCORES[:-1]) == 0

    assert capsys.readouterr().err.splitlines()[:3] == [
        "… step 1 of 3: reading both tables",
        "… step 2 of 3: computing the NIST scores",
        "… step 3 of 3: comparing marginals",
    ]


@pytest.mark.parametrize(
    ("synthetic", "complaint"),
    [
        ("age,sex,wage\n1,F,2\n", "synthetic.csv does not fit the schema: there is no column 'town'"),
        ("age,sex,town,wage\n", "synthetic.csv has no rows; there is nothing to compare"),
        ("", "synthetic.csv is empty; its first line should name the columns"),
        ("age,sex,town,wage\nold,F,Ur,2\n", "synthetic.csv: no cell of column 'age' can be read as integer"),
        ("age,sex,town,wage\n1,0,Ur,2\n", "synthetic.csv: no cell of column 'sex' can be read as categorical"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(
    synthetic: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("synthetic.csv").write_text(synthetic, "utf-8")

    code = run([*SCORES, "--json", "scores.json"])

    shown = capsys.readouterr()
    assert code == 2
    assert shown.err.startswith(f"dpsyn: {complaint}")
    assert shown.out == ""
    assert not Path("scores.json").exists()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (
            ["--target", "wealth"],
            "there is no column 'wealth' to compare; the compared columns are age, sex, town, wage",
        ),
        (["--nist-income", "region=wealth,sex=sex,income=wage"], "there is no column 'wealth' to compare"),
        (["--nist-income", "region=town"], "give three columns, such as region=district,sex=sex,income=wage"),
        (["--nist-income", "town,sex=sex,income=wage"], "give three columns"),
        (["--nist-income", "region=town,region=town,sex=sex,income=wage"], "give three columns"),
        (["--nist-income", "region=town,sex=sex,income=wage,sexes=F"], "give two values with a bar between"),
        (["--nist-income", "region=town,sex=sex,income=wage,sexes=F|X"], "'sex' to compare must be two of F, M"),
        (["--preset", "match2"], "'match2' is not one of"),
        (["--seed", "-1"], "-1 is not in the range"),
        (["--json", "people.csv"], "people.csv is given twice, as data and as --json"),
        (["--json", "schema.yaml"], "schema.yaml is given twice"),
        (["--json", "nowhere/scores.json"], "there is no folder nowhere"),
    ],
)
def test_a_mistake_is_refused(options: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SCORES, *options]) == 2

    assert complaint in capsys.readouterr().err


def test_an_unknown_column_is_refused_before_anything_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    Path("people.csv").unlink()

    assert run([*SCORES, "--target", "wealth"]) == 2

    assert "there is no column 'wealth'" in capsys.readouterr().err


def test_cells_that_a_wrong_schema_counts_as_other_values_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = SCHEMA.replace("high: 99, bins: 10", "high: 29, bins: 10")
    Path("schema.yaml").write_text(wrong, "utf-8")

    assert run([*SCORES[:-1], "--html", "report.html"]) == 0

    note = (
        "counted as another value (real / synthetic cells): age (60.0 % / 30.0 %). "
        "If the shares are large, correct the schema"
    )
    assert note in capsys.readouterr().out
    assert note in Path("report.html").read_text("utf-8")


def test_control_characters_in_a_name_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    for file in ("schema.yaml", "people.csv", "synthetic.csv"):
        text, named = Path(file).read_text("utf-8"), '"w\\x1B[31m"' if file == "schema.yaml" else "w\x1b[31m"
        Path(file).write_text(text.replace("wage", named), "utf-8")

    assert run(SCORES) == 0

    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "w\\x1b[31m" in shown


def test_two_sexes_may_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SCORES, INCOME[0], f"{INCOME[1]}, sexes=M | F", "--json", "-"]) == 0

    assert json.loads(capsys.readouterr().out)["contest"]["income"]["sexes"] == ["M", "F"]


def test_a_file_of_scores_is_not_overwritten_without_force(capsys: pytest.CaptureFixture[str]) -> None:
    Path("scores.json").write_text("mine", "utf-8")

    refused = run([*SCORES, "--json", "scores.json"])
    kept = Path("scores.json").read_text("utf-8")
    forced = run([*SCORES, "--json", "scores.json", "--force"])

    assert (refused, kept, forced) == (2, "mine", 0)
    assert "--force" in capsys.readouterr().err
    assert json.loads(Path("scores.json").read_text("utf-8"))


def test_without_scikit_learn_the_message_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)

    assert run([*SCORES, "--target", "sex"]) == 2

    assert "pip install 'scikit-learn" in capsys.readouterr().err


def test_column_names_of_the_income_metric_may_contain_commas_and_equals_signs() -> None:
    columns = evaluate.parse_income_columns("region=a,b,sex=x=y,income=z")

    assert columns == IncomeColumns(region="a,b", sex="x=y", income="z")
    assert evaluate.parse_income_columns(None) is None


def test_the_help_names_the_presets_of_the_library() -> None:
    assert tuple(PRESETS) == evaluate.PRESET_NAMES
