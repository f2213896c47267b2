"""Tables of several files, the names of files in messages, and pieces of files for distributed workers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from dpsyn.errors import SourceError
from dpsyn.sources.source import Source


class MultiFileSource:
    """Files with the same columns, read one after another."""

    rereadable = True

    def __init__(self, parts: Sequence[Source], label: str) -> None:
        self.label, self._parts = label, tuple(parts)
        self.paths = tuple(path for part in self._parts for path in getattr(part, "paths", ()))
        self.schema = self._parts[0].schema
        for part in self._parts[1:]:
            refuse_differing_columns(part.schema, self.schema, label)
        self.byte_size: int | None = sum(part.byte_size or 0 for part in self._parts)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, file by file."""
        return chain.from_iterable(part.batches(columns) for part in self._parts)

    def pieces(self) -> list[Any]:
        """The pieces of all files."""
        parts: list[Any] = list(self._parts)
        return [piece for part in parts for piece in part.pieces()]


def refuse_duplicate_files(paths: Iterable[str | Path], label: str) -> None:
    """Refuse a file that is listed under two names, such as a link to another file.

    Privacy: its rows would count twice, and so would each person in it.
    """
    path_of: dict[tuple[int, int], str | Path] = {}
    for path in paths:
        status = Path(path).stat()
        other = path_of.setdefault((status.st_dev, status.st_ino), path)
        if other != path:
            raise SourceError(
                f"{label}: {redact_path(other)} and {redact_path(path)} are the same file, so its rows would count "
                "twice; remove one of them"
            )


def redact_path(path: str | Path) -> str:
    """The name of a file in messages.

    Privacy: the name of a folder ``key=value`` contains a value of its rows, which is replaced by ``…``.
    """
    return os.sep.join(f"{name.partition('=')[0]}=…" if "=" in name else name for name in str(path).split(os.sep))


def refuse_differing_columns(schema: pa.Schema, first: pa.Schema, label: str) -> None:
    """Refuse a file whose columns differ from those of the first file: it would read as nulls, or fail midway."""
    for name in sorted({*schema.names, *first.names}):
        if schema.names.count(name) > 1 or first.names.count(name) > 1:
            raise SourceError(f"{label}: a file has several columns named {name!r}; rename all but one")
        if name not in schema.names or name not in first.names:
            raise SourceError(
                f"{label}: column {name!r} is in some files but not in others; give all files this column"
            )
        if schema.field(name).type != first.field(name).type:
            raise SourceError(
                f"{label}: column {name!r} has different types in different files; give all the same type"
            )


# ── pieces of files, which a worker on another machine can open ───────────────────────────────────────────────


class FilePiece(msgspec.Struct, frozen=True, kw_only=True):
    """A file, or some row groups of a Parquet file.

    Attributes:
        path: the file.
        folders: the columns that are given by the names of its folders, with their value for all of its rows.
        groups: the first row group, and the one after the last; None for all of them.
    """

    path: str
    folders: dict[str, str | None] = {}
    groups: tuple[int, int] | None = None


def serialize_pieces(source: Source) -> list[str] | None:
    """The pieces of a source as texts for ``open_piece``; None if the source does not consist of files."""
    list_pieces: Any = getattr(source, "pieces", None)
    return [_serialize_piece(piece) for piece in list_pieces()] if list_pieces else None


def _serialize_piece(piece: FilePiece) -> str:
    """The text of a piece. Its path is absolute, because a worker may have another working directory."""
    return msgspec.json.encode(msgspec.structs.replace(piece, path=os.path.abspath(piece.path))).decode()


def open_piece(text: str) -> Source:
    """Open the rows of one piece."""
    from dpsyn.sources.factory import open_source
    from dpsyn.sources.parquet import ParquetSource

    piece = msgspec.json.decode(text, type=FilePiece)
    return ParquetSource(Path(piece.path), piece) if piece.groups else open_source(piece.path)
