"""Recodings of tables, from public facts or released numbers only, and of what was measured under them."""

from dpsyn.transforms.carrying import alike, carried
from dpsyn.transforms.compress import Compression, compress
from dpsyn.transforms.recoding import RecodedColumn, Recoding
from dpsyn.transforms.reference import Reference

__all__ = ["Compression", "RecodedColumn", "Recoding", "Reference", "alike", "carried", "compress"]
