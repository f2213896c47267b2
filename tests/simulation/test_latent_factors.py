from __future__ import annotations

import numpy as np
import pytest

from dpsyn.encoding import Codec
from dpsyn.errors import InternalError
from dpsyn.schema import Categorical, Integer, Schema
from dpsyn.simulation import Dependence, simulate
from dpsyn.simulation.latent_factors import random_factor_process

SCHEMA = Schema(
    attributes=(
        *(Categorical(name=f"c{number}", codes=6) for number in range(6)),
        *(Integer(name=f"n{number}", low=0, high=9_999) for number in range(4)),
    )
)


def codes(dependence: Dependence, rows: int = 4_000) -> np.ndarray:
    table = simulate(SCHEMA, rows, 3, dependence=dependence)
    return Codec(table.schema).encode(table.table())


def mean_correlation(columns: np.ndarray) -> float:
    ranks = np.argsort(np.argsort(columns, axis=0), axis=0)
    correlations = np.abs(np.corrcoef(ranks.T))
    return float(correlations[~np.eye(len(correlations), dtype=bool)].mean())


def test_a_larger_communality_means_stronger_dependence() -> None:
    weak, moderate, strong = (
        mean_correlation(codes(Dependence(communality=c))[:, 6:].astype(float)) for c in (0.05, 0.5, 0.95)
    )

    assert weak < 0.1
    assert 2 * weak < moderate
    assert 1.5 * moderate < strong


def test_the_loadings_have_the_mean_communality_that_was_asked_for() -> None:
    wide = Schema(attributes=tuple(Categorical(name=f"c{number}", codes=2) for number in range(400)))

    process = random_factor_process(wide, 1, Dependence(communality=0.6))

    assert (process.loadings**2).sum(axis=1).mean() == pytest.approx(0.6, abs=0.05)
    assert (process.loadings**2).sum(axis=1).max() < 1


def test_more_spread_means_that_the_most_frequent_value_is_rarer() -> None:
    shares = [
        np.mean([np.bincount(column).max() for column in codes(Dependence(communality=0.5, spread=spread)).T]) / 4_000
        for spread in (0.5, 1.0, 2.0)
    ]

    assert shares[0] > 1.2 * shares[1] > 1.4 * shares[2]


def test_every_code_is_in_the_domain_and_missing_values_occur() -> None:
    schema = Schema(
        attributes=(Integer(name="age", low=0, high=99, missing=("?",)), Categorical(name="b", codes=2, missing=("?",)))
    )
    process = random_factor_process(schema, 5, Dependence(communality=0.5))

    columns = process.sample(20_000, np.random.default_rng(0))

    for column, attribute in zip(columns, schema, strict=True):
        assert column.min() >= 0
        assert column.max() < attribute.cells
    assert any((column == attribute.cells - 1).any() for column, attribute in zip(columns, schema, strict=True))


@pytest.mark.parametrize(("communality", "spread"), [(0.0, 1.0), (1.0, 1.0), (0.5, 0.0)])
def test_an_impossible_dependence_is_refused(communality: float, spread: float) -> None:
    with pytest.raises(InternalError, match="communality is between 0 and 1"):
        Dependence(communality=communality, spread=spread)
