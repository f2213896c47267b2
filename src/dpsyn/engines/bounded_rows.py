"""The rows of a private table that count after contribution bounding, read batch by batch."""

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
from dpsyn.sources import Source, follow_schema, map_in_threads

T = TypeVar("T")

ExtraReading = Callable[[pa.RecordBatch], NDArray[Any]]
"""Codes that are read from a batch in another way than the schema's."""


class EncodedBatch:
    """A batch of rows; its codes are computed on first use."""

    def __init__(self, batch: pa.RecordBatch, codec: Codec) -> None:
        self.arrow = batch
        self._codec = codec

    @functools.cached_property
    def codes(self) -> Codes:
        """The fine codes of all attributes except open ones."""
        return self._codec.encode(self.arrow)


class BoundedRows(Opaque):
    """The rows of a source that count: all rows, or with a privacy unit at most ``privacy_unit.max_rows`` of each unit.

    The priority of a row is a hash of everything that is read from it: its codes, and the texts of attributes that are
    open, or were open when the table was first opened. So the same rows still count after values were discovered.

    Privacy: rows are returned to engines only. The structure is checked in the constructor, before any row is read. See
    ``contribution_bounding`` for why the choice of rows is private.
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
        self.source, self.schema = follow_schema(source, schema), schema
        self.codec = Codec(schema)
        self.open_attributes = tuple(sorted(opens))
        self.key, self.text_attributes = key, tuple(sorted(opens.union(text_attributes)))
        self._threads = threads
        self._hasher = RowHasher(key)
        self._hashed_axes = [axis for axis, name in enumerate(self.codec.names) if name not in self.text_attributes]
        self._limits: PriorityLimits | None = None

    def with_schema(self, schema: Schema) -> BoundedRows:
        """The same rows under another schema with the same privacy unit."""
        if schema.privacy_unit != self.schema.privacy_unit:
            raise InternalError("another schema of the same rows must have the same privacy unit")
        rows = BoundedRows(self.source, schema, self.key, self.text_attributes)
        if rows._key_inputs() == self._key_inputs():
            rows._limits = self._limits
        return rows

    def require_rereadable(self, why: str) -> None:
        """Refuse, before reading, a source that can be read only once; ``why`` names what needs another reading."""
        if not self.source.rereadable:
            raise SourceError(f"{self.source.label} can be read only once, but {why}; give a table or a file instead")

    def read_codes(self) -> list[Codes]:
        """The fine codes of all rows that count, from one reading, in the batches of the source."""
        if self.schema.privacy_unit is None:
            return list(self._read(lambda batch: batch.codes))
        pairs = list(self._read(lambda batch: (batch.codes, self._row_keys(batch))))
        mask = bound_contributions(
            np.concatenate([np.empty((3, 0), np.uint64), *(keys for _, keys in pairs)], axis=1),
            self.max_rows_per_unit,
        )
        spans = pairwise(accumulate((len(codes) for codes, _ in pairs), initial=0))
        return [codes[mask[first:stop]] for (codes, _), (first, stop) in zip(pairs, spans, strict=True)]

    def read_batches(
        self,
        extract: Callable[[EncodedBatch], T],
        extra_reading: ExtraReading | None = None,
        columns: Sequence[str] | None = None,
    ) -> Iterator[tuple[T, RowMask | None]]:
        """The result of ``extract`` for every batch, and which rows of the batch count; None if all do.

        The codes of ``extra_reading`` are hashed into the priorities of rows. Without a privacy unit, only ``columns``
        are read.
        """
        if self.schema.privacy_unit is None:
            yield from ((values, None) for values in self._read(extract, columns))
            return
        row_filter = self._start_filter(extra_reading)
        for values, keys in self.read_keyed_batches(extract, extra_reading):
            yield values, row_filter.select_rows(keys)

    def read_keyed_batches(
        self, extract: Callable[[EncodedBatch], T], extra_reading: ExtraReading | None = None
    ) -> Iterator[tuple[T, RowKeys]]:
        """The result of ``extract`` for every batch, and the keys of its rows; the schema must have a privacy unit."""
        return self._read(lambda batch: (extract(batch), self._row_keys(batch, extra_reading)))

    def try_reading(self) -> None:
        """Read everything once, so that an unreadable file fails now; with a privacy unit, find the limits of units."""
        if self.schema.privacy_unit is not None:
            self._start_filter(None)
        else:
            for _ in self.source.batches(self.schema.columns):
                pass

    def _start_filter(self, extra_reading: ExtraReading | None) -> ContributionFilter:
        """A filter for one reading. The limits of units need a reading before; they are stored for later queries.

        Limits with an ``extra_reading`` are not stored, because no two queries have the same one.
        """
        if extra_reading is not None:
            return self._find_limits(extra_reading).start_pass()
        if self._limits is None:
            self._limits = self._find_limits(None)
        return self._limits.start_pass()

    def _find_limits(self, extra_reading: ExtraReading | None) -> PriorityLimits:
        smallest = SmallestKeys(self.max_rows_per_unit)
        for keys in self._read(lambda batch: self._row_keys(batch, extra_reading)):
            smallest.add(keys)
        return smallest.limits()

    def _key_inputs(self) -> object:
        """Everything that the keys of rows depend on, besides the rows and the secret key."""
        return self.text_attributes, tuple(self.codec.attributes[axis] for axis in self._hashed_axes)

    def _read(self, work: Callable[[EncodedBatch], T], columns: Sequence[str] | None = None) -> Iterator[T]:
        batches = self.source.batches(self.schema.columns if columns is None else columns)
        return map_in_threads(lambda batch: work(EncodedBatch(batch, self.codec)), batches, self._threads)

    def _row_keys(self, batch: EncodedBatch, extra_reading: ExtraReading | None = None) -> RowKeys:
        unit = self.schema.privacy_unit
        if unit is None:
            raise InternalError("rows have keys only if the schema has a privacy unit")
        return self._hasher.compute_keys(
            batch.arrow.column(unit.id),
            self.schema[unit.id],
            batch.codes[:, self._hashed_axes],
            [batch.arrow.column(name) for name in self.text_attributes],
            [extra_reading(batch.arrow)] if extra_reading else [],
        )

    @property
    def max_rows_per_unit(self) -> int:
        """The bound k on the rows of a privacy unit; 0 if the schema has none."""
        return self.schema.privacy_unit.max_rows if self.schema.privacy_unit else 0
