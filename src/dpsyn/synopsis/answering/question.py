"""What is asked of a synopsis, and how it looks under a recoding."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpsyn.errors import UserError
from dpsyn.marginals import Clique
from dpsyn.records import Codec
from dpsyn.schema import Identifier, Schema
from dpsyn.schema.where import select_cells, which_is_meant
from dpsyn.synopsis.answering.linear import Shares, Table
from dpsyn.synopsis.answering.outputs import Outputs, cuts, outputs_of, shares_of
from dpsyn.transforms import RecodedColumn, Recoding, alike

MOST_CELLS = 1_000_000
"""Counts of an answer, and cells of the table that it is worked out from."""


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """Attributes to list, and conditions on them and on others.

    Attributes:
        names: the attributes to list.
        asked: what of every attribute that is listed or has a condition.
    """

    names: Clique
    asked: Mapping[str, Outputs]

    @classmethod
    def of(cls, schema: Schema, names: Sequence[str], where: Mapping[str, object], *, cells: bool) -> Question:
        """Read a question; a UserError says what is wrong with it."""
        if not names and not where:
            raise UserError("nothing is asked for; name an attribute, or give a condition such as sex=F")
        for name in names:
            _require(schema, name)
        repeated = [name for name in names if list(names).count(name) > 1]
        if repeated:
            raise UserError(f"{repeated[0]!r} is named twice; name every attribute once")
        selected = select_cells(schema, where)
        asked = {n: outputs_of(schema[n], selected.get(n), listed=n in names, cells=cells) for n in [*names, *where]}
        size = math.prod(outputs.size for outputs in asked.values())
        if size > MOST_CELLS:
            raise UserError(
                f"the answer would have {size:,} counts, more than {MOST_CELLS:,}; ask for fewer attributes or values"
            )
        return cls(tuple(names), asked)

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The values of each attribute that is listed."""
        return tuple(self.asked[name].labels for name in self.names)


def _require(schema: Schema, name: str) -> None:
    """Refuse an attribute about which nothing is released."""
    if not isinstance(name, str) or name not in schema:
        raise UserError(f"there is no attribute {name!r}; {which_is_meant(schema, name)}")
    derived = next((derive for derive in schema.derive if derive.name == name), None)
    if derived:
        raise UserError(f"{name!r} follows from {derived.source!r}; ask for {derived.source!r}")
    if isinstance(schema[name], Identifier) or not schema[name].coded:
        raise UserError(f"{name!r} is of kind {schema[name].kind}: no numbers are released about its values")


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A question under a recoding.

    Attributes:
        columns: those that hold what is asked for.
        shares: which part of each column's codes counts for its outputs; None if codes are outputs.
        attributes: those asked for, in the order of the columns.
        split: those of which codes are split.
    """

    columns: tuple[RecodedColumn, ...]
    shares: tuple[Shares | None, ...]
    attributes: Clique
    split: Clique

    @classmethod
    def of(cls, question: Question, recoding: Recoding, codec: Codec, histograms: Mapping[str, Table]) -> View:
        """How a question looks under a recoding."""
        columns = [c for c in recoding.columns if any(codec.names[place] in question.asked for place in c.sources)]
        inside = [[codec.names[p] for p in column.sources if codec.names[p] in question.asked] for column in columns]
        shares = tuple(shares_of(column, codec.attributes, question.asked, histograms) for column in columns)
        return cls(
            columns=tuple(columns),
            shares=shares,
            attributes=tuple(name for names in inside for name in names),
            split=tuple(n for names, given in zip(inside, shares, strict=True) if cuts(given) for n in names),
        )

    @property
    def clique(self) -> Clique:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """Their sizes."""
        return tuple(column.size for column in self.columns)

    @property
    def cells(self) -> int:
        """How many cells the table of the columns has."""
        return math.prod(self.shape)

    def alike(self, other: View) -> bool:
        """Whether another view has the same columns, in the same codes."""
        pairs = zip(self.columns, other.columns, strict=False)
        return self.clique == other.clique and all(alike(*pair) for pair in pairs)

    def answered(self, outputs: Table, question: Question) -> Table:
        """The counts of outputs, with an axis for each attribute that is listed, in the order of the question."""
        apart = np.reshape(outputs, [question.asked[name].size for name in self.attributes])
        gone = tuple(axis for axis, name in enumerate(self.attributes) if name not in question.names)
        left = [name for name in self.attributes if name in question.names]
        return np.transpose(np.squeeze(apart, axis=gone), [left.index(name) for name in question.names])
