"""Approvals and reviews on the command line: what is declared is shown, and what needs a yes is asked for."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpsyn.cli import output
from dpsyn.cli.main import run
from dpsyn.schema import Schema
from dpsyn.schema.approval import draft_digest
from dpsyn.schema.yaml_io import write_yaml


def drafted(**fields: Any) -> dict[str, Any]:
    return {**fields, "provenance": "data", "drafted": draft_digest(fields)}


@pytest.fixture
def draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    attributes = {
        "income": drafted(kind="integer", low=0, high=9_000) | {"remark": "is 999 a code?"},
        "age": drafted(kind="integer", low=0, high=97),
        "sex": drafted(kind="boolean"),
        "note": drafted(kind="open") | {"remark": "free text?"},
    }
    path = tmp_path / "schema.yaml"
    path.write_text(write_yaml({"dpsyn_schema": 1, "attributes": attributes}), "utf-8")
    return path


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A person at a terminal who types these lines."""

    def type_lines(lines: str) -> None:
        monkeypatch.setattr(output, "can_ask", lambda: True)
        monkeypatch.setattr("sys.stdin", io.StringIO(lines))

    return type_lines


def provenances() -> dict[str, str]:
    return {attribute.name: attribute.provenance for attribute in Schema.load("schema.yaml")}


def test_an_approval_shows_what_is_declared_and_names_what_it_left(
    draft: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["schema", "approve", "schema.yaml", "--all", "--because", "code book"])

    shown = capsys.readouterr().out
    assert code == 0
    assert "integer, low 0, high 97" in shown
    assert "remark: is 999 a code?" in shown
    assert "Approved as public, because code book: sex." in shown
    assert "their remark is open: income, note." in shown
    assert "exactly as they were read off the data: age." in shown
    assert provenances() == {"income": "data", "age": "data", "sex": "approved", "note": "data"}


def test_an_approval_that_approves_nothing_has_exit_code_2(draft: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "approve", "schema.yaml", "sex", "--because", "code book"]) == 0

    assert run(["schema", "approve", "schema.yaml", "--all", "--because", "code book"]) == 2
    assert run(["schema", "approve", "schema.yaml", "age", "--because", "code book"]) == 2

    assert "--as-drafted" in capsys.readouterr().err
    assert run(["schema", "approve", "schema.yaml", "age", "--as-drafted", "--because", "code book"]) == 0


def test_on_a_terminal_each_kind_of_yes_is_asked_for(draft: Path, answer: Callable[[str], None]) -> None:
    answer("y\nn\ny\n")  # as drafted, income, note

    assert run(["schema", "approve", "schema.yaml", "--all", "--because", "code book"]) == 0

    assert provenances() == {"income": "data", "age": "approved", "sex": "approved", "note": "approved"}


def test_a_review_accepts_edits_leaves_out_and_skips(
    draft: Path, answer: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    answer("e\nhigh: -1\n\ne\nhigh: 900\nmissing: ['999']\n\na\nform 3\ns\na\n\nl\n")

    assert run(["schema", "review", "schema.yaml"]) == 0

    schema, shown = Schema.load("schema.yaml"), capsys.readouterr().out
    income: Any = schema["income"]
    assert (income.high, income.missing, income.because, income.drafted) == (900, ("999",), "form 3", "")
    assert provenances() == {"income": "approved", "age": "data", "sex": "approved"}
    assert schema["sex"].because == "form 3"
    assert "Not saved: " in shown
    assert "Remark: free text?" in shown


def test_a_review_goes_on_where_it_was_stopped(
    draft: Path, answer: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    answer("a\nform 3\nq\n")
    assert run(["schema", "review", "schema.yaml"]) == 0
    capsys.readouterr()

    answer("q\n")
    assert run(["schema", "review", "schema.yaml"]) == 0

    shown = capsys.readouterr().out
    assert "1 of 3  age" in shown
    assert "Still to do: attribute 'age', attribute 'sex', attribute 'note'." in shown


def test_a_review_that_ends_early_keeps_what_was_answered(draft: Path, answer: Callable[[str], None]) -> None:
    answer("a\nform 3\n")

    assert run(["schema", "review", "schema.yaml"]) == 130
    assert provenances()["income"] == "approved"


def test_a_review_without_a_terminal_is_refused(draft: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "review", "schema.yaml"]) == 2
    assert "it needs a terminal" in " ".join(capsys.readouterr().err.split())
