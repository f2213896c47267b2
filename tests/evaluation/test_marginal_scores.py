"""Attributes and pairs: their shares, and the tables of the worst pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.encoding.binning import keep_top_labels
from dpsyn.evaluation.marginal_scores import (
    compare_attributes,
    compare_pairs,
    compute_triple_distances,
    tabulate_worst_pairs,
)
from dpsyn.marginals.comparison import MAX_ATTRIBUTE_LABELS, MAX_PAIR_LABELS, MAX_PAIR_TABLES
from dpsyn.schema import Boolean, Categorical, Integer, Schema
from tests.evaluation import naive
from tests.evaluation.small_tables import LETTERS, few, letters, tables_from_rows


def test_an_attribute_has_its_shares_in_both_tables() -> None:
    schema = Schema(attributes=(Integer(name="age", low=0, high=99, bins=(0, 50), missing=True),))

    (score,) = compare_attributes(tables_from_rows(schema, [(10,), (20,), (60,), (None,)], [(10,), (90,)]))

    assert (score.name, score.kind, score.folded) == ("age", "integer", 0)
    assert score.labels == ("0..49", "50..99", "missing")
    assert (score.reference, score.synthetic) == ((0.5, 0.25, 0.25), (0.5, 0.5, 0.0))
    assert score.distance.synthetic == 0.25


def test_rare_values_of_a_long_list_are_shown_together() -> None:
    schema = Schema(attributes=(Categorical(name="c", codes=300),))
    rows = [(code,) for code in range(300) for _ in range(1 + (code >= 250))]

    (score,) = compare_attributes(tables_from_rows(schema, rows, [(0,), (299,)]))

    assert len(score.labels) == len(score.reference) == MAX_ATTRIBUTE_LABELS
    assert score.folded == 300 - MAX_ATTRIBUTE_LABELS + 1
    assert score.labels[0] == "0"  # frequent in the synthetic table only
    assert score.labels[-2:] == ("299", "201 others")
    assert sum(score.reference) == pytest.approx(1)
    assert sum(score.synthetic) == 1


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(2, 40))
def test_the_most_frequent_labels_and_the_sum_are_kept(weights: list[int], max_labels: int) -> None:
    labels = tuple(f"v{index}" for index in range(len(weights)))

    folding = keep_top_labels(labels, np.array(weights), max_labels)

    shown = folding.sums(np.array(weights))
    assert len(folding.labels) == min(len(weights), max_labels)
    assert shown.sum() == sum(weights)
    if folding.others:
        kept = folding.labels[:-1]
        assert list(kept) == sorted(kept, key=labels.index)
        left = [weight for label, weight in zip(labels, weights, strict=True) if label not in kept]
        assert len(left) == folding.others
        assert max(left) <= min(shown[:-1])
        assert shown[-1] == sum(left)
    else:
        assert shown.tolist() == weights


@few
@given(letters(), letters())
def test_every_pair_has_its_distance(real: Any, synthetic: Any) -> None:
    scores, _ = compare_pairs(tables_from_rows(LETTERS, real, synthetic))

    assert [(score.first, score.second) for score in scores] == [("a", "b"), ("a", "n"), ("b", "n")]
    apart = [float(naive.distance(real, synthetic, pair)) for pair in ((0, 1), (0, 2), (1, 2))]
    assert [score.distance.synthetic for score in scores] == apart
    assert [score.spearman for score in scores] == [None] * 3


def test_a_shuffled_column_affects_only_its_own_pairs() -> None:
    schema = Schema(attributes=tuple(Boolean(name=name) for name in "abcd"))
    rng = np.random.default_rng(0)
    real = [(bool(x),) * 4 for x in rng.integers(0, 2, 400)]
    shuffled = rng.permutation([row[2] for row in real]).tolist()
    synthetic = [(a, b, c, d) for (a, b, _, d), c in zip(real, shuffled, strict=True)]

    scores, _ = compare_pairs(tables_from_rows(schema, real, synthetic))

    apart = {score.first + score.second: score.distance.synthetic for score in scores}
    assert apart["ab"] == apart["ad"] == apart["bd"] == 0
    assert min(apart["ac"], apart["bc"], apart["cd"]) > 0.4


def test_the_worst_pairs_exceed_the_sampling_floor_most() -> None:
    schema = Schema(
        attributes=(
            Categorical(name="key", codes=1000),
            Categorical(name="code", codes=1000),
            Boolean(name="yes"),
            Boolean(name="no"),
        )
    )
    rng = np.random.default_rng(0)
    keys, codes = rng.integers(0, 1000, (2, 2, 500)).tolist()
    real = [(key, code, yes, not yes) for key, code, yes in zip(keys[0], keys[1], [True, False] * 250, strict=True)]
    synthetic = [(key, code, yes, yes) for key, code, yes in zip(codes[0], codes[1], [True, False] * 250, strict=True)]
    comparison = tables_from_rows(schema, real, synthetic)
    scores, _ = compare_pairs(comparison)

    worst = tabulate_worst_pairs(comparison, scores)

    apart = {(score.first, score.second): score.distance for score in scores}
    assert apart["key", "code"].synthetic > 0.99  # although a fresh sample would hardly be closer
    assert (worst[0].first, worst[0].second) == ("yes", "no")
    assert worst[0].reference == ((0.0, 0.5), (0.5, 0.0))
    assert worst[0].synthetic == ((0.5, 0.0), (0.0, 0.5))
    assert worst[0].first_labels == worst[0].second_labels == ("false", "true")
    assert len(worst) == 6 < MAX_PAIR_TABLES
    large = next(table for table in worst if (table.first, table.second) == ("key", "code"))
    assert len(large.first_labels) == len(large.reference) == len(large.reference[0]) == MAX_PAIR_LABELS
    assert sum(map(sum, large.reference)) == pytest.approx(1)


@few
@given(letters(), letters())
def test_triples_have_the_distances_of_their_definition(real: Any, synthetic: Any) -> None:
    (distance,) = compute_triple_distances(tables_from_rows(LETTERS, real, synthetic), np.random.default_rng(0))

    assert distance.synthetic == float(naive.distance(real, synthetic, (0, 1, 2)))
