"""The plot that compares noise mechanisms: standard deviation per cell against the number of marginals."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    "Laplace, zCDP as in the paper": ("#CC79A7", ":"),
    "Laplace, zCDP": ("#CC79A7", "-."),
    "Gaussian, advanced composition": ("#56B4E9", "--"),
    "Gaussian, zCDP as in the paper": ("#009E73", ":"),
    "Gaussian, zCDP": ("#009E73", "-."),
    "Gaussian, exact": ("#0072B2", "-"),
}
"""Color and line of each mechanism. Okabe and Ito's colors are distinguishable with every kind of color vision."""

_INK, _FAINT = "#222222", "#8a8a8a"
_LABEL_GAP = 0.062
"""The smallest distance between two labels, as a fraction of the height of the axes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisePanel:
    """What is plotted for one budget.

    Attributes:
        epsilon: ε of all marginals together.
        delta: their δ.
        marginals: numbers of marginals, increasing.
        stds: for each mechanism the standard deviation per cell for each number of marginals.
        crossings: the number of marginals above which Laplace noise is no longer the smallest, by ``exact`` accounting
            and as the ``paper`` converts ρ; empty if there is none.
    """

    epsilon: float
    delta: float
    marginals: Sequence[int]
    stds: Mapping[str, Sequence[float]]
    crossings: Mapping[str, float]

    @property
    def title(self) -> str:
        """The budget."""
        return f"ε = {format_number(self.epsilon)} and δ = {format_number(self.delta)}"

    def crossing(self, accounting: str) -> tuple[float, float] | None:
        """The number of marginals and the standard deviation at which the lines cross, if they do in the plot.

        Noise with basic composition is in proportion to the number of marginals.
        """
        crossing = self.crossings.get(accounting)
        if crossing is None or not self.marginals[0] <= crossing <= self.marginals[-1]:
            return None
        return crossing, crossing * self.stds["Laplace, basic composition"][0] / self.marginals[0]


def plot_noise(path: Path, panels: Sequence[NoisePanel], *, chosen: int, relation: str, columns: int = 1) -> None:
    """Plot one line per noise mechanism into a PNG or SVG file; several budgets get a panel each.

    Args:
        path: the file; its suffix gives the format.
        panels: one for each budget; ``chosen`` is one of the numbers of marginals of each.
        chosen: the number of marginals to mark.
        relation: how neighboring tables differ, in words.
        columns: how many panels stand side by side; every row of panels is full.
    """
    check_picture_suffix(path)
    if len(panels) == 1:
        figure = _plot_one(panels[0], chosen, relation)
    else:
        figure = _plot_grid(panels, chosen, relation, columns)
    save_figure(figure, path)


def _plot_one(panel: NoisePanel, chosen: int, relation: str) -> Figure:
    """One budget: each line has its name at its end."""
    figure = new_figure()
    axes = figure.add_axes((0.085, 0.12, 0.63, 0.70))
    _draw_curves(axes, panel)
    _draw_axes(axes, panel.marginals)
    _draw_labels(axes, {name: line[-1] for name, line in panel.stds.items()})
    _mark_chosen(axes, chosen, panel)
    if crossing := panel.crossing("exact"):
        _mark_crossing(axes, *crossing)
    _draw_title(figure, 0.935, 0.88, f"{panel.title} for all marginals together; {relation}")
    return figure


def _plot_grid(panels: Sequence[NoisePanel], chosen: int, relation: str, columns: int) -> Figure:
    """Several budgets: a panel for each, and one legend below."""
    rows = len(panels) // columns
    figure = new_figure(width=max(10.0, 5.4 * columns), height=2.4 + 3.6 * rows)
    height = float(figure.get_size_inches()[1])
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True)
    figure.subplots_adjust(
        left=0.07, right=0.975, top=1 - 1.35 / height, bottom=1.55 / height, hspace=0.24, wspace=0.16
    )
    for number, (axes, panel) in enumerate(zip(grid.flat, panels, strict=True)):
        _draw_curves(axes, panel)
        _draw_axes(axes, panel.marginals)
        axes.set_xlabel("number of marginals measured" if number >= len(panels) - columns else "", fontsize=11)
        axes.set_title(panel.title, fontsize=12, color=_INK, loc="left")
        axes.axvline(chosen, color=_INK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        _mark_both_crossings(axes, panel)
    lines, names = grid.flat[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="lower center", ncols=3, frameon=False, fontsize=10.5, handlelength=3.5)
    _draw_title(figure, 1 - 0.4 / height, 1 - 0.75 / height, f"dashed: {format_count(chosen, 'marginal')}; {relation}")
    return figure


def check_picture_suffix(path: Path) -> None:
    """Refuse a file name without the suffix of a plot format."""
    if path.suffix.lower() not in PICTURE_SUFFIXES:
        raise OutputError(f"{path} is neither a .png nor a .svg file; give the plot a name that ends in one of these")


def new_figure(width: float = 10, height: float = 6) -> Figure:
    """An empty figure, its size in inches; a MissingExtraError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "a plot") from None
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # its messages about the font cache are noise
    return Figure(figsize=(width, height), facecolor="white")


def _draw_curves(axes: Axes, panel: NoisePanel) -> None:
    for name, line in panel.stds.items():
        color, style = LINE_STYLES[name]
        axes.plot(
            panel.marginals, line, color=color, linestyle=style, linewidth=2.8 if style == "-" else 1.7, label=name
        )


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


def _mark_chosen(axes: Axes, chosen: int, panel: NoisePanel) -> None:
    at = {name: line[panel.marginals.index(chosen)] for name, line in panel.stds.items()}
    best = min(at, key=lambda name: at[name])
    words = f"{format_count(chosen, 'marginal')}: {format_number(at[best], 3)} at best"
    low, high = axes.get_xlim()
    right_half = chosen > (low * high) ** 0.5
    axes.axvline(chosen, color=_INK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    axes.plot([chosen], [at[best]], "o", markersize=9, color=LINE_STYLES[best][0], markeredgecolor="white", zorder=5)
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


def _mark_crossing(axes: Axes, crossing: float, std: float) -> None:
    x, y = (axes.transScale + axes.transLimits).transform((crossing, std))
    axes.plot([crossing], [std], "o", markersize=9, markerfacecolor="white", markeredgecolor=_INK, zorder=5)
    axes.annotate(
        f"Laplace is smaller\nup to {format_count(int(crossing), 'marginal')}",
        (crossing, std),
        xytext=(x + 0.1, max(y - 0.22, 0.13)),  # this area, below the Gaussian lines and right of Laplace, is empty
        textcoords="axes fraction",
        fontsize=10.5,
        color=_INK,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 2},
        arrowprops={"arrowstyle": "-", "color": _FAINT, "relpos": (0, 1), "shrinkA": 0, "shrinkB": 6},
    )


def _mark_both_crossings(axes: Axes, panel: NoisePanel) -> None:
    """Mark where Laplace and Gaussian noise cross, as the paper converts ρ and by exact accounting."""
    words = []
    for accounting, name, fill in (("paper", "as in the paper", "white"), ("exact", "exact", _INK)):
        if crossing := panel.crossing(accounting):
            axes.plot(*crossing, "o", markersize=7, markerfacecolor=fill, markeredgecolor=_INK, zorder=5)
            words.append(f"{'○' if fill == 'white' else '●'} {crossing[0]:.0f} {name}")
    if words:
        axes.text(
            0.97,
            0.06,
            "\n".join(["Laplace and Gaussian cross at", *words]),
            transform=axes.transAxes,
            ha="right",
            fontsize=10,
            color=_INK,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 2},
        )


def _draw_title(figure: Figure, top: float, below: float, words: str) -> None:
    left = 0.035
    figure.text(
        left, top, "How much noise does each count get?", fontsize=16, fontweight="bold", color=_INK, va="center"
    )
    figure.text(
        left, below, f"Standard deviation per cell, in rows; {words}", fontsize=11.5, color="#555555", va="center"
    )


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure at once, as PNG or SVG; the same figure gives the same file."""
    import matplotlib

    kind = path.suffix.lower().removeprefix(".")
    metadata = {"Date": None} if kind == "svg" else {"Software": "DPSyn"}
    with atomic_write(path) as beside, matplotlib.rc_context({"svg.hashsalt": "dpsyn"}):
        figure.savefig(beside, format=kind, dpi=160, metadata=metadata)
