"""Recodings of tables, from public facts or released numbers only."""

from dpsyn.transforms.recoding import RecodedColumn, Recoding

__all__ = ["RecodedColumn", "Recoding"]
