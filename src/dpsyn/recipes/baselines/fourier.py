"""Recipe ``fourier``: Barak et al., *Privacy, Accuracy, and Consistency Too* (PODS 2007). Binary attributes only.

A table of k binary attributes is told by its Fourier coefficients: for every set of up to k attributes, how many rows
have an even number of ones less how many have an odd one. All tables share them. A yardstick for PriView.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from dpsyn.accounting import split_exactly
from dpsyn.encoding import RecodedColumn, Recoding
from dpsyn.errors import UserError
from dpsyn.inference import MeasurementRound, Release
from dpsyn.marginals import Clique, Estimate
from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, ignore_progress
from dpsyn.query import collect_observations, estimate_linear, parity_table
from dpsyn.recipes.base import Measurements
from dpsyn.recipes.one_way import refuse_to_extend
from dpsyn.selection import BlockCapacity, build_covering_design
from dpsyn.synopsis import Synopsis

PARITIES_PER_PASS = 200
"""Parities that are counted at a time: each is a column of every row."""


def fourier(
    table: PrivateTable, *, previous: Synopsis | None = None, progress: Progress = ignore_progress, ways: int = 2
) -> Measurements:
    """Measure the parity of every set of up to ``ways`` attributes, in equal shares.

    Privacy: spends the whole ρ of the budget. A parity is measured as the two counts of even and odd rows, which costs
    √2 of the noise that their difference alone would; the number of rows comes with it.
    """
    refuse_to_extend(previous, "fourier")
    names, ways = table.recoding.names, min(ways, len(table.recoding.names))
    wide = [
        attribute.name for attribute in table.schema.measured_attributes if not attribute.coded or attribute.cells != 2
    ]
    if wide:
        raise UserError(
            f"the recipe 'fourier' is for attributes of two values, but {wide[0]!r} has others; use 'priview'"
        )
    sets = [some for length in range(1, ways + 1) for some in combinations(range(len(names)), length)]
    if 2 * len(sets) > table.noisy_values_left:
        raise UserError(f"there are {len(sets):,} sets of up to {ways} attributes; ask for fewer, such as all:2")
    progress(f"measuring the parity of {len(sets)} sets of up to {ways} attributes", 0.0)
    shares, stages = split_exactly(table.budget.rho, [1] * len(sets)), []
    for start in range(0, len(sets), PARITIES_PER_PASS):
        part = table.recode(_parity_recoding(table.recoding, sets[start : start + PARITIES_PER_PASS]))
        cliques = [(name,) for name in part.recoding.names]
        measured = part.measure(cliques, shares[start : start + PARITIES_PER_PASS])
        stages.append(MeasurementRound(part.recoding, tuple(measured)))
    return Measurements(
        schema=table.schema,
        recoding=table.recoding,
        rounds=tuple(stages),
        row_count=table.public_row_count(),
        tables=tuple(_reconstruct_tables(table.recoding, stages, ways)),
    )


def _parity_recoding(recoding: Recoding, sets: Sequence[tuple[int, ...]]) -> Recoding:
    """A column for each set: whether a row has an even number of ones in it. A set of one is the attribute itself."""
    columns = []
    for some in sets:
        parts = [recoding.columns[place] for place in some]
        name = parts[0].name if len(some) == 1 else f"parity of {', '.join(part.name for part in parts)}"
        sources, tables = tuple(part.sources[0] for part in parts), tuple(part.tables[0] for part in parts)
        merged = None if len(some) == 1 else np.array(parity_table(len(some)), np.int64)
        columns.append(RecodedColumn(name, sources, tables, merged))
    return Recoding(tuple(columns), recoding.origin)


def _reconstruct_tables(recoding: Recoding, rounds: Sequence[MeasurementRound], ways: int) -> Iterable[Estimate]:
    """Tables of ``ways`` attributes that hold every pair, worked out from the coefficients, for a model."""
    release, count = (Release("fourier", tuple(rounds)),), len(recoding.names)
    for block in build_covering_design(
        BlockCapacity(sizes=(2,) * count, max_attributes=ways, max_cells=2**ways), min(2, ways)
    ):
        clique: Clique = tuple(recoding.names[place] for place in block)
        linear = estimate_linear((2,) * len(clique), collect_observations(release, recoding, clique))
        deviation = float(linear.output_stds([None] * len(clique)).ravel()[0])
        yield Estimate(clique, linear.table(), deviation**2)
