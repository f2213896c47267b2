"""Contests on generated data: what is public, what is hidden, and who wins."""

from __future__ import annotations

import gzip
import json
import stat
import warnings
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet
import pytest

import dpsyn
from dpsyn.contest.terms import derive_seed
from dpsyn.errors import OutputError, SchemaError, UserError
from dpsyn.evaluation.tables import make_generator
from dpsyn.schema import Categorical, Derive, Integer, Open, Schema
from dpsyn.simulation import simulate

SCHEMA = Schema(
    attributes=(
        Categorical(name="region", values=("north", "south", "west")),
        Categorical(name="sex", values=("f", "m")),
        Integer(name="age", low=0, high=99),
        Categorical(name="group", values=("minor", "adult")),
        Integer(name="wage", low=0, high=9_999),
    ),
    derive=(Derive(name="group", source="age", mapping=(("0..17", "minor"),), otherwise="adult"),),
)
INCOME = dpsyn.IncomeColumns(region="region", sex="sex", income="wage")
INCOME_TERMS = json.dumps(msgspec.to_builtins(INCOME))


def make(folder: Path, **options: Any) -> dpsyn.Contest:
    return dpsyn.make_contest(
        SCHEMA, folder, **{"rows": 1_500, "epsilons": (4.0, 0.5), "seed": 5, "suffix": "parquet", **options}
    )


@pytest.fixture(scope="module")
def contest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A contest at two ε; nobody has submitted anything to it."""
    folder = tmp_path_factory.mktemp("contests") / "contest"
    make(folder)
    return folder


def evaluation_table(folder: Path) -> pa.Table:
    return parquet.read_table(folder / "hidden" / "evaluation.parquet")


def shuffled(table: pa.Table) -> pa.Table:
    order = [make_generator(number, "test").permutation(len(table)) for number in range(table.num_columns)]
    columns = zip(table.column_names, table.columns, order, strict=True)
    return pa.table({name: column.take(pa.array(rows)) for name, column, rows in columns})


# ── making a contest ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_folder_divides_what_is_public_from_what_is_hidden(tmp_path: Path) -> None:
    terms = make(tmp_path / "contest", development_rows=400, suffix="csv")

    files = {str(path.relative_to(tmp_path / "contest")) for path in (tmp_path / "contest").rglob("*.*")}
    assert files == {
        "public/contest.json",
        "public/schema.yaml",
        "public/development.csv",
        "hidden/seed.json",
        "hidden/evaluation.csv",
    }
    assert terms == dpsyn.Contest.load(tmp_path / "contest")
    assert (terms.rows, terms.development_rows, terms.epsilons) == (1_500, 400, (0.5, 4.0))
    assert terms.delta == pytest.approx(1 / 1_500**2)
    assert dpsyn.Schema.load(tmp_path / "contest" / "public" / "schema.yaml").expected_size == 1_500
    assert len(csv.read_csv(tmp_path / "contest" / "public" / "development.csv")) == 400
    hidden = tmp_path / "contest" / "hidden"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (hidden, *hidden.iterdir())}
    assert modes == {"hidden": 0o700, "seed.json": 0o600, "evaluation.csv": 0o600}


def test_both_tables_are_samples_of_one_process_with_seeds_of_their_own(contest: Path) -> None:
    process, development, evaluation = (derive_seed(5, name) for name in ("process", "development", "evaluation"))

    public = parquet.read_table(contest / "public" / "development.parquet")

    assert len({process, development, evaluation}) == 3
    assert public.equals(simulate(SCHEMA, 1_500, process, row_seed=development).table())
    assert evaluation_table(contest).equals(simulate(SCHEMA, 1_500, process, row_seed=evaluation).table())


def test_the_public_files_do_not_hold_the_seed_and_two_contests_differ(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make(tmp_path / name, seed=None)

    seeds = [json.loads((tmp_path / name / "hidden" / "seed.json").read_text())["seed"] for name in ("one", "two")]
    assert seeds[0] != seeds[1]
    assert max(seeds) > 2**100  # nobody finds it by trying; below that both lie once in 2⁵⁶ times
    for name, seed in zip(("one", "two"), seeds, strict=True):
        derived = [derive_seed(seed, purpose) for purpose in ("process", "development", "evaluation", "scoring")]
        texts = [(tmp_path / name / "public" / file).read_text() for file in ("contest.json", "schema.yaml")]
        assert not any(str(each) in text for each in (seed, *derived) for text in texts)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"rows": 0}, "tables of 0 and 0 rows are too small for a contest; give at least 100 rows each"),
        ({"rows": 1}, "give at least 100 rows each"),
        ({"rows": 99}, "give at least 100 rows each"),
        ({"rows": -5}, "give at least 100 rows each"),
        ({"rows": None}, "the schema has no expected_size; give the number of rows"),
        ({"development_rows": 99}, "tables of 1,500 and 99 rows .* give at least 100 rows each"),
        ({"epsilons": ()}, "give positive numbers"),
        ({"epsilons": "12"}, "give positive numbers"),
        ({"epsilons": (1.0, -1.0)}, "give positive numbers"),
        ({"epsilons": (1.0, 1.0)}, "give each once"),
        ({"epsilons": (1.0, 0.12345678)}, r"ε = 0\.12345678 has more than 6 significant digits, .*; give 0\.123457"),
        ({"delta": 1.0}, "δ is 1.0; give a number from 0 to below 1"),
        ({"preset": "match4"}, "there is no preset 'match4'"),
        ({"suffix": "xls"}, "the format is 'xls'; give csv or parquet"),
        ({"seed": -1}, "the seed is -1; give a whole number from 0"),
        ({"seed": 1.5}, "the seed is 1.5; give a whole number from 0"),
        ({"income_columns": dpsyn.IncomeColumns(region="town", sex="sex", income="wage")}, "there is no column 'town'"),
        ({"income_columns": dpsyn.IncomeColumns(region="group", sex="sex", income="wage")}, "no column 'group'"),
    ],
)
def test_terms_that_make_no_contest_are_refused(tmp_path: Path, options: Any, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        make(tmp_path / "contest", **options)

    assert not (tmp_path / "contest").exists()


def test_an_epsilon_above_20_is_noted(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"ε = 20\.5, 30 is above 20, and such a guarantee protects nobody"):
        make(tmp_path / "contest", rows=100, epsilons=(20.0, 20.5, 30.0))


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(OutputError, match="not empty"):
        make(tmp_path)


# ── scoring ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("preset", ["paper", "match3"])
def test_the_better_table_wins(tmp_path: Path, preset: str) -> None:
    make(tmp_path / "contest", preset=preset, income_columns=INCOME)
    real = evaluation_table(tmp_path / "contest")
    bad = shuffled(real)

    ranking = dpsyn.score_submissions(
        tmp_path / "contest",
        {
            "bad": {0.5: bad, 4.0: bad},
            "twin": {0.5: real, 4.0: real},
            "half": {4.0: real},
            "perfect": {0.5: real, 4.0: real},
        },
    )

    assert [(entry.rank, entry.name) for entry in ranking.submissions][:2] == [(1, "perfect"), (1, "twin")]
    scores = {entry.name: entry.score for entry in ranking.submissions}
    assert (scores["perfect"], scores["half"]) == (1_000_000, 500_000)
    assert {entry.name: entry.rank for entry in ranking.submissions}["bad"] in (3, 4)
    assert scores["bad"] < ranking.fresh_sample.mean < 1_000_000
    assert scores["bad"] == pytest.approx(ranking.shuffled.mean, abs=60_000)
    (table,) = next(entry.tables for entry in ranking.submissions if entry.name == "half")
    assert (table.epsilon, table.income, table.certified) == (4.0, 1_000_000, False)


def test_a_score_is_that_of_an_evaluation_averaged_over_draws(contest: Path) -> None:
    bad, seed = shuffled(evaluation_table(contest)), derive_seed(5, "scoring")

    ranking = dpsyn.score_submissions(contest, {"bad": {4.0: bad}}, draws=2)

    single = [dpsyn.evaluate(evaluation_table(contest), bad, SCHEMA, seed=seed + draw).contest for draw in range(2)]
    (table,) = ranking.submissions[0].tables
    assert table.density == pytest.approx(sum(score.density.synthetic for score in single) / 2)
    assert table.range_queries == pytest.approx(sum(score.range_queries.synthetic for score in single) / 2)
    assert table.mean == pytest.approx((table.density + table.range_queries) / 2)
    assert ranking.submissions[0].score == pytest.approx(table.mean / 2)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("name", ["hidden/evaluation", "public/development"])
def test_a_changed_table_changes_no_score_and_is_named(tmp_path: Path, name: str, suffix: str) -> None:
    make(tmp_path / "contest", seed=None, suffix=suffix)
    real = tmp_path / "perfect.csv"
    dpsyn.write_table(dpsyn.read_table(tmp_path / "contest" / "hidden" / f"evaluation.{suffix}"), real, synthetic=True)
    file = tmp_path / "contest" / f"{name}.{suffix}"
    dpsyn.write_table(dpsyn.read_table(file).slice(1), file, synthetic=True)

    with pytest.warns(UserWarning, match=rf"{name}\.{suffix} is not the table that the seed makes") as notes:
        ranking = dpsyn.score_submissions(tmp_path / "contest", {"perfect": {0.5: real, 4.0: real}}, draws=1)

    assert len(notes) == 1
    assert ranking.submissions[0].score == 1_000_000


@pytest.mark.parametrize("content", [b"", b"something else", None])
def test_a_file_that_is_no_table_is_named_and_a_missing_one_is_not(tmp_path: Path, content: bytes | None) -> None:
    make(tmp_path / "contest")
    real = evaluation_table(tmp_path / "contest")
    file = tmp_path / "contest" / "hidden" / "evaluation.parquet"
    file.unlink() if content is None else file.write_bytes(content)

    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        dpsyn.score_submissions(tmp_path / "contest", {"perfect": {4.0: real}}, draws=1)

    assert len(notes) == (content is not None)


def test_the_ranking_turns_into_json(contest: Path) -> None:
    real = evaluation_table(contest)

    data = dpsyn.score_submissions(contest, {"perfect": {4.0: real}}, draws=1).to_dict()

    assert json.loads(json.dumps(data)) == data
    assert data["submissions"][0]["tables"][0]["mean"] == 1_000_000
    assert data["contest"]["epsilons"] == [0.5, 4.0]


@pytest.mark.parametrize(
    ("submissions", "complaint"),
    [
        ({}, "there are no submissions"),
        ({"mine": {}}, "there are no submissions"),
        ({"mine": {2.0: "x.csv"}}, "'mine' has a table for ε = 2.0; the contest has 0.5, 4"),
        ({"mine": {4.0: "none.csv"}}, "there is no file or folder none.csv"),
        ({"mine": {4.0: pa.table({"sex": ["f"]})}}, "there is no column 'region'"),
    ],
)
def test_submissions_that_cannot_be_scored_are_refused(contest: Path, submissions: Any, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        dpsyn.score_submissions(contest, submissions, draws=1)


def test_a_table_without_a_derived_column_is_refused_where_that_is_scored(tmp_path: Path) -> None:
    make(tmp_path / "contest", preset="match3")
    without = evaluation_table(tmp_path / "contest").drop_columns(["group"])

    with pytest.raises(UserError, match="lacks 'group'; a submission has all columns of the schema"):
        dpsyn.score_submissions(tmp_path / "contest", {"mine": {4.0: without}})


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("hidden/seed.json", "5", "6"),
        ("public/contest.json", '"rows": 1500', '"rows": 1000000000000'),
        ("public/contest.json", '"development_rows": 1500', '"development_rows": 1400'),
        ("public/contest.json", "4.0", "8.0"),
        ("public/contest.json", '"delta": 4', '"delta": 5'),
        ("public/contest.json", '"preset": "paper"', '"preset": "match3"'),
        (
            "public/contest.json",
            '"income_columns": null',
            f'"income_columns": {json.dumps(msgspec.to_builtins(INCOME))}',
        ),
        ("public/schema.yaml", "99", "98"),
        ("public/schema.yaml", "north", "east"),
    ],
)
def test_changed_seed_terms_or_schema_are_refused(tmp_path: Path, file: str, old: str, new: str) -> None:
    make(tmp_path / "contest")
    path = tmp_path / "contest" / file
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")

    with pytest.raises(UserError, match=r"was changed after the contest was made: .* Restore the three files"):
        dpsyn.score_submissions(tmp_path / "contest", {})


def test_a_comment_in_the_schema_and_other_spaces_in_the_terms_change_nothing(tmp_path: Path) -> None:
    make(tmp_path / "contest")
    schema, terms = (tmp_path / "contest" / "public" / name for name in ("schema.yaml", "contest.json"))
    schema.write_text(f"# for everybody\n{schema.read_text('utf-8')}", "utf-8")
    terms.write_text(json.dumps(json.loads(terms.read_text("utf-8"))), "utf-8")

    with pytest.raises(UserError, match="there are no submissions"):
        dpsyn.score_submissions(tmp_path / "contest", {})


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("public/contest.json", None, "is not the folder of a contest: there is no public/contest.json"),
        ("public/contest.json", "{}", "does not hold the terms of a contest"),
        ("public/contest.json", "", "does not hold the terms of a contest"),
        ("hidden/seed.json", None, "has no hidden/seed.json; submissions are scored where the hidden seed is"),
        ("hidden/seed.json", '{"seed": "x"}', "does not hold the seed of a contest"),
        ("hidden/seed.json", "{}", "does not hold the seed of a contest"),
    ],
)
def test_a_damaged_contest_is_refused(tmp_path: Path, file: str, text: str | None, complaint: str) -> None:
    make(tmp_path / "contest")
    path = tmp_path / "contest" / file
    path.unlink() if text is None else path.write_text(text)

    with pytest.raises(UserError, match=complaint):
        dpsyn.score_submissions(tmp_path / "contest", {})


def test_terms_of_another_version_are_refused(tmp_path: Path) -> None:
    make(tmp_path / "contest")
    path = tmp_path / "contest" / "public" / "contest.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))

    with pytest.raises(UserError, match="has format 2; this version of dpsyn reads 1"):
        dpsyn.Contest.load(tmp_path / "contest")


# ── files of submissions ─────────────────────────────────────────────────────────────────────────────────────


def test_files_are_found_by_contestant_and_epsilon_and_a_synopsis_certifies_them(tmp_path: Path) -> None:
    folder = tmp_path / "contest"
    terms = make(folder)
    real = evaluation_table(folder)
    synopsis = dpsyn.measure(real, SCHEMA, epsilon=4.0, delta=terms.delta, recipe="independent")
    synopsis.save(folder / "submissions" / "my-epsilon-way-epsilon-4.dpsyn")
    dpsyn.write_table(
        synopsis.generate(seed=1), folder / "submissions" / "my-epsilon-way-epsilon-4.csv", synthetic=True
    )
    dpsyn.write_table(real, folder / "submissions" / "other-epsilon-0.5.parquet", synthetic=True)
    synopsis.write(f"{folder}/submissions/folder-epsilon-4/", seed=1)

    ranking = dpsyn.score_submissions(folder, draws=1)

    tables = {(entry.name, table.epsilon): table.certified for entry in ranking.submissions for table in entry.tables}
    assert tables == {("my-epsilon-way", 4.0): True, ("other", 0.5): False, ("folder", 4.0): True}


def test_a_synopsis_that_spent_more_than_the_contest_allows_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "contest"
    terms = make(folder)
    synopsis = dpsyn.measure(evaluation_table(folder), SCHEMA, epsilon=4.0, delta=terms.delta, recipe="independent")
    synopsis.save(folder / "submissions" / "mine-epsilon-0.5.dpsyn")

    with pytest.raises(UserError, match=r"was released with ε = 4, .*; the contest allows ε = 0\.5, "):
        dpsyn.score_submissions(folder)


OTHER_AGE = (*SCHEMA.attributes[:2], Integer(name="age", low=0, high=98), *SCHEMA.attributes[3:])


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (Schema(attributes=(Categorical(name="colour", values=("red", "blue")),)), "'region', .*'colour'"),
        (msgspec.structs.replace(SCHEMA, attributes=OTHER_AGE), "'age'"),
        (msgspec.structs.replace(SCHEMA, attributes=SCHEMA.attributes[:3], derive=()), "'group', 'wage'"),
    ],
)
def test_a_synopsis_of_other_attributes_is_refused(tmp_path: Path, other: Schema, named: str) -> None:
    folder = tmp_path / "contest"
    terms = make(folder)
    rows = simulate(other, 500, 1).table()
    synopsis = dpsyn.measure(rows, other, epsilon=4.0, delta=terms.delta, recipe="independent")
    synopsis.save(folder / "submissions" / "mine-epsilon-4.dpsyn")
    dpsyn.write_table(evaluation_table(folder), folder / "submissions" / "mine-epsilon-4.csv", synthetic=True)

    with pytest.raises(UserError, match=rf"mine-epsilon-4\.dpsyn is a synopsis of another table: {named} is not as in"):
        dpsyn.score_submissions(folder)


def test_a_synopsis_with_discovered_values_is_one_of_the_contest(tmp_path: Path) -> None:
    folder, town = tmp_path / "contest", Open(name="town", other="elsewhere")
    terms = dpsyn.make_contest(Schema(attributes=(*SCHEMA.attributes[:2], town)), folder, rows=2_000, epsilons=[4.0])
    schema = Schema.load(folder / "public" / "schema.yaml")
    synopsis = dpsyn.measure(
        folder / "hidden" / "evaluation.csv", schema, epsilon=4.0, delta=terms.delta, recipe="independent"
    )
    synopsis.save(folder / "submissions" / "mine-epsilon-4.dpsyn")
    dpsyn.write_table(synopsis.generate(seed=1), folder / "submissions" / "mine-epsilon-4.csv", synthetic=True)

    ranking = dpsyn.score_submissions(folder, draws=1)

    assert isinstance(synopsis.schema["town"], Categorical)
    assert ranking.submissions[0].tables[0].certified


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (
            ["mine-epsilon-2.csv"],
            r"'mine-epsilon-2.csv' is not the name of a submission; .*NAME-epsilon-0\.5\.csv, NAME-epsilon-4\.csv",
        ),
        (["-epsilon-4.csv"], "is not the name of a submission"),
        (["mine.csv"], "is not the name of a submission"),
        (["mine-epsilon-4.csv", "mine-epsilon-4.parquet"], "are of the same contestant and ε; remove one"),
        ([], "there are no submissions; name their files NAME-epsilon-E.csv"),
    ],
)
def test_files_that_are_no_submissions_are_refused(tmp_path: Path, names: list[str], complaint: str) -> None:
    make(tmp_path / "contest", rows=100)
    for name in (".hidden", *names):
        (tmp_path / "contest" / "submissions" / name).touch()

    with pytest.raises(UserError, match=complaint):
        dpsyn.score_submissions(tmp_path / "contest")


def test_the_announced_names_are_those_that_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "contest"
    terms = make(folder, rows=100, epsilons=(1e-5, 0.123457, 1.0, 20.0))
    for name in terms.file_names():
        file = folder / "submissions" / name.replace("NAME", "mine")
        dpsyn.write_table(evaluation_table(folder), file, synthetic=True)

    ranking = dpsyn.score_submissions(folder, draws=1)

    assert terms.file_names()[:2] == ("NAME-epsilon-1e-05.csv", "NAME-epsilon-0.123457.csv")
    assert [table.epsilon for table in ranking.submissions[0].tables] == [1e-5, 0.123457, 1.0, 20.0]


@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_a_table_without_a_header_is_refused_in_one_sentence(tmp_path: Path, suffix: str) -> None:
    folder = tmp_path / "contest"
    make(folder, suffix="csv")
    lines = (folder / "hidden" / "evaluation.csv").read_bytes().partition(b"\n")[2]
    file = folder / "submissions" / f"mine-epsilon-4.{suffix}"
    file.write_bytes(gzip.compress(lines) if suffix == "csv.gz" else lines)

    with pytest.raises(UserError, match=rf"mine-epsilon-4\.{suffix}: the first line is not a header") as refused:
        dpsyn.score_submissions(folder)

    assert "there is no column" not in str(refused.value)


def test_one_message_names_all_bad_files_before_anything_is_scored(tmp_path: Path) -> None:
    folder = tmp_path / "contest"
    terms = make(folder)
    rows, submissions = evaluation_table(folder), folder / "submissions"
    dpsyn.write_table(rows, submissions / "a-epsilon-4.csv", synthetic=True)
    dpsyn.write_table(rows.drop_columns(["wage"]), submissions / "b-epsilon-4.csv", synthetic=True)
    dpsyn.write_table(rows, submissions / "c-epsilon-3.csv", synthetic=True)
    (submissions / "d-epsilon-4.dpsyn").write_bytes(b"no synopsis")
    synopsis = dpsyn.measure(rows, SCHEMA, epsilon=4.0, delta=terms.delta, recipe="independent")
    synopsis.save(submissions / "e-epsilon-0.5.dpsyn")
    phases: list[str] = []

    with pytest.raises(UserError, match="4 submissions cannot be scored: ") as refused:
        dpsyn.score_submissions(folder, progress=lambda phase, done: phases.append(phase))

    bad = {"b-epsilon-4.csv", "c-epsilon-3.csv", "d-epsilon-4.dpsyn", "e-epsilon-0.5.dpsyn"}
    assert all(repr(name) in str(refused.value) for name in bad)
    assert "a-epsilon-4.csv" not in str(refused.value)
    assert "there is no column 'wage'" in str(refused.value)
    assert phases == []


def test_tables_that_turn_out_to_be_unreadable_are_named_together(contest: Path) -> None:
    real = evaluation_table(contest)
    unreadable = real.set_column(4, "wage", pa.array(["much"] * len(real)))

    with pytest.raises(UserError, match=r"2 submissions cannot be scored: 'empty at ε = 4', 'words at ε = 4'\."):
        dpsyn.score_submissions(
            contest, {"empty": {4.0: real.slice(0, 0)}, "fine": {4.0: real}, "words": {4.0: unreadable}}, draws=1
        )


@pytest.mark.parametrize("name", ["README.md", "mine-epsilon-4.xls", "notes"])
def test_a_file_that_is_no_table_is_ignored_with_a_note(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "contest"
    make(folder)
    dpsyn.write_table(evaluation_table(folder), folder / "submissions" / "mine-epsilon-4.csv", synthetic=True)
    (folder / "submissions" / name).write_text("Made by me.\n")

    with pytest.warns(UserWarning, match=rf"{name} is ignored: its suffix is not that of a table"):
        ranking = dpsyn.score_submissions(folder, draws=1)

    assert [entry.name for entry in ranking.submissions] == ["mine"]


def test_a_schema_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="a schema was expected"):
        dpsyn.make_contest(7, tmp_path / "contest", rows=100)  # type: ignore[arg-type]
