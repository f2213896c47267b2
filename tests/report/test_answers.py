"""Answers to queries as text."""

from __future__ import annotations

import numpy as np

from dpsyn.query import Answer
from dpsyn.report.answers import answer_headings, answer_lines, answer_rows


def test_a_small_count_is_not_shown_as_zero() -> None:
    counts, errors = np.array([0.0056, 0.0, 7.25, 1234.0]), np.array([0.0018, 0.0, 1.0, 50.0])
    answer = Answer(
        attributes=("job",),
        labels=(("a", "b", "c", "d"),),
        counts=counts,
        standard_errors=errors,
        interval_centers=counts,
        model_errors=np.zeros(4),
        source="covered",
    )

    shown = [(count, error) for _, count, error, _ in answer_rows(answer, 0.95)]

    assert shown == [("0.006", "0.002"), ("0.0", "0.0"), ("7.2", "1.0"), ("1,234", "50.0")]


def test_the_noise_of_a_reconstructed_count_is_shown_beside_its_error() -> None:
    answer = Answer(
        attributes=("job",),
        labels=(("a", "b"),),
        counts=np.array([700.0, 10.0]),
        standard_errors=np.array([30.0, 30.0]),
        interval_centers=np.array([700.0, 10.0]),
        model_errors=np.array([40.0, 40.0]),
        source="reconstructed",
    )

    assert answer_headings(answer, 0.95) == ("job", "count", "± standard error", "of which noise", "95 % interval")
    assert answer_rows(answer, 0.95) == [
        ("a", "700", "50.0", "30.0", "602 … 798"), ("b", "10.0", "50.0", "30.0", "0.0 … 108"),
    ]  # fmt: skip
    assert "include the model error" in answer_lines(answer, 0.95)[1]
    assert "about 40 rows (root mean square)" in answer_lines(answer, 0.95)[1]
