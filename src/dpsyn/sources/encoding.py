"""A source as batches of codes, encoded in parallel."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from dpsyn.records import Codec, Codes, check_structure
from dpsyn.sources.source import Source

Batch = TypeVar("Batch")
Done = TypeVar("Done")


def in_threads(work: Callable[[Batch], Done], batches: Iterable[Batch], threads: int | None = None) -> Iterator[Done]:
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


def encoded(source: Source, codec: Codec, threads: int | None = None) -> Iterator[Codes]:
    """Fine codes of every batch, in order.

    The structure is checked before the first row is read.
    """
    check_structure(codec.schema, source.schema, source.where)
    yield from in_threads(codec.encode, source.batches(codec.names), threads)
