"""Tables to synthesize from, and the distances of records from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpsyn.inference.gum import Records
from dpsyn.marginals import Estimate


def table(records: NDArray[np.int32], indices: Sequence[int], sizes: Sequence[int]) -> Estimate:
    """The exact counts of some attributes, which are named by their indices."""
    shape = tuple(sizes[index] for index in indices)
    cells = np.ravel_multi_index(tuple(records[:, list(indices)].T), shape)
    counts = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)
    return Estimate(tuple(str(index) for index in indices), counts.astype(float), 1.0)


def names(sizes: Sequence[int]) -> list[str]:
    return [str(index) for index in range(len(sizes))]


def dependent_records(rows: int, sizes: Sequence[int], seed: int) -> Records:
    """Records whose attributes all depend on something hidden, some of them closely."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(rows)
    columns = [
        np.where(rng.random(rows) < 0.2 + 0.7 * index / len(sizes), hidden, rng.random(rows)) ** 2 * size
        for index, size in enumerate(sizes)
    ]
    return np.array(columns, np.int32).T


def distances(records: Records, tables: Sequence[Estimate]) -> NDArray[np.float64]:
    """The total variation distance of each table, whose attributes are named by their indices."""
    result = []
    for target in tables:
        sizes = dict(zip(map(int, target.clique), target.values.shape, strict=True))
        own = table(records, [*sizes], [sizes.get(index, 0) for index in range(records.shape[1])])
        result.append(np.abs(own.values / len(records) - target.values / target.total).sum() / 2)
    return np.array(result)


@st.composite
def recounts(draw: st.DrawFn, most: int = 12) -> tuple[list[int], list[int]]:
    """Two tables of the same number of records: current counts and targets."""
    cells = draw(st.integers(2, 8))
    counts = draw(st.lists(st.integers(0, most), min_size=cells, max_size=cells))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    weights = rng.random(cells) ** draw(st.sampled_from([0, 1, 8]))
    return counts, rng.multinomial(sum(counts), weights / weights.sum()).tolist()
