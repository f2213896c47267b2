"""Readers of private tables, all as batches: CSV, Parquet, Arrow, frames, DuckDB."""

from dpsyn.sources.encoding import encoded
from dpsyn.sources.opening import open_source
from dpsyn.sources.source import Source

__all__ = ["Source", "encoded", "open_source"]
