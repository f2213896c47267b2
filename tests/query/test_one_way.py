"""One attribute over cells and bins: the least squares estimate, whatever was measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn.encoding import Codec
from dpsyn.query.observations import estimate_one_way_outputs
from dpsyn.query.query import make_output_axis
from dpsyn.schema import Categorical, Integer, Schema
from tests.query.noisy_synopses import make_release

AGE = Integer(name="age", low=0, high=11, bins=(0, 3, 4, 8))
SCHEMA = Schema(attributes=(AGE, Categorical(name="sex", codes=2)))
CODEC = Codec(SCHEMA)
BINS = np.array([[1.0 if bin_of == b else 0.0 for bin_of in AGE.bin_of_cell()] for b in range(4)])


@settings(max_examples=50)
@given(st.integers(0, 999), st.floats(0.5, 9), st.floats(0.5, 9), st.sets(st.integers(0, 11), min_size=1))
def test_cells_and_bins_are_combined_by_least_squares(seed: int, fine: float, coarse: float, chosen: set[int]) -> None:
    rng = np.random.default_rng(seed)
    cells, bins, pair = rng.normal(50, 9, 12), rng.normal(150, 9, 4), rng.normal(70, 9, (4, 2))
    releases = (
        make_release(SCHEMA, {("age",): cells}, fine, None),
        make_release(SCHEMA, {("age",): bins}, coarse, None),
        make_release(SCHEMA, {("age", "sex"): pair}, 2.0, None),
    )
    selected = np.isin(np.arange(12), list(chosen))
    outputs = make_output_axis(AGE, selected, listed=True)

    outcome = estimate_one_way_outputs(CODEC, releases, "age", outputs)

    matrix = np.concatenate([np.eye(12) / fine, BINS / coarse, BINS / np.sqrt(8)])
    inverse = np.linalg.pinv(matrix)
    estimate = inverse @ np.concatenate([cells / fine, bins / coarse, pair.sum(axis=1) / np.sqrt(8)])
    weights = np.array([[float(outputs.output_of[cell] == o) for cell in range(12)] for o in range(outputs.size)])
    assert outcome is not None
    assert outcome.counts == pytest.approx(weights @ estimate, abs=0.01)  # marginals are stored on a lattice
    assert outcome.stds == pytest.approx(np.sqrt(np.diag(weights @ inverse @ inverse.T @ weights.T)))


def test_bins_alone_answer_whole_bins_only() -> None:
    releases = (make_release(SCHEMA, {("age",): np.array([5.0, 6.0, 7.0, 8.0])}, 2.0, None),)
    whole = make_output_axis(AGE, AGE.select("3..7"), listed=False)
    part = make_output_axis(AGE, AGE.select("3..6"), listed=False)

    outcome = estimate_one_way_outputs(CODEC, releases, "age", whole)

    assert outcome is not None
    assert (float(outcome.counts[0]), float(outcome.stds[0])) == pytest.approx((13.0, np.sqrt(8)))
    assert estimate_one_way_outputs(CODEC, releases, "age", part) is None


def test_cells_alone_answer_any_range() -> None:
    releases = (make_release(SCHEMA, {("age",): np.arange(12.0)}, 2.0, None),)

    outcome = estimate_one_way_outputs(CODEC, releases, "age", make_output_axis(AGE, AGE.select("2..4"), listed=False))

    assert outcome is not None
    assert (float(outcome.counts[0]), float(outcome.stds[0])) == pytest.approx((9.0, np.sqrt(12)))


def test_an_attribute_of_twenty_thousand_values_is_listed() -> None:
    schema = Schema(attributes=(Categorical(name="a", codes=20_000),))
    releases = (make_release(schema, {("a",): np.arange(20_000.0)}, 2.0, None),)

    outcome = estimate_one_way_outputs(Codec(schema), releases, "a", make_output_axis(schema["a"], None, listed=True))

    assert outcome is not None
    assert outcome.counts == pytest.approx(np.arange(20_000.0))
    assert outcome.stds == pytest.approx(2.0)


def test_an_attribute_without_marginals_has_no_estimate() -> None:
    releases = (make_release(SCHEMA, {("sex",): np.ones(2)}, 2.0, None),)

    assert estimate_one_way_outputs(CODEC, releases, "age", make_output_axis(AGE, None, listed=True)) is None
