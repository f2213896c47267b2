"""The rows of a private table that count, read batch by batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.engines.bounding import Keeper, Kept, Limits, RowHasher, RowKeys, SmallestKeys, kept
from dpsyn.engines.engine import Opaque
from dpsyn.errors import InternalError, SourceError
from dpsyn.records import Codec, Codes, check_structure
from dpsyn.schema import Open, Schema
from dpsyn.sources import Source, in_threads

T = TypeVar("T")

Other = Callable[[pa.RecordBatch], NDArray[Any]]
"""Codes of a batch under another reading than the schema's."""


class Part:
    """A batch of rows, with its codes as soon as somebody asks for them."""

    def __init__(self, batch: pa.RecordBatch, codec: Codec) -> None:
        self.batch = batch
        self._codec = codec

    @functools.cached_property
    def codes(self) -> Codes:
        """Fine codes of all attributes but open ones."""
        return self._codec.encode(self.batch)


class Rows(Opaque):
    """The rows of a source that count: all of them, or with a unit at most ``unit.rows`` of each person.

    What a person's rows are chosen by is all that is read from them: their codes, and the texts of attributes that
    are open, or were when the table was first opened; so the same rows are kept once values are bought.

    Privacy: it hands out rows to engines, never further. The structure is checked at once, before any row is read.
    """

    def __init__(
        self, source: Source, schema: Schema, key: bytes, spelled: Iterable[str] = (), threads: int | None = None
    ) -> None:
        check_structure(schema, source.schema, source.where)
        opens = {attribute.name for attribute in schema.measured if isinstance(attribute, Open)}
        self.source, self.schema = source, schema
        self.codec = Codec(schema)
        self.opens = tuple(sorted(opens))
        self.key, self.spelled = key, tuple(sorted(opens.union(spelled)))
        self._threads = threads
        self._hasher = RowHasher(key)
        self._hashed = [place for place, name in enumerate(self.codec.names) if name not in self.spelled]
        self._limits: Limits | None = None

    def under(self, schema: Schema) -> Rows:
        """The same rows under another schema with the same unit."""
        if schema.unit != self.schema.unit:
            raise InternalError("another schema of the same rows must have the same unit of privacy")
        rows = Rows(self.source, schema, self.key, self.spelled)
        if rows._chosen_by() == self._chosen_by():
            rows._limits = self._limits
        return rows

    def require_again(self, why: str) -> None:
        """Refuse, before reading, what needs another reading of a source that has only one."""
        if not self.source.again:
            raise SourceError(f"{self.source.where} can be read only once, but {why}; give a table or a file")

    def all_codes(self) -> list[Codes]:
        """Fine codes of all rows that count, from a single reading, in the source's batches."""
        if self.schema.unit is None:
            return list(self._read(lambda part: part.codes))
        found = list(self._read(lambda part: (part.codes, self._keys(part))))
        chosen = kept(np.concatenate([np.empty((3, 0), np.uint64), *(keys for _, keys in found)], axis=1), self.most)
        ends = pairwise(accumulate((len(codes) for codes, _ in found), initial=0))
        return [codes[chosen[first:stop]] for (codes, _), (first, stop) in zip(found, ends, strict=True)]

    def batches(
        self, take: Callable[[Part], T], other: Other | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[tuple[T, Kept | None]]:
        """What ``take`` gives for every batch, and which rows of it count; None if all do.

        ``other`` is another reading that joins what rows are chosen by. Without a unit only ``columns`` are read.
        """
        if self.schema.unit is None:
            yield from ((taken, None) for taken in self._read(take, columns))
            return
        keeper = self._keeper(other)
        for taken, keys in self.keyed(take, other):
            yield taken, keeper.keep(keys)

    def keyed(self, take: Callable[[Part], T], other: Other | None = None) -> Iterator[tuple[T, RowKeys]]:
        """What ``take`` gives for every batch, and the keys of its rows, where there is a unit."""
        return self._read(lambda part: (take(part), self._keys(part, other)))

    def try_reading(self) -> None:
        """Read everything once, so that a file that cannot be read is found now; with a unit, find the limits."""
        if self.schema.unit is not None:
            self._keeper(None)
        else:
            for _ in self.source.batches(self.schema.columns):
                pass

    def _keeper(self, other: Other | None) -> Keeper:
        """A first reading: which priorities each person keeps. They are kept for later questions.

        Those of another reading of a column are not: no two questions have the same one.
        """
        if other is not None:
            return self._smallest(other).reading()
        if self._limits is None:
            self._limits = self._smallest(None)
        return self._limits.reading()

    def _smallest(self, other: Other | None) -> Limits:
        smallest = SmallestKeys(self.most)
        for keys in self._read(lambda part: self._keys(part, other)):
            smallest.add(keys)
        return smallest.limits()

    def _chosen_by(self) -> object:
        """What the keys of rows are made of, besides the rows."""
        return self.spelled, tuple(self.codec.attributes[place] for place in self._hashed)

    def _read(self, work: Callable[[Part], T], columns: Sequence[str] | None = None) -> Iterator[T]:
        batches = self.source.batches(self.schema.columns if columns is None else columns)
        return in_threads(lambda batch: work(Part(batch, self.codec)), batches, self._threads)

    def _keys(self, part: Part, other: Other | None = None) -> RowKeys:
        unit = self.schema.unit
        if unit is None:
            raise InternalError("rows have keys only where there is a unit")
        return self._hasher.keys(
            part.batch.column(unit.id),
            self.schema[unit.id],
            part.codes[:, self._hashed],
            [part.batch.column(name) for name in self.spelled],
            [other(part.batch)] if other else [],
        )

    @property
    def most(self) -> int:
        """Rows of a person that count at most, where there is a unit."""
        return self.schema.unit.rows if self.schema.unit else 0
