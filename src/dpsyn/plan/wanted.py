"""The marginals that a plan names, each of them once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dpsyn.marginals import Clique
from dpsyn.plan.entries import Marginals


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """Marginals that one entry of a plan asks for, over the attributes of a layout.

    Attributes:
        entry: what the plan says.
        cliques: the marginals.
    """

    entry: Marginals
    cliques: tuple[Clique, ...]


def named_once(wanted: Iterable[Wanted]) -> tuple[Wanted, ...]:
    """The same marginals with every set of attributes in one order, and in one entry of those without a share.

    Two tables of the same attributes would tell the same twice. Entries with a share keep what they name, and their
    shares of a table add up; entries without one leave out what another entry has already. What is empty then is gone.
    """
    wanted = list(wanted)
    orders: dict[frozenset[str], Clique] = {}
    for one in wanted:
        for clique in one.cliques:
            orders.setdefault(frozenset(clique), clique)
    taken = {frozenset(clique) for one in wanted if one.entry.share is not None for clique in one.cliques}
    found = []
    for one in wanted:
        names = dict.fromkeys(frozenset(clique) for clique in one.cliques)
        if one.entry.share is None:
            names = dict.fromkeys(clique for clique in names if clique not in taken)
            taken |= names.keys()
        if names:
            found.append(Wanted(one.entry, tuple(orders[clique] for clique in names)))
    return tuple(found)
