from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.errors import InternalError
from dpsyn.inference.gum.decomposition import (
    AppendedAttribute,
    append_attribute,
    detach_attributes,
    drop_covered_tables,
)
from dpsyn.marginals import Estimate


def zeros(*cliques: str) -> list[Estimate]:
    """Tables over attributes that are called by one letter each, two values each."""
    return [Estimate(tuple(clique), np.zeros((2,) * len(clique)), 1.0) for clique in cliques]


def cliques(tables: list[Estimate]) -> list[str]:
    return ["".join(table.clique) for table in tables]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["a", "ab", "bc", "cb", "b"], ["ab", "bc"]),
        (["abc", "ca", "cd"], ["abc", "cd"]),
        (["a", "b"], ["a", "b"]),
        (["", "a"], ["a"]),
        ([], []),
    ],
)
def test_tables_that_another_one_holds_are_left_out(given: list[str], kept: list[str]) -> None:
    assert cliques(drop_covered_tables(zeros(*given))) == kept


def test_of_two_tables_of_the_same_attributes_the_more_precise_stays() -> None:
    rough, fine = (
        Estimate(tuple(clique), np.zeros((2, 2)), variance) for clique, variance in (("ab", 2.0), ("ba", 1.0))
    )

    assert drop_covered_tables([rough, fine]) == [fine]


@pytest.mark.parametrize(
    ("given", "core", "appended"),
    [
        (["ab", "bc", "ca"], ["ab", "bc", "ca"], ""),  # a circle
        (["ab", "bc", "ca", "cd", "de"], ["ab", "bc", "ca"], "de"),  # with a tail
        (["ab", "bc", "ca", "dabc"], [], "abcd"),
        (["abx", "bc", "ca"], ["ab", "bc", "ca"], "x"),  # the rest of its table is not in another
        (["abx", "abc", "cd", "da"], ["ac", "cd", "da"], "bx"),  # or it is, whereupon b is in one table only
        (["ab", "bc", "bd", "de"], [], "abcde"),  # a tree
        (["abc", "cde", "efa"], ["ac", "ce", "ea"], "bdf"),
        (["a", "bc"], [], "abc"),
        ([], [], ""),
    ],
)
def test_attributes_of_one_table_are_detached_until_none_is_left(
    given: list[str], core: list[str], appended: str
) -> None:
    left, appendices = detach_attributes(zeros(*given))

    assert sorted(map(sorted, cliques(left))) == sorted(map(sorted, core))
    assert sorted(appendix.name for appendix in appendices) == sorted(appended)


def test_attributes_are_appended_after_those_they_are_given() -> None:
    _, appendices = detach_attributes(zeros("ab", "bc", "cde", "df", "gh"))

    there: set[str] = set()
    for appendix in appendices:
        assert there >= set(appendix.given)
        there.add(appendix.name)
    assert there == set("abcdefgh")


def test_what_is_left_of_a_table_is_its_projection() -> None:
    values = np.arange(8.0).reshape(2, 2, 2)
    tables = [Estimate(tuple("axb"), values, 1.0), *zeros("bc", "ca")]

    left, (appendix,) = detach_attributes(tables)

    assert left[0].clique == ("a", "b")
    assert np.array_equal(left[0].values, values.sum(axis=1))
    assert left[0].variance == 2.0
    assert (appendix.given, appendix.name) == (("a", "b"), "x")
    assert np.array_equal(appendix.values, values.transpose(0, 2, 1))


@given(st.integers(0, 200), st.integers(0, 1000))
def test_each_cell_has_its_conditional_to_rounding(rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.random((3, 2, 4)) * rng.integers(0, 2, (3, 2, 4))
    parents = {"a": rng.integers(3, size=rows).astype(np.int32), "b": rng.integers(2, size=rows).astype(np.int32)}

    codes = append_attribute(parents, AppendedAttribute(("a", "b"), "c", values), rows, rng)

    assert (codes.shape, str(codes.dtype)) == ((rows,), "int32")
    assert np.all((codes >= 0) & (codes < 4))
    for a, b in np.ndindex(3, 2):
        own = np.bincount(codes[(parents["a"] == a) & (parents["b"] == b)], minlength=4)
        weights = next(w for w in (values[a, b], values.sum(axis=(0, 1)), np.ones(4)) if w.any())
        assert np.all(np.abs(own - own.sum() * weights / weights.sum()) < 1 + 1e-9)
        assert np.all(own[weights == 0] == 0)


def test_cells_of_one_record_each_still_add_up_to_the_whole() -> None:
    parents = {"a": np.arange(1000, dtype=np.int32)}
    appendix = AppendedAttribute(("a",), "b", np.tile([0.1, 0.3, 0.6], (1000, 1)))

    codes = append_attribute(parents, appendix, 1000, np.random.default_rng(0))

    assert np.abs(np.bincount(codes) - [100, 300, 600]).max() <= 2  # independent samples would differ by 15


def test_records_of_a_cell_get_their_codes_in_random_order() -> None:
    appendix = AppendedAttribute((), "a", np.array([1.0, 1.0]))
    rng = np.random.default_rng(0)

    first = np.sum([append_attribute({}, appendix, 10, rng) for _ in range(2000)], axis=0)

    assert np.all(np.abs(first - 1000) < 112)  # five standard deviations: once in 170 000 runs


def test_many_parent_cells_are_distinguished() -> None:
    parents = {"a": np.arange(70_000, dtype=np.int32)[::-1].copy()}  # more than 16 bits
    appendix = AppendedAttribute(("a",), "b", np.eye(2)[np.arange(70_000) % 2])

    codes = append_attribute(parents, appendix, 70_000, np.random.default_rng(0))

    assert np.array_equal(codes, parents["a"] % 2)


def test_an_appended_attribute_without_an_axis_for_each_attribute_is_refused() -> None:
    with pytest.raises(InternalError, match="axes"):
        AppendedAttribute(("a",), "b", np.zeros(2))
