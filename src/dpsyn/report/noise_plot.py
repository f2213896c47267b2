"""The plot that compares noise mechanisms: standard deviation per cell against the number of marginals."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dpsyn.atomic_files import atomic_write
from dpsyn.errors import MissingExtraError, OutputError
from dpsyn.report.numbers import format_count, format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURE_SUFFIXES = (".png", ".svg")
"""The file formats of a plot."""

LINE_STYLES: dict[str, tuple[str, str]] = {
    "Laplace, basic composition": ("#D55E00", "-"),
    "Laplace, advanced composition": ("#E69F00", "--"),
    "Laplace, zCDP": ("#CC79A7", "-."),
    "Gaussian, advanced composition": ("#56B4E9", "--"),
    "Gaussian, zCDP": ("#009E73", "-."),
    "Gaussian, exact": ("#0072B2", "-"),
}
"""Color and line of each mechanism. Okabe and Ito's colors are distinguishable with every kind of color vision."""

_INK, _FAINT = "#222222", "#8a8a8a"
_LABEL_GAP = 0.062
"""The smallest distance between two labels, as a fraction of the height of the axes."""


def plot_noise(
    path: Path,
    marginals: Sequence[int],
    stds: Mapping[str, Sequence[float]],
    *,
    guarantee: tuple[float, float],
    chosen: int,
    crossover: float | None,
) -> None:
    """Plot one line per noise mechanism into a PNG or SVG file.

    Args:
        path: the file; its suffix gives the format.
        marginals: numbers of marginals, increasing; ``chosen`` is one of them.
        stds: for each mechanism the standard deviation per cell for each number of marginals.
        guarantee: ε and δ.
        chosen: the number of marginals to mark.
        crossover: the number of marginals above which Laplace noise is no longer the smallest; None if there is none.
    """
    check_picture_suffix(path)
    figure = new_figure()
    axes = figure.add_axes((0.085, 0.12, 0.63, 0.70))
    _draw_curves(axes, marginals, stds)
    _draw_axes(axes, marginals)
    _draw_labels(axes, {name: line[-1] for name, line in stds.items()})
    best = min(stds, key=lambda name: stds[name][marginals.index(chosen)])
    _mark_chosen(axes, chosen, best, stds[best][marginals.index(chosen)])
    if crossover is not None and marginals[0] <= crossover <= marginals[-1]:
        _mark_crossover(axes, crossover, 2**0.5 * crossover / guarantee[0])
    _draw_title(figure, *guarantee)
    save_figure(figure, path)


def check_picture_suffix(path: Path) -> None:
    """Refuse a file name without the suffix of a plot format."""
    if path.suffix.lower() not in PICTURE_SUFFIXES:
        raise OutputError(f"{path} is neither a .png nor a .svg file; give the plot a name that ends in one of these")


def new_figure() -> Figure:
    """An empty figure; a MissingExtraError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "a plot") from None
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # its messages about the font cache are noise
    return Figure(figsize=(10, 6), facecolor="white")


def _draw_curves(axes: Axes, marginals: Sequence[int], stds: Mapping[str, Sequence[float]]) -> None:
    for name, line in stds.items():
        color, style = LINE_STYLES[name]
        axes.plot(marginals, line, color=color, linestyle=style, linewidth=2.8 if style == "-" else 1.7)


def _draw_axes(axes: Axes, marginals: Sequence[int]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(marginals[0], marginals[-1])
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        wide = high / low > 2e4
        axis.set_major_locator(LogLocator(base=10, subs=(1,) if wide else (1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: format_number(value)))
        axis.set_minor_locator(LogLocator(base=10, subs=()))
    axes.set_axisbelow(True)
    axes.grid(color="#e6e6e6", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_FAINT)
    axes.tick_params(colors=_INK, length=0, labelsize=10)
    axes.set_xlabel("number of marginals measured", fontsize=11, color=_INK, labelpad=8)


def _draw_labels(axes: Axes, ends: Mapping[str, float]) -> None:
    """Name each line at its right end; names of lines that end close together are moved apart."""
    to_axes = axes.transScale + axes.transLimits
    heights = {name: float(to_axes.transform((axes.get_xlim()[1], end))[1]) for name, end in ends.items()}
    order = sorted(heights.items(), key=lambda pair: pair[1])
    for (name, height), label_height in zip(order, spread_labels(heights), strict=True):
        color = LINE_STYLES[name][0]
        pointer = [height, label_height]
        axes.plot([1.0, 1.025], pointer, color=color, linewidth=1, transform=axes.transAxes, clip_on=False)
        axes.text(1.032, label_height, name, color=color, fontsize=10.5, va="center", transform=axes.transAxes)


def spread_labels(heights: Mapping[str, float]) -> list[float]:
    """The heights from low to high, moved as little as possible so that labels do not overlap."""
    groups = [[height] for height in sorted(heights.values())]
    index = 1
    while index < len(groups):
        if _label_heights(groups[index])[0] - _label_heights(groups[index - 1])[-1] < _LABEL_GAP - 1e-9:
            groups[index - 1 : index + 1] = [groups[index - 1] + groups[index]]
            index = max(index - 1, 1)
        else:
            index += 1
    return [height for group in groups for height in _label_heights(group)]


def _label_heights(group: list[float]) -> list[float]:
    """The heights of adjacent labels: stacked, and centered at the mean of their lines."""
    middle = sum(group) / len(group)
    return [middle + _LABEL_GAP * (i - (len(group) - 1) / 2) for i in range(len(group))]


def _mark_chosen(axes: Axes, chosen: int, best: str, std: float) -> None:
    words = f"{format_count(chosen, 'marginal')}: {format_number(std, 3)} at best"
    low, high = axes.get_xlim()
    right_half = chosen > (low * high) ** 0.5
    axes.axvline(chosen, color=_INK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    axes.plot([chosen], [std], "o", markersize=9, color=LINE_STYLES[best][0], markeredgecolor="white", zorder=5)
    axes.annotate(
        words,
        (chosen, 0),
        xycoords=axes.get_xaxis_transform(),
        xytext=(-10 if right_half else 12, 10),
        textcoords="offset points",
        ha="right" if right_half else "left",
        fontsize=10.5,
        fontweight="bold",
        color=_INK,
    )


def _mark_crossover(axes: Axes, crossover: float, std: float) -> None:
    x, y = (axes.transScale + axes.transLimits).transform((crossover, std))
    axes.plot([crossover], [std], "o", markersize=9, markerfacecolor="white", markeredgecolor=_INK, zorder=5)
    axes.annotate(
        f"Laplace is smaller\nup to {format_count(int(crossover), 'marginal')}",
        (crossover, std),
        xytext=(x + 0.1, max(y - 0.22, 0.13)),  # this area, below the Gaussian lines and right of Laplace, is empty
        textcoords="axes fraction",
        fontsize=10.5,
        color=_INK,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 2},
        arrowprops={"arrowstyle": "-", "color": _FAINT, "relpos": (0, 1), "shrinkA": 0, "shrinkB": 6},
    )


def _draw_title(figure: Figure, epsilon: float, delta: float) -> None:
    figure.text(
        0.035, 0.935, "How much noise does each count get?", fontsize=16, fontweight="bold", color=_INK, va="center"
    )
    words = f"ε = {format_number(epsilon)} and δ = {format_number(delta)} for all marginals together"
    figure.text(
        0.035, 0.88, f"Standard deviation per cell, in rows; {words}", fontsize=11.5, color="#555555", va="center"
    )


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure at once, as PNG or SVG; the same figure gives the same file."""
    import matplotlib

    kind = path.suffix.lower().removeprefix(".")
    metadata = {"Date": None} if kind == "svg" else {"Software": "DPSyn"}
    with atomic_write(path) as beside, matplotlib.rc_context({"svg.hashsalt": "dpsyn"}):
        figure.savefig(beside, format=kind, dpi=160, metadata=metadata)
