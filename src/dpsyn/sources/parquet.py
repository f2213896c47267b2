"""Parquet files, and folders of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as papq

from dpsyn.errors import SourceError
from dpsyn.sources.files import FilePiece, redact_path, refuse_differing_columns, refuse_duplicate_files
from dpsyn.sources.source import BATCH_ROWS, attempt, guard_batches

_BROKEN = "a file may be cut off or not be Parquet"
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""How a folder is called whose rows have no value."""


PIECE_BYTES = 1 << 26
"""About so much of a file is one piece, uncompressed: a second of work."""


class ParquetSource:
    """A Parquet file, or all those below a folder; folders named ``key=value`` are columns of text, as usual.

    Files and folders whose names begin with ``_`` or ``.`` are no part of it; any other file must be Parquet.

    Columns of folders are text whatever they look like: a type read off the values would let one of them change how
    all others are read.
    """

    rereadable = True

    def __init__(self, path: Path, piece: FilePiece | None = None) -> None:
        self.label = redact_path(path)
        self._parts = [piece] if piece else attempt(lambda: _list_files(path), self.label, _BROKEN)
        if not self._parts:
            raise SourceError(f"{self.label} holds no Parquet file")
        self.schema = _read_schema(self._parts[0])
        for part in self._parts[1:]:
            refuse_differing_columns(_read_schema(part), self.schema, self.label)
        self.byte_size: int | None = attempt(
            lambda: sum(map(_file_size, self._parts)), self.label, "a file may be gone"
        )

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, file by file."""
        for part in self._parts:
            yield from guard_batches(lambda part=part: _read(part, columns), redact_path(part.path), _BROKEN)  # type: ignore[misc]

    def pieces(self) -> list[FilePiece]:
        """Parts of about equal size, along the groups of rows in which the files are stored."""
        return [
            msgspec.structs.replace(part, groups=groups)
            for part in self._parts
            for groups in attempt(lambda part=part: _group_ranges(part), redact_path(part.path), _BROKEN)  # type: ignore[misc]
        ]


def _file_size(part: FilePiece) -> int:
    return Path(part.path).stat().st_size


def _read_schema(part: FilePiece) -> pa.Schema:
    stored: pa.Schema = attempt(lambda: papq.read_schema(part.path), redact_path(part.path), _BROKEN)
    for name in part.folders:
        if name not in stored.names:
            stored = stored.append(pa.field(name, pa.string()))
    return stored.remove_metadata()


def _read(part: FilePiece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    # a small window: Arrow would otherwise hold whole groups of rows in memory
    with papq.ParquetFile(part.path, pre_buffer=False, buffer_size=1 << 20) as file:
        stored = [name for name in columns if name in file.schema_arrow.names]
        groups = range(*part.groups) if part.groups else None
        for batch in file.iter_batches(BATCH_ROWS, row_groups=groups, columns=stored):
            arrays = [_column(name, batch, part) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _group_ranges(part: FilePiece) -> list[tuple[int, int]]:
    """Neighboring groups of rows, taken together until they are large enough."""
    metadata = papq.read_metadata(part.path)
    ranges, first, size = [], 0, 0
    for group in range(metadata.num_row_groups):
        size += metadata.row_group(group).total_byte_size
        if size >= PIECE_BYTES or group == metadata.num_row_groups - 1:
            ranges.append((first, group + 1))
            first, size = group + 1, 0
    return ranges


def _list_files(path: Path) -> list[FilePiece]:
    # a schema is given only to keep Arrow from reading a file here, whose name a failure would not tell
    files = sorted(pads.dataset(str(path), schema=pa.schema([]), format="parquet").files)
    refuse_duplicate_files(files, str(path))
    return [FilePiece(path=file, folders=_folder_columns(Path(file), path)) for file in files]


def _folder_columns(file: Path, above: Path) -> dict[str, str | None]:
    """The columns that the names of the folders between hold."""
    between = file.relative_to(above).parts[:-1] if file != above else ()
    pairs = [name.partition("=") for name in between if "=" in name]
    return {unquote(key): None if value == _NULL_PARTITION else unquote(value) for key, _, value in pairs}


def _column(name: str, batch: pa.RecordBatch, part: FilePiece) -> pa.Array:
    """A column of the file, or the name of its folder, which is the same in every row."""
    if name in batch.schema.names:
        return batch.column(name)
    return pa.repeat(pa.scalar(part.folders[name], pa.string()), batch.num_rows)
