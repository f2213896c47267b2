"""A damaged or forged ledger ends in an error of ours, whatever is wrong with it.

Half of the files have changed bytes. The other half have changed entries whose hashes are right again, as somebody can
make them who knows the format: such an entry is refused, or it is a ledger that DPSyn could have written.
"""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpsyn.accounting import Budget, Cap, Exponential, Gaussian, Laplace, Ledger, PartitionSelection, PrivacyUnit, Run
from dpsyn.accounting.hash_chain import hash_entry
from dpsyn.accounting.head_store import STATE_FOLDER_VARIABLE
from dpsyn.cli.main import run as run_command
from dpsyn.errors import UserError

BUDGET = Budget.for_guarantee(1, 1e-6, pure_epsilons=["0.1", "0.2"], thresholds=True)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with every kind of entry and of mechanism."""
    ledger = Ledger.create(tmp_path_factory.mktemp("sound") / "l.db", caps={"people": Cap.for_guarantee(9, 1e-4)})
    shares = BUDGET.split_rho([1, 1, 2])
    for unit, dataset in ((PrivacyUnit(), "people"), (PrivacyUnit(id="person", max_rows=3), "visits")):
        squared, rows = unit.l2_sensitivity_squared, unit.max_rows
        made = Run.open(BUDGET, unit, dataset=dataset, ledger=ledger, recipe={"name": "all", "shares": [1, 2]})
        made.charge("marginal", Gaussian.for_rho(shares[0], squared))
        made.charge("counts", Laplace.for_epsilon(BUDGET.pure_epsilons[0], unit.l1_sensitivity))
        made.charge("items", Exponential.for_epsilon(BUDGET.pure_epsilons[1], rows))
        noise = Gaussian.for_rho(shares[1], squared)
        made.charge("values", PartitionSelection.for_delta(BUDGET.threshold_delta, noise, rows))
        if dataset == "people":
            made.close()
    return ledger.path


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on another computer; otherwise almost every ledger would be refused before its entries are read."""
    monkeypatch.setenv(STATE_FOLDER_VARIABLE, "/dev/null/nothing")


# ── mutations ────────────────────────────────────────────────────────────────────────────────────────────────


ODD: list[Callable[[], Any]] = [
    *(lambda value=value: value for value in (None, True, 0, -1, 10**400, 1.5, float("nan"), float("inf"))),
    *(lambda value=value: value for value in ("", "x", "1e999", "-5", "1/0", "9" * 5000, "0.1", "\ud800", "\0")),
    list,
    dict,
    lambda: json.loads("[" * 200 + "]" * 200),
    lambda: {"kind": "gaussian"},
]


def change_value(data: Any, chance: random.Random) -> Any:
    """Plain data of which one part is another value, missing, or double."""
    if isinstance(data, dict) and data and chance.random() < 0.85:
        key = chance.choice(sorted(data))
        if chance.random() < 0.15:
            return {name: value for name, value in data.items() if name != key}
        return {**data, key: change_value(data[key], chance)}
    if isinstance(data, list) and data and chance.random() < 0.7:
        place = chance.randrange(len(data))
        return [*data[:place], change_value(data[place], chance), *data[place + chance.randrange(2) :]]
    return chance.choice(ODD)()


def change_bytes(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice([1, 1, 3, 40])):
        place = chance.randrange(len(content))
        content[place : place + 1] = bytes([chance.randrange(256)])
    action = chance.randrange(8)
    if action == 0:
        del content[chance.randrange(len(content)) :]
    elif action == 1:
        start = chance.randrange(len(content))
        content[start : start + 512] = bytes(512)
    elif action == 2:
        content += chance.randbytes(3000)
    elif action == 3:
        path.with_name("l.db-journal").write_bytes(chance.randbytes(1000))
    path.write_bytes(content)


def change_entries(path: Path, chance: random.Random) -> None:
    """Change entries, and make their hashes right again."""
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER no_change")
    connection.execute("DROP TRIGGER no_removal")
    rows = [list(row) for row in connection.execute("SELECT * FROM entries ORDER BY sequence")]
    for _ in range(chance.choice([1, 1, 2, 5])):
        row = chance.choice(rows)
        action = chance.randrange(10)
        if action < 6:
            data = change_value(json.loads(row[5]), chance) if row[5][:2] == '{"' else {}
            row[5] = json.dumps(data)
        elif action == 6:
            row[5] = chance.choice(["", "{", "[" * 100_000, '["a"', "null", "[]", "[1e99999]", "\0"])
        elif action == 7:
            column = chance.choice([1, 2, 3, 4])
            row[column] = chance.choice(
                ["", "cap", "open", "close", "measurement", "begin", "People", "\u200b", b"\xff", 7]
            )
        elif action == 8:
            rows.insert(chance.randrange(len(rows)), list(row))
        else:
            rows.remove(row)
        if not rows:
            break
    connection.execute("DELETE FROM entries")
    previous = "0" * 64
    for sequence, row in enumerate(rows, start=1):
        fields = [sequence, *row[1:6], previous]
        previous = hash_entry(fields)
        connection.execute("INSERT INTO entries VALUES (?,?,?,?,?,?,?,?)", [*fields, previous])
    connection.commit()
    connection.close()


BROKEN_TEXTS = [
    "UPDATE entries SET dataset = CAST(x'ff' AS TEXT) WHERE sequence = 3",
    "UPDATE entries SET payload = CAST(x'7bc3' AS TEXT) WHERE sequence = 3",
    "CREATE TABLE more (x)",
    "DROP INDEX entries_of_run",
    "ALTER TABLE entries RENAME TO other",
    "ALTER TABLE entries RENAME COLUMN payload TO content",
    "PRAGMA user_version = 99",
    "PRAGMA application_id = 1",
    "PRAGMA journal_mode = WAL",
    "UPDATE entries SET sequence = -5 WHERE sequence = 2",
    "UPDATE entries SET sequence = 9223372036854775807 WHERE sequence = 8",
    "DELETE FROM entries",
]


def change_database(path: Path, chance: random.Random) -> None:
    connection = sqlite3.connect(path)
    for statement in ("DROP TRIGGER no_change", "DROP TRIGGER no_removal", chance.choice(BROKEN_TEXTS)):
        connection.execute(statement)
    connection.commit()
    connection.close()
    if chance.random() < 0.3:  # a broken name in SQLite's own table
        path.write_bytes(path.read_bytes().replace(b"entries_of_run", b"entries_of_r\xff\xfe"))


CHANGES = [change_bytes, change_bytes, change_entries, change_entries, change_entries, change_database]


# ── uses ─────────────────────────────────────────────────────────────────────────────────────────────────────


def use_in_every_way(path: Path, runs: list[str]) -> None:
    """Whatever a program does with a ledger; an error other than ours is a failure of the test."""
    ledger = Ledger(path)
    uses: list[Callable[[], object]] = [
        lambda: [
            line
            for account in ledger.datasets()
            for line in (account.rho, account.epsilon(1e-6), account.epsilon_left())
        ],
        *(lambda run=run: Run.resume(ledger, run) for run in runs),
        lambda: ledger.reserve("people", "fuzz", BUDGET, PrivacyUnit()),
        lambda: ledger.set_cap("people", Cap.for_guarantee(1, 1e-6)),
        *(lambda run=run: ledger.close(run) for run in runs),
    ]
    for use in uses:
        with contextlib.suppress(UserError):
            use()


def run_fuzz(cases: range, sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, int]:
    """Use many mutated ledgers; returns how many were found to be intact and how many not."""
    runs = [run.run for account in Ledger(sound).datasets() for run in account.runs]
    found = {"intact": 0, "refused": 0}
    for case in cases:
        chance = random.Random(case)
        path = tmp_path / "l.db"
        for left in tmp_path.glob("*l.db*"):
            left.unlink()
        path.write_bytes(sound.read_bytes())
        chance.choice(CHANGES)(path, chance)
        codes = [run_command(["ledger", *command.split(), str(path)]) for command in ("verify", "show", "show --json")]
        shown = capsys.readouterr()
        assert set(codes) <= {0, 2}, (case, shown.out, shown.err)
        assert codes[0] == 2 or codes == [0, 0, 0], case
        assert "Traceback" not in shown.err
        assert "internal error" not in shown.err
        found["intact" if codes[0] == 0 else "refused"] += 1
        use_in_every_way(path, runs)
    return found


def test_damaged_and_forged_ledgers_are_refused_in_our_words(
    sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run_fuzz(range(120), sound, tmp_path, capsys)

    assert found["refused"] > 60


@pytest.mark.slow
def test_thousands_of_damaged_and_forged_ledgers_are_refused_in_our_words(
    sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run_fuzz(range(1_000, 4_000), sound, tmp_path, capsys)

    print(found)
    assert found["refused"] > 1_500
