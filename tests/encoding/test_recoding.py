"""A recoding is a table look-up, row by row, however it was composed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpsyn.encoding import Codec, Grouping, Recoding, uniform_weights
from dpsyn.errors import InternalError, SchemaError
from dpsyn.schema import Categorical, Integer, Open, Schema
from tests import strategies

SCHEMA = Schema(
    attributes=(
        Integer(name="age", low=0, high=99, bins=(0, 18, 65)),
        Categorical(name="sex", values=("F", "M"), missing=True),
        Categorical(name="job", codes=5),
    )
)
CODEC = Codec(SCHEMA)
FINE = np.stack([np.random.default_rng(3).integers(0, size, 200) for size in CODEC.fine_sizes], axis=1).astype(np.uint8)


def grouping(size: int, groups: int, seed: int) -> Grouping:
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(groups), rng.integers(0, groups, size - groups)])
    return Grouping(rng.permutation(labels))


def test_the_fine_recoding_changes_nothing() -> None:
    recoding = Recoding.fine(CODEC)

    assert recoding.apply(FINE).tolist() == FINE.tolist()
    assert recoding.sizes == CODEC.fine_sizes


def test_the_coarse_recoding_gives_bins() -> None:
    recoding = Recoding.coarse(CODEC)

    groups = [grouping.group_of for grouping in CODEC.groupings]
    expected = [[group[code] for group, code in zip(groups, row, strict=True)] for row in FINE]
    assert recoding.apply(FINE).tolist() == expected
    assert recoding.apply(FINE).dtype == np.uint8
    assert recoding.sizes == (3, 3, 5)


@given(st.integers(1, 3), st.integers(1, 15), st.integers(0, 1000), st.booleans())
def test_merging_and_joining_in_any_order_give_the_codes_computed_by_hand(
    few: int, joint: int, seed: int, merge_first: bool
) -> None:
    recoding = Recoding.coarse(CODEC)
    codes = Recoding.coarse(CODEC).apply(FINE).astype(np.int64)
    ages = grouping(3, few, seed)
    if merge_first:
        recoding, codes[:, 0] = recoding.merge("age", ages), ages.merge(codes[:, 0])
    size = recoding.sizes[0] * 5
    pairs = grouping(size, min(joint, size), seed + 1)

    recoding = recoding.join("work", ["age", "job"]).merge("work", pairs)

    assert recoding.names == ("work", "sex")
    assert recoding.apply(FINE)[:, 0].tolist() == pairs.merge(codes[:, 0] * 5 + codes[:, 2]).tolist()
    assert recoding.sizes == (pairs.size, 3)
    again = recoding.join("all", ["sex", "work"])
    assert again.apply(FINE)[:, 0].tolist() == (codes[:, 1] * pairs.size + recoding.apply(FINE)[:, 0]).tolist()


def test_an_unknown_attribute_is_named() -> None:
    with pytest.raises(SchemaError, match="no attribute 'wage' to measure; did you mean age"):
        Recoding.fine(CODEC).merge("wage", Grouping(np.array([0])))


def test_a_grouping_of_another_size_is_refused() -> None:
    with pytest.raises(InternalError, match="3 codes"):
        Recoding.fine(CODEC).merge("sex", Grouping(np.array([0, 1])))


def test_a_joint_attribute_that_does_not_fit_in_memory_is_refused() -> None:
    wide = Codec(Schema(attributes=tuple(Categorical(name=f"a{i}", codes=1000) for i in range(3))))

    with pytest.raises(SchemaError, match="1,000,000,000 combinations"):
        Recoding.fine(wide).join("all", ["a0", "a1", "a2"])


@given(st.integers(0, 10**6))
def test_a_recoding_maps_expanded_codes_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    coarse = Recoding.coarse(CODEC)
    joint = coarse.join("both", ["sex", "job"])
    recoding = joint.merge("both", grouping(joint.sizes[1], 4, seed))
    codes = recoding.apply(FINE)
    weights = [rng.random(size) * (rng.random(size) < 0.5) for size in CODEC.fine_sizes]

    fine = recoding.expand(codes, weights, rng)

    assert recoding.apply(fine).tolist() == codes.tolist()


def test_expanding_samples_by_the_weights() -> None:
    recoding = Recoding.coarse(CODEC)
    weights = [np.ones(size) for size in CODEC.fine_sizes]
    weights[0] = np.zeros(CODEC.fine_sizes[0])
    weights[0][[7, 30, 80]] = 1.0

    fine = recoding.expand(recoding.apply(FINE), weights, np.random.default_rng(0))

    assert set(fine[:, 0].tolist()) <= {7, 30, 80}


@settings(max_examples=50)
@given(strategies.schemas(), st.integers(0, 2**32))
def test_bins_of_any_schema_survive_expanding(schema: Schema, seed: int) -> None:
    assume(not any(isinstance(attribute, Open) for attribute in schema.measured_attributes))
    codec = Codec(schema)
    recoding, rng = Recoding.coarse(codec), np.random.default_rng(seed)
    bins = np.stack([rng.integers(0, size, 20) for size in codec.coarse_sizes], axis=1)

    fine = recoding.expand(bins, [uniform_weights(attribute) for attribute in codec.attributes], rng)

    assert recoding.apply(fine).tolist() == bins.tolist()


def test_values_inside_a_bin_follow_the_fine_histogram() -> None:
    codec = Codec(Schema(attributes=(Integer(name="a", low=0, high=99, bins=(0, 50)),)))
    histogram = np.zeros(100)
    histogram[[7, 60, 70]] = [5, 1, 3]

    bins = np.repeat([[0], [1]], 4000, axis=0)
    fine = Recoding.coarse(codec).expand(bins, [histogram], np.random.default_rng(0))

    assert set(fine[:4000, 0]) == {7}
    fraction = np.mean(fine[4000:, 0] == 70)
    assert abs(fraction - 0.75) < 0.04  # six standard deviations: a false alarm in 10⁹ runs


def test_a_bin_whose_histogram_is_empty_is_sampled_uniformly() -> None:
    codec = Codec(Schema(attributes=(Integer(name="a", low=0, high=9, bins=(0, 5)),)))
    histogram = np.array([0.0, 0, 0, 0, 0, 1, 1, 1, 1, 1])

    fine = Recoding.coarse(codec).expand(np.zeros((5000, 1), np.uint8), [histogram], np.random.default_rng(0))

    counts = np.bincount(fine[:, 0], minlength=10)
    assert counts[5:].sum() == 0
    assert np.all(abs(counts[:5] - 1000) < 180)  # six standard deviations


def test_a_spike_survives_merging_and_expanding() -> None:
    codec = Codec(Schema(attributes=(Integer(name="a", low=0, high=999_998, spikes=(999_998,)),)))
    codes = codec.encode(pa.table({"a": [0] * 300 + [999_998] * 500 + [1234] * 200}))
    histogram = np.bincount(codes[:, 0], minlength=codec.fine_sizes[0]).astype(np.float64)
    recoding = Recoding.coarse(codec)

    fine = recoding.expand(recoding.apply(codes), [histogram], np.random.default_rng(0))

    decoded = codec.decode(fine, np.random.default_rng(0))["a"].to_pylist()
    assert decoded.count(999_998) == 500
    assert abs(decoded.count(0) - 300) < 90
