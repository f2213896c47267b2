"""Statements about synthetic tables that may be published, and the choice among candidates: both spend budget."""

from dpsyn.assessment._choose import Choice, choose
from dpsyn.assessment._release_evaluation import release_evaluation
from dpsyn.assessment.criteria import Criteria
from dpsyn.assessment.results import (
    CriterionResult,
    GroupDistance,
    ReleasedDistance,
    ReleasedEvaluation,
    ReleasedFigure,
)

__all__ = [
    "Choice",
    "Criteria",
    "CriterionResult",
    "GroupDistance",
    "ReleasedDistance",
    "ReleasedEvaluation",
    "ReleasedFigure",
    "choose",
    "release_evaluation",
]
