"""Counts worked out from released ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.marginals.marginal import Clique, Marginal


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """A table of counts over a few attributes that post-processing made: averaged, merged, consistent, non-negative.

    Attributes:
        clique: the attributes, one per axis.
        values: the counts; not whole numbers in general.
        variance: of the noise in each cell as it was measured; how much the table is worth beside others.
    """

    clique: Clique
    values: NDArray[np.float64]
    variance: float

    def __post_init__(self) -> None:
        if self.values.ndim != len(self.clique) or len(set(self.clique)) < len(self.clique):
            raise InternalError(f"a table of {len(self.clique)} attributes has {self.values.ndim} axes")
        if not self.variance >= 0:
            raise InternalError(f"the variance of a table is {self.variance}")
        self.values.setflags(write=False)

    @classmethod
    def of(cls, marginal: Marginal) -> Estimate:
        """What a released marginal says by itself."""
        return cls(marginal.clique, marginal.counts, marginal.deviation**2)

    @property
    def total(self) -> float:
        """The sum of all counts."""
        return float(self.values.sum())

    def onto(self, attributes: Sequence[str]) -> NDArray[np.float64]:
        """The counts over some of the attributes, in the order given."""
        gone = tuple(axis for axis, name in enumerate(self.clique) if name not in attributes)
        kept = [name for name in self.clique if name in attributes]
        summed = self.values.sum(axis=gone)
        projected: NDArray[np.float64] = np.transpose(summed, [kept.index(name) for name in attributes])
        return projected
