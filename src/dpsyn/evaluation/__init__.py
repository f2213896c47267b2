"""The real table and a synthetic one → metrics. All results are private; every output states it."""

from dpsyn.evaluation._evaluate import evaluate
from dpsyn.evaluation.nist_contest import PRESETS, IncomeColumns, Preset, combine_scores
from dpsyn.evaluation.results import (
    EVALUATION_NOTICE,
    IDENTICAL_ROWS_NOTE,
    ClassifierScore,
    ContestScore,
    Correlations,
    Distances,
    Evaluation,
    IdenticalRows,
    IncomeScore,
    RegionScore,
)

__all__ = [
    "EVALUATION_NOTICE",
    "IDENTICAL_ROWS_NOTE",
    "PRESETS",
    "ClassifierScore",
    "ContestScore",
    "Correlations",
    "Distances",
    "Evaluation",
    "IdenticalRows",
    "IncomeColumns",
    "IncomeScore",
    "Preset",
    "RegionScore",
    "combine_scores",
    "evaluate",
]
