"""The command line as a user meets it: help, schema commands, the demo, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

import dpsyn
from dpsyn import demo
from dpsyn.cli.common_options import BASELINES, RECIPES
from dpsyn.cli.main import COMMANDS, run
from dpsyn.cli.main import dpsyn as dpsyn_command
from dpsyn.diagnose import PRIVATE_NOTICE
from dpsyn.errors import UserError
from dpsyn.schema import Schema
from tests.test_start import HEAVY, loaded_by

SECRET = "Zaphod"
CSV = "name,age,sex\n" + "".join(f"{SECRET}{i},{20 + i % 50},{'FM'[i % 2]}\n" for i in range(200))


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "people.csv"
    path.write_text(CSV, "utf-8")
    return path


def test_help_is_fast_and_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    loaded = set().union(
        *(
            loaded_by(f"from dpsyn.cli.main import run\nassert run({arguments}) == 0")
            for arguments in (
                ["--help"],
                *(
                    [n, "--help"]
                    for n in ("compare-noise", "ledger", "synthesize", "generate", "evaluate", "simulate", "itemsets")
                ),
                ["recipes", "--help"],
            )
        )
    )

    code = run(["--help"])

    shown = capsys.readouterr().out
    assert code == 0
    assert loaded & (HEAVY | {"rich", "numpy"}) == set()
    assert all(f"  {name}" in shown for name in COMMANDS)


def all_commands() -> dict[tuple[str, ...], click.Command]:
    """Every command and subcommand, by its words."""
    context = click.Context(dpsyn_command)
    commands: dict[tuple[str, ...], click.Command] = {}
    for name in COMMANDS:
        command = dpsyn_command.get_command(context, name)
        assert command is not None
        commands[name,] = command
        for inner, subcommand in command.commands.items() if isinstance(command, click.Group) else ():
            commands[name, inner] = subcommand
    return commands


@pytest.mark.parametrize("words", all_commands(), ids=" ".join)
def test_every_command_explains_itself_with_an_example(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code = run([*words, "--help"])

    shown = capsys.readouterr().out
    assert code == 0
    assert len(shown.splitlines()) > 8
    assert "\\b" not in shown
    assert f"  dpsyn {' '.join(words)}" in shown


def test_every_option_has_a_help_text_and_one_declaration() -> None:
    for words, command in all_commands().items():
        options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
        names = [name for option in options for name in option.opts]
        assert len(names) == len(set(names)), words
        assert all(option.help for option in options), words


def test_quiet_and_force_mean_the_same_in_every_command() -> None:
    helps: dict[str, set[str | None]] = {"quiet": set(), "force": set(), "as_json": set()}
    for command in all_commands().values():
        for option in command.params:
            if isinstance(option, click.Option) and option.name in helps:
                helps[option.name].add(option.help)

    assert helps == {
        "quiet": {"Print nothing but errors and the results asked for."},
        "force": {"Overwrite files that exist."},
        "as_json": {"Print JSON."},
    }


def test_no_line_in_a_list_of_commands_is_cut_off_and_those_of_dpsyn_fit_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    groups = [words for words, command in all_commands().items() if isinstance(command, click.Group)]
    for words in ((), *groups):
        assert run([*words, "--help"]) == 0
        listed = capsys.readouterr().out.partition("Commands:\n")[2]
        assert "..." not in listed
        if not words:
            lines = listed.partition("\n\n")[0].splitlines()
            assert [line.split()[0] for line in lines] == list(COMMANDS)


@pytest.mark.parametrize("command", ["synthesize", "measure"])
def test_the_help_of_recipe_has_a_line_for_each_and_baselines_apart(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, "--help"]) == 0

    shown = capsys.readouterr().out.partition("--recipe NAME")[2].partition("--set")[0]
    recipes, baselines = shown.split("Baselines, for comparisons only:")
    for names, part in ((RECIPES, recipes), (BASELINES, baselines)):
        assert [line.split()[0] for line in part.splitlines() if line.split()[:1] and line.split()[0] in names] == [
            *names
        ]


@pytest.mark.parametrize("words", [[], ["schema"], ["ledger"]])
def test_a_group_without_a_command_shows_its_help_as_a_success(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 0

    shown = capsys.readouterr()
    assert f"Usage: {' '.join(['dpsyn', *words])} [OPTIONS] COMMAND" in shown.out
    assert shown.err == ""


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["synthesise"], "No such command 'synthesise'. Did you mean synthesize?"),
        (["schema", "drft"], "No such command 'drft'. Did you mean draft?"),
        (["qqq"], "No such command 'qqq'."),
    ],
)
def test_a_wrong_command_is_refused_with_the_one_that_was_probably_meant(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2

    assert capsys.readouterr().err.rstrip().endswith(hint)


def test_the_help_lists_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0

    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.partition("Exit codes:")[2].splitlines() if line.strip()] == [
        "0", "1", "2", "130",
    ]  # fmt: skip


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert "dpsyn, version 0." in capsys.readouterr().out


# ── from a table to its schema ───────────────────────────────────────────────────────────────────────────────


def test_a_draft_is_approved_and_checked(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "draft", "people.csv", "-o", "schema.yaml"]) == 0
    drafted = Schema.load("schema.yaml")
    assert run(["schema", "approve", "schema.yaml", "age", "--as-drafted", "--because", "the form"]) == 0
    first = capsys.readouterr().out
    assert run(["schema", "approve", "schema.yaml", "--all", "--as-drafted", "--because", "the form"]) == 0
    assert run(["schema", "check", "schema.yaml", "people.csv"]) == 0

    shown = capsys.readouterr()
    assert [attribute.kind for attribute in drafted] == ["identifier", "integer", "categorical"]
    assert "Still to do: attribute 'name', attribute 'sex'" in first
    assert "Nothing is left to approve" in shown.out
    assert PRIVATE_NOTICE in shown.out
    assert Schema.load("schema.yaml").unapproved_statements() == ()
    assert shown.err == ""


def test_a_draft_goes_to_standard_output_by_default(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "draft", "people.csv"]) == 0

    assert Schema.from_yaml(capsys.readouterr().out).names == ("name", "age", "sex")


def test_a_draft_of_a_table_without_rows_has_a_note(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty.csv").write_text("age,sex\n", "utf-8")

    assert run(["schema", "draft", "empty.csv", "-o", "schema.yaml"]) == 0

    assert "Note: The table has no rows" in capsys.readouterr().err
    assert Path("schema.yaml").read_text("utf-8").startswith("# The table has no rows")


@pytest.mark.parametrize("command", [["check", ""], ["import", ""], ["approve", "", "a", "--because", "book"]])
def test_an_empty_path_is_refused(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", *command]) == 2

    assert capsys.readouterr().err == "dpsyn: no path was given; give the name of a file\n"


def test_a_draft_in_a_file_is_for_its_owner_only(people: Path) -> None:
    assert run(["schema", "draft", "people.csv", "-o", "schema.yaml"]) == 0

    assert Path("schema.yaml").stat().st_mode & 0o777 == 0o600


def test_a_file_is_not_overwritten_without_force(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    existing = Path("schema.yaml")
    existing.write_text("mine", "utf-8")

    refused = run(["schema", "draft", "people.csv", "-o", "schema.yaml"])
    kept = existing.read_text("utf-8")
    forced = run(["schema", "draft", "people.csv", "-o", "schema.yaml", "--force"])

    assert (refused, kept, forced) == (2, "mine", 0)
    assert "--force" in capsys.readouterr().err
    assert Schema.load(existing)


def test_a_check_counts_cells_outside_and_what_they_become(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("schema.yaml").write_text(
        "dpsyn_schema: 1\nattributes:\n"
        "  age: {kind: integer, low: 30, high: 40}\n  sex: {kind: categorical, values: [F]}\n",
        "utf-8",
    )

    code = run(["schema", "check", "schema.yaml", "people.csv"])

    shown = capsys.readouterr().out
    rows = {line.split()[0]: line.split() for line in shown.splitlines() if line.strip()}
    assert code == 0
    assert rows["age"][1:] == ["44", "0", "0", "156", "the", "nearer", "bound"]
    assert rows["sex"][1:] == ["100", "0", "100", "0", "F"]
    assert "never read: name" in shown


def test_a_check_lists_all_columns_that_are_missing(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("schema.yaml").write_text(
        "dpsyn_schema: 1\nattributes:\n  Age: {kind: boolean}\n  Sex: {kind: boolean}\n  sex: {kind: boolean}\n",
        "utf-8",
    )

    code = run(["schema", "check", "schema.yaml", "people.csv"])

    shown = capsys.readouterr().out
    assert code == 2
    assert "there is no column 'Age' (did you mean 'age'?)" in shown
    assert "there is no column 'Sex'" in shown


def test_an_import_makes_a_schema(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("domain.json").write_text(json.dumps({"age": 32, "sex": 2}), "utf-8")

    assert run(["schema", "import", "domain.json", "-o", "schema.yaml"]) == 0

    assert [attribute.cells for attribute in Schema.load("schema.yaml")] == [32, 2]
    assert "dpsyn schema approve schema.yaml --all --because REASON" in capsys.readouterr().out


def test_the_json_schema_is_written(people: Path) -> None:
    assert run(["schema", "json-schema", "-o", "editor.json"]) == 0

    assert json.loads(Path("editor.json").read_text("utf-8"))["title"] == "DPSyn schema"


def test_the_demo_writes_a_table_its_schema_and_a_release(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--rows", "300", "--folder", "shown"]) == 0

    assert sorted(path.name for path in Path("shown").iterdir()) == ["people.csv", "release", "schema.yaml"]
    assert {"synthetic.csv", "synopsis.dpsyn", "certificate.txt"} <= {p.name for p in Path("shown/release").iterdir()}
    shown = capsys.readouterr().out
    assert "Certified: the guarantee holds." in shown
    assert "expected error" in shown


def test_the_demo_can_be_repeated_and_be_quiet(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--rows", "50", "--folder", "shown"]) == 0
    capsys.readouterr()

    assert run(["demo", "--rows", "0", "--folder", "shown", "--quiet"]) == 0

    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out.split()[:2] == ["number", "of"]
    assert shown.out.rstrip().splitlines()[-1].strip().startswith("people of 70 and more with a job")


def test_a_check_lists_what_it_does_not_compare(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dpsyn.write_table(demo.people(50), "table.csv", synthetic=False)
    Path("schema.yaml").write_text(demo.people_schema_text(), "utf-8")

    assert run(["schema", "check", "schema.yaml", "table.csv"]) == 0

    shown = capsys.readouterr().out
    assert "Derived, so not compared: age_group." in shown
    assert "person_id: 50 persons, none with more rows than max_rows: 1." in shown


def test_the_columns_of_a_check_add_up_and_open_texts_are_counted_at_an_epsilon(
    people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"{i},{i % 7},{'x' if i % 3 else 'y'},{i},," for i in range(3_000)]
    people.write_text("\n".join(["id,who,job,note,none,extra", *lines]), "utf-8")
    Path("schema.yaml").write_text(
        "dpsyn_schema: 1\nprivacy_unit: {id: who, max_rows: 5}\nattributes:\n"
        "  id: {kind: identifier}\n  who: {kind: identifier}\n  job: {kind: open}\n  note: {kind: open}\n"
        "  none: {kind: open, missing: true}\n",
        "utf-8",
    )

    assert run(["schema", "check", "schema.yaml", "people.csv", "--epsilon", "8"]) == 0

    shown = capsys.readouterr().out
    assert "Columns: 3 open, 2 identifiers, 1 not in the schema." in shown
    assert "who: 7 persons, 7 of them with more rows than max_rows: 5; a release leaves out 2,965 rows of" in shown
    assert "job: 2 texts, in 100% of the rows" in shown
    assert "note: no text is in so many rows" in shown
    assert "none: all cells are empty" in shown


def test_a_table_fits_in_eighty_columns(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dpsyn.write_table(demo.people(50), "table.csv", synthetic=False)
    Path("schema.yaml").write_text(demo.people_schema_text(), "utf-8")

    assert run(["schema", "check", "schema.yaml", "table.csv"]) == 0

    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert max(len(line) for line in lines) <= 80


def test_a_check_names_the_first_line_with_another_number_of_cells(
    people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("schema.yaml").write_text("dpsyn_schema: 1\nattributes:\n  age: {kind: integer, low: 0, high: 99}\n", "utf-8")
    people.write_text(CSV + "one,two\n", "utf-8")

    code = run(["schema", "check", "schema.yaml", "people.csv"])

    assert code == 0
    assert "Probably a mistake: line 202 has more or fewer cells than the first line" in capsys.readouterr().out


def test_a_draft_notes_lines_with_another_number_of_cells(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people.write_text(CSV + "one,two\n", "utf-8")

    assert run(["schema", "draft", "people.csv", "-o", "schema.yaml"]) == 0

    assert "Note: Line 202 has more or fewer cells than the first line" in capsys.readouterr().err
    assert "# Line 202 has more or fewer cells" in Path("schema.yaml").read_text("utf-8")


def test_a_query_reads_from_a_database(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import duckdb

    with duckdb.connect("house.duckdb") as connection:
        connection.execute("CREATE TABLE people AS SELECT * FROM 'people.csv'")

    assert run(["schema", "draft", "house.duckdb", "--query", "SELECT age FROM people"]) == 0

    assert Schema.from_yaml(capsys.readouterr().out).names == ("age",)


# ── exit codes ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "command",
    [
        ["schema", "draft", "none.csv"],
        ["schema", "draft", "people.csv", "-o", "nowhere/schema.yaml"],
        ["schema", "draft", "people.csv", "-o", "."],
        ["schema", "check", "none.yaml"],
        ["schema", "check", "people.csv"],
        ["schema", "import", "people.csv"],
        ["schema", "approve", "none.yaml", "age", "--because", "x"],
        ["schema", "approve", "people.csv", "--because", "x"],
        ["schema", "nothing"],
        ["nothing"],
        ["demo", "--rows", "-1"],
        ["demo", "--folder", "people.csv"],
    ],
)  # fmt: skip
def test_a_mistake_of_the_user_ends_with_2_and_a_message(
    people: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(people.parent.iterdir())

    code = run(command)

    shown = capsys.readouterr()
    assert code == 2
    assert shown.err.strip()
    assert "Traceback" not in shown.err
    assert SECRET not in shown.err + shown.out
    assert sorted(people.parent.iterdir()) == before


def test_an_internal_error_ends_with_1_and_does_not_quote_rows(
    people: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> str:
        raise RuntimeError(f"could not convert {SECRET}")

    monkeypatch.setattr("dpsyn.diagnose.draft_schema", fail)

    code = run(["schema", "draft", "people.csv"])

    shown = capsys.readouterr()
    assert code == 1
    assert "internal error (RuntimeError in test_commands.py" in shown.err
    assert SECRET not in shown.err + shown.out


def test_errors_of_every_kind_are_shown_as_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> str:
        raise UserError("this is wrong; do that")

    monkeypatch.setattr("dpsyn.diagnose.draft_schema", fail)

    assert run(["schema", "draft", "people.csv"]) == 2
    assert capsys.readouterr().err == "dpsyn: this is wrong; do that\n"


def test_a_closed_pipe_ends_the_command_quietly(people: Path) -> None:
    read, write = os.pipe()
    os.close(read)

    done = subprocess.run(
        [sys.executable, "-m", "dpsyn", "schema", "json-schema"], stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)

    assert (done.returncode, done.stderr) == (0, b"")
