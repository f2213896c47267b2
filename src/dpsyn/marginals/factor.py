"""Factors: public knowledge about combinations of values that needs no measurement, such as structural zeros."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.marginals.marginal import Clique


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """The share of each combination of codes that the constraints allow.

    A code may stand for several values, for example the dates of a month. So a combination can be partly allowed.

    Attributes:
        clique: the attributes, one per axis.
        shares: for each combination, the share of its values that satisfy the constraints, from 0 (a structural zero)
            to 1.
    """

    clique: Clique
    shares: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.shares.ndim != len(self.clique) or not ((self.shares >= 0) & (self.shares <= 1)).all():
            raise InternalError(
                f"the factor of {', '.join(self.clique)} must have one axis per attribute and shares from 0 to 1"
            )
        self.shares.setflags(write=False)
