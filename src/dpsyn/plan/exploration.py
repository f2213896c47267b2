"""A first look at a table: what its attributes are like, and which depend on each other, belong together, or follow.

It is the exploration with which the contest entry began (Li, Zhang and Wang, *DPSyn*): one-way marginals, InDif of
every pair, and the joint distributions of the pairs with the strongest dependence. A high InDif is a strong dependence.
A draft of a plan follows from it (``draft.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding import Codec, Recoding, expect_equal
from dpsyn.encoding.code_labels import label_codes
from dpsyn.errors import SchemaError, UserError
from dpsyn.marginals import Clique, Estimate

if TYPE_CHECKING:
    from dpsyn.inference import Release
    from dpsyn.schema import Attribute, Schema
    from dpsyn.synopsis import Synopsis


CLOSE_DEPENDENCE = 0.5
"""Attributes belong together if their dependence reaches this fraction of its maximum, in both directions."""

MAPPING_DEPENDENCE = 0.95
"""One attribute follows from another if the dependence reaches this fraction in one direction."""

MAX_NOISE = 0.1
"""The noise of a dependence that is relied on is at most this fraction of the largest possible dependence."""

MAX_JOINT_CELLS = 1_000
"""The largest number of combinations of a group that a draft joins: all of them get noise."""

MAX_MAPPED_VALUES = 1_000
"""The largest number of values of an attribute from which others are mapped. A value of a longer list has so few rows
that noise decides what follows from it, and such an attribute keeps no more values than this in marginals."""

VISIBLE_SIGMAS = 3.0
"""A count is shown if it is at least this many standard deviations of its noise."""


@dataclass(frozen=True, slots=True)
class Dependence:
    """How two attributes depend on each other.

    Attributes:
        pair: the attributes.
        indif: ‖M_ab − M_a·M_b/n‖₁ as a fraction of the rows, 0 … 2.
        std: the standard deviation of its noise.
        forward: InDif as a fraction of its value if the second attribute followed from the first; about 1 if it does.
        backward: the same in the other direction.
    """

    pair: tuple[str, str]
    indif: float
    std: float
    forward: float
    backward: float

    @property
    def is_clear(self) -> bool:
        """Whether it stands out from the noise, and the noise is small beside the largest possible dependence.

        An attribute that nearly always has the same value can depend on nothing by much, so noise looks like a strong
        dependence of it.
        """
        return self.indif > 3 * self.std and self.std * max(self.forward, self.backward) <= MAX_NOISE * self.indif


@dataclass(frozen=True, slots=True)
class ExploredCell:
    """A cell of a table.

    Attributes:
        values: the value of each attribute of the table.
        share: the fraction of the rows in the cell.
        independent_share: the fraction that it would have if the attributes were independent.
    """

    values: tuple[str, ...]
    share: float
    independent_share: float


@dataclass(frozen=True, slots=True, eq=False)
class ExploredTable:
    """A marginal that an exploration shows, of one attribute or of two.

    Attributes:
        clique: the attributes.
        counts: the counts; noisy, unless the exploration is exact.
        std: the standard deviation of the noise of a count.
        labels: for each attribute, what its codes stand for.
        agreement: for two attributes on the same scale, how often they have the same value where neither is missing:
            Cohen's κ, 1 if always, 0 if not more often than by chance. None for others.
    """

    clique: Clique
    counts: NDArray[np.float64]
    std: float
    labels: tuple[tuple[str, ...], ...]
    agreement: float | None = None

    @classmethod
    def build(cls, table: Estimate, recoding: Recoding, attributes: Sequence[Attribute]) -> ExploredTable:
        """Build it from counts over the codes of a recoding of these attributes."""
        columns = [recoding.columns[recoding.index_of(name)] for name in table.clique]
        labels = tuple(label_codes(column, attributes) for column in columns)
        std = math.sqrt(table.variance)
        return cls(table.clique, table.values, std, labels, _measure_agreement(table, recoding, attributes))

    @property
    def visible(self) -> NDArray[np.bool_]:
        """The counts that stand out from the noise."""
        return np.asarray((self.counts > 0) & (self.counts >= VISIBLE_SIGMAS * self.std))

    def largest_cells(self, number: int) -> list[ExploredCell]:
        """The most frequent values of an attribute; of two, the cells that exceed independence most.

        Only counts that stand out from the noise are considered.
        """
        shares = self.counts / max(float(self.counts.sum()), 1.0)
        independent = shares
        if shares.ndim > 1:
            independent = np.multiply.outer(shares.sum(axis=1), shares.sum(axis=0))
        excess = np.where(self.visible, shares if shares.ndim == 1 else shares - independent, -np.inf)
        order = np.argsort(-excess, axis=None, kind="stable")[:number]
        indices = [np.unravel_index(int(flat), shares.shape) for flat in order if excess.flat[flat] > 0]
        return [
            ExploredCell(
                tuple(labels[int(code)] for labels, code in zip(self.labels, index, strict=True)),
                float(shares[index]),
                float(independent[index]),
            )
            for index in indices
        ]


def _measure_agreement(table: Estimate, recoding: Recoding, attributes: Sequence[Attribute]) -> float | None:
    """Cohen's κ of two attributes on the same scale, over the codes of a recoding."""
    columns = [recoding.columns[recoding.index_of(name)] for name in table.clique]
    if len(columns) != 2 or any(len(column.sources) > 1 or column.difference_codings for column in columns):
        return None
    first, second = (attributes[column.sources[0]] for column in columns)
    try:
        expected = expect_equal(second, first, columns[0].sources[0]).expected_codes[: first.proper_cells]
    except SchemaError:
        return None
    first_codes, second_codes = (column.tables[0] for column in columns)
    equal = np.zeros(table.values.shape, np.bool_)
    equal[first_codes[: first.proper_cells], second_codes[expected]] = True
    present = np.ix_(np.unique(first_codes[: first.proper_cells]), np.unique(second_codes[: second.proper_cells]))
    counts, equal = table.values[present], equal[present]
    shares = counts / max(float(counts.sum()), 1.0)
    by_chance = float(np.multiply.outer(shares.sum(axis=1), shares.sum(axis=0))[equal].sum())
    if by_chance >= 1:
        return None
    return float(np.clip((shares[equal].sum() - by_chance) / (1 - by_chance), -1.0, 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class Exploration:
    """A first look at a table.

    Attributes:
        sizes: the number of codes of each attribute.
        shares: the fraction of the rows with each of its codes.
        rows: about how many rows there are.
        dependences: of all pairs that were scored, the strongest first.
        exact: whether counts are exact, which is for public data only.
        parts: the attributes that the schema measures together, by the name of the joint attribute.
        schema: the schema that a plan must fit; None if it is not known.
        one_way: the one-way marginal of each attribute, over the values or bins of the schema.
        tables: the two-way marginals of strong pairs that were measured, the strongest first.
    """

    sizes: Mapping[str, int]
    shares: Mapping[str, NDArray[np.float64]]
    rows: float
    dependences: tuple[Dependence, ...]
    exact: bool = False
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    schema: Schema | None = None
    one_way: Mapping[str, ExploredTable] = field(default_factory=dict)
    tables: tuple[ExploredTable, ...] = ()

    @classmethod
    def build(
        cls,
        counts: Mapping[str, NDArray[np.float64]],
        pairs: Sequence[Clique],
        indifs: NDArray[np.float64],
        *,
        rows: float,
        std: float = 0.0,
        exact: bool = False,
        parts: Mapping[str, tuple[str, ...]] | None = None,
        schema: Schema | None = None,
        one_way: Mapping[str, ExploredTable] | None = None,
        tables: Iterable[ExploredTable] = (),
    ) -> Exploration:
        """Build an exploration from counts of codes and InDif of pairs, in rows."""
        total = max(rows, 1.0)
        shares = {name: np.maximum(c, 0.0) / max(float(np.maximum(c, 0.0).sum()), 1.0) for name, c in counts.items()}
        maxima = {name: 2 * (1 - float((p**2).sum())) for name, p in shares.items()}
        dependences = sorted(
            (
                _scale_dependence((one, other), max(float(value), 0.0) / total, std / total, maxima)
                for (one, other), value in zip(pairs, indifs, strict=True)
            ),
            key=lambda dependence: -dependence.indif,
        )
        strengths = {dependence.pair: dependence.indif for dependence in dependences}
        return cls(
            sizes={name: len(c) for name, c in counts.items()},
            shares=shares,
            rows=rows,
            dependences=tuple(dependences),
            exact=exact,
            parts=parts or {},
            schema=schema,
            one_way=one_way or {},
            tables=tuple(sorted(tables, key=lambda table: -strengths.get((table.clique[0], table.clique[-1]), 0.0))),
        )

    @classmethod
    def from_synopsis(cls, synopsis: Synopsis) -> Exploration:
        """What a synopsis shows about how attributes depend on each other; it costs no budget.

        Scores of attributes that a plan codes as differences are left out: they are about differences, not values.
        """
        from dpsyn.inference import estimate_one_way

        for release in reversed(synopsis.releases):
            for scores in (each for each in release.scores if each.are_distances):
                names = {name for clique in scores.cliques for name in clique}
                measured = next((r for r in reversed(release.rounds) if names <= set(r.recoding.names)), None)
                if measured is None or any(len(clique) != 2 for clique in scores.cliques):
                    continue
                recoding = measured.recoding
                if recoding.difference_codings or not names <= _attributes_with_one_way(release):
                    continue
                counts = {n: estimate_one_way([release], recoding, n).values for n in recoding.names if n in names}
                attributes = Codec(synopsis.schema).attributes
                return cls.build(
                    counts,
                    scores.cliques,
                    scores.values,
                    rows=synopsis.model.total,
                    std=scores.std,
                    parts=recoding.joint_parts,
                    schema=synopsis.schema,
                    one_way={
                        name: ExploredTable.build(estimate_one_way([release], codes, name), codes, attributes)
                        for name in counts
                        for codes in [_unmerged_codes(release, synopsis.schema, name)]
                    },
                    tables=[
                        ExploredTable.build(Estimate.of(marginal), recoding, attributes)
                        for marginal in measured.marginals
                        if len(marginal.clique) == 2
                    ],
                )
        raise UserError("the synopsis has no scores of pairs; make one with dpsyn explore")

    def mappings(self) -> list[tuple[str, str, float]]:
        """Attributes that nearly follow from another one: (attribute, source, strength), the strongest first."""
        mappings = []
        for dependence in self.dependences:
            one, other = dependence.pair
            if not dependence.is_clear:
                continue
            if dependence.forward >= MAPPING_DEPENDENCE and self.sizes[one] >= self.sizes[other] > 1:
                mappings.append((other, one, dependence.forward))
            elif dependence.backward >= MAPPING_DEPENDENCE and self.sizes[other] >= self.sizes[one] > 1:
                mappings.append((one, other, dependence.backward))
        short = [entry for entry in mappings if self.count_values(entry[1]) <= MAX_MAPPED_VALUES]
        return sorted(short, key=lambda entry: -entry[2])

    def groups(self) -> list[tuple[str, ...]]:
        """Groups of attributes to join: each depends closely on another of its group, and combinations stay few."""
        groups: list[set[str]] = []
        for dependence in self.dependences:
            if not dependence.is_clear or min(dependence.forward, dependence.backward) < CLOSE_DEPENDENCE:
                continue
            near = [group for group in groups if group & set(dependence.pair)]
            joined = set(dependence.pair).union(*near)
            if math.prod(self.count_values(name) for name in joined) <= MAX_JOINT_CELLS:
                groups = [group for group in groups if group not in near] + [joined]
        order = list(self.sizes)
        return [tuple(sorted(group, key=order.index)) for group in groups]

    def count_values(self, name: str) -> int:
        """The number of values or bins of an attribute, before rare ones are merged."""
        return self.one_way[name].counts.size if name in self.one_way else self.sizes[name]


def connect(sets: Iterable[Iterable[str]]) -> list[frozenset[str]]:
    """Merge sets that have an element in common, until none have."""
    connected: list[frozenset[str]] = []
    for members in map(frozenset, sets):
        near = [other for other in connected if other & members]
        connected = [other for other in connected if other not in near] + [members.union(*near)]
    return connected


def select_forest(pairs: Iterable[Clique], max_pairs: int) -> list[Clique]:
    """The first pairs that form no cycle: each connects attributes that those before it do not (Kruskal's algorithm).

    With pairs in the order of their strength it is a maximum spanning forest. Ten dates that agree need nine tables
    for what all 45 of their pairs show.
    """
    forest: list[Clique] = []
    for pair in pairs:
        if len(forest) < max_pairs and not any(set(pair) <= members for members in connect(forest)):
            forest.append(pair)
    return forest


def _scale_dependence(pair: tuple[str, str], indif: float, std: float, maxima: Mapping[str, float]) -> Dependence:
    """If b follows from a, InDif is 2·(1 − Σ p_b²) of the rows."""
    forward, backward = (indif / maxima[name] if maxima[name] > 1e-9 else 0.0 for name in reversed(pair))
    return Dependence(pair, indif, std, forward, backward)


def _attributes_with_one_way(release: Release) -> set[str]:
    """Attributes whose one-way marginals were measured."""
    return {m.clique[0] for measured in release.rounds for m in measured.marginals if len(m.clique) == 1}


def _unmerged_codes(release: Release, schema: Schema, name: str) -> Recoding:
    """The recoding in which an attribute has the values or bins of the schema; a joint one has its combinations."""
    coarse = Recoding.coarse(Codec(schema))
    if name in coarse.names:
        return coarse
    return next(r.recoding for r in release.rounds if (name,) in [m.clique for m in r.marginals])
