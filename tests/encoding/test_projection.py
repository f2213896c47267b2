"""Marginals that were measured under one recoding are projected to coarser ones."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.encoding import Codec, Grouping, Recoding, project_to_recoding
from dpsyn.marginals import Marginal
from dpsyn.schema import Categorical, Integer, Schema

CODEC = Codec(
    Schema(
        attributes=(
            Integer(name="age", low=0, high=99, bins=(0, 18, 65)),
            Categorical(name="sex", values=("F", "M"), missing=True),
            Categorical(name="job", codes=5),
        )
    )
)
FINE, COARSE = Recoding.fine(CODEC), Recoding.coarse(CODEC)
ROWS = np.stack([np.random.default_rng(3).integers(0, size, 500) for size in CODEC.fine_sizes], axis=1).astype(np.uint8)


def exact_marginal(recoding: Recoding, clique: tuple[str, ...]) -> Marginal:
    axes = [recoding.index_of(name) for name in clique]
    counts = np.zeros([recoding.sizes[axis] for axis in axes], np.int64)
    np.add.at(counts, tuple(recoding.apply(ROWS)[:, axis] for axis in axes), 1)
    return Marginal(clique, counts, 0, 2.0)


@given(st.permutations(["age", "sex", "job"]), st.integers(1, 3), st.integers(0, 1000))
def test_projected_counts_are_those_counted_under_the_coarser_recoding(
    names: list[str], length: int, seed: int
) -> None:
    clique = tuple(names[:length])
    groups = np.random.default_rng(seed).permutation([0, 1, 1, 0, 2])
    target = COARSE.merge("job", Grouping(groups))

    estimate = project_to_recoding(exact_marginal(FINE, clique), FINE, target)

    assert estimate is not None
    assert estimate.values.tolist() == exact_marginal(target, clique).counts.tolist()


def test_the_variance_grows_with_the_number_of_cells_added_up() -> None:
    estimate = project_to_recoding(exact_marginal(FINE, ("age",)), FINE, COARSE)

    assert estimate is not None
    assert estimate.variance == 2.0**2 * CODEC.fine_sizes[0] / CODEC.coarse_sizes[0]


def test_a_coarse_marginal_cannot_be_projected_to_finer_codes() -> None:
    assert project_to_recoding(exact_marginal(COARSE, ("age", "sex")), COARSE, FINE) is None
    assert project_to_recoding(exact_marginal(COARSE, ("sex", "job")), COARSE, FINE) is not None


def test_a_marginal_of_an_attribute_that_was_joined_cannot_be_projected() -> None:
    joint = COARSE.join("both", ["sex", "job"])

    assert project_to_recoding(exact_marginal(COARSE, ("sex",)), COARSE, joint) is None
    kept = project_to_recoding(exact_marginal(joint, ("both", "age")), joint, joint)
    assert kept is not None
    assert kept.values.tolist() == exact_marginal(joint, ("both", "age")).counts.tolist()
