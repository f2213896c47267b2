"""The steward's own, unpaid look at the data. Everything here is private and says so."""

from dpsyn.diagnose.check import PRIVATE, AttributeFit, Fit, check_table
from dpsyn.diagnose.draft import draft_schema
from dpsyn.diagnose.explore import explore_public

__all__ = ["PRIVATE", "AttributeFit", "Fit", "check_table", "draft_schema", "explore_public"]
