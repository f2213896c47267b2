from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn.constraints import adjust_rows_to_totals, rake_to_totals
from dpsyn.encoding import Codec, Recoding
from dpsyn.marginals import Estimate
from dpsyn.schema import Schema

COUNTED = """
dpsyn_schema: 1
attributes:
  district: {{kind: categorical, values: [north, south, west]}}
  sex: {{kind: categorical, values: [f, m]}}
  age: {{kind: integer, low: 0, high: 9}}
rules:
  - {{rule: total, where: {{district: north}}, count: {north}}}
  - {{rule: total, where: {{district: north, sex: f}}, count: {women}}}
  - {{rule: total, where: {{age: 0..4}}, count: {young}}}
"""


def no_draw(number: int, within: object) -> object:
    raise AssertionError("every stratum has rows")


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 400), st.integers(0, 400), st.integers(0, 400), st.integers(0, 1000))
def test_totals_are_met_exactly_and_no_row_is_lost(north: int, women: int, young: int, seed: int) -> None:
    schema = Schema.from_yaml(COUNTED.format(north=north, women=min(north, women), young=young))
    random = np.random.default_rng(seed)
    cells = np.stack([random.integers(0, size, 400) for size in Codec(schema).fine_sizes], axis=1)

    def draw(number: int, within: object) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        assert isinstance(within, dict)
        masks = [within.get(name, np.ones(size, np.bool_)) for name, size in Codec(schema).domain]
        return np.stack([np.full(number, np.flatnonzero(mask)[0]) for mask in masks], axis=1), {}

    moved, _ = adjust_rows_to_totals(schema, cells, {}, (0.0, 1.0), draw, random)

    assert moved.shape == cells.shape
    assert (moved[:, 0] == 0).sum() == north
    assert ((moved[:, 0] == 0) & (moved[:, 1] == 0)).sum() == min(north, women)
    assert (moved[:, 2] <= 4).sum() == young


def test_a_smaller_table_meets_totals_in_proportion() -> None:
    schema = Schema.from_yaml(COUNTED.format(north=100, women=50, young=60))
    random = np.random.default_rng(0)
    cells = np.stack([random.integers(0, size, 100) for size in Codec(schema).fine_sizes], axis=1)

    moved, _ = adjust_rows_to_totals(schema, cells, {}, (0.25, 0.75), no_draw, random)  # type: ignore[arg-type]

    assert (moved[:, 0] == 0).sum() == 50
    assert (moved[:, 2] <= 4).sum() == 30


def test_tables_are_raked_to_totals_of_whole_codes() -> None:
    schema = Schema.from_yaml(COUNTED.format(north=100, women=80, young=60))
    recoding = Recoding.coarse(Codec(schema))
    pair = Estimate(("sex", "district"), np.full((2, 3), 50.0), 1.0)
    single = Estimate(("age",), np.full(10, 30.0), 1.0)

    result, young = rake_to_totals([pair, single], schema, recoding, 300.0)

    assert abs(result.values[:, 0].sum() - 100) < 0.5
    assert abs(result.values[0, 0] - 80) < 0.5
    assert abs(result.values.sum() - 300) < 0.5
    assert abs(young.values[:5].sum() - 60) < 1e-9
