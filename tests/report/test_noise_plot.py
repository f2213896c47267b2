from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.accounting.noise_comparison import NOISE_METHODS
from dpsyn.cli.compare_noise import MECHANISM_NOTES
from dpsyn.errors import OutputError
from dpsyn.report.noise_plot import LINE_STYLES, plot_noise, spread_labels

GAP = 0.062


def test_every_mechanism_has_a_line_style_and_a_note() -> None:
    assert set(LINE_STYLES) == set(MECHANISM_NOTES) == set(NOISE_METHODS)
    assert len(set(LINE_STYLES.values())) == len({color for color, _ in LINE_STYLES.values()}) == 6


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_labels_stay_in_order_with_a_gap_between_them(heights: list[float]) -> None:
    label_heights = spread_labels(dict(zip("abcdef", heights, strict=False)))

    assert len(label_heights) == len(heights)
    assert all(above - below >= GAP - 1e-6 for below, above in pairwise(label_heights))


def test_labels_that_do_not_overlap_stay_at_their_lines() -> None:
    assert spread_labels({"a": 0.5, "b": 0.1, "c": 0.9}) == [0.1, 0.5, 0.9]


def test_another_file_format_is_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"neither a \.png nor a \.svg"):
        plot_noise(tmp_path / "a.pdf", [1], {}, guarantee=(1, 1e-9), chosen=1, crossover=None)

    assert list(tmp_path.iterdir()) == []


def test_plotting_leaves_no_global_state(tmp_path: Path) -> None:
    import matplotlib

    previous = dict(matplotlib.rcParams)

    plot_noise(tmp_path / "a.svg", [1, 5], {"Gaussian, exact": [1, 2]}, guarantee=(1, 1e-9), chosen=5, crossover=None)

    assert dict(matplotlib.rcParams) == previous
