"""Readers of private tables as Arrow batches: CSV, Parquet, Arrow, pandas, DuckDB, PostgreSQL, baskets."""

from dpsyn.sources.baskets import open_basket_source
from dpsyn.sources.factory import is_pattern, open_source, read_table
from dpsyn.sources.postgresql import is_postgres_address
from dpsyn.sources.source import BATCH_ROWS, Source, encode_batches, map_in_threads

__all__ = [
    "BATCH_ROWS",
    "Source",
    "encode_batches",
    "is_pattern",
    "is_postgres_address",
    "map_in_threads",
    "open_basket_source",
    "open_source",
    "read_table",
]
