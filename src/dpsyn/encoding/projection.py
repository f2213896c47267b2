"""Released counts under one recoding, told under a coarser one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding.difference_coding import DifferenceCoding
from dpsyn.encoding.recoding import RecodedColumn, Recoding
from dpsyn.marginals import Clique, Estimate, Marginal


def project_to_recoding(marginal: Marginal, source: Recoding, target: Recoding) -> Estimate | None:
    """What a marginal measured under ``source`` says about the codes of ``target``; None if it says nothing.

    Counts of codes that ``target`` merges are added. The variance is that of a cell with the average number of parts.
    A table of an attribute and of the one that it is expected by tells about its differences too.
    """
    values, shape = marginal.counts, marginal.raw.shape
    values, source = _convert_to_differences(values, marginal.clique, source, target)
    for axis, name in enumerate(marginal.clique):
        codes = _target_codes(source, target, name)
        if codes is None:
            return None
        values = _sum_by_code(values, axis, codes, target.columns[target.index_of(name)].size)
    return Estimate(marginal.clique, values, marginal.std**2 * math.prod(shape) / values.size)


def _target_codes(source: Recoding, target: Recoding, name: str) -> NDArray[np.int64] | None:
    """The target's code for every source code of an attribute; None if that depends on more than the code."""
    if name not in source.names or name not in target.names:
        return None
    mine, theirs = source.columns[source.index_of(name)], target.columns[target.index_of(name)]
    if are_equivalent(mine, theirs):
        return np.arange(mine.size)
    if mine.merged is not None or theirs.merged is not None or mine.sources != theirs.sources or len(mine.sources) > 1:
        return _target_codes_of_joint(mine, theirs)
    if not _same_difference_codings(mine, theirs):
        return None
    codes = np.zeros(mine.size, np.int64)
    codes[mine.tables[0]] = theirs.tables[0]
    return codes if np.array_equal(codes[mine.tables[0]], theirs.tables[0]) else None


def _convert_to_differences(
    values: NDArray[np.float64], clique: Clique, source: Recoding, target: Recoding
) -> tuple[NDArray[np.float64], Recoding]:
    """A table whose attributes are told by fine codes, with those as differences that the target tells so."""
    for axis, name in enumerate(clique):
        place, reference = _missing_difference_coding(name, source, target)
        anchor = next((n for n, c in enumerate(clique) if reference and _fine_index(c, source) == reference.anchor), -1)
        if reference is None or anchor < 0:
            continue
        ahead = np.moveaxis(values, (anchor, axis), (0, 1))
        codes = np.arange(ahead.shape[1])[None, :]
        own = reference.decode(codes, np.arange(ahead.shape[0])[:, None])
        moved = ahead[np.arange(len(ahead))[:, None], own]
        values = np.moveaxis(moved, (0, 1), (anchor, axis))
        source = source.code_differences({place: reference})
    return values, source


def _missing_difference_coding(name: str, source: Recoding, target: Recoding) -> tuple[int, DifferenceCoding | None]:
    """The place of a fine attribute that the target tells as differences and the source by its codes, and how."""
    place = _fine_index(name, source)
    if place is None or place in source.difference_codings:
        return -1, None
    return place, target.difference_codings.get(place)


def _fine_index(name: str, recoding: Recoding) -> int | None:
    """The place of the fine attribute that a recoded one is, code by code; None if it is something else."""
    if name not in recoding.names:
        return None
    column = recoding.columns[recoding.index_of(name)]
    if len(column.sources) > 1 or column.merged is not None:
        return None
    plain = np.array_equal(column.tables[0], np.arange(len(column.tables[0])))
    return column.sources[0] if plain else None


def are_equivalent(one: RecodedColumn, other: RecodedColumn) -> bool:
    """Whether two columns give the same codes, whatever they are called."""
    if (
        one.sources != other.sources
        or (one.merged is None) != (other.merged is None)
        or not _same_difference_codings(one, other)
    ):
        return False
    pairs = list(zip(one.tables, other.tables, strict=True))
    if one.merged is not None and other.merged is not None:
        pairs.append((one.merged, other.merged))
    return all(np.array_equal(mine, theirs) for mine, theirs in pairs)


def _target_codes_of_joint(mine: RecodedColumn, theirs: RecodedColumn) -> NDArray[np.int64] | None:
    """The target's code for every code of a joint attribute, if the target merges what the source keeps apart."""
    same = mine.sources == theirs.sources and mine.radices == theirs.radices and _same_difference_codings(mine, theirs)
    if not same or not all(np.array_equal(*pair) for pair in zip(mine.tables, theirs.tables, strict=True)):
        return None
    fine, coarse = (np.arange(math.prod(c.radices)) if c.merged is None else c.merged for c in (mine, theirs))
    codes = np.zeros(mine.size, np.int64)
    codes[fine] = coarse
    return codes if np.array_equal(codes[fine], coarse) else None


def _same_difference_codings(one: RecodedColumn, other: RecodedColumn) -> bool:
    """Whether two columns of the same sources take codes, or differences from the same, of each."""
    pairs = [(one.difference_coding_of(source), other.difference_coding_of(source)) for source in one.sources]
    return all(mine is theirs or (mine and theirs and mine.is_equivalent(theirs)) for mine, theirs in pairs)


def _sum_by_code(values: NDArray[np.float64], axis: int, codes: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """Slices along an axis added up by their new code."""
    if len(codes) == size and np.array_equal(codes, np.arange(size)):
        return values
    summed = np.zeros((size, *np.delete(values.shape, axis)))
    np.add.at(summed, codes, np.moveaxis(values, axis, 0))
    return np.moveaxis(summed, 0, axis)
