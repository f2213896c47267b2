"""Readers of private tables, all as batches: CSV, Parquet, Arrow, frames, DuckDB, baskets."""

from dpsyn.sources.encoding import encoded, in_threads
from dpsyn.sources.opening import is_pattern, open_source
from dpsyn.sources.postgresql import is_address
from dpsyn.sources.source import BATCH_ROWS, Source
from dpsyn.sources.transactions import open_transactions
from dpsyn.sources.whole import read_table

__all__ = [
    "BATCH_ROWS",
    "Source",
    "encoded",
    "in_threads",
    "is_address",
    "is_pattern",
    "open_source",
    "open_transactions",
    "read_table",
]
