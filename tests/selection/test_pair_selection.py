"""Which pairs are selected, and which of them are combined."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.selection import combine_pairs, select_pairs
from dpsyn.selection.pair_selection import _larger_cliques
from tests.selection import naive

PLENTY = 10**9


@given(
    st.lists(st.tuples(st.floats(-50, 500, width=32), st.integers(1, 400)), max_size=12),
    st.floats(0.001, 10),
)
def test_the_greedy_choice_is_that_of_its_definition(pairs: list[tuple[float, int]], rho: float) -> None:
    scores, cells = [score for score, _ in pairs], [size for _, size in pairs]

    chosen = select_pairs(np.array(scores), np.array(cells, np.int64), rho, max_total_cells=PLENTY).tolist()

    slow = naive.greedy(scores, cells, rho)
    assert naive.cost(chosen, scores, cells, rho) == pytest.approx(naive.cost(slow, scores, cells, rho), abs=1e-6)


def test_a_pair_is_selected_if_its_score_exceeds_its_noise() -> None:
    scores, cells = np.array([100.0, 100.0]), np.array([10, 10_000])
    price = 10 / math.sqrt(math.pi * 0.05)

    assert price < 100
    assert select_pairs(scores, cells, 0.05, max_total_cells=PLENTY).tolist() == [0]
    assert select_pairs(scores, cells, 0.05, sensitivity=100 / price + 1, max_total_cells=PLENTY).tolist() == []


def test_pairs_with_too_many_cells_are_left_out() -> None:
    scores, cells = np.array([900.0, 800.0, 700.0]), np.array([60, 60, 30])

    assert select_pairs(scores, cells, 1e6, max_total_cells=100).tolist() == [0, 2]


def test_no_candidates_give_no_selection() -> None:
    assert select_pairs(np.empty(0), np.empty(0, np.int64), 1.0, max_total_cells=PLENTY).tolist() == []


SIZES = dict(zip("abcdefg", (2, 3, 2, 4, 2, 5, 2), strict=True))
PAIRS = list(combinations(SIZES, 2))


@given(st.sets(st.sampled_from(PAIRS)), st.integers(4, 300))
def test_all_cliques_below_the_limit_are_found(pairs: set[tuple[str, ...]], limit: int) -> None:
    order = {name: index for index, name in enumerate(SIZES)}

    result = _larger_cliques(pairs, SIZES, order, limit, 10**6)

    assert set(result) == naive.cliques(list(pairs), SIZES, limit)
    assert [len(clique) for clique in result] == sorted((len(clique) for clique in result), reverse=True)


@given(st.sets(st.sampled_from(PAIRS)), st.integers(4, 300))
def test_combined_marginals_cover_every_pair_once(pairs: set[tuple[str, ...]], limit: int) -> None:
    marginals = combine_pairs(sorted(pairs), SIZES, max_cells=limit)

    for pair in pairs:
        assert any(set(pair) <= set(marginal) for marginal in marginals)
    for one, other in combinations(marginals, 2):
        assert not set(one) <= set(other)
        assert not set(other) <= set(one)
    larger = [marginal for marginal in marginals if len(marginal) > 2]
    for index, marginal in enumerate(larger):
        before = {name for earlier in larger[:index] for name in earlier}
        assert len(before & set(marginal)) <= 2
        assert math.prod(SIZES[name] for name in marginal) <= limit


def test_a_triangle_is_measured_as_one() -> None:
    marginals = combine_pairs([("b", "a"), ("a", "c"), ("b", "c"), ("c", "d")], SIZES)

    assert marginals == [("a", "b", "c"), ("c", "d")]


def test_a_dense_graph_of_many_attributes_is_combined_within_bounds() -> None:
    sizes = {f"x{index}": 2 for index in range(60)}
    pairs = list(combinations(sizes, 2))

    marginals = combine_pairs(pairs, sizes, max_cliques=20_000)

    assert all(any(set(pair) <= set(marginal) for marginal in marginals) for pair in pairs[:200])
    assert max(len(marginal) for marginal in marginals) >= 3
