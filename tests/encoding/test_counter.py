"""Cliques that are counted as larger tables have the same counts as those that are counted one by one."""

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
    counter = MarginalCounter([clique[::-1] for clique in cliques], SIZES, threads)

    for batch in (codes[:1], codes[1:1], codes[1:300], codes[300:]):
        counter.add(batch.astype(dtype))

    for clique, table in zip(cliques, counter.tables(), strict=True):
        shape = tuple(SIZES[axis] for axis in clique)
        flat = np.ravel_multi_index(tuple(codes[:, clique].T), shape) if clique else np.zeros(len(codes), np.int64)
        assert np.array_equal(table.T, np.bincount(flat, minlength=math.prod(shape)).reshape(shape))


def test_many_small_cliques_share_tables() -> None:
    counter = MarginalCounter(list(combinations(range(12), 2)), [2] * 12)

    counter.add(np.ones((3, 12), np.uint8))

    assert len(counter._covers) < 20  # of 66
    assert all(table.ravel().tolist() == naive.count([[1, 1]] * 3, (0, 1), (2, 2)) for table in counter.tables())


@pytest.mark.parametrize("rows", [5, 70_000])
def test_no_cliques_give_no_tables(rows: int) -> None:
    counter = MarginalCounter([], [3])

    counter.add(np.zeros((rows, 1), np.uint8))

    assert counter.tables() == []


def test_a_table_that_is_too_large_for_its_index_is_refused() -> None:
    with pytest.raises(InternalError, match="4,294,967,296 cells"):
        MarginalCounter([(0, 1)], [2**16, 2**16])
