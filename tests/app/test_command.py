"""``dpsyn app`` as a command: what it refuses, and what it needs of other commands."""

from __future__ import annotations

import importlib.util
import json
import socket
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

import dpsyn
from dpsyn.cli import output
from dpsyn.cli.main import run
from dpsyn.progress import Step
from dpsyn.release_files import find_run
from tests.app.workbench import write_table
from tests.report.pages import synopsis


@pytest.fixture
def released(tmp_path: Path) -> Path:
    synopsis().save(tmp_path / "s.dpsyn")
    return tmp_path / "s.dpsyn"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--host", "0.0.0.0"], "--password-file"),
        (["--tls-key", "key.pem"], "belong together"),
        (["--tls-key", "key.pem", "--tls-certificate", "cert.pem"], "there is no file cert.pem"),
        (["--password-file", "short.txt"], "12 or more"),
        (["--password-file", "nothing.txt"], "nothing.txt cannot be read"),
        (["--ledger", "nothing.db"], "nothing.db"),
        (["--folder", "short.txt"], "cannot be used"),
        (["--ask", "nothing.dpsyn"], "nothing.dpsyn"),
        (["--export", "ask.html"], "--ask"),
    ],
)
def test_a_mistake_is_explained(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: list[str],
    complaint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    Path("short.txt").write_text("secret\n")

    assert run(["app", "--no-browser", *arguments]) == 2
    assert complaint in capfd.readouterr().err


def test_a_port_that_is_taken_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        assert run(["app", "--no-browser", "--folder", str(tmp_path / "work"), "--port", port]) == 2

    assert f"port {port} cannot be used" in capfd.readouterr().err


def test_a_missing_library_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    find = importlib.util.find_spec

    def find_without_uvicorn(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "uvicorn" else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find_without_uvicorn)

    assert run(["app", "--no-browser", "--folder", str(tmp_path / "work")]) == 2
    message = capfd.readouterr().err
    assert "the workbench needs uvicorn" in message
    assert "'.[app]'" in message


def test_a_page_is_exported_once(released: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "ask.html"

    assert run(["app", "--ask", str(released), "--export", str(page)]) == 0
    assert "club &lt;b&gt;&amp; co&lt;/b&gt;" in page.read_text("utf-8")
    assert run(["app", "--ask", str(released), "--export", str(page)]) == 2
    assert "--force" in capfd.readouterr().err
    assert run(["app", "--ask", str(released), "--export", str(page), "--force"]) == 0
    assert run(["app", "--ask", str(released), "--export", str(tmp_path / "no" / "ask.html")]) == 2


def test_progress_is_kept_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "progress.json"
    monkeypatch.setenv(output.PROGRESS_FILE_VARIABLE, str(file))
    with output.show_progress(False, [Step("reading"), Step("measuring")]) as progress:
        progress.note("a note")
        progress("reading", 1.0)
        progress("measuring 3 marginals", 0.5)
        state = json.loads(file.read_text())

    assert (state["steps"], state["step"], state["phase"]) == (["reading", "measuring"], 1, "measuring 3 marginals")
    assert state["share"] == 0.75
    assert state["notes"] == ["a note"]
    assert list(tmp_path.iterdir()) == [file]


def test_progress_that_cannot_be_kept_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(output.PROGRESS_FILE_VARIABLE, str(tmp_path / "nowhere" / "progress.json"))
    with output.show_progress(False, [Step("reading")]) as progress:
        progress("reading", 0.5)

    assert list(tmp_path.iterdir()) == []


def test_a_journal_names_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_table(tmp_path / "people.csv")
    schema = dpsyn.draft_schema(file).approve(because="code book", everything=True, as_drafted=True)
    ledger = dpsyn.Ledger.create(tmp_path / "ledger.db")
    journal = tmp_path / "x.journal"
    dpsyn.measure(file, schema, 1.0, recipe="independent", journal=journal, ledger=ledger, dataset="people")

    assert find_run(journal) == ledger.datasets()[0].runs[0].run
    assert find_run(tmp_path / "nothing") == ""
    assert find_run(file) == ""


def test_a_check_prints_its_figures_as_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = write_table(tmp_path / "people.csv")
    schema = tmp_path / "schema.yaml"
    dpsyn.draft_schema(file).edit("age", low=10).save(schema)

    assert run(["schema", "check", str(schema), str(file), "--json"]) == 0
    figures = json.loads(capfd.readouterr().out)
    fit = dpsyn.check_table(schema, file)
    assert next(iter(figures.values())) == dpsyn.PRIVATE_NOTICE
    assert figures["rows"] == fit.rows == 300
    assert [each["below"] for each in figures["attributes"]] == [each.below for each in fit.attributes]
    assert figures["attributes"][0]["below"] > 0
    assert run(["schema", "check", str(schema), "--json"]) == 2


def test_a_draft_is_plain_data_too(tmp_path: Path) -> None:
    draft = dpsyn.draft_schema(write_table(tmp_path / "people.csv"))

    assert draft.document["attributes"]["age"]["kind"] == "integer"
    assert list(draft.document["attributes"]) == list(draft.names)
