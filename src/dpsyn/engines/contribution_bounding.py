"""Contribution bounding: at most k rows of each privacy unit count, whatever the table holds.

A *privacy unit* is everything that one person (or household, or device) has in the table: all rows with the same id.
The guarantee holds for adding or removing a whole unit. Without a bound a unit could have any number of rows, so the
sensitivity of a count would be unlimited; with the bound it is k (Wilson et al., "Differentially Private SQL with
Bounded User Contribution", PoPETs 2020).

Every row has a *priority*: a keyed hash of its unit and of everything that is read from the row. The k rows of each
unit with the smallest priorities count. Rows with equal contents have the same priority; it does not matter which of
them count, only how many.

Privacy: which rows of a unit count depends only on the unit's own rows and on a secret key that is drawn anew for each
run. It depends neither on the order of the table nor on other units. So adding or removing a unit adds or removes at
most k counted rows and changes no others: a marginal has L1 and L2 sensitivity k (2k and √2·k where one unit replaces
another). Nobody without the key can predict which rows count.

Rows without an id are left out. If they were bounded together as one unit, one of them could displace another, and so
change twice as much as is charged.

A unit is identified by a keyed hash of 128 bits of its id. Two units with the same hash would be bounded together, and
one of them could change which rows of the other count; for n units the probability is below n²/2¹²⁸. Two different rows
of one unit with the same priority of 64 bits do no harm: still at most k rows count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.encoding import Codes, arrays
from dpsyn.encoding.entry_parser import entry_texts
from dpsyn.encoding.unit_ids import normalize_ids
from dpsyn.engines import kernels
from dpsyn.errors import InternalError
from dpsyn.schema import Attribute

KEY_BYTES = 16

RowKeys = NDArray[np.uint64]
"""Three × rows: the two words of the unit's hash, and the priority."""

_NO_UNIT = np.uint64(2**64 - 1)
"""Both words of the unit's hash for a row without an id; a real hash equals it with probability 2⁻¹²⁸."""

RowMask = NDArray[np.bool_]

_MIN_PENDING_KEYS = 1 << 20
"""Keys that are collected before they are sorted: 25 MB."""


class RowHasher:
    """Computes the keys of rows: the unit's hash and the priority. ``key`` is the secret key of the run."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise InternalError(f"a key has {KEY_BYTES} bytes, not {len(key)}")
        words = hashlib.blake2b(b"bounding", key=key, digest_size=64).digest()
        self._unit, self._unit_again, self._text, self._row = np.frombuffer(words, "<u8").reshape(4, 2).copy()

    def compute_keys(
        self,
        ids: pa.Array,
        attribute: Attribute,
        codes: Codes,
        texts: Sequence[pa.Array] = (),
        others: Sequence[NDArray[np.unsignedinteger]] = (),
    ) -> RowKeys:
        """The keys of rows, from their ids and from everything that is read: codes, texts, and extra codes."""
        units = normalize_ids(ids, attribute)
        keys = np.empty((3, len(codes)), np.uint64)
        keys[0], keys[1] = keyed_hashes(units, self._unit), keyed_hashes(units, self._unit_again)
        keys[:2, arrays.null_mask(units)] = _NO_UNIT
        words = np.empty((2 + len(texts) + len(others), len(codes)), np.uint64)
        words[:2] = keys[:2]  # the rows of each unit are chosen independently of those of all others
        for index, array in enumerate(texts, start=2):
            words[index] = keyed_hashes(entry_texts(array), self._text)
        for index, other in enumerate(others, start=2 + len(texts)):
            words[index] = other
        kernels.hash_rows(np.ascontiguousarray(codes.T), words, self._row, keys[2])
        return keys


def bound_contributions(keys: RowKeys, max_rows: int) -> RowMask:
    """Which rows count: the ``max_rows`` of each unit with the smallest priorities. ``keys`` are those of all rows."""
    order = _order_by_unit(keys)
    mask = np.zeros(keys.shape[1], np.bool_)
    mask[order[_ranks_within_unit(keys[:, order]) < max_rows]] = True
    return mask & ~_has_no_unit(keys)


class SmallestKeys:
    """Collects the k smallest keys of each unit from batches; memory is about that of those keys."""

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
        self._smallest: RowKeys = np.empty((3, 0), np.uint64)
        self._pending: list[RowKeys] = []

    def add(self, keys: RowKeys) -> None:
        """Add the keys of a batch."""
        self._pending.append(keys[:, ~_has_no_unit(keys)])
        if sum(part.shape[1] for part in self._pending) > max(_MIN_PENDING_KEYS, self._smallest.shape[1]):
            self._keep_smallest()

    def limits(self) -> PriorityLimits:
        """The limits that the rows of each unit are compared with when the table is read again."""
        self._keep_smallest()
        first = np.flatnonzero(_ranks_within_unit(self._smallest) == 0)
        sizes = np.diff(np.append(first, self._smallest.shape[1]))
        highest = self._smallest[2, first + sizes - 1]
        at_limit = self._smallest[2] == np.repeat(highest, sizes)
        ties = np.add.reduceat(at_limit, first, dtype=np.int64) if len(first) else np.zeros(0, np.int64)
        return PriorityLimits(self._smallest[:2, first], highest, sizes - ties, ties)

    def _keep_smallest(self) -> None:
        keys = np.concatenate([self._smallest, *self._pending], axis=1)
        keys = keys[:, _order_by_unit(keys)]
        self._smallest, self._pending = keys[:, _ranks_within_unit(keys) < self._max_rows], []


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PriorityLimits:
    """For each unit, the highest priority that counts.

    Attributes:
        units: the hashes of the units, two words each, in ascending order.
        highest: the highest priority that counts.
        below: the number of rows with a lower priority.
        ties: the number of rows with exactly this priority that count; the table may have more of them.
    """

    units: NDArray[np.uint64]
    highest: NDArray[np.uint64]
    below: NDArray[np.int64]
    ties: NDArray[np.int64]

    def start_pass(self) -> ContributionFilter:
        """Start one reading of the table."""
        return ContributionFilter(self)


class ContributionFilter:
    """Decides during one reading of the table which rows count.

    If the table has changed since the limits were found, rows of unknown units are left out, and known units still have
    at most k rows.
    """

    def __init__(self, limits: PriorityLimits) -> None:
        self._limits = limits
        self._below, self._ties = limits.below.copy(), limits.ties.copy()
        bits = max(1, len(limits.highest).bit_length())
        self._shift = 64 - bits
        starts = np.arange(1 << bits, dtype=np.uint64) << np.uint64(self._shift)
        self._buckets = np.append(np.searchsorted(limits.units[0], starts), len(limits.highest))

    def select_rows(self, keys: RowKeys) -> RowMask:
        """Which rows of the next batch count."""
        mask = np.zeros(keys.shape[1], np.bool_)
        kernels.keep_rows(
            keys,
            np.ascontiguousarray(self._limits.units),
            self._buckets,
            self._shift,
            self._limits.highest,
            self._below,
            self._ties,
            mask,
        )
        return mask


class RunningRanks:
    """The rank of each row within its unit, where rows come in the order of their keys, batch by batch."""

    def __init__(self) -> None:
        self._last: NDArray[np.uint64] = np.empty((2, 0), np.uint64)
        self._seen = 0

    def next_ranks(self, ordered: RowKeys) -> NDArray[np.int64]:
        """The ranks of the rows of the next batch, from 0."""
        if not ordered.shape[1]:
            return np.zeros(0, np.int64)
        ranks = _ranks_within_unit(ordered)
        if self._last.size:
            ranks[np.all(ordered[:2] == self._last, axis=0)] += self._seen
        self._last, self._seen = ordered[:2, -1:].copy(), int(ranks[-1]) + 1
        return ranks


def _has_no_unit(keys: RowKeys) -> NDArray[np.bool_]:
    return np.asarray((keys[0] == _NO_UNIT) & (keys[1] == _NO_UNIT))


def _order_by_unit(keys: RowKeys) -> NDArray[np.int64]:
    """The order of rows by unit, and then by priority."""
    order: NDArray[np.int64] = np.lexsort((keys[2], keys[1], keys[0]))
    return order


def _ranks_within_unit(ordered: RowKeys) -> NDArray[np.int64]:
    """The rank of each row within its unit, from 0, where rows are in the order of their keys."""
    rows = np.arange(ordered.shape[1])
    same = (ordered[0, 1:] == ordered[0, :-1]) & (ordered[1, 1:] == ordered[1, :-1])
    new = np.append(np.ones(min(1, len(rows)), np.bool_), ~same)
    return rows - np.maximum.accumulate(np.where(new, rows, 0))


# ── keyed hashes of texts ──────────────────────────────────────────────────────────────────


_NO_TEXT = b"\xff null"
"""The bytes that are hashed for a null; they are not valid UTF-8, so no text equals them."""


def keyed_hashes(texts: pa.Array, key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A keyed hash of 64 bits (SipHash-2-4) of every text of an array of bytes; nulls have one too."""
    filled = texts.fill_null(_NO_TEXT)
    _, ends, data = filled.buffers()
    offsets = np.frombuffer(ends, np.int64, len(filled) + 1, 8 * filled.offset).copy() if len(filled) else np.zeros(1)
    raw = np.frombuffer(data, np.uint8).copy() if data is not None and data.size else np.zeros(0, np.uint8)
    hashes = np.empty(len(filled), np.uint64)
    kernels.hash_texts(raw, offsets.astype(np.int64), key, hashes)
    return hashes
