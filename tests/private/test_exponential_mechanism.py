"""The exponential mechanism has exactly the probabilities that are charged, for all scores.

Statistical tests compare counts with exact probabilities by χ²; limits lie where a sound sampler fails once in a
million runs, and scales that are off by a tenth are rejected as surely.
"""

from __future__ import annotations

import decimal
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

from dpsyn.accounting import Exponential
from dpsyn.private import SystemNoise
from dpsyn.private.exponential_mechanism import RandomWords, sample_exponential_mechanism, system_random_words

RUNS = 15_000


def chi_squared(counts: Counter[tuple[int, ...]], probabilities: dict[tuple[int, ...], float]) -> float:
    """The distance of counts from what is expected."""
    total = sum(counts.values())
    return sum((counts[key] - total * p) ** 2 / (total * p) for key, p in probabilities.items())


def peeling_probabilities(scores: list[int], scale: float, selections: int) -> dict[tuple[int, ...], float]:
    """The probability of every order: P ∝ e^(score/scale) among those that are left."""
    weights = np.exp(np.array(scores) / scale)
    selected = {}
    for order in permutations(range(len(scores)), selections):
        left, probability = weights.sum(), 1.0
        for position in order:
            probability *= weights[position] / left
            left -= weights[position]
        selected[order] = float(probability)
    return selected


@pytest.mark.parametrize("factor", [1.0, 0.9, 1.1])
def test_orders_have_their_exact_probabilities_and_other_scales_are_rejected(factor: float) -> None:
    scores = [0, 5, 10, 10]
    cost = Exponential(sensitivity=Fraction(1), scale=4.0 * factor, charged_epsilon=Fraction(3), selections=3)
    expected = peeling_probabilities(scores, 4.0, cost.selections)

    outcomes = Counter(tuple(SystemNoise().choose_candidates(np.array(scores), cost).tolist()) for _ in range(RUNS))

    accepted = chi_squared(outcomes, expected) < chi2.isf(1e-6, len(expected) - 1)
    assert accepted == (factor == 1)


def test_a_single_selection_among_many_ties_is_uniform() -> None:
    outcomes = Counter(
        tuple(sample_exponential_mechanism(np.full(10, 10**12), 0.001, 1).tolist()) for _ in range(10_000)
    )

    assert chi_squared(outcomes, {(position,): 0.1 for position in range(10)}) < chi2.isf(1e-6, 9)


def test_huge_scores_and_tiny_scales_leave_nothing_to_chance() -> None:
    scores = np.array([5, 10**15, 3, 10**15 - 1])

    assert all(sample_exponential_mechanism(scores, 1e-6, 4).tolist() == [1, 3, 0, 2] for _ in range(50))


def stream(words: list[int]) -> RandomWords:
    """Random words that are known, one after another."""
    left = iter(words)
    return lambda number: np.array([next(left) for _ in range(number)], np.uint64)


def exact_keys(scores: list[int], scale: float, words: list[int]) -> list[Decimal]:
    """score/scale + Gumbel, in a hundred digits, for words whose first 52 bits are all there is."""
    with decimal.localcontext(decimal.Context(prec=100)):
        uniforms = [Decimal((word >> 12) * 2 + 1) / Decimal(1 << 53) for word in words]
        return [Decimal(s) / Decimal(scale) - (-u.ln()).ln() for s, u in zip(scores, uniforms, strict=True)]


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 2**64 - 1)), min_size=1, max_size=8),
    st.floats(0.01, 100),
    st.data(),
)
def test_the_order_is_that_of_arithmetic_in_a_hundred_digits(
    candidates: list[tuple[int, int]], scale: float, data: st.DataObject
) -> None:
    """The middle of what 52 bits leave open lies in the same order, unless more bits are asked for."""
    scores, words = [score for score, _ in candidates], [word for _, word in candidates]
    selections = data.draw(st.integers(1, len(scores)))
    requested: list[int] = []

    def counted(number: int) -> NDArray[np.uint64]:
        requested.append(number)
        return system_random_words(number) if len(requested) > 1 else np.array(words, np.uint64)

    selected = sample_exponential_mechanism(np.array(scores), scale, selections, counted).tolist()

    keys = exact_keys(scores, scale, words)
    if len(requested) == 1:
        assert selected == sorted(range(len(scores)), key=lambda position: -keys[position])[:selections]
    assert len(set(selected)) == selections


@pytest.mark.parametrize("begin", [0, 2**63, 2**64 - 1])
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_candidates_that_are_close_are_ordered_by_more_bits(begin: int, rounds: int) -> None:
    """Equal scores and equal first bits: the order is that of the bits that follow, larger ones first."""
    later = [5, 2**40, 3, 2**64 - 1]
    words = [begin] * 4 * rounds + later

    selected = sample_exponential_mechanism(np.zeros(4, np.int64), 1.0, 3, stream(words)).tolist()

    assert selected == [3, 1, 0]


def test_candidates_that_cannot_be_selected_get_no_more_bits() -> None:
    scores, requested = np.array([0, 0, -(10**9)]), []

    def words(number: int) -> NDArray[np.uint64]:
        requested.append(number)
        return (
            np.full(number, 2**63, np.uint64)
            if len(requested) == 1
            else np.arange(number, dtype=np.uint64) << np.uint64(60)
        )

    selected = sample_exponential_mechanism(scores, 1.0, 1, words).tolist()

    assert requested == [3, 2]
    assert selected == [1]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_all_candidates_can_be_selected(size: int) -> None:
    assert sorted(sample_exponential_mechanism(np.zeros(size, np.int64), 1.0, size).tolist()) == list(range(size))


def test_the_operating_system_is_asked_for_every_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[int] = []

    def given(size: int) -> bytes:
        requested.append(size)
        return bytes(range(size))

    monkeypatch.setattr("secrets.token_bytes", given)

    sample_exponential_mechanism(np.zeros(5, np.int64), 1.0, 2)

    assert requested == [40]


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("sensitivity", [1, 2, 40])
@pytest.mark.parametrize("selections", [1, 7])
def test_opendp_computes_the_same_charge(monotone: bool, sensitivity: int, selections: int) -> None:
    """OpenDP's sampler is another one, but its map is that of selections with the same scale."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_top_k
    from opendp.measures import max_divergence
    from opendp.metrics import linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    cost = Exponential.for_epsilon(Fraction(1, 3), sensitivity, monotone=monotone, selections=selections)
    scores, metric = vector_domain(atom_domain(T="i64")), linf_distance(T="i64", monotonic=monotone)

    measurement: Any = make_noisy_top_k(scores, metric, max_divergence(), k=selections, scale=cost.scale)

    assert measurement.map(sensitivity) == pytest.approx(float(cost.charged_epsilon), rel=1e-12)
