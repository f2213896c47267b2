"""The fuzzer finds what it should, and a reduced run of it finds nothing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from bench import fuzz

import dpsyn


@pytest.mark.check
def test_no_changed_file_ends_in_an_uncaught_error(capsys: pytest.CaptureFixture[str]) -> None:
    results = fuzz.fuzz(1_000, seed=7)

    assert {kind: ends["uncaught"] for kind, ends in results.items()} == dict.fromkeys(results, 0), capsys.readouterr()
    assert all(ends["refused"] for ends in results.values())
    assert all(ends["accepted"] for ends in results.values())


def kind_that_raises(error: type[Exception]) -> fuzz.Kind:
    def read(path: Path) -> None:
        if path.read_bytes() != b"as it is":
            raise error("of the reader")

    return fuzz.Kind(1, [("a.txt", b"as it is")], lambda data, _: data + b"!", read, is_file=False)


def test_an_error_that_is_not_ours_is_reported_with_the_command_that_repeats_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kinds = {"ours": kind_that_raises(dpsyn.SchemaError), "other": kind_that_raises(KeyError)}
    monkeypatch.setattr(fuzz, "make_kinds", lambda _: kinds)

    assert fuzz.main(["--cases", "20", "--seed", "3"]) == 1

    shown = capsys.readouterr().out
    assert "uncaught KeyError at test_fuzz.py" in shown
    assert "python -m bench.fuzz --kind other --case 0 --seed 3" in shown
    assert "| ours | 10 | 10 | 0 | 0 |" in shown
    with pytest.raises(KeyError):
        fuzz.main(["--kind", "other", "--case", "0", "--seed", "3"])


@pytest.mark.parametrize("key", ["synopsis", "journal"])
def test_corrected_digests_let_changes_through_to_what_lies_behind_them(key: str, tmp_path: Path) -> None:
    kind = fuzz.make_kinds(tmp_path)[key]
    (tmp_path / "scratch").mkdir()
    messages = []
    for case in range(40):
        rng = random.Random(case)
        name, data = rng.choice(kind.originals)
        path = tmp_path / "scratch" / name
        path.write_bytes(kind.change(data, rng))
        try:
            kind.read(path)
        except dpsyn.UserError as error:
            messages.append(str(error))

    assert messages
    assert sum("SHA-256" in message or "line " in message for message in messages) < len(messages) / 2
