"""Distances between marginals of private rows and those of a public table, as exact numbers, and their sensitivity.

Let c be the counts of a marginal and n their sum; s those of the public table, such as a synthetic one, and m their
sum. The distance is d = Σ|c − n·s/m|: twice the number of rows that would have to change, and 2n times the total
variation distance between the two marginals.

**Lemma.** One row that is added, removed or replaced changes d by at most 2. Proof: a row that is added to cell j
changes the vector c − n·s/m by eⱼ − s/m, whose L1 norm is 2·(1 − sⱼ/m) ≤ 2; a row that moves from cell i to cell j
changes it by eⱼ − eᵢ, of norm 2. If the public table is empty, d is 2n, and the lemma holds as well.

If the rows of a unit are replaced, a of them by b others, max(a, b) such steps suffice. So with at most k rows per unit
d changes by at most Δ = 2k, under both neighboring relations. The mean and the maximum of several distances change by
no more than the one that changes most. A whole number that bounds a change still bounds it after rounding down.

**Groups.** If an attribute divides the rows into groups, and each group has a distance of its own (with its own n and
m), a row that is added or removed changes one of them, by at most 2. If in group g a unit has a_g rows that are
replaced by b_g, its distance changes by at most 2·max(a_g, b_g), and 4·Σ max(a_g, b_g)² ≤ 4·(Σ a_g² + Σ b_g²): at most
four times the square of the sensitivity of a marginal in L2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import Exponential, Gaussian, MeasurementRecord, PrivacyUnit
from dpsyn.errors import InternalError
from dpsyn.marginals import Clique
from dpsyn.private.counted_table import Axes, CountedTable, NoisyScores

PER_ROW = 2
"""The largest change of a distance by one row."""

MAX_PUBLIC_ROWS = 2**40
"""The most rows of a public table, about 10¹²: more is a mistake."""

MAX_WEIGHT = 2**20
"""The largest weight of a row in a sum: sums over 10¹² rows then still fit into 64 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class DistanceQuery:
    """The distance of several marginals from those of a public table, as one number, or one for each group of rows.

    Attributes:
        purpose: what the ledger calls it.
        cliques: the marginals.
        targets: the counts of the public table, in whole numbers, one array for each marginal.
        summary: what is released of the distances of several marginals: their mean or the largest.
        grouped: whether the first attribute of every clique divides the rows into groups; it is the same in all.
    """

    purpose: str
    cliques: tuple[Clique, ...]
    targets: tuple[NDArray[np.int64], ...]
    summary: Literal["mean", "max"] = "mean"
    grouped: bool = False

    def sensitivity_squared(self, privacy_unit: PrivacyUnit) -> Fraction:
        """Δ² of the released numbers; see the module's docstring."""
        if self.grouped:
            return PER_ROW**2 * privacy_unit.l2_sensitivity_squared
        return distance_sensitivity(privacy_unit) ** 2

    def summarize(self, distances: Sequence[Sequence[Fraction]]) -> NDArray[np.int64]:
        """The released numbers before noise, rounded down, from the distances of every marginal."""
        columns = zip(*distances, strict=True)
        totals = [max(column) if self.summary == "max" else sum(column) / len(column) for column in columns]
        return np.array([total.__floor__() for total in totals], np.int64)


def distance_sensitivity(privacy_unit: PrivacyUnit) -> Fraction:
    """Δ of a distance, and of the mean or the maximum of several: 2k under both neighboring relations."""
    return Fraction(PER_ROW * privacy_unit.max_rows)


def exact_distances(counts: NDArray[np.int64], target: NDArray[np.int64], *, grouped: bool = False) -> list[Fraction]:
    """Σ|c − n·s/m|, exactly: of the whole marginal, or of each value of its first attribute."""
    groups = len(counts) if grouped else 1
    return [_exact_distance(*pair) for pair in zip(counts.reshape(groups, -1), target.reshape(groups, -1), strict=True)]


def _exact_distance(counts: NDArray[Any], target: NDArray[Any]) -> Fraction:
    rows, public_rows = int(counts.sum()), int(target.sum())
    if public_rows == 0:
        return Fraction(2 * rows)
    if rows * public_rows >= 2**61:  # the sum of differences is at most twice that
        counts, target = counts.astype(object), target.astype(object)
    return Fraction(int(np.abs(public_rows * counts - rows * target).sum()), public_rows)


class DistanceGate(CountedTable):
    """Measures how far private rows are from public tables, and sums of public weights over them."""

    __slots__ = ()

    def measure_distances(self, queries: Sequence[DistanceQuery], rhos: Sequence[Fraction]) -> list[NoisyScores]:
        """Noisy distances of marginals from those of a public table, counted in one pass over the rows.

        Privacy: a unit of k rows changes a mean or a maximum of distances by at most 2k, under both neighboring
        relations; distances of groups together by at most twice the L2 sensitivity of a marginal. ``private.distances``
        has the proofs. Cost: ``rhos[i]`` of ρ for the i-th query.
        """
        if any(type(query) is not DistanceQuery for query in queries):
            raise InternalError("the queries must be plain DistanceQuery objects; a subclass could look at distances")
        axes_lists = [self._axes_of_cliques(query.cliques) for query in queries]
        for query, axes_list in zip(queries, axes_lists, strict=True):
            self._check_targets(axes_list, query.targets)
            if query.grouped and len({axes[0] for axes in axes_list}) > 1:
                raise InternalError("the cliques of a query have different attributes of groups")
        unique = list(dict.fromkeys(axes for axes_list in axes_lists for axes in axes_list))

        def count_distances() -> list[NDArray[np.int64]]:
            found: dict[tuple[Axes, int, bool], list[Fraction]] = {}
            for axes, counts in self._count_each(unique):
                for query, axes_list in zip(queries, axes_lists, strict=True):
                    for target in (query.targets[i] for i, other in enumerate(axes_list) if other == axes):
                        key = (axes, id(target), query.grouped)
                        found[key] = found.get(key) or exact_distances(counts, target, grouped=query.grouped)
            return [
                query.summarize(
                    [found[axes, id(t), query.grouped] for axes, t in zip(each, query.targets, strict=True)]
                )
                for query, each in zip(queries, axes_lists, strict=True)
            ]

        costs = [
            Gaussian.for_rho(rho, query.sensitivity_squared(self.privacy_unit))
            for query, rho in zip(queries, rhos, strict=True)
        ]
        question = [self._question_identity(unique), [[q.summary, q.grouped, q.cliques, q.targets] for q in queries]]
        return self._release_numbers([query.purpose for query in queries], costs, question, count_distances, unique)

    def choose_nearest(
        self, cliques: Sequence[Clique], candidates: Sequence[Sequence[NDArray[np.int64]]], epsilon: Fraction
    ) -> int:
        """Choose one of several public tables, and return its position: the nearer its marginals, the more likely.

        Privacy: the exponential mechanism, P(i) ∝ e^(−dᵢ/t), where dᵢ is the mean distance of the marginals from those
        of table i, rounded down. A unit of k rows changes each by at most Δ = 2k, up or down (``private.distances``);
        t = 2Δ/ε. Only the position is released. Cost: pure ``epsilon``, however many tables there are.
        """
        axes_list = self._axes_of_cliques(cliques)
        for targets in candidates:
            self._check_targets(axes_list, targets)

        def count_scores() -> NDArray[np.int64]:
            sums = [Fraction(0)] * len(candidates)
            for position, (_, counts) in enumerate(self._count_each(axes_list)):
                sums = [
                    total + exact_distances(counts, targets[position])[0]
                    for total, targets in zip(sums, candidates, strict=True)
                ]
            return -np.array([(total / len(axes_list)).__floor__() for total in sums], np.int64)

        released = self._release_one(
            MeasurementRecord(
                purpose=f"which of {len(candidates)} tables is nearest",
                cost=Exponential.for_epsilon(epsilon, distance_sensitivity(self.privacy_unit)),
            ),
            [self._question_identity(axes_list), [list(targets) for targets in candidates]],
            count_scores,
            cells=self._sizes(axes_list),
            noisy_values=1,
        )
        return int(released.answer[0])

    def measure_sums(
        self,
        cliques: Sequence[Clique],
        weights: Sequence[NDArray[np.int64]],
        rhos: Sequence[Fraction],
        purposes: Sequence[str],
    ) -> list[NoisyScores]:
        """Noisy sums over all rows of a weight of each row's cell, such as its value: Σ w·counts for each clique.

        Privacy: the weights are public whole numbers of at most |w|, so a row changes its sum by at most |w| and a unit
        by ``score_sensitivity(|w|)`` = Δ of the privacy unit. Cost: ``rhos[i]`` of ρ for the i-th sum.
        """
        axes_list = self._axes_of_cliques(cliques)
        self._check_arrays(axes_list, weights)
        largest = [max(1, int(weight.max()), -int(weight.min())) for weight in weights]
        if max(largest) > MAX_WEIGHT:
            raise InternalError(f"the weight of a row must be at most {MAX_WEIGHT:,}")
        costs = [
            Gaussian.for_rho(rho, self.privacy_unit.score_sensitivity(bound) ** 2)
            for rho, bound in zip(rhos, largest, strict=True)
        ]

        def count_sums() -> list[NDArray[np.int64]]:
            counted = (counts for _, counts in self._count_each(axes_list))
            return [np.array([_weighted_sum(*pair)], np.int64) for pair in zip(counted, weights, strict=True)]

        question = [self._question_identity(axes_list), list(weights)]
        return self._release_numbers(purposes, costs, question, count_sums, axes_list)

    def _check_targets(self, axes_list: Sequence[Axes], targets: Sequence[NDArray[np.int64]]) -> None:
        """Refuse counts of a public table that do not fit their marginals, before anything is charged."""
        self._check_arrays(axes_list, targets)
        if any(target.min() < 0 or target.sum(dtype=np.float64) > MAX_PUBLIC_ROWS for target in targets):
            raise InternalError(f"public counts must not be negative, and add up to at most {MAX_PUBLIC_ROWS:,}")

    def _check_arrays(self, axes_list: Sequence[Axes], arrays: Sequence[NDArray[np.int64]]) -> None:
        """Refuse public arrays that do not have a whole number for each cell of their marginals.

        Privacy: subclasses are refused, because their methods would see the exact counts.
        """
        self._check_axes(axes_list, len(arrays))
        for axes, array in zip(axes_list, arrays, strict=True):
            if type(array) is not np.ndarray:
                raise InternalError("public numbers must be plain arrays; a subclass could look at counts")
            if array.shape != self._shape(axes) or array.dtype != np.int64:
                raise InternalError("public numbers have another shape or type than their marginal")


def _weighted_sum(counts: NDArray[np.int64], weights: NDArray[np.int64]) -> int:
    """Σ w·counts, exactly."""
    return int((counts.astype(object) * weights).sum())
