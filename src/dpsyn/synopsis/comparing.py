"""Synthetic rows beside the released marginals.

Privacy: post-processing. Nothing here can reach a private row: it is given a synopsis and synthetic rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.errors import UserError
from dpsyn.records import Codec, Codes, Grouping, check_structure
from dpsyn.records.folding import Folding, fold
from dpsyn.records.tally import Tally
from dpsyn.schema import Attribute
from dpsyn.synopsis.closeness import (
    AttributeCloseness,
    Closeness,
    Gap,
    MarginalCloseness,
    PairCloseness,
    PairShares,
)
from dpsyn.synopsis.labels import labels_of
from dpsyn.synopsis.parts import Stage
from dpsyn.synopsis.synopsis import Synopsis
from dpsyn.transforms import RecodedColumn

WORST_PAIRS = 8
"""Pairs whose marginals are told in full: as many as somebody looks at."""

MOST_LABELS = 100
"""Labels of one attribute that are told apart."""

MOST_LINES = 40
"""Labels of an attribute in a table of two."""

_MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
"""Of a normal variable with standard deviation 1."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class _Beside:
    """A released table and that of the synthetic rows, both in rows of the private table.

    Attributes:
        columns: one for each axis.
        released: noisy counts.
        deviation: the standard deviation of the noise in each.
        synthetic: the counts of the synthetic rows, scaled to the estimated number of rows.
    """

    columns: tuple[RecodedColumn, ...]
    released: Numbers
    deviation: Numbers
    synthetic: Numbers

    @property
    def clique(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def onto(self, axes: Sequence[int]) -> _Beside:
        """The tables summed over all other axes."""
        gone = tuple(axis for axis in range(len(self.columns)) if axis not in axes)
        return _Beside(
            tuple(self.columns[axis] for axis in axes),
            self.released.sum(axis=gone),
            np.sqrt((self.deviation**2).sum(axis=gone)),
            self.synthetic.sum(axis=gone),
        )

    def merged(self, column: RecodedColumn, grouping: Grouping) -> _Beside:
        """The table of one attribute in coarser codes."""
        return _Beside(
            (column,),
            grouping.sums(self.released),
            np.sqrt(grouping.sums(self.deviation**2)),
            grouping.sums(self.synthetic),
        )

    def gap(self, total: float) -> Gap:
        axes = range(len(self.columns))
        shares = [self.synthetic.sum(axis=tuple(set(axes) - {axis})) / total for axis in axes]
        independent = total * reduce(np.multiply.outer, shares)
        return Gap(
            distance=float(np.abs(self.synthetic - self.released).sum()) / (2 * total),
            noise=_MEAN_ABSOLUTE * float(self.deviation.sum()) / (2 * total),
            independent=float(np.abs(independent - self.released).sum()) / (2 * total),
        )


def compare_rows(synopsis: Synopsis, table: pa.Table) -> Closeness:
    """Compare synthetic rows with every released marginal; no rows at all are as far from it as can be.

    Args:
        synopsis: what was released.
        table: synthetic rows, as an Arrow table with the schema's columns.

    Privacy: free. It sees nothing but what was released and the rows it is given, which must be synthetic.
    """
    if not isinstance(table, pa.Table):
        raise UserError(f"a {type(table).__name__} is not an Arrow table; dpsyn.read_table makes one of it")
    codec = Codec(synopsis.schema)
    fine = _fine_codes(codec, table)
    total = max(synopsis.model.total, 1.0)
    stages = [stage for release in synopsis.releases for stage in release.stages]
    tables = [beside for stage in stages for beside in _beside(stage, fine, total)]
    singles = _singles(tables, codec)
    pairs = _pairs(tables, total)
    return Closeness(
        rows=len(fine),
        released_rows=synopsis.rows,
        marginals=tuple(_marginal(beside, total) for beside in tables),
        attributes=tuple(_attribute(beside, codec.attributes, total) for beside in singles),
        pairs=tuple(PairCloseness(first=b.clique[0], second=b.clique[1], gap=gap) for b, gap in pairs),
        worst_pairs=tuple(
            _pair_shares(beside, codec.attributes, total)
            for beside, _ in sorted(pairs, key=lambda pair: -pair[1].beyond)[:WORST_PAIRS]
        ),
    )


def _fine_codes(codec: Codec, table: pa.Table) -> Codes:
    schema = msgspec.structs.replace(codec.schema, unit=None)  # a synthetic table has no persons
    check_structure(schema, table.schema, "the synthetic table")
    return codec.encode(table)


def _beside(stage: Stage, fine: Codes, total: float) -> Iterator[_Beside]:
    """Every marginal of a stage beside the rows' own counts."""
    places = {name: place for place, name in enumerate(stage.recoding.names)}
    tally = Tally([tuple(places[name] for name in m.clique) for m in stage.marginals], stage.recoding.sizes)
    tally.add(stage.recoding.apply(fine))
    for marginal, counts in zip(stage.marginals, tally.tables(), strict=True):
        yield _Beside(
            tuple(stage.recoding.columns[places[name]] for name in marginal.clique),
            marginal.counts,
            np.full(counts.shape, marginal.deviation),
            counts.astype(np.float64) * (total / max(len(fine), 1)),
        )


def _marginal(beside: _Beside, total: float) -> MarginalCloseness:
    deviation = float(beside.deviation.flat[0])
    squared = float(np.mean((beside.synthetic - beside.released) ** 2))
    return MarginalCloseness(
        clique=beside.clique,
        cells=beside.released.size,
        deviation=deviation,
        gap=beside.gap(total),
        off=math.sqrt(squared) / max(deviation, 1e-9),
    )


# ── attributes ───────────────────────────────────────────────────────────────────────────────────────────────


def _singles(tables: Sequence[_Beside], codec: Codec) -> list[_Beside]:
    """One table for each attribute of which something was released, over bins where possible, the least noisy."""
    found: dict[str, _Beside] = {}
    for beside in tables:
        for axis, name in enumerate(beside.clique):
            single = _over_bins(beside.onto([axis]), codec)
            if name not in found or _trust(single, codec) > _trust(found[name], codec):
                found[name] = single
    order = {name: place for place, name in enumerate(codec.names)}
    return sorted(found.values(), key=lambda single: order.get(single.clique[0], len(order)))


def _trust(single: _Beside, codec: Codec) -> tuple[bool, float]:
    """By which of two tables is preferred: one over bins, then the one with less noise."""
    return _is_over_bins(single.columns[0], codec), -float(single.deviation.sum())


def _is_over_bins(column: RecodedColumn, codec: Codec) -> bool:
    if len(column.sources) > 1 or column.merged is not None or column.references:
        return False
    return np.array_equal(column.tables[0], codec.groupings[column.sources[0]].group_of)


def _over_bins(single: _Beside, codec: Codec) -> _Beside:
    """The table over the schema's bins if it is finer than they are, else as it is."""
    column = single.columns[0]
    if len(column.sources) > 1 or column.merged is not None or column.references:
        return single
    bin_of_cell, code_of_cell = codec.groupings[column.sources[0]].group_of, column.tables[0]
    bin_of_code = np.zeros(column.size, np.int64)
    bin_of_code[code_of_cell] = bin_of_cell
    if not np.array_equal(bin_of_code[code_of_cell], bin_of_cell):
        return single
    grouping = Grouping(bin_of_code)
    return single.merged(column.regrouped(grouping), grouping)


def _attribute(single: _Beside, attributes: Sequence[Attribute], total: float) -> AttributeCloseness:
    column = single.columns[0]
    folding = fold(labels_of(column, attributes), np.maximum(single.released, single.synthetic), MOST_LABELS)
    return AttributeCloseness(
        name=column.name,
        kind=attributes[column.sources[0]].kind if len(column.sources) == 1 else "joint",
        gap=single.gap(total),
        labels=folding.labels,
        folded=folding.folded,
        released=tuple((folding.sums(single.released) / total).tolist()),
        deviation=tuple((np.sqrt(folding.sums(single.deviation**2)) / total).tolist()),
        synthetic=tuple((folding.sums(single.synthetic) / total).tolist()),
    )


# ── pairs ────────────────────────────────────────────────────────────────────────────────────────────────────


def _pairs(tables: Sequence[_Beside], total: float) -> list[tuple[_Beside, Gap]]:
    """For each pair of which something was released its least noisy table, and how far that is off."""
    found: dict[frozenset[str], tuple[_Beside, Gap]] = {}
    for beside in tables:
        for axes in combinations(range(len(beside.columns)), 2):
            pair = beside.onto(axes)
            gap, names = pair.gap(total), frozenset(pair.clique)
            if names not in found or gap.noise < found[names][1].noise:
                found[names] = pair, gap
    return list(found.values())


def _pair_shares(pair: _Beside, attributes: Sequence[Attribute], total: float) -> PairShares:
    weights = np.maximum(pair.released, pair.synthetic)
    lines, columns = (
        fold(labels_of(column, attributes), weights.sum(axis=1 - axis), MOST_LINES)
        for axis, column in enumerate(pair.columns)
    )
    return PairShares(
        first=pair.clique[0],
        second=pair.clique[1],
        first_labels=lines.labels,
        second_labels=columns.labels,
        deviation=float(pair.deviation.flat[0]) / total,
        released=_folded(pair.released / total, lines, columns),
        synthetic=_folded(pair.synthetic / total, lines, columns),
    )


def _folded(table: Numbers, lines: Folding, columns: Folding) -> tuple[tuple[float, ...], ...]:
    shown = np.zeros((len(lines.labels), len(columns.labels)))
    np.add.at(shown, (lines.place_of_code[:, None], columns.place_of_code[None, :]), table)
    return tuple(map(tuple, shown.tolist()))
