from __future__ import annotations

import itertools
import random

from hypothesis import given
from hypothesis import strategies as st

from dpsyn.inference.consistency import intersection_closure
from dpsyn.marginals import Clique
from tests.inference.consistency import naive

cliques = st.lists(st.lists(st.sampled_from("abcdefg"), unique=True).map(tuple), max_size=7)


@given(cliques)
def test_it_holds_the_intersections_of_all_choices_of_cliques_small_ones_first(given: list[Clique]) -> None:
    result = intersection_closure(given)

    assert [shared.attributes for shared in result] == naive.closure(given)


@given(cliques)
def test_each_set_lists_the_tables_that_hold_it(given: list[Clique]) -> None:
    result = intersection_closure(given)

    for shared in result:
        assert shared.tables == tuple(p for p, clique in enumerate(given) if {*shared.attributes} <= {*clique})


def test_a_clique_that_another_table_holds_belongs_to_it_but_not_one_of_a_single_table() -> None:
    result = intersection_closure([("a", "b"), ("c", "b", "a"), ("d", "e")])

    assert [shared.attributes for shared in result] == [(), ("a", "b")]


def test_all_pairs_of_many_attributes_share_sets_of_one_attribute() -> None:
    names = [f"a{number:03}" for number in range(120)]

    result = intersection_closure(
        list(itertools.combinations(names, 2))
    )  # 7 140 pairs: pair by pair, this would take a minute

    assert [shared.attributes for shared in result] == [(), *((name,) for name in names)]


def test_of_too_many_sets_it_keeps_the_small_ones_and_stays_closed_under_intersection() -> None:
    generator = random.Random(1)
    many = [tuple(generator.sample("abcdefghijklmnop", 9)) for _ in range(40)]

    result = {frozenset(shared.attributes) for shared in intersection_closure(many, max_sets=300)}

    everything = {frozenset(shared.attributes) for shared in intersection_closure(many)}
    largest = max(len(names) for names in result)
    assert len(result) <= 300 < len(everything)
    assert result == {names for names in everything if len(names) <= largest}
    assert all(one & other in result for one in result for other in result)
