"""Integer-coded rows: tables to codes and back."""

from dpsyn.records.codec import Codec, Codes, check_structure, even_weights, structural_problems
from dpsyn.records.columns import (
    ABOVE,
    BELOW,
    EMPTY,
    FOUND,
    MISSING_STEP,
    UNREADABLE,
    Column,
    RangedColumn,
    Reading,
    column_for,
    narrowest,
)
from dpsyn.records.grouping import Grouping
from dpsyn.records.writers import write_table

__all__ = [
    "ABOVE",
    "BELOW",
    "EMPTY",
    "FOUND",
    "MISSING_STEP",
    "UNREADABLE",
    "Codec",
    "Codes",
    "Column",
    "Grouping",
    "RangedColumn",
    "Reading",
    "check_structure",
    "column_for",
    "even_weights",
    "narrowest",
    "structural_problems",
    "write_table",
]
