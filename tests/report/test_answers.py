"""Answers to queries as text."""

from __future__ import annotations

import numpy as np

from dpsyn.query import Answer
from dpsyn.report.answers import answer_rows


def test_a_small_count_is_not_shown_as_zero() -> None:
    counts, errors = np.array([0.0056, 0.0, 7.25, 1234.0]), np.array([0.0018, 0.0, 1.0, 50.0])
    answer = Answer(
        attributes=("job",),
        labels=(("a", "b", "c", "d"),),
        counts=counts,
        standard_errors=errors,
        interval_centers=counts,
        source="covered",
    )

    shown = [(count, error) for _, count, error, _ in answer_rows(answer, 0.95)]

    assert shown == [("0.006", "0.002"), ("0.0", "0.0"), ("7.2", "1.0"), ("1,234", "50.0")]
