"""Parquet files, and folders of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as papq

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
        self.bytes: int | None = sum(Path(part.path).stat().st_size for part in self._parts)

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
            folders = pads.get_partition_keys(part.partition_expression)
            stored = [name for name in columns if name not in folders]
            with structural(self.where, _BROKEN), _open(part.path) as file:
                for batch in file.iter_batches(BATCH_ROWS, columns=stored):
                    arrays = [self._column(name, batch, folders) for name in columns]
                    yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _column(self, name: str, batch: pa.RecordBatch, folders: dict[str, Any]) -> pa.Array:
        """A column of the file, or the name of its folder, which is the same in every row."""
        if name not in folders:
            return batch.column(name)
        return pa.repeat(pa.scalar(folders[name], self.schema.field(name).type), batch.num_rows)


def _open(path: str) -> papq.ParquetFile:
    """A file that is read through a small window; Arrow would otherwise hold whole groups of rows in memory."""
    return papq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
