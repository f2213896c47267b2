"""The distribution that records start from: a forest of measured tables, sampled exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.inference.gibbs.kernels import sample_conditional
from dpsyn.inference.gibbs.layout import CliqueIndices, Columns, column_type

CountArray = NDArray[np.float64]
AllowedWeights = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """Attributes that are drawn at once, given some that were drawn before.

    Attributes:
        given: the attributes drawn before; all of them are in one earlier branch. None at the root of a tree.
        new: the new ones.
        joint: non-negative counts over ``given``, then ``new``.
        source: the place of the clique that the counts come from.
    """

    given: CliqueIndices
    new: CliqueIndices
    joint: CountArray
    source: int

    def __post_init__(self) -> None:
        if self.joint.ndim != len(self.given) + len(self.new) or not self.new:
            raise InternalError(f"the table of a branch has {self.joint.ndim} axes")
        self.joint.setflags(write=False)

    @property
    def family(self) -> CliqueIndices:
        """All its attributes."""
        return self.given + self.new

    def conditional(self) -> CountArray:
        """The distribution of what is drawn for every combination of what is given; shaped as ``joint``.

        Combinations that hold nothing get the distribution of all together.
        """
        rows = self._matrix()
        pooled = rows.sum(axis=0)
        pooled = pooled if pooled.sum() > 0 else np.ones_like(pooled)
        filled = np.where(rows.sum(axis=1, keepdims=True) > 0, rows, pooled)
        shares: CountArray = (filled / filled.sum(axis=1, keepdims=True)).reshape(self.joint.shape)
        return shares

    def log_conditional(self, pseudocount: float) -> CountArray:
        """Its logarithm, with ``pseudocount`` independent records added to every combination: no cell is impossible."""
        rows, width = self._matrix(), len(self.given)
        independent = np.ones((1,) * len(self.new))
        for axis in range(len(self.new)):
            others = tuple(other for other in range(self.joint.ndim) if other != width + axis)
            shape = [-1 if other == axis else 1 for other in range(len(self.new))]
            counts = self.joint.sum(axis=others).reshape(shape) + 0.5
            independent = independent * (counts / counts.sum())
        filled = rows + pseudocount * independent.ravel()
        logs: CountArray = np.log(filled / filled.sum(axis=1, keepdims=True)).reshape(self.joint.shape)
        return logs

    def _matrix(self) -> CountArray:
        """Combinations of what is given × combinations of what is drawn."""
        return self.joint.reshape(-1, int(np.prod(self.joint.shape[len(self.given) :])))


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Trees of branches; each attribute is drawn by one of them.

    With tables of pairs it is the maximum spanning forest of their mutual information (Chow and Liu 1968).
    """

    branches: tuple[Branch, ...]

    def __post_init__(self) -> None:
        families: list[set[int]] = []
        for branch in self.branches:
            if branch.given and not any(set(branch.given) <= family for family in families):
                raise InternalError("a branch is given attributes that no earlier one holds together")
            families.append(set(branch.family))
        drawn = sorted(place for branch in self.branches for place in branch.new)
        if drawn != list(range(len(drawn))):
            raise InternalError("the branches of a forest do not draw each attribute once")

    def sample(self, rows: int, seed: int, allowed: Mapping[int, AllowedWeights] | None = None) -> Columns:
        """Records, attributes × records, given that some attributes have allowed values only.

        Exact: each combination is weighted by how likely the conditions below it are (messages from the leaves), and
        of the records that share what is given, each draws as many as expected to rounding.
        """
        most = max(max(branch.joint.shape) for branch in self.branches)
        columns = np.zeros((sum(len(branch.new) for branch in self.branches), rows), column_type(most))
        random = np.random.default_rng(seed)
        for branch, weights in zip(self.branches, self._conditional_weights(allowed or {}), strict=True):
            shape = weights.shape[len(branch.given) :]
            cumulative = np.cumsum(weights.reshape(-1, int(np.prod(shape))), axis=1)
            codes = np.zeros(rows, np.int64)
            for place, size in zip(branch.given, weights.shape, strict=False):
                codes = codes * size + columns[place]
            drawn = np.empty(rows, np.int64)
            sample_conditional(codes, random.permutation(rows), cumulative, random.random(len(cumulative)), drawn)
            columns[list(branch.new)] = np.unravel_index(drawn, shape)
        return columns

    def _conditional_weights(self, allowed: Mapping[int, AllowedWeights]) -> list[CountArray]:
        """For each branch its conditional times the likelihood of all conditions on it and below it."""
        weights = [branch.conditional() for branch in self.branches]
        for number, branch in reversed(list(enumerate(self.branches))):
            for place in branch.new:
                if place in allowed:
                    weights[number] = weights[number] * _broadcast_to_family(allowed[place], (place,), branch.family)
            if branch.given:
                message = weights[number].sum(axis=tuple(range(len(branch.given), len(branch.family))))
                carrier = self._parent(number)
                weights[carrier] = weights[carrier] * _broadcast_to_family(
                    message, branch.given, self.branches[carrier].family
                )
        return weights

    def _parent(self, number: int) -> int:
        """The first branch that holds all that a branch is given."""
        given = set(self.branches[number].given)
        return next(place for place, branch in enumerate(self.branches) if given <= set(branch.family))


def _broadcast_to_family(table: NDArray[np.generic], indices: CliqueIndices, family: CliqueIndices) -> CountArray:
    """A table over some attributes of a family, with axes of length one for the others."""
    kept = sorted(indices, key=family.index)
    turned = np.transpose(np.asarray(table, np.float64), [indices.index(place) for place in kept])
    sizes = dict(zip(kept, turned.shape, strict=True))
    return turned.reshape([sizes.get(place, 1) for place in family])


def build_forest(tables: Sequence[tuple[CliqueIndices, CountArray]], attributes: int) -> Forest:
    """The forest of tables that tells most, grown from the best table of each tree.

    A table joins a tree by what it shares with one of its branches, and brings the attributes that are still missing.
    What that tells is the total correlation of both less that of the shared part: for pairs, mutual information.

    Args:
        tables: attributes and non-negative counts.
        attributes: how many attributes there are; every one must be in a table.
    """
    near: list[list[int]] = [[] for _ in range(attributes)]
    for number, (places, _) in enumerate(tables):
        for place in places:
            near[place].append(number)
    worth = [total_correlation(table) for _, table in tables]
    found: list[Branch] = []
    missing = set(range(attributes))
    for root in sorted(range(len(tables)), key=lambda number: (-worth[number], len(tables[number][0]), number)):
        if missing.issuperset(tables[root][0]):
            _grow_tree(Branch((), *tables[root], root), tables, near, found, missing)
    if missing:
        raise InternalError(f"{len(missing)} attributes are in no table")
    return Forest(tuple(found))


def total_correlation(table: CountArray) -> float:
    """How far a table is from independence, in nats: the sum of the attributes' entropies less their joint one."""
    axes = range(table.ndim)
    single = sum(_entropy(table.sum(axis=tuple(other for other in axes if other != axis))) for axis in axes)
    return max(0.0, single - _entropy(table))


def _entropy(counts: CountArray) -> float:
    positive = counts[counts > 0]
    shares = positive / positive.sum()
    return float(-np.sum(shares * np.log(shares)))


def _grow_tree(
    root: Branch,
    tables: Sequence[tuple[CliqueIndices, CountArray]],
    near: Sequence[Sequence[int]],
    found: list[Branch],
    missing: set[int],
) -> None:
    """Add a tree: the root, then again and again the branch that tells most (Prim 1957)."""
    offers: list[tuple[float, int, int, Branch]] = [(0.0, 0, 0, root)]
    while offers:
        _, source, holder, branch = heappop(offers)
        if not missing.issuperset(branch.new):  # offered before some of its attributes were drawn
            holders = [(source, holder, found[holder])]
        else:
            found.append(branch)
            missing.difference_update(branch.new)
            touched = sorted({number for place in branch.family for number in near[place]})
            holders = [(number, len(found) - 1, branch) for number in touched]
        for number, place, family in holders:
            offer = _propose_branch(tables[number], number, family.family, missing)
            if offer is not None:
                told = total_correlation(offer.joint) - total_correlation(
                    _keep_first_axes(offer.joint, len(offer.given))
                )
                heappush(offers, (-told, number, place, offer))


def _propose_branch(
    table: tuple[CliqueIndices, CountArray], source: int, family: CliqueIndices, missing: set[int]
) -> Branch | None:
    """What a table brings to a tree by the attributes it shares with one family; None if nothing is missing in it."""
    places, counts = table
    given = tuple(place for place in places if place in family)
    drawn = tuple(place for place in places if place in missing)
    if not drawn:
        return None
    kept = given + drawn
    projected = counts.sum(axis=tuple(axis for axis, place in enumerate(places) if place not in kept))
    left = [place for place in places if place in kept]
    return Branch(given, drawn, np.transpose(projected, [left.index(place) for place in kept]), source)


def _keep_first_axes(table: CountArray, number: int) -> CountArray:
    """A table summed over all but its first axes."""
    summed: CountArray = table.sum(axis=tuple(range(number, table.ndim)))
    return summed
