from __future__ import annotations

import numpy as np

from dpsyn.simulation.dependence_strength import measure_interactions

RANDOM = np.random.default_rng(0)


def test_independent_columns_are_as_strong_as_chance() -> None:
    columns = [RANDOM.integers(0, 4, 20_000) for _ in range(6)]

    strength = measure_interactions(columns, 0)

    assert abs(strength.pairs - strength.chance_pairs) < 0.003
    assert abs(strength.triples - strength.chance_triples) < 0.003


def test_a_parity_shows_in_three_and_not_in_two() -> None:
    one, other = RANDOM.integers(0, 2, (2, 20_000))

    strength = measure_interactions([one, other, one ^ other], 0)

    assert strength.strongest_pair < 0.02
    assert strength.strongest_triple > 0.48


def test_a_copy_shows_in_two_and_adds_nothing_to_three() -> None:
    one, other = RANDOM.integers(0, 2, (2, 20_000))

    strength = measure_interactions([one, one, other], 0)

    assert strength.strongest_pair > 0.48
    assert strength.strongest_triple < 0.02


def test_constant_columns_and_no_rows_have_no_strength() -> None:
    assert measure_interactions([np.zeros(10, np.int64)] * 3, 0).pairs == 0
    assert measure_interactions([np.zeros(0, np.int64)] * 3, 0).triples == 0
