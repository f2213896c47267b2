"""Parquet files, and folders of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pads

from dpsyn.errors import SourceError
from dpsyn.sources.source import BATCH_ROWS, structural

_BROKEN = "a file may be cut off, not be Parquet, or have other columns than the first one"


class ParquetSource:
    """A Parquet file, or all those below a folder; folders named ``key=value`` are columns, as usual."""

    again = True

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        with structural(self.where, _BROKEN):
            self._dataset = pads.dataset(str(path), format="parquet", partitioning="hive")
            self.schema = self._dataset.schema
            self._parts = list(self._dataset.get_fragments())
        if not self._parts:
            raise SourceError(f"{path} holds no Parquet file")
        for part in self._parts:
            self._check_part(part)

    def _check_part(self, part: pads.Fragment) -> None:
        """Refuse a file whose columns differ from the first one's: it would read as nulls or fail midway."""
        with structural(self.where, _BROKEN):
            own = part.physical_schema
        for field in own:
            if self.schema.get_field_index(field.name) < 0 or self.schema.field(field.name).type != field.type:
                raise SourceError(f"{part.path}: column {field.name!r} is not as in the other files of {self.where}")
        partitioned = pads.get_partition_keys(part.partition_expression)
        missing = set(self.schema.names) - set(own.names) - set(partitioned)
        if missing:
            raise SourceError(f"{part.path} has no column {min(missing)!r}, which other files of {self.where} have")

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, file by file."""
        for part in self._parts:
            with structural(self.where, _BROKEN):
                yield from part.to_batches(
                    schema=self.schema,
                    columns=list(columns),
                    batch_size=BATCH_ROWS,
                    batch_readahead=4,
                    fragment_readahead=1,
                )
