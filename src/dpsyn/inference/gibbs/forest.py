"""The initial distribution: a forest of measured tables, sampled exactly (for pairs, a Chow-Liu forest)."""

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
    """Attributes that are sampled together, given attributes that were sampled before.

    Attributes:
        given: the attributes sampled before; all of them are in one earlier branch. Empty at the root of a tree.
        new: the attributes to sample.
        joint: non-negative counts over ``given``, then ``new``.
        source: the index of the clique that the counts come from.
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
        """All attributes of the branch: ``given``, then ``new``."""
        return self.given + self.new

    def conditional(self) -> CountArray:
        """The distribution of the new attributes for every combination of the given ones; in the shape of ``joint``.

        Combinations without records get the distribution of all combinations together.
        """
        rows = self._matrix()
        pooled = rows.sum(axis=0)
        pooled = pooled if pooled.sum() > 0 else np.ones_like(pooled)
        filled = np.where(rows.sum(axis=1, keepdims=True) > 0, rows, pooled)
        shares: CountArray = (filled / filled.sum(axis=1, keepdims=True)).reshape(self.joint.shape)
        return shares

    def log_conditional(self, pseudocount: float) -> CountArray:
        """The logarithm, with ``pseudocount`` independent records added to every combination: no cell is impossible."""
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
        """Combinations of the given attributes × combinations of the new ones."""
        return self.joint.reshape(-1, int(np.prod(self.joint.shape[len(self.given) :])))


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Trees of branches; each attribute is sampled by exactly one branch.

    With tables of pairs it is the maximum spanning forest of their mutual information (Chow and Liu 1968).
    """

    branches: tuple[Branch, ...]

    def __post_init__(self) -> None:
        families: list[set[int]] = []
        for branch in self.branches:
            if branch.given and not any(set(branch.given) <= family for family in families):
                raise InternalError("a branch is given attributes that no earlier branch holds together")
            families.append(set(branch.family))
        sampled = sorted(axis for branch in self.branches for axis in branch.new)
        if sampled != list(range(len(sampled))):
            raise InternalError("the branches of a forest do not sample each attribute exactly once")

    def sample(self, rows: int, seed: int, allowed: Mapping[int, AllowedWeights] | None = None) -> Columns:
        """Sample records (attributes × records), under conditions on the values of some attributes.

        The sample is exact: each combination is weighted by the probability of the conditions below it (messages from
        the leaves). Among the records with the same given values, each combination occurs as often as expected, up to
        rounding.
        """
        max_values = max(max(branch.joint.shape) for branch in self.branches)
        columns = np.zeros((sum(len(branch.new) for branch in self.branches), rows), column_type(max_values))
        random = np.random.default_rng(seed)
        for branch, weights in zip(self.branches, self._conditional_weights(allowed or {}), strict=True):
            shape = weights.shape[len(branch.given) :]
            cumulative = np.cumsum(weights.reshape(-1, int(np.prod(shape))), axis=1)
            codes = np.zeros(rows, np.int64)
            for axis, size in zip(branch.given, weights.shape, strict=False):
                codes = codes * size + columns[axis]
            sampled = np.empty(rows, np.int64)
            sample_conditional(codes, random.permutation(rows), cumulative, random.random(len(cumulative)), sampled)
            columns[list(branch.new)] = np.unravel_index(sampled, shape)
        return columns

    def _conditional_weights(self, allowed: Mapping[int, AllowedWeights]) -> list[CountArray]:
        """For each branch, its conditional distribution times the probability of the conditions on it and below it."""
        weights = [branch.conditional() for branch in self.branches]
        for index, branch in reversed(list(enumerate(self.branches))):
            for axis in branch.new:
                if axis in allowed:
                    weights[index] = weights[index] * _broadcast_to_family(allowed[axis], (axis,), branch.family)
            if branch.given:
                message = weights[index].sum(axis=tuple(range(len(branch.given), len(branch.family))))
                parent = self._parent(index)
                weights[parent] = weights[parent] * _broadcast_to_family(
                    message, branch.given, self.branches[parent].family
                )
        return weights

    def _parent(self, index: int) -> int:
        """The first branch that holds all given attributes of a branch."""
        given = set(self.branches[index].given)
        return next(other for other, branch in enumerate(self.branches) if given <= set(branch.family))


def _broadcast_to_family(table: NDArray[np.generic], indices: CliqueIndices, family: CliqueIndices) -> CountArray:
    """A table over some attributes of a family, with axes of length 1 for the others."""
    kept = sorted(indices, key=family.index)
    transposed = np.transpose(np.asarray(table, np.float64), [indices.index(axis) for axis in kept])
    sizes = dict(zip(kept, transposed.shape, strict=True))
    return transposed.reshape([sizes.get(axis, 1) for axis in family])


def build_forest(tables: Sequence[tuple[CliqueIndices, CountArray]], attributes: int) -> Forest:
    """Build the forest of tables with the most information, each tree grown from its most informative table.

    A table joins a tree by the attributes that it shares with one of the branches, and adds those that are still
    missing. The information that it adds is its total correlation minus that of the shared part: for pairs, their
    mutual information.

    Args:
        tables: attributes and non-negative counts.
        attributes: the number of attributes; each must be in a table.
    """
    holders: list[list[int]] = [[] for _ in range(attributes)]
    for index, (axes, _) in enumerate(tables):
        for axis in axes:
            holders[axis].append(index)
    information = [total_correlation(table) for _, table in tables]
    branches: list[Branch] = []
    missing = set(range(attributes))
    for root in sorted(range(len(tables)), key=lambda index: (-information[index], len(tables[index][0]), index)):
        if missing.issuperset(tables[root][0]):
            _grow_tree(Branch((), *tables[root], root), tables, holders, branches, missing)
    if missing:
        raise InternalError(f"{len(missing)} attributes are in no table")
    return Forest(tuple(branches))


def total_correlation(table: CountArray) -> float:
    """The dependence in a table, in nats: the sum of the attributes' entropies minus their joint entropy."""
    axes = range(table.ndim)
    separate = sum(_entropy(table.sum(axis=tuple(other for other in axes if other != axis))) for axis in axes)
    return max(0.0, separate - _entropy(table))


def _entropy(counts: CountArray) -> float:
    positive = counts[counts > 0]
    shares = positive / positive.sum()
    return float(-np.sum(shares * np.log(shares)))


def _grow_tree(
    root: Branch,
    tables: Sequence[tuple[CliqueIndices, CountArray]],
    holders: Sequence[Sequence[int]],
    branches: list[Branch],
    missing: set[int],
) -> None:
    """Add a tree: the root, then repeatedly the branch that adds the most information (Prim 1957)."""
    offers: list[tuple[float, int, int, Branch]] = [(0.0, 0, 0, root)]
    while offers:
        _, source, parent, branch = heappop(offers)
        if not missing.issuperset(branch.new):  # offered before some of its attributes were added
            candidates = [(source, parent, branches[parent])]
        else:
            branches.append(branch)
            missing.difference_update(branch.new)
            adjacent = sorted({index for axis in branch.family for index in holders[axis]})
            candidates = [(index, len(branches) - 1, branch) for index in adjacent]
        for index, parent, family in candidates:
            offer = _propose_branch(tables[index], index, family.family, missing)
            if offer is not None:
                shared: CountArray = offer.joint.sum(axis=tuple(range(len(offer.given), offer.joint.ndim)))
                information = total_correlation(offer.joint) - total_correlation(shared)
                heappush(offers, (-information, index, parent, offer))


def _propose_branch(
    table: tuple[CliqueIndices, CountArray], source: int, family: CliqueIndices, missing: set[int]
) -> Branch | None:
    """The branch by which a table would join a family of attributes; None if it adds no missing attribute."""
    clique, counts = table
    given = tuple(attribute for attribute in clique if attribute in family)
    new = tuple(attribute for attribute in clique if attribute in missing)
    if not new:
        return None
    kept = given + new
    projected = counts.sum(axis=tuple(axis for axis, attribute in enumerate(clique) if attribute not in kept))
    left = [attribute for attribute in clique if attribute in kept]
    return Branch(given, new, np.transpose(projected, [left.index(attribute) for attribute in kept]), source)
