"""Rare values merged into one, by their released counts (PrivSyn, section 4.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.records import Grouping


@dataclass(frozen=True, slots=True, eq=False)
class Compression:
    """How the values of an attribute are merged.

    Attributes:
        grouping: frequent values keep a code of their own, in their order; all others share the last one.
        zeroed: whether the others are so rare together that their code counts as empty.
    """

    grouping: Grouping
    zeroed: bool


def compress(counts: NDArray[np.float64], threshold: float) -> Compression:
    """Keep the values whose noisy count reaches a threshold; merge the others.

    The others are summed; if the sum does not reach the threshold either, it counts as 0. Every value keeps a code, so
    that every row has one. An attribute without any frequent value becomes a single code, which holds all rows.
    """
    frequent = counts >= threshold
    rank = np.cumsum(frequent) - 1
    codes = np.where(frequent, rank, np.count_nonzero(frequent))
    rare_sum = float(counts[~frequent].sum())
    zeroed = bool(frequent.any() and not frequent.all() and rare_sum < threshold)
    return Compression(Grouping(codes.astype(np.int64)), zeroed)
