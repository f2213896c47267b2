"""Several files that make one table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsyn.errors import SourceError
from dpsyn.sources.source import Source


class SeveralSource:
    """Files of the same columns, one after another."""

    again = True

    def __init__(self, parts: Sequence[Source], where: str) -> None:
        self.where, self._parts = where, tuple(parts)
        self.schema = self._parts[0].schema
        for part in self._parts[1:]:
            refuse_difference(part.schema, self.schema, where)
        self.bytes: int | None = sum(part.bytes or 0 for part in self._parts)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, file by file."""
        return chain.from_iterable(part.batches(columns) for part in self._parts)

    def pieces(self) -> list[Any]:
        """The pieces of all files."""
        parts: list[Any] = list(self._parts)
        return [piece for part in parts for piece in part.pieces()]


def refuse_same(paths: Iterable[str | Path], where: str) -> None:
    """Refuse a file that is there under two names, such as a link to another one.

    Privacy: its rows would count twice, and so would each person in it.
    """
    names: dict[tuple[int, int], str | Path] = {}
    for path in paths:
        found = Path(path).stat()
        other = names.setdefault((found.st_dev, found.st_ino), path)
        if other != path:
            raise SourceError(
                f"{where}: {shown(other)} and {shown(path)} are the same file, whose rows would count twice"
            )


def shown(path: str | Path) -> str:
    """How messages call a file.

    Privacy: a folder ``key=value`` holds a value of rows, which is left out.
    """
    return os.sep.join(f"{name.partition('=')[0]}=…" if "=" in name else name for name in str(path).split(os.sep))


def refuse_difference(own: pa.Schema, first: pa.Schema, where: str) -> None:
    """Refuse a file whose columns differ from the first one's: it would read as nulls or fail midway."""
    for name in sorted({*own.names, *first.names}):
        if own.names.count(name) > 1 or first.names.count(name) > 1:
            raise SourceError(f"{where}: a file has several columns {name!r}; their names must differ")
        if name not in own.names or name not in first.names:
            raise SourceError(f"{where}: column {name!r} is in some files and not in others")
        if own.field(name).type != first.field(name).type:
            raise SourceError(f"{where}: column {name!r} has another type in some files than in others")
