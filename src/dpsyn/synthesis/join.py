"""Separate and join: attributes that no table connects are synthesized apart (PrivSyn, section on GUM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.marginals import Estimate
from dpsyn.synthesis.start import Records


@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """Attributes that tables connect, and those tables."""

    names: tuple[str, ...]
    tables: tuple[Estimate, ...]


def separate(tables: Sequence[Estimate], names: Sequence[str]) -> list[Component]:
    """The connected components, in the order of their first attributes; an attribute without a table is one."""
    leader = {name: name for name in names}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    for table in tables:
        for name in table.clique[1:]:
            leader[find(name)] = find(table.clique[0])
    parts: dict[str, tuple[list[str], list[Estimate]]] = {}
    for name in names:
        parts.setdefault(find(name), ([], []))[0].append(name)
    for table in tables:
        if table.clique:
            parts[find(table.clique[0])][1].append(table)
    return [Component(tuple(members), tuple(own)) for members, own in parts.values()]


def join(
    parts: Sequence[Mapping[str, NDArray[np.int32]]], names: Sequence[str], rows: int, rng: np.random.Generator
) -> Records:
    """Records put together from the columns of components, the rows of each in a random order of its own."""
    joined = np.empty((len(names), rows), np.int32)
    place = {name: number for number, name in enumerate(names)}
    for part in parts:
        order = rng.permutation(rows)
        for name, column in part.items():
            np.take(column, order, out=joined[place[name]])
    return joined.T
