"""Several files that make one table."""

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
    """Files of the same columns, one after another."""

    rereadable = True

    def __init__(self, parts: Sequence[Source], label: str) -> None:
        self.label, self._parts = label, tuple(parts)
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
    """Refuse a file that is there under two names, such as a link to another one.

    Privacy: its rows would count twice, and so would each person in it.
    """
    names: dict[tuple[int, int], str | Path] = {}
    for path in paths:
        found = Path(path).stat()
        other = names.setdefault((found.st_dev, found.st_ino), path)
        if other != path:
            raise SourceError(
                f"{label}: {redact_path(other)} and {redact_path(path)} are the same file, whose rows would count twice"
            )


def redact_path(path: str | Path) -> str:
    """How messages call a file.

    Privacy: a folder ``key=value`` holds a value of rows, which is left out.
    """
    return os.sep.join(f"{name.partition('=')[0]}=…" if "=" in name else name for name in str(path).split(os.sep))


def refuse_differing_columns(own: pa.Schema, first: pa.Schema, label: str) -> None:
    """Refuse a file whose columns differ from the first one's: it would read as nulls or fail midway."""
    for name in sorted({*own.names, *first.names}):
        if own.names.count(name) > 1 or first.names.count(name) > 1:
            raise SourceError(f"{label}: a file has several columns {name!r}; their names must differ")
        if name not in own.names or name not in first.names:
            raise SourceError(f"{label}: column {name!r} is in some files and not in others")
        if own.field(name).type != first.field(name).type:
            raise SourceError(f"{label}: column {name!r} has another type in some files than in others")


# ── Parts of files that a worker elsewhere can open by itself ──


class FilePiece(msgspec.Struct, frozen=True, kw_only=True):
    """A file, or some groups of rows of a Parquet file.

    Attributes:
        path: the file.
        folders: what the names of its folders say of all its rows.
        groups: the first group of rows and the one after the last; None for all.
    """

    path: str
    folders: dict[str, str | None] = {}
    groups: tuple[int, int] | None = None


def serialize_pieces(source: Source) -> list[str] | None:
    """The pieces of a source as texts, which ``open_piece`` takes anywhere; None if it does not consist of files."""
    divided: Any = getattr(source, "pieces", None)
    return [_serialize_piece(piece) for piece in divided()] if divided else None


def _serialize_piece(piece: FilePiece) -> str:
    """The text of a piece; its path is told from the root, because a worker may stand in another folder."""
    return msgspec.json.encode(msgspec.structs.replace(piece, path=os.path.abspath(piece.path))).decode()


def open_piece(text: str) -> Source:
    """A source of the rows of one piece."""
    from dpsyn.sources.factory import open_source
    from dpsyn.sources.parquet import ParquetSource

    piece = msgspec.json.decode(text, type=FilePiece)
    return ParquetSource(Path(piece.path), piece) if piece.groups else open_source(piece.path)
