"""What every reader of a private table offers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from dpsyn.errors import SourceError

BATCH_ROWS = 1 << 16
"""Rows of a batch where the reader can choose: a few megabytes at twenty columns."""


class Source(Protocol):
    """A private table that is read as batches, so that it may be larger than memory.

    Privacy: a source hands out rows. Only ``engines`` (behind the gate) and ``diagnose`` and ``evaluation`` (for
    the steward's eyes) may hold one. Its own errors speak of structure and never quote a cell.

    Attributes:
        where: how messages call it.
        schema: names and types of its columns.
        again: whether it can be read more than once.
        bytes: its size on disk where it is a file or a folder, else None. It may decide how the table is read;
            the number of rows may not, because that is private.
    """

    where: str
    schema: pa.Schema
    again: bool
    bytes: int | None

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, as batches of the named columns."""


@contextlib.contextmanager
def structural(where: str, what: str) -> Iterator[None]:
    """Turn a reader's error into one that tells of the file's structure only: theirs may quote cells."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, EOFError) as error:
        reason = f": {error.strerror.lower()}" if isinstance(error, OSError) and error.strerror else ""
        raise SourceError(f"{where} cannot be read{reason}; {what}") from None
