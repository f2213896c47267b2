"""Arrow tables: files, tables in memory, and anything that offers Arrow's C stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc as paipc

from dpsyn.errors import SourceError
from dpsyn.sources.source import BATCH_ROWS, structural


class ArrowFileSource:
    """An Arrow IPC file, in the file or the stream format."""

    again = True

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        self.bytes: int | None = path.stat().st_size
        self._path = path
        with structural(self.where, "it may be cut off, or not be an Arrow file"), self._open() as stream:
            self.schema = self._reader(stream).schema

    def _open(self) -> pa.NativeFile:
        return pa.OSFile(str(self._path))

    def _reader(self, stream: pa.NativeFile) -> Any:
        try:
            return paipc.open_file(stream)
        except pa.ArrowInvalid:
            stream.seek(0)
            return paipc.open_stream(stream)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, as the file groups them."""
        with structural(self.where, "it may be cut off, or not be an Arrow file"), self._open() as stream:
            reader = self._reader(stream)
            if isinstance(reader, paipc.RecordBatchFileReader):
                found: Any = (reader.get_batch(index) for index in range(reader.num_record_batches))
            else:
                found = reader
            for batch in found:
                yield batch.select(list(columns))


class StreamSource:
    """Anything that offers Arrow's C stream: Arrow tables, polars frames, DuckDB relations, readers."""

    bytes: int | None = None

    def __init__(self, data: Any) -> None:
        self.where = f"the given {type(data).__name__}"
        self._data = data
        self.again = not isinstance(data, pa.RecordBatchReader)
        self._first: pa.RecordBatchReader | None = self._stream()
        self.schema = self._first.schema

    def _stream(self) -> pa.RecordBatchReader:
        if isinstance(self._data, pa.RecordBatchReader):
            return self._data
        with structural(self.where, "it does not offer rows as Arrow batches"):
            if isinstance(self._data, pa.Table):
                return self._data.to_reader(max_chunksize=BATCH_ROWS)
            return pa.RecordBatchReader.from_stream(self._data)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, as the stream groups them."""
        stream, self._first = self._first, None
        if stream is None:
            if not self.again:
                raise SourceError(f"{self.where} can be read only once; give a table or a file")
            stream = self._stream()
        with structural(self.where, "the stream broke off"):
            for batch in stream:
                yield batch.select(list(columns))
