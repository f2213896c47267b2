"""A real and a synthetic table → scores. Everything here is private and says so."""

from dpsyn.evaluation.results import (
    NOT_THE_GUARANTEE,
    NOTICE,
    Association,
    AttributeScore,
    ClassifierScore,
    ContestScore,
    Correlations,
    Distances,
    Evaluation,
    Figure,
    IdenticalRows,
    IncomeScore,
    PairScore,
    PairTable,
    RegionScore,
)

__all__ = [
    "NOTICE",
    "NOT_THE_GUARANTEE",
    "Association",
    "AttributeScore",
    "ClassifierScore",
    "ContestScore",
    "Correlations",
    "Distances",
    "Evaluation",
    "Figure",
    "IdenticalRows",
    "IncomeScore",
    "PairScore",
    "PairTable",
    "RegionScore",
]
