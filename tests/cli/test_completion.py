"""``dpsyn completion``: the Tab key of a shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dpsyn.cli.completion import SHELLS, script_path
from dpsyn.cli.main import COMMANDS, run


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/usr/bin/bash")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("shell", SHELLS)
def test_installing_twice_is_installing_once_and_shows_every_change(
    shell: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["completion", "install", shell]) == 0
    shown, once = capsys.readouterr().out, contents(home)

    assert run(["completion", "install", shell]) == 0

    assert contents(home) == once
    assert "there is nothing to change" in capsys.readouterr().out
    assert all(str(home / name) in shown for name in once)
    assert len(once) == (1 if shell == "fish" else 2)


def test_a_startup_file_keeps_its_lines_and_gets_one_more(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / ".bashrc").write_text("alias ll='ls -l'\nexport A=1", "utf-8")

    assert run(["completion", "install"]) == 0

    *old, new = (home / ".bashrc").read_text("utf-8").splitlines()
    assert old == ["alias ll='ls -l'", "export A=1"]
    assert f"  {new}\n" in capsys.readouterr().out


def test_a_dry_run_changes_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", "install", "zsh", "--dry-run"]) == 0

    assert contents(home) == {}
    assert f"Would add this line to {home}/.zshrc" in capsys.readouterr().out


def test_the_folders_that_the_environment_names_are_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")

    assert script_path("bash") == home / "data" / "dpsyn" / "completion.bash"
    assert script_path("fish") == home / ".config" / "fish" / "completions" / "dpsyn.fish"


def test_a_shell_that_is_not_known_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")

    assert run(["completion", "install"]) == 2

    assert "SHELL names 'tcsh'; give one of bash, zsh, fish" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_commands_options_and_recipes(home: Path) -> None:
    assert run(["completion", "install", "bash"]) == 0
    program = home / "bin" / "dpsyn"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dpsyn "$@"\n', "utf-8")
    program.chmod(0o755)
    code = (
        '. "$HOME/.bashrc"; complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); '
        '_dpsyn_completion dpsyn; echo "${COMPREPLY[@]}"; }; '
        'complete_words dpsyn ""; complete_words dpsyn schema dr; complete_words dpsyn measure --recipe priv'
    )

    done = subprocess.run(
        ["bash", "--norc", "-c", code],
        env={**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert done.stdout.splitlines() == [" ".join(COMMANDS), "draft", "privsyn priview"]
