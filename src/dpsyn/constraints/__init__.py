"""Enforcement of a schema's rules after the noise: structural zeros, repair of rows, public totals, violations."""

from dpsyn.constraints.repair import repair_rows, require_satisfiable, satisfiable_rows
from dpsyn.constraints.structural_zeros import apply_structural_zeros, build_constraint_factors
from dpsyn.constraints.totals import adjust_rows_to_totals, rake_to_totals
from dpsyn.constraints.violations import count_violations, require_no_violations

__all__ = [
    "adjust_rows_to_totals",
    "apply_structural_zeros",
    "build_constraint_factors",
    "count_violations",
    "rake_to_totals",
    "repair_rows",
    "require_no_violations",
    "require_satisfiable",
    "satisfiable_rows",
]
