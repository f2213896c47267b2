"""Readers of private tables as Arrow batches: CSV, Parquet, Arrow, pandas, DuckDB, PostgreSQL, baskets."""

from dpsyn.sources.addresses import is_postgres_address, redact_address
from dpsyn.sources.baskets import has_basket_ids, open_basket_source
from dpsyn.sources.csv import find_invalid_text, start_of_text
from dpsyn.sources.declared import follow_schema, open_declared
from dpsyn.sources.factory import is_pattern, open_source, read_table
from dpsyn.sources.files import describe_irregular_lines, is_same_table, list_table_files
from dpsyn.sources.source import (
    BATCH_ROWS,
    Protect,
    QueryAnswer,
    Source,
    check_protect,
    encode_batches,
    find_assumptions,
    map_in_threads,
    query_answer,
    require_unchanged,
    source_identity,
)

__all__ = [
    "BATCH_ROWS",
    "Protect",
    "QueryAnswer",
    "Source",
    "check_protect",
    "describe_irregular_lines",
    "encode_batches",
    "find_assumptions",
    "find_invalid_text",
    "follow_schema",
    "has_basket_ids",
    "is_pattern",
    "is_postgres_address",
    "is_same_table",
    "list_table_files",
    "map_in_threads",
    "open_basket_source",
    "open_declared",
    "open_source",
    "query_answer",
    "read_table",
    "redact_address",
    "require_unchanged",
    "source_identity",
    "start_of_text",
]
