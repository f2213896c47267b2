"""Tables as pieces of one vector."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.consistency.average import precisions
from dpsyn.errors import InternalError
from dpsyn.marginals import Clique, Estimate

Vector = NDArray[np.float64]
"""The cells of all tables, one table after the other; in a table the last attribute is the fastest."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """How tables lie in a vector. All list their attributes in the same order, so that projections can be compared.

    Attributes:
        cliques: the attributes of each table.
        shapes: their sizes.
        precisions: how much each table is worth beside the others.
        cells: how many cells each table has.
        starts: where each table begins.
    """

    cliques: tuple[Clique, ...]
    shapes: tuple[tuple[int, ...], ...]
    precisions: NDArray[np.float64]
    cells: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, estimates: Sequence[Estimate]) -> Layout:
        """For one or more tables, whatever the orders of their axes."""
        sizes = _sizes(estimates)
        order = {name: place for place, name in enumerate(sizes)}
        cliques = tuple(tuple(sorted(estimate.clique, key=order.__getitem__)) for estimate in estimates)
        shapes = tuple(tuple(sizes[name] for name in clique) for clique in cliques)
        cells = np.array([math.prod(shape) for shape in shapes], np.int64)
        worth = precisions([estimate.variance for estimate in estimates])
        return cls(cliques, shapes, worth, cells, np.cumsum(cells) - cells)

    def vector(self, estimates: Sequence[Estimate]) -> Vector:
        """The cells of the tables this layout was made for."""
        pairs = zip(self.cliques, estimates, strict=True)
        return np.concatenate([estimate.onto(clique).ravel() for clique, estimate in pairs])

    def tables(self, vector: Vector) -> list[NDArray[np.float64]]:
        """The pieces of a vector; to change one changes the vector."""
        ends = self.starts + self.cells
        places = zip(self.starts.tolist(), ends.tolist(), self.shapes, strict=True)
        return [vector[start:end].reshape(shape) for start, end, shape in places]

    def estimates(self, vector: Vector, like: Sequence[Estimate]) -> list[Estimate]:
        """The pieces of a vector with the axes and variances of the tables this layout was made for."""
        found = []
        for clique, values, old in zip(self.cliques, self.tables(vector), like, strict=True):
            turned = np.transpose(values, [clique.index(name) for name in old.clique])
            found.append(Estimate(old.clique, np.array(turned, order="C"), old.variance))
        return found

    def sums(self, vector: Vector) -> NDArray[np.float64]:
        """The sum over each table."""
        sums: NDArray[np.float64] = np.add.reduceat(vector, self.starts)
        return sums


def _sizes(estimates: Sequence[Estimate]) -> dict[str, int]:
    """The number of values of each attribute, in the order in which they first appear."""
    sizes: dict[str, int] = {}
    for estimate in estimates:
        for name, size in zip(estimate.clique, estimate.values.shape, strict=True):
            if sizes.setdefault(name, size) != size:
                raise InternalError(f"{name} has {sizes[name]} values in one table and {size} in another")
    return sizes
