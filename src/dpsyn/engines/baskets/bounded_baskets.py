"""The baskets that count after contribution bounding, read from a table in the long form.

What is bounded: with a privacy unit, at most ``privacy_unit.max_rows`` baskets of each unit count; without one, each
basket is a unit by itself. Items of a basket are not bounded, because a basket adds at most 1 to each support, except
for the discovery of items: there, at most ``max_items`` items of each basket count (``limit_items``).

Privacy: which baskets of a unit count depends only on the ids of the unit and of its own baskets, and on the secret key
of the run. Which items of a basket count depends only on the key and the basket itself: on its items and, if the data
have ids of baskets, on its ids. Neither depends on the order of the table, on line numbers, or on other units. So for
every key, adding or removing a unit adds or removes at most k baskets with the items of each that count, and changes no
others (Wilson et al., "Differentially Private SQL with Bounded User Contribution", PoPETs 2020; see
``contribution_bounding``). Of baskets without ids that hold the same items, the same items count. That does no harm:
each of them still adds at most 1 to the counts of at most ``max_items`` items.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.encoding.entry_parser import entry_texts, text_of_bytes
from dpsyn.encoding.unit_ids import normalize_ids
from dpsyn.engines import kernels
from dpsyn.engines.contribution_bounding import RowHasher, RowKeys, bound_contributions, keyed_hashes
from dpsyn.engines.engine import Opaque
from dpsyn.schema import BasketSchema, Identifier, is_item
from dpsyn.sources import Source, has_basket_ids, map_in_threads

_NO_ITEM = -1
"""The code of a row without an item."""


class BoundedBaskets(Opaque):
    """Baskets in memory, concatenated; each item of a basket occurs once.

    Rows with the same basket id (and the same unit) make one basket, wherever they are in the table. Rows without a
    basket id, or without the id of a privacy unit that the schema declares, are left out. With a privacy unit, at most
    ``max_rows`` baskets of each unit count, chosen by a keyed hash of the ids of unit and basket. An item is the text
    of an entry without surrounding spaces; empty entries and texts with control characters are not items.

    Attributes:
        ends: basket b has the items ``items[ends[b]:ends[b+1]]``.
        items: indices into ``texts``.
        texts: the items that occur.
        id_hashes: a keyed hash of the ids of each basket; None if the data have no ids of baskets.
    """

    def __init__(
        self, ends: NDArray[np.int64], items: NDArray[np.int32], texts: list[str], id_hashes: NDArray[np.uint64] | None
    ) -> None:
        self.ends, self.items, self.texts, self.id_hashes = ends, items, texts, id_hashes

    @classmethod
    def read(cls, source: Source, schema: BasketSchema, key: bytes) -> BoundedBaskets:
        """Read all baskets of a source that count."""
        index_of: dict[str, int] = {}
        keys, codes = [np.empty((3, 0), np.uint64)], [np.empty(0, np.int32)]
        for batch_keys, positions, texts in _read_batches(source, schema, key):
            code_of = [index_of.setdefault(text, len(index_of)) if is_item(text) else _NO_ITEM for text in texts]
            keys.append(batch_keys)
            codes.append(np.array([*code_of, _NO_ITEM], np.int32)[positions])
        max_baskets = schema.privacy_unit.max_rows if schema.privacy_unit else 1
        ends, items, hashes = _group_into_baskets(np.concatenate(keys, axis=1), np.concatenate(codes), max_baskets)
        return cls(ends, items, list(index_of), hashes if has_basket_ids(source) else None)

    def limit_items(self, max_items: int, key: bytes) -> NDArray[np.int32]:
        """The items of all baskets, at most ``max_items`` of each, chosen by a keyed hash of basket and item."""
        everything = np.ones(len(self.texts), np.bool_)
        return self.items[self.limit_positions(max_items, key, everything)[1]]

    def limit_positions(
        self, max_items: int, key: bytes, wanted: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The baskets and the positions in ``items`` of at most ``max_items`` wanted items of each basket.

        They are chosen by a keyed hash of the basket and the item. The hash of a basket is that of its ids, or the sum
        of the keyed hashes of its items if it has no ids. So the choice depends on that basket and the key alone.
        """
        lengths = np.diff(self.ends)
        baskets = np.repeat(np.arange(len(lengths)), lengths)
        secret = np.frombuffer(hashlib.blake2b(b"limiting", key=key, digest_size=32).digest(), "<u8").reshape(2, 2)
        item_hashes = keyed_hashes(
            pa.array([text.encode() for text in self.texts], pa.large_binary()), secret[0].copy()
        )
        hashes = self.id_hashes
        if hashes is None:
            sums = np.append(np.uint64(0), np.cumsum(item_hashes[self.items]))  # modulo 2^64
            hashes = sums[self.ends[1:]] - sums[self.ends[:-1]]
        words = np.stack([hashes[baskets], item_hashes[self.items]])
        priorities = np.empty(len(baskets), np.uint64)
        kernels.hash_rows(np.empty((0, len(baskets)), np.uint8), words, secret[1].copy(), priorities)
        order = np.lexsort((priorities, baskets))
        order = order[wanted[self.items[order]]]
        counts = np.bincount(baskets[order], minlength=len(lengths))
        kept = order[_ranks_within_basket(np.append(0, np.cumsum(counts))) < max_items]
        return baskets[kept], kept


def _read_batches(
    source: Source, schema: BasketSchema, key: bytes
) -> Iterator[tuple[RowKeys, NDArray[np.int64], list[str]]]:
    """For every batch: the keys of its rows, the position of each row's item in a list of texts, and these texts.

    The position after the last text is that of rows without an item.
    """
    hasher = RowHasher(key)
    unit_column = schema.privacy_unit.id if schema.privacy_unit else schema.basket

    def read(batch: pa.RecordBatch) -> tuple[RowKeys, NDArray[np.int64], list[str]]:
        baskets = normalize_ids(batch.column(schema.basket), Identifier(name=schema.basket))
        in_basket = baskets.is_valid()  # a row without a basket id belongs to no basket, whatever its unit
        baskets = baskets.filter(in_basket)
        no_codes = np.empty((len(baskets), 0), np.uint8)
        basket_ids = [baskets] if schema.privacy_unit else []
        units = entry_texts(batch.column(unit_column)).filter(in_basket)
        keys = hasher.compute_keys(units, Identifier(name=unit_column), no_codes, basket_ids)
        items = entry_texts(batch.column(schema.item)).filter(in_basket).dictionary_encode()
        texts = [text_of_bytes(raw).strip() for raw in items.dictionary.to_pylist()]
        return keys, items.indices.fill_null(len(texts)).to_numpy().astype(np.int64), texts

    return map_in_threads(read, source.batches(schema.columns))


def _group_into_baskets(
    keys: RowKeys, codes: NDArray[np.int32], max_baskets: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint64]]:
    """Group rows into baskets by their keys: each item once, at most ``max_baskets`` baskets of each unit.

    Returns the ends of the baskets that count, their items, and a hash of the ids of each basket.
    """
    order = np.lexsort((codes, keys[2], keys[1], keys[0]))
    keys, codes = keys[:, order], codes[order]
    first = np.append(np.ones(min(1, len(codes)), np.bool_), (keys[:, 1:] != keys[:, :-1]).any(axis=0))
    again = np.append(np.zeros(min(1, len(codes)), np.bool_), codes[1:] == codes[:-1]) & ~first
    basket_keys = keys[:, first]
    counted = bound_contributions(basket_keys, max_baskets)
    basket = np.cumsum(first) - 1
    used = (codes != _NO_ITEM) & ~again & counted[basket]
    lengths = np.bincount(basket[used], minlength=len(counted))[counted]
    return np.append(0, np.cumsum(lengths)), codes[used], basket_keys[2, counted]


def _ranks_within_basket(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rank of each item within its basket, from 0."""
    ranks: NDArray[np.int64] = np.arange(ends[-1]) - np.repeat(ends[:-1], np.diff(ends))
    return ranks
