from __future__ import annotations

from itertools import combinations

import numpy as np

from dpsyn.inference.gum import initialize_records, run_gum
from dpsyn.inference.synthesis import fit_records
from tests.inference.gum import tables


def test_few_records_that_suffice_are_fitted_directly() -> None:
    sizes = [3, 2, 3]
    given = tables.dependent_records(300, sizes, 0)
    targets = [tables.table(given, pair, sizes) for pair in combinations(range(3), 2)]

    result = fit_records(targets, tables.names(sizes), 300, rng=np.random.default_rng(0))

    rng = np.random.default_rng(0)
    alone = run_gum(initialize_records(targets, tables.names(sizes), 300, rng), tables.names(sizes), targets, rng=rng)
    assert np.array_equal(result, alone)


def test_records_too_few_for_their_tables_are_sampled_from_more() -> None:
    sizes = [12, 14, 9, 16, 11, 13, 10, 15]
    given = tables.dependent_records(20_000, sizes, 0)
    targets = [tables.table(given, pair, sizes) for pair in combinations(range(8), 2)]
    reported: list[float] = []

    result = fit_records(
        *(targets, tables.names(sizes), 300),
        rng=np.random.default_rng(0),
        progress=lambda _, done: reported.append(done),
    )

    rng = np.random.default_rng(0)
    alone = run_gum(initialize_records(targets, tables.names(sizes), 300, rng), tables.names(sizes), targets, rng=rng)
    assert result.shape == (300, 8)
    assert result.flags.f_contiguous
    # .25 against .35, and that of one seed from the next by .01
    assert tables.distances(result, targets).mean() < 0.85 * tables.distances(alone, targets).mean()
    assert reported == sorted(reported)
    assert reported[-1] == 1.0
