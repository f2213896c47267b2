"""Released marginals under one recoding, projected to a coarser one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding.difference_coding import DifferenceCoding
from dpsyn.encoding.recoding import RecodedColumn, Recoding
from dpsyn.marginals import Clique, Estimate, Marginal


def project_to_recoding(marginal: Marginal, source: Recoding, target: Recoding) -> Estimate | None:
    """Estimate the marginal under ``target`` from one that was measured under ``source``; None if that is impossible.

    Counts of codes that ``target`` merges are added. The variance is that of a cell which is a sum of the average
    number of measured cells. A marginal of an attribute and its anchor also gives counts of differences.
    """
    values, shape = marginal.counts, marginal.raw.shape
    values, source = _convert_to_differences(values, marginal.clique, source, target)
    for axis, name in enumerate(marginal.clique):
        codes = _target_codes(source, target, name)
        if codes is None:
            return None
        values = _sum_by_code(values, axis, codes, target.columns[target.index_of(name)].size)
    return Estimate(marginal.clique, values, marginal.std**2 * math.prod(shape) / values.size)


def project_to_levels(marginal: Marginal, source: Recoding, target: Recoding) -> Estimate | None:
    """The same, also for a marginal that was measured at coarser levels than ``target``; its axes are over groups.

    None if an attribute's codes are neither finer nor coarser than those of ``target``.
    """
    projected = project_to_recoding(marginal, source, target)
    if projected is not None:
        return projected
    values, levels = marginal.counts, {}
    for axis, name in enumerate(marginal.clique):
        codes = _target_codes(source, target, name)
        if codes is not None:
            values = _sum_by_code(values, axis, codes, target.columns[target.index_of(name)].size)
            continue
        groups = _target_codes(target, source, name)
        if groups is None:
            return None
        levels[name] = groups
    return Estimate(marginal.clique, values, marginal.std**2 * marginal.raw.size / values.size, levels)


def _target_codes(source: Recoding, target: Recoding, name: str) -> NDArray[np.int64] | None:
    """The target's code for every source code of an attribute; None if the source code does not determine it."""
    if name not in source.names or name not in target.names:
        return None
    old, new = source.columns[source.index_of(name)], target.columns[target.index_of(name)]
    if are_equivalent(old, new):
        return np.arange(old.size)
    if old.merged is not None or new.merged is not None or old.sources != new.sources or len(old.sources) > 1:
        return _target_codes_of_joint(old, new)
    if not _same_difference_codings(old, new):
        return None
    codes = np.zeros(old.size, np.int64)
    codes[old.tables[0]] = new.tables[0]
    return codes if np.array_equal(codes[old.tables[0]], new.tables[0]) else None


def _convert_to_differences(
    values: NDArray[np.float64], clique: Clique, source: Recoding, target: Recoding
) -> tuple[NDArray[np.float64], Recoding]:
    """Convert the attributes that the target stores as differences from fine codes to differences."""
    for axis, name in enumerate(clique):
        source_index, coding = _missing_difference_coding(name, source, target)
        anchor = next((n for n, c in enumerate(clique) if coding and _fine_index(c, source) == coding.anchor), -1)
        if coding is None or anchor < 0:
            continue
        by_anchor = np.moveaxis(values, (anchor, axis), (0, 1))
        differences = np.arange(by_anchor.shape[1])[None, :]
        codes = coding.decode(differences, np.arange(by_anchor.shape[0])[:, None])
        by_anchor = by_anchor[np.arange(len(by_anchor))[:, None], codes]
        values = np.moveaxis(by_anchor, (0, 1), (anchor, axis))
        source = source.code_differences({source_index: coding})
    return values, source


def _missing_difference_coding(name: str, source: Recoding, target: Recoding) -> tuple[int, DifferenceCoding | None]:
    """The position and the coding of a fine attribute that only the target stores as differences."""
    index = _fine_index(name, source)
    if index is None or index in source.difference_codings:
        return -1, None
    return index, target.difference_codings.get(index)


def _fine_index(name: str, recoding: Recoding) -> int | None:
    """The position of the fine attribute whose codes a recoded attribute keeps unchanged; None if there is none."""
    if name not in recoding.names:
        return None
    column = recoding.columns[recoding.index_of(name)]
    if len(column.sources) > 1 or column.merged is not None:
        return None
    unchanged = np.array_equal(column.tables[0], np.arange(len(column.tables[0])))
    return column.sources[0] if unchanged else None


def are_equivalent(one: RecodedColumn, other: RecodedColumn) -> bool:
    """Whether two columns give the same codes; their names do not matter."""
    if (
        one.sources != other.sources
        or (one.merged is None) != (other.merged is None)
        or not _same_difference_codings(one, other)
    ):
        return False
    pairs = list(zip(one.tables, other.tables, strict=True))
    if one.merged is not None and other.merged is not None:
        pairs.append((one.merged, other.merged))
    return all(np.array_equal(*pair) for pair in pairs)


def _target_codes_of_joint(old: RecodedColumn, new: RecodedColumn) -> NDArray[np.int64] | None:
    """The target's code for every code of a joint attribute; None unless the target only merges codes of the source."""
    same = old.sources == new.sources and old.radices == new.radices and _same_difference_codings(old, new)
    if not same or not all(np.array_equal(*pair) for pair in zip(old.tables, new.tables, strict=True)):
        return None
    fine, coarse = (np.arange(math.prod(c.radices)) if c.merged is None else c.merged for c in (old, new))
    codes = np.zeros(old.size, np.int64)
    codes[fine] = coarse
    return codes if np.array_equal(codes[fine], coarse) else None


def _same_difference_codings(one: RecodedColumn, other: RecodedColumn) -> bool:
    """Whether two columns of the same sources use equivalent difference codings, or none, for every source."""
    pairs = [(one.difference_coding_of(source), other.difference_coding_of(source)) for source in one.sources]
    return all(a is b or (a and b and a.is_equivalent(b)) for a, b in pairs)


def _sum_by_code(values: NDArray[np.float64], axis: int, codes: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """Add up the slices along an axis that have the same new code."""
    if len(codes) == size and np.array_equal(codes, np.arange(size)):
        return values
    summed = np.zeros((size, *np.delete(values.shape, axis)))
    np.add.at(summed, codes, np.moveaxis(values, axis, 0))
    return np.moveaxis(summed, 0, axis)
