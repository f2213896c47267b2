"""What is known about combinations of values without measuring them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.marginals.marginal import Clique


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """By how much rules lower the likelihood of each combination of codes.

    Attributes:
        clique: the attributes, one axis each.
        shares: the part of what a combination stands for that keeps the rules; 0 where nothing of it does.
    """

    clique: Clique
    shares: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.shares.ndim != len(self.clique) or not ((self.shares >= 0) & (self.shares <= 1)).all():
            raise InternalError(f"the factor of {', '.join(self.clique)} is not a table of shares")
        self.shares.setflags(write=False)
