"""Baseline ``fourier``: Barak et al., *Privacy, Accuracy, and Consistency Too* (PODS 2007). Binary attributes only.

A table of k binary attributes is determined by its Fourier coefficients: for every set of up to k attributes, the
number of rows with an even number of ones minus the number of rows with an odd one. All tables share them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from dpsyn.accounting import split_exactly
from dpsyn.encoding import RecodedColumn, Recoding
from dpsyn.errors import UserError
from dpsyn.inference import MeasurementRound, PreviousReleases, Release
from dpsyn.marginals import Clique, Estimate
from dpsyn.options import check_options
from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, ignore_progress
from dpsyn.query import collect_observations, estimate_linear, parity_table
from dpsyn.recipes.base import Measurements, refuse_to_extend
from dpsyn.recipes.marginal_recipe import MarginalRecipe
from dpsyn.schema import Schema
from dpsyn.selection import BlockCapacity, build_covering_design

PARITIES_PER_PASS = 200
"""Parities that are counted in one pass: each is a column of every row."""


@dataclass(frozen=True, kw_only=True)
class Fourier(MarginalRecipe):
    """Measure the Fourier coefficients of all tables of a given number of binary attributes.

    >>> Fourier(ways=3).ways
    3

    Attributes:
        ways: k, the number of attributes of the tables.
    """

    name: ClassVar[str] = "fourier"
    summary: ClassVar[str] = "Measures Fourier coefficients of binary attributes (Barak et al., PODS 2007)."
    is_baseline: ClassVar[bool] = True

    ways: int = 2

    def __post_init__(self) -> None:
        check_options(self, ways=1)

    def check(self, schema: Schema, previous: PreviousReleases | None) -> None:
        """Refuse attributes of more than two values, and earlier releases."""
        super().check(schema, previous)
        refuse_to_extend(previous, self.name)
        wide = [a.name for a in schema.modeled_attributes if not a.coded or a.cells != 2]
        if wide:
            raise UserError(f"recipe 'fourier' is for binary attributes, but {wide[0]!r} is not one; use 'priview'")

    def measure(
        self, table: PrivateTable, *, previous: PreviousReleases | None = None, progress: Progress = ignore_progress
    ) -> Measurements:
        """Measure the parity of every set of up to k attributes, with equal parts of the budget.

        Privacy: spends the whole budget: ρ, or ε if it is pure. A parity is measured as the two counts of even and odd
        rows, which costs √2 of the noise that their difference alone would; the number of rows comes with it.
        """
        self.check(table.schema, previous)
        names, ways = table.recoding.names, min(self.ways, len(table.recoding.names))
        subsets = [s for length in range(1, ways + 1) for s in combinations(range(len(names)), length)]
        if 2 * len(subsets) > table.noisy_values_left:
            raise UserError(f"there are {len(subsets):,} sets of up to {ways} attributes; set fewer ways, such as 2")
        progress(f"measuring the parity of {len(subsets)} sets of up to {ways} attributes", 0.0)
        rhos, rounds = split_exactly(table.budget.amount, [1] * len(subsets)), []
        for start in range(0, len(subsets), PARITIES_PER_PASS):
            batch = table.recode(_parity_recoding(table.recoding, subsets[start : start + PARITIES_PER_PASS]))
            cliques = [(name,) for name in batch.recoding.names]
            measured = batch.measure(cliques, rhos[start : start + PARITIES_PER_PASS])
            rounds.append(MeasurementRound(batch.recoding, tuple(measured)))
        return Measurements(
            schema=table.schema,
            recoding=table.recoding,
            rounds=tuple(rounds),
            row_count=table.public_row_count(),
            tables=tuple(_reconstruct_tables(table.recoding, rounds, ways)),
        )

    def planned_shares(self, schema: Schema) -> Sequence[float]:
        """Equal parts for all parities."""
        count = self._count_parities(schema)
        return [1 / count] * count

    def max_passes(self, schema: Schema) -> int:
        """All parities, in batches, and the public row count."""
        return math.ceil(self._count_parities(schema) / PARITIES_PER_PASS) + int(schema.row_count_is_public)

    def _count_parities(self, schema: Schema) -> int:
        count = len(schema.modeled_attributes)
        return sum(math.comb(count, length) for length in range(1, min(self.ways, count) + 1))


def _parity_recoding(recoding: Recoding, subsets: Sequence[tuple[int, ...]]) -> Recoding:
    """One column per set: whether a row has an even number of ones in it. A set of one is the attribute itself."""
    columns = []
    for subset in subsets:
        parts = [recoding.columns[position] for position in subset]
        name = parts[0].name if len(subset) == 1 else f"parity of {', '.join(part.name for part in parts)}"
        sources, tables = tuple(part.sources[0] for part in parts), tuple(part.tables[0] for part in parts)
        merged = None if len(subset) == 1 else np.array(parity_table(len(subset)), np.int64)
        columns.append(RecodedColumn(name, sources, tables, merged))
    return Recoding(tuple(columns), recoding.origin)


def _reconstruct_tables(recoding: Recoding, rounds: Sequence[MeasurementRound], ways: int) -> Iterable[Estimate]:
    """Reconstruct tables that contain every pair from the coefficients; a model follows them."""
    release, count = (Release(tuple(rounds)),), len(recoding.names)
    for block in build_covering_design(
        BlockCapacity(sizes=(2,) * count, max_attributes=ways, max_cells=2**ways), min(2, ways)
    ):
        clique: Clique = tuple(recoding.names[position] for position in block)
        linear = estimate_linear((2,) * len(clique), collect_observations(release, recoding, clique))
        std = float(linear.output_stds([None] * len(clique)).ravel()[0])
        yield Estimate(clique, linear.table(), std**2)
