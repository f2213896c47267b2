"""``dpsyn ledger`` as the owner of a dataset meets it."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import dpsyn
from dpsyn.accounting import Budget, Gaussian, Ledger, PrivacyUnit, Run
from dpsyn.accounting.hash_chain import open_reading
from dpsyn.accounting.head_store import head_path
from dpsyn.cli.main import run
from dpsyn.demo import people, people_schema
from dpsyn.errors import LedgerError
from tests.synopsis.synopses import synopsis_without_numbers

FILE = Path("ledger.db")
SMALL = Budget.for_guarantee(0.5, 1e-9)
PERSON = PrivacyUnit(id="person", max_rows=3)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def invoke(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Run a ledger command; return its exit code and all it printed."""

    def command(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        code = run(["ledger", *arguments])
        shown = capsys.readouterr()
        assert bool(shown.err) <= (code != 0)
        return code, shown.out + shown.err

    return command


Invoke = Callable[..., tuple[int, str]]


def release(dataset: str = "people", *, part: int = 2, real: bool = True, closed: bool = True) -> Run:
    """A run that spends a part of its budget."""
    made = Run.open(SMALL, PERSON, dataset=dataset, ledger=begun(), uses_real_noise=real)
    made.charge("marginal age", Gaussian.for_rho(SMALL.rho / part, PERSON.l2_sensitivity_squared))
    if closed:
        made.close()
    return made


def begun() -> Ledger:
    """The ledger, which is begun if it does not exist."""
    return Ledger(FILE) if FILE.exists() else Ledger.create(FILE)


def forget() -> None:
    """What this account remembers of the ledger is gone, as for another account."""
    with open_reading(FILE) as reading:
        path = head_path(str(reading.hash_of(1)))
    assert path is not None
    path.unlink()


def cap(invoke: Invoke, epsilon: str = "4", delta: str = "1e-8", dataset: str = "people") -> tuple[int, str]:
    return invoke("set-cap", "ledger.db", "--dataset", dataset, "--epsilon", epsilon, "--delta", delta)


def tamper(*statements: str) -> None:
    connection = sqlite3.connect(FILE)
    with connection:
        for statement in ("DROP TRIGGER no_change", "DROP TRIGGER no_removal", *statements):
            connection.execute(statement)
    connection.close()


# ── new ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_ledger_is_begun_and_its_use_is_shown(invoke: Invoke) -> None:
    code, shown = invoke("new", "ledger.db")

    assert code == 0
    assert "Began the ledger ledger.db. Give it to every release of the same people: --ledger ledger.db" in shown
    assert "set a cap with dpsyn ledger set-cap" in shown
    assert Ledger(FILE).datasets() == ()
    assert invoke("show", "ledger.db") == (
        0,
        "ledger.db has no dataset yet: nothing was released, and no cap is set.\n",
    )


def test_a_ledger_is_begun_with_a_cap(invoke: Invoke) -> None:
    code, shown = invoke("new", "ledger.db", "--dataset", "people", "--epsilon", "4", "--delta", "1e-8")

    assert code == 0
    assert "Began the ledger ledger.db" in shown
    assert "Cap: ε = 4 at δ = 1e-8 for all releases together." in shown


@pytest.mark.parametrize(
    "options",
    [
        ["--dataset", "people"],
        ["--epsilon", "4", "--delta", "1e-8"],
        ["--dataset", "people", "--epsilon", "4"],
        ["--dataset", "people", "--epsilon", "0", "--delta", "1e-8"],
        ["--dataset", "", "--epsilon", "4", "--delta", "1e-8"],
    ],
)
def test_a_ledger_is_not_begun_with_half_a_cap(invoke: Invoke, options: list[str]) -> None:
    code, _ = invoke("new", "ledger.db", *options)

    assert code == 2
    assert list(Path().iterdir()) == []


def test_a_ledger_is_not_begun_twice(invoke: Invoke) -> None:
    release()
    before = FILE.read_bytes()

    code, shown = invoke("new", "ledger.db")

    assert code == 2
    assert "ledger.db exists already" in shown
    assert FILE.read_bytes() == before


@pytest.mark.parametrize(
    "command", ["show x.db", "verify x.db", "close x.db r --yes", "set-cap x.db --dataset d --epsilon 1 --delta 1e-9"]
)
def test_a_mistyped_path_begins_nothing(invoke: Invoke, command: str) -> None:
    code, shown = invoke(*command.split())

    assert code == 2
    assert "there is no ledger x.db; correct the path, or begin a ledger there with  dpsyn ledger new x.db" in shown
    assert list(Path().iterdir()) == []


# ── caps ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_cap_shows_what_is_left(invoke: Invoke) -> None:
    begun()

    code, shown = cap(invoke)

    assert code == 0
    assert "Cap: ε = 4 at δ = 1e-8 for all releases together." in shown
    assert "Left: one more release can have a budget of up to ε = 3.77 at δ = 1e-8." in shown


def test_what_the_cap_leaves_can_be_released(invoke: Invoke) -> None:
    begun()
    _, shown = cap(invoke)
    left = shown.partition("up to ε = ")[2].split()[0]

    Run.open(Budget.for_guarantee(left, 1e-8), PERSON, dataset="people", ledger=Ledger(FILE))

    with pytest.raises(LedgerError, match="cap of"):
        release()


def test_a_lowered_cap_leaves_nothing(invoke: Invoke) -> None:
    release()

    code, shown = cap(invoke, "0.01")

    assert code == 0
    assert "Left: nothing; a release is refused until the cap is raised" in shown


@pytest.mark.parametrize(
    ("epsilon", "delta", "dataset"),
    [
        ("0", "1e-9", "people"),
        ("-1", "1e-9", "people"),
        ("nan", "1e-9", "people"),
        ("inf", "1e-9", "people"),
        ("1", "0", "people"),
        ("1", "1", "people"),
        ("1", "1.05", "people"),
        ("1", "1e-40", "people"),
        ("one", "1e-9", "people"),
        ("1", "1e-9", ""),
    ],
)
def test_an_invalid_cap_is_refused_and_nothing_is_written(
    invoke: Invoke, epsilon: str, delta: str, dataset: str
) -> None:
    before = begun().verify()

    code, shown = cap(invoke, epsilon, delta, dataset)

    assert code == 2
    assert "Traceback" not in shown
    assert Ledger(FILE).verify() == before


# ── show ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_dataset_is_shown_with_its_cap_its_use_and_its_runs(invoke: Invoke) -> None:
    begun()
    cap(invoke)
    first, second = release(), release(part=1)

    code, shown = invoke("show", "ledger.db")

    rows = {line.split()[0]: line.split() for line in shown.splitlines() if line.strip()}
    assert code == 0
    assert "Protected: against adding or removing all rows of one person (at most 3 of them are used)." in shown
    assert "Cap: ε = 4 at δ = 1e-8" in shown
    assert "of the cap, counted in ρ." in shown
    assert rows[first.name][4:] == ["0.5", "1e-9", "1", "50", "%", "closed"]
    assert rows[second.name][4:] == ["0.5", "1e-9", "1", "100", "%", "closed"]
    assert "abandoned" not in shown


def test_an_open_run_is_pointed_out_with_how_to_close_it(invoke: Invoke) -> None:
    crashed = release(closed=False)

    code, shown = invoke("show", "ledger.db")

    assert code == 0
    assert "1 open run counted with the whole budget" in shown
    assert f"dpsyn ledger close ledger.db {crashed.name}" in shown
    assert "Cap: none" in shown


def test_a_run_with_noise_of_a_test_is_stamped(invoke: Invoke) -> None:
    fake = release(real=False)

    _, shown = invoke("show", "ledger.db")

    assert "closed, NOT PRIVATE" in shown
    assert f"the noise of {fake.name} came from a test" in shown


def test_the_sum_of_pure_promises_is_shown_as_it_is(invoke: Invoke) -> None:
    for _ in range(2):
        Run.open(Budget.for_pure_steps("0.25", [1, 1]), PERSON, dataset="people", ledger=begun())

    _, shown = invoke("show", "ledger.db")

    assert "Used: ε = 0.5 at δ = 1e-9" in shown


def test_one_dataset_can_be_shown_alone(invoke: Invoke) -> None:
    release("people")
    release("shops")

    _, shown = invoke("show", "ledger.db", "--dataset", "shops")
    code, refused = invoke("show", "ledger.db", "--dataset", "houses")

    assert "Dataset shops" in shown
    assert "people" not in shown
    assert code == 2
    assert "there is no dataset 'houses' in ledger.db; it has: people, shops" in refused


def test_json_has_the_same_figures(invoke: Invoke) -> None:
    begun()
    cap(invoke)
    made = release()
    release("shops", closed=False, real=False)

    code, shown = invoke("show", "ledger.db", "--json")

    people, shops = json.loads(shown)
    assert code == 0
    assert people["dataset"] == "people"
    assert people["privacy_unit"] == {"neighbors": "add-remove", "id": "person", "max_rows": 3}
    assert people["cap"]["epsilon"] == pytest.approx(4)
    assert 0 < people["used"]["share_of_cap"] < 0.02
    assert 3 < people["epsilon_left"] < 4
    assert people["runs"][0]["run"] == made.name
    assert people["runs"][0]["held"] == people["runs"][0]["spent"]
    assert shops["cap"] is None
    assert shops["epsilon_left"] is None
    assert (shops["runs"][0]["closed"], shops["runs"][0]["uses_real_noise"]) == (False, False)
    assert shops["runs"][0]["held"]["rho"] > shops["runs"][0]["spent"]["rho"]


# ── verify ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_intact_ledger_is_reported_with_its_last_entry(invoke: Invoke) -> None:
    made = release()

    code, shown = invoke("verify", "ledger.db")

    assert code == 0
    assert made.ledger_head is not None
    assert "ledger.db is intact: 4 entries" in shown
    assert made.ledger_head.hash in shown
    assert "Your account of this computer had seen it up to entry 4; all of that is there." in shown
    assert "It cannot be known from here whether later entries that only others have seen were cut off" in shown


def test_an_account_that_never_saw_a_ledger_is_told_that_it_cannot_know(invoke: Invoke) -> None:
    release()
    forget()
    tamper("DELETE FROM entries WHERE sequence > 2")

    first, second = invoke("verify", "ledger.db"), invoke("verify", "ledger.db")
    as_json = invoke("verify", "ledger.db", "--json")

    assert first[0] == second[0] == 0
    assert "Your account of this computer sees it for the first time, so it cannot know" in first[1]
    assert "had seen it up to entry 2" in second[1]
    assert json.loads(as_json[1])["remembered"] == json.loads(as_json[1])["head"]


def test_a_ledger_whose_end_was_cut_off_is_not_intact(invoke: Invoke) -> None:
    release()
    tamper("DELETE FROM entries WHERE sequence > 2")

    verified, shown = invoke("verify", "ledger.db"), invoke("show", "ledger.db")

    assert verified[0] == shown[0] == 2
    assert "NOT intact" in verified[1]
    assert "entry 4, which this account of the computer saw in it, is not there any more" in verified[1]
    assert "Use the newest copy" in shown[1]


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE entries SET payload = replace(payload, '0', '1') WHERE sequence = 2", "entry 2 was changed"),
        ("DELETE FROM entries WHERE sequence = 2", "entry 2 is missing"),
    ],
)
def test_tampering_is_reported_and_other_commands_refuse_the_ledger(invoke: Invoke, statement: str, fault: str) -> None:
    made = release(closed=False)
    release()
    tamper(statement)

    code, shown = invoke("verify", "ledger.db")
    as_json = invoke("verify", "ledger.db", "--json")
    others = [
        invoke("show", "ledger.db"),
        cap(invoke),
        invoke("close", "ledger.db", made.name, "--yes"),
    ]

    assert code == as_json[0] == 2
    assert "NOT intact" in shown
    assert fault in shown
    assert fault in json.loads(as_json[1])["faults"][0]
    assert [other for other, _ in others] == [2, 2, 2]
    assert all("tampered with" in message for _, message in others)


def test_a_ledger_whose_end_was_cut_off_disagrees_with_a_certificate_and_a_synopsis(invoke: Invoke) -> None:
    made = release()
    data = made.certificate().to_data()
    Path("certificate.json").write_text(json.dumps(data), "utf-8")
    synopsis_without_numbers(made.certificate()).save("s.dpsyn")
    records = ["--against", "certificate.json", "--against", "s.dpsyn"]
    intact = invoke("verify", "ledger.db", *records)
    tamper("DELETE FROM entries WHERE sequence = 4")
    forget()

    alone = invoke("verify", "ledger.db")
    compared = invoke("verify", "ledger.db", *records)

    assert intact[0] == 0
    assert "agrees with certificate.json, s.dpsyn" in intact[1]
    assert alone[0] == 0
    assert compared[0] == 2
    assert "certificate.json: entry 4 is not the one that a release recorded" in compared[1]
    assert "s.dpsyn: entry 4 is not the one that a release recorded" in compared[1]


def test_a_certificate_that_was_changed_is_refused_with_what_differs(invoke: Invoke) -> None:
    data = release().certificate().to_data()
    data["guarantee"]["epsilon"] = "0.1"
    Path("forged.json").write_text(json.dumps(data), "utf-8")

    code, shown = invoke("verify", "ledger.db", "--against", "forged.json")
    as_json = invoke("verify", "ledger.db", "--against", "forged.json", "--json")

    assert code == as_json[0] == 2
    assert (
        f"forged.json: run {data['run']}: guarantee epsilon is '0.1' in the certificate and '0.5' in the ledger"
        in shown
    )
    assert "the certificate was changed" in shown
    assert "guarantee epsilon" in json.loads(as_json[1])["faults"][0]


def test_a_certificate_of_another_ledger_may_be_just_that(invoke: Invoke) -> None:
    Path("certificate.json").write_text(json.dumps(release().certificate().to_data()), "utf-8")
    FILE.unlink()
    release()

    code, shown = invoke("verify", "ledger.db", "--against", "certificate.json")

    assert code == 2
    assert "which is not in this ledger" in shown
    assert "it may be a certificate of another ledger" in shown


def test_what_verify_prints_as_json_is_a_record_to_compare_with(invoke: Invoke) -> None:
    release()
    Path("head.json").write_text(invoke("verify", "ledger.db", "--json")[1], "utf-8")
    release()

    later = invoke("verify", "ledger.db", "--against", "head.json")
    FILE.unlink()
    release()
    rewritten = invoke("verify", "ledger.db", "--against", "head.json")

    assert later[0] == 0
    assert rewritten[0] == 2


def test_a_file_that_records_no_entry_is_refused(invoke: Invoke) -> None:
    release()
    Path("other.json").write_text("[]", "utf-8")

    for record in ("other.json", "none.json", "ledger.db"):
        code, shown = invoke("verify", "ledger.db", "--against", record)

        assert code == 2
        assert f"{record} cannot be compared with the ledger" in shown


# ── close ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_is_closed_and_what_it_measured_stays_spent(invoke: Invoke) -> None:
    crashed = release(closed=False)

    code, shown = invoke("close", "ledger.db", crashed.name, "--yes")
    again = invoke("close", "ledger.db", crashed.name, "--yes")

    (account,) = Ledger(FILE).datasets()
    assert code == 0
    assert "the cost of 1 noisy measurement stays spent; the rest of its budget is free again" in shown
    assert account.rho == crashed.account.total.rho
    assert again[0] == 0
    assert "closed already" in again[1]


def test_closing_asks_on_a_terminal_and_is_refused_without_one(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    crashed = release(closed=False)
    unattended = invoke("close", "ledger.db", crashed.name)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    answers: list[bool] = []
    monkeypatch.setattr("click.confirm", lambda text, abort: answers.append(abort))

    asked = invoke("close", "ledger.db", crashed.name)

    assert unattended[0] == 2
    assert "--yes" in unattended[1]
    assert asked[0] == 0
    assert answers == [True]


def test_an_unknown_run_is_named(invoke: Invoke) -> None:
    release()

    code, shown = invoke("close", "ledger.db", "nobody", "--yes")

    assert code == 2
    assert "there is no run 'nobody' in ledger.db" in shown


# ── files that are no ledgers ────────────────────────────────────────────────────────────────────────────────


def _write_foreign_database() -> None:
    connection = sqlite3.connect(FILE)
    connection.execute("CREATE TABLE mine (x)")
    connection.close()


def _write_damaged_ledger() -> None:
    for _ in range(40):
        release()
    os.truncate(FILE, FILE.stat().st_size - 5000)


FILES: dict[str, Callable[[], object]] = {
    "missing": lambda: None,
    "text": lambda: FILE.write_text("name,age\n" * 200, "utf-8"),
    "foreign": _write_foreign_database,
    "damaged": _write_damaged_ledger,
    "folder": FILE.mkdir,
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("command", [["show"], ["verify"], ["show", "--json"], ["close", "x", "--yes"]])
def test_no_ledger_is_a_clear_message_and_the_file_stays_as_it_was(
    invoke: Invoke, kind: str, command: list[str]
) -> None:
    FILES[kind]()
    before = FILE.read_bytes() if FILE.is_file() else None

    code, shown = invoke(command[0], "ledger.db", *command[1:])

    assert code == 2
    assert "ledger.db" in shown
    assert "Traceback" not in shown
    assert "internal error" not in shown
    assert (FILE.read_bytes() if FILE.is_file() else None) == before
    assert {path.name for path in Path().iterdir()} <= {"ledger.db"}


@pytest.mark.parametrize("kind", ["text", "foreign", "damaged", "folder"])
def test_a_cap_is_not_written_into_another_file(invoke: Invoke, kind: str) -> None:
    FILES[kind]()
    before = FILE.read_bytes() if FILE.is_file() else None

    code, shown = cap(invoke)

    assert code == 2
    assert "internal error" not in shown
    assert (FILE.read_bytes() if FILE.is_file() else None) == before


def test_a_cap_in_a_folder_that_is_not_there_is_refused(invoke: Invoke) -> None:
    code, shown = invoke("set-cap", "nowhere/l.db", "--dataset", "people", "--epsilon", "1", "--delta", "1e-9")

    assert code == 2
    assert "there is no ledger nowhere/l.db" in shown
    assert "the folder nowhere does not exist; create it" in invoke("new", "nowhere/l.db")[1]


def test_verifying_against_a_synopsis_covers_its_numbers(invoke: Invoke) -> None:
    ledger = Ledger.create(Path("ledger.db"))
    schema = people_schema()
    made = dpsyn.measure(people(rows=200), schema, 1.0, recipe="independent", ledger=ledger, dataset="people")
    made.save("s.dpsyn")
    intact = invoke("verify", "ledger.db", "--against", "s.dpsyn")
    release = made.releases[0]
    first, *others = release.rounds[0].marginals
    changed = replace(release.rounds[0], marginals=(replace(first, raw=first.raw + 1), *others))
    forged = replace(release, rounds=(changed, *release.rounds[1:]))
    dpsyn.Synopsis(made.schema, (forged,), made.model).save("forged.dpsyn")

    code, message = invoke("verify", "ledger.db", "--against", "forged.dpsyn")

    assert intact[0] == 0
    assert code == 2
    assert "is not an answer that the certificate records" in message


def test_a_release_that_kept_no_ledger_is_not_said_to_agree(invoke: Invoke) -> None:
    ledger, table, schema = Ledger.create(Path("ledger.db")), people(rows=200), people_schema()
    alone = dpsyn.measure(table, schema, 1.0, recipe="independent", dataset="people")
    made = dpsyn.measure(table, schema, 1.0, recipe="independent", dataset="people", ledger=ledger, extend=alone)
    made.save("s.dpsyn")

    code, message = invoke("verify", "ledger.db", "--against", "s.dpsyn")
    as_json = invoke("verify", "ledger.db", "--against", "s.dpsyn", "--json")

    assert code == as_json[0] == 2
    assert "it agrees with" not in message
    assert "s.dpsyn: release 1 names no ledger entry, because its run kept no ledger" in message
    assert "model that rows are sampled from is post-processing" in message.replace("\n", " ")
    assert len(json.loads(as_json[1])["not_compared"]) == 1
