"""``dpsyn itemsets``: what it prints and writes, and that nothing is lost when a run fails."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.csv as pacsv
import pyarrow.parquet as papq
import pytest

import dpsyn
from dpsyn.cli.main import run
from dpsyn.encoding.arrays import as_string
from dpsyn.sources import open_source

SECRET = "Zaphod"
MINE = ["itemsets", "baskets.dat", "--items", "1..20", "--epsilon", "1000", "--allow-large-epsilon"]


@pytest.fixture(autouse=True)
def baskets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = ["1 2 3"] * 400 + ["1 2"] * 200 + ["4"] * 300 + [f"{SECRET} 1"] * 3 + [""]
    Path("baskets.dat").write_text("\n".join(lines), "utf-8")
    rows = [(number, item) for number, line in enumerate(lines) for item in line.split()]
    Path("long.csv").write_text(
        "who,order,product\n" + "".join(f"p{n // 100},{n},{item}\n" for n, item in rows), "utf-8"
    )
    Path("items.txt").write_text("\n".join(map(str, range(1, 21))), "utf-8")
    return tmp_path


def files() -> set[str]:
    return {str(path) for path in Path().rglob("*")} - {"baskets.dat", "long.csv", "items.txt"}


def test_a_list_and_the_certificate_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    code = run([*MINE, "--top", "4"])

    shown = capsys.readouterr()
    assert code == 0
    assert [line.split()[:2] for line in shown.out.splitlines() if line.strip()[:1].isdigit()][1:] == [
        ["1", "1"],
        ["2", "2"],
        ["3", "1,"],
        ["4", "3"],
    ]
    assert "4 itemsets of about 90" in shown.out
    assert "For whom: every single basket." in shown.err
    assert SECRET not in shown.out + shown.err
    assert files() == set()


def test_json_is_all_that_is_printed_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*MINE, "--top", "3", "--json", "--rules", "-", "--confidence", "0.9", "-q"]) == 0

    shown = capsys.readouterr()
    data = json.loads(shown.out)
    assert [itemset["items"] for itemset in data["itemsets"]] == [["1"], ["2"], ["1", "2"]]
    assert {tuple(rule["given"]) for rule in data["rules"]} == {("1",), ("2",)}
    assert data["certificate"]["certified_epsilon"] == 1000
    assert shown.err == ""


@pytest.mark.parametrize("name", ["a.xlsx", "a.sav", "a.dta"])
def test_office_files_hold_items_as_one_text(name: str) -> None:
    assert run([*MINE, "--top", "5", "-o", name, "--rules", f"rules-{name}"]) == 0

    (batch,) = open_source(name).batches(["items"])
    assert as_string(batch.column("items"))[2].as_py() == "1|2"


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet", "a.json"])
def test_itemsets_and_rules_are_written_by_suffix(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = run([*MINE, "--top", "5", "-o", name, "--rules", f"rules-{name}", "--synopsis", "s.dpsyn"])

    assert code == 0
    assert files() == {name, f"rules-{name}", "s.dpsyn"}
    if name == "a.json":
        assert json.loads(Path(name).read_text("utf-8"))["itemsets"][2]["items"] == ["1", "2"]
        assert {"given", "then", "confidence"} <= json.loads(Path("rules-a.json").read_text("utf-8"))[0].keys()
    elif name == "a.parquet":
        assert papq.read_table(name)["items"].to_pylist()[2] == ["1", "2"]
    else:
        assert str(pacsv.read_csv(name)["items"].to_pylist()[2]) == "1|2"
        assert pacsv.read_csv(f"rules-{name}").column_names[:2] == ["given", "then"]
    assert f"Wrote {name}." in capsys.readouterr().out
    assert run(["inspect", "s.dpsyn"]) == 0
    assert run(["generate", "s.dpsyn", "-o", "-", "--rows", "2"]) == 0


def test_rules_are_printed_after_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*MINE, "--top", "6", "--rules", "-", "--confidence", "0.6"]) == 0

    shown = capsys.readouterr().out
    assert "rules with a confidence of at least 60%" in shown
    assert "2 → 1" in shown


def test_a_long_table_and_a_unit(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["itemsets", "long.csv", "--basket", "order", "--item", "product", "--items", "items.txt"]

    code = run(
        [*command, "--epsilon", "1000", "--allow-large-epsilon", "--unit", "who", "--max-baskets", "10", "--top", "3"]
    )

    shown = capsys.readouterr()
    assert code == 0
    assert "all baskets with the same who (at most 10 baskets per who are used)" in shown.err
    assert "3 itemsets of about 93 baskets" in shown.out  # nine persons with ten baskets each, one with three


def test_items_are_discovered_privately(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["itemsets", "baskets.dat", "--discover", "--delta", "1e-6", "--max-items", "3", "--epsilon", "20"])

    shown = capsys.readouterr()
    assert code == 0
    assert "δ = 1e-6" in shown.err
    assert SECRET not in shown.out + shown.err


def test_nothing_frequent_is_an_empty_list_and_no_synopsis(capsys: pytest.CaptureFixture[str]) -> None:
    Path("baskets.dat").write_text(f"{SECRET}\n", "utf-8")
    command = ["itemsets", "baskets.dat", "--discover", "--delta", "1e-6", "--max-items", "3", "--epsilon", "1"]

    assert run([*command, "-o", "a.csv", "--synopsis", "s.dpsyn"]) == 0

    assert files() == {"a.csv"}
    assert Path("a.csv").read_text("utf-8") == '"items","count","standard_error","frequency"\n'
    shown = capsys.readouterr()
    assert "s.dpsyn" not in shown.out
    assert "No item is frequent enough to be discovered, so s.dpsyn was not written." in shown.err


def test_a_release_is_recorded_in_a_ledger(capsys: pytest.CaptureFixture[str]) -> None:
    dpsyn.Ledger.create("l.db")

    assert run([*MINE, "-o", "a.json", "--ledger", "l.db", "--dataset", "shop", "--synopsis", "s.dpsyn", "-q"]) == 0

    assert run(["ledger", "verify", "l.db", "--against", "s.dpsyn"]) == 0
    assert run(["ledger", "show", "l.db"]) == 0
    [account] = dpsyn.Ledger(Path("l.db")).datasets()
    assert account.dataset == "shop"
    assert account.runs[0].closed


# ── runs that were interrupted ───────────────────────────────────────────────────────────────────────────────


def test_a_run_whose_output_failed_is_resumed_at_no_cost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    release = [*MINE, "-o", "a.csv", "--ledger", "l.db", "--dataset", "shop"]
    dpsyn.Ledger.create("l.db")

    with monkeypatch.context() as broken:
        broken.setattr("dpsyn.itemsets.FrequentItemsets.table", lambda *_, **__: 1 / 0)
        assert run(release) == 1
    assert files() == {"a.csv.journal", "l.db"}
    assert run(release) == 2
    assert "continue it with --resume" in capsys.readouterr().err
    assert run([*release, "--resume", "--top", "7"]) == 2
    assert "different: the recipe" in capsys.readouterr().err
    assert run([*release, "--resume"]) == 0

    assert files() == {"a.csv", "l.db"}
    [account] = dpsyn.Ledger(Path("l.db")).datasets()
    assert len(account.runs) == 1


@pytest.mark.check
@pytest.mark.parametrize("phase", ["selecting", "counting"])
def test_a_killed_run_continues_or_reports_what_was_lost(phase: str) -> None:
    command = [sys.executable, "-m", "dpsyn", *MINE, "-o", "a.csv", "--ledger", "l.db", "--dataset", "shop"]
    dpsyn.Ledger.create("l.db")
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

    if done.returncode == 2:  # it was killed between the charge and the journal, or before any charge
        assert "answers were lost: " in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert pacsv.read_csv("a.csv").column_names[0] == "items"
    [account] = dpsyn.Ledger(Path("l.db")).datasets()
    assert len(account.runs) == 1


def test_an_interrupted_run_prints_how_to_continue(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dpsyn.itemsets.FrequentItemsets.to_synopsis", interrupt)

    assert run([*MINE, "--synopsis", "s.dpsyn"]) == 130

    assert "are kept in s.dpsyn.journal; run the same command with --resume to continue" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["-o", "a.txt"],
            "its suffix is not that of a table; use .csv, .csv.gz, .parquet, .arrow, .xlsx, .sav or .dta, or .json",
        ),
        (["-o", "nowhere/a.csv"], "there is no folder nowhere"),
        (["-o", "items.txt"], "its suffix is not that of a table"),
        (["-o", "a.csv", "--rules", "a.csv"], "a.csv is given twice"),
        (["-o", "baskets.dat"], "baskets.dat is given twice"),
        (["--rules", "long.csv"], "long.csv exists"),
        (["--synopsis", "-"], "a synopsis cannot go to standard output"),
        (["-o", "a.csv", "--top", "0"], "from 1 to 2,000"),
        (["-o", "a.csv", "--min-support", "2"], "fraction of the baskets"),
        (["--confidence", "2"], "from 0 to 1"),
        (["-o", "a.csv", "--delta", "1e-9"], "leave both out"),
        (["--discover"], "give the universe of items"),
        (["--resume"], "keeps no journal"),
        (["-o", "a.csv", "--dataset", ""], "needs the name of the dataset"),
        (["-o", "a.csv", "--unit", "who"], "there is no column 'who'"),
    ],
)
def test_mistakes_are_refused_before_any_budget_is_spent(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run([*MINE, "--ledger", "l.db", "--dataset", "shop", *options])

    assert code == 2
    assert words in capsys.readouterr().err
    assert files() == set()
