"""The baskets that count, read from a long table."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.encoding.entries import entry_texts, text_of_bytes
from dpsyn.engines import kernels
from dpsyn.engines.contribution_bounding import RowHasher, RowKeys, bound_contributions, keyed_hashes, normalize_ids
from dpsyn.engines.engine import Opaque
from dpsyn.schema import BasketSchema, Identifier, is_item
from dpsyn.sources import Source, map_in_threads

_NO_ITEM = -1
"""The code of a row without an item."""


class BoundedBaskets(Opaque):
    """Baskets in memory, one after another, each item of a basket once.

    Rows with the same basket (and person) make a basket, wherever they stand; rows without one, or without a person
    where there is a unit, are left out. With a unit at most ``unit.rows`` baskets of each person count, chosen by a
    keyed hash of person and basket alone (see ``bounding``). An item is the text of a cell without spaces around it;
    an empty cell is none, nor is one with control characters in it.

    Attributes:
        ends: basket b has the items from ``ends[b]`` to ``ends[b+1]``.
        items: their numbers among ``texts``.
        texts: the items that occur.
        words: a keyed hash of each basket.
    """

    def __init__(
        self, ends: NDArray[np.int64], items: NDArray[np.int32], texts: list[str], words: NDArray[np.uint64]
    ) -> None:
        self.ends, self.items, self.texts, self.words = ends, items, texts, words

    @classmethod
    def read(cls, source: Source, schema: BasketSchema, key: bytes) -> BoundedBaskets:
        """All baskets of a source that count."""
        texts: dict[str, int] = {}
        keys, codes = [np.empty((3, 0), np.uint64)], [np.empty(0, np.int32)]
        for batch_keys, numbers, found in _read_batches(source, schema, key):
            code_of = [texts.setdefault(text, len(texts)) if is_item(text) else _NO_ITEM for text in found]
            keys.append(batch_keys)
            codes.append(np.array([*code_of, _NO_ITEM], np.int32)[numbers])
        most = schema.privacy_unit.max_rows if schema.privacy_unit else 1
        return cls(*_group_into_baskets(np.concatenate(keys, axis=1), np.concatenate(codes), most, list(texts)))

    def limit_items(self, max_items: int, key: bytes) -> NDArray[np.int32]:
        """The items of all baskets, of each at most so many, chosen by a keyed hash of the basket and its items.

        The choice depends on the basket and the texts of its items alone, never on the order of the table.
        """
        lengths = np.diff(self.ends)
        baskets = np.repeat(np.arange(len(lengths)), lengths)
        secret = np.frombuffer(hashlib.blake2b(b"limiting", key=key, digest_size=32).digest(), "<u8").reshape(2, 2)
        of_texts = keyed_hashes(pa.array([text.encode() for text in self.texts], pa.large_binary()), secret[0].copy())
        words = np.stack([self.words[baskets], of_texts[self.items]])
        priorities = np.empty(len(baskets), np.uint64)
        kernels.hash_rows(np.empty((0, len(baskets)), np.uint8), words, secret[1].copy(), priorities)
        order = np.lexsort((priorities, baskets))
        return self.items[order[_ranks_within_basket(self.ends) < max_items]]


def _read_batches(
    source: Source, schema: BasketSchema, key: bytes
) -> Iterator[tuple[RowKeys, NDArray[np.int64], list[str]]]:
    """Of every batch: the keys of its rows, the item of each as a position, and the texts at these positions.

    The last position, beyond the texts, is that of rows without an item.
    """
    hasher = RowHasher(key)
    owner = schema.privacy_unit.id if schema.privacy_unit else schema.basket

    def read(batch: pa.RecordBatch) -> tuple[RowKeys, NDArray[np.int64], list[str]]:
        baskets = normalize_ids(batch.column(schema.basket), Identifier(name=schema.basket))
        batch = batch.filter(baskets.is_valid())  # a row without a basket belongs to none, whoever it is of
        nothing = np.empty((batch.num_rows, 0), np.uint8)
        within = [baskets.drop_null()] if schema.privacy_unit else []
        keys = hasher.compute_keys(batch.column(owner), Identifier(name=owner), nothing, within)
        items = entry_texts(batch.column(schema.item)).dictionary_encode()
        found = [text_of_bytes(raw).strip() for raw in items.dictionary.to_pylist()]
        return keys, items.indices.fill_null(len(found)).to_numpy().astype(np.int64), found

    return map_in_threads(read, source.batches(schema.columns))


def _group_into_baskets(
    keys: RowKeys, codes: NDArray[np.int32], max_baskets: int, texts: list[str]
) -> tuple[NDArray[np.int64], NDArray[np.int32], list[str], NDArray[np.uint64]]:
    """Rows as baskets: those of one key together, each item once, at most so many baskets of one person."""
    order = np.lexsort((codes, keys[2], keys[1], keys[0]))
    keys, codes = keys[:, order], codes[order]
    first = np.append(np.ones(min(1, len(codes)), np.bool_), (keys[:, 1:] != keys[:, :-1]).any(axis=0))
    again = np.append(np.zeros(min(1, len(codes)), np.bool_), codes[1:] == codes[:-1]) & ~first
    basket_keys = keys[:, first]
    counted = bound_contributions(basket_keys, max_baskets)
    basket = np.cumsum(first) - 1
    used = (codes != _NO_ITEM) & ~again & counted[basket]
    lengths = np.bincount(basket[used], minlength=len(counted))[counted]
    return np.append(0, np.cumsum(lengths)), codes[used], texts, basket_keys[2, counted]


def _ranks_within_basket(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each entry within its basket, from 0."""
    places: NDArray[np.int64] = np.arange(ends[-1]) - np.repeat(ends[:-1], np.diff(ends))
    return places
