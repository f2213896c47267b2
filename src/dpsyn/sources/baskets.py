"""Readers of baskets (transactions), all in the long form: one row for each item of a basket.

An empty basket is one row without an item. The engine that counts baskets therefore reads one form only. Baskets that
have no ids of their own are numbered in the order of the data; the numbers tell baskets apart and mean nothing else.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.encoding.entry_parser import bytes_of_object
from dpsyn.errors import SourceError
from dpsyn.schema.baskets import MAX_ITEM_LENGTH
from dpsyn.sources.factory import open_source
from dpsyn.sources.source import Protect, Source, check_protect, guard_batches

BLOCK_BYTES = 1 << 22
"""Bytes that are read at a time; a line may be longer."""

MAX_WORD_BYTES = 4 * (MAX_ITEM_LENGTH + 1)
"""Bytes of a word that are read, if it does not end in its block; what is longer is not an item."""

BATCH_BASKETS = 1 << 14
"""Baskets of a list that make one batch."""

_COLUMNS = pa.schema([("basket", pa.int64()), ("item", pa.large_binary())])
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_SPACE_BYTES = (b" ", b"\t", b"\n", b"\v", b"\f", b"\r")
_SPACES = np.zeros(256, np.bool_)
_SPACES[list(b"".join(_SPACE_BYTES))] = True


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


def has_basket_ids(source: Source) -> bool:
    """Whether baskets have ids of their own; otherwise they are numbered in the order of the data."""
    return not isinstance(source, BasketLinesSource | BasketListSource)


def _suffix(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in _COMPRESSED else "".join(suffixes[-1:])


class BasketLinesSource:
    """A text file with one basket on each line; an empty line is an empty basket.

    Everything between white space is an item, so no line can be invalid: bytes that are not UTF-8 become an item that
    no universe of items lists. A line and an item may have any length; memory is a few blocks.
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
        line, unfinished, filled = 0, False, False  # of the last line: its number, has it a byte, has it an item
        for part in self._read_parts():
            lines, items, line_ends = _split_words(part)
            words = np.bincount(lines, minlength=line_ends + 1)
            words[0] += filled
            empty = np.flatnonzero(words[:line_ends] == 0)
            nulls = pa.nulls(len(empty), pa.large_binary())
            yield _batch(line + np.append(lines, empty), pa.concat_arrays([items, nulls]), columns)
            line, unfinished, filled = line + line_ends, not part.endswith(b"\n"), bool(words[line_ends])
        if unfinished and not filled:
            yield _batch(np.array([line]), pa.nulls(1, pa.large_binary()), columns)

    def _read_parts(self) -> Iterator[bytes]:
        """The bytes of the file, in parts that end at the end of a word."""
        word = b""
        with pa.input_stream(str(self._path), compression="detect") as stream:
            while block := stream.read(BLOCK_BYTES):
                data = word + block
                end = max(data.rfind(space) for space in _SPACE_BYTES) + 1
                if end:
                    yield data[:end]
                word = data[end : end + MAX_WORD_BYTES]
        if word:
            yield word


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
            with warnings.catch_warnings():  # of the objects' own methods; they could quote them
                warnings.simplefilter("ignore")
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


def _split_words(part: bytes) -> tuple[NDArray[np.int64], pa.Array, int]:
    """The line and the bytes of each word, and the number of line breaks.

    Words keep the white space that follows them, which saves a copy; it is stripped when items are compared.
    """
    data = np.frombuffer(part, np.uint8)
    space = _SPACES[data]
    starts = np.flatnonzero(~space & np.append(True, space[:-1]))
    line_ends = np.flatnonzero(data == ord("\n"))
    offsets = np.append(starts, len(data)).astype(np.int64)
    words = pa.Array.from_buffers(pa.large_binary(), len(starts), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return np.searchsorted(line_ends, starts), words, len(line_ends)


def _batch(baskets: NDArray[np.int64], items: pa.Array, columns: Sequence[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(baskets), items], schema=_COLUMNS).select(list(columns))
