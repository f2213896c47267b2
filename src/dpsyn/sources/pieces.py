"""Parts of files that a worker elsewhere can open by itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from dpsyn.sources.source import Source


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A file, or some groups of rows of a Parquet file.

    Attributes:
        path: the file.
        folders: what the names of its folders say of all its rows.
        groups: the first group of rows and the one after the last; None for all.
    """

    path: str
    folders: dict[str, str | None] = {}
    groups: tuple[int, int] | None = None


def pieces_of(source: Source) -> list[str] | None:
    """The pieces of a source as texts, which ``open_piece`` takes anywhere; None if it does not consist of files."""
    divided: Any = getattr(source, "pieces", None)
    return [_anywhere(piece) for piece in divided()] if divided else None


def _anywhere(piece: Piece) -> str:
    """The text of a piece; its path is told from the root, because a worker may stand in another folder."""
    return msgspec.json.encode(msgspec.structs.replace(piece, path=os.path.abspath(piece.path))).decode()


def open_piece(text: str) -> Source:
    """A source of the rows of one piece."""
    from dpsyn.sources.opening import open_source
    from dpsyn.sources.parquet import ParquetSource

    piece = msgspec.json.decode(text, type=Piece)
    return ParquetSource(Path(piece.path), piece) if piece.groups else open_source(piece.path)
