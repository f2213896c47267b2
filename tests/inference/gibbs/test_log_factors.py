from __future__ import annotations

import numpy as np
import pytest

from dpsyn.errors import InternalError
from dpsyn.inference.gibbs import fit, sample_chunks
from dpsyn.inference.gibbs.model import build_log_factors
from dpsyn.marginals import Estimate, Factor

SIZES = (3, 4, 2)
NAMES = ("a", "b", "c")
EVEN = [Estimate((name,), np.full(size, 12_000 / size), 4.0) for name, size in zip(NAMES, SIZES, strict=True)]


def count_pairs(fitted_rows: np.ndarray, one: int, other: int) -> np.ndarray:
    table = np.zeros((SIZES[one], SIZES[other]))
    np.add.at(table, (fitted_rows[one], fitted_rows[other]), 1)
    return table


def test_impossible_combinations_are_not_sampled_and_counts_are_still_followed() -> None:
    shares = np.ones((4, 3))
    shares[0, 1:] = 0
    fitted = fit(EVEN, NAMES, SIZES, seed=1, factors=[Factor(("b", "a"), shares)])

    rows = np.concatenate(list(sample_chunks(fitted, 12_000, seed=2)), axis=1)

    table = count_pairs(rows, 0, 1)
    assert table[1:, 0].sum() == 0
    assert np.abs(table.sum(axis=0) / 3_000 - 1).max() < 0.03
    assert np.abs(table.sum(axis=1) / 4_000 - 1).max() < 0.03


def test_a_share_lowers_how_often_a_combination_is_sampled() -> None:
    shares = np.array([[1.0, 0.25], [1.0, 1.0], [1.0, 1.0]])
    fitted = fit(EVEN, NAMES, SIZES, seed=1, factors=[Factor(("a", "c"), shares)])

    rows = np.concatenate(list(sample_chunks(fitted, 12_000, seed=2)), axis=1)

    table = count_pairs(rows, 0, 2)
    odds = (table[0, 1] / table[0, 0]) / (table[1, 1] / table[1, 0])
    assert 0.2 < odds < 0.3


def test_parameters_and_marginals_are_those_of_the_tables_alone() -> None:
    fitted = fit(EVEN, NAMES, SIZES, seed=1, factors=[Factor(("a", "c"), np.full((3, 2), 0.5))])

    assert fitted.cliques == (("a",), ("b",), ("c",))
    assert len(fitted.parameters) == len(fitted.expected_shares) == sum(SIZES)
    assert [table.clique for table in fitted.marginals()] == list(fitted.cliques)


def test_axes_follow_the_order_of_the_layout() -> None:
    shares = np.arange(1, 13).reshape(4, 3) / 12

    known = build_log_factors([Factor(("b", "a"), shares)], NAMES, SIZES)

    assert known.cliques == ((0, 1),)
    assert np.allclose(np.exp(known.logs).reshape(3, 4), shares.T)


def test_a_factor_of_other_sizes_is_refused() -> None:
    with pytest.raises(InternalError, match="does not fit"):
        build_log_factors([Factor(("a",), np.ones(4))], NAMES, SIZES)


def test_shares_above_one_are_refused() -> None:
    with pytest.raises(InternalError, match="one axis per attribute and shares from 0 to 1"):
        Factor(("a",), np.full(3, 1.5))
