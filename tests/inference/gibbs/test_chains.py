from __future__ import annotations

import numpy as np
import pytest

from dpsyn.inference.gibbs.chains import Chains, QuadraticPenalty
from dpsyn.inference.gibbs.layout import CliqueLayout


@pytest.mark.parametrize("seed", range(6))
def test_tables_that_move_thousands_of_records_do_not_make_the_weights_of_others_infinite(seed: int) -> None:
    records, copies = 20_000, 60
    rng = np.random.default_rng(seed)
    layout = CliqueLayout.of(
        [2] * copies + [2, 1], [*((index, copies) for index in range(copies)), (copies, copies + 1)]
    )
    columns = np.zeros((copies + 2, records), np.uint16)
    columns[: copies + 1, records // 2 :] = 1  # in order: half of the records pull to one side before the others
    targets = Chains(layout, columns, None, rng).counts().astype(float)
    columns[copies] = rng.permutation(columns[copies])
    chains = Chains(layout, columns, None, rng)

    chains.sweep(np.zeros(len(targets)), QuadraticPenalty(targets, layout.target_stiffness(0.3), 4.0))

    assert chains.distance(targets) < 0.2  # from .49; all records on one side are at .5
