"""A private table behind the gate, and the questions it answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import Draw, Gaussian, Laplace, Run, Threshold
from dpsyn.engines import Engine
from dpsyn.errors import InternalError, SchemaError
from dpsyn.marginals import Clique, Marginal
from dpsyn.private import magnitude
from dpsyn.private.doorway import Doorway, Limits, sealed
from dpsyn.private.journal import Journal
from dpsyn.private.mechanisms import Mechanisms
from dpsyn.records import Codec
from dpsyn.schema import MOST_COMBINATIONS, Integer, Open, Real, Schema
from dpsyn.transforms import Recoding

LARGEST_PREDICTION = 2**40
"""Counts beyond a million millions are predicted by mistake; sums of them could overflow."""

MOST_COUNTED = 30_000_000
"""Cells of marginals that are scored at a time: a quarter of a gigabyte."""


class PrivateTable(Doorway):
    """A private table behind the gate; it answers with noise, and only for a price.

    Make it with ``open_private`` and use it in a ``with`` block, see ``Doorway``. Its schema and recoding are public.
    """

    __slots__ = ("_declared", "_engine", "recoding", "schema")

    def __init__(
        self, *, schema: Schema, recoding: Recoding, engine: Engine, run: Run, journal: Journal | None,
        mechanisms: Mechanisms, limits: Limits, drawn: list[int], declared: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        super().__init__(run=run, journal=journal, mechanisms=mechanisms, limits=limits, drawn=drawn)
        self.schema = schema
        self.recoding = recoding
        self._engine = engine
        self._declared = declared

    def public_rows(self) -> int | None:
        """The number of rows if it is public, otherwise None.

        Privacy: where one row is replaced by another, all neighbours have the same number of rows. Not so where rows
        come and go, nor where a person's rows are replaced by another number of rows. Cost: none.
        """
        if self.protection.neighbours != "replace" or self.protection.unit:
            return None
        fine = Recoding.fine(Codec(self.schema))
        return sealed(lambda: int(self._engine.count([(0,)], fine)[0].sum()))

    def _declared_public(self) -> tuple[str, ...]:
        return (*self.schema.declared_public(), *self._declared)

    def __repr__(self) -> str:
        return f"PrivateTable({', '.join(self.recoding.names)})"

    # ── what it answers, for a price ─────────────────────────────────────────────────────────────────────

    def measure(
        self, cliques: Sequence[Clique], shares: Sequence[Fraction], *, purpose: str = "marginal"
    ) -> list[Marginal]:
        """Noisy marginals over the current attributes; the ledger is told what they are for.

        Privacy: each marginal is a histogram of rows, so a unit of k rows changes it by at most the protection's L2
        (k, or √2·k where units are replaced). Cost: ``shares[i]`` of ρ for the i-th, σ² = Δ²/2ρ.
        """
        spends = [Gaussian.within(share, self._run.protection.l2_squared) for share in shares]
        return self._measured(cliques, spends, purpose)

    def measure_under(self, parts: Sequence[tuple[Recoding, Mapping[Clique, Fraction]]]) -> list[list[Marginal]]:
        """Noisy marginals over the attributes of several recodings of this table, counted in one reading.

        Privacy: as ``measure``; each part has the share of every marginal that is measured under its recoding.
        """
        columns = tuple(column for recoding, _ in parts for column in recoding.columns)
        table, first = self.recode(Recoding(columns, parts[0][0].origin)), 0
        places: list[tuple[int, ...]] = []
        for recoding, shares in parts:
            places += [tuple(first + recoding.place_of(name) for name in clique) for clique in shares]
            first += len(recoding.columns)
        cliques = [clique for _, shares in parts for clique in shares]
        l2_squared = self._run.protection.l2_squared
        spends = [Gaussian.within(share, l2_squared) for _, shares in parts for share in shares.values()]
        found = iter(table._measured_at(places, cliques, spends))
        return [list(islice(found, len(shares))) for _, shares in parts]

    def measure_purely(self, cliques: Sequence[Clique], epsilons: Sequence[Fraction]) -> list[Marginal]:
        """Noisy marginals with Laplace noise, for the pure steps that the budget planned.

        Privacy: a unit of k rows changes a histogram of rows by at most the protection's L1 (k, or 2k where units are
        replaced). Cost: pure ``epsilons[i]`` for the i-th, b = Δ/ε.
        """
        return self._measured(cliques, [Laplace.within(epsilon, self._run.protection.l1) for epsilon in epsilons])

    def fine_histogram(self, name: str, share: Fraction) -> Marginal:
        """The noisy 1-way marginal of an attribute at its finest: over cells, not bins.

        Privacy: as ``measure``.
        """
        fine = Recoding.fine(Codec(self.schema))
        place = fine.place_of(name)
        self._admit([fine.sizes[place]])
        spend = Gaussian.within(share, self._run.protection.l2_squared)
        purpose = f"fine histogram of {name}"
        (raw,) = self._noised([purpose], [spend], fine.sizes[place], lambda: self._engine.count([(place,)], fine))
        return _marginal((name,), raw, spend)

    def score(
        self, cliques: Sequence[Clique], predictions: Sequence[NDArray[Any]], share: Fraction
    ) -> NDArray[np.float64]:
        """Noisy distances ‖counts − prediction‖₁, one per clique: how wrong a prediction from released numbers is.

        Privacy: with the prediction rounded to whole numbers a row changes each distance by at most 1, a unit by the
        protection's score(1) = Δ; all m distances together by √m·Δ in L2. Cost: ``share`` of ρ for all of them.
        """
        places = self._places(cliques, len(predictions), draws=len(cliques))
        rounded = [self._rounded(*pair) for pair in zip(predictions, places, strict=True)]
        spend = self._score_spend(share, len(cliques), per_row=1)

        def distances() -> list[int]:
            guesses = iter(rounded)
            return self._each(places, lambda counts: int(np.abs(counts - next(guesses)).sum()))

        purpose = f"distances of {len(cliques)} marginals from predictions"
        return self._scores(purpose, spend, [self._meaning(places), rounded], distances)

    def dependence(self, pairs: Sequence[Clique], share: Fraction) -> NDArray[np.float64]:
        """Noisy InDif of pairs: ‖M_ab − M_a·M_b/n‖₁, how far two attributes are from being independent.

        Privacy: computed in integers as ⌊Σ|n·M_ab − M_a·M_b| / n⌋, 0 for an empty table; a row changes it by at most 4
        (PrivSyn, section 4.1), a unit by the protection's score(4) = Δ; all m together by √m·Δ in L2. Cost: ``share``
        of ρ for all of them.
        """
        if any(len(pair) != 2 for pair in pairs):
            raise SchemaError("dependence is of two attributes; each pair must name exactly two")
        places = self._places(pairs, len(pairs), draws=len(pairs))
        spend = self._score_spend(share, len(pairs), per_row=4)

        def indifs() -> list[int]:
            return self._each(places, _indif)

        return self._scores(f"dependence of {len(pairs)} pairs", spend, self._meaning(places), indifs)

    def discover(self, name: str, share: Fraction, delta: Fraction) -> PrivateTable:
        """The same table with the frequent values of an open attribute bought; all others become its ``other``.

        Privacy: noisy counts of the texts that occur, listed if they reach a threshold that a single unit's texts
        reach with probability ``delta`` at most (rule of thresholds in ``accounting.Threshold``). Cost: ``share`` of ρ
        and ``delta``.
        """
        attribute = self.schema[name]
        if not isinstance(attribute, Open):
            raise SchemaError(f"the values of {name!r} are public already; only open attributes are discovered")
        self._engine.require_again(f"the values of {name!r} are bought in a reading of their own")
        protection = self._run.protection
        noise = Gaussian.within(share, protection.l2_squared)
        spend = Threshold.within(delta, noise, protection.rows)
        draws = [Draw(purpose=f"values of {name}", spend=spend)]

        def listed(_: int) -> list[tuple[str, ...]]:
            return [tuple(self._mechanisms.listed(self._engine.count_texts(name), spend))]

        (values,) = self._answered(draws, name, listed)
        return self._under(self.schema.with_bought(attribute.bought(sorted(values))))

    def discover_range(self, name: str, share: Fraction) -> PrivateTable:
        """The same table with the bounds of a number narrowed to the powers of two that its values reach.

        Privacy: a noisy histogram over fixed buckets [±2^j, ±2^(j+1)); as ``measure``. The bounds are read off it: the
        outermost buckets that exceed what noise alone would reach in a thousand histograms. Cost: ``share`` of ρ.
        """
        attribute = self.schema[name]
        if not isinstance(attribute, Integer | Real):
            raise SchemaError(f"{name!r} is {attribute.kind}; only the range of integers and reals can be bought")
        if name in {part for rule in self.schema.rules for part in rule.mentions()}:
            raise SchemaError(f"a rule speaks of {name!r}, so its bounds must stay; give narrower ones in the schema")
        self._engine.require_again(f"the range of {name!r} is bought in a reading of its own")
        self._admit([magnitude.SIZE])
        spend = Gaussian.within(share, self._run.protection.l2_squared)
        column = magnitude.MagnitudeColumn(attribute)

        def counted() -> list[NDArray[np.int64]]:
            return [self._engine.count_column(name, column, magnitude.SIZE)]

        (raw,) = self._noised([f"range of {name}"], [spend], name, counted)
        return self._under(self.schema.replace_attribute(magnitude.narrowed(attribute, _marginal((name,), raw, spend))))

    def recode(self, recoding: Recoding) -> PrivateTable:
        """The same table with other attributes to measure, made from public facts or released numbers.

        Privacy: a recoding works row by row, so sensitivities stay what they are. Cost: none.
        """
        if recoding.origin != self.recoding.origin:
            raise InternalError("the recoding was made for another schema than the table has now")
        return self._with(self.schema, recoding, self._engine)

    # ── how ──────────────────────────────────────────────────────────────────────────────────────────────

    def _measured(
        self, cliques: Sequence[Clique], spends: Sequence[Gaussian | Laplace], purpose: str = "marginal"
    ) -> list[Marginal]:
        """Noisy marginals, counted in one pass over the rows."""
        return self._measured_at(self._placed(cliques), cliques, spends, purpose)

    def _measured_at(
        self,
        places: Sequence[tuple[int, ...]],
        cliques: Sequence[Clique],
        spends: Sequence[Gaussian | Laplace],
        purpose: str = "marginal",
    ) -> list[Marginal]:
        self._require(places, len(spends))
        sizes = [math.prod(self._shape(place)) for place in places]  # tell finer from coarser bins of an attribute
        purposes = [f"{purpose} of {', '.join(c)} ({size:,} cells)" for c, size in zip(cliques, sizes, strict=True)]
        raws = self._noised(purposes, spends, self._meaning(places), lambda: self._engine.count(places, self.recoding))
        return [_marginal(*answer) for answer in zip(cliques, raws, spends, strict=True)]

    def _scores(
        self, purpose: str, spend: Gaussian, question: object, exact: Callable[[], Sequence[int]]
    ) -> NDArray[np.float64]:
        """Noisy scores that are paid for together."""
        (noisy,) = self._noised([purpose], [spend], question, lambda: [np.array(exact(), np.int64)])
        return noisy / np.float64(2**spend.lattice)

    def _each(self, places: Sequence[tuple[int, ...]], score: Callable[[NDArray[np.int64]], int]) -> list[int]:
        """A score of each marginal; only so many are counted at a time as memory holds."""
        scores: list[int] = []
        for part in _in_parts(places, [math.prod(self._shape(place)) for place in places]):
            scores += [score(counts) for counts in self._engine.count(part, self.recoding)]
        return scores

    def _meaning(self, places: Sequence[tuple[int, ...]]) -> object:
        """What tells marginals apart from others of the same names: how their codes follow from the fine ones."""
        columns = [self.recoding.columns[position] for position in sorted({p for place in places for p in place})]
        told = [[[r.anchor, r.expected, r.cells] if r else None for r in column.references] for column in columns]
        meanings = [[column.sources, column.tables, column.merged] for column in columns]
        return [list(places), meanings, *([told] if any(told) else [])]

    def _rounded(self, prediction: NDArray[Any], place: tuple[int, ...]) -> NDArray[np.int64]:
        """A prediction in whole numbers; refused before paying if no such table could be counted."""
        if prediction.shape != self._shape(place):
            raise InternalError("a prediction has another shape than its marginal")
        if not np.isfinite(prediction).all() or np.abs(prediction).max() > LARGEST_PREDICTION:
            raise InternalError("a prediction must be finite, and no larger than tables can be")
        return np.asarray(np.rint(prediction), np.int64)

    def _score_spend(self, share: Fraction, scores: int, per_row: int) -> Gaussian:
        """Noise for several scores at once: Δ² is that of one, times their number."""
        return Gaussian.within(share, scores * self._run.protection.score(per_row) ** 2)

    def _places(self, cliques: Sequence[Clique], answers: int, draws: int | None = None) -> list[tuple[int, ...]]:
        """Positions of the attributes of each clique; refused before paying if they do not make sense."""
        places = self._placed(cliques)
        self._require(places, answers, draws)
        return places

    def _placed(self, cliques: Sequence[Clique]) -> list[tuple[int, ...]]:
        return [tuple(self.recoding.place_of(name) for name in clique) for clique in cliques]

    def _require(self, places: Sequence[tuple[int, ...]], answers: int, draws: int | None = None) -> None:
        if len(places) != answers or not places:
            raise InternalError(f"{len(places)} marginals were asked for with {answers} shares or predictions")
        if any(not place or len(set(place)) < len(place) for place in places):
            raise SchemaError("a marginal needs at least one attribute, and each only once")
        self._admit([math.prod(self._shape(place)) for place in places], draws)

    def _shape(self, place: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.recoding.columns[position].size for position in place)

    def _under(self, schema: Schema) -> PrivateTable:
        """The same rows under a schema that was improved by released numbers, read anew."""
        engine = self._engine.reopened(schema)
        return self._with(schema, initial_recoding(schema), engine)

    def _with(self, schema: Schema, recoding: Recoding, engine: Engine) -> PrivateTable:
        return PrivateTable(
            schema=schema,
            recoding=recoding,
            engine=engine,
            run=self._run,
            journal=self._journal,
            mechanisms=self._mechanisms,
            limits=self._limits,
            drawn=self._drawn,
            declared=self._declared,
        )


def _in_parts(places: Sequence[tuple[int, ...]], cells: Sequence[int]) -> Iterator[list[tuple[int, ...]]]:
    """Marginals in their order, in parts of limited size."""
    part: list[tuple[int, ...]] = []
    size = 0
    for place, more in zip(places, cells, strict=True):
        if part and size + more > MOST_COUNTED:
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
    for group in schema.recode:
        parts = [recoding.columns[recoding.names.index(n)] for n in group.attributes if n in recoding.names]
        if len(parts) == len(group.attributes) and math.prod(part.size for part in parts) <= MOST_COMBINATIONS:
            recoding = recoding.join(group.name, group.attributes)
    return recoding


def _marginal(clique: Clique, raw: NDArray[np.int64], spend: Gaussian | Laplace) -> Marginal:
    """A released table, with the deviation of its noise."""
    if isinstance(spend, Gaussian):
        return Marginal(clique, raw, spend.lattice, spend.sigma)
    return Marginal(clique, raw, 0, math.sqrt(2) * spend.scale)


def _indif(counts: NDArray[np.int64]) -> int:
    """⌊Σ|n·M_ab − M_a·M_b| / n⌋, exactly; 0 for an empty table."""
    rows = int(counts.sum())
    if rows == 0:
        return 0
    wide = counts if rows < 2**31 else counts.astype(object)  # the sum is at most 2n², which must not overflow
    return int(np.abs(wide * rows - np.multiply.outer(wide.sum(axis=1), wide.sum(axis=0))).sum()) // rows
