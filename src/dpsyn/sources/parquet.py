"""Parquet files, and folders of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as papq

from dpsyn.errors import SourceError
from dpsyn.sources.source import BATCH_ROWS, attempt, guarded

_BROKEN = "a file may be cut off or not be Parquet"
_NOTHING = "__HIVE_DEFAULT_PARTITION__"
"""How a folder is called whose rows have no value."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One file, and what the names of its folders say of all its rows."""

    path: str
    folders: dict[str, str | None]


class ParquetSource:
    """A Parquet file, or all those below a folder; folders named ``key=value`` are columns of text, as usual.

    They are text whatever they look like: a type read off the values would let one of them change how all others are
    read.
    """

    again = True

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        self._parts = attempt(lambda: _parts(path), self.where, _BROKEN)
        if not self._parts:
            raise SourceError(f"{path} holds no Parquet file")
        self.schema = self._schema_of(self._parts[0])
        for part in self._parts[1:]:
            self._check(part)
        self.bytes: int | None = sum(Path(part.path).stat().st_size for part in self._parts)

    def _schema_of(self, part: _Part) -> pa.Schema:
        stored: pa.Schema = attempt(lambda: papq.read_schema(part.path), self.where, _BROKEN)
        for name in part.folders:
            if name not in stored.names:
                stored = stored.append(pa.field(name, pa.string()))
        return stored.remove_metadata()

    def _check(self, part: _Part) -> None:
        """Refuse a file whose columns differ from the first one's: it would read as nulls or fail midway."""
        own = self._schema_of(part)
        for name in sorted({*own.names, *self.schema.names}):
            if name not in own.names or name not in self.schema.names:
                raise SourceError(f"{self.where}: column {name!r} is in some files and not in others")
            if own.field(name).type != self.schema.field(name).type:
                raise SourceError(f"{self.where}: column {name!r} has another type in some files than in others")

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, file by file."""
        return guarded(lambda: self._read(columns), self.where, _BROKEN)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for part in self._parts:
            # a small window: Arrow would otherwise hold whole groups of rows in memory
            with papq.ParquetFile(part.path, pre_buffer=False, buffer_size=1 << 20) as file:
                stored = [name for name in columns if name in file.schema_arrow.names]
                for batch in file.iter_batches(BATCH_ROWS, columns=stored):
                    arrays = [_column(name, batch, part) for name in columns]
                    yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _parts(path: Path) -> list[_Part]:
    files = sorted(pads.dataset(str(path), format="parquet").files)
    return [_Part(file, _folders(Path(file), path)) for file in files]


def _folders(file: Path, above: Path) -> dict[str, str | None]:
    """The columns that the names of the folders between hold."""
    between = file.relative_to(above).parts[:-1] if file != above else ()
    pairs = [name.partition("=") for name in between if "=" in name]
    return {unquote(key): None if value == _NOTHING else unquote(value) for key, _, value in pairs}


def _column(name: str, batch: pa.RecordBatch, part: _Part) -> pa.Array:
    """A column of the file, or the name of its folder, which is the same in every row."""
    if name in batch.schema.names:
        return batch.column(name)
    return pa.repeat(pa.scalar(part.folders[name], pa.string()), batch.num_rows)
