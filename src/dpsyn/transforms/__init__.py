"""Recodings of tables, from public facts or released numbers only, and of what was measured under them."""

from dpsyn.transforms.bucketize import bucketize
from dpsyn.transforms.carrying import alike, carried
from dpsyn.transforms.compress import Compression, compress
from dpsyn.transforms.expecting import expect_equal, near
from dpsyn.transforms.mapping import learn_mapping
from dpsyn.transforms.recoding import RecodedColumn, Recoding
from dpsyn.transforms.reference import Reference

__all__ = [
    "Compression",
    "RecodedColumn",
    "Recoding",
    "Reference",
    "alike",
    "bucketize",
    "carried",
    "compress",
    "expect_equal",
    "learn_mapping",
    "near",
]
