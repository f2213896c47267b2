"""Rows in memory are counted into the contingency table of a clique."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from dpsyn.encoding import contingency_table


@pytest.mark.parametrize("shape", [(3,), (2, 4), (3, 1, 5)])
@pytest.mark.parametrize("rows", [0, 1, 200])
def test_a_contingency_table_holds_every_combination_of_codes(shape: tuple[int, ...], rows: int) -> None:
    rng = np.random.default_rng(rows)
    columns = [rng.integers(0, size, rows).astype(np.uint8) for size in shape]

    table = contingency_table(columns, shape)

    records = list(zip(*columns, strict=True))
    assert table.shape == shape
    assert all(table[cell] == records.count(cell) for cell in product(*map(range, shape)))
