"""Cliques are counted as larger tables and summed from them; nobody can tell."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from dpsyn.encoding.counter import MarginalCounter
from dpsyn.errors import InternalError
from tests import naive

SIZES = (2, 7, 3, 1, 60)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("threads", [1, 2, 7, 40])
def test_counts_do_not_depend_on_threads_batches_and_types(threads: int, dtype: type[np.unsignedinteger]) -> None:
    rng = np.random.default_rng(threads)
    codes = np.stack([rng.integers(0, size, 70_001) for size in SIZES], axis=1)
    cliques = [clique for length in range(4) for clique in combinations(range(5), length)]
    tally = MarginalCounter([clique[::-1] for clique in cliques], SIZES, threads)

    for batch in (codes[:1], codes[1:1], codes[1:300], codes[300:]):
        tally.add(batch.astype(dtype))

    for clique, table in zip(cliques, tally.tables(), strict=True):
        shape = tuple(SIZES[place] for place in clique)
        flat = np.ravel_multi_index(tuple(codes[:, clique].T), shape) if clique else np.zeros(len(codes), np.int64)
        assert np.array_equal(table.T, np.bincount(flat, minlength=math.prod(shape)).reshape(shape))


def test_many_small_cliques_share_tables() -> None:
    tally = MarginalCounter(list(combinations(range(12), 2)), [2] * 12)

    tally.add(np.ones((3, 12), np.uint8))

    assert len(tally._covers) < 20  # of 66
    assert all(table.ravel().tolist() == naive.count([[1, 1]] * 3, (0, 1), (2, 2)) for table in tally.tables())


@pytest.mark.parametrize("rows", [5, 70_000])
def test_nothing_to_count_is_no_trouble(rows: int) -> None:
    tally = MarginalCounter([], [3])

    tally.add(np.zeros((rows, 1), np.uint8))

    assert tally.tables() == []


def test_a_table_that_no_index_reaches_is_refused() -> None:
    with pytest.raises(InternalError, match="4,294,967,296 cells"):
        MarginalCounter([(0, 1)], [2**16, 2**16])
