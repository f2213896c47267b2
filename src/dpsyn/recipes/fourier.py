"""Recipe ``fourier``: Barak et al., *Privacy, Accuracy, and Consistency Too* (PODS 2007). Binary attributes only.

A table of k binary attributes is told by its Fourier coefficients: for every set of up to k attributes, how many rows
have an even number of ones less how many have an odd one. All tables share them. A yardstick for PriView.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from dpsyn.accounting import split
from dpsyn.errors import UserError
from dpsyn.marginals import Clique, Estimate
from dpsyn.private import PrivateTable
from dpsyn.progress import Progress, silent
from dpsyn.recipes.preparing import refuse_to_extend
from dpsyn.recipes.recipe import Findings
from dpsyn.selection import Room, covering_design
from dpsyn.synopsis import Release, Stage, Synopsis
from dpsyn.synopsis.answering import linear_estimate, observed, parities
from dpsyn.transforms import RecodedColumn, Recoding

TOGETHER = 200
"""Parities that are counted at a time: each is a column of every row."""


def fourier(
    table: PrivateTable, *, before: Synopsis | None = None, progress: Progress = silent, ways: int = 2
) -> Findings:
    """Measure the parity of every set of up to ``ways`` attributes, in equal shares.

    Privacy: spends the whole ρ of the budget. A parity is measured as the two counts of even and odd rows, which costs
    √2 of the noise that their difference alone would; the number of rows comes with it.
    """
    refuse_to_extend(before, "fourier")
    names, ways = table.recoding.names, min(ways, len(table.recoding.names))
    wide = [attribute.name for attribute in table.schema.measured if not attribute.coded or attribute.cells != 2]
    if wide:
        raise UserError(
            f"the recipe 'fourier' is for attributes of two values, but {wide[0]!r} has others; use 'priview'"
        )
    sets = [some for length in range(1, ways + 1) for some in combinations(range(len(names)), length)]
    if 2 * len(sets) > table.draws_left:
        raise UserError(f"there are {len(sets):,} sets of up to {ways} attributes; ask for fewer, such as all:2")
    progress(f"measuring the parity of {len(sets)} sets of up to {ways} attributes", 0.0)
    shares, stages = split(table.budget.rho, [1] * len(sets)), []
    for start in range(0, len(sets), TOGETHER):
        part = table.recode(_parity_recoding(table.recoding, sets[start : start + TOGETHER]))
        cliques = [(name,) for name in part.recoding.names]
        measured = part.measure(cliques, shares[start : start + TOGETHER])
        stages.append(Stage(part.recoding, tuple(measured)))
    return Findings(
        schema=table.schema,
        recoding=table.recoding,
        stages=tuple(stages),
        rows=table.public_rows(),
        tables=tuple(_tables(table.recoding, stages, ways)),
    )


def _parity_recoding(recoding: Recoding, sets: Sequence[tuple[int, ...]]) -> Recoding:
    """A column for each set: whether a row has an even number of ones in it. A set of one is the attribute itself."""
    columns = []
    for some in sets:
        parts = [recoding.columns[place] for place in some]
        name = parts[0].name if len(some) == 1 else f"parity of {', '.join(part.name for part in parts)}"
        sources, tables = tuple(part.sources[0] for part in parts), tuple(part.tables[0] for part in parts)
        merged = None if len(some) == 1 else np.array(parities(len(some)), np.int64)
        columns.append(RecodedColumn(name, sources, tables, merged))
    return Recoding(tuple(columns), recoding.origin)


def _tables(recoding: Recoding, stages: Sequence[Stage], ways: int) -> Iterable[Estimate]:
    """Tables of ``ways`` attributes that hold every pair, worked out from the coefficients, for a model."""
    release, count = (Release("fourier", tuple(stages)),), len(recoding.names)
    for block in covering_design(Room(sizes=(2,) * count, attributes=ways, cells=2**ways), min(2, ways)):
        clique: Clique = tuple(recoding.names[place] for place in block)
        linear = linear_estimate((2,) * len(clique), observed(release, recoding, clique))
        deviation = float(linear.deviations([None] * len(clique)).ravel()[0])
        yield Estimate(clique, linear.table(), deviation**2)
