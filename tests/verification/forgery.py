"""A forger at work: changes a published release and recomputes every hash that can be recomputed without a key."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import Certificate, MeasurementRecord, hash_answer
from dpsyn.accounting.hash_chain import hash_entry
from dpsyn.inference import hash_contents
from dpsyn.signatures import Signature, SignedStatement, SigningKey, describe_release, read_signatures
from dpsyn.synopsis.serialization import archive, synopsis_file

GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493


@dataclass
class Forger:
    """A copy of a release folder that can be changed; ``save`` makes it as consistent as it can be."""

    folder: Path
    manifest: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def copying(cls, genuine: Path, folder: Path) -> Forger:
        shutil.copytree(genuine, folder)
        forger = cls(folder)
        forger.load()
        return forger

    def load(self) -> None:
        with zipfile.ZipFile(self.folder / "synopsis.dpsyn") as file:
            self.manifest = json.loads(file.read("manifest.json"))
            self.arrays = {name: file.read(name) for name in file.namelist() if name != "manifest.json"}

    # ── parts of the release ─────────────────────────────────────────────────────────────────────────────────

    @property
    def certificate(self) -> dict[str, Any]:
        certificate: dict[str, Any] = self.manifest["releases"][0]["certificate"]
        return certificate

    @property
    def measurements(self) -> list[dict[str, Any]]:
        measurements: list[dict[str, Any]] = self.certificate["measurements"]
        return measurements

    def measurement(self, text: str) -> dict[str, Any]:
        """The first measurement whose purpose contains a text."""
        return next(each for each in self.measurements if text in each["purpose"])

    @property
    def marginals(self) -> list[dict[str, Any]]:
        return [m for each in self.manifest["releases"][0]["rounds"] for m in each["marginals"]]

    def record_of(self, marginal: dict[str, Any]) -> dict[str, Any]:
        digest = hash_answer(self.numbers(marginal["raw"]))
        return next(each for each in self.measurements if each["answer_hash"] == digest)

    def numbers(self, name: str) -> NDArray[Any]:
        array: NDArray[Any] = np.load(io.BytesIO(self.arrays[name]), allow_pickle=False)
        return array.copy()

    def put_numbers(self, name: str, numbers: NDArray[Any]) -> None:
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, numbers, version=(1, 0), allow_pickle=False)
        self.arrays[name] = buffer.getvalue()
        self.manifest["members"][name] = hashlib.sha256(buffer.getvalue()).hexdigest()

    def edit_json(self, name: str, change: Callable[[Any], None]) -> None:
        data = json.loads((self.folder / name).read_text("utf-8"))
        change(data)
        (self.folder / name).write_text(json.dumps(data, ensure_ascii=False, indent=2) + "\n", "utf-8")

    def replace_text(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text("utf-8")
        assert old in text
        (self.folder / name).write_text(text.replace(old, new), "utf-8")

    # ── what a forger recomputes ─────────────────────────────────────────────────────────────────────────────

    def recompute_cost(self, record: dict[str, Any]) -> None:
        """State the cost that follows from a changed mechanism."""
        from dpsyn.accounting.costs import cost_from_data

        answer = record["answer_hash"]
        data = MeasurementRecord(purpose=record["purpose"], cost=cost_from_data(record["mechanism"])).to_data()
        record |= data | {"answer_hash": answer}

    def recompute_bounds(self) -> None:
        """State the ε that follow from changed measurements, whatever the guarantee."""
        generous = copy.deepcopy(self.certificate)
        from dpsyn.accounting.budget import Account, Budget
        from dpsyn.accounting.composition import Composition

        records = tuple(MeasurementRecord.from_data(each) for each in generous["measurements"])
        budget = Budget.from_data(generous["guarantee"])
        total = Composition.of([record.cost for record in records])
        bounds = Account(budget=budget, measurements=records, total=total).total.epsilon_bounds(
            budget.epsilon, budget.delta
        )
        self.certificate["epsilon_bounds"] = bounds.to_data()
        self.certificate["certified_epsilon"] = float(bounds.epsilon)

    def recompute_contents(self) -> None:
        """State the hash of changed attributes and recodings."""
        for release in self.manifest["releases"]:
            release["certificate"]["contents_hash"] = ""
        self.save(sign=False)
        loaded = synopsis_file.load_synopsis(self.folder / "synopsis.dpsyn")
        for entry, release in zip(self.manifest["releases"], loaded.releases, strict=True):
            entry["certificate"]["contents_hash"] = hash_contents(loaded.schema, release.rounds, release.scores)

    def save(self, *, sign: bool = True) -> None:
        """Write the synopsis, and everything that repeats or hashes parts of it."""
        content = json.dumps(self.manifest, ensure_ascii=False, indent=1).encode()
        archive.write_archive(self.folder / "synopsis.dpsyn", content, self.arrays)
        releases = [{"source": e["source"], "certificate": e["certificate"]} for e in self.manifest["releases"]]
        if (self.folder / "certificate.json").exists():
            self.edit_json("certificate.json", lambda data: data.update(releases=releases))
        if sign:
            self.rehash()

    def rehash(self) -> None:
        """Recompute the hashes of the rows and the statement; the signature stays, for there is no key to make one."""
        rows = self.folder / "synthetic.csv"
        if rows.exists():
            digest, size = hashlib.sha256(rows.read_bytes()).hexdigest(), rows.stat().st_size
            for name, change in {
                "datapackage.json": lambda data: data["resources"][0].update(hash=f"sha256:{digest}", bytes=size),
                "croissant.json": lambda data: data["distribution"][0].update(sha256=digest),
            }.items():
                if (self.folder / name).exists():
                    self.edit_json(name, change)
        if (self.folder / "signatures.json").exists():
            signed = read_signatures(self.folder / "signatures.json")
            self.write_signatures(describe_release(self.folder).to_data(), signed.signatures)

    def write_signatures(self, statement: dict[str, Any], signatures: tuple[Signature, ...]) -> None:
        data = SignedStatement(statement, signatures).to_data()
        (self.folder / "signatures.json").write_text(json.dumps(data, indent=1), "utf-8")

    def sign_message(self, key: SigningKey, message: bytes) -> None:
        """Put the key's signature of another message in place of that of the statement."""
        statement = describe_release(self.folder).to_data()
        self.write_signatures(statement, (Signature(key.public_key, key.sign(message)),))

    # ── the whole certificate anew ───────────────────────────────────────────────────────────────────────────

    def certify_again(self, change: Callable[[Certificate], Certificate]) -> None:
        """Replace the certificate by a changed one, which is valid by itself."""
        self.manifest["releases"][0]["certificate"] = change(Certificate.from_data(self.certificate)).to_data()


def rewrite_ledger(path: Path, change: Callable[[int, list[Any]], list[Any] | None]) -> None:
    """Change entries of a ledger, or remove them, and chain all hashes anew."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("DROP TRIGGER no_change")
        connection.execute("DROP TRIGGER no_removal")
        rows = connection.execute("SELECT * FROM entries ORDER BY sequence").fetchall()
        connection.execute("DELETE FROM entries")
        previous, number = "0" * 64, 0
        for row in rows:
            changed = change(row[0], list(row[:7]))
            if changed is None:
                continue
            number += 1
            fields = [number, *changed[1:6], previous]
            previous = hash_entry(fields)
            connection.execute("INSERT INTO entries VALUES (?,?,?,?,?,?,?,?)", [*fields, previous])
        connection.commit()
    finally:
        connection.close()
