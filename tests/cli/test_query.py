"""``dpsyn query``: counts from a synopsis."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dpsyn
from dpsyn.cli.main import run
from dpsyn.cli.query import METHODS, parse_names
from dpsyn.query import RECONSTRUCTION_METHODS
from dpsyn.schema import Categorical, Schema
from tests.query.noisy_synopses import baskets, make_view_synopsis, people_rows, people_synopsis


@pytest.fixture(autouse=True)
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    people_synopsis(people_rows(), 10.0, np.random.default_rng(0)).save("s.dpsyn")


def test_a_table_of_counts_is_printed_with_errors_and_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", "s.dpsyn", "age,sex", "--where", "age=0..34"]) == 0

    shown = capsys.readouterr().out
    lines = [line.split() for line in shown.splitlines()]
    assert ["age", "sex", "count", "±", "standard", "error", "95", "%", "interval"] in lines
    assert [line[:2] for line in lines if line[:1] in (["0..17"], ["18..34"])] == [
        ["0..17", "F"], ["0..17", "M"], ["18..34", "F"], ["18..34", "M"],
    ]  # fmt: skip
    assert "Covered: a released marginal contains all of these attributes." in shown
    assert "Guarantee not verified here." in shown  # the counts were imported


def test_a_reconstructed_answer_reports_its_model_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", "s.dpsyn", "age,job", "--confidence", "0.8"]) == 0

    shown = capsys.readouterr().out
    assert "80 % interval" in shown
    assert "Reconstructed: " in shown or "From the fitted model" in shown
    assert "± standard error" in shown
    assert "of which noise" in shown
    assert "Standard errors and intervals include the model error" in shown


def test_a_range_that_cuts_a_bin_is_labelled(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", "s.dpsyn", "age,sex", "--where", "age=30..39"]) == 0

    shown = capsys.readouterr().out
    assert "30..34" in shown
    assert "35..39" in shown
    assert "age: the query is finer than what was measured together with the other attributes." in shown
    assert "Covered, but finer than measured" in shown
    assert "has the true count in it" not in shown


def test_conditions_alone_give_one_count(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", "s.dpsyn", "--where", "age=18..64", "--where", "sex=F"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert sum("…" in line for line in lines) == 1


def test_json_holds_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", "s.dpsyn", "sex,job", "--where", "job=cook|none", "--json"]) == 0

    data = json.loads(capsys.readouterr().out)
    assert (data["source"], data["confidence"]) == ("covered", 0.95)
    assert [(cell["sex"], cell["job"]) for cell in data["counts"]] == [
        ("F", "cook"), ("F", "none"), ("M", "cook"), ("M", "none"),
    ]  # fmt: skip
    assert all(cell["low"] < cell["high"] for cell in data["counts"])


def test_the_finest_cells_are_listed_with_finest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", "s.dpsyn", "age", "--finest", "--json"]) == 0

    assert len(json.loads(capsys.readouterr().out)["counts"]) == 101


def test_long_answers_are_cut_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsyn.cli.query.MAX_SHOWN_COUNTS", 3)

    assert run(["query", "s.dpsyn", "age,sex"]) == 0

    shown = capsys.readouterr().out
    assert "These are the first 3 of 10 counts; --json lists all." in shown
    assert sum("…" in line for line in shown.splitlines()) == 3


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "the query is empty"),
        (["agee"], "there is no attribute 'agee'; did you mean age?"),
        (["age,age"], "named twice"),
        (["age,"], "there is no attribute ''"),
        (["age", "--where", "sex"], "is not a condition"),
        (["age", "--where", "age>=30"], "age=30..HIGH"),
        (["age", "--where", "sex=X"], "'X' is not a value of 'sex'"),
        (["age", "--where", "age=39..30"], "ends before it begins"),
        (["age", "--confidence", "95"], "between 0 and 1"),
        (["age", "--confidence", "much"], "not a valid float"),
    ],
)
def test_a_mistake_ends_with_2_and_a_message(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["query", "s.dpsyn", *words]) == 2

    shown = capsys.readouterr()
    assert complaint in shown.err
    assert shown.out == ""


def test_a_file_that_is_no_synopsis_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    Path("people.csv").write_text("age,sex\n3,F\n", "utf-8")

    assert run(["query", "people.csv", "age"]) == 2
    assert "is not a synopsis" in capsys.readouterr().err


def test_a_name_may_have_a_comma() -> None:
    schema = Schema(attributes=(Categorical(name="a,b", codes=2), Categorical(name="a", codes=2)))

    assert parse_names("a,b", schema) == ["a,b"]
    assert parse_names(" a ", schema) == ["a"]
    assert parse_names("", schema) == []
    assert parse_names("a, a,b", schema) == parse_names("a,a,b", schema) == ["a", "a,b"]
    assert parse_names("a,b,c", schema) == ["a,b", "c"]


def test_attributes_and_values_may_be_called_anything(capsys: pytest.CaptureFixture[str]) -> None:
    schema = Schema(attributes=(Categorical(name="count", values=("a|b", "c")), Categorical(name="x=y", codes=2)))
    counts = {("count", "x=y"): [[1.0, 2.0], [3.0, 4.0]]}
    dpsyn.Synopsis.from_marginals(schema, counts, std=0.01, source="a test").save("odd.dpsyn")

    assert run(["query", "odd.dpsyn", "count,x=y", "--where", "count=a|b"]) == 0
    assert run(["query", "odd.dpsyn", "count", "--where", "x=y=1", "--json"]) == 0

    table, _, data = capsys.readouterr().out.partition("{")
    assert [line.split()[:3] for line in table.splitlines() if "a|b" in line] == [
        ["a|b", "0", "1.0"], ["a|b", "1", "2.0"],
    ]  # fmt: skip
    assert [(row["count"], round(row["count_"])) for row in json.loads("{" + data)["counts"]] == [("a|b", 2), ("c", 4)]


def test_the_original_table_is_not_needed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("schema.yaml").write_text(
        "dpsyn_schema: 1\nattributes:\n  age: {kind: integer, low: 0, high: 99, bins: 10}\n"
        "  sex: {kind: categorical, values: [F, M]}\n",
        "utf-8",
    )
    Path("people.csv").write_text("age,sex\n" + "".join(f"{i % 90},{'FM'[i % 2]}\n" for i in range(2000)), "utf-8")
    release = ["people.csv", "-s", "schema.yaml", "--epsilon", "1", "--recipe", "priview", "-o", "p.dpsyn", "-q"]
    assert run(["measure", *release]) == 0
    Path("people.csv").unlink()
    Path("schema.yaml").unlink()
    capsys.readouterr()

    assert run(["query", "p.dpsyn", "age,sex", "--where", "age=30..39"]) == 0

    assert "30..39" in capsys.readouterr().out


def test_views_are_an_option_of_the_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    Path("schema.yaml").write_text(
        "dpsyn_schema: 1\nexpected_size: 500\nattributes:\n"
        + "".join(f"  x{number}: {{kind: categorical, codes: 2}}\n" for number in range(6)),
        "utf-8",
    )
    Path("t.csv").write_text(",".join(f"x{p}" for p in range(6)) + "\n" + "0,1,1,0,1,0\n1,1,0,0,1,1\n" * 200, "utf-8")
    release = ["measure", "t.csv", "-s", "schema.yaml", "--epsilon", "1", "--recipe", "priview", "-o", "v.dpsyn"]

    views = []
    for seed in ("", ":7", ":7"):
        assert run([*release, "--set", f"views=random:5x3{seed}", "--force"]) == 0
        assert "measuring 5 views of up to 3 attributes, taken at random" in capsys.readouterr().err
        [round_] = dpsyn.Synopsis.load("v.dpsyn").releases[0].rounds
        views.append([marginal.clique for marginal in round_.marginals])
    assert views[0] != views[1] == views[2]
    assert run([*release, "--set", "views=5x3", "--force"]) == 2
    assert "views '5x3' are not known" in capsys.readouterr().err


def test_counts_that_were_not_measured_together_are_reconstructed_by_the_chosen_method(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = baskets(2000, 6)
    make_view_synopsis(rows, [(0, 1, 2), (2, 3, 4), (4, 5, 0), (1, 3, 5), (0, 3), (1, 4), (2, 5)], 20.0, None).save(
        "views.dpsyn"
    )
    synopsis, answers = dpsyn.Synopsis.load("views.dpsyn"), {}

    for method in RECONSTRUCTION_METHODS:
        assert run(["query", "views.dpsyn", "x0,x1,x3,x4", "--method", method.replace(" ", "-"), "--json"]) == 0
        answers[method] = [row["count"] for row in json.loads(capsys.readouterr().out)["counts"]]
        expected = synopsis.marginal("x0", "x1", "x3", "x4", method=method)
        assert answers[method] == pytest.approx(expected.counts.ravel())
    assert run(["query", "views.dpsyn", "x0,x1,x3,x4", "--json"]) == 0
    assert [row["count"] for row in json.loads(capsys.readouterr().out)["counts"]] == answers["maximum entropy"]
    assert len({tuple(np.round(counts)) for counts in answers.values()}) == 3


def test_an_unknown_method_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", "s.dpsyn", "age", "--method", "magic"]) == 2

    refusal = capsys.readouterr().err
    assert [name.replace("-", " ") for name in METHODS] == list(RECONSTRUCTION_METHODS)
    assert all(name in refusal for name in METHODS)


# ── means, quantiles, correlations, regressions ──────────────────────────────────────────────────────────────


def test_means_by_group_are_printed_with_their_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", "s.dpsyn", "--mean", "age", "--by", "sex", "--replicates", "2", "--seed", "1"]) == 0

    shown = capsys.readouterr()
    lines = [line.split()[:1] for line in shown.out.splitlines()]
    assert "Mean of age by sex, from released tables" in shown.out
    assert ["sex=F"] in lines
    assert ["sex=M"] in lines
    assert "Guarantee not verified here." in shown.out
    assert "Rows with a missing value are left out" in shown.out
    assert not shown.err

    assert run(["query", "s.dpsyn", "--regress", "age ~ sex", "--replicates", "2", "--seed", "1"]) == 0
    assert capsys.readouterr().err.splitlines() == ["… drawing replicates"]


@pytest.mark.parametrize(
    ("options", "terms"),
    [
        (["--quantile", "age"], ["estimate"]),
        (["--quantile", "age=0.1,0.5", "--by", "sex"], ["sex=F, 0.1", "sex=F, 0.5", "sex=M, 0.1", "sex=M, 0.5"]),
        (["--regress", "age ~ sex"], ["intercept", "sex=M"]),
        (["--regress", "sex ~ age", "--where", "job=nurse", "--uncertainty", "noise"], ["intercept", "age"]),
    ],
)
def test_statistics_are_printed_as_json(
    options: list[str], terms: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["query", "s.dpsyn", *options, "--replicates", "2", "--seed", "1", "--json", "--confidence", "0.9"]

    assert run(command) == 0

    data = json.loads(capsys.readouterr().out)
    assert [entry["term"] for entry in data["terms"]] == terms
    assert all(entry["low"] <= entry["estimate"] <= entry["high"] for entry in data["terms"])
    assert data["level"] == 0.9
    assert data["uncertainty"] == ("noise" if "noise" in options else "all")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--mean", "age", "--regress", "age ~ sex"], "--mean and --regress cannot be combined"),
        (["sex", "--mean", "age"], "--mean and ATTRIBUTES, which are counted cannot be combined"),
        (["sex", "--seed", "1"], "--seed is for --mean, --quantile"),
        (["sex", "--by", "job"], "--by gives the groups of --mean and --quantile"),
        (["--mean", "age", "--spearman"], "--spearman is for --correlation"),
        (["--mean", "age", "--finest"], "--finest is for counts"),
        (["--quantile", "age=half"], "'half' is no probability"),
        (["--quantile", "age=1.5"], "give a number between 0 and 1"),
        (["--correlation", "age"], "give two attributes, separated by a comma"),
        (["--correlation", "age,sex"], "'sex' is categorical, so it has no Pearson correlation"),
        (["--mean", "agee"], "did you mean age"),
        (["--regress", "age"], "write OUTCOME ~ TERM"),
        (["--mean", "age", "--confidence", "95"], "the level is 95.0"),
        (["--mean", "age", "--replicates", "1"], "1 is not in the range x>=2"),
    ],
)
def test_a_wrong_statistic_is_refused(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", "s.dpsyn", *options]) == 2

    assert message in capsys.readouterr().err
