"""Bases cover the items and pairs they were made from, and merging lowers the variance that is predicted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.selection import build_basis_sets
from dpsyn.selection.basis_sets import _maximal_cliques, _precisions

Pairs = Sequence[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn, most: int = 14) -> tuple[int, list[tuple[int, int]]]:
    number = draw(st.integers(1, most))
    every = list(combinations(range(number), 2))
    return number, draw(st.lists(st.sampled_from(every), unique=True)) if every else []


def variance(bases: Sequence[Iterable[int]], number: int, pairs: Pairs) -> float:
    """w²·2^(|B|−|X|), averaged over items and pairs, several bases combined by inverse variance."""
    wanted = [{item} for item in range(number)] + [{*pair} for pair in pairs]
    sets = [{*basis} for basis in bases]
    precisions = [sum(2.0 ** (len(q) - len(basis)) for basis in sets if q <= basis) for q in wanted]
    return len(sets) ** 2 * sum(1 / precision for precision in precisions) / len(wanted)


def letters(*itemsets: str) -> tuple[list[int], list[tuple[int, int]]]:
    items = sorted({ord(letter) for itemset in itemsets for letter in itemset})
    pairs = {tuple(sorted((ord(a), ord(b)))) for itemset in itemsets for a, b in combinations(itemset, 2)}
    return items, sorted((a, b) for a, b in pairs)


def test_five_maximal_itemsets_need_two_bases() -> None:
    result = build_basis_sets(*letters("abc", "abd", "abe", "cde", "abgh"))

    assert sorted("".join(map(chr, basis)) for basis in result) == ["abcde", "abgh"]


@given(graphs(), st.integers(2, 12))
def test_every_item_and_every_pair_is_in_a_basis_of_allowed_length(graph: tuple[int, Pairs], longest: int) -> None:
    number, pairs = graph

    result = build_basis_sets(range(number), pairs, max_items=longest)

    assert {item for basis in result for item in basis} == {*range(number)}
    assert all(any({*pair} <= {*basis} for basis in result) for pair in pairs)
    assert all(len(basis) <= longest for basis in result)
    assert not any({*one} <= {*two} for one, two in combinations(result, 2))


@given(graphs(most=9))
def test_no_two_bases_could_be_merged_for_the_better(graph: tuple[int, Pairs]) -> None:
    number, pairs = graph

    result = build_basis_sets(range(number), pairs)

    reached = variance(result, number, pairs)
    for one, two in combinations(result, 2):
        union = {*one, *two}
        merged = [basis for basis in result if basis not in (one, two)] + [tuple(union)]
        assert reached <= variance(merged, number, pairs) * (1 + 1e-9)


@given(graphs(most=9))
def test_merging_never_raises_the_variance_of_cliques(graph: tuple[int, Pairs]) -> None:
    number, pairs = graph
    near: list[set[int]] = [{a + b - i for a, b in pairs if i in (a, b)} for i in range(number)]
    cliques = list(_maximal_cliques(near))
    alone = [item for item in range(number) if not near[item]]
    groups = [tuple(alone[start : start + 3]) for start in range(0, len(alone), 3)]

    result = build_basis_sets(range(number), pairs)

    if len(cliques) <= len(pairs):
        assert variance(result, number, pairs) <= variance([*cliques, *groups], number, pairs) * (1 + 1e-9)


@given(graphs(most=9))
def test_maximal_cliques_are_those_found_by_trying_all_sets(graph: tuple[int, Pairs]) -> None:
    number, pairs = graph
    near: list[set[int]] = [{a + b - i for a, b in pairs if i in (a, b)} for i in range(number)]
    sets = [s for size in range(2, number + 1) for s in combinations(range(number), size)]
    cliques = [s for s in sets if all(b in near[a] for a, b in combinations(s, 2))]
    maximal = [s for s in cliques if not any({*s} < {*other} for other in cliques)]

    result = list(_maximal_cliques(near))

    assert sorted(result) == sorted(maximal)


def test_precisions_are_sums_over_the_bases_that_hold_an_itemset() -> None:
    members = np.array([[True, True, False], [True, True, True]])

    result = _precisions(members, members.sum(axis=1))

    assert np.diag(result).tolist() == [1 / 2 + 1 / 4, 1 / 2 + 1 / 4, 1 / 4]
    assert (result[0, 1], result[0, 2]) == (1 + 1 / 2, 1 / 2)


def test_items_in_no_pair_are_measured_in_groups() -> None:
    result = build_basis_sets(range(12), [])

    assert sorted(map(len, result)) == [3, 3, 3, 3]


def test_a_clique_that_is_too_long_is_cut_so_that_all_its_pairs_are_covered() -> None:
    pairs = list(combinations(range(20), 2))

    result = build_basis_sets(range(20), pairs)

    assert max(map(len, result)) <= 12
    assert all(any({*pair} <= {*basis} for basis in result) for pair in pairs)


@pytest.mark.parametrize("most_bins", [10_000, 1_000])
def test_bases_are_shorter_if_there_would_be_too_many_bins(most_bins: int) -> None:
    pairs = list(combinations(range(20), 2))

    result = build_basis_sets(range(20), pairs, max_bins=most_bins)

    assert sum(1 << len(basis) for basis in result) <= most_bins
    assert all(any({*pair} <= {*basis} for basis in result) for pair in pairs)


def test_a_graph_with_a_million_cliques_begins_with_its_pairs() -> None:
    """Every item is paired with all others but one: 2^20 maximal cliques."""
    pairs = [(a, b) for a, b in combinations(range(40), 2) if a // 2 != b // 2]

    result = build_basis_sets(range(40), [*pairs[:200], (38, 0), (39, 0)])

    assert all(any({*pair} <= {*basis} for basis in result) for pair in pairs[:200])


def test_the_same_items_and_pairs_give_the_same_bases() -> None:
    rng = np.random.default_rng(0)
    pairs = [(int(a), int(b)) for a, b in rng.integers(0, 40, (80, 2)) if a != b]

    assert build_basis_sets(range(40), pairs) == build_basis_sets(range(40), pairs)
