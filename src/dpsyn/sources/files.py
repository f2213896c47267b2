"""Tables of several files, the names of files in messages, and pieces of files for distributed workers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from glob import glob
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from dpsyn.encoding.entry_parser import entry_texts
from dpsyn.errors import SourceError
from dpsyn.schema.file_syntax import PLAIN_FILE, FileSyntax
from dpsyn.sources.source import Source


class MultiFileSource:
    """Files with the same columns, read one after another; a column whose type differs is read as text."""

    rereadable = True

    def __init__(self, parts: Sequence[Source], label: str) -> None:
        self.label, self._parts = label, tuple(parts)
        self.paths = tuple(path for part in self._parts for path in getattr(part, "paths", ()))
        self.assumption: str = next((part.assumption for part in self._parts if hasattr(part, "assumption")), "")
        self.has_typed_cells = any(getattr(part, "has_typed_cells", False) for part in self._parts)
        self.schema = unify_schemas([part.schema for part in self._parts], label)
        self.byte_size: int | None = sum(part.byte_size or 0 for part in self._parts)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, file by file."""
        batches = chain.from_iterable(part.batches(columns) for part in self._parts)
        return (unify_types(batch, self.schema) for batch in batches)

    def describe_irregular_lines(self, max_bytes: int | None = None) -> list[str]:
        """What is irregular in each of the files; private, like that of one file."""
        return [f"{part.label}: {line}" for part in self._parts for line in describe_irregular_lines(part, max_bytes)]

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


def is_same_table(one: Any, other: Any) -> bool:
    """Whether two arguments are the same object, or paths and patterns that have a file in common, by whatever name.

    Privacy: compares what was given and which files there are, never what is in them: no row is read, so a copy under
    another name is another table.
    """
    if one is other:
        return True
    return not _identify_files(one).isdisjoint(_identify_files(other))


def list_table_files(data: Any) -> list[Path]:
    """The files that a path, a folder or a pattern stands for, links followed; none for anything else."""
    if not isinstance(data, str | os.PathLike):
        return []
    try:
        named = [Path(data)] if os.path.exists(data) else [Path(name) for name in glob(str(data), recursive=True)]
        inside = [each for path in named for each in (path.rglob("*") if path.is_dir() else [path])]
        return [each.resolve() for each in inside if each.is_file()]
    except (OSError, ValueError, RuntimeError):  # such as a name that is too long; opening it tells
        return []


def _identify_files(data: Any) -> set[tuple[int, int]]:
    try:
        states = [os.stat(path) for path in list_table_files(data)]
    except OSError:  # one was removed meanwhile
        return set()
    return {(state.st_dev, state.st_ino) for state in states}


def redact_path(path: str | Path) -> str:
    """The name of a file in messages.

    Privacy: the name of a folder ``key=value`` contains a value of its rows, which is replaced by ``…``.
    """
    return os.sep.join(f"{name.partition('=')[0]}=…" if "=" in name else name for name in str(path).split(os.sep))


def describe_irregular_lines(source: Source, max_bytes: int | None = None) -> list[str]:
    """What is irregular in the lines of a source, if it consists of text files; see ``CsvSource``."""
    describe: Any = getattr(source, "describe_irregular_lines", None)
    return list(describe(max_bytes)) if describe else []


def unify_schemas(schemas: Sequence[pa.Schema], label: str) -> pa.Schema:
    """The common columns of files; those whose type is not the same in all files are text.

    Privacy: names are public. Types are not, because a library may have inferred them from the entries of each file: a
    column that is empty in one of them often has another type there. So types refuse nothing.
    """
    first = schemas[0]
    for schema in schemas[1:]:
        _refuse_differing_names(schema, first, label)
    kinds = [{schema.field(name).type for schema in schemas} if len(schemas) > 1 else set() for name in first.names]
    fields = zip(first, kinds, strict=True)
    return pa.schema([field if len(types) < 2 else pa.field(field.name, pa.large_binary()) for field, types in fields])


def unify_types(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch of a file in the types of the common columns."""
    kinds = [schema.field(name).type for name in batch.schema.names]
    if kinds == batch.schema.types:
        return batch
    arrays = [a if a.type == kind else entry_texts(a) for a, kind in zip(batch.columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _refuse_differing_names(schema: pa.Schema, first: pa.Schema, label: str) -> None:
    """Refuse a file whose columns differ from those of the first file: it would read as nulls, or fail midway."""
    for name in sorted({*schema.names, *first.names}):
        if schema.names.count(name) > 1 or first.names.count(name) > 1:
            raise SourceError(f"{label}: a file has several columns named {name!r}; rename all but one")
        if name not in schema.names or name not in first.names:
            raise SourceError(
                f"{label}: column {name!r} is in some files but not in others; give all files this column"
            )


# ── pieces of files, which a worker on another machine can open ───────────────────────────────────────────────


class FilePiece(msgspec.Struct, frozen=True, kw_only=True):
    """A file, or some row groups of a Parquet file.

    Attributes:
        path: the file.
        folders: the columns that are given by the names of its folders, with their value for all of its rows.
        groups: the first row group, and the one after the last; None for all of them.
        syntax: how the file is written.
    """

    path: str
    folders: dict[str, str | None] = {}
    groups: tuple[int, int] | None = None
    syntax: FileSyntax = PLAIN_FILE


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
    return ParquetSource(Path(piece.path), piece) if piece.groups else open_source(piece.path, syntax=piece.syntax)
