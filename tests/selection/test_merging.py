"""Marginals that hang together are measured as fewer and larger ones."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.selection import merge
from tests.selection import naive

BINARY = {f"q{number:02}": 2 for number in range(16)}
MIXED = {"sex": 2, "smokes": 2, "age": 20, "town": 40, "ill": 2, "job": 15}


@given(
    st.lists(st.sampled_from([2, 2, 2, 3, 4, 9]), min_size=3, max_size=7),
    st.integers(0, 10**6),
    st.sampled_from([8, 64, 10**4]),
    st.booleans(),
)
def test_no_step_is_left_that_lowers_the_error_as_it_is_defined(
    numbers: list[int], seed: int, most: int, weighted: bool
) -> None:
    sizes = {f"a{place}": size for place, size in enumerate(numbers)}
    rng = np.random.default_rng(seed)
    all_sets = [*combinations(sizes, 2), *combinations(sizes, 3)]
    asked = [clique for clique in all_sets if rng.random() < rng.choice([0.3, 1.0])] or all_sets[:1]
    importance = {name: float(rng.choice([1.0, 3.0])) if weighted else 1.0 for name in sizes}

    merged = merge(asked, sizes, importance=importance, most_cells=most)

    sets, result = ([frozenset(clique) for clique in cliques] for cliques in (asked, merged.cliques))
    alone, together = (naive.shared_error(some, sets, sizes, importance) for some in (sets, result))
    assert merged.noise == pytest.approx(together / alone, rel=1e-9)
    assert merged.noise <= 1
    assert naive.error_after_best_step(result, sets, sizes, importance, most) >= together * (1 - 1e-6)
    held = [set(clique) for clique in merged.cliques]
    assert all(any(set(clique) <= own for own in held) for clique in asked)
    assert all(math.prod(sizes[name] for name in own) <= most or own in map(set, asked) for own in held)


def test_all_triples_of_sixteen_yes_or_no_questions_get_by_with_much_less_noise() -> None:
    pairs, triples = (merge(list(combinations(BINARY, ways)), BINARY, most_cells=4096) for ways in (2, 3))

    assert pairs.noise < 0.85
    assert triples.noise < 0.75
    assert len(triples.cliques) < 100  # instead of 560


def test_attributes_of_many_values_stay_apart() -> None:
    asked = [("age", "town"), ("town", "job"), ("age", "job")]

    merged = merge(asked, MIXED, most_cells=10**6)

    assert set(merged.cliques) == set(asked)
    assert merged.noise == 1


def test_what_may_not_be_together_never_is() -> None:
    together = merge(list(combinations(["sex", "smokes", "ill"], 2)), MIXED, most_cells=4096)
    apart = merge(
        list(combinations(["sex", "smokes", "ill"], 2)), MIXED, most_cells=4096, allowed=lambda clique: len(clique) < 3
    )

    assert together.cliques == [("sex", "smokes", "ill")]
    assert len(apart.cliques) == 3
    assert apart.noise == 1


def test_nothing_becomes_nothing_and_one_stays_one() -> None:
    assert merge([], BINARY, most_cells=4096).cliques == []
    assert merge([("q00",)], BINARY, most_cells=4096).cliques == [("q00",)]
    assert merge([("q00", "q03")], BINARY, most_cells=4096).cliques == [("q00", "q03")]
