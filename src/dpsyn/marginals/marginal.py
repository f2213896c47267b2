"""Marginals: tables of noisy counts as they were released."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError

Clique = tuple[str, ...]
"""The attributes of a marginal, one per axis."""


@dataclass(frozen=True, slots=True, eq=False)
class Marginal:
    """A noisy table of counts over a few attributes, as it was released.

    Attributes:
        clique: the attributes, one per axis.
        raw: the released integers; the counts are these times 2^−lattice.
        lattice: the exponent of the lattice on which noise is sampled; 0 gives whole counts.
        std: the standard deviation of the noise of each cell, in counts.
    """

    clique: Clique
    raw: NDArray[np.int64]
    lattice: int
    std: float

    def __post_init__(self) -> None:
        if self.raw.ndim != len(self.clique):
            raise InternalError(f"a marginal of {len(self.clique)} attributes has {self.raw.ndim} axes")
        self.raw.setflags(write=False)

    @property
    def counts(self) -> NDArray[np.float64]:
        """The noisy counts: ``raw`` · 2^−``lattice``."""
        return self.raw / np.float64(2**self.lattice)
