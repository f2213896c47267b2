"""Which sets of attributes tables share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpsyn.marginals import Clique

MOST_SETS = 10_000
"""Several times what tables in use share: 600 pairs 35 sets, 300 cliques of 5 attributes 1 100, 50 views of 8 out of
16 attributes 1 300."""


@dataclass(frozen=True, slots=True)
class Shared:
    """A set of attributes and the tables that hold all of them.

    Attributes:
        attributes: in the order of their names.
        tables: the places of the tables, ascending.
    """

    attributes: Clique
    tables: tuple[int, ...]


def closure(cliques: Sequence[Clique], most: int = MOST_SETS) -> list[Shared]:
    """The empty set, and all intersections of two or more of the cliques; small sets first, then by name.

    Tables that agree on these sets agree on everything that they share. Such a set is all that the tables holding
    it have in common, so that it is known by those tables: to widen a set by an attribute, leave out the tables
    without it and take whatever the others share. That reaches every set from smaller ones.

    If there are more than ``most`` sets, the largest are left out, all of a size at once: what is left is still
    closed under intersection, and tables that agree on it agree on the projections to as many attributes.
    """
    everyone = (1 << len(cliques)) - 1
    found = [Shared((), tuple(range(len(cliques))))]
    if len(cliques) < 2:
        return found
    holders, seen = _holders(cliques), {everyone}
    waiting: dict[int, list[tuple[Clique, int]]] = defaultdict(list)
    waiting[len(_common(cliques, everyone))].append((_common(cliques, everyone), everyone))
    while waiting:
        level = sorted(waiting.pop(min(waiting)))
        if len(found) + len(level) > most:
            break
        found += [Shared(attributes, tuple(_places(tables))) for attributes, tables in level if attributes]
        for attributes, tables in level:
            for fewer in _narrowed(tables, attributes, holders):
                if fewer not in seen:
                    seen.add(fewer)
                    common = _common(cliques, fewer)
                    waiting[len(common)].append((common, fewer))
    return found


def _holders(cliques: Sequence[Clique]) -> dict[str, int]:
    """For each attribute the tables that hold it, as bits of a number."""
    holders: dict[str, int] = defaultdict(int)
    for place, clique in enumerate(cliques):
        for name in clique:
            holders[name] |= 1 << place
    return holders


def _narrowed(tables: int, attributes: Clique, holders: dict[str, int]) -> Iterator[int]:
    """Those of the tables that hold one attribute more, for each attribute that two or more of them hold."""
    for name, holding in holders.items():
        fewer = tables & holding
        if fewer & (fewer - 1) and name not in attributes:
            yield fewer


def _common(cliques: Sequence[Clique], tables: int) -> Clique:
    """What the tables share."""
    places = _places(tables)
    common = set(cliques[next(places)])
    for place in places:
        common.intersection_update(cliques[place])
        if not common:
            break
    return tuple(sorted(common))


def _places(tables: int) -> Iterator[int]:
    """The places of the bits that are set."""
    while tables:
        lowest = tables & -tables
        yield lowest.bit_length() - 1
        tables ^= lowest
