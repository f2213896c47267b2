"""``dpsyn synthesize``, ``measure``, ``generate``: what they write and print, and that nothing is lost on failure."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.csv as pacsv
import pyarrow.parquet as papq
import pytest

import dpsyn
from dpsyn.cli import common_options, generate, release_run
from dpsyn.cli.main import run
from dpsyn.errors import JournalError, LedgerError, OutputError
from dpsyn.private.journal import Journal
from dpsyn.recipes import RECIPES

SCHEMA = """
dpsyn_schema: 1
dataset: people
attributes:
  age: {kind: integer, low: 0, high: 99, bins: 10}
  sex: {kind: categorical, values: [F, M]}
"""
RELEASE = ["people.csv", "-s", "schema.yaml", "--epsilon", "1"]


@pytest.fixture(autouse=True)
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("schema.yaml").write_text(SCHEMA, "utf-8")
    Path("people.csv").write_text("age,sex\n" + "".join(f"{i % 90},{'FM'[i % 2]}\n" for i in range(2000)), "utf-8")
    return tmp_path


def files() -> set[str]:
    return {str(path) for path in Path().rglob("*")} - {"schema.yaml", "people.csv"}


def test_the_help_names_the_recipes_of_the_library() -> None:
    assert [name for name, recipe in RECIPES.items() if not recipe.is_baseline] == list(common_options.RECIPES)
    assert [name for name, recipe in RECIPES.items() if recipe.is_baseline] == list(common_options.BASELINES)
    assert list(dpsyn.inference.SYNTHESIS_METHODS) == list(common_options.SYNTHESIS_METHODS)
    assert common_options.DEFAULT_RECIPE == dpsyn.recipes.DEFAULT_RECIPE


def test_a_table_becomes_a_synthetic_one(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["synthesize", *RELEASE, "-o", "synthetic.csv", "--rows", "500", "--seed", "1"])

    shown = capsys.readouterr()
    table = pacsv.read_csv("synthetic.csv")
    assert code == 0
    assert table.column_names == ["age", "sex"]
    assert table.num_rows == 500
    assert "Wrote synthetic.csv." in shown.out
    assert "Certified: the guarantee holds." in shown.out
    assert "… step 2 of 9: measuring every attribute" in shown.err
    assert files() == {"synthetic.csv"}


def test_quiet_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["synthesize", *RELEASE, "-o", "synthetic.parquet", "--quiet"]) == 0

    assert capsys.readouterr() == ("", "")
    assert papq.read_schema("synthetic.parquet").metadata[b"dpsyn"] == b"synthetic"


def test_rows_go_to_standard_output_and_nothing_else_does() -> None:
    command = [sys.executable, "-m", "dpsyn", "synthesize", *RELEASE, "-o", "-", "--rows", "3"]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert len(done.stdout.splitlines()) == 4
    assert done.stdout.startswith('"age","sex"')
    assert "Certified: the guarantee holds." in done.stderr


def test_a_folder_holds_the_whole_release() -> None:
    assert run(["synthesize", *RELEASE, "-o", "release/"]) == 0

    assert {
        "synthetic.csv",
        "synopsis.dpsyn",
        "certificate.json",
        "certificate.txt",
        "datapackage.json",
        "README.txt",
    } == {path.name for path in Path("release").iterdir()}
    assert run(["inspect", "release/synopsis.dpsyn"]) == 0


def test_a_synopsis_gives_the_same_rows_for_the_same_seed() -> None:
    assert run(["measure", *RELEASE, "-o", "s.dpsyn"]) == 0

    for name in ("one.csv", "two.csv"):
        assert run(["generate", "s.dpsyn", "-o", name, "--seed", "5", "--rows", "100"]) == 0
    assert run(["generate", "s.dpsyn", "-o", "three.csv", "--seed", "6", "--rows", "100"]) == 0

    assert Path("one.csv").read_bytes() == Path("two.csv").read_bytes() != Path("three.csv").read_bytes()


def test_rows_are_generated_under_conditions(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", *RELEASE, "-o", "s.dpsyn", "-q"]) == 0

    assert (
        run(["generate", "s.dpsyn", "--where", "sex=F", "--where", "age=30..39", "--rows", "200", "-o", "w.csv"]) == 0
    )

    rows = pacsv.read_csv("w.csv").to_pydict()
    assert len(rows["sex"]) == 200
    assert set(rows["sex"]) == {"F"}
    assert min(rows["age"]) >= 30
    assert max(rows["age"]) <= 39
    for wrong in ("sex", "sex=X", "height=3"):
        assert run(["generate", "s.dpsyn", "--where", wrong, "-o", "wrong.csv"]) == 2
    assert "wrong.csv" not in files()


def test_folders_name_the_conditions_of_their_rows() -> None:
    assert run(["measure", *RELEASE, "-o", "s.dpsyn", "-q"]) == 0

    assert run(["generate", "s.dpsyn", "--where", "sex=F", "--rows", "20", "-o", "some/"]) == 0
    assert run(["generate", "s.dpsyn", "--where", "sex=F", "--rows", "20", "--replicates", "1", "-o", "each/"]) == 0
    assert run(["generate", "s.dpsyn", "--rows", "20", "-o", "all/"]) == 0

    for name in ("README.txt", "datapackage.json"):
        named = [
            "sampled to meet sex=F" in Path(folder, name).read_text("utf-8") for folder in ("some", "each-1", "all")
        ]
        assert named == [True, True, False]


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ([], "all", "They differ by the privacy noise and by sampling from a population"),
        (["--uncertainty", "noise"], "noise", "conclusions from dpsyn pool are about the private rows"),
        (["--uncertainty", "rows"], "rows", "The privacy noise is the same in all of them"),
    ],
)
def test_replicates_are_numbered_and_described(
    options: list[str], kind: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["measure", *RELEASE, "-o", "s.dpsyn", "-q"]) == 0
    command = ["generate", "s.dpsyn", "--replicates", "3", "--rows", "9", "--seed", "1", *options, "-o", "r.csv.gz"]

    assert run(command) == 0

    tables = ["r-1.csv.gz", "r-2.csv.gz", "r-3.csv.gz"]
    assert {*tables, "r-replicates.json"} == {name for name in files() if name.startswith("r")}
    assert message in capsys.readouterr().out
    described = json.loads(Path("r-replicates.json").read_text("utf-8"))
    digest = hashlib.sha256(Path("s.dpsyn").read_bytes()).hexdigest()
    assert described["tables"] == tables
    expected = {"count": 3, "rows": 9, "uncertainty": kind, "seed": 1, "synopsis": digest}
    assert {name: described[name] for name in expected} == expected
    assert abs(described["private_rows"] - dpsyn.Synopsis.load("s.dpsyn").rows) < 1


def test_replicates_of_a_release_folder_are_described() -> None:
    assert run(["synthesize", *RELEASE, "-o", "release/", "-q"]) == 0

    assert run(["generate", "release/", "--replicates", "2", "--rows", "9", "-o", "r.csv", "-q"]) == 0

    described = json.loads(Path("r-replicates.json").read_text("utf-8"))
    assert described["synopsis"] == hashlib.sha256(Path("release/synopsis.dpsyn").read_bytes()).hexdigest()


def test_replicates_are_not_written_over_others_or_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", *RELEASE, "-o", "s.dpsyn", "-q"]) == 0
    Path("r-2.csv").touch()
    Path("q-replicates.json").touch()

    assert run(["generate", "s.dpsyn", "--replicates", "2", "-o", "-"]) == 2
    assert run(["generate", "s.dpsyn", "--replicates", "2", "-o", "r.csv"]) == 2
    assert run(["generate", "s.dpsyn", "--replicates", "2", "-o", "q.csv"]) == 2
    assert run(["generate", "s.dpsyn", "--uncertainty", "noise", "-o", "p.csv"]) == 2
    assert "give their number with --replicates" in capsys.readouterr().err
    assert not {"r-1.csv", "q-1.csv", "p.csv"} & {*files()}


def test_a_weight_is_a_name_or_a_name_and_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert release_run.parse_weights(["income", "age=2", "a=b=0.5"]) == {"income": 4.0, "age": 2.0, "a=b": 0.5}

    assert run(["synthesize", *RELEASE, "-o", "a.csv", "--weight", "sex", "--weight", "age=2"]) == 0
    for wrong in (["sex=much"], ["height"], ["sex=0"], ["sex", "--recipe", "magic"]):
        assert run(["synthesize", *RELEASE, "-o", "b.csv", "--weight", *wrong]) == 2
    assert "b.csv" not in files()
    assert "there is no recipe 'magic'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--recipe", "privsyn", "--weight", "sex"],
            "recipe 'privsyn' has no weights; leave out --weight, or use recipe ",
        ),
        (["--weight", "sex", "--set", "weights=age=2"], "--set weights=… and --weight are the same option"),
        (["--recipe", "planned"], "give the plan with --plan FILE"),
        (["--set", "rare_sigmas"], "write PATH=VALUE, such as synthesis=gum"),
        (["--set", "=3"], "write PATH=VALUE"),
        (["--set", "rare_sigmas=3", "--set", "rare_sigmas=4"], "--set gives rare_sigmas twice, as '3' and as '4'"),
        (["--weight", "sex=4", "--weight", "sex=5"], "--weight gives sex twice, as 4 and as 5; give it once"),
        (["--weight", "sex", "--weight", "sex"], "--weight gives sex twice, as 4 and as 4; give it once"),
        (["--set", "rare_sigmas=many"], "option rare_sigmas is 'many'; it takes: number"),
        (["--set", "rarity=3"], "dpsyn has no option 'rarity'; its options are"),
        (["--recipe", "privsyn", "--set", "selection.max_triples=3"], "privsyn has no option 'selection.max_triples'"),
        (["--recipe", "mwem-practical"], "there is no recipe 'mwem-practical'"),
    ],
)
def test_options_of_recipes_are_checked_before_any_budget_is_spent(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["measure", *RELEASE, "-o", "s.dpsyn", "--ledger", "ledger.db", *options]) == 2

    assert message in capsys.readouterr().err
    assert files() == set()


def test_options_of_a_recipe_are_set_by_their_paths() -> None:
    schema = dpsyn.Schema.load("schema.yaml")

    chosen = release_run.choose_recipe(None, ["selection.max_triples=7", "rare_sigmas=4"], ["sex"], None, schema)

    assert isinstance(chosen, dpsyn.DPSyn)
    assert (chosen.selection.max_triples, chosen.rare_sigmas, chosen.weights) == (7, 4.0, {"sex": 4.0})
    assert run(["measure", *RELEASE, "-o", "s.dpsyn", "--recipe", "privsyn", "--set", "rare_rows=800", "-q"]) == 0


def test_a_plan_selects_the_recipe_planned() -> None:
    Path("plan.yaml").write_text("dpsyn_plan: 1\nmarginals: [[age, sex]]\n", "utf-8")
    schema = dpsyn.Schema.load("schema.yaml")

    chosen = release_run.choose_recipe(None, [], ["sex=2"], Path("plan.yaml"), schema)

    assert isinstance(chosen, dpsyn.Planned)
    assert chosen.plan.marginals[0].of == ("age", "sex")
    assert chosen.weights == {"sex": 2.0}
    assert release_run.choose_recipe("planned", [], [], Path("plan.yaml"), schema).name == "planned"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["rare_sigmas=3"], "rows are sampled from what was released, so only synthesis"),
        (["synthesis.alpha=0.2"], "name the method too, with --set synthesis=NAME: gibbs, gum, mcf."),
        (["synthesis=magic"], "there is no synthesis method 'magic'"),
        (["synthesis=gum", "synthesis.decay.begin=1"], "has no option 'synthesis.decay.begin'"),
        (["synthesis=gum", "synthesis.alfa=1"], "did you mean synthesis.alpha?"),
        (["synthesis=gum", "synthesis.alpha=0"], "alpha of GUM is 0.0; give a number above 0"),
        (["synthesis=gum", "synthesis.decay=root"], "it takes: step|exponential|linear|square-root|constant"),
        (
            ["synthesis=gum", "synthesis.decay=constant", "synthesis.decay.rate=1"],
            "synthesis.decay is constant, which has no option 'synthesis.decay.rate'; it has none",
        ),
        (["synthesis=gum", "synthesis.duplicate_shares=0.5"], "it takes: 2 numbers, separated by commas"),
    ],
)
def test_only_the_synthesis_can_be_chosen_again_for_rows(
    settings: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for setting in settings for word in ("--set", setting)]

    assert run(["generate", "s.dpsyn", "-o", "a.csv", *words]) == 2

    assert message in capsys.readouterr().err


def test_rows_of_one_synopsis_are_synthesized_by_several_methods() -> None:
    """Where two columns depend on each other, so that the methods have a pair to fit."""
    rows = [f"{i % 90},{'FM'[i % 90 < 45]}\n" for i in range(2000)]
    Path("people.csv").write_text("age,sex\n" + "".join(rows), "utf-8")
    assert run(["measure", *RELEASE, "-o", "s.dpsyn", "-q"]) == 0
    methods = [[], ["synthesis=gibbs"], ["synthesis=gum", "synthesis.alpha=0.05"], ["synthesis=mcf"]]

    for number, settings in enumerate(methods):
        words = [word for setting in settings for word in ("--set", setting)]
        assert run(["generate", "s.dpsyn", "--rows", "300", "--seed", "1", "-o", f"{number}.csv", *words]) == 0

    default, gibbs, gum, mcf = (Path(f"{number}.csv").read_bytes() for number in range(4))
    assert default == gibbs
    assert len({gibbs, gum, mcf}) == 3


def test_the_synthesis_of_rows_is_set_by_paths() -> None:
    assert generate.choose_synthesis([]) is None
    contest = generate.choose_synthesis(["synthesis.alpha=0.2", "synthesis=gum", "synthesis.decay=constant"])
    shifting = generate.choose_synthesis(["synthesis=gum", "synthesis.duplicate_shares=0.5,1"])

    assert contest == dpsyn.GUM(alpha=0.2, decay=dpsyn.ConstantDecay())
    assert shifting == dpsyn.GUM(duplicate_shares=(0.5, 1.0))


def test_the_synopsis_of_a_synthesis_is_kept_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["synthesize", *RELEASE, "-o", "a.csv", "--seed", "3", "--synopsis", "s.dpsyn"]) == 0
    assert run(["generate", "s.dpsyn", "-o", "b.csv", "--seed", "3"]) == 0

    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


def test_a_synopsis_is_extended_and_inspected(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", *RELEASE, "-o", "old.dpsyn", "-q"]) == 0
    assert run(["measure", *RELEASE, "-o", "new.dpsyn", "--extend", "old.dpsyn", "-q"]) == 0

    assert run(["inspect", "new.dpsyn"]) == 0
    assert "2 releases" in capsys.readouterr().out
    assert run(["inspect", "new.dpsyn", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["releases"]) == 2


def test_a_release_is_recorded_in_a_ledger_that_agrees_with_its_synopsis() -> None:
    release = ["measure", *RELEASE, "-o", "s.dpsyn", "--ledger", "ledger.db"]

    assert run(["ledger", "new", "ledger.db"]) == 0
    assert run(release) == 0
    assert run(["ledger", "verify", "ledger.db", "--against", "s.dpsyn"]) == 0
    Path("ledger.db").unlink()
    assert run([*release, "--force"]) == 2
    assert run(["ledger", "new", "ledger.db"]) == 0
    assert run([*release, "--force"]) == 0

    assert run(["ledger", "verify", "ledger.db", "--against", "s.dpsyn"]) == 0


def test_a_release_into_a_ledger_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    before = files()

    code = run(["measure", *RELEASE, "-o", "s.dpsyn", "--ledger", "ledgre.db"])

    assert code == 2
    assert "there is no ledger ledgre.db; correct the path, or begin a ledger there with" in capsys.readouterr().err
    assert files() == before


# ── runs that were interrupted ───────────────────────────────────────────────────────────────────────────────


def test_a_run_whose_output_failed_is_resumed_at_no_cost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    release = ["synthesize", *RELEASE, "-o", "a.csv", "--ledger", "ledger.db", "--seed", "1"]
    dpsyn.Ledger.create("ledger.db")

    with monkeypatch.context() as broken:
        broken.setattr("dpsyn.synopsis.Synopsis.write", lambda *_, **__: 1 / 0)
        assert run(release) == 1
    assert files() == {"a.csv.journal", "ledger.db"}
    assert run(release) == 2
    assert "continue it with --resume" in capsys.readouterr().err
    assert run([*release, "--resume"]) == 0

    assert files() == {"a.csv", "ledger.db"}
    [account] = dpsyn.Ledger(Path("ledger.db")).datasets()
    assert len(account.runs) == 1
    assert run(["ledger", "verify", "ledger.db"]) == 0


@pytest.mark.check
@pytest.mark.parametrize("phase", ["scoring", r"measuring \d", "making tables agree", "fitting records"])
def test_a_killed_run_continues_or_reports_what_was_lost(phase: str) -> None:
    """Sex follows from age, so that the pair is worth its noise in every run and each phase occurs."""
    rows = [f"{i % 90},{'FM'[i % 90 >= 45]}\n" for i in range(2000)]
    Path("people.csv").write_text("age,sex\n" + "".join(rows), "utf-8")
    command = [sys.executable, "-m", "dpsyn", "synthesize", *RELEASE, "-o", "a.csv", "--ledger", "ledger.db"]
    dpsyn.Ledger.create("ledger.db")
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    for line in running.stderr:
        if re.match(rf"… (step \d+ of \d+: )?{phase}", line):
            running.kill()
            break
    running.communicate()
    assert running.returncode == -9
    assert not Path("a.csv").exists()

    done = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=False)

    if done.returncode == 2:  # it was killed between the charge and the journal
        assert "answers were lost: " in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert pacsv.read_csv("a.csv").column_names == ["age", "sex"]
        left = {name for name in files() if not name.endswith(".partial")}  # what it was writing when it was killed
        assert left == {"a.csv", "ledger.db"}
    [account] = dpsyn.Ledger(Path("ledger.db")).datasets()
    assert len(account.runs) == 1
    assert account.rho <= account.runs[0].budget.reserved_rho


def test_a_synopsis_that_the_interrupted_run_wrote_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    release = ["synthesize", *RELEASE, "-o", "a.csv", "--synopsis", "s.dpsyn"]
    with monkeypatch.context() as broken:
        broken.setattr("dpsyn.synopsis.Synopsis.write", lambda *_, **__: 1 / 0)
        assert run(release) == 1

    assert run([*release, "--resume"]) == 0

    assert files() == {"a.csv", "s.dpsyn"}


def test_an_interrupted_run_prints_how_to_continue(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dpsyn.synopsis.Synopsis.write", interrupt)

    assert run(["synthesize", *RELEASE, "-o", "a.csv"]) == 130

    assert "are kept in a.csv.journal; run the same command with --resume to continue" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("dpsyn.synopsis.Synopsis.write", OutputError("a.csv cannot be written: no space left on device")),
        (
            "dpsyn.private.journal.Journal.finish",
            JournalError("the journal cannot be written: no space left on device"),
        ),
        ("dpsyn.accounting.Ledger.close", LedgerError("the ledger l.db cannot be written: disk is full")),
    ],
)
def test_a_run_continues_after_a_full_disk(
    method: str, error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(written: object, *_: object, **__: object) -> None:
        if isinstance(written, Journal):
            written.release()  # as it does when a line cannot be written
        raise error

    release = ["synthesize", *RELEASE, "-o", "a.csv", "--ledger", "l.db", "--recipe", "independent"]
    dpsyn.Ledger.create("l.db")
    with monkeypatch.context() as disk:
        disk.setattr(method, full)
        assert run(release) == 2
    shown = capsys.readouterr().err
    charged = dpsyn.Ledger(Path("l.db")).datasets()[0].runs[0].measurements

    assert run([*release, "--resume"]) == 0

    assert "with --resume to continue without spending their budget again" in shown
    assert [account.measurements for account in dpsyn.Ledger(Path("l.db")).datasets()[0].runs] == [charged]


def test_a_run_that_is_refused_is_not_asked_to_continue(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    release = ["synthesize", *RELEASE, "-o", "a.csv", "--recipe", "independent", "--set", "noise=gaussian"]
    with monkeypatch.context() as broken:
        broken.setattr("dpsyn.synopsis.Synopsis.write", lambda *_, **__: 1 / 0)
        assert run(release) == 1
    capsys.readouterr()

    assert run([*release, "--resume", "--delta", "1e-7"]) == 2

    shown = capsys.readouterr().err
    assert "belongs to a run with other arguments; different: the budget" in shown
    assert "--resume to continue" not in shown


def test_the_refusal_of_a_draft_names_the_file_that_was_given(capsys: pytest.CaptureFixture[str]) -> None:
    Path("v.yaml").write_text(SCHEMA.replace("values: [F, M]", "values: [F, M], provenance: data"), "utf-8")

    assert run(["synthesize", "people.csv", "-s", "v.yaml", "--epsilon", "1", "-o", "a.csv"]) == 2

    assert "dpsyn schema approve v.yaml ATTRIBUTE..." in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("name", ["-", "s/"])
def test_a_synopsis_is_written_to_a_file_only(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", *RELEASE, "-o", name]) == 2

    assert "a synopsis cannot be written to" in capsys.readouterr().err
    assert files() == set()


def test_a_run_is_resumed_with_the_options_it_began_with(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    release = ["measure", *RELEASE, "-o", "s.dpsyn"]
    with monkeypatch.context() as broken:
        broken.setattr("dpsyn.synopsis.Synopsis.save", lambda *_: 1 / 0)
        assert run(release) == 1

    assert run([*release, "--resume", "--recipe", "independent"]) == 2
    assert "different: the recipe" in capsys.readouterr().err
    assert run([*release, "--resume"]) == 0

    assert files() == {"s.dpsyn"}


def test_the_public_number_of_rows_is_known_to_a_resumed_run(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("schema.yaml").write_text(SCHEMA + "neighbors: replace\n", "utf-8")
    release = ["measure", *RELEASE, "-o", "s.dpsyn"]
    with monkeypatch.context() as broken:
        broken.setattr("dpsyn.synopsis.Synopsis.save", lambda *_: 1 / 0)
        assert run(release) == 1

    assert run([*release, "--resume"]) == 0

    assert dpsyn.Synopsis.load("s.dpsyn").rows == 2000


@pytest.mark.parametrize("command", ["synthesize", "generate", "replicates"])
def test_formulas_are_escaped_if_asked_for(command: str) -> None:
    Path("schema.yaml").write_text(SCHEMA.replace("[F, M]", "['=F', '=M']"), "utf-8")
    Path("people.csv").write_text("age,sex\n" + "3,=F\n" * 500, "utf-8")
    assert run(["measure", *RELEASE, "-o", "s.dpsyn"]) == 0
    commands = {
        "synthesize": ["synthesize", *RELEASE, "-o", "a.csv", "--synopsis", "t.dpsyn"],
        "generate": ["generate", "s.dpsyn", "-o", "a.csv"],
        "replicates": ["generate", "s.dpsyn", "--replicates", "1", "-o", "a.csv"],
    }

    assert run([*commands[command], "--escape-formulas"]) == 0

    [written] = Path().glob("a*.csv")
    assert set(pacsv.read_csv(written)["sex"].to_pylist()) <= {"'=F", "'=M"}


def test_formulas_are_for_csv(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["synthesize", *RELEASE, "-o", "a.parquet", "--escape-formulas"]) == 2

    assert "--escape-formulas is for CSV files, and a.parquet is none" in capsys.readouterr().err


def test_there_must_be_something_to_resume(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", *RELEASE, "-o", "s.dpsyn", "--resume", "--ledger", "ledger.db"]) == 2

    assert "there is no interrupted run to resume" in capsys.readouterr().err
    assert files() == set()


def test_a_large_delta_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    Path("schema.yaml").write_text(SCHEMA + "expected_size: 2000\n", "utf-8")

    assert run(["synthesize", *RELEASE, "--delta", "0.0001", "-o", "a.csv"]) == 0

    assert "Note: δ = 0.0001 is large for a table of about 2,000 rows" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-o", "a.txt"], "its suffix is not that of a table"),
        (["-o", "nowhere/a.csv"], "there is no folder nowhere"),
        (["-o", "schema.yaml"], "schema.yaml is given twice"),
        (["-o", "a.csv", "--recipe", "magic"], "there is no recipe 'magic'"),
        (["-o", "a.csv", "--delta", "0.5"], "small probability"),
        (["-o", "a.csv", "--synopsis", "people.csv"], "people.csv is given twice"),
        (["-o", ".."], "the folder .. is not empty"),
        (["-o", "-", "--resume"], "keeps no journal"),
        (["-o", "a.csv", "--synopsis", "a.csv"], "a.csv is given twice, as --output and as --synopsis"),
        (["-o", "ledger.db", "--force"], "ledger.db is given twice"),
        (["-o", "people.csv", "--force"], "people.csv is given twice, as data and as --output"),
        (["-o", "a.csv", "--synopsis", "schema.yaml", "--force"], "schema.yaml is given twice"),
    ],
)
def test_mistakes_are_refused_before_any_budget_is_spent(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["synthesize", *RELEASE, "--ledger", "ledger.db", *options])

    assert code == 2
    assert words in capsys.readouterr().err
    assert files() == set()


@pytest.mark.parametrize("name", ["none.dpsyn", "people.csv"])
@pytest.mark.parametrize("command", [["generate", "-o", "a.csv"], ["inspect"]])
def test_a_file_that_is_no_synopsis_is_refused(
    name: str, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = run([command[0], name, *command[1:]])

    assert code == 2
    assert name in capsys.readouterr().err
    assert files() == set()


def test_a_draft_is_refused_and_no_budget_is_spent(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "draft", "people.csv", "-o", "draft.yaml"]) == 0

    code = run(["synthesize", "people.csv", "-s", "draft.yaml", "--epsilon", "1", "-o", "a.csv", "--ledger", "l.db"])

    assert code == 2
    assert "taken from the data" in capsys.readouterr().err
    assert files() == {"draft.yaml"}


@pytest.mark.java
def test_spark_counts_the_files_of_a_folder() -> None:
    from tests.engines.engines import spark_session

    spark_session()
    Path("parts").mkdir()
    for part in range(2):
        papq.write_table(pacsv.read_csv("people.csv"), f"parts/{part}.parquet")
    release = ["parts/*.parquet", *RELEASE[1:], "--engine", "spark", "--recipe", "independent", "--ledger", "l.db"]
    dpsyn.Ledger.create("l.db")

    code = run(["synthesize", *release, "-o", "synthetic.csv"])

    assert code == 0
    assert abs(pacsv.read_csv("synthetic.csv").num_rows - 4_000) < 200  # σ is about 7 for each of the tables
    assert run(["ledger", "verify", "l.db"]) == 0


@pytest.mark.parametrize("data", ["private", "private/*.csv", "priv*/*.csv", "**/*.csv", "private/**", "**/private/*"])
def test_no_output_is_written_among_the_files_of_the_private_table(
    data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "private").mkdir()
    target = str(tmp_path / "private" / "synthetic.csv")

    assert run(["synthesize", str(tmp_path / data), "-s", "schema.yaml", "--epsilon", "1", "-o", target]) == 2

    assert "so the next run would read it as private data; choose another path" in capsys.readouterr().err


@pytest.mark.parametrize("data", ["private/*/*.csv", "private/**/*.parquet", "priv*/**/*.txt", "**/*.json"])
def test_no_release_folder_is_written_where_the_pattern_of_the_private_table_matches_its_files(
    data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("private").mkdir()

    code = run(["synthesize", data, *RELEASE[1:], "-o", "private/release/", "--ledger", "ledger.db"])

    assert code == 2
    assert "so the next run would read it as private data; choose another path" in capsys.readouterr().err
    assert files() == {"private"}


@pytest.mark.parametrize("data", ["private/*.csv", "private/**/*.csv", "private/*/*"])
def test_a_release_may_be_written_where_the_pattern_does_not_match_it(data: str) -> None:
    Path("private/one").mkdir(parents=True)
    for name in ("private/a.csv", "private/one/b.csv"):
        Path(name).write_bytes(Path("people.csv").read_bytes())

    assert run(["synthesize", data, *RELEASE[1:], "--recipe", "independent", "-o", "private/rows.parquet"]) == 0


def test_the_files_of_a_release_folder_are_those_that_patterns_are_compared_with() -> None:
    synopsis = dpsyn.measure("people.csv", "schema.yaml", 1.0, recipe="independent")
    synopsis.write("small/", 10)
    synopsis.write("large/", 1_100_000)
    written = {path.relative_to(folder).parts for folder in ("small", "large") for path in Path(folder).rglob("*.*")}

    assert written - {("synthetic", "part-00001.parquet")} == set(release_run._RELEASE_FILES)


@pytest.mark.parametrize(
    ("data", "query"),
    [
        ("people.csv", "SELECT * FROM people"),
        ("nothing.duckdb", "people"),
        ("postgresql://steward@nowhere/census", "people"),
        ("postgresql://steward@nowhere/census", None),
    ],
)
def test_spark_takes_no_query_and_nothing_is_read(
    data: str, query: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [] if query is None else ["--query", query]

    code = run(["synthesize", data, *RELEASE[1:], *asked, "--engine", "spark", "-o", "a.csv", "--ledger", "ledger.db"])

    assert code == 2
    assert "not the result of a query; set the engine to auto or stream" in capsys.readouterr().err
    assert files() == set()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("folder", "folder holds no Parquet file"),
        ("folder/*.parquet", "no file matches folder/*.parquet"),
        ("people.parquet", "there is no file or folder people.parquet"),
    ],
)
def test_missing_files_are_reported_before_spark_is_started(
    data: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("folder").mkdir()

    code = run(["synthesize", data, *RELEASE[1:], "--engine", "spark", "-o", "a.csv", "--ledger", "ledger.db"])

    assert code == 2
    assert words in capsys.readouterr().err
    assert files() == {"folder"}


@pytest.mark.parametrize("data", ["people.csv", "census.people"])
def test_a_missing_spark_is_reported_and_nothing_is_spent(
    data: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    ledger = dpsyn.Ledger.create("ledger.db")

    code = run(["synthesize", data, *RELEASE[1:], "--engine", "spark", "-o", "a.csv", "--ledger", "ledger.db"])

    assert code == 2
    assert "'.[spark]'" in capsys.readouterr().err
    assert files() == {"ledger.db"}
    assert sum(account.rho for account in ledger.datasets()) == 0


@pytest.mark.java
@pytest.mark.parametrize("data", ["nothing_here", "census.nothing_here"])
def test_a_table_that_spark_does_not_know_is_refused(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.engines.engines import spark_session

    spark_session()

    code = run(["synthesize", data, *RELEASE[1:], "--engine", "spark", "-o", "a.csv", "--ledger", "ledger.db"])

    assert code == 2
    assert "Spark has no such table, and there is no such file" in capsys.readouterr().err
    assert files() == set()


def test_a_query_selects_from_files() -> None:
    release = [*RELEASE, "--query", "SELECT age, sex FROM people WHERE sex = 'F'", "--recipe", "independent"]

    assert run(["synthesize", *release, "-o", "women.csv"]) == 0

    table = pacsv.read_csv("women.csv")
    assert abs(table.num_rows - 1_000) < 200  # σ is about 7 for each of the tables
    assert table.column("sex").to_pylist().count("M") < 100
