"""Families of tables that overlap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from dpsyn.inference.consistency import intersection_closure
from dpsyn.marginals import Clique, Estimate

VARIANCES = (0.01, 1.0, 4.0, 100.0, 1e4)


def cliques(sizes: dict[str, int], most: int = 6) -> st.SearchStrategy[list[Clique]]:
    """Some cliques of some attributes, in any order of axes, the empty and repeated ones included."""
    clique = st.lists(st.sampled_from(sorted(sizes)), unique=True, max_size=3).map(tuple)
    return st.lists(clique, min_size=1, max_size=most)


def schemas() -> st.SearchStrategy[dict[str, int]]:
    """The sizes of a few attributes."""
    return st.lists(st.integers(1, 4), min_size=1, max_size=5).map(
        lambda sizes: {f"a{number}": size for number, size in enumerate(sizes)}
    )


@st.composite
def noisy_tables(draw: st.DrawFn, variances: Sequence[float] = VARIANCES) -> list[Estimate]:
    """Inconsistent tables of unequal noise: some cells are negative, some large, some zero."""
    sizes = draw(schemas())
    result = []
    for clique in draw(cliques(sizes)):
        values = draw(
            arrays(np.dtype(np.float64), tuple(sizes[name] for name in clique), elements=st.integers(-300, 1000))
        )
        result.append(Estimate(clique, values, draw(st.sampled_from(variances))))
    return result


@st.composite
def exact_tables(draw: st.DrawFn) -> list[Estimate]:
    """Tables counted from the same rows: they are consistent, and no cell is negative."""
    sizes = draw(schemas())
    rows = draw(st.lists(st.tuples(*(st.integers(0, size - 1) for size in sizes.values())), min_size=1, max_size=30))
    codes = np.array(rows)
    return [count(codes, sizes, clique, draw(st.sampled_from(VARIANCES))) for clique in draw(cliques(sizes))]


def count(codes: NDArray[np.int64], sizes: dict[str, int], clique: Clique, variance: float) -> Estimate:
    """The exact counts of rows of codes, as if they had been measured with some noise."""
    indices = [list(sizes).index(name) for name in clique]
    values = np.zeros([sizes[name] for name in clique])
    np.add.at(values, tuple(codes[:, position] for position in indices), 1.0)
    if not clique:
        values = np.array(float(len(codes)))
    return Estimate(clique, values, variance)


def gaps(tables: Sequence[Estimate]) -> float:
    """The largest difference of two tables on any set that tables share."""
    worst = 0.0
    for shared in intersection_closure([table.clique for table in tables]):
        reported = [tables[position].project(shared.attributes) for position in shared.tables]
        worst = max(worst, float(np.max(np.max(reported, axis=0) - np.min(reported, axis=0))))
    return worst
