"""A small table of calls, and what is public about it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dpsyn.schema import Categorical, Integer, Schema

CALLS = Schema(
    attributes=(
        Integer(name="received", low=0, high=19),
        Integer(name="entered", low=0, high=19),
        Integer(name="arrived", low=0, high=19, missing=True),
        Categorical(name="unit", codes=4),
        Categorical(name="kind", codes=8),
        Categorical(name="month", codes=7),
        Categorical(name="address", codes=3000),
        Integer(name="wage", low=0, high=100_000),
    ),
    expected_size=20_000,
)


def calls(rows: int, seed: int = 0) -> pa.Table:
    """Rows whose dates lie close together, whose kind follows from the unit, and the month from the date."""
    rng = np.random.default_rng(seed)
    received = rng.integers(0, 20, rows)
    entered = np.where(rng.random(rows) < 0.95, received, (received + 1) % 20)
    gone = rng.random(rows) < 0.3
    unit = rng.integers(0, 4, rows)
    return pa.table(
        {
            "received": received,
            "entered": entered,
            "arrived": pa.array(received, mask=gone),
            "unit": unit,
            "kind": np.where(rng.random(rows) < 0.97, unit * 2, rng.integers(0, 8, rows)),
            "month": received // 3,
            "address": rng.integers(0, 300, rows),
            "wage": np.where(gone, 0, rng.integers(1, 50_000, rows)),
        }
    )


EVERYTHING = """
dpsyn_plan: 1
description: all that a plan can say
optional: [box]
threshold: 2.5
one_way: 0.2
transforms:
  - {transform: bucketize, of: wage, starts: [0, 1, 10000, 30000]}
  - {transform: recode, to: unit_kind, of: [unit, kind], share: 0.05}
  - {transform: availability, to: times, of: [entered, arrived], anchor: received}
  - {transform: mapping, of: month, from: received, share: 1/20}
  - {transform: random, of: [address], when: epsilon < 0.5}
  - {transform: compress, of: [address], threshold: 4, max_codes: 50, when: epsilon >= 0.5}
  - {transform: compress, rows: 10}
  - {transform: compress, of: [box]}
groups:
  when: {attributes: [received, times, month, unit_kind]}
  what: {attributes: [unit_kind, wage, address], join: unit_kind}
marginals:
  - {of: [received, unit], share: 1/10, mechanism: laplace}
  - {pairs: [times], with: [received, unit_kind], share: 0.2}
  - [wage, kind]
  - {of: [address, wage], when: epsilon >= 0.5}
selection: 0.1
weights: {wage: 3}
"""
