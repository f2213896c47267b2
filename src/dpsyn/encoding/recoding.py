"""From the fine codes of a table to the codes that marginals are counted over.

Every recoding has one normal form: an attribute of the new table is a function, by table look-up, of a few
attributes of the old one. Bins, compression of rare values and joint attributes are all of this form, and so is
anything composed of them. It works row by row, so it changes no sensitivity; and because it is only tables, every
engine can apply it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding.binning import Grouping
from dpsyn.encoding.codec import Codec, Codes
from dpsyn.encoding.column_codecs import narrowest_dtype
from dpsyn.encoding.difference_coding import DifferenceCoding
from dpsyn.errors import InternalError, SchemaError

MAX_JOINT_COMBINATIONS = 10_000_000
"""Combinations that a joint attribute may have before they are merged: its table is held in memory."""


@dataclass(frozen=True, slots=True, eq=False)
class RecodedColumn:
    """One attribute of a recoded table.

    A row's code is ``merged[digit₁·size₂·… + digit₂·… + …]`` where each digit is ``tables[i]`` of the fine code of
    attribute ``sources[i]``; without ``merged`` the index is the code. Where there is a reference, ``tables[i]`` is of
    the difference from what another attribute lets expect (see ``Reference``), not of the fine code itself.

    Attributes:
        name: the attribute.
        sources: positions of the fine attributes it depends on.
        tables: for each of them, the digit of every fine code.
        merged: the code of every combination of digits; None if they are all kept apart.
        difference_codings: for each source where it is expected, None if its codes are taken as they are; empty if all are.
    """

    name: str
    sources: tuple[int, ...]
    tables: tuple[NDArray[np.int64], ...]
    merged: NDArray[np.int64] | None = None
    difference_codings: tuple[DifferenceCoding | None, ...] = ()

    def __post_init__(self) -> None:
        tables = [*self.tables, *([] if self.merged is None else [self.merged])]
        if len(self.sources) != len(self.tables) or any(not len(table) or table.min() < 0 for table in tables):
            raise InternalError(f"{self.name!r} needs a table of codes from 0 for each of its sources")
        if self.merged is not None and len(self.merged) != math.prod(self.radices):
            raise InternalError(f"{self.name!r}: merged codes must be given for every combination")
        if self.difference_codings and len(self.difference_codings) != len(self.sources):
            raise InternalError(f"{self.name!r} needs a reference, or None, for each of its sources")
        if not any(self.difference_codings):
            object.__setattr__(self, "difference_codings", ())

    @property
    def radices(self) -> tuple[int, ...]:
        """How many digits each source has."""
        return tuple(int(table.max()) + 1 for table in self.tables)

    @property
    def size(self) -> int:
        """The number of codes."""
        return math.prod(self.radices) if self.merged is None else int(self.merged.max()) + 1

    def apply(self, fine: Codes) -> NDArray[np.int64]:
        """The code of every row, from its fine codes."""
        index = np.zeros(len(fine), np.int64)
        for source, table, radix in zip(self.sources, self.tables, self.radices, strict=True):
            reference = self.difference_coding_of(source)
            codes = reference.encode(fine[:, source], fine[:, reference.anchor]) if reference else fine[:, source]
            index = index * radix + table[codes]
        return index if self.merged is None else self.merged[index]

    def difference_coding_of(self, source: int) -> DifferenceCoding | None:
        """Where a source is expected; None if its codes are taken as they are."""
        return self.difference_codings[self.sources.index(source)] if self.difference_codings else None

    def expand(
        self, codes: NDArray[Any], weights: Sequence[NDArray[np.float64]], rng: np.random.Generator
    ) -> list[NDArray[np.int64]]:
        """Fine codes of every source, drawn in proportion to non-negative weights among those that give each code.

        ``weights`` has one array over fine codes for each source; several sources are drawn as if independent. Where
        there is a reference, differences are drawn, and weights are over them.
        """
        digit_groups = [Grouping(table) for table in self.tables]
        index = np.asarray(codes, np.int64)
        if self.merged is not None:
            joint = np.ones(1)
            for group, weight in zip(digit_groups, weights, strict=True):
                joint = np.multiply.outer(joint, group.sums(weight)).ravel()
            index = Grouping(self.merged).sample_members(index, joint, rng)
        digits = np.unravel_index(index, self.radices)
        return [
            group.sample_members(digit, weight, rng)
            for group, digit, weight in zip(digit_groups, digits, weights, strict=True)
        ]

    def regroup(self, grouping: Grouping) -> RecodedColumn:
        """The same attribute with codes merged into groups."""
        if len(grouping.group_of) != self.size:
            raise InternalError(f"{self.name!r} has {self.size} codes, the grouping {len(grouping.group_of)}")
        if self.merged is None and len(self.sources) == 1:
            return replace(self, tables=(grouping.merge(self.tables[0]),))
        codes = np.arange(self.size) if self.merged is None else self.merged
        return replace(self, merged=grouping.merge(codes))


@dataclass(frozen=True, slots=True, eq=False)
class Recoding:
    """The attributes that a table has for measuring, each a function of its fine codes.

    Attributes:
        columns: the attributes.
        origin: names and sizes of the fine attributes it was made for; it fits no others.
    """

    columns: tuple[RecodedColumn, ...]
    origin: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        for column in self.columns:
            for source, table in zip(column.sources, column.tables, strict=True):
                if not 0 <= source < len(self.origin) or len(table) != self.origin[source][1]:
                    raise InternalError(f"the recoding of {column.name!r} was made for another schema")
        referred = self.difference_codings
        for source, reference in referred.items():
            if reference.anchor in referred or reference.anchor == source:
                raise InternalError(f"{self.origin[source][0]!r} is expected by an attribute that is itself expected")
            if (
                len(reference.expected_codes) != self.origin[reference.anchor][1]
                or reference.modulus > self.origin[source][1]
            ):
                raise InternalError(f"the reference of {self.origin[source][0]!r} was made for another schema")

    @classmethod
    def fine(cls, codec: Codec) -> Recoding:
        """Every attribute at its finest: cells."""
        return cls._of_tables(codec, [np.arange(size) for size in codec.fine_sizes])

    @classmethod
    def coarse(cls, codec: Codec) -> Recoding:
        """Every attribute in the bins that the schema declares or suggests."""
        return cls._of_tables(codec, [grouping.group_of for grouping in codec.groupings])

    @classmethod
    def _of_tables(cls, codec: Codec, tables: Sequence[NDArray[Any]]) -> Recoding:
        pairs = enumerate(zip(codec.names, tables, strict=True))
        columns = tuple(RecodedColumn(name, (place,), (table,)) for place, (name, table) in pairs)
        return cls(columns, codec.domain)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple(column.name for column in self.columns)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of each attribute."""
        return tuple(column.size for column in self.columns)

    @property
    def joint_parts(self) -> dict[str, tuple[str, ...]]:
        """The fine attributes that joint ones are made of."""
        return {c.name: tuple(self.origin[s][0] for s in c.sources) for c in self.columns if len(c.sources) > 1}

    @property
    def difference_codings(self) -> dict[int, DifferenceCoding]:
        """Where fine attributes are expected, by their positions; only those that are told as differences."""
        pairs = [(s, c.difference_coding_of(s)) for c in self.columns if c.difference_codings for s in c.sources]
        return {source: reference for source, reference in pairs if reference is not None}

    def code_differences(self, difference_codings: Mapping[int, DifferenceCoding]) -> Recoding:
        """The same recoding with some fine attributes told as differences; the tables stay, now of differences."""
        columns = tuple(
            replace(
                c, difference_codings=tuple(difference_codings.get(s, c.difference_coding_of(s)) for s in c.sources)
            )
            for c in self.columns
        )
        return replace(self, columns=columns)

    def index_of(self, name: str) -> int:
        """The position of an attribute; a SchemaError if there is none."""
        if name not in self.names:
            raise SchemaError(f"there is no attribute {name!r} to measure; there are {', '.join(self.names)}")
        return self.names.index(name)

    def merge(self, name: str, grouping: Grouping) -> Recoding:
        """One attribute with its codes merged into groups."""
        place = self.index_of(name)
        return replace(self, columns=_replace_column(self.columns, place, self.columns[place].regroup(grouping)))

    def join(self, name: str, parts: Sequence[str]) -> Recoding:
        """Several attributes made one, whose codes are their combinations; it takes the place of the first."""
        places = [self.index_of(part) for part in parts]
        joint = _join_columns(name, [self.columns[place] for place in places])
        kept = [joint if place == places[0] else column for place, column in enumerate(self.columns)]
        return replace(self, columns=tuple(c for p, c in enumerate(kept) if p not in places[1:]))

    def apply(self, fine: Codes) -> Codes:
        """Codes of every row, rows × attributes, column-major, in the narrowest type."""
        codes = np.empty((len(fine), len(self.columns)), narrowest_dtype(max(self.sizes, default=1)), order="F")
        for place, column in enumerate(self.columns):
            plain = column.merged is None and len(column.sources) == 1 and not column.difference_codings
            if plain:  # a look-up in the narrow type is four times as fast
                codes[:, place] = column.tables[0].astype(codes.dtype)[fine[:, column.sources[0]]]
            else:
                codes[:, place] = column.apply(fine)
        return codes

    def expand(self, codes: Codes, weights: Sequence[NDArray[np.float64]], rng: np.random.Generator) -> Codes:
        """Fine codes of every row, drawn by weights over the fine codes of each attribute of the origin.

        What ``apply`` does is undone up to the draw: applied to the result, it gives ``codes`` again.
        """
        fine = np.empty(
            (len(codes), len(self.origin)), narrowest_dtype(max(size for _, size in self.origin)), order="F"
        )
        left = set(range(len(self.origin)))
        for place, column in enumerate(self.columns):
            drawn = column.expand(codes[:, place], [weights[source] for source in column.sources], rng)
            for source, cells in zip(column.sources, drawn, strict=True):
                fine[:, source] = cells
                left.discard(source)
        if left:
            raise InternalError(f"{self.origin[min(left)][0]!r} is not in the recoding, so its codes are lost")
        for source, reference in self.difference_codings.items():
            fine[:, source] = reference.decode(fine[:, source], fine[:, reference.anchor])
        return fine


def _replace_column(columns: tuple[RecodedColumn, ...], index: int, column: RecodedColumn) -> tuple[RecodedColumn, ...]:
    return (*columns[:index], column, *columns[index + 1 :])


def _join_columns(name: str, parts: Sequence[RecodedColumn]) -> RecodedColumn:
    """The product of attributes: their digits side by side, their merged codes combined."""
    total = math.prod(math.prod(part.radices) for part in parts)
    if total > MAX_JOINT_COMBINATIONS:
        raise SchemaError(
            f"{name!r} would have {total:,} combinations, more than {MAX_JOINT_COMBINATIONS:,}; merge values first"
        )
    sources = tuple(source for part in parts for source in part.sources)
    tables = tuple(table for part in parts for table in part.tables)
    references = tuple(part.difference_coding_of(source) for part in parts for source in part.sources)
    if all(part.merged is None for part in parts):
        return RecodedColumn(name, sources, tables, difference_codings=references)
    merged = np.zeros(1, np.int64)
    for part in parts:
        codes = np.arange(math.prod(part.radices)) if part.merged is None else part.merged
        merged = (merged[:, None] * part.size + codes[None, :]).ravel()
    return RecodedColumn(name, sources, tables, merged, references)
