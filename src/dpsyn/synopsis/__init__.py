"""The released artefact: what was measured, what it cost, and the rows that can be drawn from it."""

from dpsyn.synopsis.closeness import AttributeCloseness, Closeness, Gap, MarginalCloseness, PairCloseness, PairShares
from dpsyn.synopsis.comparing import compare_rows
from dpsyn.synopsis.frames import kind_of
from dpsyn.synopsis.itemsets import Itemset, Itemsets
from dpsyn.synopsis.modelling import estimated_rows, fit_model, single_estimate
from dpsyn.synopsis.parts import Method, Model, Release, Scores, Stage
from dpsyn.synopsis.rules import Rule
from dpsyn.synopsis.synopsis import Kind, Synopsis

__all__ = [
    "AttributeCloseness",
    "Closeness",
    "Gap",
    "Itemset",
    "Itemsets",
    "Kind",
    "MarginalCloseness",
    "Method",
    "Model",
    "PairCloseness",
    "PairShares",
    "Release",
    "Rule",
    "Scores",
    "Stage",
    "Synopsis",
    "compare_rows",
    "estimated_rows",
    "fit_model",
    "kind_of",
    "single_estimate",
]
