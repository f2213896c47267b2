"""Tools that look at the data without privacy protection, for the data owner only. All output is marked private."""

from dpsyn.diagnose.check import PRIVATE_NOTICE, AttributeCheck, OpenCheck, SchemaCheck, UnitCheck, check_table
from dpsyn.diagnose.draft import draft_schema
from dpsyn.diagnose.exploration import explore_public_data

__all__ = [
    "PRIVATE_NOTICE",
    "AttributeCheck",
    "OpenCheck",
    "SchemaCheck",
    "UnitCheck",
    "check_table",
    "draft_schema",
    "explore_public_data",
]
