"""Association rules from counts of itemsets (Agrawal, Imieliński and Swami 1993); post-processing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from dpsyn.errors import UserError
from dpsyn.itemsets.counts import ItemsetCounts


@dataclass(frozen=True, slots=True)
class AssociationRule:
    """Baskets that hold ``antecedent`` often hold ``consequent`` as well.

    Attributes:
        antecedent: some items.
        consequent: others.
        count: how many baskets hold all of them.
        confidence: the part of the baskets with ``antecedent`` that also hold ``consequent``.
        standard_error: of the confidence, from the noise alone, to first order.
        lift: the confidence in parts of what it would be if the two were independent.
    """

    antecedent: tuple[str, ...]
    consequent: tuple[str, ...]
    count: float
    confidence: float
    standard_error: float
    lift: float

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "given": list(self.antecedent),
            "then": list(self.consequent),
            "count": self.count,
            "confidence": self.confidence,
            "standard_error": self.standard_error,
            "lift": self.lift,
        }


def find_association_rules(
    counts: ItemsetCounts, itemsets: Sequence[tuple[str, ...]], min_confidence: float
) -> tuple[AssociationRule, ...]:
    """All rules whose items together are one of the itemsets, of at least some confidence, the surest first."""
    if not 0 <= min_confidence <= 1:
        raise UserError(f"the confidence is {min_confidence}; give a number from 0 to 1")
    rules = (rule for items in itemsets if len(items) > 1 for rule in _rules_within(counts, items))
    found = [rule for rule in rules if rule.confidence >= min_confidence]
    return tuple(sorted(found, key=lambda rule: (-rule.confidence, -rule.count, rule.antecedent, rule.consequent)))


def _rules_within(counts: ItemsetCounts, items: tuple[str, ...]) -> Iterator[AssociationRule]:
    both, baskets = counts.count(items), counts.count(())
    for size in range(1, len(items)):
        for given in combinations(items, size):
            then = tuple(item for item in items if item not in given)
            alone, share = counts.count(given), counts.count(then) / max(baskets, 1.0)
            if alone > 0 and both > 0 and share > 0:
                certain = min(1.0, both / alone)
                yield AssociationRule(
                    given, then, both, certain, _ratio_standard_error(counts, given, items, certain), certain / share
                )


def _ratio_standard_error(
    counts: ItemsetCounts, antecedent: tuple[str, ...], items: tuple[str, ...], confidence: float
) -> float:
    """The standard error of a quotient of counts whose noise is correlated.

    In every basis B that holds all items the bins of ``items`` are among those of ``antecedent``, hence the covariance of
    their sums is the variance of the smaller one. With weights by precision 2^(|X|−|B|) it becomes
    2^(|given|−|items|) times the variance of ``antecedent``, whatever the bases are.
    """
    narrow, wide = counts.std(items) ** 2, counts.std(antecedent) ** 2
    common = 2.0 ** (len(antecedent) - len(items)) * wide
    variance = narrow - 2 * confidence * common + confidence**2 * wide
    return math.sqrt(max(variance, 0.0)) / counts.count(antecedent)
