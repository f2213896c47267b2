"""``dpsyn keys``, ``dpsyn sign`` and ``dpsyn verify``, and releases that are signed when they are made."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import dpsyn
from dpsyn.cli.main import run
from dpsyn.demo import people, people_schema_text

RELEASE = ["people.csv", "-s", "schema.yaml", "--epsilon", "1", "--recipe", "independent", "-q"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    dpsyn.write_table(people(300), folder / "people.csv", synthetic=False)
    (folder / "schema.yaml").write_text(people_schema_text(), "utf-8")
    dpsyn.SigningKey.generate().save(folder / "steward.key")
    synopsis = dpsyn.measure(people(300), dpsyn.Schema.from_yaml(people_schema_text()), 1.0, recipe="independent")
    synopsis.write(f"{folder}/release/", 30, seed=1)
    return folder


@pytest.fixture(autouse=True)
def workplace(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPSYN_KEY_PASSPHRASE", raising=False)


def test_a_release_folder_is_signed_when_it_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(
        ["synthesize", *RELEASE, "-o", "new/", "--rows", "20", "--sign", "steward.key", "--card", "--with-verifier"]
    )
    names = {path.name for path in Path("new").iterdir()}

    assert code == 0
    assert {"signatures.json", "deployment-card.json", "croissant.json", "verify_release.py"} <= names
    assert run(["verify", "new/", "--key", "steward.key.pub"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("ok ") for line in lines[:-1])
    assert lines[-1].startswith("VERIFIED")


def test_a_synopsis_is_signed_when_it_is_made() -> None:
    assert run(["measure", *RELEASE, "-o", "s.dpsyn", "--sign", "steward.key"]) == 0
    assert run(["verify", "s.dpsyn", "--key", "steward.key.pub"]) == 0
    assert run(["verify", "s.dpsyn"]) == 3


def test_a_key_that_cannot_be_used_is_refused_before_anything_is_spent(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ledger", "new", "ledger.db"]) == 0
    assert run(["synthesize", *RELEASE, "-o", "new/", "--ledger", "ledger.db", "--sign", "steward.kye"]) == 2
    assert run(["synthesize", *RELEASE, "-o", "rows.csv", "--ledger", "ledger.db", "--sign", "steward.key"]) == 2
    assert "did you mean steward.key" in (error := capsys.readouterr().err)
    assert "--sign: only a release folder has these" in error
    assert dpsyn.Ledger(Path("ledger.db")).datasets() == ()
    assert not Path("new").exists()


def test_a_release_that_exists_is_signed_and_a_later_change_is_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sign", "release/", "--key", "steward.key", "--card"]) == 0
    assert run(["verify", "release/", "--key", "steward.key.pub", "--json"]) == 0
    Path("release/README.txt").write_text("changed", "utf-8")
    capsys.readouterr()

    assert run(["verify", "release/", "--key", "steward.key.pub", "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["verdict"] == "refused"
    assert [each["check"] for each in result["checks"] if not each["passed"]] == ["signed content"]
    assert run(["sign", "release/", "--key", "steward.key"]) == 2
    assert "remove this file and sign again" in capsys.readouterr().err


def test_what_nobody_signed_is_not_verified(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "release"]) == 3
    assert "nobody vouches for it" in capsys.readouterr().out
    assert run(["verify", "release", "--key", "steward.key.pub"]) == 1
    assert "REFUSED signature: it is not signed" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify"],
        ["verify", "nowhere/"],
        ["verify", "release", "--key", "nowhere.pub"],
        ["verify", "release", "--key", "steward.key"],
        ["verify", "release", "--ledger", "nowhere.db"],
        ["verify", "release", "--print-verifier"],
        ["sign", "nowhere", "--key", "steward.key"],
        ["sign", "people.csv", "--key", "steward.key"],
        ["sign", "release", "--key", "steward.key.pub"],
        ["keys", "new", "steward.key"],
        ["keys", "new", "nowhere/new.key"],
        ["keys", "new", "new.key", "--passphrase"],
        ["keys", "show", "people.csv"],
    ],
)
def test_a_mistake_is_explained(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(Path().rglob("*"))

    assert run(arguments) == 2
    assert capsys.readouterr().err
    assert sorted(Path().rglob("*")) == before


def test_a_key_is_made_and_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DPSYN_KEY_PASSPHRASE", "correct horse")
    assert run(["keys", "new", "new.key"]) == 0
    assert "encrypted with the passphrase" in capsys.readouterr().out
    assert run(["keys", "show", "new.key", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert run(["keys", "show", "new.key.pub", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == shown
    assert shown["public_key"] == str(dpsyn.PublicKey.parse("new.key.pub"))
    assert run(["sign", "release", "--key", "new.key"]) == 0
    monkeypatch.delenv("DPSYN_KEY_PASSPHRASE")
    assert run(["sign", "release", "--key", "new.key"]) == 2


def test_the_verifier_can_be_printed(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--print-verifier"]) == 0
    assert capfd.readouterr().out == dpsyn.verifier_source()
