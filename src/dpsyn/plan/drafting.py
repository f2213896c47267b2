"""A first plan, from what was released about a table."""

from __future__ import annotations

from dpsyn.errors import SchemaError
from dpsyn.plan.entries import AnyTransform, Mapping, Marginals, Recode
from dpsyn.plan.exploring import Exploration
from dpsyn.plan.plan import Plan

MOST_MARGINALS = 20
"""Marginals that a draft names; the rest is left to selection."""

STRONG = 0.3
"""Pairs are named if their dependence is so large a part of what it could be."""


def draft_plan(exploration: Exploration) -> Plan:
    """Mappings, groups and marginals that the dependences suggest, for a steward to finish.

    What an attribute follows from is taken from the surest of its candidates; an attribute is recoded once. Names of
    groups are those of their attributes. What the schema declares as one is written by its parts, which a plan recodes
    with others; none is mapped.
    """
    taken: set[str] = set()
    anchors: set[str] = set()
    transforms: list[AnyTransform] = []
    for name, source, _ in exploration.mappings():
        joint = name in exploration.parts or source in exploration.parts
        mapping = Mapping(of=name, source=source)
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
    return Plan(transforms=tuple(transforms), marginals=_marginals(exploration, transforms), selection=True)


def _fits(transform: AnyTransform, exploration: Exploration) -> bool:
    """Whether the schema lets a plan have it: not where a public total counts it, or its table would be too large."""
    if exploration.schema is None:
        return True
    try:
        Plan(transforms=(transform,)).check(exploration.schema)
    except SchemaError:
        return False
    return True


def _marginals(exploration: Exploration, transforms: list[AnyTransform]) -> tuple[Marginals, ...]:
    """The strongest pairs that no transform covers."""
    covered = [set(transform.mentions()) for transform in transforms]
    first = {name: parts[0] for name, parts in exploration.parts.items()}  # it stands for the joint attribute
    strong = [
        pair
        for dependence in exploration.dependences
        for pair in [tuple(first.get(name, name) for name in dependence.pair)]
        if dependence.clear
        and max(dependence.forward, dependence.backward) >= STRONG
        and not any(set(pair) <= some for some in covered)
    ]
    return tuple(Marginals(of=pair) for pair in strong[:MOST_MARGINALS])
