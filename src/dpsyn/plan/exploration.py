"""A first look at a table: which attributes depend on each other, belong together, or follow from each other.

It is the exploration with which the contest entry began (Li, Zhang and Wang, *DPSyn*): one-way marginals and InDif of
every pair. A high InDif is a strong dependence. A draft of a plan follows from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import DocumentError, UserError
from dpsyn.marginals import Clique
from dpsyn.plan.entries import AnyTransform, LearnedMapping, MarginalsEntry, Recode
from dpsyn.plan.plan import Plan

if TYPE_CHECKING:
    from dpsyn.inference import Release
    from dpsyn.schema import Schema
    from dpsyn.synopsis import Synopsis


CLOSE_DEPENDENCE = 0.5
"""Attributes belong together if their dependence reaches this fraction of its maximum, in both directions."""

MAPPING_DEPENDENCE = 0.85
"""One attribute follows from another if the dependence reaches this fraction in one direction."""

MAX_JOINT_CELLS = 20_000
"""The largest number of combinations of a group that a draft joins."""

MAX_PAIR_CELLS = 1_000_000
"""The largest marginal from which a draft derives a mapping."""


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
        """Whether it stands out from the noise."""
        return self.indif > 3 * self.std


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
    """

    sizes: Mapping[str, int]
    shares: Mapping[str, NDArray[np.float64]]
    rows: float
    dependences: tuple[Dependence, ...]
    exact: bool = False
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    schema: Schema | None = None

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
    ) -> Exploration:
        """Build an exploration from counts of codes and InDif of pairs, in rows."""
        total = max(rows, 1.0)
        shares = {name: np.maximum(c, 0.0) / max(float(np.maximum(c, 0.0).sum()), 1.0) for name, c in counts.items()}
        maxima = {name: 2 * (1 - float((p**2).sum())) for name, p in shares.items()}
        dependences = [
            _scale_dependence((one, other), max(float(value), 0.0) / total, std / total, maxima)
            for (one, other), value in zip(pairs, indifs, strict=True)
        ]
        sizes = {name: len(c) for name, c in counts.items()}
        return cls(sizes, shares, rows, tuple(sorted(dependences, key=lambda d: -d.indif)), exact, parts or {}, schema)

    @classmethod
    def from_synopsis(cls, synopsis: Synopsis) -> Exploration:
        """What a synopsis shows about how attributes depend on each other; it costs no budget.

        Scores of attributes that a plan codes as differences are left out: they are about differences, not values.
        """
        from dpsyn.inference import estimate_one_way

        for release in reversed(synopsis.releases):
            for scores in release.scores:
                names = {name for clique in scores.cliques for name in clique}
                measured = next((r for r in reversed(release.rounds) if names <= set(r.recoding.names)), None)
                if measured is None or any(len(clique) != 2 for clique in scores.cliques):
                    continue
                recoding = measured.recoding
                if recoding.difference_codings or not names <= _attributes_with_one_way(release):
                    continue
                counts = {n: estimate_one_way([release], recoding, n).values for n in recoding.names if n in names}
                return cls.build(
                    counts,
                    scores.cliques,
                    scores.values,
                    rows=synopsis.model.total,
                    std=scores.std,
                    parts=recoding.joint_parts,
                    schema=synopsis.schema,
                )
        raise UserError("the synopsis has no scores of pairs; make one with dpsyn explore")

    def mappings(self) -> list[tuple[str, str, float]]:
        """Attributes that nearly follow from another one: (attribute, source, strength), the strongest first."""
        mappings = []
        for dependence in self.dependences:
            one, other = dependence.pair
            if not dependence.is_clear or self.sizes[one] * self.sizes[other] > MAX_PAIR_CELLS:
                continue
            if dependence.forward >= MAPPING_DEPENDENCE and self.sizes[one] >= self.sizes[other] > 1:
                mappings.append((other, one, dependence.forward))
            elif dependence.backward >= MAPPING_DEPENDENCE and self.sizes[other] >= self.sizes[one] > 1:
                mappings.append((one, other, dependence.backward))
        return sorted(mappings, key=lambda entry: -entry[2])

    def groups(self) -> list[tuple[str, ...]]:
        """Groups of attributes to join: each depends closely on another of its group, and combinations stay few."""
        groups: list[set[str]] = []
        for dependence in self.dependences:
            if not dependence.is_clear or min(dependence.forward, dependence.backward) < CLOSE_DEPENDENCE:
                continue
            near = [group for group in groups if group & set(dependence.pair)]
            joined = set(dependence.pair).union(*near)
            if math.prod(self.sizes[name] for name in joined) <= MAX_JOINT_CELLS:
                groups = [group for group in groups if group not in near] + [joined]
        order = list(self.sizes)
        return [tuple(sorted(group, key=order.index)) for group in groups]


def _scale_dependence(pair: tuple[str, str], indif: float, std: float, maxima: Mapping[str, float]) -> Dependence:
    """If b follows from a, InDif is 2·(1 − Σ p_b²) of the rows."""
    forward, backward = (indif / maxima[name] if maxima[name] > 1e-9 else 0.0 for name in reversed(pair))
    return Dependence(pair, indif, std, forward, backward)


def _attributes_with_one_way(release: Release) -> set[str]:
    """Attributes whose one-way marginals were measured."""
    return {m.clique[0] for measured in release.rounds for m in measured.marginals if len(m.clique) == 1}


# ── a draft of a plan ────────────────────────────────────────────────────────────────────────────────────────

MAX_DRAFT_MARGINALS = 20
"""The largest number of marginals that a draft names; selection decides the rest."""

STRONG_DEPENDENCE = 0.3
"""A draft names pairs whose dependence reaches this fraction of its maximum."""


def draft_plan(exploration: Exploration) -> Plan:
    """Draft mappings, groups and marginals that the dependences suggest, for the data owner to finish.

    An attribute is mapped from its strongest candidate and recoded once. Groups are named after their attributes.
    Attributes that the schema measures together are written as their parts, and are not mapped.
    """
    taken: set[str] = set()
    anchors: set[str] = set()
    transforms: list[AnyTransform] = []
    for name, source, _ in exploration.mappings():
        joint = name in exploration.parts or source in exploration.parts
        mapping = LearnedMapping(of=name, source=source)
        if not joint and name not in taken | anchors and source not in taken and _fits(mapping, exploration):
            transforms.append(mapping)
            taken.add(name)
            anchors.add(source)
    for group in exploration.groups():
        left = tuple(name for name in group if name not in taken | anchors)
        parts = tuple(part for name in left for part in exploration.parts.get(name, (name,)))
        if len(left) > 1 and _fits(recode := Recode(to="+".join(left), of=parts), exploration):
            transforms.append(recode)
            taken.update(left)
    return Plan(transforms=tuple(transforms), marginals=_draft_marginals(exploration, transforms), selection=True)


def _fits(transform: AnyTransform, exploration: Exploration) -> bool:
    """Whether the schema allows a transform: not where a public total counts it, or its table would be too large."""
    if exploration.schema is None:
        return True
    try:
        Plan(transforms=(transform,)).check(exploration.schema)
    except DocumentError:
        return False
    return True


def _draft_marginals(exploration: Exploration, transforms: list[AnyTransform]) -> tuple[MarginalsEntry, ...]:
    """The strongest pairs that no transform covers."""
    covered = [set(transform.mentions()) for transform in transforms]
    first = {name: parts[0] for name, parts in exploration.parts.items()}  # it stands for the joint attribute
    strong = [
        pair
        for dependence in exploration.dependences
        for pair in [tuple(first.get(name, name) for name in dependence.pair)]
        if dependence.is_clear
        and max(dependence.forward, dependence.backward) >= STRONG_DEPENDENCE
        and not any(set(pair) <= names for names in covered)
    ]
    return tuple(MarginalsEntry(of=pair) for pair in strong[:MAX_DRAFT_MARGINALS])
