"""The contest's density metric, by hand and against its definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from dpsyn.evaluation.marginal_scores import compute_triple_distances, sample_triples
from dpsyn.evaluation.nist_contest import MATCH3, PAPER, sample_density_triples, score_density
from dpsyn.schema import Boolean, Categorical, Integer, Schema
from tests.evaluation import naive
from tests.evaluation.small_tables import LETTERS, few, letters, tables_from_rows

SCHEMA = Schema(
    attributes=(
        Categorical(name="sex", values=("F", "M")),
        Integer(name="n", low=0, high=100, missing=True),
        Boolean(name="flag"),
        Boolean(name="last"),
    )
)


def test_a_score_by_hand() -> None:
    real = [("F", 0, True, True), ("F", 1, True, True), ("M", 50, True, True), ("M", None, True, True)]
    synthetic = [("F", 0, True, False), ("F", 0, True, False), ("M", 50, True, False), ("M", 100, True, False)]

    score = score_density(tables_from_rows(SCHEMA, real, synthetic).buckets(), [(0, 1, 2)])

    # 0 and 1 share the first bucket; one row in four is in another one: the empty against the last
    assert score.synthetic == 750_000


def test_identical_tables_score_a_million() -> None:
    rows = [("F", 3, True, False), ("M", None, False, False)]

    score = score_density(tables_from_rows(SCHEMA, rows, rows[::-1]).buckets(), [(0, 1, 2), (1, 2, 3)])

    assert score.synthetic == 1_000_000


@few
@given(letters(), letters())
def test_the_score_is_one_minus_the_mean_distance_of_triples(real: Any, synthetic: Any) -> None:
    cliques = [(0, 1, 2), (0, 2)]

    score = score_density(tables_from_rows(LETTERS, real, synthetic).buckets(), cliques)

    apart = [naive.distance(real, synthetic, clique) for clique in cliques]  # 10 values have a bucket each
    assert score.synthetic == pytest.approx(float(1_000_000 * (1 - sum(apart) / 2)))


def test_the_paper_samples_300_triples_and_the_match_100_without_the_last_column() -> None:
    paper, match = (sample_density_triples(20, preset, np.random.default_rng(0)) for preset in (PAPER, MATCH3))

    assert (len({*paper}), len(match)) == (300, 100)
    assert all(len({*triple}) == 3 for triple in (*paper, *match))
    assert {axis for triple in paper for axis in triple} == set(range(20))
    assert {axis for triple in match for axis in triple} == set(range(19))


@pytest.mark.parametrize(
    ("columns", "paper", "match"), [(1, [(0,)], [(0,)]), (2, [(0, 1)], [(0,)]), (3, [(0, 1, 2)], [(0, 1)])]
)
def test_fewer_than_three_columns_form_one_set(columns: int, paper: Any, match: Any) -> None:
    rng = np.random.default_rng(0)

    assert sample_density_triples(columns, PAPER, rng) == paper
    assert {tuple(sorted(triple)) for triple in sample_density_triples(columns, MATCH3, rng)} == {*match}


def test_random_triples_are_different_sets_and_equally_likely() -> None:
    triples = [triple for seed in range(400) for triple in sample_triples(5, 3, np.random.default_rng(seed))]

    counts = np.unique(np.array(triples), axis=0, return_counts=True)[1]
    assert len(counts) == 10
    assert all(len({*triple}) == 3 for triple in triples)
    # 120 expected of each; χ² with 9 degrees of freedom is above 33.7 by chance once in 10 000 times
    assert ((counts - 120) ** 2 / 120).sum() < 33.7


def test_all_triples_are_used_if_there_are_few() -> None:
    assert len(sample_triples(5, 10, np.random.default_rng(0))) == 10
    assert len(sample_triples(5, 9, np.random.default_rng(0))) == 9


def test_below_three_attributes_no_triple_is_compared() -> None:
    schema = Schema(attributes=(Boolean(name="a"), Boolean(name="b")))

    distances = compute_triple_distances(
        tables_from_rows(schema, [(True, True)], [(True, False)]), np.random.default_rng(0)
    )

    assert distances == []
