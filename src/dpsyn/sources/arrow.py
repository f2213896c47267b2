"""Arrow tables: files, tables in memory, and anything that offers Arrow's C stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc as paipc

from dpsyn.errors import SourceError
from dpsyn.sources.pieces import Piece
from dpsyn.sources.several import shown
from dpsyn.sources.source import BATCH_ROWS, attempt, guarded

_BROKEN = "it may be cut off, damaged, or not be an Arrow file"


class ArrowFileSource:
    """An Arrow IPC file, in the file or the stream format."""

    again = True

    def __init__(self, path: Path) -> None:
        self.where = shown(path)
        self.bytes: int | None = path.stat().st_size
        self._path = path
        if not path.is_file():
            raise SourceError(f"{self.where} is not a file")
        self.schema = attempt(self._schema, self.where, _BROKEN)

    def _schema(self) -> pa.Schema:
        with pa.OSFile(str(self._path)) as stream:
            return _reader(stream).schema

    def pieces(self) -> list[Piece]:
        """The file as a whole."""
        return [Piece(path=str(self._path))]

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, as the file groups them."""
        return guarded(lambda: self._read(columns), self.where, _BROKEN)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with pa.OSFile(str(self._path)) as stream:
            reader = _reader(stream)
            whole_file = isinstance(reader, paipc.RecordBatchFileReader)
            found = (reader.get_batch(index) for index in range(reader.num_record_batches)) if whole_file else reader
            for batch in found:
                chosen = batch.select(list(columns))
                chosen.validate(full=True)  # a damaged file must not lead us to memory that is not its own
                yield chosen


def _reader(stream: pa.NativeFile) -> Any:
    try:
        return paipc.open_file(stream)
    except pa.ArrowInvalid:
        stream.seek(0)
        return paipc.open_stream(stream)


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
        return attempt(lambda: _stream_of(self._data), self.where, "it does not offer rows as Arrow batches")

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, as the stream groups them."""
        stream, self._first = self._first, None
        if stream is None:
            if not self.again:
                raise SourceError(f"{self.where} can be read only once; give a table or a file")
            stream = self._stream()
        for batch in guarded(lambda: stream, self.where, "the stream broke off"):
            yield batch.select(list(columns))


def _stream_of(data: Any) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.Table):
        return data.to_reader(max_chunksize=BATCH_ROWS)
    if type(data).__module__.partition(".")[0] == "polars" and "Object" in [str(kind) for kind in data.dtypes]:
        raise SourceError("the given DataFrame has a column of Python objects; cast it to text first")
    return pa.RecordBatchReader.from_stream(data)
