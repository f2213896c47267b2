"""Forged releases: whatever is changed, and whatever the forger recomputes, both verifiers refuse it.

A forger has everything that is published, and no private key. Forgeries marked ``VISIBLE`` contradict themselves, so
they are refused even by a reader who has no key.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import dpsyn
from dpsyn.accounting import Budget, Gaussian, Laplace, MeasurementRecord
from dpsyn.accounting.budget import replay
from dpsyn.accounting.certificate import Certificate
from dpsyn.accounting.exact_numbers import exact_fraction, format_exact
from dpsyn.errors import SignatureError
from dpsyn.signatures import Signature, describe_release, read_signatures
from dpsyn.signatures.statement import DOMAIN, canonical_json
from tests.private.noise_doubles import RecordingNoise
from tests.recipes.test_public_prior import people
from tests.recipes.test_public_prior import schema as people_schema
from tests.verification.forgery import GROUP_ORDER, Forger, rewrite_ledger
from tests.verification.releases import failed_checks, run_alone, schema, verdicts, visits

KEY = dpsyn.SigningKey.generate()
FORGERS_KEY = dpsyn.SigningKey.generate()


@dataclass(frozen=True)
class Genuine:
    """Releases by one data owner, and the ledger in which they are recorded."""

    release: Path
    other: Path
    pure: Path
    tested: Path
    ledger: Path
    earlier: Path


@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Genuine]:
    folder = tmp_path_factory.mktemp("genuine")
    made = Genuine(*(folder / name for name in ("release", "other", "pure", "tested", "ledger.db", "earlier.db")))
    ledger = dpsyn.Ledger.create(made.ledger)
    options: dict[str, Any] = {"seed": 1, "card": True, "with_verifier": True, "sign": KEY}
    with patch("dpsyn.accounting.head_store.head_path", lambda _: None):  # the reader has seen no ledger before
        dpsyn.measure(visits(seed=3), schema(), 1.0, recipe="privsyn", ledger=ledger).write(
            f"{made.other}/", 40, **options
        )
        shutil.copy(made.ledger, made.earlier)
        released = dpsyn.measure(visits(), schema(), 2.0, recipe="privsyn", ledger=ledger)
        released.write(f"{made.release}/", 50, **options)
        bits = schema("dpsyn_schema: 1\nattributes:\n  a: {kind: boolean}\n  b: {kind: boolean}\n")
        table = visits().select(["old", "ward"]).rename_columns(["a", "b"])
        dpsyn.measure(table, bits, 1.0, delta=0, recipe="direct").write(f"{made.pure}/", 20, **options)
        with patch("dpsyn.private.session.SystemNoise", lambda: RecordingNoise(seed=5)):
            dpsyn.measure(table, bits, 1.0, recipe="direct").write(f"{made.tested}/", 20, **options)
        yield made


@pytest.fixture
def forger(genuine: Genuine, tmp_path: Path) -> Forger:
    return Forger.copying(genuine.release, tmp_path / "forged")


def test_what_is_forged_below_is_genuine(genuine: Genuine) -> None:
    forger = Forger(genuine.release)
    forger.load()

    assert verdicts(genuine.release, KEY.public_key, genuine.ledger) == ("verified", 0)
    assert verdicts(genuine.other, KEY.public_key, genuine.ledger) == ("verified", 0)
    assert verdicts(genuine.pure, KEY.public_key) == ("verified", 0)
    assert verdicts(genuine.release) == ("unsigned", 3)
    assert forger.manifest["releases"][0]["scores"]  # so that scores can be forged
    assert forger.measurement("values of city")["mechanism"]["kind"] == "partition_selection"


def test_a_forger_who_changes_nothing_leaves_a_release_as_genuine_as_it_was(forger: Forger) -> None:
    forger.save()

    assert verdicts(forger.folder, KEY.public_key) == ("verified", 0)


# ── numbers and their measurements ───────────────────────────────────────────────────────────────────────────


def change_a_count(forger: Forger) -> None:
    marginal = forger.marginals[0]
    record, numbers = forger.record_of(marginal), forger.numbers(marginal["raw"])
    numbers.flat[0] += 1
    forger.put_numbers(marginal["raw"], numbers)
    record["answer_hash"] = dpsyn.accounting.hash_answer(numbers)
    forger.save()


def change_a_count_alone(forger: Forger) -> None:
    marginal = forger.marginals[0]
    numbers = forger.numbers(marginal["raw"])
    numbers.flat[0] += 1
    forger.put_numbers(marginal["raw"], numbers)
    forger.save()


def exchange_two_marginals(forger: Forger) -> None:
    pairs = [(a, b) for a in forger.marginals for b in forger.marginals if a["clique"] != b["clique"]]
    first, second = next((a, b) for a, b in pairs if forger.numbers(a["raw"]).shape == forger.numbers(b["raw"]).shape)
    first["raw"], second["raw"] = second["raw"], first["raw"]
    forger.save()


def flip_a_bit(forger: Forger) -> None:
    path = forger.folder / "synopsis.dpsyn"
    with zipfile.ZipFile(path) as file:
        member = file.getinfo("manifest.json")
    content = bytearray(path.read_bytes())
    content[member.header_offset + 30 + len(member.filename) + member.compress_size // 2] ^= 1
    path.write_bytes(content)


def change_the_model(forger: Forger) -> None:
    name = next(iter(forger.manifest["model"]["histograms"].values()))
    forger.put_numbers(name, forger.numbers(name) + 1.0)
    forger.save()


def change_the_model_without_its_hash(forger: Forger) -> None:
    name = next(iter(forger.manifest["model"]["histograms"].values()))
    stated = forger.manifest["members"][name]
    forger.put_numbers(name, forger.numbers(name) + 1.0)
    forger.manifest["members"][name] = stated
    forger.save()


def change_a_score(forger: Forger) -> None:
    scores = forger.manifest["releases"][0]["scores"][0]
    forger.put_numbers(scores["values"], forger.numbers(scores["values"]) + 1.0)
    forger.save()


def remove_a_measurement(forger: Forger) -> None:
    forger.measurements.remove(forger.record_of(forger.marginals[0]))
    forger.recompute_bounds()
    forger.save()


def remove_a_measurement_that_left_no_number(forger: Forger) -> None:
    forger.measurements.remove(forger.measurement("values of city"))
    forger.recompute_bounds()
    forger.save()


def add_a_measurement(forger: Forger) -> None:
    forger.measurements.append(dict(forger.measurements[-1]))
    forger.save()


def put_numbers_without_noise(forger: Forger) -> None:
    marginal = forger.marginals[0]
    record, numbers = forger.record_of(marginal), forger.numbers(marginal["raw"])
    step = 2 ** marginal["lattice"]
    exact = np.rint(numbers / step).astype(np.int64) * step
    forger.put_numbers(marginal["raw"], exact)
    record["answer_hash"] = dpsyn.accounting.hash_answer(exact)
    forger.save()


# ── cost ─────────────────────────────────────────────────────────────────────────────────────────────────────


def lower_a_noise_scale(forger: Forger) -> None:
    marginal = forger.marginals[0]
    forger.record_of(marginal)["mechanism"]["sigma"] /= 2
    marginal["std"] /= 2
    forger.save()


def lower_a_noise_scale_and_state_its_cost(forger: Forger) -> None:
    marginal = forger.marginals[0]
    record = forger.record_of(marginal)
    record["mechanism"] |= {"sigma": record["mechanism"]["sigma"] / 2, "lattice": record["mechanism"]["lattice"] + 1}
    marginal |= {"std": marginal["std"] / 2, "lattice": marginal["lattice"] + 1}
    forger.recompute_cost(record)
    forger.recompute_bounds()
    forger.save()


def lower_a_sensitivity(forger: Forger) -> None:
    record = forger.record_of(forger.marginals[0])
    record["mechanism"]["sensitivity_squared"] = "0.25"
    forger.recompute_cost(record)
    forger.recompute_bounds()
    forger.save()


def lower_the_sensitivity_of_scores(forger: Forger) -> None:
    record = forger.measurement("dependence of")
    record["mechanism"]["sensitivity_squared"] = "1"
    forger.recompute_cost(record)
    forger.recompute_bounds()
    forger.save()


def charge_scores(forger: Forger, purpose: str, squared: int) -> None:
    """State another purpose and another sensitivity of scores, and every cost that follows."""
    record = forger.measurement("dependence of")
    record["purpose"] = purpose
    record["mechanism"]["sensitivity_squared"] = str(squared)
    forger.recompute_cost(record)
    forger.recompute_bounds()
    forger.save()


def charge_scores_as_one(forger: Forger) -> None:
    charge_scores(forger, "dependence of 1 pairs", 16)


def charge_scores_as_something_else(forger: Forger) -> None:
    charge_scores(forger, "how columns depend", 1)


def charge_scores_as_less_sensitive(forger: Forger) -> None:
    number = len(forger.manifest["releases"][0]["scores"][0]["cliques"])
    charge_scores(forger, f"distances of {number} marginals from predictions", number)


def leave_out_all_numbers(forger: Forger) -> None:
    """Nothing was measured and nothing spent, and yet there are a model and rows."""
    release = forger.manifest["releases"][0]
    release |= {"rounds": [], "scores": []}
    bounds = {"zcdp": 0.0, "pld": 0.0, "basic": 0.0}
    forger.certificate.update(measurements=[], epsilon_bounds=bounds, certified_epsilon=0.0, contents_hash="")
    used = json.dumps({name: part for name, part in forger.manifest.items() if name != "members"})
    for name in [name for name in forger.arrays if f'"{name}"' not in used]:
        del forger.arrays[name], forger.manifest["members"][name]
    forger.save()


def state_a_truth_as_a_number(forger: Forger) -> None:
    forger.certificate["privacy_unit"]["max_rows"] = True
    forger.save()


def state_a_smaller_cost(forger: Forger) -> None:
    forger.measurements[0]["rho"] = "0.0000001"
    forger.save()


def lower_epsilon(forger: Forger) -> None:
    forger.certificate["guarantee"]["epsilon"] = "0.5"
    forger.save()


def enlarge_the_budget(forger: Forger) -> None:
    """A run that decides on its way may spend all of its budget, so the budget must keep the guarantee."""
    guarantee = forger.certificate["guarantee"]
    guarantee["rho"] = format_exact(4 * exact_fraction(guarantee["rho"]))
    forger.save()


def lower_the_budget_below_what_was_spent(forger: Forger) -> None:
    guarantee = forger.certificate["guarantee"]
    guarantee["rho"] = format_exact(exact_fraction(guarantee["rho"]) / 4)
    forger.save()


def lower_delta(forger: Forger) -> None:
    forger.certificate["guarantee"]["delta"] = "0.000000000000001"
    forger.save()


def lower_the_certified_epsilon(forger: Forger) -> None:
    forger.certificate["certified_epsilon"] = 0.1
    forger.save()


def lower_the_bounds_of_epsilon(forger: Forger) -> None:
    forger.certificate["epsilon_bounds"] = {"zcdp": 0.5, "pld": 0.4, "basic": None}
    forger.certificate["certified_epsilon"] = 0.4
    forger.save()


def lower_one_bound_of_epsilon(forger: Forger) -> None:
    forger.certificate["epsilon_bounds"]["pld"] = forger.certificate["certified_epsilon"] = 1.9
    forger.save()


def change_the_second_bound(forger: Forger) -> None:
    forger.certificate["epsilon_bounds"]["zcdp"] *= 2
    forger.save()


def lower_a_threshold(forger: Forger) -> None:
    forger.measurement("values of city")["mechanism"]["threshold"] -= 5
    forger.save()


def lower_the_delta_of_a_threshold(forger: Forger) -> None:
    record = forger.measurement("values of city")
    record["mechanism"]["delta"] = record["delta"] = "0.000000000000000001"
    forger.save()


def enlarge_the_unit(forger: Forger) -> None:
    forger.certificate["privacy_unit"] |= {"id": "person", "max_rows": 10}
    forger.save()


def claim_that_rows_are_replaced(forger: Forger) -> None:
    forger.certificate["privacy_unit"]["neighbors"] = "replace"
    forger.save()


def certify_half_of_epsilon_consistently(forger: Forger) -> None:
    """A certificate of half the budget, whose every number follows from the others."""

    def halve(certificate: Certificate) -> Certificate:
        budget = Budget.for_guarantee(1, certificate.account.budget.delta, thresholds=True)
        share = budget.rho / certificate.account.budget.rho
        records = tuple(
            replace(record, cost=Gaussian.for_rho(record.cost.rho * share, record.cost.sensitivity_squared))
            if isinstance(record.cost, Gaussian)
            else replace(
                record,
                cost=dpsyn.accounting.PartitionSelection.for_delta(
                    record.cost.delta, Gaussian.for_rho(record.cost.rho * share, 1)
                ),
            )
            for record in certificate.account.measurements
        )
        return Certificate.from_account(
            replay(budget, records),
            certificate.privacy_unit,
            dataset=certificate.dataset,
            run=certificate.run,
            declared_public=certificate.declared_public,
            ledger_head=certificate.ledger_head,
            recipe=certificate.recipe,
            outcome=certificate.outcome,
        )

    before = {each["answer_hash"]: each["mechanism"] for each in forger.measurements}
    forger.certify_again(halve)
    after = {each["answer_hash"]: each["mechanism"] for each in forger.measurements}
    for marginal in forger.marginals:
        digest = dpsyn.accounting.hash_answer(forger.numbers(marginal["raw"]))
        assert before[digest]["sigma"] < after[digest]["sigma"]
        marginal |= {"std": after[digest]["sigma"], "lattice": after[digest]["lattice"]}
    scores = forger.manifest["releases"][0]["scores"][0]
    old, new = forger_noise(before, scores["std"]), None
    for digest, mechanism in before.items():
        if mechanism is old:
            new = after[digest]
    assert new is not None
    scores["std"] = new["sigma"]
    forger.put_numbers(scores["values"], forger.numbers(scores["values"]) * 2.0 ** (old["lattice"] - new["lattice"]))
    forger.replace_text("certificate.txt", "Guarantee: ε = 2,", "Guarantee: ε = 1,")
    forger.edit_json("deployment-card.json", lambda card: set_card(card, epsilon=1.0))
    forger.replace_text("croissant.json", "(ε, δ) = (2, ", "(ε, δ) = (1, ")
    forger.save()


def forger_noise(mechanisms: dict[str, dict[str, Any]], std: float) -> dict[str, Any]:
    return next(each for each in mechanisms.values() if each.get("sigma") == std)


def set_card(card: dict[str, Any], **parameters: float) -> None:
    card["deployment"]["privacy_loss"]["privacy_parameters"] |= parameters


# ── statements of the certificate ────────────────────────────────────────────────────────────────────────────


def hide_a_public_fact(forger: Forger) -> None:
    forger.certificate["declared_public"] = ["nothing was declared public"]
    forger.save()


def rename_the_dataset(forger: Forger) -> None:
    forger.certificate["dataset"] = "others"
    forger.save()


def hide_lost_answers(forger: Forger) -> None:
    forger.certificate["lost_answers"] = 3
    forger.save()


def add_an_entry_to_the_certificate(forger: Forger) -> None:
    forger.certificate["audited_by"] = "NIST"
    forger.save()


def rename_an_attribute(forger: Forger) -> None:
    text = json.dumps(forger.manifest, ensure_ascii=False)
    forger.manifest = json.loads(text.replace("floor", "salary"))
    forger.save()


def recode_consistently(forger: Forger) -> None:
    tables = [n for r in forger.manifest["recodings"] for c in r["columns"] for n in c["tables"] if n]
    name = next(name for name in tables if len(np.unique(forger.numbers(name))) > 1)
    codes = forger.numbers(name)
    forger.put_numbers(name, codes.max() - codes)
    forger.recompute_contents()
    forger.save()


def point_to_an_earlier_entry(forger: Forger) -> None:
    head = forger.certificate["ledger_head"]
    forger.certificate["ledger_head"] = {"sequence": head["sequence"] - 3, "hash": "ab" * 32}
    forger.save()


def drop_the_ledger_entry(forger: Forger) -> None:
    forger.certificate["ledger_head"] = None
    forger.save()


# ── other files of the folder ────────────────────────────────────────────────────────────────────────────────


def change_a_row(forger: Forger) -> None:
    text = (forger.folder / "synthetic.csv").read_text("utf-8").splitlines()
    (forger.folder / "synthetic.csv").write_text("\n".join([*text[:-1], text[1]]) + "\n", "utf-8")
    forger.rehash()


def exchange_two_rows_alone(forger: Forger) -> None:
    """The table has the same size, and its description another hash."""
    header, *rows = (forger.folder / "synthetic.csv").read_text("utf-8").splitlines()
    position = next(i for i in range(1, len(rows)) if rows[i] != rows[0])
    rows[0], rows[position] = rows[position], rows[0]
    (forger.folder / "synthetic.csv").write_text("\n".join([header, *rows]) + "\n", "utf-8")


def rename_a_column(forger: Forger) -> None:
    forger.replace_text("synthetic.csv", "floor", "salary")
    forger.rehash()


def change_the_certificate_file_alone(forger: Forger) -> None:
    change = lambda data: data["releases"][0]["certificate"]["guarantee"].update(epsilon="0.1")  # noqa: E731
    forger.edit_json("certificate.json", change)
    forger.rehash()


def change_the_certificates_text(forger: Forger) -> None:
    forger.replace_text("certificate.txt", "Guarantee: ε = 2,", "Guarantee: ε = 0.2,")
    forger.rehash()


def change_the_readme(forger: Forger) -> None:
    forger.replace_text("README.txt", "synthetic", "real")
    forger.rehash()


def change_epsilon_in_the_card(forger: Forger) -> None:
    forger.edit_json("deployment-card.json", lambda card: set_card(card, epsilon=0.1))
    forger.rehash()


def change_the_curator_in_the_card(forger: Forger) -> None:
    curators = [{"data_curator_name": "Somebody else", "data_curator_type": "Government"}]
    forger.edit_json("deployment-card.json", lambda card: card["deployment"]["basic"].update(data_curators=curators))
    forger.rehash()


def change_a_hash_in_croissant(forger: Forger) -> None:
    forger.rehash()
    forger.edit_json("croissant.json", lambda data: data["distribution"][0].update(sha256="ab" * 32))
    forger.write_signatures(
        describe_release(forger.folder).to_data(), read_signatures(forger.folder / "signatures.json").signatures
    )


def lower_epsilon_in_croissant(forger: Forger) -> None:
    forger.replace_text("croissant.json", "(ε, δ) = (2, ", "(ε, δ) = (0.2, ")
    forger.rehash()


def take_rows_from_another_folder(forger: Forger) -> None:
    """Croissant metadata about a file of the reader's computer."""
    outside = forger.folder.parent / "outside.csv"
    shutil.copy(forger.folder / "synthetic.csv", outside)
    forger.edit_json("croissant.json", lambda data: data["distribution"][0].update(contentUrl=str(outside)))
    forger.rehash()


def link_the_rows(forger: Forger) -> None:
    outside = forger.folder.parent / "outside.csv"
    shutil.move(forger.folder / "synthetic.csv", outside)
    os.symlink(outside, forger.folder / "synthetic.csv")


def add_a_file(forger: Forger) -> None:
    (forger.folder / "corrections.csv").write_text("floor,count\n1,2\n", "utf-8")


def add_a_file_to_the_statement(forger: Forger) -> None:
    add_a_file(forger)
    forger.rehash()


def add_a_hidden_file(forger: Forger) -> None:
    (forger.folder / ".hidden").mkdir()
    (forger.folder / ".hidden" / "rows.csv").write_text("1\n", "utf-8")


def remove_a_file(forger: Forger) -> None:
    (forger.folder / "README.txt").unlink()


def remove_the_certificate(forger: Forger) -> None:
    (forger.folder / "certificate.json").unlink()
    forger.rehash()


def remove_the_synopsis(forger: Forger) -> None:
    (forger.folder / "synopsis.dpsyn").unlink()


def remove_the_rows(forger: Forger) -> None:
    (forger.folder / "synthetic.csv").unlink()
    forger.rehash()


def replace_the_verifier(forger: Forger) -> None:
    (forger.folder / "verify_release.py").write_text("print('VERIFIED')\n", "utf-8")
    forger.rehash()


def link_a_file(forger: Forger) -> None:
    path = forger.folder / "README.txt"
    outside = forger.folder.parent / "outside.txt"
    shutil.move(path, outside)
    os.symlink(outside, path)


def add_a_member_to_the_synopsis(forger: Forger) -> None:
    with zipfile.ZipFile(forger.folder / "synopsis.dpsyn", "a") as file:
        file.writestr("more.npy", b"1")
    forger.rehash()


def name_a_member_outside(forger: Forger) -> None:
    """Somebody who unpacks the file by hand would write to another folder."""
    marginal = forger.marginals[0]
    name, outside = marginal["raw"], "../../outside.npy"
    marginal["raw"] = outside
    forger.arrays[outside] = forger.arrays.pop(name)
    forger.manifest["members"][outside] = forger.manifest["members"].pop(name)
    forger.save()


def repeat_a_member_of_the_synopsis(forger: Forger) -> None:
    with zipfile.ZipFile(forger.folder / "synopsis.dpsyn", "a") as file, pytest.warns(UserWarning, match="Duplicate"):
        file.writestr("manifest.json", json.dumps(forger.manifest))
    forger.rehash()


# ── signatures ───────────────────────────────────────────────────────────────────────────────────────────────


def remove_the_signatures(forger: Forger) -> None:
    (forger.folder / "signatures.json").unlink()


def sign_with_another_key(forger: Forger) -> None:
    change_a_count(forger)
    forger.sign_message(FORGERS_KEY, DOMAIN + canonical_json(describe_release(forger.folder).to_data()))


def put_another_key_into_the_folder(forger: Forger) -> None:
    (forger.folder / "steward.key.pub").write_text(f"{FORGERS_KEY.public_key}\n", "utf-8")
    sign_with_another_key(forger)


def name_the_owners_key_beside_a_signature_of_another(forger: Forger) -> None:
    statement = describe_release(forger.folder).to_data()
    signature = FORGERS_KEY.sign(DOMAIN + canonical_json(statement))
    forger.write_signatures(statement, (Signature(KEY.public_key, signature),))


def sign_for_another_purpose(forger: Forger) -> None:
    """The owner signed these very bytes, but for another purpose, such as an e-mail."""
    forger.sign_message(KEY, canonical_json(describe_release(forger.folder).to_data()))


def sign_under_another_version(forger: Forger) -> None:
    message = b"dpsyn release statement, version 2\n" + canonical_json(describe_release(forger.folder).to_data())
    forger.sign_message(KEY, message)


def sign_another_kind_of_statement(forger: Forger) -> None:
    statement = describe_release(forger.folder).to_data() | {"kind": "dpsyn draft"}
    forger.write_signatures(statement, (Signature(KEY.public_key, KEY.sign(DOMAIN + canonical_json(statement))),))


def sign_less(forger: Forger) -> None:
    """The owner signed a statement without the rows; the forger added them."""
    statement = describe_release(forger.folder).to_data()
    del statement["files"]["synthetic.csv"]
    forger.write_signatures(statement, (Signature(KEY.public_key, KEY.sign(DOMAIN + canonical_json(statement))),))


def add_the_order_to_a_signature(forger: Forger) -> None:
    signed = read_signatures(forger.folder / "signatures.json")
    raw = signed.signatures[0].signature
    larger = (int.from_bytes(raw[32:], "little") + GROUP_ORDER).to_bytes(32, "little")
    forger.write_signatures(signed.statement, (Signature(KEY.public_key, raw[:32] + larger),))


def flip_a_bit_of_a_signature(forger: Forger) -> None:
    signed = read_signatures(forger.folder / "signatures.json")
    raw = bytearray(signed.signatures[0].signature)
    raw[3] ^= 4
    forger.write_signatures(signed.statement, (Signature(KEY.public_key, bytes(raw)),))


def sign_with_a_point_of_small_order(forger: Forger) -> None:
    """With the neutral element as key, R = B and S = 1 would verify every message."""
    base = (4 * pow(5, -1, 2**255 - 19) % (2**255 - 19)).to_bytes(32, "little")
    change_a_count(forger)
    forger.edit_json(
        "signatures.json",
        lambda data: data.update(
            signatures=[
                {
                    "public_key": "dpsyn-ed25519:" + base64.urlsafe_b64encode((1).to_bytes(32, "little")).decode()[:-1],
                    "signature": base64.b64encode(base + (1).to_bytes(32, "little")).decode(),
                }
            ]
        ),
    )


def repeat_a_key_of_the_statement(forger: Forger) -> None:
    """Some readers take the first of two equal keys, others the last."""
    text = (forger.folder / "signatures.json").read_text("utf-8")
    (forger.folder / "signatures.json").write_text(
        text.replace('"kind": "dpsyn release"', '"kind": "dpsyn forgery",\n  "kind": "dpsyn release"'), "utf-8"
    )


def repeat_a_signature(forger: Forger) -> None:
    """One person looks like two."""
    signed = read_signatures(forger.folder / "signatures.json")
    forger.write_signatures(signed.statement, signed.signatures * 2)


def write_the_format_in_another_way(forger: Forger) -> None:
    forger.edit_json("signatures.json", lambda data: data.update(format=True))


def add_a_broken_signature(forger: Forger) -> None:
    signed = read_signatures(forger.folder / "signatures.json")
    forger.write_signatures(signed.statement, (*signed.signatures, Signature(FORGERS_KEY.public_key, bytes(64))))


BROKEN_SIGNATURES = [
    flip_a_bit_of_a_signature, add_the_order_to_a_signature, sign_with_a_point_of_small_order,
    repeat_a_key_of_the_statement, add_a_broken_signature, name_the_owners_key_beside_a_signature_of_another,
    sign_for_another_purpose, sign_under_another_version, repeat_a_signature, write_the_format_in_another_way,
]  # fmt: skip
"""Signatures that are by nobody."""

VISIBLE = [
    change_a_count_alone, exchange_two_marginals, flip_a_bit, change_a_score, remove_a_measurement,
    add_a_measurement, lower_a_noise_scale, lower_a_noise_scale_and_state_its_cost, lower_a_sensitivity,
    lower_the_sensitivity_of_scores, state_a_smaller_cost, lower_epsilon, lower_delta, lower_the_certified_epsilon,
    lower_the_bounds_of_epsilon, change_the_second_bound, lower_a_threshold, lower_the_delta_of_a_threshold,
    lower_one_bound_of_epsilon, exchange_two_rows_alone, enlarge_the_budget, lower_the_budget_below_what_was_spent,
    change_the_model_without_its_hash,
    enlarge_the_unit, claim_that_rows_are_replaced, rename_an_attribute, rename_a_column,
    change_the_certificate_file_alone, change_the_certificates_text, change_epsilon_in_the_card,
    change_a_hash_in_croissant, remove_the_certificate, remove_the_synopsis, remove_the_rows,
    add_a_member_to_the_synopsis, repeat_a_member_of_the_synopsis, charge_scores_as_one,
    charge_scores_as_something_else, charge_scores_as_less_sensitive, leave_out_all_numbers, state_a_truth_as_a_number,
    lower_epsilon_in_croissant, take_rows_from_another_folder, link_the_rows, name_a_member_outside,
]  # fmt: skip
"""What contradicts itself: refused by a check other than the signature, so without a key, too."""

OF_SIGNATURES = {"signature", "signed content"}
"""The checks that need a signature."""

SIGNED = [
    change_a_count, change_the_model, remove_a_measurement_that_left_no_number, put_numbers_without_noise,
    certify_half_of_epsilon_consistently, hide_a_public_fact, rename_the_dataset, hide_lost_answers,
    add_an_entry_to_the_certificate, recode_consistently, point_to_an_earlier_entry, drop_the_ledger_entry,
    change_a_row, change_the_readme, change_the_curator_in_the_card, add_a_file, add_a_file_to_the_statement,
    add_a_hidden_file, remove_a_file, replace_the_verifier, link_a_file, remove_the_signatures, sign_with_another_key,
    put_another_key_into_the_folder, sign_another_kind_of_statement, sign_less,
]  # fmt: skip
"""What only the signature shows."""


@pytest.mark.parametrize("forge", [*VISIBLE, *BROKEN_SIGNATURES, *SIGNED], ids=lambda forge: forge.__name__)
def test_a_forged_release_is_refused(forger: Forger, forge: Callable[[Forger], None]) -> None:
    forge(forger)

    ours, alone = failed_checks(forger.folder, KEY.public_key)

    assert ours
    assert alone
    if forge in VISIBLE:
        assert ours - OF_SIGNATURES
        assert alone - OF_SIGNATURES
    elif forge in BROKEN_SIGNATURES:
        assert (ours & OF_SIGNATURES, alone & OF_SIGNATURES) == ({"signature"}, {"signature"})


def test_a_flipped_bit_in_any_file_is_refused(genuine: Genuine, tmp_path: Path) -> None:
    """Also in the signatures themselves, and without a traceback, whatever the bit does to the syntax of a file."""
    rng = np.random.default_rng(7)
    folder = tmp_path / "forged"
    shutil.copytree(genuine.release, folder)
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        for position in rng.integers(0, 8 * len(content), 4 if path.suffix == ".json" else 1):
            changed = bytearray(content)
            changed[position // 8] ^= 1 << position % 8
            path.write_bytes(changed)

            assert all(failed_checks(folder, KEY.public_key)), (path.name, position)
        path.write_bytes(content)

    assert failed_checks(folder, KEY.public_key) == (set(), set())


@pytest.mark.parametrize("forge", [change_the_second_bound, rename_an_attribute], ids=lambda forge: forge.__name__)
def test_a_forged_synopsis_is_refused_without_the_other_files_of_its_folder(
    forger: Forger, forge: Callable[[Forger], None]
) -> None:
    forge(forger)

    assert verdicts(forger.folder / "synopsis.dpsyn") == ("refused", 1)


def test_changed_rows_are_refused_by_their_description_alone(forger: Forger) -> None:
    exchange_two_rows_alone(forger)
    for name in ("croissant.json", "signatures.json"):
        (forger.folder / name).unlink()

    assert verdicts(forger.folder) == ("refused", 1)


def test_a_folder_with_a_link_is_not_signed(forger: Forger) -> None:
    """What a link leads to is not in the folder, and may change."""
    (forger.folder / "signatures.json").unlink()
    os.symlink(forger.folder.parent, forger.folder / "more")

    with pytest.raises(SignatureError, match="is a link"):
        dpsyn.sign(forger.folder, KEY)


def test_a_list_of_attributes_that_is_not_that_of_the_schema_is_refused(forger: Forger) -> None:
    """Programs that cannot read the schema rely on it; the stand-alone verifier sees that its hash is another one."""
    forger.manifest["attributes"] = json.loads(json.dumps(forger.manifest["attributes"]).replace("floor", "salary"))
    forger.save()

    assert verdicts(forger.folder / "synopsis.dpsyn") == ("refused", 1)


def test_a_consistent_forgery_is_refused_because_of_its_signature_alone(forger: Forger) -> None:
    """Without a key nobody can know better, and the verdict says so."""
    certify_half_of_epsilon_consistently(forger)
    with_key = dpsyn.verify(forger.folder, KEY.public_key)
    (forger.folder / "signatures.json").unlink()

    assert [check.what for check in with_key.checks if not check.passed] == ["signature"]
    assert verdicts(forger.folder) == ("unsigned", 3)
    assert dpsyn.Synopsis.load(forger.folder).certificates[0] is not None


# ── what a release was made from ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def with_public_rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("public") / "release"
    made = dpsyn.measure(people(1), people_schema(), 0.5, public=people(2), public_because="the test made them up")
    made.write(f"{folder}/", 50, seed=1)
    return folder


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("extended") / "release"
    first = dpsyn.measure(visits(), schema(), 1.0, recipe="independent")
    dpsyn.measure(visits(), schema(), 0.5, recipe="independent", extend=first).write(f"{folder}/", 50, seed=1)
    return folder


def hide_the_public_rows(forger: Forger) -> None:
    del forger.certificate["recipe"]["public"]
    forger.certificate["declared_public"] = []


def hide_why_rows_are_public(forger: Forger) -> None:
    forger.certificate["declared_public"] = []


def name_other_public_rows(forger: Forger) -> None:
    forger.certificate["recipe"]["public"]["digest"] = "ab" * 32


@pytest.mark.parametrize("forge", [hide_the_public_rows, hide_why_rows_are_public, name_other_public_rows])
def test_public_rows_that_the_certificate_does_not_name_are_refused(
    forge: Callable[[Forger], None], with_public_rows: Path, tmp_path: Path
) -> None:
    forger = Forger.copying(with_public_rows, tmp_path / "forged")
    genuine = verdicts(forger.folder)
    forge(forger)
    forger.save()

    assert genuine == ("unsigned", 3)
    assert verdicts(forger.folder) == ("refused", 1)


def test_a_release_whose_earlier_part_was_left_out_is_refused(extended: Path, tmp_path: Path) -> None:
    """The rows follow from both, and only the cost of the second one is stated."""
    forger = Forger.copying(extended, tmp_path / "forged")
    genuine = verdicts(forger.folder)
    del forger.manifest["releases"][0]
    used = json.dumps({name: part for name, part in forger.manifest.items() if name != "members"})
    for name in [name for name in forger.arrays if f'"{name}"' not in used]:
        del forger.arrays[name], forger.manifest["members"][name]
    text = (forger.folder / "certificate.txt").read_text("utf-8").split("══ ")[2].partition("\n\n")[2]
    (forger.folder / "certificate.txt").write_text(text, "utf-8")
    forger.save()

    ours = [check.what for check in dpsyn.verify(forger.folder).checks if not check.passed]
    assert genuine == ("unsigned", 3)
    assert ours == ["provenance"]
    assert verdicts(forger.folder) == ("refused", 1)


# ── parts of other releases ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["signatures.json"], id="signatures"),
        pytest.param(["synopsis.dpsyn"], id="synopsis"),
        pytest.param(["synopsis.dpsyn", "certificate.json", "certificate.txt"], id="synopsis and certificates"),
        pytest.param(["synthetic.csv", "datapackage.json", "croissant.json"], id="rows and their descriptions"),
        pytest.param(["certificate.json", "certificate.txt", "deployment-card.json"], id="certificates and card"),
        pytest.param(["synopsis.dpsyn", "signatures.json"], id="synopsis and signatures"),
    ],
)
def test_parts_of_another_release_by_the_same_owner_are_refused(
    forger: Forger, genuine: Genuine, names: list[str]
) -> None:
    for name in names:
        shutil.copy(genuine.other / name, forger.folder / name)
    as_it_is = verdicts(forger.folder, KEY.public_key)
    forger.load()
    forger.rehash()

    assert as_it_is == ("refused", 1)
    assert verdicts(forger.folder, KEY.public_key) == ("refused", 1)


def test_a_synopsis_by_itself_is_refused_with_the_signatures_of_another(genuine: Genuine, tmp_path: Path) -> None:
    for name, origin in (("one.dpsyn", genuine.release), ("two.dpsyn", genuine.other)):
        shutil.copy(origin / "synopsis.dpsyn", tmp_path / name)
        dpsyn.sign(tmp_path / name, KEY)
    shutil.copy(tmp_path / "two.dpsyn.signatures.json", tmp_path / "one.dpsyn.signatures.json")

    assert verdicts(tmp_path / "one.dpsyn", KEY.public_key) == ("refused", 1)
    assert verdicts(tmp_path / "two.dpsyn", KEY.public_key) == ("verified", 0)


def test_a_test_release_that_claims_real_noise_is_refused(genuine: Genuine, tmp_path: Path) -> None:
    forger = Forger.copying(genuine.tested, tmp_path / "forged")
    honest = verdicts(forger.folder, KEY.public_key)
    forger.certificate["differentially_private"] = True
    forger.edit_json("certificate.json", lambda data: data.update(differentially_private=True))
    forger.save()

    assert honest == ("refused", 1)  # it is signed, but not private
    assert verdicts(forger.folder, KEY.public_key) == ("refused", 1)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"scale": 0.5}, id="scale"),
        pytest.param({"charged_epsilon": "0.001"}, id="charge"),
        pytest.param({"sensitivity": "0.1"}, id="sensitivity"),
    ],
)
def test_forged_laplace_noise_is_refused_without_a_key(genuine: Genuine, tmp_path: Path, change: Any) -> None:
    forger = Forger.copying(genuine.pure, tmp_path / "forged")
    marginal = forger.marginals[0]
    record = forger.record_of(marginal)
    cost = MeasurementRecord.from_data(record).cost
    assert isinstance(cost, Laplace)
    record["mechanism"] |= change
    marginal["std"] = Laplace(sensitivity=cost.sensitivity, scale=record["mechanism"]["scale"]).std
    forger.save()
    (forger.folder / "signatures.json").unlink()

    assert verdicts(forger.folder) == ("refused", 1)


def test_a_pure_release_that_states_less_epsilon_is_refused_without_a_key(genuine: Genuine, tmp_path: Path) -> None:
    forger = Forger.copying(genuine.pure, tmp_path / "forged")
    forger.certificate["guarantee"] |= {"epsilon": "0.5", "pure_epsilons": ["0.5"]}
    forger.save()
    (forger.folder / "signatures.json").unlink()

    assert verdicts(forger.folder) == ("refused", 1)


# ── ledgers ──────────────────────────────────────────────────────────────────────────────────────────────────


def forge_nothing(_: int, entry: list[Any]) -> list[Any]:
    return entry


def enlarge_a_recorded_budget(_: int, entry: list[Any]) -> list[Any]:
    return [*entry[:5], entry[5].replace('"epsilon": "2"', '"epsilon": "3"'), entry[6]]


def lower_a_recorded_cost(_: int, entry: list[Any]) -> list[Any]:
    return [*entry[:5], entry[5].replace('"threshold"', '"threshold_"'), entry[6]]


def drop_a_recorded_measurement(number: int, entry: list[Any]) -> list[Any] | None:
    return None if entry[4] == "measurement" and number % 7 == 0 else entry


def move_the_time(_: int, entry: list[Any]) -> list[Any]:
    return [entry[0], "2020-01-01T00:00:00.000+00:00", *entry[2:]]


@pytest.mark.parametrize(
    "change", [enlarge_a_recorded_budget, lower_a_recorded_cost, drop_a_recorded_measurement, move_the_time]
)
def test_a_ledger_that_was_rewritten_with_all_its_hashes_is_refused(
    genuine: Genuine, tmp_path: Path, change: Callable[[int, list[Any]], list[Any] | None]
) -> None:
    forged = tmp_path / "forged.db"
    shutil.copy(genuine.ledger, forged)
    rewrite_ledger(forged, forge_nothing)
    unchanged = verdicts(genuine.release, KEY.public_key, forged)
    rewrite_ledger_again(genuine.ledger, forged, change)

    assert unchanged == ("verified", 0)
    assert verdicts(genuine.release, KEY.public_key, forged) == ("refused", 1)


def rewrite_ledger_again(ledger: Path, forged: Path, change: Callable[[int, list[Any]], list[Any] | None]) -> None:
    shutil.copy(ledger, forged)
    rewrite_ledger(forged, change)


def test_a_ledger_with_an_entry_that_was_changed_is_refused(genuine: Genuine, tmp_path: Path) -> None:
    forged = tmp_path / "forged.db"
    shutil.copy(genuine.ledger, forged)
    with contextlib.closing(sqlite3.connect(forged)) as connection:
        connection.execute("DROP TRIGGER no_change")
        connection.execute("UPDATE entries SET time = '2020-01-01T00:00:00.000+00:00' WHERE sequence = 2")
        connection.commit()

    assert verdicts(genuine.release, KEY.public_key, forged) == ("refused", 1)


def test_an_older_copy_of_the_ledger_is_refused(genuine: Genuine) -> None:
    assert verdicts(genuine.release, KEY.public_key, genuine.earlier) == ("refused", 1)
    assert verdicts(genuine.other, KEY.public_key, genuine.earlier) == ("verified", 0)


def test_another_ledger_is_refused(genuine: Genuine, tmp_path: Path) -> None:
    dpsyn.Ledger.create(tmp_path / "new.db")

    assert verdicts(genuine.release, KEY.public_key, tmp_path / "new.db") == ("refused", 1)


def test_a_release_without_a_ledger_does_not_agree_with_one(genuine: Genuine) -> None:
    assert verdicts(genuine.pure, KEY.public_key, genuine.ledger) == ("refused", 1)


@pytest.mark.parametrize("forge", [hide_a_public_fact, rename_the_dataset, hide_lost_answers, drop_the_ledger_entry])
def test_a_changed_statement_is_refused_by_the_ledger_alone(
    forger: Forger, genuine: Genuine, forge: Callable[[Forger], None]
) -> None:
    """Also for a reader who has no key, but the ledger."""
    forge(forger)
    (forger.folder / "signatures.json").unlink()

    assert verdicts(forger.folder, None, genuine.ledger) == ("refused", 1)
    assert verdicts(genuine.release, None, genuine.ledger) == ("unsigned", 3)


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_reader_who_was_given_a_point_of_small_order_as_key_is_warned(forger: Forger) -> None:
    sign_with_a_point_of_small_order(forger)
    weak = "dpsyn-ed25519:" + base64.urlsafe_b64encode((1).to_bytes(32, "little")).decode()[:-1]

    with pytest.raises(SignatureError, match="none that a private key can have"):
        dpsyn.verify(forger.folder, weak)
    assert run_alone(forger.folder, "--key", weak) == 2


def test_the_key_of_another_owner_verifies_nothing(genuine: Genuine) -> None:
    assert verdicts(genuine.release, FORGERS_KEY.public_key) == ("refused", 1)


def test_a_key_that_lies_in_the_release_is_refused(forger: Forger, genuine: Genuine, tmp_path: Path) -> None:
    """A forger would have put it there, with a signature by it."""
    put_another_key_into_the_folder(forger)
    key = forger.folder / "steward.key.pub"
    os.symlink(forger.folder, tmp_path / "link")

    for path in (key, str(key), tmp_path / "link" / key.name):
        with pytest.raises(SignatureError, match="lies in the release itself"):
            dpsyn.verify(forger.folder, path)
        assert run_alone(forger.folder, "--key", path) == 2
    (tmp_path / "owner.pub").write_text(f"{KEY.public_key}\n", "utf-8")
    assert verdicts(genuine.release, tmp_path / "owner.pub") == ("verified", 0)


def test_a_folder_with_a_private_key_is_not_signed(forger: Forger) -> None:
    (forger.folder / "signatures.json").unlink()
    for passphrase in (None, "a secret of the test"):
        KEY.save(forger.folder / "steward.key", passphrase)

        with pytest.raises(SignatureError, match="is a private key, which would be published"):
            dpsyn.sign(forger.folder, KEY)
        (forger.folder / "steward.key").unlink()
        (forger.folder / "steward.key.pub").unlink()
