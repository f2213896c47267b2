"""A certificate is compared with what the ledger recorded about its run."""

from __future__ import annotations

import copy
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dpsyn.accounting import Budget, Gaussian, Ledger, LedgerCheckpoint, LedgerHead, PrivacyUnit, Run, RunOutcome

BUDGET = Budget.for_guarantee(1, 1e-9)
OUTCOME = RunOutcome(lost_answers=1, left_out=("marginal of income",), contents_hash="ab" * 32)
Data = dict[str, Any]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """A ledger of two runs with three measurements each."""
    made = Ledger.create(tmp_path_factory.mktemp("ledger") / "ledger.db")
    for _ in range(2):
        run = Run.open(
            BUDGET,
            PrivacyUnit(id="person", max_rows=2),
            dataset="clinic",
            ledger=made,
            recipe={"name": "privsyn", "budget_shares": [1, 1, 8], "rare_sigmas": -1.5},
            declared_public=["age: code book", "the table is the answer of the query: SELECT age, sex FROM t"],
        )
        for purpose in ("age", "sex", "age, sex"):
            run.charge(
                f"marginal of {purpose}", Gaussian.for_rho(BUDGET.rho / 4, run.privacy_unit.l2_sensitivity_squared)
            )
        run.close(OUTCOME)
    return made


@pytest.fixture(scope="module")
def certificate(ledger: Ledger) -> Data:
    """The certificate of the first run, as a file holds it."""
    account = ledger.datasets()[0].runs[0]
    data = Run.resume(ledger, account.run, last_head=account.head).certificate(OUTCOME).to_data()
    return dict(json.loads(json.dumps(data)))


def compared(ledger: Ledger, *certificates: Data) -> tuple[str, ...]:
    return ledger.verify([LedgerCheckpoint(LedgerHead(**certificates[-1]["ledger_head"]), certificates)]).faults


def put(*path: str | int, value: Any) -> Callable[[Data], None]:
    """Change one value of a certificate."""

    def change(data: Data) -> None:
        holder: Any = data
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = value

    return change


def test_an_honest_certificate_agrees_also_if_other_tools_wrote_its_numbers(ledger: Ledger, certificate: Data) -> None:
    rounded = certificate | {"certified_epsilon": round(certificate["certified_epsilon"], 9)}

    assert compared(ledger, certificate) == ()
    assert compared(ledger, rounded) == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            put("guarantee", "epsilon", value="0.1"),
            "guarantee epsilon is '0.1' in the certificate and '1' in the ledger",
        ),
        (put("guarantee", "delta", value="1e-12"), "guarantee delta"),
        (put("guarantee", "rho", value="0"), "guarantee rho"),
        (
            put("guarantee", "pure_epsilons", value=["1"]),
            "guarantee pure_epsilons: 1 in the certificate, 0 in the ledger",
        ),
        (put("guarantee", value=None), "guarantee is missing"),
        (put("dataset", value="hospital"), "dataset is 'hospital' in the certificate and 'clinic' in the ledger"),
        (put("recipe", "name", value="mst"), "recipe name is 'mst' in the certificate and 'privsyn' in the ledger"),
        (put("recipe", "budget_shares", 2, value=9), "recipe budget_shares 3 is 9 in the certificate and 8"),
        (put("recipe", value={}), "recipe name is missing in the certificate"),
        (
            put("privacy_unit", "max_rows", value=20),
            "privacy_unit max_rows is 20 in the certificate and 2 in the ledger",
        ),
        (
            put("privacy_unit", "record", value="household"),
            "privacy_unit record is 'household' in the certificate and missing",
        ),
        (put("differentially_private", value=False), "differentially_private is False in the certificate and True"),
        (put("differentially_private", value="true"), "differentially_private is False in the certificate and True"),
        (lambda data: data.pop("differentially_private"), "differentially_private is missing"),
        (
            put("measurements", 1, "purpose", value="marginal of income"),
            "measurements 2 purpose is 'marginal of income'",
        ),
        (put("measurements", 1, "rho", value="0"), "measurements 2 rho"),
        (put("measurements", 0, "mechanism", "sensitivity_squared", value="9"), "measurements 1 mechanism"),
        (put("measurements", value=[]), "measurements: 0 in the certificate, 3 in the ledger"),
        (lambda data: data["measurements"].pop(), "measurements: 2 in the certificate, 3 in the ledger"),
        (
            lambda data: data["measurements"].append(data["measurements"][0]),
            "measurements: 4 in the certificate, 3 in the ledger",
        ),
        (put("certified_epsilon", value=0.2), "certified_epsilon is 0.2 in the certificate"),
        (put("certified_epsilon", value=10**400), "certified_epsilon is 1000"),
        (put("certified_epsilon", value=float("nan")), "certified_epsilon is nan"),
        (put("epsilon_bounds", "pld", value=0.2), "epsilon_bounds pld is 0.2 in the certificate"),
        (put("epsilon_bounds", "zcdp", value="0.2"), "epsilon_bounds zcdp is '0.2' in the certificate"),
        (put("format", value=3), "format is 3 in the certificate and 2 in the ledger"),
        (put("declared_public", 0, value="age: guessed"), "declared_public 1 is 'age: guessed' in the certificate"),
        (put("declared_public", value=[]), "declared_public: 0 in the certificate, 2 in the ledger"),
        (put("declared_public", 1, value="the table is the answer of the query: SELECT 1"), "declared_public 2 is"),
        (put("lost_answers", value=0), "lost_answers is 0 in the certificate and 1 in the ledger"),
        (put("left_out", value=[]), "left_out: 0 in the certificate, 1 in the ledger"),
        (put("contents_hash", value="cd" * 32), "contents_hash is 'cdcd"),
        (put("approved_by", value="the authority"), "'approved_by' is in the certificate, but DPSyn writes no such"),
        (put("guarantee", "note", value=None), "'guarantee note' is in the certificate, but DPSyn writes no such"),
        (put("measurements", 2, "std", value=1), "'measurements 3 std' is in the certificate, but DPSyn writes no"),
        (put("run", value="0123456789abcdef"), "of run '0123456789abcdef', which is not in this ledger"),
        (put("run", value={"a": [1]}), "of run something else, which is not in this ledger"),
    ],
)
def test_every_change_of_a_certificate_is_named(
    ledger: Ledger, certificate: Data, change: Callable[[Data], None], words: str
) -> None:
    forged = copy.deepcopy(certificate)
    change(forged)

    assert any(words in fault for fault in compared(ledger, forged))


def test_the_end_of_another_run_or_the_middle_of_this_one_is_not_its_end(ledger: Ledger, certificate: Data) -> None:
    with closing(sqlite3.connect(ledger.path)) as connection:
        rows = connection.execute("SELECT sequence, hash FROM entries ORDER BY sequence").fetchall()
    heads = [{"sequence": number, "hash": digest} for number, digest in rows]

    faults = [compared(ledger, certificate | {"ledger_head": head}) for head in heads]

    assert [not lines for lines in faults] == [False] * 4 + [True] * 2 + [False] * 5
    assert "is not the last one of this run" in faults[0][0]


def test_every_release_of_several_is_compared(ledger: Ledger, certificate: Data) -> None:
    forged = certificate | {"dataset": "hospital"}
    hidden = certificate | {"ledger_head": None}
    elsewhere = certificate | {"ledger_head": None, "run": "0123456789abcdef"}

    imported = LedgerCheckpoint(LedgerHead(**certificate["ledger_head"]), (None, elsewhere, certificate), "s.dpsyn")
    verification = ledger.verify([imported])
    assert verification.faults == ()
    assert verification.not_compared == (
        "s.dpsyn: release 1 has no certificate, because its numbers were measured in another system",
        "s.dpsyn: release 2 names no ledger entry, because its run kept no ledger",
    )
    assert "dataset" in compared(ledger, forged, certificate)[0]
    assert "is not the last one of this run" in compared(ledger, hidden, certificate)[0]


def test_many_differences_are_counted_not_listed(ledger: Ledger, certificate: Data) -> None:
    forged = certificate | {"measurements": [{} for _ in certificate["measurements"]]}

    faults = compared(ledger, forged)

    assert len(faults) == 4
    assert faults[-1].endswith("measurements: 12 more differences")


def test_measurements_after_the_certificate_are_detected(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.db")
    run = Run.open(BUDGET, PrivacyUnit(), dataset="clinic", ledger=ledger)
    run.charge("marginal of age", Gaussian.for_rho(BUDGET.rho / 4, 1))
    early = run.certificate().to_data()

    before = compared(ledger, early)
    run.charge("marginal of sex", Gaussian.for_rho(BUDGET.rho / 4, 1))

    assert before == ()
    assert "measurements: 1 in the certificate, 2 in the ledger" in compared(ledger, early)[0]
