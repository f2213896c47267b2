"""A source as batches of codes, encoded in parallel."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from dpsyn.records import Codec, Codes, check_structure
from dpsyn.sources.source import Source


def encoded(source: Source, codec: Codec, threads: int | None = None) -> Iterator[Codes]:
    """Fine codes of every batch, in order. Memory is bounded by a few batches, whatever the table's size.

    The structure is checked before the first row is read.
    """
    check_structure(codec.schema, source.schema, source.where)
    workers = threads or os.cpu_count() or 1
    waiting: deque[Future[Codes]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        for batch in source.batches(codec.names):
            waiting.append(pool.submit(codec.encode, batch))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
