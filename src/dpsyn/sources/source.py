"""What every reader of a private table offers, and how its failures are told."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

import pyarrow as pa

from dpsyn.encoding import Codec, Codes, check_structure
from dpsyn.errors import DPSynError, SourceError

BATCH_ROWS = 1 << 16
"""Rows of a batch where the reader can choose: a few megabytes at twenty columns."""

_T = TypeVar("_T")


class Source(Protocol):
    """A private table that is read as batches, so that it may be larger than memory.

    Privacy: a source hands out rows. Only ``engines`` (behind the gate) and ``diagnose`` and ``evaluation`` (for
    the steward's eyes) may hold one. Its own errors speak of structure and never quote a cell.

    Attributes:
        label: how messages call it.
        schema: names and types of its columns.
        rereadable: whether it can be read more than once.
        byte_size: its size on disk where it is a file or a folder, else None. It may decide how the table is read;
            the number of rows may not, because that is private.
    """

    label: str
    schema: pa.Schema
    rereadable: bool
    byte_size: int | None

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, as batches of the named columns."""


def attempt(action: Callable[[], _T], label: str, advice: str) -> _T:
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
    raise SourceError(f"{label} cannot be read{reason}; {advice}")


def guard_batches(batches: Callable[[], Iterable[pa.RecordBatch]], label: str, advice: str) -> Iterator[pa.RecordBatch]:
    """The batches of a reader; its failures are told as ``attempt`` tells them."""
    iterator = attempt(lambda: iter(batches()), label, advice)
    while True:
        batch = attempt(lambda: next(iterator, None), label, advice)
        if batch is None:
            return
        yield batch


def _reason(error: Exception) -> str:
    """The operating system's word for what is wrong with a file, which knows nothing of its cells."""
    if isinstance(error, OSError) and error.errno and error.strerror and len(error.strerror) < 60:
        return f": {error.strerror.lower()}"
    return ""


# ── A source as batches of codes, encoded in parallel ──


Batch = TypeVar("Batch")
Done = TypeVar("Done")


def map_in_threads(
    work: Callable[[Batch], Done], batches: Iterable[Batch], threads: int | None = None
) -> Iterator[Done]:
    """The work on every batch, in order; while one is used, the next ones are worked on.

    Memory is bounded by a few batches, whatever the table's size.
    """
    workers = threads or os.cpu_count() or 1
    waiting: deque[Future[Done]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        for batch in batches:
            waiting.append(pool.submit(work, batch))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def encode_batches(source: Source, codec: Codec, threads: int | None = None) -> Iterator[Codes]:
    """Fine codes of every batch, in order.

    The structure is checked before the first row is read.
    """
    check_structure(codec.schema, source.schema, source.label)
    yield from map_in_threads(codec.encode, source.batches(codec.names), threads)
