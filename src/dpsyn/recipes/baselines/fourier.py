"""Baseline ``fourier``: Barak et al., *Privacy, Accuracy, and Consistency Too* (PODS 2007). Binary attributes only.

A table of k binary attributes is determined by its Fourier coefficients: for every set of up to k attributes, the
number of rows with an even number of ones minus the number of rows with an odd one. All tables share them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from dpsyn.encoding import Recoding
from dpsyn.errors import UserError
from dpsyn.inference import FOURIER_COEFFICIENT, PreviousReleases, Release, Scores
from dpsyn.marginals import Clique, Estimate
from dpsyn.options import check_options
from dpsyn.private import MAX_COUNTED_CELLS, PrivateTable, ReleaseLimits
from dpsyn.progress import Progress, ignore_progress
from dpsyn.query import collect_observations, estimate_linear
from dpsyn.recipes.base import Measurements, refuse_to_extend
from dpsyn.recipes.marginal_recipe import MarginalRecipe
from dpsyn.schema import Schema
from dpsyn.selection import BlockCapacity, build_covering_design


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
        if schema.measure_together:
            raise UserError("recipe 'fourier' is for binary attributes, but some are measured together; use 'priview'")

        count = self._count_coefficients(schema)
        if count > ReleaseLimits().max_noisy_values:
            raise UserError(f"there are {count:,} sets of up to {self.ways} attributes; set fewer ways, such as 2")

    def measure(
        self, table: PrivateTable, *, previous: PreviousReleases | None = None, progress: Progress = ignore_progress
    ) -> Measurements:
        """Measure the coefficient of every set of up to k attributes, all with the same noise.

        Privacy: spends the whole budget: ρ, or ε if it is pure, on the differences themselves, as the paper has it.
        """
        self.check(table.schema, previous)
        ways = min(self.ways, len(table.recoding.names))
        progress(f"measuring the coefficients of all sets of up to {ways} attributes", 0.0)
        cliques, noisy = table.measure_fourier(ways, table.budget.amount)
        coefficients = Scores(FOURIER_COEFFICIENT, cliques, noisy.values, noisy.std)
        return Measurements(
            schema=table.schema,
            recoding=table.recoding,
            rounds=(),
            scores=(coefficients,),
            row_count=table.public_row_count(),
            tables=tuple(_reconstruct_tables(table.recoding, coefficients, ways)),
        )

    def planned_shares(self, schema: Schema) -> Sequence[float]:
        """Equal parts for all coefficients."""
        count = self._count_coefficients(schema)
        return [1 / count] * count

    def max_passes(self, schema: Schema) -> int:
        """All coefficients, from marginals of k attributes, and the public row count."""
        count = len(schema.modeled_attributes)
        cells = math.comb(count, min(self.ways, count)) << min(self.ways, count)
        return math.ceil(2 * cells / MAX_COUNTED_CELLS) + int(schema.row_count_is_public)

    def _count_coefficients(self, schema: Schema) -> int:
        count = len(schema.modeled_attributes)
        return sum(math.comb(count, length) for length in range(min(self.ways, count) + 1))


def _reconstruct_tables(recoding: Recoding, coefficients: Scores, ways: int) -> Iterable[Estimate]:
    """Reconstruct tables that contain every pair from the coefficients; a model follows them."""
    release, count = (Release((), (coefficients,)),), len(recoding.names)
    for block in build_covering_design(
        BlockCapacity(sizes=(2,) * count, max_attributes=ways, max_cells=2**ways), min(2, ways)
    ):
        clique: Clique = tuple(recoding.names[position] for position in block)
        linear = estimate_linear((2,) * len(clique), collect_observations(release, recoding, clique))
        std = float(linear.output_stds([None] * len(clique)).ravel()[0])
        yield Estimate(clique, linear.table(), std**2)
