"""What a first look at a table tells: how attributes depend on each other, which belong together, which follow.

After the exploration that the contest entry began with (Li, Zhang and Wang, *DPSyn*): 1-way marginals and InDif of
every pair. A high InDif is a strong dependence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import UserError
from dpsyn.marginals import Clique

if TYPE_CHECKING:
    from dpsyn.schema import Schema
    from dpsyn.synopsis import Release, Synopsis

CLOSE = 0.5
"""Attributes belong together if their dependence is so large a part of what it could be, in both directions."""

FOLLOWS = 0.85
"""One follows from the other if it is so large in one direction."""

MOST_JOINT = 20_000
"""Combinations of a group that is proposed to be recoded."""

MOST_PAIR = 1_000_000
"""Cells of the marginal that a mapping is read off."""


@dataclass(frozen=True, slots=True)
class Dependence:
    """How two attributes depend on each other.

    Attributes:
        pair: the attributes.
        indif: ‖M_ab − M_a·M_b/n‖₁ as a part of the rows, 0 … 2.
        deviation: the standard deviation of its noise.
        forward: it as a part of what it would be if the second followed from the first; about 1 if it does.
        backward: the same the other way round.
    """

    pair: tuple[str, str]
    indif: float
    deviation: float
    forward: float
    backward: float

    @property
    def clear(self) -> bool:
        """Whether it stands out from the noise."""
        return self.indif > 3 * self.deviation


@dataclass(frozen=True, slots=True, eq=False)
class Exploration:
    """A first look at a table.

    Attributes:
        sizes: the number of codes of each attribute.
        shares: the part of the rows that each of its codes has.
        rows: about how many rows there are.
        dependences: of all pairs that were looked at, the strongest first.
        exact: whether it was counted without noise, which is for public data only.
        parts: of attributes that the schema declares as one, the attributes they are made of.
        schema: what a plan for the table must fit; None if it is not known.
    """

    sizes: Mapping[str, int]
    shares: Mapping[str, NDArray[np.float64]]
    rows: float
    dependences: tuple[Dependence, ...]
    exact: bool = False
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    schema: Schema | None = None

    @classmethod
    def of(
        cls,
        counts: Mapping[str, NDArray[np.float64]],
        pairs: Sequence[Clique],
        indifs: NDArray[np.float64],
        *,
        rows: float,
        deviation: float = 0.0,
        exact: bool = False,
        parts: Mapping[str, tuple[str, ...]] | None = None,
        schema: Schema | None = None,
    ) -> Exploration:
        """From counts of codes and InDif of pairs, in rows."""
        total = max(rows, 1.0)
        shares = {name: np.maximum(c, 0.0) / max(float(np.maximum(c, 0.0).sum()), 1.0) for name, c in counts.items()}
        most = {name: 2 * (1 - float((p**2).sum())) for name, p in shares.items()}
        found = [
            _dependence((one, other), max(float(value), 0.0) / total, deviation / total, most)
            for (one, other), value in zip(pairs, indifs, strict=True)
        ]
        sizes = {name: len(c) for name, c in counts.items()}
        return cls(sizes, shares, rows, tuple(sorted(found, key=lambda d: -d.indif)), exact, parts or {}, schema)

    def mappings(self) -> list[tuple[str, str, float]]:
        """Attributes that nearly follow from another one: which, from which, and how nearly; the surest first."""
        found = []
        for dependence in self.dependences:
            one, other = dependence.pair
            if not dependence.clear or self.sizes[one] * self.sizes[other] > MOST_PAIR:
                continue
            if dependence.forward >= FOLLOWS and self.sizes[one] >= self.sizes[other] > 1:
                found.append((other, one, dependence.forward))
            elif dependence.backward >= FOLLOWS and self.sizes[other] >= self.sizes[one] > 1:
                found.append((one, other, dependence.backward))
        return sorted(found, key=lambda entry: -entry[2])

    def groups(self) -> list[tuple[str, ...]]:
        """Attributes to recode into one: each depends closely on another of its group, and combinations stay few."""
        groups: list[set[str]] = []
        for dependence in self.dependences:
            if not dependence.clear or min(dependence.forward, dependence.backward) < CLOSE:
                continue
            near = [group for group in groups if group & set(dependence.pair)]
            joined = set(dependence.pair).union(*near)
            if math.prod(self.sizes[name] for name in joined) <= MOST_JOINT:
                groups = [group for group in groups if group not in near] + [joined]
        order = list(self.sizes)
        return [tuple(sorted(group, key=order.index)) for group in groups]


def _dependence(pair: tuple[str, str], indif: float, deviation: float, most: Mapping[str, float]) -> Dependence:
    """If b follows from a, InDif is 2·(1 − Σ p_b²) of the rows."""
    forward, backward = (indif / most[name] if most[name] > 1e-9 else 0.0 for name in reversed(pair))
    return Dependence(pair, indif, deviation, forward, backward)


def explored(synopsis: Synopsis) -> Exploration:
    """What a synopsis tells about how attributes depend on each other; costs nothing.

    Scores of attributes that a plan told by others are of no use: they are about differences, not about values.
    """
    from dpsyn.synopsis import single_estimate

    for release in reversed(synopsis.releases):
        for scores in release.scores:
            names = {name for clique in scores.cliques for name in clique}
            stage = next((s for s in reversed(release.stages) if names <= set(s.recoding.names)), None)
            if stage is None or any(len(clique) != 2 for clique in scores.cliques):
                continue
            recoding = stage.recoding
            if recoding.references or not names <= _counted_alone(release):
                continue
            counts = {n: single_estimate([release], recoding, n).values for n in recoding.names if n in names}
            return Exploration.of(
                counts,
                scores.cliques,
                scores.values,
                rows=synopsis.model.total,
                deviation=scores.deviation,
                parts=recoding.parts,
                schema=synopsis.schema,
            )
    raise UserError("nothing in the synopsis tells how pairs depend on each other; make one with dpsyn explore")


def _counted_alone(release: Release) -> set[str]:
    """Attributes whose 1-way marginals were measured."""
    return {m.clique[0] for stage in release.stages for m in stage.marginals if len(m.clique) == 1}
