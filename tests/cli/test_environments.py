"""Odd environments: any encoding of standard output, none at all, a full disk, odd paths, killed runs."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpsyn
from dpsyn.cli import release_run
from dpsyn.cli.main import COMMANDS, run
from dpsyn.private.journal import Journal

SCHEMA = """
dpsyn_schema: 1
dataset: people
attributes:
  age: {kind: integer, low: 0, high: 99, bins: 10}
  sex: {kind: categorical, values: [F, M]}
  job: {kind: categorical, values: [Köchin, pêcheur, 漁師]}
"""
RELEASE = ["people.csv", "-s", "schema.yaml", "--epsilon", "1"]
JOBS = ("Köchin", "pêcheur", "漁師")


@pytest.fixture(autouse=True)
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("schema.yaml").write_text(SCHEMA, "utf-8")
    rows = "".join(f"{i % 90},{'FM'[i % 2]},{JOBS[i % 3]}\n" for i in range(600))
    Path("people.csv").write_text("age,sex,job\n" + rows, "utf-8")
    return tmp_path


# ── encodings ────────────────────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def streams(encoding: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Standard output and standard error as files of an encoding."""
    out, err = io.BytesIO(), io.BytesIO()
    texts = [io.TextIOWrapper(file, encoding=encoding) for file in (out, err)]
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", texts[0])
        patched.setattr(sys, "stderr", texts[1])
        yield out, err
    for text in texts:
        text.detach()  # otherwise it would close the file when it is forgotten


def every_command() -> list[list[str]]:
    """Command lines that use every command, each with the files of those before it."""
    return [
        ["--help"],
        *([name, "--help"] for name in COMMANDS),
        ["schema", "draft", "people.csv", "-o", "draft.yaml"],
        ["schema", "check", "schema.yaml", "people.csv"],
        ["schema", "draft", "people.csv", "-o", "-"],
        ["ledger", "new", "l.db"],
        ["explore", *RELEASE, "--ledger", "l.db", "-o", "first.dpsyn"],
        ["plan", "draft", "first.dpsyn", "-o", "plan.yaml"],
        ["plan", "check", "plan.yaml", "-s", "schema.yaml"],
        ["plan", "predict", "plan.yaml", "-s", "schema.yaml", "--epsilon", "1", "--rows", "600"],
        ["measure", *RELEASE, "--ledger", "l.db", "-o", "s.dpsyn"],
        ["synthesize", *RELEASE, "-o", "rows.csv"],
        ["synthesize", *RELEASE, "-o", "-"],
        ["generate", "s.dpsyn", "-o", "-", "--rows", "9"],
        ["inspect", "s.dpsyn"],
        ["inspect", "s.dpsyn", "--json"],
        ["query", "s.dpsyn", "job,sex"],
        ["query", "s.dpsyn", "job", "--json"],
        ["ledger", "show", "l.db"],
        ["ledger", "verify", "l.db"],
        ["recipes"],
        ["recipes", "gum"],
        ["compare-noise", "--epsilon", "1", "--delta", "1e-9", "--marginals", "9"],
        ["evaluate", "people.csv", "rows.csv", "-s", "schema.yaml"],
        ["simulate", "schema.yaml", "--rows", "5", "-o", "-"],
        ["itemsets", "baskets.dat", "--items", "1..5", "--epsilon", "1", "--top", "3"],
        ["query", "s.dpsyn", "漁"],
        ["inspect", "漁師.dpsyn"],
    ]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "cp437", "utf-8"])
def test_every_command_writes_to_any_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("baskets.dat").write_text("1 2 3\n2 3\n1 5\n" * 20, "utf-8")
    failed = {}
    for command in every_command():
        with streams(encoding, monkeypatch) as (out, err):
            code = run(command)
        if code != (2 if "漁" in command[-1] else 0):
            failed[" ".join(command)] = (out.getvalue() + err.getvalue()).decode(encoding, "replace")
        if command == ["query", "s.dpsyn", "job", "--json"]:
            assert "漁師" in json.dumps(json.loads(out.getvalue()), ensure_ascii=False)

    assert failed == {}


def test_greek_letters_are_spelled_where_they_do_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    with streams("cp1252", monkeypatch) as (out, _):
        assert run(["synthesize", *RELEASE, "-o", "rows.csv"]) == 0

    assert "epsilon = 1" in out.getvalue().decode("cp1252")


def test_the_encoding_of_the_environment_is_no_error() -> None:
    assert run(["measure", *RELEASE, "-o", "s.dpsyn", "-q"]) == 0
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252"}

    done = subprocess.run([sys.executable, "-m", "dpsyn", "inspect", "s.dpsyn"], capture_output=True, env=environment)

    assert (done.returncode, done.stderr) == (0, b"")
    assert "Köchin" not in done.stdout.decode("cp1252")
    assert "epsilon" in done.stdout.decode("cp1252")


# ── no standard output, a full disk ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "command", [["inspect", "s.dpsyn"], ["inspect", "s.dpsyn", "--json"], ["generate", "s.dpsyn", "-o", "-"]]
)
def test_a_result_needs_a_standard_output(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["measure", *RELEASE, "-o", "s.dpsyn", "-q"]) == 0
    monkeypatch.setattr(sys, "stdout", None)

    assert run(command) == 2
    assert "there is no standard output" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [["synthesize", *RELEASE, "-o", "-"], ["itemsets", "b.dat", "--items", "1..9", "--epsilon", "1"]]
)
def test_nothing_is_measured_for_a_standard_output_that_is_closed(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("b.dat").write_text("1 2\n", "utf-8")
    monkeypatch.setattr(sys, "stdout", None)
    for opened in ("dpsyn.recipes._measure.open_private", "dpsyn.itemsets.frequent.open_baskets"):
        monkeypatch.setattr(opened, lambda *_, **__: pytest.fail("budget was spent"))

    assert run(command) == 2
    assert "there is no standard output" in capsys.readouterr().err


def test_a_command_that_writes_files_needs_no_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)

    assert run(["synthesize", *RELEASE, "-o", "rows.csv"]) == 0
    assert Path("rows.csv").exists()


def test_without_standard_error_standard_output_holds_rows_alone(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr(sys, "stderr", None)

    assert run(["synthesize", *RELEASE, "-o", "-", "--rows", "2"]) == 0
    assert len(capfdbinary.readouterr().out.splitlines()) == 3


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", [["generate", "s.dpsyn", "-o", "-"], ["inspect", "s.dpsyn"], ["recipes", "--json"]])
def test_a_full_disk_behind_standard_output_is_reported_once(command: list[str]) -> None:
    assert run(["measure", *RELEASE, "-o", "s.dpsyn", "-q"]) == 0

    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dpsyn", *command, "-q"][: 3 + len(command)], stdout=full, stderr=-1
        )

    assert done.returncode == 2
    assert done.stderr.decode().splitlines()[-1:] == [
        "dpsyn: standard output cannot be written: no space left on device"
    ]
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


# ── paths ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["measure", *RELEASE, "-o", "b" * 249 + ".dpsyn"], "dpsyn.journal cannot be written: file name too long"),
        (["synthesize", *RELEASE, "-o", "b" * 249 + ".csv"], "csv.journal cannot be written: file name too long"),
        (["synthesize", *RELEASE, "-o", "b/" * 3000 + "a.csv"], "cannot be used: file name too long"),
        (["synthesize", *RELEASE, "-o", "a\0b.csv"], "no file has such a name"),
        (["synthesize", "b/" * 3000 + "a.csv", *RELEASE[1:], "-o", "a.csv"], "file name too long"),
        (["synthesize", "people.csv", "-s", "b/" * 3000, "--epsilon", "1", "-o", "a.csv"], "file name too long"),
        (["synthesize", *RELEASE, "-o", "a.csv", "--ledger", "b/" * 3000], "file name too long"),
        (["generate", "b/" * 3000, "-o", "a.csv"], "file name too long"),
        (["inspect", "b/" * 3000], "file name too long"),
        (["schema", "draft", "people.csv", "-o", "b/" * 3000], "file name too long"),
        (["schema", "draft", "b/" * 3000, "-o", "a.yaml"], "file name too long"),
        (["schema", "check", "b/" * 3000, "people.csv"], "file name too long"),
        (["ledger", "show", "b/" * 3000], "file name too long"),
        (["ledger", "verify", "b/" * 3000], "file name too long"),
        (["plan", "check", "b/" * 3000, "-s", "schema.yaml"], "file name too long"),
        (["query", "b/" * 3000, "age"], "file name too long"),
        (["evaluate", "people.csv", "b/" * 3000, "-s", "schema.yaml"], "file name too long"),
        (["simulate", "schema.yaml", "-o", "b/" * 3000 + "a.csv"], "file name too long"),
        (["itemsets", "b/" * 3000, "--items", "1..5", "--epsilon", "1"], "file name too long"),
        (["itemsets", "people.csv", "--items", "b/" * 3000, "--epsilon", "1"], "file name too long"),
    ],
)
def test_names_that_no_file_can_have_are_refused(
    command: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(command)

    shown = capsys.readouterr().err
    assert words in shown.lower()
    assert code == 2
    assert len(shown) < 3000


def test_a_working_folder_that_was_removed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert run(["synthesize", *RELEASE, "-o", "a.csv"]) == 2
    assert "the working folder cannot be used" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ["synthesize", *RELEASE, "-o", "\x1b[31mred.csv"],
        ["measure", *RELEASE, "-o", "\x1b[31mred.dpsyn"],
        ["inspect", "\x1b[31mred.dpsyn"],
        ["synthesize", "\x1b[31mred.csv", *RELEASE[1:], "-o", "a.csv"],
        ["schema", "check", "schema.yaml", "\x1b[31mred.csv"],
        ["simulate", "schema.yaml", "--rows", "3", "-o", "\x1b[31mred.csv"],
        ["ledger", "verify", "\x1b[31mred.db"],
        ["query", "s.dpsyn", "--wh\x1b[31mere"],
    ],
)
def test_a_name_with_terminal_sequences_is_spelled_out(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    run(command)

    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    assert r"\x1b[31m" in shown.out + shown.err


# ── what was paid for is kept ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "command",
    [
        ["synthesize", *RELEASE, "-o", "-", "--ledger", "l.db"],
        [
            "itemsets",
            "people.csv",
            "--basket",
            "age",
            "--item",
            "sex",
            "--items",
            "1..5",
            "--epsilon",
            "1",
            "--ledger",
            "l",
        ],
    ],
)
def test_a_release_on_a_ledger_is_not_only_printed(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command) == 2

    assert "a release that is recorded in a ledger must be kept" in capsys.readouterr().err
    assert not Path("l.db").exists()


def test_rows_on_standard_output_leave_the_synopsis_that_was_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    release = ["synthesize", *RELEASE, "-o", "-", "--ledger", "l.db", "--synopsis", "s.dpsyn"]
    dpsyn.Ledger.create(Path("l.db"))

    with monkeypatch.context() as broken:
        broken.setattr("dpsyn.synopsis.Synopsis.save", lambda *_: 1 / 0)
        assert run(release) == 1
    assert Path("s.dpsyn.journal").exists()
    with streams("utf-8", monkeypatch) as (out, _):
        assert run([*release, "--resume"]) == 0

    assert out.getvalue().startswith(b'"age","sex","job"\n')
    assert dpsyn.Synopsis.load("s.dpsyn").certificates[0] is not None
    assert not Path("s.dpsyn.journal").exists()
    assert len(dpsyn.Ledger(Path("l.db")).datasets()[0].runs) == 1


RUNS = {
    "synthesize": ["synthesize", *RELEASE, "-o", "out.csv", "--ledger", "l.db"],
    "release folder": ["synthesize", *RELEASE, "-o", "out/", "--ledger", "l.db"],
    "measure": ["measure", *RELEASE, "-o", "out.dpsyn", "--ledger", "l.db"],
    "itemsets": [
        *["itemsets", "people.csv", "--basket", "age", "--item", "sex", "--items", "items.txt", "--epsilon", "1"],
        *["-o", "out.csv", "--ledger", "l.db", "--dataset", "people"],
    ],
}


@pytest.mark.parametrize("kind", RUNS)
def test_a_run_that_was_killed_after_its_output_was_written_is_complete(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("items.txt").write_text("F\nM\n", "utf-8")
    dpsyn.Ledger.create(Path("l.db"))
    with monkeypatch.context() as killed:
        killed.setattr(release_run, "discard_journal", lambda _: 1 / 0)
        assert run(RUNS[kind]) == 1
    [target] = [path for path in Path().iterdir() if path.name.startswith("out") and path.suffix != ".journal"]
    before = target.stat().st_mtime_ns

    assert run([*RUNS[kind], "--resume"]) == 0

    assert "The run was complete" in capsys.readouterr().out
    assert target.stat().st_mtime_ns == before
    assert list(Path().glob("*.journal")) == []
    assert len(dpsyn.Ledger(Path("l.db")).datasets()[0].runs) == 1


@pytest.mark.parametrize("kind", ["synthesize", "measure"])
def test_an_output_of_somebody_else_is_not_taken_for_that_of_an_interrupted_run(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file is newer than the journal, but the run was not complete."""
    dpsyn.Ledger.create(Path("l.db"))

    def die(journal: Journal, *_: object) -> None:
        journal.release()
        raise ZeroDivisionError

    with monkeypatch.context() as killed:
        killed.setattr(Journal, "finish", die)
        assert run(RUNS[kind]) == 1
    target = Path(RUNS[kind][RUNS[kind].index("-o") + 1])
    target.write_text("mine", "utf-8")

    assert run([*RUNS[kind], "--resume"]) == 2

    assert f"{target} exists" in capsys.readouterr().err
    assert target.read_text("utf-8") == "mine"
    assert run([*RUNS[kind], "--resume", "--force"]) == 0
