"""The plot of a forecast: expected errors against ε, between shuffled columns and the sampling error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpsyn.report.noise_plot import check_picture_suffix, new_figure, save_figure
from dpsyn.report.numbers import format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpsyn.forecasts.results import Forecast

_BLUE, _ORANGE, _GREEN, _INK = "#0072B2", "#D55E00", "#009E73", "#222222"


def plot_forecast(path: Path, forecast: Forecast) -> None:
    """Plot the two-way error of a forecast, with its range and its baselines, into a PNG or SVG file."""
    check_picture_suffix(path)
    figure = new_figure()
    axes = figure.add_axes((0.085, 0.12, 0.63, 0.70))
    epsilons = [budget.epsilon for budget in forecast.budgets]
    ranges = [budget.two_way_range for budget in forecast.budgets]
    axes.fill_between(epsilons, [low for low, _ in ranges], [high for _, high in ranges], color=_BLUE, alpha=0.15)
    errors = [budget.moderate for budget in forecast.budgets]
    _draw_line(axes, epsilons, [each.two_way for each in errors], _BLUE, "-", "two-way error\nshaded: weak to strong")
    _draw_line(axes, epsilons, [each.one_way for each in errors], _GREEN, "--", "one-way error")
    _draw_line(axes, epsilons, [each.shuffled for each in errors], _ORANGE, "-.", "shuffled columns")
    _draw_line(axes, epsilons, [each.sampling for each in errors], _INK, ":", "sampling error")
    _draw_axes(axes, epsilons)
    words = f"{forecast.rows:,} rows × {forecast.attribute_count} columns, recipe {forecast.recipe}"
    figure.text(0.035, 0.935, "What will a release be worth?", fontsize=16, fontweight="bold", color=_INK, va="center")
    figure.text(
        0.035, 0.88, f"Expected share of rows in the wrong cell; {words}", fontsize=11.5, color="#555555", va="center"
    )
    save_figure(figure, path)


def _draw_line(axes: Axes, epsilons: list[float], values: list[float], color: str, style: str, label: str) -> None:
    axes.plot(epsilons, values, color=color, linestyle=style, linewidth=2, marker="o", markersize=4, label=label)


def _draw_axes(axes: Axes, epsilons: list[float]) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(epsilons)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_number(value, 3)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_number(value, 3)))
    axes.grid(color="#e6e6e6", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("ε", fontsize=11, color=_INK)
    axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), frameon=False, fontsize=10.5)
