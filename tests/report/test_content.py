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
        ((0.5, 0.1, 0.5), "less", None),  # a one-way marginal: shuffling does not change it
    ],
)
def test_a_score_has_a_position_between_its_baselines(
    metric: tuple[float, float, float], better: Better, position: float | None
) -> None:
    assert make_row(*metric, better).position == (None if position is None else pytest.approx(position))


def test_a_score_is_formatted_with_its_baselines() -> None:
    assert make_row(0.2, 0.1, 0.5, "less").texts == ("0.20", "0.10", "0.50")
