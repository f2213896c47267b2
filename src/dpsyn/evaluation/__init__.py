"""A real and a synthetic table → scores. Everything here is private and says so."""

from dpsyn.evaluation.contest import combined_score
from dpsyn.evaluation.evaluate import evaluate
from dpsyn.evaluation.presets import PRESETS, Preset
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
    "PRESETS",
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
    "Preset",
    "RegionScore",
    "combined_score",
    "evaluate",
]
