"""The first step of recipes that measure large tables: values bought and merged where that is needed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpsyn.accounting import exact, split
from dpsyn.errors import UserError
from dpsyn.private import PrivateTable
from dpsyn.recipes.compressing import compressed
from dpsyn.recipes.singles import measure_singles
from dpsyn.schema import Open
from dpsyn.synopsis import Release, Stage, Synopsis, estimated_rows, single_estimate

FOR_SINGLES = 0.15
"""The part of ρ for every attribute by itself, where that is needed."""

FOR_COUNT = 0.01
"""The part of ρ for a first count of the rows, where their number is not known at all."""

FEW_VALUES = 16
"""Attributes of more values are measured by themselves first, so that rare values can be merged."""

RARE = 3.0
"""Values with a noisy count below so many standard deviations are merged."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A table whose attributes are ready to be measured together.

    Attributes:
        table: the table, recoded.
        stages: what was measured so far.
        zeroed: attributes whose last code counts as empty.
        rows: about how many rows there are; public, or bought.
        left: the ρ that is left.
    """

    table: PrivateTable
    stages: tuple[Stage, ...]
    zeroed: frozenset[str]
    rows: float
    left: Fraction


def prepare(table: PrivateTable, before: Synopsis | None = None) -> Prepared:
    """Measure attributes by themselves if values must be bought, merged or told apart within bins; else little.

    Privacy: spends a part of ρ, and the δ for thresholds if there are open attributes.
    """
    attributes = table.schema.measured
    needed = any(isinstance(a, Open) or a.cells > a.size or a.size > FEW_VALUES for a in attributes)
    known = table.public_rows() or table.schema.expected_size
    share = FOR_SINGLES if needed else 0.0 if known else FOR_COUNT
    first, left = split(table.budget.rho, [exact(share), 1 - exact(share)])
    if needed:
        table, stages = measure_singles(table, first)
        recoding, zeroed = compressed(table, stages, before, rare=RARE)
        table = table.recode(recoding)
    else:
        table = table.recode(before.model.recoding) if before else table
        smallest = min(zip(table.recoding.sizes, table.recoding.names, strict=True))[1]
        stages = (Stage(table.recoding, tuple(table.measure([(smallest,)], [first]))),) if first else ()
        zeroed = frozenset()
    return Prepared(table, stages, zeroed, max(known or _estimated(stages, table), 1.0), left)


def _estimated(stages: tuple[Stage, ...], table: PrivateTable) -> float:
    """The number of rows as the tables measured so far tell it."""
    release = [Release("", stages)]
    measured = {marginal.clique[0] for stage in stages for marginal in stage.marginals}
    told = [single_estimate(release, table.recoding, name) for name in table.recoding.names if name in measured]
    return estimated_rows(told)


def refuse_to_extend(before: Synopsis | None, recipe: str) -> None:
    """Say that a recipe makes a model of its own, which earlier releases have no part in."""
    if before is not None:
        raise UserError(f"the recipe {recipe!r} cannot extend a synopsis; use another, such as 'dpsyn'")
