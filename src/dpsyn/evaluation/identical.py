"""Rows of a synthetic table that a real table has as well: a description, not the privacy guarantee."""

from __future__ import annotations

from dpsyn.evaluation.results import Figure, IdenticalRows
from dpsyn.evaluation.rows import shared
from dpsyn.evaluation.tables import Comparison


def identical_rows(comparison: Comparison) -> IdenticalRows:
    """Rows that agree with some real row in all compared attributes, number for number."""
    real, synthetic, _, independent = comparison.exact.tables
    equal, by_chance = (shared(real, table, comparison.exact.sizes) for table in (synthetic, independent))
    share = Figure(synthetic=float(equal.mean()), floor=1.0, independent=float(by_chance.mean()))
    return IdenticalRows(count=int(equal.sum()), share=share)
