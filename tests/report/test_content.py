"""The rows of the table of overall scores."""

from __future__ import annotations

import pytest

from dpsyn.marginals import Metric
from dpsyn.report.content import Better, ScoreRow


def make_row(synthetic: float, floor: float, independent: float, better: Better) -> ScoreRow:
    metric = Metric(synthetic=synthetic, floor=floor, independent=independent)
    return ScoreRow.from_metric("a score", metric, "{:.2f}".format, better)


@pytest.mark.parametrize(
    ("metric", "better", "position"),
    [
        ((0.2, 0.1, 0.5), "less", 0.25),
        ((0.05, 0.1, 0.5), "less", -0.125),
        ((0.9, 0.1, 0.5), "less", 2.0),
        ((80.0, 90.0, 50.0), "more", 0.25),
        ((0.2, 0.1, 0.5), "", None),  # neither direction is better
        ((0.2, 0.5, 0.1), "less", None),  # independent columns are no worse than the floor
        ((0.5, 0.1, 0.5), "less", 1.0),
    ],
)
def test_a_score_has_a_position_between_its_baselines(
    metric: tuple[float, float, float], better: Better, position: float | None
) -> None:
    assert make_row(*metric, better).position == (None if position is None else pytest.approx(position))


def test_a_one_way_marginal_has_no_independent_baseline() -> None:
    metric = Metric(synthetic=0.2, floor=0.1, independent=0.5)

    row = ScoreRow.from_metric("a score", metric, "{:.2f}".format, "less", ways=1)

    assert row.texts == ("0.20", "0.10", "–")
    assert row.position is None


def test_a_score_beyond_the_independent_baseline_is_worse_than_shuffled() -> None:
    assert make_row(0.6, 0.1, 0.5, "less").is_worse_than_shuffled
    assert make_row(40.0, 90.0, 50.0, "more").is_worse_than_shuffled
    assert not make_row(0.5, 0.1, 0.5, "less").is_worse_than_shuffled
    assert not make_row(0.6, 0.1, 0.5, "").is_worse_than_shuffled


def test_a_score_is_formatted_with_its_baselines() -> None:
    assert make_row(0.2, 0.1, 0.5, "less").texts == ("0.20", "0.10", "0.50")
