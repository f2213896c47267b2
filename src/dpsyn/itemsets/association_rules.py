"""Association rules from noisy counts of itemsets (Agrawal, Imieliński and Swami 1993); post-processing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from dpsyn.errors import UserError
from dpsyn.itemsets.counts import ItemsetCounts, SingleCounts


@dataclass(frozen=True, slots=True)
class AssociationRule:
    """Baskets that hold ``antecedent`` often hold ``consequent`` as well.

    Attributes:
        antecedent: the items of the condition.
        consequent: the items that follow.
        count: the number of baskets that hold all of them.
        confidence: the fraction of the baskets with ``antecedent`` that also hold ``consequent``.
        standard_error: the standard error of the confidence due to the privacy noise, to first order.
        lift: the confidence divided by what it would be if the two were independent.
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
    counts: ItemsetCounts | SingleCounts, itemsets: Sequence[tuple[str, ...]], min_confidence: float
) -> tuple[AssociationRule, ...]:
    """All rules whose items together are one of the itemsets, with at least this confidence, the highest first."""
    if not 0 <= min_confidence <= 1:
        raise UserError(f"the confidence is {min_confidence}; give a number from 0 to 1")
    rules = (rule for items in itemsets if len(items) > 1 for rule in _rules_within(counts, items))
    kept = [rule for rule in rules if rule.confidence >= min_confidence]
    return tuple(sorted(kept, key=lambda rule: (-rule.confidence, -rule.count, rule.antecedent, rule.consequent)))


def _rules_within(counts: ItemsetCounts | SingleCounts, items: tuple[str, ...]) -> Iterator[AssociationRule]:
    count, baskets = counts.count(items), counts.count(())
    for size in range(1, len(items)):
        for antecedent in combinations(items, size):
            consequent = tuple(item for item in items if item not in antecedent)
            antecedent_count, frequency = counts.count(antecedent), counts.count(consequent) / max(baskets, 1.0)
            if antecedent_count > 0 and count > 0 and frequency > 0:
                confidence = min(1.0, count / antecedent_count)
                error = _ratio_standard_error(counts, antecedent, items, confidence)
                yield AssociationRule(antecedent, consequent, count, confidence, error, confidence / frequency)


def _ratio_standard_error(
    counts: ItemsetCounts | SingleCounts, antecedent: tuple[str, ...], items: tuple[str, ...], confidence: float
) -> float:
    """The standard error of a quotient of counts whose noise may be correlated, to first order."""
    items_variance, antecedent_variance = counts.std(items) ** 2, counts.std(antecedent) ** 2
    covariance = counts.covariance(antecedent, items)
    variance = items_variance - 2 * confidence * covariance + confidence**2 * antecedent_variance
    return math.sqrt(max(variance, 0.0)) / counts.count(antecedent)
