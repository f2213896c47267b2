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
from dpsyn.sources.pieces import Piece
from dpsyn.sources.several import refuse_difference, refuse_same, shown
from dpsyn.sources.source import BATCH_ROWS, attempt, guarded

_BROKEN = "a file may be cut off or not be Parquet"
_NOTHING = "__HIVE_DEFAULT_PARTITION__"
"""How a folder is called whose rows have no value."""


PIECE_BYTES = 1 << 26
"""About so much of a file is one piece, uncompressed: a second of work."""


class ParquetSource:
    """A Parquet file, or all those below a folder; folders named ``key=value`` are columns of text, as usual.

    Files and folders whose names begin with ``_`` or ``.`` are no part of it; any other file must be Parquet.

    Columns of folders are text whatever they look like: a type read off the values would let one of them change how
    all others are read.
    """

    again = True

    def __init__(self, path: Path, piece: Piece | None = None) -> None:
        self.where = shown(path)
        self._parts = [piece] if piece else attempt(lambda: _parts(path), self.where, _BROKEN)
        if not self._parts:
            raise SourceError(f"{self.where} holds no Parquet file")
        self.schema = _schema_of(self._parts[0])
        for part in self._parts[1:]:
            refuse_difference(_schema_of(part), self.schema, self.where)
        self.bytes: int | None = attempt(lambda: sum(map(_size, self._parts)), self.where, "a file may be gone")

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, file by file."""
        for part in self._parts:
            yield from guarded(lambda part=part: _read(part, columns), shown(part.path), _BROKEN)  # type: ignore[misc]

    def pieces(self) -> list[Piece]:
        """Parts of about equal size, along the groups of rows in which the files are stored."""
        return [
            msgspec.structs.replace(part, groups=groups)
            for part in self._parts
            for groups in attempt(lambda part=part: _group_ranges(part), shown(part.path), _BROKEN)  # type: ignore[misc]
        ]


def _size(part: Piece) -> int:
    return Path(part.path).stat().st_size


def _schema_of(part: Piece) -> pa.Schema:
    stored: pa.Schema = attempt(lambda: papq.read_schema(part.path), shown(part.path), _BROKEN)
    for name in part.folders:
        if name not in stored.names:
            stored = stored.append(pa.field(name, pa.string()))
    return stored.remove_metadata()


def _read(part: Piece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    # a small window: Arrow would otherwise hold whole groups of rows in memory
    with papq.ParquetFile(part.path, pre_buffer=False, buffer_size=1 << 20) as file:
        stored = [name for name in columns if name in file.schema_arrow.names]
        groups = range(*part.groups) if part.groups else None
        for batch in file.iter_batches(BATCH_ROWS, row_groups=groups, columns=stored):
            arrays = [_column(name, batch, part) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _group_ranges(part: Piece) -> list[tuple[int, int]]:
    """Neighbouring groups of rows, taken together until they are large enough."""
    metadata = papq.read_metadata(part.path)
    ranges, first, size = [], 0, 0
    for group in range(metadata.num_row_groups):
        size += metadata.row_group(group).total_byte_size
        if size >= PIECE_BYTES or group == metadata.num_row_groups - 1:
            ranges.append((first, group + 1))
            first, size = group + 1, 0
    return ranges


def _parts(path: Path) -> list[Piece]:
    # a schema is given only to keep Arrow from reading a file here, whose name a failure would not tell
    files = sorted(pads.dataset(str(path), schema=pa.schema([]), format="parquet").files)
    refuse_same(files, str(path))
    return [Piece(path=file, folders=_folders(Path(file), path)) for file in files]


def _folders(file: Path, above: Path) -> dict[str, str | None]:
    """The columns that the names of the folders between hold."""
    between = file.relative_to(above).parts[:-1] if file != above else ()
    pairs = [name.partition("=") for name in between if "=" in name]
    return {unquote(key): None if value == _NOTHING else unquote(value) for key, _, value in pairs}


def _column(name: str, batch: pa.RecordBatch, part: Piece) -> pa.Array:
    """A column of the file, or the name of its folder, which is the same in every row."""
    if name in batch.schema.names:
        return batch.column(name)
    return pa.repeat(pa.scalar(part.folders[name], pa.string()), batch.num_rows)
