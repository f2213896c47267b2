"""Arrow tables: files, tables in memory, and objects with the Arrow C stream interface."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc as paipc

from dpsyn.encoding.entry_parser import bytes_of_objects
from dpsyn.errors import SourceError
from dpsyn.sources.files import FilePiece, redact_path
from dpsyn.sources.source import BATCH_ROWS, attempt, guard_batches

_BROKEN = "it may be cut off or damaged, or it may not be an Arrow file"


class ArrowFileSource:
    """An Arrow IPC file, in the file or the stream format."""

    rereadable = True

    def __init__(self, path: Path) -> None:
        self.label = redact_path(path)
        self.byte_size: int | None = path.stat().st_size
        self._path = path
        self.paths = (path,)
        if not path.is_file():
            raise SourceError(f"{self.label} is not a file; give the path of an Arrow file")
        self.schema = attempt(self._read_schema, self.label, _BROKEN)

    def _read_schema(self) -> pa.Schema:
        with pa.OSFile(str(self._path)) as stream:
            schema = _open_reader(stream).schema
            schema.names  # noqa: B018 -- decodes them; in a damaged file they may not be text
            return schema

    def pieces(self) -> list[FilePiece]:
        """The file as a whole."""
        return [FilePiece(path=str(self._path))]

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, in the batches of the file."""
        return guard_batches(lambda: self._read(columns), self.label, _BROKEN)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with pa.OSFile(str(self._path)) as stream:
            reader = _open_reader(stream)
            whole_file = isinstance(reader, paipc.RecordBatchFileReader)
            batches = (reader.get_batch(index) for index in range(reader.num_record_batches)) if whole_file else reader
            for batch in batches:
                selected = batch.select(list(columns))
                selected.validate(full=True)  # the offsets of a damaged file could point outside of its memory
                yield selected


def _open_reader(stream: pa.NativeFile) -> Any:
    try:
        return paipc.open_file(stream)
    except pa.ArrowInvalid:
        stream.seek(0)
        return paipc.open_stream(stream)


class ArrowStreamSource:
    """An object with the Arrow C stream interface: an Arrow table, a polars DataFrame, a record batch reader."""

    byte_size: int | None = None

    def __init__(self, data: Any) -> None:
        self.label = f"the given {type(data).__name__}"
        self._data = data
        self.rereadable = not isinstance(data, pa.RecordBatchReader)
        self._first: pa.RecordBatchReader | None = self._open()
        self.schema = self._first.schema

    def _open(self) -> pa.RecordBatchReader:
        return attempt(
            lambda: _open_stream(self._data),
            self.label,
            "it does not provide its rows as Arrow batches; convert it to a DataFrame or an Arrow table first",
        )

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, in the batches of the stream."""
        stream, self._first = self._first, None
        if stream is None:
            if not self.rereadable:
                raise SourceError(f"{self.label} can be read only once; give a table or a file instead")
            stream = self._open()
        for batch in guard_batches(lambda: stream, self.label, "the stream stopped with an error"):
            yield batch.select(list(columns))


def _open_stream(data: Any) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.Table):
        return data.to_reader(max_chunksize=BATCH_ROWS)
    if type(data).__module__.partition(".")[0] == "polars" and hasattr(data, "with_columns"):
        data = data.with_columns([_as_text(data[name]) for name in data.columns if not _is_arrow_like(data[name])])
    return pa.RecordBatchReader.from_stream(data)


def _is_arrow_like(series: Any) -> bool:
    """Whether Arrow has the type of a polars series; it has no type for Python objects and integers of 128 bits."""
    if series.dtype.is_object():  # polars would pass on the addresses of the objects
        return False
    try:
        pa.RecordBatchReader.from_stream(series[:0].to_frame())
    except Exception:  # polars raises errors of its own
        return False
    return True


def _as_text(series: Any) -> Any:
    """A polars series as text, entry by entry."""
    return type(series)(series.name, pa.array(bytes_of_objects(series), pa.large_binary()))
