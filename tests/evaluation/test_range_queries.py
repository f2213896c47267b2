"""The contest's range queries: how they are sampled, answered and scored."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.evaluation import nist_contest
from dpsyn.evaluation.nist_contest import (
    PAPER,
    RangeCondition,
    RangeQuery,
    sample_range_queries,
    score_range_queries,
)
from dpsyn.evaluation.tables import EvaluationTables
from dpsyn.schema import Categorical, Integer, Schema
from tests.evaluation import naive
from tests.evaluation.small_tables import LETTERS, few, letters, rows_of, tables_from_rows


def admitted_labels(comparison: EvaluationTables, query: RangeQuery) -> list[tuple[int, set[str]]]:
    """The labels that a query accepts, for each attribute."""
    labels = []
    for condition in query:
        domain = comparison.domains[condition.axis]
        codes = [code for code in range(domain.size) if condition.low <= code <= condition.high]
        chosen = condition.code_mask
        labels.append((condition.axis, {domain.labels()[code] for code in codes if chosen is None or chosen[code]}))
    return labels


# ── scoring ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_score_by_hand() -> None:
    real = [("x", "p", 0), ("x", "q", 5), ("y", "p", 5), ("z", None, None)]
    synthetic = [("x", "p", 0), ("y", "p", 0), ("y", "p", 0), ("y", "q", 9)]
    only_x = np.array([True, False, False])
    five_or_nine = RangeCondition(2, 1, 2)  # codes of 0, 5, 9: the values that occur

    score = score_range_queries(
        tables_from_rows(LETTERS, real, synthetic).exact, [(RangeCondition(0, 0, 2, only_x),), (five_or_nine,)]
    )

    # half of the real rows have x, a quarter of the others; half have 5 or 9, a quarter of the others
    assert score.synthetic == pytest.approx(1e6 * (1 - math.log(2) / math.log(1000)))


def test_an_answer_of_zero_counts_as_a_millionth_and_no_score_is_negative() -> None:
    real, synthetic = [("x", "p", 0)] * 4, [("y", "p", 0)] * 4
    x, p = (RangeCondition(axis, 0, size - 1, np.arange(size) == 0) for axis, size in ((0, 3), (1, 3)))
    comparison = tables_from_rows(LETTERS, real, synthetic)

    nothing, half = (
        score_range_queries(comparison.exact, [(x,)]),
        score_range_queries(comparison.exact, [(x,), *[(p,)] * 7]),
    )

    assert nothing.synthetic == 0
    assert half.synthetic == pytest.approx(1e6 * (1 - math.sqrt(math.log(1e6) ** 2 / 8) / math.log(1000)))


def test_identical_tables_score_a_million() -> None:
    rows = [("xyz"[n % 3], [None, "p", "q"][n % 3], n % 7) for n in range(50)]
    comparison = tables_from_rows(LETTERS, rows, rows[::-1])

    score = score_range_queries(comparison.exact, sample_range_queries(comparison, PAPER, np.random.default_rng(0)))

    assert score.synthetic == 1_000_000


@few
@given(letters(), letters(), st.integers(0, 100))
def test_answers_equal_those_of_a_scan_of_all_rows(real: Any, synthetic: Any, seed: int) -> None:
    comparison = tables_from_rows(LETTERS, real, synthetic)
    queries = sample_range_queries(comparison, PAPER, np.random.default_rng(seed))

    quick = nist_contest._sort_conditions(comparison.exact, queries)
    answers = [nist_contest._matching_shares(comparison.exact, query) for query in quick]

    for number in range(4):
        rows = rows_of(comparison, number)
        expected = [naive.matches(rows, admitted_labels(comparison, query)) / len(rows) for query in queries]
        assert [answer[number] for answer in answers] == expected


def test_answers_of_many_rows_are_counted_block_by_block() -> None:
    rng = np.random.default_rng(0)
    rows = [("xyz"[a], "pq"[b], n) for a, b, n in zip(*(rng.integers(0, s, 5_000) for s in (3, 2, 10)), strict=True)]
    comparison = tables_from_rows(LETTERS, rows, rows)
    query = (RangeCondition(0, 0, 2, np.array([True, False, True])), RangeCondition(2, 3, 5))

    share = nist_contest._matching_shares(comparison.exact, query)[0]

    assert share == sum(a in "xz" and 3 <= n <= 5 for a, _, n in rows) / 5_000


# ── drawing ──────────────────────────────────────────────────────────────────────────────────────────────────


@few
@given(letters(), st.integers(0, 100))
def test_every_query_is_satisfied_by_the_real_row_it_is_built_around(real: Any, seed: int) -> None:
    comparison = tables_from_rows(LETTERS, real, real)

    queries = sample_range_queries(comparison, PAPER, np.random.default_rng(seed))

    rows = rows_of(comparison, 0)
    assert len(queries) == len(real)
    assert all(query and naive.matches(rows, admitted_labels(comparison, query)) for query in queries)


def test_at_most_300_queries_are_sampled_from_different_rows() -> None:
    schema = Schema(attributes=(Integer(name="n", low=0, high=999),))
    comparison = tables_from_rows(schema, [(n,) for n in range(1000)], [(0,)])
    point = dataclasses.replace(PAPER, chance=1.0)

    queries = sample_range_queries(comparison, point, np.random.default_rng(0))

    assert len(queries) == 300
    centres = {(condition.low + condition.high) / 2 for (condition,) in queries if condition.low > 0}
    assert len(centres) > 50


def test_a_third_of_the_columns_have_a_condition() -> None:
    schema = Schema(attributes=tuple(Categorical(name=f"c{n}", values=("a", "b")) for n in range(100)))
    comparison = tables_from_rows(
        schema, [tuple("ab"[(n + m) % 2] for m in range(100)) for n in range(300)], [("a",) * 100]
    )

    queries = sample_range_queries(comparison, PAPER, np.random.default_rng(1))

    # 30 000 draws: within 4.5 standard deviations but for 7 in a million
    assert abs(sum(map(len, queries)) - 9_900) < 4.5 * math.sqrt(9_900 * 0.67)
    assert {condition.axis for query in queries for condition in query} == set(range(100))


@given(st.integers(0, 9), st.integers(0, 2**32))
def test_a_condition_on_a_number_is_a_range_of_random_width(value: int, seed: int) -> None:
    comparison = tables_from_rows(LETTERS, [("x", "p", n) for n in (0, 2, 3, 5, 9, value)], [("x", "p", None)])
    domain = comparison.domains[2]
    code = domain.labels().index(str(value))

    condition = nist_contest._sample_condition(2, domain, code, np.random.default_rng(seed))

    reach = np.random.default_rng(seed).uniform(0, 9)
    expected = {str(n) for n in {0, 2, 3, 5, 9, value} if abs(n - value) <= reach}
    assert admitted_labels(comparison, (condition,)) == [(2, expected)]


def test_a_condition_on_a_missing_value_accepts_only_missing() -> None:
    comparison = tables_from_rows(LETTERS, [("x", None, None)], [("y", "p", 3)])
    every = dataclasses.replace(PAPER, chance=1.0)

    (query,) = sample_range_queries(comparison, every, np.random.default_rng(3))

    assert admitted_labels(comparison, query)[1:] == [(1, {"missing"}), (2, {"missing"})]


def test_the_paper_samples_subsets_of_every_size_equally() -> None:
    rng = np.random.default_rng(7)

    samples = [frozenset(nist_contest._sample_other_categories(5, 2, rng)) for _ in range(2_000)]

    sizes = np.bincount([len(others) for others in samples], minlength=5)
    singles = np.bincount([next(iter(others)) for others in samples if len(others) == 1], minlength=5)
    # χ² with 4 and 3 degrees of freedom is above 23.5 and 21.1 by chance once in 10 000 times
    assert ((sizes - 400) ** 2 / 400).sum() < 23.5
    assert singles[2] == 0
    assert ((singles[[0, 1, 3, 4]] - sizes[1] / 4) ** 2 / (sizes[1] / 4)).sum() < 21.1


def test_a_condition_on_an_attribute_of_one_value_accepts_it() -> None:
    assert nist_contest._sample_other_categories(1, 0, np.random.default_rng(0)) == []
