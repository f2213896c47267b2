"""What every reader of a private table offers, and how its failures are told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

import pyarrow as pa

from dpsyn.errors import DPSynError, SourceError

BATCH_ROWS = 1 << 16
"""Rows of a batch where the reader can choose: a few megabytes at twenty columns."""

_T = TypeVar("_T")


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


def attempt(action: Callable[[], _T], where: str, what: str) -> _T:
    """Do something with a table; if it fails, say so in words of ours.

    Privacy: a reader's own error may quote cells, so it must not be seen, not even as the context of ours. Hence ours
    is raised when the other one is over and forgotten.
    """
    try:
        return action()
    except DPSynError:
        raise
    except Exception as error:  # whatever a reader, a stream or a cell's own method raises
        reason = _reason(error)
    raise SourceError(f"{where} cannot be read{reason}; {what}")


def guarded(batches: Callable[[], Iterable[pa.RecordBatch]], where: str, what: str) -> Iterator[pa.RecordBatch]:
    """The batches of a reader; its failures are told as ``attempt`` tells them."""
    iterator = attempt(lambda: iter(batches()), where, what)
    while True:
        batch = attempt(lambda: next(iterator, None), where, what)
        if batch is None:
            return
        yield batch


def _reason(error: Exception) -> str:
    """The operating system's word for what is wrong with a file, which knows nothing of its cells."""
    if isinstance(error, OSError) and error.errno and error.strerror and len(error.strerror) < 60:
        return f": {error.strerror.lower()}"
    return ""
