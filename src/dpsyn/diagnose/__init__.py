"""The steward's own, unpaid look at the data. Everything here is private and says so."""

from dpsyn.diagnose.check import PRIVATE_NOTICE, AttributeCheck, SchemaCheck, check_table
from dpsyn.diagnose.draft import draft_schema
from dpsyn.diagnose.exploration import explore_public_data

__all__ = [
    "PRIVATE_NOTICE",
    "AttributeCheck",
    "SchemaCheck",
    "check_table",
    "draft_schema",
    "explore_public_data",
]
