"""A private table behind the gate: noisy marginals, scores, and private discovery of values and ranges."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import Exponential, Gaussian, Laplace, MeasurementRecord, PartitionSelection, marginal_cost
from dpsyn.encoding import Codec, RecodedColumn, Recoding
from dpsyn.encoding.column_types import ColumnTypes
from dpsyn.errors import InternalError, SchemaError
from dpsyn.marginals import Clique, Marginal
from dpsyn.private import approximate_bounds
from dpsyn.private.counted_table import Axes, NoisyScores, split_by_cells
from dpsyn.private.distances import DistanceGate
from dpsyn.private.gate import (
    Released,
    ReleasedMarginals,
    ReleasedScores,
    without_leaking_errors,
)
from dpsyn.schema import MAX_JOINT_VALUES, Integer, Open, Ranged, Real, Schema

Score = Callable[[int, NDArray[np.int64]], int]
"""A score of a marginal, in whole numbers, from its position and its exact counts."""

MAX_PREDICTION = 2**40
"""The largest count that a prediction may hold, about 10¹²: larger ones are mistakes, and their sums could overflow."""


class PrivateTable(DistanceGate):
    """A private table behind the gate. It is answered with noise only, and every answer is charged.

    Make it with ``open_private`` and use it in a ``with`` block, see ``PrivacyGate``.

    Attributes:
        schema: what is public about the table.
        recoding: the attributes that are measured now, and how they follow from the schema; public.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"PrivateTable({', '.join(self.recoding.names)})"

    def public_row_count(self) -> int | None:
        """The number of rows if it is public, otherwise None; None also before any attribute has values.

        Privacy: if one row is replaced by another, all neighbors have the same number of rows. This is not so if rows
        are added or removed, nor if the rows of a privacy unit are replaced by another number of rows. Cost: none.
        """
        fine = Recoding.fine(Codec(self.schema))
        if not self.privacy_unit.row_count_is_public or not fine.names:
            return None
        return without_leaking_errors(lambda: int(self._engine.count([(0,)], fine)[0].sum()))

    @property
    def column_types(self) -> ColumnTypes:
        """The declared types of the table's columns; public, see ``encoding.column_types``."""
        return self._session.column_types

    @property
    def released_marginals(self) -> tuple[ReleasedMarginals, ...]:
        """The marginals that were released so far, from this table and all other views of the same rows."""
        return tuple(self._session.marginals)

    @property
    def released_scores(self) -> tuple[ReleasedScores, ...]:
        """The scores that were released so far, from this table and all other views of the same rows."""
        return tuple(self._session.scores)

    # ── measurements ─────────────────────────────────────────────────────────────────────────────────────

    def measure(
        self, cliques: Sequence[Clique], rhos: Sequence[Fraction], *, purpose: str = "marginal"
    ) -> list[Marginal]:
        """Noisy marginals over the current attributes; ``purpose`` names them in the ledger.

        Privacy: each marginal is a histogram of rows, so a unit of k rows changes it by at most the L2 sensitivity of
        the privacy unit (k, or √2·k if units are replaced), and by at most its L1 sensitivity (k, or 2k). Cost:
        ``rhos[i]`` of ρ for the i-th, σ² = Δ²/2ρ; if the budget is pure, they are parts of ε, and b = Δ/ε.
        """
        costs = [marginal_cost(self.budget, rho, self.privacy_unit) for rho in rhos]
        released = self._measure_axes(self._axes_of_cliques(cliques), cliques, costs, purpose)
        return self._require_all([(self.recoding, released)])[0]

    def measure_recodings(self, parts: Sequence[tuple[Recoding, Mapping[Clique, Fraction]]]) -> list[list[Marginal]]:
        """Noisy marginals over the attributes of several recodings of this table, counted in one pass over the rows.

        Privacy: as ``measure``; each part maps the marginals that are measured under its recoding to their ρ.
        """
        columns = tuple(column for recoding, _ in parts for column in recoding.columns)
        table, offset = self.recode(Recoding(columns, parts[0][0].origin)), 0
        axes_list: list[Axes] = []
        for recoding, rhos in parts:
            axes_list += [tuple(offset + recoding.index_of(name) for name in clique) for clique in rhos]
            offset += len(recoding.columns)
        cliques = [clique for _, rhos in parts for clique in rhos]
        costs = [marginal_cost(self.budget, rho, self.privacy_unit) for _, rhos in parts for rho in rhos.values()]
        released = iter(table._measure_axes(axes_list, cliques, costs))
        return self._require_all([(recoding, list(islice(released, len(rhos)))) for recoding, rhos in parts])

    def measure_laplace(self, cliques: Sequence[Clique], epsilons: Sequence[Fraction]) -> list[Marginal]:
        """Marginals with Laplace noise, for the pure-ε steps of the budget.

        Privacy: a unit of k rows changes a histogram of rows by at most the L1 sensitivity of the privacy unit (k, or
        2k if units are replaced). Cost: pure ``epsilons[i]`` for the i-th, b = Δ/ε. A step whose answer was lost stays
        used, so marginals are missing if nothing is left for them.
        """
        costs = [Laplace.for_epsilon(epsilon, self.privacy_unit.l1_sensitivity) for epsilon in epsilons]
        return self._keep(self.recoding, self._measure_axes(self._axes_of_cliques(cliques), cliques, costs))

    def measure_fine_histogram(self, name: str, rho: Fraction) -> Marginal:
        """The noisy one-way marginal of an attribute at its finest resolution: over cells, not bins.

        Privacy: as ``measure``.
        """
        fine = Recoding.fine(Codec(self.schema))
        axis, cost = fine.index_of(name), marginal_cost(self.budget, rho, self.privacy_unit)
        released = self._release_one(
            MeasurementRecord(purpose=f"fine histogram of {name}", cost=cost),
            fine.sizes[axis],
            lambda: self._engine.count([(axis,)], fine)[0],
            cells=[fine.sizes[axis]],
        )
        return self._keep(fine, [_to_marginal((name,), released)])[0]

    def score_predictions(
        self, cliques: Sequence[Clique], predictions: Sequence[NDArray[Any]], rho: Fraction
    ) -> NoisyScores:
        """Noisy distances ‖counts − prediction‖₁, one per clique: how wrong a prediction from released numbers is.

        Privacy: the prediction is rounded to whole numbers, so a row changes each distance by at most 1, a unit by
        ``score_sensitivity(1)`` = Δ of the privacy unit, and all m distances together by √m·Δ in L2. Cost: ``rho`` of ρ
        for all of them.
        """
        axes_list, rounded = self._check_predictions(cliques, predictions)
        purpose = f"distances of {len(cliques)} marginals from predictions"
        question = [self._question_identity(axes_list), rounded]
        cost = self._score_cost(rho, len(cliques), 1)
        score = _distance_from(rounded)
        return self._release_scores("distance from the model", purpose, cost, question, axes_list, score)

    def choose_worst_prediction(
        self, cliques: Sequence[Clique], predictions: Sequence[NDArray[Any]], epsilon: Fraction
    ) -> int:
        """Choose a clique whose prediction is wrong, and return its position: the more wrong, the more likely.

        Privacy: the exponential mechanism, P(i) ∝ e^(dᵢ/t) with dᵢ = ‖countsᵢ − predictionᵢ‖₁. The predictions are
        rounded to whole numbers, so a row changes each distance by at most 1, up or down, and a unit by
        ``score_sensitivity(1)`` = Δ of the privacy unit; t = 2Δ/ε. Only the position is released, no distance. Cost:
        pure ``epsilon``, however many cliques there are.
        """
        axes_list, rounded = self._check_predictions(cliques, predictions)
        cost = Exponential.for_epsilon(epsilon, self.privacy_unit.score_sensitivity(1))
        released = self._release_one(
            MeasurementRecord(purpose=f"which of {len(cliques)} marginals is predicted worst", cost=cost),
            [self._question_identity(axes_list), rounded],
            lambda: self._count_scores(axes_list, _distance_from(rounded)),
            cells=self._sizes(axes_list),
            noisy_values=1,
        )
        return int(released.answer[0])

    def measure_fourier(self, ways: int, amount: Fraction) -> tuple[tuple[Clique, ...], NoisyScores]:
        """The Fourier coefficients of all sets of up to ``ways`` binary attributes: the sets, and the noisy numbers.

        A coefficient is the number of rows with an even number of ones among the attributes of a set, minus that of the
        others; that of the empty set is the number of rows (Barak et al. 2007).

        Privacy: a row adds 1 to each coefficient or subtracts it, so a unit changes each by at most
        ``score_sensitivity(1)`` = Δ of the privacy unit, and all m together by √m·Δ in L2 and m·Δ in L1. Cost:
        ``amount`` of ρ for all of them; if the budget is pure, of ε.
        """
        names = self.recoding.names
        if not 1 <= ways <= len(names) or set(self.recoding.sizes) != {2}:
            raise SchemaError(f"Fourier coefficients of {ways} of {len(names)} attributes need binary attributes")
        subsets = [axes for length in range(ways + 1) for axes in combinations(range(len(names)), length)]
        largest = [axes for axes in subsets if len(axes) == ways]
        delta = self.privacy_unit.score_sensitivity(1)
        cost = (
            Laplace.for_epsilon(amount, len(subsets) * delta)
            if self.budget.is_pure
            else Gaussian.for_rho(amount, len(subsets) * delta**2)
        )

        def count_coefficients() -> NDArray[np.int64]:
            found: dict[Axes, int] = {}
            for part in split_by_cells(largest, self._sizes(largest)):
                for axes, counts in zip(part, self._engine.count(part, self.recoding), strict=True):
                    transformed = _transform_parities(counts)
                    found |= {
                        tuple(axes[i] for i in np.flatnonzero(position)): int(transformed[position])
                        for position in np.ndindex(transformed.shape)
                    }
            return np.array([found[axes] for axes in subsets], np.int64)

        released = self._release_one(
            MeasurementRecord(purpose=f"{len(subsets)} Fourier coefficients", cost=cost),
            [ways, self._question_identity([tuple(range(len(names)))])],
            count_coefficients,
            cells=self._sizes(largest),
            noisy_values=len(subsets),
        )
        cliques = tuple(tuple(names[axis] for axis in axes) for axes in subsets)
        charged: Gaussian | Laplace = released.cost
        return cliques, NoisyScores(released.answer / np.float64(2**charged.lattice), charged.std)

    def score_indif(self, pairs: Sequence[Clique], rho: Fraction) -> NoisyScores:
        """Noisy InDif scores of pairs, ‖M_ab − M_a·M_b/n‖₁: how far two attributes are from being independent.

        Privacy: computed in integers as ⌊Σ|n·M_ab − M_a·M_b| / n⌋, 0 for an empty table; a row changes it by at most 4
        (PrivSyn, section 4.1), a unit by ``score_sensitivity(4)`` = Δ of the privacy unit, and all m scores together by
        √m·Δ in L2. Cost: ``rho`` of ρ for all of them.
        """
        if any(len(pair) != 2 for pair in pairs):
            raise SchemaError("InDif measures the dependence of two attributes; each pair must name exactly two")
        axes_list = self._axes_of_cliques(pairs)
        self._check_axes(axes_list, len(pairs))

        def indif(_: int, counts: NDArray[np.int64]) -> int:
            return _exact_indif(counts)

        purpose, question = f"dependence of {len(pairs)} pairs", self._question_identity(axes_list)
        cost = self._score_cost(rho, len(pairs), 4)
        return self._release_scores("dependence", purpose, cost, question, axes_list, indif)

    def discover_values(self, name: str, rho: Fraction, delta: Fraction) -> PrivateTable:
        """The same table with the frequent values of an open attribute; all other values become its ``other``.

        Privacy: this is partition selection. The texts that occur are counted with noise, and listed if their noisy
        count reaches a threshold that the texts of a single unit reach with probability at most ``delta`` (see
        ``accounting.PartitionSelection``). Cost: ``rho`` of ρ and ``delta``. If the values were lost and nothing is
        left to discover them again, all values become ``other``.
        """
        attribute = self.schema[name]
        if not isinstance(attribute, Open):
            raise SchemaError(f"the values of {name!r} are public already; only open attributes are discovered")
        self._engine.require_rereadable(f"the values of {name!r} are discovered in a separate pass over the rows")
        noise = Gaussian.for_rho(rho, self.privacy_unit.l2_sensitivity_squared)
        cost = PartitionSelection.for_delta(delta, noise, self.privacy_unit.max_rows)
        (released,) = self._release(
            [MeasurementRecord(purpose=values_purpose(name), cost=cost)], name, lambda: [self._engine.count_texts(name)]
        )
        values = sorted(released.answer) if released else []
        return self._reopen_under(self.schema.with_discovered_values(attribute.to_categorical(values)))

    def discover_range(self, name: str, rho: Fraction) -> PrivateTable:
        """The same table with the bounds of a numeric attribute narrowed to the powers of two that its values reach.

        Privacy: a noisy histogram over fixed buckets [±2^j, ±2^(j+1)); as ``measure``. The bounds are read off it: the
        outermost buckets above the level that noise alone would reach in one of a thousand histograms. Cost: ``rho``
        of ρ.
        """
        attribute = self.schema[name]
        if not isinstance(attribute, Integer | Real):
            raise SchemaError(f"{name!r} is {attribute.kind}; only the range of integers and reals can be discovered")
        if name in {part for rule in self.schema.rules for part in rule.mentions()}:
            raise SchemaError(f"a rule uses {name!r}, so its bounds must stay; give narrower ones in the schema")
        self._engine.require_rereadable(f"the range of {name!r} is discovered in a separate pass over the rows")
        cost = Gaussian.for_rho(rho, self.privacy_unit.l2_sensitivity_squared)
        column, buckets = approximate_bounds.MagnitudeColumn(attribute), approximate_bounds.MAGNITUDE_BUCKETS
        released = self._release_one(
            MeasurementRecord(purpose=f"range of {name}", cost=cost),
            name,
            lambda: self._engine.count_column(name, column, buckets),
            cells=[buckets],
        )
        narrowed = approximate_bounds.narrow_bounds(attribute, _to_marginal((name,), released))
        return self._reopen_under(self.schema.replace_attribute(narrowed))

    @property
    def rereadable(self) -> bool:
        """Whether the rows can be read again, as ``refine_cells`` does: a public fact about the source."""
        return self._engine.rereadable

    def refine_cells(self, cuts: Mapping[str, Sequence[int]]) -> PrivateTable:
        """The same table with further cells of numbers and dates, which begin at the given steps.

        Privacy: the cuts are made from public facts or released numbers, like a recoding. Each entry is still encoded
        by itself, so sensitivities do not change; the bounds and the meaning of every value stay. Cost: none. The rows
        are read again.
        """
        schema = self.schema
        for name, steps in cuts.items():
            attribute = schema[name]
            if not isinstance(attribute, Ranged):
                raise SchemaError(f"{name!r} is {attribute.kind}; only numbers and dates can have further cells")
            schema = schema.replace_attribute(attribute.with_cuts(steps))
        if schema == self.schema:
            return self
        self._engine.require_rereadable("cells where many rows are need another pass over the rows")
        return self._reopen_under(schema)

    def recode(self, recoding: Recoding) -> PrivateTable:
        """The same table with other attributes to measure, made from public facts or released numbers.

        Privacy: a recoding maps each row by itself, so sensitivities do not change. Subclasses are refused, because
        their methods would see the rows. Cost: none.
        """
        plain = type(recoding) is Recoding and all(
            type(column) is RecodedColumn and all(type(table) is np.ndarray for table in column.tables)
            for column in recoding.columns
        )
        if not plain:
            raise InternalError("the recoding must be a Recoding of plain columns; a subclass could look at rows")
        if recoding.origin != self.recoding.origin:
            raise InternalError("the recoding was made for another schema than the table has now")
        return PrivateTable(self._session, self._engine, self.schema, recoding)

    # ── helpers ──────────────────────────────────────────────────────────────────────────────────────────

    def _measure_axes(
        self,
        axes_list: Sequence[Axes],
        cliques: Sequence[Clique],
        costs: Sequence[Gaussian | Laplace],
        purpose: str = "marginal",
    ) -> list[Marginal | None]:
        """Noisy marginals, counted in one pass over the rows; None for those that nothing is left for."""
        self._check_axes(axes_list, len(costs))
        sizes = self._sizes(axes_list)
        measurements = [  # the size distinguishes finer from coarser bins of the same attributes
            MeasurementRecord(purpose=f"{purpose} of {', '.join(clique)} ({size:,} cells)", cost=cost)
            for clique, size, cost in zip(cliques, sizes, costs, strict=True)
        ]
        released = self._release(
            measurements,
            self._question_identity(axes_list),
            lambda: self._engine.count(axes_list, self.recoding),
            cells=sizes,
        )
        return [_to_marginal(clique, each) if each else None for clique, each in zip(cliques, released, strict=True)]

    def _keep(self, recoding: Recoding, released: Sequence[Marginal | None]) -> list[Marginal]:
        """The marginals that were released; the session remembers them, for a run that ends with what is stored."""
        marginals = [marginal for marginal in released if marginal]
        if marginals:
            self._session.marginals.append(ReleasedMarginals(self.schema, recoding, tuple(marginals)))
        return marginals

    def _require_all(self, parts: Sequence[tuple[Recoding, Sequence[Marginal | None]]]) -> list[list[Marginal]]:
        """The marginals of each part; a NothingLeftError if nothing was left for some of them."""
        kept = [self._keep(recoding, released) for recoding, released in parts]
        if any(marginal is None for _, released in parts for marginal in released):
            raise self._nothing_left_error()
        return kept

    def _release_scores(
        self,
        kind: str,
        purpose: str,
        cost: Gaussian,
        question: object,
        axes_list: Sequence[Axes],
        score: Score,
    ) -> NoisyScores:
        """Noisy scores of marginals, charged together; ``score`` gets the position of a marginal and its counts."""
        released = self._release_one(
            MeasurementRecord(purpose=purpose, cost=cost),
            question,
            lambda: self._count_scores(axes_list, score),
            cells=self._sizes(axes_list),
            noisy_values=len(axes_list),
        )
        charged: Gaussian = released.cost
        noisy = NoisyScores(released.answer / np.float64(2**charged.lattice), charged.std)
        cliques = tuple(tuple(self._attribute_name(axis) for axis in axes) for axes in axes_list)
        self._session.scores.append(ReleasedScores(kind, cliques, noisy.values, noisy.std))
        return noisy

    def _count_scores(self, axes_list: Sequence[Axes], score: Score) -> NDArray[np.int64]:
        """The exact scores of marginals; it runs inside the gate."""
        counted = enumerate(counts for _, counts in self._count_each(axes_list))
        return np.array([score(position, counts) for position, counts in counted], np.int64)

    def _attribute_name(self, axis: int) -> str:
        """The name of an attribute, whatever a recipe calls the level at which it is scored."""
        column = self.recoding.columns[axis]
        return self.recoding.origin[column.sources[0]][0] if len(column.sources) == 1 else column.name

    def _check_predictions(
        self, cliques: Sequence[Clique], predictions: Sequence[NDArray[Any]]
    ) -> tuple[list[Axes], list[NDArray[np.int64]]]:
        """The axes of cliques, and their predictions in whole numbers."""
        axes_list = self._axes_of_cliques(cliques)
        self._check_axes(axes_list, len(predictions))
        return axes_list, [self._round_prediction(*pair) for pair in zip(predictions, axes_list, strict=True)]

    def _round_prediction(self, prediction: NDArray[Any], axes: Axes) -> NDArray[np.int64]:
        """A prediction in whole numbers; refused, before anything is charged, if no table could have such counts."""
        if prediction.shape != self._shape(axes):
            raise InternalError("a prediction has another shape than its marginal")
        if not np.isfinite(prediction).all() or np.abs(prediction).max() > MAX_PREDICTION:
            raise InternalError(f"a prediction must be finite, and at most {MAX_PREDICTION:,}")
        return np.asarray(np.rint(prediction), np.int64)

    def _score_cost(self, rho: Fraction, scores: int, per_row: int) -> Gaussian:
        """Noise for several scores at once: Δ² is that of one, times their number."""
        return Gaussian.for_rho(rho, scores * self.privacy_unit.score_sensitivity(per_row) ** 2)

    def _reopen_under(self, schema: Schema) -> PrivateTable:
        """The same rows, read again under a schema that released numbers have refined."""
        return PrivateTable(self._session, self._engine.with_schema(schema), schema, initial_recoding(schema))


def values_purpose(name: str) -> str:
    """The purpose of discovering the values of an open attribute, as it is recorded."""
    return f"values of {name}"


def initial_recoding(schema: Schema) -> Recoding:
    """What is measured unless a recipe changes it: the bins of every attribute with a public domain.

    Attributes that the schema measures together become one, over all combinations of their bins, unless discovered
    values made that too large.
    """
    recoding = Recoding.coarse(Codec(schema))
    for group in schema.measure_together:
        parts = [recoding.columns[recoding.names.index(n)] for n in group.attributes if n in recoding.names]
        if len(parts) == len(group.attributes) and math.prod(part.size for part in parts) <= MAX_JOINT_VALUES:
            recoding = recoding.join(group.name, group.attributes)
    return recoding


def _to_marginal(clique: Clique, released: Released[Gaussian | Laplace]) -> Marginal:
    """A released marginal, with the standard deviation of its noise."""
    return Marginal(clique, released.answer, released.cost.lattice, released.cost.std)


def _distance_from(predictions: Sequence[NDArray[np.int64]]) -> Score:
    """‖counts − prediction‖₁."""

    def distance(position: int, counts: NDArray[np.int64]) -> int:
        return int(np.abs(counts - predictions[position]).sum())

    return distance


def _transform_parities(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The coefficients of all subsets of the axes of a binary table; index 1 means that an axis is in the subset."""
    for axis in range(counts.ndim):
        zeros, ones = np.moveaxis(counts, axis, 0)
        counts = np.stack([zeros + ones, zeros - ones], axis)
    return counts


def _exact_indif(counts: NDArray[np.int64]) -> int:
    """⌊Σ|n·M_ab − M_a·M_b| / n⌋, exactly; 0 for an empty table."""
    rows = int(counts.sum())
    if rows == 0:
        return 0
    wide = counts if rows < 2**31 else counts.astype(object)  # the sum is at most 2n², which must not overflow
    return int(np.abs(wide * rows - np.multiply.outer(wide.sum(axis=1), wide.sum(axis=0))).sum()) // rows
