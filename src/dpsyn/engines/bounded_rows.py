"""The rows of a private table that count, read batch by batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.encoding import Codec, Codes, check_structure
from dpsyn.engines.contribution_bounding import (
    ContributionFilter,
    PriorityLimits,
    RowHasher,
    RowKeys,
    RowMask,
    SmallestKeys,
    bound_contributions,
)
from dpsyn.engines.engine import Opaque
from dpsyn.errors import InternalError, SourceError
from dpsyn.schema import Schema
from dpsyn.sources import Source, map_in_threads

T = TypeVar("T")

ExtraReading = Callable[[pa.RecordBatch], NDArray[Any]]
"""Codes of a batch under another reading than the schema's."""


class EncodedBatch:
    """A batch of rows, with its codes as soon as somebody asks for them."""

    def __init__(self, batch: pa.RecordBatch, codec: Codec) -> None:
        self.arrow = batch
        self._codec = codec

    @functools.cached_property
    def codes(self) -> Codes:
        """Fine codes of all attributes but open ones."""
        return self._codec.encode(self.arrow)


class BoundedRows(Opaque):
    """The rows of a source that count: all of them, or with a unit at most ``unit.rows`` of each person.

    What a person's rows are chosen by is all that is read from them: their codes, and the texts of attributes that
    are open, or were when the table was first opened; so the same rows are kept once values are bought.

    Privacy: it hands out rows to engines, never further. The structure is checked at once, before any row is read.
    """

    def __init__(
        self,
        source: Source,
        schema: Schema,
        key: bytes,
        text_attributes: Iterable[str] = (),
        threads: int | None = None,
    ) -> None:
        check_structure(schema, source.schema, source.label)
        opens = {attribute.name for attribute in schema.open_attributes}
        self.source, self.schema = source, schema
        self.codec = Codec(schema)
        self.open_attributes = tuple(sorted(opens))
        self.key, self.text_attributes = key, tuple(sorted(opens.union(text_attributes)))
        self._threads = threads
        self._hasher = RowHasher(key)
        self._hashed_axes = [place for place, name in enumerate(self.codec.names) if name not in self.text_attributes]
        self._limits: PriorityLimits | None = None

    def with_schema(self, schema: Schema) -> BoundedRows:
        """The same rows under another schema with the same unit."""
        if schema.privacy_unit != self.schema.privacy_unit:
            raise InternalError("another schema of the same rows must have the same unit of privacy")
        rows = BoundedRows(self.source, schema, self.key, self.text_attributes)
        if rows._key_inputs() == self._key_inputs():
            rows._limits = self._limits
        return rows

    def require_rereadable(self, why: str) -> None:
        """Refuse, before reading, what needs another reading of a source that has only one."""
        if not self.source.rereadable:
            raise SourceError(f"{self.source.label} can be read only once, but {why}; give a table or a file")

    def read_codes(self) -> list[Codes]:
        """Fine codes of all rows that count, from a single reading, in the source's batches."""
        if self.schema.privacy_unit is None:
            return list(self._read(lambda part: part.codes))
        found = list(self._read(lambda part: (part.codes, self._row_keys(part))))
        chosen = bound_contributions(
            np.concatenate([np.empty((3, 0), np.uint64), *(keys for _, keys in found)], axis=1),
            self.max_rows_per_person,
        )
        ends = pairwise(accumulate((len(codes) for codes, _ in found), initial=0))
        return [codes[chosen[first:stop]] for (codes, _), (first, stop) in zip(found, ends, strict=True)]

    def read_batches(
        self,
        extract: Callable[[EncodedBatch], T],
        extra_reading: ExtraReading | None = None,
        columns: Sequence[str] | None = None,
    ) -> Iterator[tuple[T, RowMask | None]]:
        """What ``extract`` gives for every batch, and which rows of it count; None if all do.

        ``extra_reading`` is another reading that joins what rows are chosen by. Without a unit only ``columns`` are read.
        """
        if self.schema.privacy_unit is None:
            yield from ((taken, None) for taken in self._read(extract, columns))
            return
        keeper = self._start_filter(extra_reading)
        for taken, keys in self.read_keyed_batches(extract, extra_reading):
            yield taken, keeper.select_rows(keys)

    def read_keyed_batches(
        self, extract: Callable[[EncodedBatch], T], extra_reading: ExtraReading | None = None
    ) -> Iterator[tuple[T, RowKeys]]:
        """What ``extract`` gives for every batch, and the keys of its rows, where there is a unit."""
        return self._read(lambda part: (extract(part), self._row_keys(part, extra_reading)))

    def try_reading(self) -> None:
        """Read everything once, so that a file that cannot be read is found now; with a unit, find the limits."""
        if self.schema.privacy_unit is not None:
            self._start_filter(None)
        else:
            for _ in self.source.batches(self.schema.columns):
                pass

    def _start_filter(self, extra_reading: ExtraReading | None) -> ContributionFilter:
        """A first reading: which priorities each person keeps. They are kept for later questions.

        Those of another reading of a column are not: no two questions have the same one.
        """
        if extra_reading is not None:
            return self._find_limits(extra_reading).start_pass()
        if self._limits is None:
            self._limits = self._find_limits(None)
        return self._limits.start_pass()

    def _find_limits(self, extra_reading: ExtraReading | None) -> PriorityLimits:
        smallest = SmallestKeys(self.max_rows_per_person)
        for keys in self._read(lambda part: self._row_keys(part, extra_reading)):
            smallest.add(keys)
        return smallest.limits()

    def _key_inputs(self) -> object:
        """What the keys of rows are made of, besides the rows."""
        return self.text_attributes, tuple(self.codec.attributes[place] for place in self._hashed_axes)

    def _read(self, work: Callable[[EncodedBatch], T], columns: Sequence[str] | None = None) -> Iterator[T]:
        batches = self.source.batches(self.schema.columns if columns is None else columns)
        return map_in_threads(lambda batch: work(EncodedBatch(batch, self.codec)), batches, self._threads)

    def _row_keys(self, batch: EncodedBatch, extra_reading: ExtraReading | None = None) -> RowKeys:
        unit = self.schema.privacy_unit
        if unit is None:
            raise InternalError("rows have keys only where there is a unit")
        return self._hasher.compute_keys(
            batch.arrow.column(unit.id),
            self.schema[unit.id],
            batch.codes[:, self._hashed_axes],
            [batch.arrow.column(name) for name in self.text_attributes],
            [extra_reading(batch.arrow)] if extra_reading else [],
        )

    @property
    def max_rows_per_person(self) -> int:
        """Rows of a person that count at most, where there is a unit."""
        return self.schema.privacy_unit.max_rows if self.schema.privacy_unit else 0
