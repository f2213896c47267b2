"""Rules kept in every row: what a model learns of them, cells that can keep them, and values that do."""

from dpsyn.rules.excluding import without_excluded
from dpsyn.rules.factors import factors_of
from dpsyn.rules.keeping import can_keep, keep_rules, require_possible
from dpsyn.rules.totals import moved_to_totals, raked
from dpsyn.rules.violations import require_kept, violations

__all__ = [
    "can_keep",
    "factors_of",
    "keep_rules",
    "moved_to_totals",
    "raked",
    "require_kept",
    "require_possible",
    "violations",
    "without_excluded",
]
