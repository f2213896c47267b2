"""Private baskets behind the gate: frequent items and pairs, noisy bins of bases, private discovery of items."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import Exponential, Gaussian, Laplace, MeasurementRecord, PartitionSelection
from dpsyn.engines.baskets import BasketEngine
from dpsyn.errors import InternalError, SchemaError
from dpsyn.marginals import Clique, Marginal
from dpsyn.private.gate import PrivacyGate, Released, Session, without_leaking_errors
from dpsyn.schema import BasketSchema

ItemPair = tuple[int, int]
"""Two items, as positions in the universe."""

SupportTarget = int | Fraction
"""A level of support: an int n stands for the support of the n-th most frequent itemset, a Fraction for that share of
the baskets."""

_BEYOND_ALL_SUPPORTS = 2**40
"""More baskets than there are. Minus this is the support after that of the last item."""

MAX_RANK = 2_500
"""The largest rank: finding the n-th itemset takes n² comparisons of bitsets, which is seconds at this n."""


class PrivateBaskets(PrivacyGate):
    """Private baskets behind the gate. They are answered with noise only, and every answer is charged.

    Make them with ``open_baskets`` and use them in a ``with`` block, see ``PrivacyGate``. Items are given as positions
    in the universe of items, which is public. The privacy unit is one basket, or the at most k baskets of a person that
    are used. A basket adds at most 1 to the support of any itemset, that is, to the number of baskets that hold it.

    Attributes:
        schema: what is public about the baskets.
    """

    __slots__ = ("_engine", "schema")

    schema: BasketSchema

    def __init__(self, session: Session, engine: BasketEngine, schema: BasketSchema) -> None:
        super().__init__(session)
        self._engine = engine
        self.schema = schema

    def __repr__(self) -> str:
        known = "items to be discovered" if self.schema.items is None else f"{len(self.schema.items):,} items"
        return f"PrivateBaskets({known})"

    @property
    def items(self) -> tuple[str, ...]:
        """The universe of items."""
        if self.schema.items is None:
            raise InternalError("the universe of items has not been discovered yet")
        return self.schema.items

    def public_basket_count(self) -> int | None:
        """The number of baskets if it is public, otherwise None.

        Privacy: if one basket is replaced by another, all neighbors have the same number of baskets. This is not so if
        baskets are added or removed, nor if the baskets of a person are replaced by another number of them. Cost: none.
        """
        if not self.privacy_unit.row_count_is_public:
            return None
        return without_leaking_errors(self._engine.count)

    # ── measurements ─────────────────────────────────────────────────────────────────────────────────────

    def discover_items(self, rho: Fraction, delta: Fraction, max_items: int) -> PrivateBaskets:
        """The same baskets with a universe of items that is discovered privately: the items that many baskets hold.

        Privacy: this is partition selection. At most ``max_items`` items of each basket are counted, so a unit of k
        baskets adds at most k to the counts of at most k·``max_items`` items: k·√``max_items`` in L2 (√2 times that if
        units are replaced). An item is listed if its noisy count reaches a threshold that the items of a single unit
        reach with probability at most ``delta`` (see ``accounting.PartitionSelection``). Cost: ``rho`` of ρ and
        ``delta``.
        """
        if self.schema.items is not None:
            raise SchemaError("the universe of items is public already; there is nothing to discover")
        if max_items < 1:
            raise SchemaError(f"at most {max_items} items of a basket would be counted; give a number from 1")
        noise = Gaussian.for_rho(rho, self.privacy_unit.l2_sensitivity_squared * max_items)
        cost = PartitionSelection.for_delta(delta, noise, self.privacy_unit.max_rows * max_items)
        released = self._release_one(
            MeasurementRecord(purpose="items that occur", cost=cost),
            max_items,
            lambda: self._engine.count_items(max_items),
        )
        items = tuple(sorted(released.answer, key=lambda item: (len(item), item)))  # puts numbers in numeric order
        schema = msgspec.structs.replace(self.schema, items=items, items_discovered=True)
        return PrivateBaskets(self._session, self._engine.with_items(items), schema)

    def choose_item_rank(self, target: SupportTarget, max_rank: int, epsilon: Fraction) -> int:
        """About how many items reach a level of support, from 1 to ``max_rank``.

        Privacy: with s_j the j-th largest support of an item and θ the level, the score of rank j is
        −max(0, θ − s_j, s_(j+1) − θ + 1): 0 if exactly j items reach θ, otherwise minus the distance to θ of the
        nearest support on the wrong side. A basket changes s_j, s_(j+1) and θ by 0 or 1, all in the same direction,
        hence the score by at most 1, and a unit by ``score_sensitivity(1)`` of the privacy unit. Cost: pure ε.
        """
        return self._choose_rank("items", target, min(max_rank, len(self.items)), epsilon, [], self._engine.supports)

    def choose_pair_rank(self, items: Sequence[int], target: SupportTarget, max_rank: int, epsilon: Fraction) -> int:
        """About how many pairs of these items reach a level of support, from 1 to ``max_rank``.

        Privacy: as ``choose_item_rank``, with the supports of pairs instead of items. Cost: pure ε.
        """

        def supports() -> NDArray[np.int64]:
            return self._engine.pair_supports(items)

        return self._choose_rank(
            "pairs", target, min(max_rank, math.comb(len(items), 2)), epsilon, list(items), supports
        )

    def choose_frequent_items(self, number: int, epsilon: Fraction) -> tuple[int, ...]:
        """Choose a number of items, frequent ones more likely, in the order of their selection.

        Privacy: items are chosen one after another without replacement with weights e^(support/t). A basket changes
        each support by 0 or 1, all in the same direction; a unit by k. Cost: pure ε for all of them together.
        """
        self._check_selections(number, len(self.items))
        cost = self._selection_cost(epsilon, number)
        chosen = self._choose(f"{number} frequent items", cost, number, self._engine.supports)
        return tuple(chosen.tolist())

    def choose_frequent_pairs(self, items: Sequence[int], number: int, epsilon: Fraction) -> tuple[ItemPair, ...]:
        """Choose a number of pairs of these items, frequent ones more likely, in the order of their selection.

        Privacy: as ``choose_frequent_items``. No other pair is counted. Cost: pure ε for all of them together.
        """
        pairs = list(combinations(items, 2))
        self._check_selections(number, len(pairs))
        cost = self._selection_cost(epsilon, number)
        question = [number, list(items)]
        chosen = self._choose(f"{number} frequent pairs", cost, question, lambda: self._engine.pair_supports(items))
        return tuple(pairs[position] for position in chosen.tolist())

    def measure_bases(self, bases: Sequence[Sequence[int]], epsilons: Sequence[Fraction]) -> list[Marginal]:
        """The noisy bins of each basis: how many baskets hold exactly these of its items and none of the others.

        Privacy: a basket is in one bin of each basis, so a unit changes the bins of a basis by at most the L1
        sensitivity of the privacy unit. Cost: pure ``epsilons[i]`` for the i-th, Laplace noise of scale L1/ε. With ε/w
        for each of w bases that is the paper's w/ε. If answers were lost and nothing is left to measure some bases
        again, these are missing; if nothing is left for any, it is a NothingLeftError.
        """
        if not bases or any(not basis or len(set(basis)) < len(basis) for basis in bases):
            raise InternalError("at least one basis is needed, and each holds at least one item, and each only once")
        cliques = [tuple(self.items[item] for item in basis) for basis in bases]
        costs = [Laplace.for_epsilon(epsilon, self.privacy_unit.l1_sensitivity) for epsilon in epsilons]
        released = self._release(
            [
                MeasurementRecord(purpose=f"marginal of {', '.join(clique)}", cost=cost)
                for clique, cost in zip(cliques, costs, strict=True)
            ],
            [list(basis) for basis in bases],
            lambda: self._engine.count_bins(bases),
            cells=[1 << len(basis) for basis in bases],
        )
        marginals = [_to_marginal(clique, each) for clique, each in zip(cliques, released, strict=True) if each]
        if not marginals:
            raise self._nothing_left_error()
        return marginals

    def measure_support(self, rank: int, epsilon: Fraction) -> float:
        """The noisy support of the ``rank``-th most frequent itemset.

        Privacy: a basket changes all supports by 0 or 1 in the same direction, hence the rank-th largest by at most 1,
        and a unit by ``score_sensitivity(1)``. Cost: pure ``epsilon``.
        """
        if not 1 <= rank <= MAX_RANK:
            raise SchemaError(f"rank {rank:,} was requested; give one from 1 to {MAX_RANK:,}")
        cost = Laplace.for_epsilon(epsilon, self.privacy_unit.score_sensitivity(1))
        released = self._release_one(
            MeasurementRecord(purpose=f"support of itemset number {rank}", cost=cost),
            rank,
            lambda: np.array([self._engine.nth_support(rank)], np.int64),
            cells=[1],
        )
        return float(released.answer[0])

    def measure_lengths(
        self, items: Sequence[int] | None, starts: Sequence[int], epsilon: Fraction
    ) -> tuple[NDArray[np.float64], float]:
        """The noisy histogram of how many of these items baskets hold, or of all; ``starts`` of its ranges begin at 0.

        Second, the standard deviation of the noise.

        Privacy: a histogram of baskets, so a unit changes it by at most the L1 sensitivity of the privacy unit. Cost:
        pure ``epsilon``.
        """
        cost = Laplace.for_epsilon(epsilon, self.privacy_unit.l1_sensitivity)
        released = self._release_one(
            MeasurementRecord(purpose="lengths of baskets", cost=cost),
            [list(starts), None if items is None else list(items)],
            lambda: self._engine.count_lengths(items, starts),
            cells=[len(starts)],
        )
        charged: Laplace = released.cost
        return np.asarray(released.answer, np.float64), charged.std

    def measure_items(self, max_items: int, epsilon: Fraction) -> tuple[NDArray[np.float64], float]:
        """The noisy counts of all items, of which at most ``max_items`` of each basket count, and the std of the noise.

        Privacy: a basket adds at most 1 to each of at most ``max_items`` counts, so a unit changes them by at most
        ``max_items`` times the L1 sensitivity of the privacy unit. Cost: pure ``epsilon``.
        """
        cost = Laplace.for_epsilon(epsilon, self.privacy_unit.l1_sensitivity * max_items)
        released = self._release_one(
            MeasurementRecord(purpose=f"all items, {max_items} of each basket", cost=cost),
            max_items,
            lambda: self._engine.limited_supports(max_items),
            cells=[len(self.items)],
        )
        charged: Laplace = released.cost
        return np.asarray(released.answer, np.float64), charged.std

    def measure_pairs(
        self, items: Sequence[int], max_items: int, epsilon: Fraction
    ) -> tuple[NDArray[np.float64], float]:
        """The noisy counts of all pairs of these items, of which at most ``max_items`` of each basket count.

        The order is that of ``itertools.combinations``; second, the standard deviation of the noise.

        Privacy: a basket adds at most 1 to each of at most m(m − 1)/2 counts, m = ``max_items``, so a unit changes them
        by at most that many times the L1 sensitivity of the privacy unit. Cost: pure ``epsilon``.
        """
        pairs = max(1, math.comb(max_items, 2))
        cost = Laplace.for_epsilon(epsilon, self.privacy_unit.l1_sensitivity * pairs)
        released = self._release_one(
            MeasurementRecord(purpose=f"all pairs of {len(items)} items, {max_items} of each basket", cost=cost),
            [max_items, list(items)],
            lambda: self._engine.limited_pair_supports(items, max_items),
            cells=[math.comb(len(items), 2)],
        )
        charged: Laplace = released.cost
        return np.asarray(released.answer, np.float64), charged.std

    # ── helpers ──────────────────────────────────────────────────────────────────────────────────────────

    def _choose_rank(
        self,
        what: str,
        target: SupportTarget,
        max_rank: int,
        epsilon: Fraction,
        question: list[int],
        supports: Callable[[], NDArray[np.int64]],
    ) -> int:
        """The exponential mechanism on the ranks 1 … ``max_rank`` of supports."""
        for rank in (max_rank, target if isinstance(target, int) else 1):
            if not 1 <= rank <= MAX_RANK:
                raise SchemaError(f"rank {rank:,} was requested; give one from 1 to {MAX_RANK:,}")
        cost = Exponential.for_epsilon(epsilon, self.privacy_unit.score_sensitivity(1))

        def scores() -> NDArray[np.int64]:
            level = self._engine.nth_support(target) if isinstance(target, int) else int(target * self._engine.count())
            ranked = np.append(np.sort(supports())[::-1], -_BEYOND_ALL_SUPPORTS)[: max_rank + 1]
            distance: NDArray[np.int64] = np.maximum(np.maximum(level - ranked[:-1], ranked[1:] - level + 1), 0)
            return -distance

        level = f"itemset number {target}" if isinstance(target, int) else f"{float(target):g} of the baskets"
        purpose = f"number of {what} as frequent as {level}"
        return 1 + int(self._choose(purpose, cost, [question, repr(target), max_rank], scores)[0])

    def _choose(
        self, purpose: str, cost: Exponential, question: object, scores: Callable[[], NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        """Positions that the exponential mechanism chooses by their scores."""
        released = self._release_one(MeasurementRecord(purpose=purpose, cost=cost), question, scores)
        chosen: NDArray[np.int64] = released.answer
        return chosen

    def _selection_cost(self, epsilon: Fraction, selections: int) -> Exponential:
        """The cost of selections by support: a unit changes supports by k, all the same way unless it is replaced."""
        monotone = self.privacy_unit.neighbors == "add-remove"
        return Exponential.for_epsilon(epsilon, self.privacy_unit.max_rows, monotone=monotone, selections=selections)

    def _check_selections(self, number: int, candidates: int) -> None:
        if not 1 <= number <= candidates:
            raise InternalError(f"{number} of {candidates} candidates cannot be chosen")


def _to_marginal(clique: Clique, released: Released[Laplace]) -> Marginal:
    """The released bins of a basis, with the standard deviation of their noise."""
    return Marginal(clique, released.answer, released.cost.lattice, released.cost.std)
