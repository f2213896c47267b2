"""A recoding is table look-up, row by row, however it was composed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.errors import InternalError, SchemaError
from dpsyn.records import Codec, Grouping
from dpsyn.schema import Categorical, Integer, Schema
from dpsyn.transforms import Recoding

SCHEMA = Schema(
    attributes=(
        Integer(name="age", low=0, high=99, bins=(0, 18, 65)),
        Categorical(name="sex", values=("F", "M"), missing=True),
        Categorical(name="job", codes=5),
    )
)
CODEC = Codec(SCHEMA)
FINE = np.stack([np.random.default_rng(3).integers(0, size, 200) for size in CODEC.cells], axis=1).astype(np.uint8)


def grouping(size: int, groups: int, seed: int) -> Grouping:
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(groups), rng.integers(0, groups, size - groups)])
    return Grouping(rng.permutation(labels))


def test_the_fine_recoding_changes_nothing() -> None:
    recoding = Recoding.fine(CODEC)

    assert recoding.apply(FINE).tolist() == FINE.tolist()
    assert recoding.sizes == CODEC.cells


def test_the_coarse_recoding_gives_bins() -> None:
    recoding = Recoding.coarse(CODEC)

    assert recoding.apply(FINE).tolist() == CODEC.coarsen(FINE).tolist()
    assert recoding.sizes == (3, 3, 5)


@given(st.integers(1, 3), st.integers(1, 15), st.integers(0, 1000), st.booleans())
def test_merging_and_joining_in_any_order_is_the_same_as_doing_it_by_hand(
    few: int, joint: int, seed: int, merge_first: bool
) -> None:
    recoding = Recoding.coarse(CODEC)
    codes = CODEC.coarsen(FINE).astype(np.int64)
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
    with pytest.raises(SchemaError, match="no attribute 'wage' to measure; there are age, sex, job"):
        Recoding.fine(CODEC).merge("wage", Grouping(np.array([0])))


def test_a_grouping_of_another_size_is_refused() -> None:
    with pytest.raises(InternalError, match="3 codes"):
        Recoding.fine(CODEC).merge("sex", Grouping(np.array([0, 1])))


def test_a_joint_attribute_that_does_not_fit_in_memory_is_refused() -> None:
    wide = Codec(Schema(attributes=tuple(Categorical(name=f"a{i}", codes=1000) for i in range(3))))

    with pytest.raises(SchemaError, match="1,000,000,000 combinations"):
        Recoding.fine(wide).join("all", ["a0", "a1", "a2"])


@given(st.integers(0, 10**6))
def test_expanding_undoes_any_recoding_up_to_the_draw(seed: int) -> None:
    rng = np.random.default_rng(seed)
    coarse = Recoding.coarse(CODEC)
    joint = coarse.join("both", ["sex", "job"])
    recoding = joint.merge("both", grouping(joint.sizes[1], 4, seed))
    codes = recoding.apply(FINE)
    weights = [rng.random(size) * (rng.random(size) < 0.5) for size in CODEC.cells]

    fine = recoding.expand(codes, weights, rng)

    assert recoding.apply(fine).tolist() == codes.tolist()


def test_expanding_draws_by_the_weights() -> None:
    recoding = Recoding.coarse(CODEC)
    weights = [np.ones(size) for size in CODEC.cells]
    weights[0] = np.zeros(CODEC.cells[0])
    weights[0][[7, 30, 80]] = 1.0

    fine = recoding.expand(recoding.apply(FINE), weights, np.random.default_rng(0))

    assert set(fine[:, 0].tolist()) <= {7, 30, 80}
