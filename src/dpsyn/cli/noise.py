"""``dpsyn noise``: how much noise a promise costs, and which kind to take."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import click

import dpsyn
from dpsyn.cli import output
from dpsyn.report.noise_plot import check_picture_suffix, plot_noise
from dpsyn.report.numbers import format_count, format_number

MECHANISM_NOTES = {
    "Laplace, basic composition": "ε is divided among the marginals; needs no δ",
    "Laplace, advanced composition": "the classical saving, at the price of δ",
    "Laplace, zCDP": "the same noise, costs added up more tightly",
    "Gaussian, advanced composition": "the textbook formula for Gaussian noise",
    "Gaussian, zCDP": "costs added up as ρ, then converted",
    "Gaussian, exact": "all counted as one Gaussian; nothing is lost",
}
"""What each way is, in a few words."""

_STDS_WITHIN_95 = {"Laplace": math.log(20) / math.sqrt(2), "Gaussian": 1.95996}
"""Within so many standard deviations lie 95 of 100 draws."""


@click.command()
@click.option("--epsilon", required=True, type=float, metavar="E", help="ε of the promise; smaller protects more.")
@click.option(
    "--delta", default=1e-9, type=float, metavar="D", help="δ of the promise; 0 leaves only one way.  [default: 1e-9]"
)
@click.option(
    "--marginals",
    required=True,
    type=click.IntRange(1, 1_000_000),
    metavar="K",
    help="How many tables of counts will be released.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also draw it, into a .png or .svg file, which is overwritten; needs the extra dpsyn[plot].",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(epsilon: float, delta: float, marginals: int, plot: Path | None, as_json: bool) -> None:
    """Compare six ways to add noise to K marginals, and recommend one.

    A marginal is a table of counts over a few columns. All K of them together keep the promise (ε, δ), each with the
    same share, so the more there are the noisier is each. Nothing private is read: this is arithmetic.

    The figures are for protecting one row, added or removed. Where up to r rows of a person are protected, multiply
    them by r.

    \b
      dpsyn noise --epsilon 1 --marginals 50
      dpsyn noise --epsilon 0.5 --delta 1e-8 --marginals 10 --plot noise.png
      dpsyn noise --epsilon 1 --delta 0 --marginals 5        pure: Laplace noise only
    """
    found = _compare_mechanisms(epsilon, delta, marginals)
    if plot:
        _plot(plot, found)
    if as_json:
        output.print_line(json.dumps(found, indent=2, ensure_ascii=False))
        return
    _show_comparison(found)
    if plot:
        output.print_written(str(plot))


def _compare_mechanisms(epsilon: float, delta: float, marginals: int) -> dict[str, Any]:
    """All that is shown, as plain data."""
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


def _show_comparison(found: dict[str, Any]) -> None:
    promise = f"ε = {format_number(found['epsilon'])}, δ = {format_number(found['delta'])}"
    rows = [
        (way["name"], format_number(way["standard_deviation"], 4), f"{way['times_the_best']:.2f}", way["what_it_is"])
        for way in found["ways"]
    ]
    output.print_table(
        f"Standard deviation of each count for {format_count(found['marginals'], 'marginal')}, {promise}",
        ("way", "off by", "× best", "what it is"),
        rows,
        right=(1, 2),
    )
    output.print_line(_advice(next(way for way in found["ways"] if way["recommended"])))
    output.print_line(_crossover_text(found["crossing"]))


def _advice(best: dict[str, Any]) -> str:
    noise, way = best["name"].split(", ")
    reach = format_number(best["standard_deviation"] * _STDS_WITHIN_95[noise], 3)
    return (
        f"Take {noise} noise ({way}): 95 of 100 counts will be off by less than {reach} rows.\n"
        f"Cells that hold fewer rows than that are mostly noise; fewer marginals or larger cells help."
    )


def _crossover_text(crossover: float | None) -> str:
    if crossover is None:
        return "Without a δ there is no choice. A tiny one, such as 1e-9, lets Gaussian noise win for many marginals."
    if crossover < 1:
        return "With this promise Gaussian noise is the smaller for any number of marginals."
    few = format_count(math.floor(crossover), "marginal")
    return f"With this promise Laplace noise is the smaller for up to {few}, Gaussian noise for more."


def _plot(path: Path, found: dict[str, Any]) -> None:
    """Draw every way for 1 to 200 marginals, or as far as is needed to show this number of them."""
    check_picture_suffix(path)
    promise, chosen, crossing = (found["epsilon"], found["delta"]), found["marginals"], found["crossing"]
    most = max(200, 2 * chosen, math.ceil(2 * (crossing or 1)))
    numbers = sorted({chosen, *(round(most ** (step / 60)) for step in range(61))})
    lines: dict[str, list[float]] = {}
    with output.show_status("Drawing"):
        for choice in (choice for number in numbers for choice in dpsyn.compare_noise_mechanisms(*promise, number)):
            lines.setdefault(choice.name, []).append(choice.std)
        plot_noise(path, numbers, lines, guarantee=promise, chosen=chosen, crossover=crossing)
