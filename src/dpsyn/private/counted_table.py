"""What all measurements of marginals share: the counted rows, their recoding, and the release of noisy numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import Gaussian, MeasurementRecord
from dpsyn.encoding import Recoding
from dpsyn.engines import Engine
from dpsyn.errors import InternalError, SchemaError
from dpsyn.marginals import Clique
from dpsyn.private.gate import NothingLeftError, PrivacyGate, Session
from dpsyn.schema import Schema

Axes = tuple[int, ...]
"""The attributes of a marginal, as positions in the recoding."""

MAX_COUNTED_CELLS = 30_000_000
"""Cells of marginals that are counted at a time for scores: a quarter of a gigabyte."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisyScores:
    """Released scores and the standard deviation of their noise."""

    values: NDArray[np.float64]
    std: float


class CountedTable(PrivacyGate):
    """Rows behind the gate that are counted by an engine under a recoding; the base class of ``PrivateTable``.

    Attributes:
        schema: what is public about the table.
        recoding: the attributes that are measured now, and how they follow from the schema; public.
    """

    __slots__ = ("_engine", "recoding", "schema")

    schema: Schema

    def __init__(self, session: Session, engine: Engine, schema: Schema, recoding: Recoding) -> None:
        super().__init__(session)
        self._engine = engine
        self.schema = schema
        self.recoding = recoding

    def _release_numbers(
        self,
        purposes: Sequence[str],
        costs: Sequence[Gaussian],
        question: object,
        count: Callable[[], Sequence[NDArray[np.int64]]],
        axes_list: Sequence[Axes],
    ) -> list[NoisyScores]:
        """Noisy numbers, each measurement with a charge of its own; all or, in a run that lost answers, an error."""
        records = [MeasurementRecord(purpose=p, cost=cost) for p, cost in zip(purposes, costs, strict=True)]
        released = self._release(records, question, count, cells=self._sizes(axes_list), noisy_values=len(records))
        if any(each is None for each in released):
            raise self._nothing_left_error()
        return [NoisyScores(each.answer / np.float64(2**each.cost.lattice), each.cost.std) for each in released if each]

    def _count_each(self, axes_list: Sequence[Axes]) -> Iterator[tuple[Axes, NDArray[np.int64]]]:
        """The exact counts of each marginal, a part of them at a time; it runs inside the gate."""
        for part in split_by_cells(axes_list, self._sizes(axes_list)):
            yield from zip(part, self._engine.count(part, self.recoding), strict=True)

    def _question_identity(self, axes_list: Sequence[Axes]) -> object:
        """What distinguishes marginals from others of the same names: how their codes follow from the fine ones."""
        columns = [self.recoding.columns[axis] for axis in sorted({axis for axes in axes_list for axis in axes})]
        differences = [
            [[d.anchor, d.expected_codes, d.modulus] if d else None for d in column.difference_codings]
            for column in columns
        ]
        codes = [[column.sources, column.tables, column.merged] for column in columns]
        return [list(axes_list), codes, *([differences] if any(differences) else [])]

    def _axes_of_cliques(self, cliques: Sequence[Clique]) -> list[Axes]:
        return [tuple(self.recoding.index_of(name) for name in clique) for clique in cliques]

    def _check_axes(self, axes_list: Sequence[Axes], answers: int) -> None:
        """Refuse marginals that make no sense, before anything is charged."""
        if len(axes_list) != answers or not axes_list:
            raise InternalError(
                f"{len(axes_list)} marginals were requested with {answers} budget shares or predictions"
            )
        if any(not axes or len(set(axes)) < len(axes) for axes in axes_list):
            raise SchemaError("a marginal needs at least one attribute, and each only once")

    def _shape(self, axes: Axes) -> tuple[int, ...]:
        return tuple(self.recoding.columns[axis].size for axis in axes)

    def _sizes(self, axes_list: Sequence[Axes]) -> list[int]:
        return [math.prod(self._shape(axes)) for axes in axes_list]

    def _nothing_left_error(self) -> NothingLeftError:
        return self._session.nothing_left_error(self.schema, self.recoding)


def split_by_cells(axes_list: Sequence[Axes], sizes: Sequence[int]) -> Iterator[list[Axes]]:
    """Marginals in their order, in parts of at most ``MAX_COUNTED_CELLS`` cells."""
    part: list[Axes] = []
    total = 0
    for axes, size in zip(axes_list, sizes, strict=True):
        if part and total + size > MAX_COUNTED_CELLS:
            yield part
            part, total = [], 0
        part.append(axes)
        total += size
    yield part
