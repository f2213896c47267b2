"""A simulated table on a fixed grid: distances of other tables from it, and the two baselines of these distances.

Listed values count one by one. Numbers, dates and times are compared over a grid that the simulated rows set: 16 ranges
of about equal mass, and every value that 2 % of the rows have by itself. So a distance means the same at every ε.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding import Codec
from dpsyn.errors import UserError, quote_argument
from dpsyn.schema import Identifier, Ranged, Schema
from dpsyn.simulation import Dependence

if TYPE_CHECKING:
    import pyarrow as pa

DEPENDENCES = {
    "weak": Dependence(communality=0.3, spread=0.8),
    "moderate": Dependence(communality=0.6, spread=1.0),
    "strong": Dependence(communality=0.9, spread=1.25),
}
"""What weak, moderate and strong dependence mean (``simulation/latent_factors.py``).

How much there is to lose grows with two things: how strongly attributes depend on each other, and how many values are
frequent. So a table of weak dependence also has rows that are concentrated on few values, and one of strong dependence
has them spread. Communality alone changes errors little, because recipes measure what is strong. The numbers are such
that real tables lie in between; ``bench/forecast.py`` compares.
"""

GRID_RANGES = 16
"""Ranges of about equal mass into which numbers are divided: what a person distinguishes in a plot."""

GRID_VALUE_SHARE = 0.02
"""A cell with this share of the rows is compared by itself."""

Distances = NDArray[np.float64]

CodeColumns = tuple[NDArray[np.int64], ...]


@dataclass(frozen=True, eq=False)
class SimulatedTable:
    """The rows of a simulated table as codes of the grid.

    Attributes:
        names: the attributes that are compared.
        columns: the codes of each.
        group_of: for each attribute, the code of each cell of the schema; the last code is for cells that no row has.
        codec: how other tables are encoded.
    """

    names: tuple[str, ...]
    columns: CodeColumns
    group_of: CodeColumns
    codec: Codec

    @classmethod
    def of(cls, schema: Schema, table: pa.Table) -> SimulatedTable:
        """The grid of simulated rows; ``schema`` has the values of open attributes."""
        codec = Codec(schema)
        codes = codec.encode(table)
        group_of = tuple(
            _grid(np.bincount(column, minlength=size), ordered=isinstance(attribute, Ranged))
            for column, size, attribute in zip(codes.T, codec.fine_sizes, codec.attributes, strict=True)
        )
        return cls(tuple(codec.names), _apply(group_of, codes.T), group_of, codec)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.columns[0])

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """All pairs of attributes, as positions."""
        return list(combinations(range(len(self.names)), 2))

    def grid_counts(self) -> list[tuple[NDArray[np.float64], bool]]:
        """The number of rows of each code that occurs, and whether codes are ordered, for each attribute."""
        ordered = [isinstance(attribute, Ranged) for attribute in self.codec.attributes]
        return [(np.bincount(c).astype(np.float64), o) for c, o in zip(self.columns, ordered, strict=True)]

    def one_way_counts(self) -> list[NDArray[np.float64]]:
        """The one-way marginals as they are measured: over all listed values, or over the ranges of a number."""
        counts = []
        for (found, ordered), size in zip(self.grid_counts(), self.codec.fine_sizes, strict=True):
            counts.append(found if ordered else np.append(found, np.zeros(max(size - len(found), 0))))
        return counts

    def encode(self, table: pa.Table) -> CodeColumns:
        """The codes of another table."""
        return _apply(self.group_of, self.codec.encode(table).T)

    def one_way_distances(self, columns: CodeColumns) -> Distances:
        """The total variation distance of the one-way marginal of each attribute in another table."""
        return np.array([_distance([own], [other]) for own, other in zip(self.columns, columns, strict=True)])

    def two_way_distances(self, columns: CodeColumns) -> Distances:
        """The total variation distance of the marginal of each pair in another table; one 0 if there is no pair."""
        distances = [_distance([self.columns[a], self.columns[b]], [columns[a], columns[b]]) for a, b in self.pairs]
        return np.array(distances or [0.0])

    @cached_property
    def shuffled_distances(self) -> Distances:
        """Those of the same rows with each column shuffled by itself."""
        random = np.random.default_rng(0)
        return self.two_way_distances(tuple(random.permutation(column) for column in self.columns))

    @cached_property
    def sampling_distances(self) -> Distances:
        """Those of a bootstrap sample of the rows: how far two samples of as many people are apart."""
        return self.two_way_distances(self.bootstrap_sample)

    @cached_property
    def bootstrap_sample(self) -> CodeColumns:
        """A bootstrap sample of the rows."""
        chosen = np.random.default_rng(1).integers(0, self.rows, self.rows)
        return tuple(column[chosen] for column in self.columns)


def _apply(group_of: CodeColumns, columns: Sequence[NDArray[np.int64]] | NDArray[np.int64]) -> CodeColumns:
    return tuple(groups[column] for groups, column in zip(group_of, columns, strict=True))


def _grid(counts: NDArray[np.int64], *, ordered: bool) -> NDArray[np.int64]:
    """The code of each cell: its own, or that of its range. Cells that no row has share the last code."""
    if not ordered:
        return np.where(counts > 0, np.cumsum(counts > 0) - 1, np.count_nonzero(counts)).astype(np.int64)
    total = max(int(counts.sum()), 1)
    quantile = np.minimum((np.cumsum(counts) - counts / 2) * GRID_RANGES / total, GRID_RANGES - 1).astype(np.int64)
    alone = counts >= GRID_VALUE_SHARE * total
    begins = np.ones(len(counts), np.bool_)
    begins[1:] = (np.diff(quantile) > 0) | alone[1:] | alone[:-1]
    return (np.cumsum(begins) - 1).astype(np.int64)


def _distance(own: Sequence[NDArray[np.int64]], other: Sequence[NDArray[np.int64]]) -> float:
    """The total variation distance of two columns, or of two pairs of columns: Σ max(p − q, 0).

    Only cells that the first table has can contribute, so codes that it lacks need not be told apart.
    """
    size = int(max(own[-1].max(initial=0), other[-1].max(initial=0))) + 1
    cells, others = (columns[0] * size + columns[1] if len(columns) > 1 else columns[0] for columns in (own, other))
    counts = np.bincount(cells)
    found = np.bincount(others, minlength=len(counts))[: len(counts)]
    return float(np.maximum(counts / max(len(cells), 1) - found / max(len(others), 1), 0.0).sum())


def scale_distance(distance: Distances, sampling: Distances, factor: float) -> Distances:
    """A distance with ``factor`` times as many rows, without what the smaller number of rows adds to it.

    Independent errors add up by their squares. A distance is never reduced by more than the number of rows explains.
    """
    squared = distance**2 - sampling**2 * (1 - 1 / factor)
    return np.sqrt(np.maximum(squared, distance**2 / factor))


# ── what is simulated of a table ─────────────────────────────────────────────────────────────────────────────


def require_rows(schema: Schema, rows: int | None) -> int:
    """The number of rows that is given or public; a UserError if there is none."""
    size = schema.expected_size if rows is None else rows
    if size is None:
        raise UserError(
            "the schema has no expected_size, without which noise cannot be compared with rows; write it into the "
            "schema, or give the rows you expect, such as rows=50000 or --rows 50000"
        )
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise UserError(f"rows is {quote_argument(rows)}; give a whole number, 1 or more")
    return size


def reduce_schema(schema: Schema, named: frozenset[str], max_attributes: int) -> Schema:
    """A schema of at most so many measured attributes, evenly chosen; those that are named stay in any case.

    Constraints and derivations stay if all their attributes do.
    """
    measured = [attribute.name for attribute in schema.measured_attributes]
    if len(schema.modeled_attributes) <= max_attributes:
        return schema
    others = [name for name in measured if name not in named]
    wanted = max(max_attributes - (len(measured) - len(others)), 0)
    chosen = {others[index] for index in np.linspace(0, len(others) - 1, wanted).astype(int)} if wanted else set()
    kept = chosen | named | {a.name for a in schema if isinstance(a, Identifier)}
    derive = tuple(each for each in schema.derive if each.source in kept)
    kept |= {each.name for each in derive}
    return msgspec.structs.replace(
        schema,
        attributes=tuple(attribute for attribute in schema if attribute.name in kept),
        derive=derive,
        rules=tuple(rule for rule in schema.rules if {*rule.mentions()} <= kept),
        measure_together=tuple(group for group in schema.measure_together if {*group.attributes} <= kept),
        groups=(),
    )
