"""Releases that were chosen among candidates: what all of it cost is verified, and forged statements are refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

import dpsyn
from dpsyn.accounting import Budget, Certificate, MeasurementRecord, combine_budgets
from dpsyn.accounting.costs import cost_from_data
from dpsyn.cli.main import run
from tests.verification.forgery import Forger
from tests.verification.releases import failed_checks, verdicts

KEY = dpsyn.SigningKey.generate()
SCHEMA = "dpsyn_schema: 1\ndataset: bits\nattributes: {a: {kind: boolean}, b: {kind: boolean}, c: {kind: boolean}}\n"
CANDIDATES = "dpsyn_candidates: 1\ncandidates: {columns: {recipe: independent}, pairs: {recipe: direct}}\n"


@dataclass(frozen=True)
class Chosen:
    """The folder of a release that was chosen, and the ledger in which all runs are recorded."""

    release: Path
    ledger: Path


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Chosen:
    folder = tmp_path_factory.mktemp("chosen")
    rows = [f"{n % 2},{n % 2},{n % 3 == 0:d}" for n in range(600)]
    (folder / "bits.csv").write_text("\n".join(["a,b,c", *rows]) + "\n", "utf-8")
    (folder / "schema.yaml").write_text(SCHEMA, "utf-8")
    (folder / "candidates.yaml").write_text(CANDIDATES, "utf-8")
    dpsyn.Ledger.create(folder / "ledger.db")
    data, *options = (str(folder / name) for name in ("bits.csv", "schema.yaml", "candidates.yaml", "ledger.db"))
    named = [text for pair in zip(("-s", "--candidates", "--ledger"), options, strict=True) for text in pair]
    spend = ["--epsilon", "1", "--choice-epsilon", "2", "--rows", "40", "-q"]
    assert run(["choose", data, *named, *spend, "-o", f"{folder}/release/"]) == 0
    dpsyn.sign(folder / "release", KEY)
    return Chosen(folder / "release", folder / "ledger.db")


@pytest.fixture
def forger(chosen: Chosen, tmp_path: Path) -> Forger:
    return Forger.copying(chosen.release, tmp_path / "forged")


def test_a_genuine_choice_is_verified(chosen: Chosen) -> None:
    with patch("dpsyn.accounting.head_store.head_path", lambda _: None):
        assert verdicts(chosen.release, KEY.public_key, chosen.ledger) == ("verified", 0)
    assert verdicts(chosen.release) == ("unsigned", 3)
    (check,) = [check for check in dpsyn.verify(chosen.release).checks if check.what == "choice"]
    assert "pairs of 2 candidates; all of it costs ε = " in check.found


def test_a_forger_who_states_the_same_anew_is_refused_because_of_the_signature_alone(forger: Forger) -> None:
    edit(forger, lambda _: None)

    assert failed_checks(forger.folder, KEY.public_key) == ({"signature"}, {"signature"})


def edit(forger: Forger, change: Callable[[Any], None]) -> None:
    """Change the record of a choice, write its text anew, and recompute the statement that is signed."""
    forger.edit_json("choice.json", change)
    data = json.loads((forger.folder / "choice.json").read_text("utf-8"))
    lines = (forger.folder / "choice.txt").read_text("utf-8").splitlines(keepends=True)
    lines[0] = f"Chosen: {data['chosen']}, among {', '.join(data['candidates'])}.\n"
    against = lines[2].partition(", against")[2]
    lines[2] = f"Guarantee of all of it: ε = {data['epsilon']:.9g}, δ = {data['delta']:.9g}, against{against}"
    (forger.folder / "choice.txt").write_text("".join(lines), "utf-8")
    forger.rehash()


def bind_again(data: Any) -> None:
    """State the hash of a changed list of candidates, and the guarantee of all that is listed."""
    recipe = data["choice"]["recipe"]
    data["choice"]["contents_hash"] = sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()
    certificates = [*data["candidates"].values(), data["choice"]]
    total = combine_budgets([Budget.from_data(each["guarantee"]) for each in certificates])
    data["epsilon"], data["delta"] = total.worst_epsilon, float(total.delta)


def set_mechanism(data: Any, **fields: Any) -> None:
    """Change the mechanism of the choice, and state all costs that follow from it."""
    (record,) = data["choice"]["measurements"]
    record["mechanism"] |= fields
    cost = cost_from_data(record["mechanism"])
    record |= MeasurementRecord(purpose=record["purpose"], cost=cost).to_data() | {"answer_hash": record["answer_hash"]}
    charged = record["mechanism"]["charged_epsilon"]
    data["choice"]["guarantee"] |= {"epsilon": charged, "pure_epsilons": [charged]}
    data["choice"]["certified_epsilon"] = float(charged)
    budget = Budget.from_data(data["choice"]["guarantee"])
    data["choice"]["epsilon_bounds"] = budget.worst_case.epsilon_bounds(budget.epsilon, budget.delta).to_data()
    bind_again(data)


# ── forgeries ────────────────────────────────────────────────────────────────────────────────────────────────


def state_less_epsilon(data: Any) -> None:
    data["epsilon"] *= 0.99


def state_the_epsilon_of_the_chosen_one(data: Any) -> None:
    data["epsilon"] = 1.0


def state_more_than_all_budgets(data: Any) -> None:
    data["epsilon"] = 5.0


def state_half_of_delta(data: Any) -> None:
    data["delta"] /= 2


def choose_the_other_one(data: Any) -> None:
    data["chosen"] = "columns"


def exchange_names(data: Any) -> None:
    one, other = data["candidates"].values()
    data["candidates"] = {"columns": other, "pairs": one}
    data["chosen"] = "columns"


def exchange_names_everywhere(data: Any) -> None:
    exchange_names(data)
    listed = data["choice"]["recipe"]["candidates"]
    listed[0]["run"], listed[1]["run"] = listed[1]["run"], listed[0]["run"]
    bind_again(data)


def leave_a_loser_out_of_the_list(data: Any) -> None:
    del data["candidates"]["columns"]
    bind_again(data)


def leave_a_loser_out_and_bind_the_rest(data: Any) -> None:
    data["choice"]["recipe"]["candidates"].pop(0)
    leave_a_loser_out_of_the_list(data)


def list_a_run_twice(data: Any) -> None:
    data["candidates"]["columns"] = copy.deepcopy(data["candidates"]["pairs"])
    data["choice"]["recipe"]["candidates"][0]["run"] = data["candidates"]["pairs"]["run"]
    bind_again(data)


def put_another_run_in_the_place_of_a_loser(data: Any) -> None:
    data["candidates"]["columns"]["run"] = "0" * len(data["candidates"]["columns"]["run"])


def put_a_candidate_of_another_dataset(data: Any) -> None:
    data["candidates"]["columns"]["dataset"] = "other"


def lower_the_cost_of_a_candidate(data: Any) -> None:
    for record in data["candidates"]["columns"]["measurements"]:
        record["rho"] = "0.001"


def lower_the_budget_of_a_candidate(data: Any) -> None:
    data["candidates"]["columns"]["guarantee"]["epsilon"] = "0.5"
    bind_again(data)


def charge_the_choice_for_less(data: Any) -> None:
    data["choice"]["measurements"][0]["mechanism"]["charged_epsilon"] = "1"


def lower_the_sensitivity_of_the_choice(data: Any) -> None:
    set_mechanism(data, sensitivity="1", charged_epsilon="1")


def change_the_answer(data: Any) -> None:
    data["choice"]["measurements"][0]["answer_hash"] = sha256(b"[1]\n" + bytes(8)).hexdigest()


def ask_something_else(data: Any) -> None:
    data["choice"]["measurements"][0]["purpose"] = "which of 2 attributes is nearest"


def bind_other_rows(data: Any) -> None:
    data["choice"]["recipe"]["candidates"][0]["synthetic_hash"] = "0" * 64


def add_an_entry(data: Any) -> None:
    data["audited"] = True


def remove_the_choice(data: Any) -> None:
    data["choice"] = None


RECORDS = [
    state_less_epsilon, state_the_epsilon_of_the_chosen_one, state_more_than_all_budgets, state_half_of_delta,
    choose_the_other_one, exchange_names, exchange_names_everywhere, leave_a_loser_out_of_the_list,
    leave_a_loser_out_and_bind_the_rest, list_a_run_twice, put_another_run_in_the_place_of_a_loser,
    put_a_candidate_of_another_dataset,
    lower_the_cost_of_a_candidate, lower_the_budget_of_a_candidate, charge_the_choice_for_less,
    lower_the_sensitivity_of_the_choice, change_the_answer, ask_something_else, bind_other_rows, add_an_entry,
    remove_the_choice,
]  # fmt: skip


@pytest.mark.parametrize("forge", RECORDS, ids=lambda forge: forge.__name__)
def test_a_forged_record_of_a_choice_is_refused_without_a_key(forger: Forger, forge: Callable[[Any], None]) -> None:
    edit(forger, forge)

    ours, alone = failed_checks(forger.folder, KEY.public_key)

    assert ours == {"signature", "choice"}
    assert alone == {"signature", "choice"}


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [("choice.txt", "ε = 3", "ε = 2"), ("choice.txt", "among columns, pairs", "among pairs"), ("choice.txt", "δ", "d")],
)
def test_a_forged_text_of_a_choice_is_refused_without_a_key(forger: Forger, name: str, old: str, new: str) -> None:
    forger.replace_text(name, old, new)
    (forger.folder / "signatures.json").unlink()

    assert verdicts(forger.folder) == ("refused", 1)


@pytest.mark.parametrize("names", [["choice.json"], ["choice.txt"], ["choice.json", "choice.txt"]])
def test_a_choice_without_its_files_is_refused(forger: Forger, names: list[str]) -> None:
    for name in names:
        (forger.folder / name).unlink()
    forger.rehash()
    ours, alone = failed_checks(forger.folder, KEY.public_key)

    assert ours == alone == {"signature", *(["choice"] if len(names) == 1 else [])}


def test_a_consistent_choice_at_a_lower_price_is_refused_by_the_ledger_and_by_the_signature(
    forger: Forger, chosen: Chosen
) -> None:
    """Nobody else can know better: the forger made the choice cheaper and recomputed everything."""

    def make_it_cheaper(data: Any) -> None:
        (record,) = data["choice"]["measurements"]
        set_mechanism(data, scale=2 * record["mechanism"]["scale"], charged_epsilon="1")
        Certificate.from_data(data["choice"])

    edit(forger, make_it_cheaper)
    assert failed_checks(forger.folder, KEY.public_key) == ({"signature"}, {"signature"})
    (forger.folder / "signatures.json").unlink()

    assert verdicts(forger.folder) == ("unsigned", 3)
    with patch("dpsyn.accounting.head_store.head_path", lambda _: None):
        assert verdicts(forger.folder, None, chosen.ledger) == ("refused", 1)


def test_a_chosen_release_without_its_choice_is_refused_by_the_ledger(forger: Forger, chosen: Chosen) -> None:
    """It would state what it cost alone; that of another candidate, which was not chosen, states all."""
    for name in ("choice.json", "choice.txt", "signatures.json"):
        (forger.folder / name).unlink()
    candidates = chosen.release.with_name("release.candidates")

    with patch("dpsyn.accounting.head_store.head_path", lambda _: None):
        ours = [check for check in dpsyn.verify(forger.folder, ledger=chosen.ledger).checks if not check.passed]
        assert [(check.what, "it was chosen among 2" in check.found) for check in ours] == [("not chosen", True)]
        assert verdicts(forger.folder, None, chosen.ledger) == ("refused", 1)
        assert verdicts(candidates / "pairs.dpsyn", None, chosen.ledger) == ("refused", 1)
        assert verdicts(candidates / "columns.dpsyn", None, chosen.ledger) == ("unsigned", 3)


def test_cards_of_a_chosen_release_state_what_all_of_it_cost(forger: Forger) -> None:
    (forger.folder / "signatures.json").unlink()
    dpsyn.sign(forger.folder, KEY, card=True)

    card, metadata, choice = (
        json.loads((forger.folder / name).read_text("utf-8"))
        for name in ("deployment-card.json", "croissant.json", "choice.json")
    )
    stated = card["deployment"]["privacy_loss"]["privacy_parameters"]
    assert stated["epsilon"] == choice["epsilon"] > 3
    assert f"(ε, δ) = ({choice['epsilon']:g}, 2e-9)" in metadata["rai:personalSensitiveInformation"]
    assert verdicts(forger.folder, KEY.public_key) == ("verified", 0)
    own = json.loads((forger.folder / "certificate.json").read_text("utf-8"))["releases"][0]["certificate"]["guarantee"]
    change = {"epsilon": float(own["epsilon"]), "delta": float(own["delta"])}
    forger.edit_json(
        "deployment-card.json", lambda data: data["deployment"]["privacy_loss"].update(privacy_parameters=change)
    )
    (forger.folder / "signatures.json").unlink()
    assert verdicts(forger.folder) == ("refused", 1)


def test_a_release_that_was_chosen_twice_is_refused_by_the_ledger(tmp_path: Path) -> None:
    """Its certificates state one choice; the ledger knows that there was another one among the same candidates."""
    table = pa.table({name: [n % 3 == 0 for n in range(300)] for name in "abc"})
    asked: dict[str, Any] = {"folder": tmp_path / "work", "ledger": dpsyn.Ledger.create(tmp_path / "ledger.db")}
    both: dict[str, dpsyn.Recipe | str] = {"columns": "independent", "pairs": "direct"}
    with (
        patch("dpsyn.accounting.head_store.head_path", lambda _: None),
        patch("dpsyn.assessment._choose._refuse_second_choice", lambda *_: None),
    ):
        for resume in (False, True):
            choice = dpsyn.choose(table, dpsyn.Schema.from_yaml(SCHEMA), both, epsilon=1.0, resume=resume, **asked)
            folder = tmp_path / f"release-{resume}"
            choice.synopsis.write(f"{folder}/", 40, seed=1)
            (folder / "choice.json").write_text(json.dumps(choice.to_dict()), "utf-8")
            (folder / "choice.txt").write_text(choice.text(), "utf-8")
            if not resume:
                assert verdicts(folder, None, tmp_path / "ledger.db") == ("unsigned", 3)
                (tmp_path / "work" / "choice.journal").unlink()

        assert verdicts(folder) == ("unsigned", 3)
        assert verdicts(folder, None, tmp_path / "ledger.db") == ("refused", 1)
