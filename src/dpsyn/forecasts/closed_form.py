"""The expected errors of the default recipe within a second: its own rules, applied to a small simulated table.

A recipe decides by predicted errors; this module predicts with the same formulas, and leaves out what takes time: the
noise of a release, the model, and the rows.

1. A table of moderate dependence is simulated, with at most 1 000 rows and 16 columns. It has marginals of one and two
   attributes, and the distance D of each pair from its shuffled columns.
2. One-way marginals get a part s of ρ. The noise of each is σ = Δ·√(d/2sρ) for d columns. What it leaves after negative
   counts are removed is simulated on the marginal (``selection.PredictedErrors``): e. Numbers are measured over
   ranges; inside of these their values are as in another sample, so the sampling error is added.
3. Pairs are selected with the rest by the rule of recipe ``dpsyn`` (``selection.select_marginals``): measured is what
   is worth its noise. A pair that is measured is off by its predicted noise. Another one is off by √(D² + e₁² + e₂²).
4. The part s with the smallest mean error wins, as in the recipe.

``bench/forecast.py`` compares it with simulated releases, and both with real tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import Budget, Gaussian, PartitionSelection, default_delta, exact_fraction, split_exactly
from dpsyn.encoding import contingency_table, equal_mass_levels
from dpsyn.forecasts.results import ExpectedErrors
from dpsyn.forecasts.simulated_table import (
    DEPENDENCES,
    SimulatedTable,
    reduce_schema,
    require_rows,
    scale_distance,
)
from dpsyn.plan.prediction import declared_unit
from dpsyn.schema import Schema
from dpsyn.selection import PredictedErrors, select_marginals
from dpsyn.simulation import simulate

MAX_ROWS, MAX_ATTRIBUTES = 1_000, 16
"""The size of the simulated table, whose 120 pairs take a few tenths of a second."""

LEVEL_SIZES = (3, 6, 12, 24)
"""The largest numbers of codes of an attribute in a pair: the recipe merges values as noise demands."""

ONE_WAY_SHARES = (0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
"""The parts of ρ for one-way marginals that are compared."""

INITIAL_SHARE, INITIAL_SHARE_WITH_NUMBERS = 0.05, 0.1
"""The part of ρ with which recipe ``dpsyn`` begins; an open attribute spends half of its share of that on discovering
values. A test compares the thresholds that follow with those of a release."""

MAX_ONE_WAY_SHARE_WITH_TARGET, TARGET_WEIGHT = 0.35, 4.0
"""What recipe ``dpsyn`` does for a target: the largest part of ρ for one-way marginals, and how much errors in pairs
with it count. A test compares them."""

MAX_PAIR_CELLS = 10**7
"""The largest number of cells of all selected pairs together."""

Counts = NDArray[np.float64]


def expect_errors(
    schema: Schema,
    epsilon: float,
    *,
    rows: int | None = None,
    delta: float | None = None,
    pairs: bool = True,
    target: str | None = None,
    weights: Mapping[str, float] = MappingProxyType({}),
) -> ExpectedErrors:
    """The errors that recipe ``dpsyn`` is expected to have at moderate dependence; see the module's docstring.

    ``pairs`` is false for a recipe that measures none, as those are that keep δ = 0. ``target`` and ``weights`` are
    those of the recipe: they decide which pairs are measured, and how well.
    """
    rows = require_rows(schema, rows)
    unit, attributes = declared_unit(schema), len(schema.modeled_attributes)
    if delta == 0:  # Laplace noise of every one-way marginal, Δ₁·d·√2/ε, as Gaussian noise of the same deviation
        rho = (epsilon / unit.l1_sensitivity) ** 2 * float(unit.l2_sensitivity_squared) / (4 * attributes)
    else:
        rho = float(_plan_budget(schema, epsilon, default_delta(rows) if delta is None else delta).rho)
    some = reduce_schema(schema, frozenset([*weights, *filter(None, [target])]), MAX_ATTRIBUTES)
    simulation = simulate(some, min(rows, MAX_ROWS), 0, dependence=DEPENDENCES["moderate"])
    table = SimulatedTable.of(simulation.schema, simulation.table())
    return _Prediction(
        table=table,
        rows=rows,
        rho=rho,
        sensitivity=math.sqrt(unit.l2_sensitivity_squared),
        attribute_count=attributes,
        target=target,
        weights=weights if target is None else {target: TARGET_WEIGHT, **weights},
    ).best_errors(_one_way_shares(target) if pairs and len(table.names) > 1 else (1.0,))


def expect_thresholds(schema: Schema, epsilon: float, *, rows: int, delta: float | None = None) -> dict[str, int]:
    """The number of rows that a text of each open attribute needs to be listed by recipe ``dpsyn``."""
    opens = [attribute.name for attribute in schema.open_attributes]
    if not opens:
        return {}
    budget, unit = _plan_budget(schema, epsilon, default_delta(rows) if delta is None else delta), declared_unit(schema)
    modeled = schema.modeled_attributes
    finer = any(attribute.coded and attribute.cells > attribute.size for attribute in modeled)
    share = exact_fraction(INITIAL_SHARE_WITH_NUMBERS if finer else INITIAL_SHARE)
    noise = Gaussian.for_rho(budget.rho * share / (2 * len(modeled)), unit.l2_sensitivity_squared)
    deltas = split_exactly(budget.threshold_delta, [1] * len(opens))
    return {
        name: PartitionSelection.for_delta(part, noise, unit.max_rows).threshold
        for name, part in zip(opens, deltas, strict=True)
    }


def _one_way_shares(target: str | None) -> Sequence[float]:
    return [share for share in ONE_WAY_SHARES if target is None or share <= MAX_ONE_WAY_SHARE_WITH_TARGET]


def _plan_budget(schema: Schema, epsilon: float, delta: float) -> Budget:
    return Budget.for_guarantee(epsilon, delta, thresholds=bool(schema.open_attributes))


@dataclass(frozen=True, eq=False, kw_only=True)
class _Prediction:
    """The errors of a budget on a simulated table.

    Attributes:
        table: the simulated table, with some of the attributes.
        rows: the number of rows that it stands for.
        rho: the budget.
        sensitivity: the L2 sensitivity of a marginal.
        attribute_count: the number of all attributes.
        target: the attribute that others predict, if there is one.
        weights: how much errors in pairs with an attribute count; 1 for those that are not listed.
    """

    table: SimulatedTable
    rows: int
    rho: float
    sensitivity: float
    attribute_count: int
    target: str | None
    weights: Mapping[str, float]

    @property
    def _factor(self) -> float:
        return self.rows / self.table.rows

    def best_errors(self, shares: Sequence[float]) -> ExpectedErrors:
        """The errors with the best part of ρ for one-way marginals."""
        sampling = float(self.table.sampling_distances.mean())
        shuffled = scale_distance(self.table.shuffled_distances, self.table.sampling_distances, self._factor)
        one_way = {share: self._one_way_errors(share) for share in shares}
        candidates = self._candidates() if len(shares) > 1 else None
        two_way = {share: self._two_way_errors(candidates, share, one_way[share], shuffled) for share in shares}
        best = min(shares, key=lambda share: float((self._importance * two_way[share]).mean()))
        with_target = [self.target in (self.table.names[a], self.table.names[b]) for a, b in self.table.pairs]
        return ExpectedErrors(
            one_way=float(one_way[best].mean()),
            two_way=float(two_way[best].mean()),
            shuffled=float(shuffled.mean()),
            sampling=sampling / math.sqrt(self._factor),
            with_target=float(two_way[best][with_target].mean()) if any(with_target) else None,
        )

    @property
    def _importance(self) -> Counts:
        """The weight of an error in each pair: the product of the weights of its attributes."""
        weights = [self.weights.get(name, 1.0) for name in self.table.names]
        return np.array([weights[a] * weights[b] for a, b in self.table.pairs] or [1.0])

    def _one_way_errors(self, share: float) -> Counts:
        """The total variation distance of each one-way marginal: noise on every cell of its domain, projected."""
        std = self.sensitivity * math.sqrt(self.attribute_count / (2 * self.rho * share))
        tables = [counts * self._factor for counts in self.table.one_way_counts()]
        predicted = PredictedErrors.simulate(tables, np.array([std]))
        sampling = self.table.one_way_distances(self.table.bootstrap_sample) / math.sqrt(self._factor)
        errors: Counts = np.hypot(predicted.errors[:, 0] / (2 * self.rows), np.where(self._is_number, sampling, 0.0))
        return np.minimum(errors, 1.0)

    @property
    def _is_number(self) -> NDArray[np.bool_]:
        return np.array([ordered for _, ordered in self.table.grid_counts()], np.bool_)

    def _candidates(self) -> _Candidates:
        """Every pair at every level, with the part of its dependence that the level does not show."""
        levels = [[_merge_codes(*attribute, size) for size in LEVEL_SIZES] for attribute in self.table.grid_counts()]
        tables, lost, numbers, distances = [], [], [], []
        for number, (a, b) in enumerate(self.table.pairs):
            whole = self._pair_counts(a, b)
            distance = _dependence(whole)
            distances.append(distance)
            for one, other in zip(levels[a], levels[b], strict=True):
                merged = np.add.reduceat(
                    np.add.reduceat(whole[one.order], one.starts, 0)[:, other.order], other.starts, 1
                )
                tables.append(merged)
                lost.append(max(distance - _dependence(merged), 0.0))
                numbers.append(number)
        return _Candidates(tables, np.array(lost), np.array(numbers), np.array(distances))

    def _pair_counts(self, a: int, b: int) -> Counts:
        columns = [self.table.columns[a], self.table.columns[b]]
        shape = [int(column.max()) + 1 for column in columns]
        return contingency_table(columns, shape).astype(np.float64) * self._factor

    def _two_way_errors(
        self, candidates: _Candidates | None, share: float, one_way: Counts, shuffled: Counts
    ) -> Counts:
        """The total variation distance of each pair."""
        background = np.array([math.hypot(one_way[a], one_way[b]) for a, b in self.table.pairs] or [0.0])
        errors: Counts = np.hypot(shuffled, background)
        if candidates is None or share == 1:
            return np.minimum(errors, 1.0)
        part = len(self.table.names) / self.attribute_count
        shrinkage = shuffled / np.maximum(self.table.shuffled_distances, 1e-12)
        choice = select_marginals(
            (candidates.distances * shrinkage)[candidates.numbers],
            candidates.tables,
            self.rho * (1 - share) * part,
            sensitivity=self.sensitivity,
            max_total_cells=MAX_PAIR_CELLS,
            importance=self._importance[candidates.numbers],
            lost=candidates.lost,
            background=2 * self.rows * background[candidates.numbers],
            alternatives=candidates.numbers,
        )
        chosen = candidates.numbers[choice.positions]
        numbers = np.array([self._is_number[a] or self._is_number[b] for a, b in self.table.pairs])
        inside = np.where(numbers, self.table.sampling_distances / math.sqrt(self._factor), 0.0)[chosen]
        left = np.hypot((choice.errors + candidates.lost[choice.positions]) / (2 * self.rows), inside)
        errors[chosen] = np.minimum(np.hypot(left, background[chosen]), errors[chosen])
        return np.minimum(errors, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """Pairs at levels: their counts, what each level loses, the number of the pair; and the distance of each pair."""

    tables: Sequence[Counts]
    lost: Counts
    numbers: NDArray[np.int64]
    distances: Counts


@dataclass(frozen=True, slots=True, eq=False)
class _Merging:
    """Codes in the order of their groups, and where each group starts."""

    order: NDArray[np.int64]
    starts: NDArray[np.int64]


def _merge_codes(counts: Counts, ordered: bool, max_groups: int) -> _Merging:
    """Merge codes into few groups: ranges of about equal mass, or the frequent values and one group of all others."""
    if ordered:
        groups = equal_mass_levels(counts, max_groups).codes.group_of
    else:
        rank = np.argsort(np.argsort(-counts, kind="stable"))
        groups = np.minimum(rank, max_groups - 1)
    order = np.argsort(groups, kind="stable")
    return _Merging(order, np.flatnonzero(np.diff(groups[order], prepend=-1)))


def _dependence(counts: Counts) -> float:
    """‖counts − product of the one-way marginals‖₁."""
    product = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(counts.sum(), 1e-12)
    return float(np.abs(counts - product).sum())
