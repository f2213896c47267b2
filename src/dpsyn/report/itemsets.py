"""Frequent itemsets and rules as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsyn.report.numbers import counted, plain

if TYPE_CHECKING:
    from dpsyn.synopsis import Itemsets

ITEMSET_HEADINGS = ("", "items", "baskets", "±", "part")
"""The columns of ``itemset_rows``; all but the second are numbers."""

RULE_HEADINGS = ("given → then", "confidence", "±", "lift", "baskets")
"""The columns of ``rule_rows``; all but the first are numbers."""


def itemset_title(found: Itemsets) -> str:
    """How many itemsets there are, of how many baskets."""
    return f"{counted(len(found.listed), 'itemset')} of about {round(found.baskets):,} baskets"


def itemset_rows(found: Itemsets) -> list[tuple[str, ...]]:
    """A row of text for every itemset: its rank, items, count, standard error and part of the baskets."""
    return [
        (
            str(rank),
            ", ".join(itemset.items),
            plain(round(itemset.count)),
            plain(itemset.deviation, 2),
            _part(itemset.frequency),
        )
        for rank, itemset in enumerate(found.listed, start=1)
    ]


def rule_rows(found: Itemsets, confidence: float) -> list[tuple[str, ...]]:
    """A row of text for every rule of at least some confidence."""
    return [
        (
            f"{', '.join(rule.given)} → {', '.join(rule.then)}",
            _part(rule.confidence),
            _part(rule.standard_error),
            plain(rule.lift, 3),
            plain(round(rule.count)),
        )
        for rule in found.rules(confidence)
    ]


def _part(share: float) -> str:
    return f"{100 * share:.1f} %"
