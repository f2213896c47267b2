"""``dpsyn compare-noise``: how much noise a privacy budget means for K marginals, and which mechanism to use."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

import dpsyn
from dpsyn.cli import output
from dpsyn.cli.common_options import common_options
from dpsyn.report.noise_plot import check_picture_suffix, plot_noise
from dpsyn.report.numbers import format_count, format_number

MECHANISM_NOTES = {
    "Laplace, basic composition": "ε is divided among the marginals; needs no δ",
    "Laplace, advanced composition": "the classical improvement for many marginals; needs a δ",
    "Laplace, zCDP": "the same noise, costs composed more tightly",
    "Gaussian, advanced composition": "the textbook formula for Gaussian noise",
    "Gaussian, zCDP": "costs added up as ρ, then converted to (ε, δ)",
    "Gaussian, exact": "all marginals accounted as one Gaussian, without loss",
}
"""What each way of adding noise is, in a few words."""

_STDS_WITHIN_95 = {"Laplace": math.log(20) / math.sqrt(2), "Gaussian": 1.95996}
"""The number of standard deviations within which 95 % of the noise lies."""


@click.command()
@common_options(
    "epsilon",
    "delta",
    epsilon={"help": "ε of the privacy guarantee; a smaller ε protects more."},
    delta={"default": 1e-9, "help": "δ of the privacy guarantee; 0 leaves only one way.  [default: 1e-9]"},
)
@click.option(
    "--marginals",
    required=True,
    type=click.IntRange(1, 1_000_000),
    metavar="K",
    help="Number of marginals that will be released.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also plot it, into a .png or .svg file, which is overwritten; needs the extra dpsyn[plot].",
)
@common_options("json")
def command(epsilon: float, delta: float, marginals: int, plot: Path | None, as_json: bool) -> None:
    """Compare six ways to add noise to K marginals, and recommend one.

    A marginal is a table of counts over a few columns. All K of them share the privacy budget (ε, δ) equally, so more
    marginals mean more noise in each. Nothing private is read: this is arithmetic.

    The figures are for protecting one row, added or removed. If up to r rows of a person are protected, multiply them
    by r.

    \b
      dpsyn compare-noise --epsilon 1 --marginals 50
      dpsyn compare-noise --epsilon 0.5 --delta 1e-8 --marginals 10 --plot noise.png
      dpsyn compare-noise --epsilon 1 --delta 0 --marginals 5        pure ε: Laplace noise only
    """
    comparison = _compare_mechanisms(epsilon, delta, marginals)
    if plot:
        _plot(plot, comparison)
    if as_json:
        output.print_json(comparison)
        return
    _show_comparison(comparison)
    if plot:
        output.print_written(str(plot))


def _compare_mechanisms(epsilon: float, delta: float, marginals: int) -> dict[str, Any]:
    """Everything that is printed, as plain data."""
    choices = dpsyn.compare_noise_mechanisms(epsilon, delta, marginals)
    best = min(choice.std for choice in choices)
    return {
        "epsilon": epsilon,
        "delta": delta,
        "marginals": marginals,
        "ways": [
            {
                "name": choice.name,
                "standard_deviation": choice.std,
                "times_the_best": choice.std / best,
                "what_it_is": MECHANISM_NOTES[choice.name],
                "recommended": choice.recommended,
            }
            for choice in choices
        ],
        "crossing": dpsyn.laplace_gaussian_crossover(epsilon, delta) if delta else None,
    }


def _show_comparison(comparison: dict[str, Any]) -> None:
    guarantee = f"ε = {format_number(comparison['epsilon'])}, δ = {format_number(comparison['delta'])}"
    rows = [
        (way["name"], format_number(way["standard_deviation"], 4), f"{way['times_the_best']:.2f}", way["what_it_is"])
        for way in comparison["ways"]
    ]
    output.print_table(
        f"Standard deviation of each count for {format_count(comparison['marginals'], 'marginal')}, {guarantee}",
        ("way", "std", "× best", "what it is"),
        rows,
        right=(1, 2),
    )
    output.print_line(_advice(next(way for way in comparison["ways"] if way["recommended"])))
    output.print_line(_crossover_text(comparison["crossing"]))


def _advice(best: dict[str, Any]) -> str:
    noise, way = best["name"].split(", ")
    reach = format_number(best["standard_deviation"] * _STDS_WITHIN_95[noise], 3)
    return (
        f"Use {noise} noise ({way}): the error of 95 % of the counts will be less than {reach} rows.\n"
        f"Cells with fewer rows than that are mostly noise; fewer marginals or larger cells help."
    )


def _crossover_text(crossover: float | None) -> str:
    if crossover is None:
        return "Without a δ there is one way only. With a δ such as 1e-9, Gaussian noise is smaller for many marginals."
    if crossover < 1:
        return "With this budget, Gaussian noise is smaller for any number of marginals."
    few = format_count(math.floor(crossover), "marginal")
    return f"With this budget, Laplace noise is smaller for up to {few}, Gaussian noise for more."


def _plot(path: Path, comparison: dict[str, Any]) -> None:
    """Plot every way for 1 to 200 marginals, or up to twice the number asked for and the crossover."""
    check_picture_suffix(path)
    guarantee, chosen = (comparison["epsilon"], comparison["delta"]), comparison["marginals"]
    crossover = comparison["crossing"]
    largest = max(200, 2 * chosen, math.ceil(2 * (crossover or 1)))
    counts = sorted({chosen, *(round(largest ** (step / 60)) for step in range(61))})
    lines: dict[str, list[float]] = {}
    with output.show_status("Plotting"):
        for choice in (choice for count in counts for choice in dpsyn.compare_noise_mechanisms(*guarantee, count)):
            lines.setdefault(choice.name, []).append(choice.std)
        plot_noise(path, counts, lines, guarantee=guarantee, chosen=chosen, crossover=crossover)
