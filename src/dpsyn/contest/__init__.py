"""Contests on generated data: a public process, a hidden seed, submissions and their ranking."""

from dpsyn.contest.ranking import ContestRanking, SubmissionScore, SubmissionScores, score_submissions
from dpsyn.contest.terms import Contest, make_contest

__all__ = [
    "Contest",
    "ContestRanking",
    "SubmissionScore",
    "SubmissionScores",
    "make_contest",
    "score_submissions",
]
