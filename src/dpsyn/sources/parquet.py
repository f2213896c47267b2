"""Parquet files, and folders of Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as papq

from dpsyn.errors import SourceError
from dpsyn.sources.files import FilePiece, redact_path, refuse_duplicate_files, unify_schemas, unify_types
from dpsyn.sources.source import BATCH_ROWS, attempt, guard_batches

_BROKEN = "the file may be cut off, or it may not be Parquet"
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The value in the name of a folder whose rows have a null there."""

PIECE_BYTES = 1 << 26
"""The approximate uncompressed size of a piece of a file: a second of work."""


class ParquetSource:
    """A Parquet file, or all Parquet files in a folder and its subfolders; folders ``key=value`` are columns of text.

    Files and folders whose names begin with ``_`` or ``.`` are ignored; any other file must be Parquet.

    Columns of folders are always text: if their type were inferred from the values, one value could change how all
    others are read.
    """

    rereadable = True

    def __init__(self, path: Path, piece: FilePiece | None = None) -> None:
        self.label = redact_path(path)
        self._parts = [piece] if piece else attempt(lambda: _list_files(path), self.label, _BROKEN)
        if not self._parts:
            raise SourceError(f"{self.label} holds no Parquet file; give a file, or a folder with Parquet files")
        self.paths = tuple(Path(part.path) for part in self._parts)
        self.schema = unify_schemas([_read_schema(part) for part in self._parts], self.label)
        self.byte_size: int | None = attempt(
            lambda: sum(Path(part.path).stat().st_size for part in self._parts),
            self.label,
            "a file may have been removed",
        )

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, file by file."""
        for part in self._parts:
            for batch in guard_batches(lambda part=part: _read(part, columns), redact_path(part.path), _BROKEN):  # type: ignore[misc]
                yield unify_types(batch, self.schema)

    def pieces(self) -> list[FilePiece]:
        """Pieces of about equal size, made of whole row groups."""
        return [
            msgspec.structs.replace(part, groups=groups)
            for part in self._parts
            for groups in attempt(lambda part=part: _group_ranges(part), redact_path(part.path), _BROKEN)  # type: ignore[misc]
        ]


def _read_schema(part: FilePiece) -> pa.Schema:
    stored: pa.Schema = attempt(lambda: papq.read_schema(part.path), redact_path(part.path), _BROKEN)
    for name in part.folders:
        if name not in stored.names:
            stored = stored.append(pa.field(name, pa.string()))
    return stored.remove_metadata()


def _read(part: FilePiece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    # a small buffer: Arrow would otherwise hold whole row groups in memory
    with papq.ParquetFile(part.path, pre_buffer=False, buffer_size=1 << 20) as file:
        stored = [name for name in columns if name in file.schema_arrow.names]
        groups = range(*part.groups) if part.groups else None
        for batch in file.iter_batches(BATCH_ROWS, row_groups=groups, columns=stored):
            arrays = [_column(name, batch, part) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _group_ranges(part: FilePiece) -> list[tuple[int, int]]:
    """Ranges of neighboring row groups, each large enough to be a piece."""
    metadata = papq.read_metadata(part.path)
    ranges, first, size = [], 0, 0
    for group in range(metadata.num_row_groups):
        size += metadata.row_group(group).total_byte_size
        if size >= PIECE_BYTES or group == metadata.num_row_groups - 1:
            ranges.append((first, group + 1))
            first, size = group + 1, 0
    return ranges


def _list_files(path: Path) -> list[FilePiece]:
    # with a schema, Arrow does not read a file here; an error while reading would not name the file
    files = sorted(pads.dataset(str(path), schema=pa.schema([]), format="parquet").files)
    refuse_duplicate_files(files, str(path))
    return [FilePiece(path=file, folders=_folder_columns(Path(file), path)) for file in files]


def _folder_columns(file: Path, root: Path) -> dict[str, str | None]:
    """The columns that are given by the names of the folders between a root folder and a file."""
    folders = file.relative_to(root).parts[:-1] if file != root else ()
    pairs = [name.partition("=") for name in folders if "=" in name]
    return {unquote(key): None if value == _NULL_PARTITION else unquote(value) for key, _, value in pairs}


def _column(name: str, batch: pa.RecordBatch, part: FilePiece) -> pa.Array:
    """A column of the file, or of its folder, where every row has the same value."""
    if name in batch.schema.names:
        return batch.column(name)
    return pa.repeat(pa.scalar(part.folders[name], pa.string()), batch.num_rows)
