"""What a release tells about the dependence of pairs: corrected for noise, in units of it, from released numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpsyn.inference import Release
from dpsyn.inference.measurements import Scores
from dpsyn.schema import Categorical, Integer, Ordinal, Schema
from dpsyn.synopsis import Synopsis
from dpsyn.synopsis.dependence import CLEAR_STDS, PairDependence, describe_dependence

SCHEMA = Schema(
    attributes=(
        Ordinal(name="a", values=tuple("pqrstu"), missing=True),
        Integer(name="b", low=0, high=5),
        Categorical(name="c", values=tuple("xyzw")),
    )
)
ROWS = 12_000


def table(strength: float, seed: int = 0) -> dict[str, Any]:
    """Rows in which ``b`` follows ``a`` with some probability, ``c`` is independent, and ``a`` may be missing."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 6, ROWS), rng.integers(0, 6, ROWS)
    b = np.where(rng.random(ROWS) < strength, a, b)
    names = np.array([*"pqrstu"], object)[a]
    names[rng.random(ROWS) < 0.1] = None
    return {"a": names.tolist(), "b": b.tolist(), "c": np.array([*"xyzw"])[rng.integers(0, 4, ROWS)].tolist()}


def release(rows: dict[str, Any], std: float) -> Synopsis:
    rng = np.random.default_rng(3)
    codes = {
        "a": np.array([6 if value is None else "pqrstu".index(value) for value in rows["a"]]),
        "b": np.array(rows["b"]),
        "c": np.array(["xyzw".index(value) for value in rows["c"]]),
    }
    sizes = {"a": 7, "b": 6, "c": 4}
    marginals = {}
    for clique in (("a", "b"), ("a", "c"), ("b", "c")):
        counts = np.zeros([sizes[name] for name in clique])
        np.add.at(counts, tuple(codes[name] for name in clique), 1)
        marginals[clique] = counts + rng.normal(0, std, counts.shape)
    return Synopsis.from_marginals(SCHEMA, marginals, std=std, source="a test")


def describe(strength: float, std: float) -> dict[str, PairDependence]:
    rows = table(strength)
    comparison = release(rows, std).compare_rows(pa.table(rows))
    return {pair.first + pair.second: pair for pair in comparison.dependence}


@pytest.mark.parametrize("strength", [0.2, 0.5])
def test_released_correlations_are_those_of_the_rows_but_for_noise(strength: float) -> None:
    exact, noisy = describe(strength, 1e-3), describe(strength, 40.0)

    for pair in exact.values():
        assert pair.cramers_v is not None
        assert pair.cramers_v.released == pytest.approx(pair.cramers_v.synthetic, abs=1e-4)
    assert exact["ab"].spearman is not None
    assert exact["ab"].spearman.released == pytest.approx(exact["ab"].spearman.synthetic, abs=1e-4)
    assert exact["ab"].spearman.synthetic == pytest.approx(strength, abs=0.03)  # missing values have no rank
    assert exact["ac"].spearman is exact["bc"].spearman is None
    for name in exact:
        known, shown = exact[name].cramers_v, noisy[name].cramers_v
        assert known is not None
        assert shown is not None
        assert shown.released == pytest.approx(known.released, abs=0.06)


def test_noise_alone_is_no_dependence() -> None:
    independent, dependent = describe(0.0, 40.0), describe(0.5, 40.0)

    assert all(abs(pair.strength) < CLEAR_STDS for pair in independent.values())
    assert dependent["ab"].strength > 10 * CLEAR_STDS
    assert describe(0.5, 1e-3)["ab"].distance == pytest.approx(0.5 * 5 / 6 * 0.9, abs=0.01)
    assert all(pair.measured for pair in dependent.values())


def test_values_within_the_noise_are_left_out_of_correlations() -> None:
    assert all(pair.cramers_v is None for pair in describe(0.5, 2000.0).values())


def test_scored_pairs_are_described_by_their_first_score() -> None:
    names = (("a", "b"), ("a", "b", "c"), ("a", "c"), ("b", "a"))
    first = Scores("distance from the model", names, np.array([500.0, 900.0, -20.0, 7.0]), 100.0)
    second = Scores("distance from the model", (("b", "c"),), np.array([800.0]), 100.0)

    described = describe_dependence([Release(rounds=(), scores=(first, second))], [], [], 1000.0)

    assert described == (
        PairDependence(first="a", second="b", measured=False, strength=5.0, distance=0.25),
        PairDependence(first="a", second="c", measured=False, strength=-0.2, distance=-0.01),
    )
