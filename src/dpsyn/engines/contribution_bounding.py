"""At most k rows of each person, chosen by that person's rows and a secret key alone.

Every row has a *priority*: a keyed hash of its person and of all that is read from it. Of each person the k rows with
the smallest priorities are kept. Rows that are read alike have the same priority, and it does not matter which of them
is kept, only how many. So the order of the table has no say, nor has any other person; and nobody without the key can
foresee which rows are kept.

Rows without an id are left out. Were they bounded together as one person, any one of them could push another out, and
so change twice as much as is charged.

Privacy: a person is known by 128 bits of keyed hash of the id. Two persons who shared them would be bounded
together, and one of them could change which rows of the other are kept; that happens with probability below n²/2¹²⁸.
Two different rows of one person with the same 64 bits of priority cost nothing: still at most k rows are kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsyn.encoding import Codes, arrays
from dpsyn.encoding.entries import entry_texts
from dpsyn.engines import kernels
from dpsyn.errors import InternalError
from dpsyn.schema import Attribute

KEY_BYTES = 16

RowKeys = NDArray[np.uint64]
"""Three × rows: two words of the person, the priority."""

_NO_PERSON = np.uint64(2**64 - 1)
"""Both words of the person where a row has no id; no hash is likely to be like it."""

RowMask = NDArray[np.bool_]

_MIN_PENDING_KEYS = 1 << 20
"""Rows whose keys are gathered before they are sorted: 25 MB."""


class RowHasher:
    """Finds the person and the priority of rows. ``key`` is secret, drawn by whoever opens the table."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise InternalError(f"a key has {KEY_BYTES} bytes, not {len(key)}")
        words = hashlib.blake2b(b"bounding", key=key, digest_size=64).digest()
        self._person, self._same_person, self._text, self._row = np.frombuffer(words, "<u8").reshape(4, 2).copy()

    def compute_keys(
        self,
        ids: pa.Array,
        attribute: Attribute,
        codes: Codes,
        texts: Sequence[pa.Array] = (),
        others: Sequence[NDArray[np.unsignedinteger]] = (),
    ) -> RowKeys:
        """Keys of rows by their ids and by what is read from them: codes, texts, and codes of other readings."""
        persons = normalize_ids(ids, attribute)
        keys = np.empty((3, len(codes)), np.uint64)
        keys[0], keys[1] = keyed_hashes(persons, self._person), keyed_hashes(persons, self._same_person)
        keys[:2, arrays.null_mask(persons)] = _NO_PERSON
        words = np.empty((2 + len(texts) + len(others), len(codes)), np.uint64)
        words[:2] = keys[:2]  # so that each person's rows are chosen independently of all others'
        for number, array in enumerate(texts, start=2):
            words[number] = keyed_hashes(entry_texts(array), self._text)
        for number, other in enumerate(others, start=2 + len(texts)):
            words[number] = other
        kernels.hash_rows(np.ascontiguousarray(codes.T), words, self._row, keys[2])
        return keys


def bound_contributions(keys: RowKeys, max_rows: int) -> RowMask:
    """Which rows are kept, where the keys of all rows are at hand."""
    order = _order_by_person(keys)
    chosen = np.zeros(keys.shape[1], np.bool_)
    chosen[order[_ranks_within_person(keys[:, order]) < max_rows]] = True
    return chosen & ~_has_no_person(keys)


class SmallestKeys:
    """Gathers the k smallest keys of each person from batches; memory is about that of those keys."""

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
        self._smallest: RowKeys = np.empty((3, 0), np.uint64)
        self._pending: list[RowKeys] = []

    def add(self, keys: RowKeys) -> None:
        """Take the keys of a batch."""
        self._pending.append(keys[:, ~_has_no_person(keys)])
        if sum(part.shape[1] for part in self._pending) > max(_MIN_PENDING_KEYS, self._smallest.shape[1]):
            self._keep_smallest()

    def limits(self) -> PriorityLimits:
        """What each person's rows are compared with when the table is read again."""
        self._keep_smallest()
        first = np.flatnonzero(_ranks_within_person(self._smallest) == 0)
        sizes = np.diff(np.append(first, self._smallest.shape[1]))
        highest = self._smallest[2, first + sizes - 1]
        at_limit = self._smallest[2] == np.repeat(highest, sizes)
        ties = np.add.reduceat(at_limit, first, dtype=np.int64) if len(first) else np.zeros(0, np.int64)
        return PriorityLimits(self._smallest[:2, first], highest, sizes - ties, ties)

    def _keep_smallest(self) -> None:
        keys = np.concatenate([self._smallest, *self._pending], axis=1)
        keys = keys[:, _order_by_person(keys)]
        self._smallest, self._pending = keys[:, _ranks_within_person(keys) < self._max_rows], []


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PriorityLimits:
    """For each person, in ascending order, the highest priority that is kept.

    Attributes:
        persons: two words each.
        highest: the priority.
        below: how many rows lie below it.
        ties: how many rows at it are kept; there may be more of them.
    """

    persons: NDArray[np.uint64]
    highest: NDArray[np.uint64]
    below: NDArray[np.int64]
    ties: NDArray[np.int64]

    def start_pass(self) -> ContributionFilter:
        """The beginning of one reading of the table."""
        return ContributionFilter(self)


class ContributionFilter:
    """Says during one reading of the table which rows are kept.

    Should the table have changed since the limits were found, rows of unknown persons are left out and known ones
    still keep no more than k.
    """

    def __init__(self, limits: PriorityLimits) -> None:
        self._limits = limits
        self._below, self._ties = limits.below.copy(), limits.ties.copy()
        bits = max(1, len(limits.highest).bit_length())
        self._shift = 64 - bits
        starts = np.arange(1 << bits, dtype=np.uint64) << np.uint64(self._shift)
        self._buckets = np.append(np.searchsorted(limits.persons[0], starts), len(limits.highest))

    def select_rows(self, keys: RowKeys) -> RowMask:
        """Which rows of the next batch are kept."""
        chosen = np.zeros(keys.shape[1], np.bool_)
        kernels.keep_rows(
            keys,
            np.ascontiguousarray(self._limits.persons),
            self._buckets,
            self._shift,
            self._limits.highest,
            self._below,
            self._ties,
            chosen,
        )
        return chosen


class RunningRanks:
    """The place of each row among those of its person, where rows come in order, batch by batch."""

    def __init__(self) -> None:
        self._last: NDArray[np.uint64] = np.empty((2, 0), np.uint64)
        self._seen = 0

    def next_ranks(self, ordered: RowKeys) -> NDArray[np.int64]:
        """The places of the rows of the next batch, from 0."""
        if not ordered.shape[1]:
            return np.zeros(0, np.int64)
        ranks = _ranks_within_person(ordered)
        if self._last.size:
            ranks[np.all(ordered[:2] == self._last, axis=0)] += self._seen
        self._last, self._seen = ordered[:2, -1:].copy(), int(ranks[-1]) + 1
        return ranks


def _has_no_person(keys: RowKeys) -> NDArray[np.bool_]:
    return np.asarray((keys[0] == _NO_PERSON) & (keys[1] == _NO_PERSON))


def _order_by_person(keys: RowKeys) -> NDArray[np.int64]:
    """The order of rows by person and then by priority."""
    order: NDArray[np.int64] = np.lexsort((keys[2], keys[1], keys[0]))
    return order


def _ranks_within_person(ordered: RowKeys) -> NDArray[np.int64]:
    """The place of each row among those of its person, from 0, where rows are in order."""
    rows = np.arange(ordered.shape[1])
    same = (ordered[0, 1:] == ordered[0, :-1]) & (ordered[1, 1:] == ordered[1, :-1])
    new = np.append(np.ones(min(1, len(rows)), np.bool_), ~same)
    return rows - np.maximum.accumulate(np.where(new, rows, 0))


# ── Ids that tell persons apart, and keyed hashes of texts ──


_NO_TEXT = b"\xff null"
"""What is hashed for a null; no text in UTF-8 is like it."""


def normalize_ids(array: pa.Array, attribute: Attribute) -> pa.Array:
    """Texts that tell persons apart: without spaces around them; null for rows without an id.

    The whole number 42, the float 42.0 and the text "42" are the same id, because files and databases turn them into
    each other. Bytes that are not UTF-8 stay as they are: persons must not be mistaken for one another.
    """
    texts = arrays.as_string(entry_texts(array))
    bare = pc.ascii_trim_whitespace(texts)
    nothing = pa.array(["", "nan", "-nan", "+nan"], bare.type)
    spelled = pa.array(attribute.null_spellings, bare.type)
    empty = pc.or_(pc.is_in(pc.ascii_lower(bare), nothing), pc.or_(pc.is_in(bare, spelled), pc.is_in(texts, spelled)))
    return pc.if_else(empty, pa.scalar(None, bare.type), bare).cast(pa.large_binary())


def keyed_hashes(texts: pa.Array, key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A keyed hash of every text of an array of bytes; nulls have one too."""
    filled = texts.fill_null(_NO_TEXT)
    _, ends, data = filled.buffers()
    offsets = np.frombuffer(ends, np.int64, len(filled) + 1, 8 * filled.offset).copy() if len(filled) else np.zeros(1)
    raw = np.frombuffer(data, np.uint8).copy() if data is not None and data.size else np.zeros(0, np.uint8)
    hashes = np.empty(len(filled), np.uint64)
    kernels.hash_texts(raw, offsets.astype(np.int64), key, hashes)
    return hashes
