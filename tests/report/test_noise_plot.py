from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.accounting.noise_comparison import NOISE_METHODS
from dpsyn.cli.compare_noise import MECHANISM_NOTES
from dpsyn.errors import OutputError
from dpsyn.report.noise_plot import LINE_STYLES, NoisePanel, plot_noise, spread_labels

GAP = 0.062

PANEL = NoisePanel(
    epsilon=1,
    delta=1e-9,
    marginals=[1, 5],
    stds={"Laplace, basic composition": [1, 5], "Gaussian, exact": [2, 4]},
    crossings={"paper": 4.0, "exact": 3.0},
)


def test_every_mechanism_has_a_line_style_and_a_note() -> None:
    assert set(LINE_STYLES) == set(MECHANISM_NOTES) == set(NOISE_METHODS)
    assert len(set(LINE_STYLES.values())) == len(LINE_STYLES) == 8


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_labels_stay_in_order_with_a_gap_between_them(heights: list[float]) -> None:
    label_heights = spread_labels(dict(zip("abcdef", heights, strict=False)))

    assert len(label_heights) == len(heights)
    assert all(above - below >= GAP - 1e-6 for below, above in pairwise(label_heights))


def test_labels_that_do_not_overlap_stay_at_their_lines() -> None:
    assert spread_labels({"a": 0.5, "b": 0.1, "c": 0.9}) == [0.1, 0.5, 0.9]


def test_another_file_format_is_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"neither a \.png nor a \.svg"):
        plot_noise(tmp_path / "a.pdf", [PANEL], chosen=1, relation="")

    assert list(tmp_path.iterdir()) == []


def test_plotting_leaves_no_global_state(tmp_path: Path) -> None:
    import matplotlib

    previous = dict(matplotlib.rcParams)

    plot_noise(tmp_path / "a.svg", [PANEL], chosen=5, relation="one row replaced")

    assert dict(matplotlib.rcParams) == previous


def test_a_crossing_lies_on_the_line_of_laplace_noise_and_outside_of_the_plot_there_is_none() -> None:
    assert PANEL.crossing("exact") == (3.0, 3.0)
    assert PANEL.crossing("zcdp") is None
    assert replace(PANEL, crossings={"exact": 7.0}).crossing("exact") is None


@pytest.mark.parametrize("columns", [1, 3])
def test_several_budgets_have_a_panel_each_with_both_crossings(columns: int, tmp_path: Path) -> None:
    panels = [replace(PANEL, epsilon=epsilon) for epsilon in (0.5, 1, 2)]

    plot_noise(tmp_path / "a.svg", panels, chosen=5, relation="one row replaced", columns=columns)

    text = (tmp_path / "a.svg").read_text("utf-8")  # text is drawn as glyphs; its source is in comments
    assert [text.count(f"<!-- ε = {epsilon} and δ = 1e-9 -->") for epsilon in ("0.5", "1", "2")] == [1, 1, 1]
    assert (text.count("4 as in the paper"), text.count("3 exact"), text.count("<!-- Gaussian, exact -->")) == (3, 3, 1)
