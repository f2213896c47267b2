"""Association rules from counts of itemsets (Agrawal, Imieliński and Swami 1993); post-processing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from dpsyn.errors import UserError
from dpsyn.marginals import ItemsetCounts


@dataclass(frozen=True, slots=True)
class Rule:
    """Baskets that hold ``given`` often hold ``then`` as well.

    Attributes:
        given: some items.
        then: others.
        count: how many baskets hold all of them.
        confidence: the part of the baskets with ``given`` that also hold ``then``.
        standard_error: of the confidence, from the noise alone, to first order.
        lift: the confidence in parts of what it would be if the two were independent.
    """

    given: tuple[str, ...]
    then: tuple[str, ...]
    count: float
    confidence: float
    standard_error: float
    lift: float

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "given": list(self.given),
            "then": list(self.then),
            "count": self.count,
            "confidence": self.confidence,
            "standard_error": self.standard_error,
            "lift": self.lift,
        }


def association_rules(
    counts: ItemsetCounts, itemsets: Sequence[tuple[str, ...]], confidence: float
) -> tuple[Rule, ...]:
    """All rules whose items together are one of the itemsets, of at least some confidence, the surest first."""
    if not 0 <= confidence <= 1:
        raise UserError(f"the confidence is {confidence}; give a number from 0 to 1")
    rules = (rule for items in itemsets if len(items) > 1 for rule in _rules_of(counts, items))
    found = [rule for rule in rules if rule.confidence >= confidence]
    return tuple(sorted(found, key=lambda rule: (-rule.confidence, -rule.count, rule.given, rule.then)))


def _rules_of(counts: ItemsetCounts, items: tuple[str, ...]) -> Iterator[Rule]:
    both, baskets = counts.count(items), counts.count(())
    for size in range(1, len(items)):
        for given in combinations(items, size):
            then = tuple(item for item in items if item not in given)
            alone, share = counts.count(given), counts.count(then) / max(baskets, 1.0)
            if alone > 0 and both > 0 and share > 0:
                certain = min(1.0, both / alone)
                yield Rule(given, then, both, certain, _error(counts, given, items, certain), certain / share)


def _error(counts: ItemsetCounts, given: tuple[str, ...], items: tuple[str, ...], confidence: float) -> float:
    """The standard error of a quotient of counts whose noise is correlated.

    In every basis B that holds all items the bins of ``items`` are among those of ``given``, hence the covariance of
    their sums is the variance of the smaller one. With weights by precision 2^(|X|−|B|) it becomes
    2^(|given|−|items|) times the variance of ``given``, whatever the bases are.
    """
    narrow, wide = counts.deviation(items) ** 2, counts.deviation(given) ** 2
    common = 2.0 ** (len(given) - len(items)) * wide
    variance = narrow - 2 * confidence * common + confidence**2 * wide
    return math.sqrt(max(variance, 0.0)) / counts.count(given)
