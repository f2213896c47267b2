"""What is public about a table of baskets: the universe of items, and the privacy unit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from numbers import Number
from pathlib import Path
from unicodedata import category

import msgspec

from dpsyn.errors import SchemaError, describe_os_error, quote_argument
from dpsyn.schema.attributes import canonical_text, freeze
from dpsyn.schema.relations import NeighboringRelation, UnitDeclaration

MAX_UNIVERSE_ITEMS = 10_000_000
"""Items of a universe: every one of them is a candidate in each selection of items."""

MAX_ITEM_LENGTH = 10_000
"""Characters of an item; every reader reads texts of this length whole."""

_RANGE = re.compile(r"\s*(-?[0-9]{1,18})\s*\.\.\s*(-?[0-9]{1,18})\s*", re.ASCII)
_BLANK = ("", "nan", "-nan", "+nan")
"""Cells that ``encoding`` reads as empty, so no item can have such a name."""

_CONTROL_CATEGORIES = ("Cc", "Cs")
"""Control characters and unpaired surrogates, which a file of items cannot contain."""


class BasketSchema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Everything that is public about baskets.

    Attributes:
        items: the universe of items, in order; None if it is to be discovered privately.
        because: why the universe is public; printed in the certificate.
        items_discovered: whether the universe was discovered privately, so it was not declared public.
        basket: the column of a long table that names the basket of a row.
        item: the column that names the item of a row.
        dataset: the name under which releases of these baskets share a privacy budget.
        neighbors: the neighboring relation: ``add-remove`` one basket, or ``replace`` one.
        privacy_unit: the column that names a person, and how many baskets of one person are used at most; if left out,
            every basket is a unit of its own.
    """

    items: tuple[str, ...] | None
    because: str = ""
    items_discovered: bool = False
    basket: str = "basket"
    item: str = "item"
    dataset: str = ""
    neighbors: NeighboringRelation = "add-remove"
    privacy_unit: UnitDeclaration | None = None

    def __post_init__(self) -> None:
        freeze(self)
        columns = self.columns
        if "" in columns or len(set(columns)) < len(columns):
            raise SchemaError(
                f"the columns {', '.join(map(repr, columns))} must have different names, none of them empty"
            )
        if self.items is not None:
            _check_items(self.items)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a long table must have."""
        return (self.basket, self.item, *((self.privacy_unit.id,) if self.privacy_unit else ()))

    def declared_public(self) -> tuple[str, ...]:
        """What a release assumes to be known without the baskets, for its certificate."""
        if self.items is None or self.items_discovered:
            return ()
        return (f"the universe of {len(self.items):,} items" + (f": {self.because}" if self.because else ""),)


def read_items(items: str | Path | Iterable[object]) -> tuple[tuple[str, ...], str]:
    """Read a universe of items; returns the items, and a description of where they come from.

    ``items`` is a range such as ``1..16470``, the path of a file with one item on each line, or the items themselves,
    as texts or numbers.
    """
    if isinstance(items, str | Path):
        match = _RANGE.fullmatch(str(items))
        if match:
            return _item_range(int(match[1]), int(match[2])), f"the range {match[1]}..{match[2]}"
        return _read_item_file(Path(items)), f"listed in {Path(items).name}"
    texts = tuple(map(_item_text, items))
    if not texts:
        raise SchemaError("the list of items is empty; give a range such as 1..16470, a file, or the items")
    return texts, "as listed"


def _item_text(item: object) -> str:
    if isinstance(item, str | int | float):
        return canonical_text(item).strip()
    if not isinstance(item, Number):
        raise SchemaError(f"{quote_argument(item)} cannot be an item; give texts or numbers")
    return str(item)


def is_item(text: str) -> bool:
    """Whether a text, without surrounding spaces, can be an item: not blank, not too long, no control characters."""
    return (
        len(text) <= MAX_ITEM_LENGTH
        and text.lower() not in _BLANK
        and (text.isprintable() or not any(category(character) in _CONTROL_CATEGORIES for character in text))
    )


def _item_range(first: int, last: int) -> tuple[str, ...]:
    if last < first:
        raise SchemaError(f"the range of items {first}..{last} is empty; give the smaller number first")
    if last - first >= MAX_UNIVERSE_ITEMS:
        raise _too_many_items(last - first + 1)
    return tuple(map(str, range(first, last + 1)))


def _read_item_file(path: Path) -> tuple[str, ...]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise SchemaError(
            f"the items cannot be read from {path}: {describe_os_error(error)}; "
            "give a file with one item on each line, or a range such as 1..16470"
        ) from None
    except UnicodeDecodeError:
        raise SchemaError(f"{path} is not UTF-8 text; save the file as UTF-8") from None
    items = tuple(line.strip() for line in text.splitlines() if line.strip())
    if not items:
        raise SchemaError(f"{path} lists no item; give a file with one item on each line")
    return items


def _check_items(items: Sequence[str]) -> None:
    if len(items) > MAX_UNIVERSE_ITEMS:
        raise _too_many_items(len(items))
    seen: set[str] = set()
    for item in items:
        if not is_item(item) or item != item.strip():
            raise SchemaError(
                f"{quote_argument(item)} cannot be an item: it is blank, has spaces around it, contains control "
                f"characters, or has more than {MAX_ITEM_LENGTH:,} characters"
            )
        if item in seen:
            raise SchemaError(f"the item {quote_argument(item)} is listed twice; remove one")
        seen.add(item)


def _too_many_items(count: int) -> SchemaError:
    return SchemaError(f"the universe has {count:,} items, more than {MAX_UNIVERSE_ITEMS:,}; remove some items")
