"""Released counts under one recoding, told under a coarser one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpsyn.marginals import Estimate, Marginal
from dpsyn.transforms.recoding import RecodedColumn, Recoding


def carried(marginal: Marginal, source: Recoding, target: Recoding) -> Estimate | None:
    """What a marginal measured under ``source`` says about the codes of ``target``; None if it says nothing.

    Counts of codes that ``target`` merges are added. The variance is that of a cell with the average number of parts.
    """
    values, shape = marginal.counts, marginal.raw.shape
    for axis, name in enumerate(marginal.clique):
        codes = _codes_under(source, target, name)
        if codes is None:
            return None
        values = _added(values, axis, codes, target.columns[target.place_of(name)].size)
    return Estimate(marginal.clique, values, marginal.deviation**2 * math.prod(shape) / values.size)


def _codes_under(source: Recoding, target: Recoding, name: str) -> NDArray[np.int64] | None:
    """The target's code for every source code of an attribute; None if that depends on more than the code."""
    if name not in source.names or name not in target.names:
        return None
    mine, theirs = source.columns[source.place_of(name)], target.columns[target.place_of(name)]
    if alike(mine, theirs):
        return np.arange(mine.size)
    if mine.merged is not None or theirs.merged is not None or mine.sources != theirs.sources or len(mine.sources) > 1:
        return None
    codes = np.zeros(mine.size, np.int64)
    codes[mine.tables[0]] = theirs.tables[0]
    return codes if np.array_equal(codes[mine.tables[0]], theirs.tables[0]) else None


def alike(one: RecodedColumn, other: RecodedColumn) -> bool:
    """Whether two columns give the same codes, whatever they are called."""
    if one.sources != other.sources or (one.merged is None) != (other.merged is None):
        return False
    pairs = list(zip(one.tables, other.tables, strict=True))
    if one.merged is not None and other.merged is not None:
        pairs.append((one.merged, other.merged))
    return all(np.array_equal(mine, theirs) for mine, theirs in pairs)


def _added(values: NDArray[np.float64], axis: int, codes: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """Slices along an axis added up by their new code."""
    if len(codes) == size and np.array_equal(codes, np.arange(size)):
        return values
    summed = np.zeros((size, *np.delete(values.shape, axis)))
    np.add.at(summed, codes, np.moveaxis(values, axis, 0))
    return np.moveaxis(summed, 0, axis)
