"""Overlapping marginals are measured as fewer and larger ones."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.marginals import Clique
from dpsyn.selection import kernels, merge_marginals
from tests.selection import naive

BINARY = {f"q{number:02}": 2 for number in range(16)}
MIXED = {"sex": 2, "smokes": 2, "age": 20, "town": 40, "ill": 2, "job": 15}


@given(
    st.lists(st.sampled_from([1, 2, 2, 2, 3, 4, 9]), min_size=3, max_size=6),
    st.integers(0, 10**6),
    st.sampled_from([8, 64, 10**4]),
    st.sampled_from([0, 1, 6]),
)
def test_no_step_is_left_that_lowers_the_error_as_it_is_defined(
    numbers: list[int], seed: int, most: int, powers: int
) -> None:
    sizes = {f"a{index}": size for index, size in enumerate(numbers)}
    rng = np.random.default_rng(seed)
    all_sets = [set_ for ways in (2, 3) for set_ in combinations(sizes, ways)]
    asked = [clique for clique in all_sets if rng.random() < rng.choice([0.3, 1.0])] or all_sets[:1]
    importance = {name: float(10 ** rng.uniform(-powers, powers)) for name in sizes}

    merged = merge_marginals(asked, sizes, importance=importance, max_cells=most)

    sets, result = ([frozenset(clique) for clique in cliques] for cliques in (asked, merged.cliques))
    before, after = (naive.shared_error(some, sets, sizes, importance) for some in (sets, result))
    assert merged.noise_factor == pytest.approx(after / before, rel=1e-9)
    assert merged.noise_factor <= 1 + 1e-9
    assert naive.error_after_best_step(result, sets, sizes, importance, most) >= after * (1 - 1e-6)
    assert all(any(one <= own for own in result) for one in sets)
    cells = {own: math.prod(sizes[name] for name in own) for own in {*sets, *result}}
    assert all(cells[own] <= most or cells[own] in [cells[one] for one in sets if one <= own] for own in result)


def test_merging_all_triples_of_sixteen_binary_attributes_lowers_the_noise_much() -> None:
    pairs, triples = (merge_marginals(list(combinations(BINARY, ways)), BINARY, max_cells=4096) for ways in (2, 3))

    assert pairs.noise_factor < 0.85
    assert triples.noise_factor < 0.75
    assert len(triples.cliques) < 100  # instead of 560


def test_attributes_of_many_values_stay_apart() -> None:
    asked = [("age", "town"), ("town", "job"), ("age", "job")]

    merged = merge_marginals(asked, MIXED, max_cells=10**6)

    assert set(merged.cliques) == set(asked)
    assert merged.noise_factor == 1


def test_attributes_that_must_not_be_measured_together_never_are() -> None:
    together = merge_marginals(list(combinations(["sex", "smokes", "ill"], 2)), MIXED, max_cells=4096)
    apart = merge_marginals(
        list(combinations(["sex", "smokes", "ill"], 2)),
        MIXED,
        max_cells=4096,
        is_allowed=lambda clique: len(clique) < 3,
    )

    assert together.cliques == [("sex", "smokes", "ill")]
    assert len(apart.cliques) == 3
    assert apart.noise_factor == 1


def test_a_refused_clique_is_checked_once_and_not_recomputed(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, look = Counter[str](), kernels.growth_changes
    asked = Counter[Clique]()

    def count_calls(*arguments: Any) -> None:
        looks["all"] += 1
        look(*arguments)

    def never(clique: Clique) -> bool:
        asked[clique] += 1
        return False

    monkeypatch.setattr(kernels, "growth_changes", count_calls)
    merged = merge_marginals(list(combinations(BINARY, 2)), BINARY, max_cells=4096, is_allowed=never)

    assert merged.noise_factor == 1
    assert looks.total() == 1
    assert set(asked.values()) == {3}  # three attributes, by the three pairs that they hold


def test_a_table_may_grow_past_one_that_is_refused() -> None:
    sizes = dict.fromkeys("abcd", 2)
    refused = set(combinations(sizes, 3)) - {("b", "c", "d")}

    merged = merge_marginals(
        list(combinations(sizes, 3)), sizes, max_cells=4096, is_allowed=lambda clique: clique not in refused
    )

    assert merged.cliques == [("a", "b", "c", "d")]


def test_no_marginals_and_one_marginal_stay_as_they_are() -> None:
    assert merge_marginals([], BINARY, max_cells=4096).cliques == []
    assert merge_marginals([("q00", "q03")], BINARY, max_cells=4096).cliques == [("q00", "q03")]
