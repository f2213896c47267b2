"""Readers of baskets (transactions), all in the long form: one row for each item of a basket.

An empty basket is one row without an item. The engine that counts baskets therefore reads one form only.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.encoding.entry_parser import bytes_of_object
from dpsyn.errors import SourceError
from dpsyn.sources.factory import open_source
from dpsyn.sources.source import Protect, Source, check_protect, guard_batches

BLOCK_BYTES = 1 << 22
"""Bytes that are read at a time; a line may be longer."""

BATCH_BASKETS = 1 << 14
"""Baskets of a list that make one batch."""

_COLUMNS = pa.schema([("basket", pa.int64()), ("item", pa.large_binary())])
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_SPACES = np.zeros(256, np.bool_)
_SPACES[list(b" \t\n\v\f\r")] = True


def open_basket_source(data: Any, *, query: str | None = None, protect: Protect = "base rows") -> Source:
    """Open baskets as a source in the long form, with a column for the basket and one for the item.

    A ``.dat`` file (also compressed) has one basket on each line, with items separated by white space (the format of
    the FIMI repository). A list has one list of items for each basket. Both get the columns ``basket`` and ``item``.
    Anything else is a table in the long form, which ``open_source`` reads.
    """
    check_protect(protect, query)
    is_dat_file = isinstance(data, str | os.PathLike) and _suffix(Path(data)) == ".dat" and Path(data).is_file()
    if query is not None and (is_dat_file or isinstance(data, list | tuple)):
        raise SourceError("lists of baskets and .dat files take no query; give a table or a database")
    if isinstance(data, list | tuple):
        return BasketListSource(data)
    if is_dat_file:
        return BasketLinesSource(Path(data))
    return open_source(
        data, query=query, protect=protect, other_suffixes=".dat (one basket on each line; also compressed)"
    )


def _suffix(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in _COMPRESSED else "".join(suffixes[-1:])


class BasketLinesSource:
    """A text file with one basket on each line; an empty line is an empty basket.

    Everything between white space is an item, so no line can be invalid: bytes that are not UTF-8 become an item that
    no universe of items lists.
    """

    rereadable = True
    schema = _COLUMNS

    def __init__(self, path: Path) -> None:
        self.label = str(path)
        self.byte_size: int | None = path.stat().st_size
        self._path = path
        self.paths = (path,)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The items, basket by basket."""
        return guard_batches(
            lambda: self._read(columns), self.label, "the file may be cut off, or its format may not match its suffix"
        )

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        first = 0
        for lines in self._read_lines():
            baskets, items = _split_lines(lines)
            yield _batch(baskets + first, items, columns)
            first += int(baskets.max()) + 1

    def _read_lines(self) -> Iterator[bytes]:
        """The bytes of the file, in parts that end at the end of a line."""
        unfinished: list[bytes] = []
        with pa.input_stream(str(self._path), compression="detect") as stream:
            while block := stream.read(BLOCK_BYTES):
                end = block.rfind(b"\n") + 1
                if end:
                    yield b"".join([*unfinished, block[:end]])
                    unfinished = []
                unfinished.append(block[end:])
        if last := b"".join(unfinished):
            yield last


class BasketListSource:
    """Baskets in memory, each a list of items; None is an empty basket, any other object is a basket of one item."""

    rereadable = True
    byte_size: int | None = None
    schema = _COLUMNS
    label = "the given list"

    def __init__(self, baskets: Sequence[Any]) -> None:
        self._baskets = baskets

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The items, basket by basket."""
        return guard_batches(lambda: self._read(columns), self.label, "give a list of lists of items")

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(self._baskets), BATCH_BASKETS):
            baskets = [_list_items(basket) for basket in self._baskets[start : start + BATCH_BASKETS]]
            basket_of = np.repeat(np.arange(start, start + len(baskets)), [len(items) for items in baskets])
            yield _batch(basket_of, pa.array(itertools.chain.from_iterable(baskets), pa.large_binary()), columns)


def _list_items(basket: Any) -> list[bytes | None]:
    """The items of a basket as bytes; one None if it is empty."""
    if basket is None:
        return [None]
    if isinstance(basket, str | bytes) or not isinstance(basket, Iterable):
        return [bytes_of_object(basket)]
    try:
        return [bytes_of_object(item) for item in basket] or [None]
    except Exception:  # an object's own iterator may raise anything, and one basket must not stop the reading
        return [None]


def _split_lines(lines: bytes) -> tuple[NDArray[np.int64], pa.Array]:
    """The line number and the bytes of each item; then one null item for each empty line.

    Items keep the white space that follows them, which saves a copy; it is stripped when items are compared.
    """
    data = np.frombuffer(lines, np.uint8)
    space = _SPACES[data]
    starts = np.flatnonzero(~space & np.append(True, space[:-1]))
    line_ends = np.flatnonzero(data == ord("\n"))
    line_of = np.searchsorted(line_ends, starts)
    line_count = len(line_ends) + int(data[-1] != ord("\n"))
    empty = np.flatnonzero(np.bincount(line_of, minlength=line_count) == 0)
    offsets = np.append(starts, len(data)).astype(np.int64)
    items = pa.Array.from_buffers(pa.large_binary(), len(starts), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return np.append(line_of, empty), pa.concat_arrays([items, pa.nulls(len(empty), pa.large_binary())])


def _batch(baskets: NDArray[np.int64], items: pa.Array, columns: Sequence[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(baskets), items], schema=_COLUMNS).select(list(columns))
