"""Private baskets behind the gate, and the questions they answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import Exponential, Gaussian, Laplace, MeasurementRecord, PartitionSelection, Run
from dpsyn.engines.baskets import BasketEngine
from dpsyn.errors import InternalError, SchemaError
from dpsyn.marginals import Marginal
from dpsyn.private.gate import PrivacyGate, ReleaseLimits, without_leaking_errors
from dpsyn.private.journal import Journal
from dpsyn.private.mechanisms import Mechanisms
from dpsyn.schema import BasketSchema

ItemPair = tuple[int, int]
"""Two items, by their places in the universe."""

SupportTarget = int | Fraction
"""How frequent: as the n-th most frequent itemset of all, or as what is in so large a part of the baskets."""

_BEYOND_ALL_SUPPORTS = 2**40
"""More baskets than there are: what follows the last item of all is as rare as can be."""

MAX_RANK = 2_500
"""Ranks that can be asked for: to find the n-th itemset takes n² comparisons of bitsets, seconds at this n."""


class PrivateBaskets(PrivacyGate):
    """Private baskets behind the gate; they answer with noise, and only for a price.

    Make them with ``open_baskets`` and use them in a ``with`` block, see ``Doorway``. Items are named by their places
    in the universe, which is public. One unit of privacy is a basket, or the at most k baskets of a person that are
    used; a basket adds at most 1 to the support (the number of baskets that hold it) of any itemset.
    """

    __slots__ = ("_engine", "schema")

    def __init__(
        self, *, schema: BasketSchema, engine: BasketEngine, run: Run, journal: Journal | None,
        mechanisms: Mechanisms, limits: ReleaseLimits, counter: list[int],
    ) -> None:  # fmt: skip
        super().__init__(run=run, journal=journal, mechanisms=mechanisms, limits=limits, counter=counter)
        self.schema = schema
        self._engine = engine

    @property
    def items(self) -> tuple[str, ...]:
        """The universe."""
        if self.schema.items is None:
            raise InternalError("the universe of items has not been bought yet")
        return self.schema.items

    def public_basket_count(self) -> int | None:
        """The number of baskets if it is public, otherwise None.

        Privacy: where one basket is replaced by another, all neighbors have the same number of baskets. Not so where
        baskets come and go, nor where a person's are replaced by another number of them. Cost: none.
        """
        if not self.privacy_unit.row_count_is_public:
            return None
        return without_leaking_errors(self._engine.count)

    def __repr__(self) -> str:
        known = "items to be bought" if self.schema.items is None else f"{len(self.schema.items):,} items"
        return f"PrivateBaskets({known})"

    def _declared_public(self) -> tuple[str, ...]:
        return self.schema.declared_public()

    # ── what they answer, for a price ────────────────────────────────────────────────────────────────────

    def discover_items(self, rho: Fraction, delta: Fraction, max_items: int) -> PrivateBaskets:
        """The same baskets with a universe that was bought: the items that many baskets hold.

        Privacy: of each basket at most ``max_items`` items are counted here, so a unit of k baskets adds at most k to the
        counts of at most k·``max_items`` items: k·√longest in L2 (√2 times that where units are replaced). Items are
        listed if their noisy count reaches a threshold that one unit's items reach with probability ``delta`` at most
        (rule of thresholds in ``accounting.Threshold``). Cost: ``rho`` of ρ and ``delta``.
        """
        if self.schema.items is not None:
            raise SchemaError("the universe of items is public already; there is nothing to discover")
        if max_items < 1:
            raise SchemaError(f"at most {max_items} items of a basket would be counted; give a number from 1")
        noise = Gaussian.for_rho(rho, self.privacy_unit.l2_sensitivity_squared * max_items)
        spend = PartitionSelection.for_delta(delta, noise, self.privacy_unit.max_rows * max_items)

        def select_items(_: int) -> list[tuple[str, ...]]:
            return [tuple(self._mechanisms.select_partitions(self._engine.count_items(max_items), spend))]

        (found,) = self._release([MeasurementRecord(purpose="items that occur", cost=spend)], max_items, select_items)
        items = tuple(sorted(found, key=lambda item: (len(item), item)))  # so that numbers come in their order
        return self._replace(
            msgspec.structs.replace(self.schema, items=items, items_discovered=True), self._engine.with_items(items)
        )

    def choose_item_rank(self, target: SupportTarget, max_rank: int, epsilon: Fraction) -> int:
        """About how many items are as frequent as something is, from 1 to ``max_rank``.

        Privacy: with s_j the j-th largest support of an item and θ what it is compared with, the score of rank j is
        −max(0, θ − s_j, s_(j+1) − θ + 1): 0 if just j items reach θ, else how far the nearest of those on the wrong
        side is off. A basket moves s_j, s_(j+1) and θ by 0 or 1, all in the same direction, hence the score by at most
        1, and a unit by the protection's score(1). Cost: pure ε.
        """
        return self._choose_rank("items", target, min(max_rank, len(self.items)), epsilon, [], self._engine.supports)

    def choose_pair_rank(self, items: Sequence[int], target: SupportTarget, max_rank: int, epsilon: Fraction) -> int:
        """About how many pairs of these items are as frequent as something is, from 1 to ``max_rank``.

        Privacy: as ``item_rank``, with the supports of pairs instead of items. Cost: pure ε.
        """

        def supports() -> NDArray[np.int64]:
            return self._engine.pair_supports(items)

        return self._choose_rank(
            "pairs", target, min(max_rank, math.comb(len(items), 2)), epsilon, list(items), supports
        )

    def choose_frequent_items(self, number: int, epsilon: Fraction) -> tuple[int, ...]:
        """So many items, frequent ones more likely, in the order in which they were drawn.

        Privacy: drawn one after another without replacement with weights e^(support/t). A basket moves each support by
        0 or 1, all in the same direction; a unit by k. Cost: pure ε for all of them together.
        """
        self._check_selections(number, len(self.items))
        spend = self._selection_cost(epsilon, number)
        drawn = self._choose(f"{number} frequent items", spend, number, self._engine.supports)
        return tuple(drawn.tolist())

    def choose_frequent_pairs(self, items: Sequence[int], number: int, epsilon: Fraction) -> tuple[ItemPair, ...]:
        """So many pairs of these items, frequent ones more likely, in the order in which they were drawn.

        Privacy: as ``frequent_items``. No other pair is counted. Cost: pure ε for all of them together.
        """
        pairs = list(combinations(items, 2))
        self._check_selections(number, len(pairs))
        spend = self._selection_cost(epsilon, number)
        question = [number, list(items)]
        drawn = self._choose(f"{number} frequent pairs", spend, question, lambda: self._engine.pair_supports(items))
        return tuple(pairs[place] for place in drawn.tolist())

    def measure_bases(self, bases: Sequence[Sequence[int]], epsilons: Sequence[Fraction]) -> list[Marginal]:
        """For each basis, a set of items, how many baskets hold just these of them and not the others, with noise.

        Privacy: a basket is in one bin of each basis, so a unit changes the bins of a basis by at most the protection's
        L1. Cost: pure ``epsilons[i]`` for the i-th, Laplace noise of scale L1/ε. With ε/w for each of w bases that is
        the paper's w/ε.
        """
        if not bases or any(not basis or len(set(basis)) < len(basis) for basis in bases):
            raise InternalError("a basis holds at least one item, and each only once; and there is at least one")
        self._check_limits([1 << len(basis) for basis in bases])
        cliques = [tuple(self.items[item] for item in basis) for basis in bases]
        spends = [Laplace.for_epsilon(epsilon, self.privacy_unit.l1_sensitivity) for epsilon in epsilons]
        purposes = [f"marginal of {', '.join(clique)}" for clique in cliques]
        question = [list(basis) for basis in bases]
        raws = self._release_with_noise(purposes, spends, question, lambda: self._engine.count_bins(bases))
        return [
            Marginal(clique, raw, 0, math.sqrt(2) * spend.scale)
            for clique, raw, spend in zip(cliques, raws, spends, strict=True)
        ]

    # ── how ──────────────────────────────────────────────────────────────────────────────────────────────

    def _choose_rank(
        self,
        what: str,
        target: SupportTarget,
        max_rank: int,
        epsilon: Fraction,
        question: list[int],
        supports: Callable[[], NDArray[np.int64]],
    ) -> int:
        """The exponential mechanism on the ranks 1 … most of supports."""
        for number in (max_rank, target if isinstance(target, int) else 1):
            if not 1 <= number <= MAX_RANK:
                raise SchemaError(f"rank {number:,} was asked for; give one from 1 to {MAX_RANK:,}")
        level = f"itemset number {target}" if isinstance(target, int) else f"{float(target):g} of the baskets"
        spend = Exponential.for_epsilon(epsilon, self.privacy_unit.score_sensitivity(1))

        def scores() -> NDArray[np.int64]:
            level = self._engine.nth_support(target) if isinstance(target, int) else int(target * self._engine.count())
            ranked = np.append(np.sort(supports())[::-1], -_BEYOND_ALL_SUPPORTS)[: max_rank + 1]
            off: NDArray[np.int64] = np.maximum(np.maximum(level - ranked[:-1], ranked[1:] - level + 1), 0)
            return -off

        purpose = f"number of {what} as frequent as {level}"
        return 1 + int(self._choose(purpose, spend, [question, repr(target), max_rank], scores)[0])

    def _choose(
        self, purpose: str, cost: Exponential, question: object, scores: Callable[[], NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        """Positions that are drawn by their scores."""
        (found,) = self._release(
            [MeasurementRecord(purpose=purpose, cost=cost)],
            question,
            lambda _: [self._mechanisms.choose_candidates(scores(), cost)],
        )
        return found

    def _selection_cost(self, epsilon: Fraction, selections: int) -> Exponential:
        """What draws by support cost: a unit moves supports by k; all the same way, unless units are replaced."""
        monotone = self.privacy_unit.neighbors == "add-remove"
        return Exponential.for_epsilon(epsilon, self.privacy_unit.max_rows, monotone=monotone, selections=selections)

    def _check_selections(self, number: int, candidates: int) -> None:
        if not 1 <= number <= candidates:
            raise InternalError(f"{number} of {candidates} candidates cannot be drawn")

    def _replace(self, schema: BasketSchema, engine: BasketEngine) -> PrivateBaskets:
        return PrivateBaskets(
            schema=schema,
            engine=engine,
            run=self._run,
            journal=self._journal,
            mechanisms=self._mechanisms,
            limits=self._limits,
            counter=self._counter,
        )
