"""A private table behind the gate, and the questions it answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import Gaussian, Laplace, MeasurementRecord, PartitionSelection, Run
from dpsyn.encoding import Codec, Recoding
from dpsyn.engines import Engine
from dpsyn.errors import InternalError, SchemaError
from dpsyn.marginals import Clique, Marginal
from dpsyn.private import approximate_bounds
from dpsyn.private.gate import PrivacyGate, ReleaseLimits, without_leaking_errors
from dpsyn.private.journal import Journal
from dpsyn.private.mechanisms import Mechanisms
from dpsyn.schema import MAX_JOINT_VALUES, Integer, Open, Real, Schema

MAX_PREDICTION = 2**40
"""Counts beyond a million millions are predicted by mistake; sums of them could overflow."""

MAX_COUNTED_CELLS = 30_000_000
"""Cells of marginals that are scored at a time: a quarter of a gigabyte."""


class PrivateTable(PrivacyGate):
    """A private table behind the gate; it answers with noise, and only for a price.

    Make it with ``open_private`` and use it in a ``with`` block, see ``Doorway``. Its schema and recoding are public.
    """

    __slots__ = ("_declared", "_engine", "recoding", "schema")

    def __init__(
        self, *, schema: Schema, recoding: Recoding, engine: Engine, run: Run, journal: Journal | None,
        mechanisms: Mechanisms, limits: ReleaseLimits, counter: list[int], declared_public: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        super().__init__(run=run, journal=journal, mechanisms=mechanisms, limits=limits, counter=counter)
        self.schema = schema
        self.recoding = recoding
        self._engine = engine
        self._declared = declared_public

    def public_row_count(self) -> int | None:
        """The number of rows if it is public, otherwise None.

        Privacy: where one row is replaced by another, all neighbors have the same number of rows. Not so where rows
        come and go, nor where a person's rows are replaced by another number of rows. Cost: none.
        """
        if not self.privacy_unit.row_count_is_public:
            return None
        fine = Recoding.fine(Codec(self.schema))
        return without_leaking_errors(lambda: int(self._engine.count([(0,)], fine)[0].sum()))

    def _declared_public(self) -> tuple[str, ...]:
        return (*self.schema.declared_public(), *self._declared)

    def __repr__(self) -> str:
        return f"PrivateTable({', '.join(self.recoding.names)})"

    # ── what it answers, for a price ─────────────────────────────────────────────────────────────────────

    def measure(
        self, cliques: Sequence[Clique], rhos: Sequence[Fraction], *, purpose: str = "marginal"
    ) -> list[Marginal]:
        """Noisy marginals over the current attributes; the ledger is told what they are for.

        Privacy: each marginal is a histogram of rows, so a unit of k rows changes it by at most the protection's L2
        (k, or √2·k where units are replaced). Cost: ``shares[i]`` of ρ for the i-th, σ² = Δ²/2ρ.
        """
        spends = [Gaussian.for_rho(share, self._run.privacy_unit.l2_sensitivity_squared) for share in rhos]
        return self._measure_cliques(cliques, spends, purpose)

    def measure_recodings(self, parts: Sequence[tuple[Recoding, Mapping[Clique, Fraction]]]) -> list[list[Marginal]]:
        """Noisy marginals over the attributes of several recodings of this table, counted in one reading.

        Privacy: as ``measure``; each part has the share of every marginal that is measured under its recoding.
        """
        columns = tuple(column for recoding, _ in parts for column in recoding.columns)
        table, first = self.recode(Recoding(columns, parts[0][0].origin)), 0
        places: list[tuple[int, ...]] = []
        for recoding, shares in parts:
            places += [tuple(first + recoding.index_of(name) for name in clique) for clique in shares]
            first += len(recoding.columns)
        cliques = [clique for _, shares in parts for clique in shares]
        l2_squared = self._run.privacy_unit.l2_sensitivity_squared
        spends = [Gaussian.for_rho(share, l2_squared) for _, shares in parts for share in shares.values()]
        found = iter(table._measure_axes(places, cliques, spends))
        return [list(islice(found, len(shares))) for _, shares in parts]

    def measure_laplace(self, cliques: Sequence[Clique], epsilons: Sequence[Fraction]) -> list[Marginal]:
        """Noisy marginals with Laplace noise, for the pure steps that the budget planned.

        Privacy: a unit of k rows changes a histogram of rows by at most the protection's L1 (k, or 2k where units are
        replaced). Cost: pure ``epsilons[i]`` for the i-th, b = Δ/ε.
        """
        return self._measure_cliques(
            cliques, [Laplace.for_epsilon(epsilon, self._run.privacy_unit.l1_sensitivity) for epsilon in epsilons]
        )

    def measure_fine_histogram(self, name: str, rho: Fraction) -> Marginal:
        """The noisy 1-way marginal of an attribute at its finest: over cells, not bins.

        Privacy: as ``measure``.
        """
        fine = Recoding.fine(Codec(self.schema))
        place = fine.index_of(name)
        self._check_limits([fine.sizes[place]])
        spend = Gaussian.for_rho(rho, self._run.privacy_unit.l2_sensitivity_squared)
        purpose = f"fine histogram of {name}"
        (raw,) = self._release_with_noise(
            [purpose], [spend], fine.sizes[place], lambda: self._engine.count([(place,)], fine)
        )
        return _to_marginal((name,), raw, spend)

    def score_predictions(
        self, cliques: Sequence[Clique], predictions: Sequence[NDArray[Any]], rho: Fraction
    ) -> NDArray[np.float64]:
        """Noisy distances ‖counts − prediction‖₁, one per clique: how wrong a prediction from released numbers is.

        Privacy: with the prediction rounded to whole numbers a row changes each distance by at most 1, a unit by the
        protection's score(1) = Δ; all m distances together by √m·Δ in L2. Cost: ``rho`` of ρ for all of them.
        """
        places = self._require_axes(cliques, len(predictions), noisy_values=len(cliques))
        rounded = [self._round_prediction(*pair) for pair in zip(predictions, places, strict=True)]
        spend = self._score_cost(rho, len(cliques), per_row=1)

        def distances() -> list[int]:
            guesses = iter(rounded)
            return self._score_each(places, lambda counts: int(np.abs(counts - next(guesses)).sum()))

        purpose = f"distances of {len(cliques)} marginals from predictions"
        return self._release_scores(purpose, spend, [self._question_identity(places), rounded], distances)

    def score_indif(self, pairs: Sequence[Clique], rho: Fraction) -> NDArray[np.float64]:
        """Noisy InDif of pairs: ‖M_ab − M_a·M_b/n‖₁, how far two attributes are from being independent.

        Privacy: computed in integers as ⌊Σ|n·M_ab − M_a·M_b| / n⌋, 0 for an empty table; a row changes it by at most 4
        (PrivSyn, section 4.1), a unit by the protection's score(4) = Δ; all m together by √m·Δ in L2. Cost: ``rho``
        of ρ for all of them.
        """
        if any(len(pair) != 2 for pair in pairs):
            raise SchemaError("dependence is of two attributes; each pair must name exactly two")
        places = self._require_axes(pairs, len(pairs), noisy_values=len(pairs))
        spend = self._score_cost(rho, len(pairs), per_row=4)

        def indifs() -> list[int]:
            return self._score_each(places, _exact_indif)

        return self._release_scores(f"dependence of {len(pairs)} pairs", spend, self._question_identity(places), indifs)

    def discover_values(self, name: str, rho: Fraction, delta: Fraction) -> PrivateTable:
        """The same table with the frequent values of an open attribute bought; all others become its ``other``.

        Privacy: noisy counts of the texts that occur, listed if they reach a threshold that a single unit's texts
        reach with probability ``delta`` at most (rule of thresholds in ``accounting.Threshold``). Cost: ``rho`` of ρ
        and ``delta``.
        """
        attribute = self.schema[name]
        if not isinstance(attribute, Open):
            raise SchemaError(f"the values of {name!r} are public already; only open attributes are discovered")
        self._engine.require_rereadable(f"the values of {name!r} are bought in a reading of their own")
        protection = self._run.privacy_unit
        noise = Gaussian.for_rho(rho, protection.l2_sensitivity_squared)
        spend = PartitionSelection.for_delta(delta, noise, protection.max_rows)
        draws = [MeasurementRecord(purpose=f"values of {name}", cost=spend)]

        def select_values(_: int) -> list[tuple[str, ...]]:
            return [tuple(self._mechanisms.select_partitions(self._engine.count_texts(name), spend))]

        (values,) = self._release(draws, name, select_values)
        return self._reopen_under(self.schema.with_discovered_values(attribute.to_categorical(sorted(values))))

    def discover_range(self, name: str, rho: Fraction) -> PrivateTable:
        """The same table with the bounds of a number narrowed to the powers of two that its values reach.

        Privacy: a noisy histogram over fixed buckets [±2^j, ±2^(j+1)); as ``measure``. The bounds are read off it: the
        outermost buckets that exceed what noise alone would reach in a thousand histograms. Cost: ``rho`` of ρ.
        """
        attribute = self.schema[name]
        if not isinstance(attribute, Integer | Real):
            raise SchemaError(f"{name!r} is {attribute.kind}; only the range of integers and reals can be bought")
        if name in {part for rule in self.schema.rules for part in rule.mentions()}:
            raise SchemaError(f"a rule speaks of {name!r}, so its bounds must stay; give narrower ones in the schema")
        self._engine.require_rereadable(f"the range of {name!r} is bought in a reading of its own")
        self._check_limits([approximate_bounds.MAGNITUDE_BUCKETS])
        spend = Gaussian.for_rho(rho, self._run.privacy_unit.l2_sensitivity_squared)
        column = approximate_bounds.MagnitudeColumn(attribute)

        def count_magnitudes() -> list[NDArray[np.int64]]:
            return [self._engine.count_column(name, column, approximate_bounds.MAGNITUDE_BUCKETS)]

        (raw,) = self._release_with_noise([f"range of {name}"], [spend], name, count_magnitudes)
        return self._reopen_under(
            self.schema.replace_attribute(
                approximate_bounds.narrow_bounds(attribute, _to_marginal((name,), raw, spend))
            )
        )

    def recode(self, recoding: Recoding) -> PrivateTable:
        """The same table with other attributes to measure, made from public facts or released numbers.

        Privacy: a recoding works row by row, so sensitivities stay what they are. Cost: none.
        """
        if recoding.origin != self.recoding.origin:
            raise InternalError("the recoding was made for another schema than the table has now")
        return self._replace(self.schema, recoding, self._engine)

    # ── how ──────────────────────────────────────────────────────────────────────────────────────────────

    def _measure_cliques(
        self, cliques: Sequence[Clique], costs: Sequence[Gaussian | Laplace], purpose: str = "marginal"
    ) -> list[Marginal]:
        """Noisy marginals, counted in one pass over the rows."""
        return self._measure_axes(self._axes_of_cliques(cliques), cliques, costs, purpose)

    def _measure_axes(
        self,
        axes_list: Sequence[tuple[int, ...]],
        cliques: Sequence[Clique],
        costs: Sequence[Gaussian | Laplace],
        purpose: str = "marginal",
    ) -> list[Marginal]:
        self._check_axes(axes_list, len(costs))
        sizes = [math.prod(self._shape(place)) for place in axes_list]  # tell finer from coarser bins of an attribute
        purposes = [f"{purpose} of {', '.join(c)} ({size:,} cells)" for c, size in zip(cliques, sizes, strict=True)]
        raws = self._release_with_noise(
            purposes, costs, self._question_identity(axes_list), lambda: self._engine.count(axes_list, self.recoding)
        )
        return [_to_marginal(*answer) for answer in zip(cliques, raws, costs, strict=True)]

    def _release_scores(
        self, purpose: str, cost: Gaussian, question: object, exact: Callable[[], Sequence[int]]
    ) -> NDArray[np.float64]:
        """Noisy scores that are paid for together."""
        (noisy,) = self._release_with_noise([purpose], [cost], question, lambda: [np.array(exact(), np.int64)])
        return noisy / np.float64(2**cost.lattice)

    def _score_each(self, axes_list: Sequence[tuple[int, ...]], score: Callable[[NDArray[np.int64]], int]) -> list[int]:
        """A score of each marginal; only so many are counted at a time as memory holds."""
        scores: list[int] = []
        for part in _split_by_cells(axes_list, [math.prod(self._shape(place)) for place in axes_list]):
            scores += [score(counts) for counts in self._engine.count(part, self.recoding)]
        return scores

    def _question_identity(self, axes_list: Sequence[tuple[int, ...]]) -> object:
        """What tells marginals apart from others of the same names: how their codes follow from the fine ones."""
        columns = [self.recoding.columns[position] for position in sorted({p for place in axes_list for p in place})]
        told = [
            [[r.anchor, r.expected_codes, r.modulus] if r else None for r in column.difference_codings]
            for column in columns
        ]
        meanings = [[column.sources, column.tables, column.merged] for column in columns]
        return [list(axes_list), meanings, *([told] if any(told) else [])]

    def _round_prediction(self, prediction: NDArray[Any], axes: tuple[int, ...]) -> NDArray[np.int64]:
        """A prediction in whole numbers; refused before paying if no such table could be counted."""
        if prediction.shape != self._shape(axes):
            raise InternalError("a prediction has another shape than its marginal")
        if not np.isfinite(prediction).all() or np.abs(prediction).max() > MAX_PREDICTION:
            raise InternalError("a prediction must be finite, and no larger than tables can be")
        return np.asarray(np.rint(prediction), np.int64)

    def _score_cost(self, rho: Fraction, scores: int, per_row: int) -> Gaussian:
        """Noise for several scores at once: Δ² is that of one, times their number."""
        return Gaussian.for_rho(rho, scores * self._run.privacy_unit.score_sensitivity(per_row) ** 2)

    def _require_axes(
        self, cliques: Sequence[Clique], answers: int, noisy_values: int | None = None
    ) -> list[tuple[int, ...]]:
        """Positions of the attributes of each clique; refused before paying if they do not make sense."""
        places = self._axes_of_cliques(cliques)
        self._check_axes(places, answers, noisy_values)
        return places

    def _axes_of_cliques(self, cliques: Sequence[Clique]) -> list[tuple[int, ...]]:
        return [tuple(self.recoding.index_of(name) for name in clique) for clique in cliques]

    def _check_axes(self, axes_list: Sequence[tuple[int, ...]], answers: int, noisy_values: int | None = None) -> None:
        if len(axes_list) != answers or not axes_list:
            raise InternalError(f"{len(axes_list)} marginals were asked for with {answers} shares or predictions")
        if any(not place or len(set(place)) < len(place) for place in axes_list):
            raise SchemaError("a marginal needs at least one attribute, and each only once")
        self._check_limits([math.prod(self._shape(place)) for place in axes_list], noisy_values)

    def _shape(self, axes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.recoding.columns[position].size for position in axes)

    def _reopen_under(self, schema: Schema) -> PrivateTable:
        """The same rows under a schema that was improved by released numbers, read anew."""
        engine = self._engine.with_schema(schema)
        return self._replace(schema, initial_recoding(schema), engine)

    def _replace(self, schema: Schema, recoding: Recoding, engine: Engine) -> PrivateTable:
        return PrivateTable(
            schema=schema,
            recoding=recoding,
            engine=engine,
            run=self._run,
            journal=self._journal,
            mechanisms=self._mechanisms,
            limits=self._limits,
            counter=self._counter,
            declared_public=self._declared,
        )


def _split_by_cells(axes_list: Sequence[tuple[int, ...]], cells: Sequence[int]) -> Iterator[list[tuple[int, ...]]]:
    """Marginals in their order, in parts of limited size."""
    part: list[tuple[int, ...]] = []
    size = 0
    for place, more in zip(axes_list, cells, strict=True):
        if part and size + more > MAX_COUNTED_CELLS:
            yield part
            part, size = [], 0
        part.append(place)
        size += more
    yield part


def initial_recoding(schema: Schema) -> Recoding:
    """What is measured unless a recipe says otherwise: the bins of every attribute with a public domain.

    Attributes that the schema groups are one, over all combinations of their bins, unless that became too large by
    values that were bought.
    """
    recoding = Recoding.coarse(Codec(schema))
    for group in schema.measure_together:
        parts = [recoding.columns[recoding.names.index(n)] for n in group.attributes if n in recoding.names]
        if len(parts) == len(group.attributes) and math.prod(part.size for part in parts) <= MAX_JOINT_VALUES:
            recoding = recoding.join(group.name, group.attributes)
    return recoding


def _to_marginal(clique: Clique, raw: NDArray[np.int64], cost: Gaussian | Laplace) -> Marginal:
    """A released table, with the deviation of its noise."""
    if isinstance(cost, Gaussian):
        return Marginal(clique, raw, cost.lattice, cost.sigma)
    return Marginal(clique, raw, 0, math.sqrt(2) * cost.scale)


def _exact_indif(counts: NDArray[np.int64]) -> int:
    """⌊Σ|n·M_ab − M_a·M_b| / n⌋, exactly; 0 for an empty table."""
    rows = int(counts.sum())
    if rows == 0:
        return 0
    wide = counts if rows < 2**31 else counts.astype(object)  # the sum is at most 2n², which must not overflow
    return int(np.abs(wide * rows - np.multiply.outer(wide.sum(axis=1), wide.sum(axis=0))).sum()) // rows
