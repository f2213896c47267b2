"""What was measured under one recoding says something about every coarser one."""

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


def counted(recoding: Recoding, clique: tuple[str, ...]) -> Marginal:
    places = [recoding.index_of(name) for name in clique]
    counts = np.zeros([recoding.sizes[place] for place in places], np.int64)
    np.add.at(counts, tuple(recoding.apply(ROWS)[:, place] for place in places), 1)
    return Marginal(clique, counts, 0, 2.0)


@given(st.permutations(["age", "sex", "job"]), st.integers(1, 3), st.integers(0, 1000))
def test_counts_carried_to_a_coarser_recoding_are_those_counted_under_it(
    names: list[str], length: int, seed: int
) -> None:
    clique = tuple(names[:length])
    groups = np.random.default_rng(seed).permutation([0, 1, 1, 0, 2])
    target = COARSE.merge("job", Grouping(groups))

    estimate = project_to_recoding(counted(FINE, clique), FINE, target)

    assert estimate is not None
    assert estimate.values.tolist() == counted(target, clique).counts.tolist()


def test_the_variance_grows_with_the_number_of_cells_added_up() -> None:
    estimate = project_to_recoding(counted(FINE, ("age",)), FINE, COARSE)

    assert estimate is not None
    assert estimate.variance == 2.0**2 * CODEC.fine_sizes[0] / CODEC.coarse_sizes[0]


def test_a_coarse_table_says_nothing_about_finer_codes() -> None:
    assert project_to_recoding(counted(COARSE, ("age", "sex")), COARSE, FINE) is None
    assert project_to_recoding(counted(COARSE, ("sex", "job")), COARSE, FINE) is not None


def test_a_table_of_an_attribute_that_was_joined_is_left_out() -> None:
    joint = COARSE.join("both", ["sex", "job"])

    assert project_to_recoding(counted(COARSE, ("sex",)), COARSE, joint) is None
    kept = project_to_recoding(counted(joint, ("both", "age")), joint, joint)
    assert kept is not None
    assert kept.values.tolist() == counted(joint, ("both", "age")).counts.tolist()
