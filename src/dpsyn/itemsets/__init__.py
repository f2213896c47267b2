"""Frequent itemsets of baskets by PrivBasis, and what is computed from its bases: counts and association rules."""

from dpsyn.itemsets.association_rules import AssociationRule, find_association_rules
from dpsyn.itemsets.counts import ItemsetCounts
from dpsyn.itemsets.frequent import frequent_itemsets
from dpsyn.itemsets.privbasis import PrivBasis, privbasis
from dpsyn.itemsets.result import FrequentItemsets, Itemset

__all__ = [
    "AssociationRule",
    "FrequentItemsets",
    "Itemset",
    "ItemsetCounts",
    "PrivBasis",
    "find_association_rules",
    "frequent_itemsets",
    "privbasis",
]
