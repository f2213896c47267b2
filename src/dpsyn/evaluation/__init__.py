"""A real and a synthetic table → scores. Everything here is private and says so."""

from dpsyn.evaluation._evaluate import evaluate
from dpsyn.evaluation.nist_contest import PRESETS, Preset, combine_scores
from dpsyn.evaluation.results import (
    EVALUATION_NOTICE,
    IDENTICAL_ROWS_NOTE,
    Association,
    AttributeScore,
    ClassifierScore,
    ContestScore,
    Correlations,
    Distances,
    Evaluation,
    IdenticalRows,
    IncomeScore,
    Metric,
    PairScore,
    PairTable,
    RegionScore,
)

__all__ = [
    "EVALUATION_NOTICE",
    "IDENTICAL_ROWS_NOTE",
    "PRESETS",
    "Association",
    "AttributeScore",
    "ClassifierScore",
    "ContestScore",
    "Correlations",
    "Distances",
    "Evaluation",
    "IdenticalRows",
    "IncomeScore",
    "Metric",
    "PairScore",
    "PairTable",
    "Preset",
    "RegionScore",
    "combine_scores",
    "evaluate",
]
