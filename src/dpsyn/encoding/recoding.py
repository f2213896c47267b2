"""Recodings: from the fine codes of a table to the codes that marginals are counted over, and back.

Every recoding has one normal form: an attribute of the recoded table is a function, given by look-up tables, of a few
attributes of the original table. Bins, merged rare values, joint attributes and difference coding have this form, and
so has anything composed of them. A recoding maps each row by itself, so it changes no sensitivity. It consists of
tables, so every engine can apply it.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding.binning import Grouping
from dpsyn.encoding.codec import Codec, Codes
from dpsyn.encoding.column_codecs import narrowest_dtype
from dpsyn.encoding.difference_coding import DifferenceCoding
from dpsyn.errors import InternalError, SchemaError, quote_argument
from dpsyn.suggestions import suggest_names

MAX_JOINT_COMBINATIONS = 10_000_000
"""Combinations that a joint attribute may have before they are merged: their table is held in memory."""


@dataclass(frozen=True, eq=False)
class RecodedColumn:
    """One attribute of a recoded table.

    The code of a row is ``merged[digit₁·size₂·… + digit₂·… + …]``. Digit i is ``tables[i]`` at the fine code of
    attribute ``sources[i]``; without ``merged``, the index is the code. For a source with a difference coding,
    ``tables[i]`` is indexed by the difference (see ``DifferenceCoding``) instead of the fine code.

    Attributes:
        name: the attribute.
        sources: the positions of the fine attributes that it depends on.
        tables: for each source, the digit of every fine code.
        merged: the code of every combination of digits; None if each combination has its own code.
        difference_codings: for each source its difference coding, or None if its fine codes are used; empty if no
            source has one.
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
            raise InternalError(f"{self.name!r} needs a merged code for every combination of digits")
        if self.difference_codings and len(self.difference_codings) != len(self.sources):
            raise InternalError(f"{self.name!r} needs a difference coding, or None, for each of its sources")
        if not any(self.difference_codings):
            object.__setattr__(self, "difference_codings", ())

    @cached_property
    def radices(self) -> tuple[int, ...]:
        """The number of digits of each source."""
        return tuple(int(table.max()) + 1 for table in self.tables)

    @cached_property
    def size(self) -> int:
        """The number of codes."""
        return math.prod(self.radices) if self.merged is None else int(self.merged.max()) + 1

    def apply(self, fine: Codes) -> NDArray[np.int64]:
        """The code of every row, from its fine codes."""
        index = np.zeros(len(fine), np.int64)
        for source, table, radix in zip(self.sources, self.tables, self.radices, strict=True):
            coding = self.difference_coding_of(source)
            codes = coding.encode(fine[:, source], fine[:, coding.anchor]) if coding else fine[:, source]
            index = index * radix + table[codes]
        return index if self.merged is None else self.merged[index]

    def difference_coding_of(self, source: int) -> DifferenceCoding | None:
        """The difference coding of a source; None if its fine codes are used."""
        return self.difference_codings[self.sources.index(source)] if self.difference_codings else None

    def expand(
        self, codes: NDArray[Any], weights: Sequence[NDArray[np.float64]], rng: np.random.Generator
    ) -> list[NDArray[np.int64]]:
        """Sample fine codes of every source among those with the given codes, in proportion to non-negative weights.

        ``weights`` has one array for each source, over its fine codes. Several sources are sampled as if they were
        independent. For a source with a difference coding, weights and samples are of differences.
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
        """The same attribute, with its codes merged into groups."""
        if len(grouping.group_of) != self.size:
            raise InternalError(f"{self.name!r} has {self.size} codes, but the grouping has {len(grouping.group_of)}")
        if self.merged is None and len(self.sources) == 1:
            return replace(self, tables=(grouping.merge(self.tables[0]),))
        codes = np.arange(self.size) if self.merged is None else self.merged
        return replace(self, merged=grouping.merge(codes))


@dataclass(frozen=True, eq=False)
class Recoding:
    """The attributes that marginals of a table are counted over, each a function of the fine codes.

    Attributes:
        columns: the recoded attributes.
        origin: the names and sizes of the fine attributes that the recoding was made for; it fits no others.
    """

    columns: tuple[RecodedColumn, ...]
    origin: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        for column in self.columns:
            for source, table in zip(column.sources, column.tables, strict=True):
                if not 0 <= source < len(self.origin) or len(table) != self.origin[source][1]:
                    raise InternalError(f"the recoding of {column.name!r} was made for another schema")
            for source, coding in zip(column.sources, column.difference_codings, strict=False):
                fits = coding is None or (
                    0 <= coding.anchor < len(self.origin)
                    and len(coding.expected_codes) == self.origin[coding.anchor][1]
                    and coding.modulus <= self.origin[source][1]
                )
                if not fits:
                    raise InternalError(
                        f"the difference coding of {self.origin[source][0]!r} was made for another schema"
                    )

    def require_decodable(self) -> None:
        """Refuse a recoding from whose codes no rows can be made: an anchor must be coded by its own values."""
        codings = self.difference_codings
        for source, coding in codings.items():
            if coding.anchor in codings or coding.anchor == source:
                raise InternalError(f"the anchor of {self.origin[source][0]!r} is itself stored as a difference")

    @classmethod
    def fine(cls, codec: Codec) -> Recoding:
        """Every attribute in its cells."""
        return cls.fine_of(codec.domain)

    @classmethod
    def fine_of(cls, origin: Sequence[tuple[str, int]]) -> Recoding:
        """Every attribute in its cells, given the names and sizes of the attributes."""
        return _recode_finely(tuple(origin))

    @classmethod
    def coarse(cls, codec: Codec) -> Recoding:
        """Every attribute in its bins, as the schema declares them or by default."""
        return cls._of_tables(codec, [grouping.group_of for grouping in codec.groupings])

    @classmethod
    def _of_tables(cls, codec: Codec, tables: Sequence[NDArray[Any]]) -> Recoding:
        pairs = enumerate(zip(codec.names, tables, strict=True))
        columns = tuple(RecodedColumn(name, (source,), (table,)) for source, (name, table) in pairs)
        return cls(columns, codec.domain)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of each attribute."""
        return tuple(column.size for column in self.columns)

    @property
    def joint_parts(self) -> dict[str, tuple[str, ...]]:
        """The names of the fine attributes that each joint attribute is made of."""
        return {c.name: tuple(self.origin[s][0] for s in c.sources) for c in self.columns if len(c.sources) > 1}

    @cached_property
    def difference_codings(self) -> dict[int, DifferenceCoding]:
        """The difference codings of the fine attributes that have one, by their positions."""
        pairs = [(s, c.difference_coding_of(s)) for c in self.columns if c.difference_codings for s in c.sources]
        return {source: coding for source, coding in pairs if coding is not None}

    def code_differences(self, difference_codings: Mapping[int, DifferenceCoding]) -> Recoding:
        """The same recoding with some fine attributes stored as differences; the tables stay, now over differences."""
        columns = tuple(
            replace(
                c, difference_codings=tuple(difference_codings.get(s, c.difference_coding_of(s)) for s in c.sources)
            )
            for c in self.columns
        )
        return replace(self, columns=columns)

    def without(self, sources: Container[int]) -> Recoding:
        """The same recoding without the columns that depend on some fine attributes."""
        kept = tuple(column for column in self.columns if not any(source in sources for source in column.sources))
        return replace(self, columns=kept)

    def refine(self, cell_of: Mapping[str, NDArray[np.int64]], origin: tuple[tuple[str, int], ...]) -> Recoding:
        """The same codes as functions of finer cells.

        Args:
            cell_of: for the attributes whose cells were divided, the old cell of each new one.
            origin: the names and sizes of the fine attributes, with the new cells.
        """
        names = [name for name, _ in self.origin]
        columns = tuple(
            replace(
                column,
                tables=tuple(
                    table[cell_of[names[source]]] if names[source] in cell_of else table
                    for source, table in zip(column.sources, column.tables, strict=True)
                ),
            )
            for column in self.columns
        )
        return Recoding(columns, origin)

    def index_of(self, name: str) -> int:
        """The position of an attribute; a SchemaError if there is none."""
        if name not in self._indices:
            raise SchemaError(
                f"there is no attribute {quote_argument(name)} to measure; {suggest_names(name, self.names)}"
            )
        return self._indices[name]

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {name: index for index, name in reversed([*enumerate(self.names)])}  # the first of equal names

    def merge(self, name: str, grouping: Grouping) -> Recoding:
        """One attribute with its codes merged into groups."""
        index = self.index_of(name)
        column = self.columns[index].regroup(grouping)
        return replace(self, columns=(*self.columns[:index], column, *self.columns[index + 1 :]))

    def join(self, name: str, parts: Sequence[str]) -> Recoding:
        """Replace several attributes by one whose codes are their combinations; it takes the position of the first."""
        first, *others = [self.index_of(part) for part in parts]
        joint = _join_columns(name, [self.columns[index] for index in (first, *others)])
        columns = [joint if index == first else column for index, column in enumerate(self.columns)]
        return replace(self, columns=tuple(c for index, c in enumerate(columns) if index not in others))

    def apply(self, fine: Codes) -> Codes:
        """The codes of every row, rows × attributes, column-major, in the narrowest type."""
        codes = np.empty((len(fine), len(self.columns)), narrowest_dtype(max(self.sizes, default=1)), order="F")
        for axis, column in enumerate(self.columns):
            plain = column.merged is None and len(column.sources) == 1 and not column.difference_codings
            if plain:  # a look-up in the narrow type is four times as fast
                codes[:, axis] = column.tables[0].astype(codes.dtype)[fine[:, column.sources[0]]]
            else:
                codes[:, axis] = column.apply(fine)
        return codes

    def expand(self, codes: Codes, weights: Sequence[NDArray[np.float64]], rng: np.random.Generator) -> Codes:
        """Sample the fine codes of every row, by weights over the fine codes of each original attribute.

        ``apply`` maps the result back to ``codes``.
        """
        fine = np.empty(
            (len(codes), len(self.origin)), narrowest_dtype(max(size for _, size in self.origin)), order="F"
        )
        unassigned = set(range(len(self.origin)))
        for axis, column in enumerate(self.columns):
            samples = column.expand(codes[:, axis], [weights[source] for source in column.sources], rng)
            for source, cells in zip(column.sources, samples, strict=True):
                fine[:, source] = cells
                unassigned.discard(source)
        self.require_decodable()
        if unassigned:
            raise InternalError(f"{self.origin[min(unassigned)][0]!r} is not in the recoding, so it has no codes")
        for source, coding in self.difference_codings.items():
            fine[:, source] = coding.decode(fine[:, source], fine[:, coding.anchor])
        return fine


@lru_cache(maxsize=4)
def _recode_finely(origin: tuple[tuple[str, int], ...]) -> Recoding:
    """Every attribute in its cells; kept, because one-way estimates of all attributes need it for each of them."""
    columns = (RecodedColumn(name, (source,), (np.arange(size),)) for source, (name, size) in enumerate(origin))
    return Recoding(tuple(columns), origin)


def _join_columns(name: str, parts: Sequence[RecodedColumn]) -> RecodedColumn:
    """The product of attributes: their digits are concatenated, their merged codes are combined."""
    total = math.prod(math.prod(part.radices) for part in parts)
    if total > MAX_JOINT_COMBINATIONS:
        raise SchemaError(
            f"{quote_argument(name)} would have {total:,} combinations, more than "
            f"{MAX_JOINT_COMBINATIONS:,}; merge values first"
        )
    sources = tuple(source for part in parts for source in part.sources)
    tables = tuple(table for part in parts for table in part.tables)
    codings = tuple(part.difference_coding_of(source) for part in parts for source in part.sources)
    if all(part.merged is None for part in parts):
        return RecodedColumn(name, sources, tables, difference_codings=codings)
    merged = np.zeros(1, np.int64)
    for part in parts:
        codes = np.arange(math.prod(part.radices)) if part.merged is None else part.merged
        merged = (merged[:, None] * part.size + codes[None, :]).ravel()
    return RecodedColumn(name, sources, tables, merged, codings)
