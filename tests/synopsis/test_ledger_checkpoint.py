"""A synopsis is compared with the ledger: its certificate, its numbers, and what gives them their meaning."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dpsyn
from dpsyn.demo import people_schema
from dpsyn.encoding import Grouping
from dpsyn.errors import SynopsisError
from dpsyn.inference import MeasurementRound, hash_contents
from dpsyn.schema import Boolean, Categorical, Real, Schema

SCHEMA = Schema(attributes=(Categorical(name="sex", values=("F", "M", "X")), Boolean(name="works")), dataset="people")
EVERY_KIND = """
dpsyn_schema: 1
attributes:
  age: {kind: integer, low: 0, high: 99, bins: [0, 18, 65], spikes: [50], missing: [n/a]}
  height: {kind: real, low: 0, high: 3, decimals: 2}
  sex: {kind: categorical, values: [F, M, 1], other: F}
  grade: {kind: ordinal, values: [1, 2, 3], missing: true}
  adult: {kind: boolean}
  born: {kind: datetime, start: 1990-01-01, end: 2020-12-31, resolution: month}
derive:
  adult: {from: age, mapping: {0..17: false, 18..99: true, missing: false}}
"""
TABLE = pa.table({"sex": ["F", "M", "M", "X"] * 100, "works": [True, False] * 200})


@pytest.fixture
def ledger(tmp_path: Path) -> dpsyn.Ledger:
    return dpsyn.Ledger.create(tmp_path / "l.db")


@pytest.fixture
def synopsis(ledger: dpsyn.Ledger) -> dpsyn.Synopsis:
    return dpsyn.measure(TABLE, SCHEMA, 2.0, recipe="privsyn", ledger=ledger)


def verify(ledger: dpsyn.Ledger, synopsis: dpsyn.Synopsis, folder: Path) -> dpsyn.LedgerVerification:
    synopsis.save(folder / "s.dpsyn")
    return ledger.verify([dpsyn.read_ledger_checkpoint(folder / "s.dpsyn")])


def test_an_honest_synopsis_agrees(ledger: dpsyn.Ledger, synopsis: dpsyn.Synopsis, tmp_path: Path) -> None:
    found = verify(ledger, synopsis, tmp_path)

    assert (found.faults, found.intact, found.not_compared) == ((), True, ())
    (certificate,) = synopsis.certificates
    assert certificate is not None
    assert len(certificate.outcome.contents_hash) == 64
    assert ledger.datasets()[0].runs[0].outcome == certificate.outcome
    assert ledger.datasets()[0].runs[0].declared_public == certificate.declared_public != ()


def test_python_finds_numbers_that_no_measurement_released(
    ledger: dpsyn.Ledger, synopsis: dpsyn.Synopsis, tmp_path: Path
) -> None:
    (release,) = synopsis.releases
    first, *others = release.rounds
    changed = replace(first.marginals[0], raw=first.marginals[0].raw + 1)
    rounds = (MeasurementRound(first.recoding, (changed, *first.marginals[1:])), *others)

    found = verify(ledger, dpsyn.Synopsis(SCHEMA, (replace(release, rounds=rounds),), synopsis.model), tmp_path)

    assert found.intact
    assert len(found.faults) == 1
    assert "s.dpsyn: " in found.faults[0]
    assert "is not an answer that the certificate records" in found.faults[0]


def test_numbers_cannot_be_given_another_meaning(
    ledger: dpsyn.Ledger, synopsis: dpsyn.Synopsis, tmp_path: Path
) -> None:
    (release,) = synopsis.releases
    swapped = SCHEMA.replace_attribute(Categorical(name="sex", values=("M", "F", "X")))
    first, *others = release.rounds
    merged = first.recoding.merge("sex", Grouping(np.array([1, 0, 2])))
    rounds = (MeasurementRound(merged, first.marginals), *others)
    forged = [
        dpsyn.Synopsis(swapped, synopsis.releases, synopsis.model),
        dpsyn.Synopsis(SCHEMA, (replace(release, rounds=rounds),), synopsis.model),
    ]

    for one in forged:
        found = verify(ledger, one, tmp_path)
        assert "a recoding or the name of a marginal is not the one that the certificate records" in found.faults[0]
        with pytest.raises(SynopsisError, match="changed after the release"):
            dpsyn.Synopsis.load(tmp_path / "s.dpsyn")


def test_an_extended_synopsis_keeps_the_meaning_of_both_releases(
    ledger: dpsyn.Ledger, synopsis: dpsyn.Synopsis, tmp_path: Path
) -> None:
    extended = dpsyn.measure(TABLE, SCHEMA, 1.0, recipe="independent", ledger=ledger, extend=synopsis)

    found = verify(ledger, extended, tmp_path)

    assert (found.faults, found.not_compared) == ((), ())
    assert len(dpsyn.Synopsis.load(tmp_path / "s.dpsyn").releases) == 2


def test_the_hash_of_a_schema_is_that_of_every_schema_that_equals_it() -> None:
    schemas = [Schema.from_yaml(EVERY_KIND), people_schema()]
    schemas.append(Schema(attributes=(Real(name="pay", low=0, high=10**6, decimals=1).with_cuts([15, 20]),)))

    for schema in schemas:
        again = Schema.from_yaml(schema.to_yaml())
        assert again.attributes == schema.attributes
        assert hash_contents(again, (), ()) == hash_contents(schema, (), ())
    assert len({hash_contents(schema, (), ()) for schema in schemas}) == 3
