"""``dpsyn compare-noise``: how much noise a privacy budget means for K marginals, and which mechanism to use."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

import click

import dpsyn
from dpsyn.cli import output
from dpsyn.cli.common_options import common_options
from dpsyn.errors import UserError, quote_argument
from dpsyn.report.noise_plot import NoisePanel, check_picture_suffix, plot_noise
from dpsyn.report.numbers import format_count, format_number

MECHANISM_NOTES = {
    "Laplace, basic composition": "ε is divided among the marginals; needs no δ",
    "Laplace, advanced composition": "the classical improvement for many marginals; needs a δ",
    "Laplace, zCDP as in the paper": "costs added up as ρ, then ε = ρ + 2√(ρ ln 1/δ)",
    "Laplace, zCDP": "the same with the tight conversion of ρ",
    "Gaussian, advanced composition": "the textbook formula for Gaussian noise",
    "Gaussian, zCDP as in the paper": "costs added up as ρ, then ε = ρ + 2√(ρ ln 1/δ)",
    "Gaussian, zCDP": "the same with the tight conversion of ρ",
    "Gaussian, exact": "all marginals accounted as one Gaussian, without loss",
}
"""What each way of adding noise is, in a few words."""

ACCOUNTINGS: dict[str, Literal["loose", "zcdp", "exact"]] = {"paper": "loose", "zcdp": "zcdp", "exact": "exact"}
"""The accountings of Gaussian noise whose crossings with Laplace noise are shown, with their conversion of ρ."""

NEIGHBORS = {"add-remove": "one row added or removed", "replace": "one row replaced"}

MAX_VALUES = 4
"""The largest number of ε, and of δ: a plot has a panel for each combination."""

SHOWN_ROW_COUNTS = tuple(10**exponent for exponent in range(4, 10))
"""The numbers of rows for which ``--error`` counts marginals."""

_STDS_WITHIN_95 = {"Laplace": math.log(20) / math.sqrt(2), "Gaussian": 1.95996}
"""The number of standard deviations within which 95 % of the noise lies."""


@click.command()
@common_options(
    "epsilon",
    "delta",
    epsilon={
        "type": str,
        "metavar": "E[,E...]",
        "help": "ε of the privacy guarantee, or several; a smaller ε protects more.",
    },
    delta={
        "type": str,
        "default": "1e-9",
        "show_default": True,
        "metavar": "D[,D...]",
        "help": "δ of the privacy guarantee, or several; 0 leaves only one way.",
    },
)
@click.option(
    "--marginals",
    required=True,
    type=click.IntRange(1, 1_000_000),
    metavar="K",
    help="Number of marginals that will be released.",
)
@click.option(
    "--neighbors",
    type=click.Choice([*NEIGHBORS]),
    default="add-remove",
    show_default=True,
    help="Neighboring tables differ by one row that is added or removed (unbounded DP), or replaced (bounded DP).",
)
@click.option(
    "--error",
    type=float,
    metavar="SHARE",
    help="Also list how many marginals a table of 10⁴ to 10⁹ rows allows if the standard deviation of a count may be "
    "this share of the rows, such as 1e-5.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also plot it, into a .png or .svg file, which is overwritten; needs the extra plot.",
)
@common_options("json")
def command(
    epsilon: str,
    delta: str,
    marginals: int,
    neighbors: str,
    error: float | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Compare eight ways to add noise to K marginals, and recommend one.

    A marginal is a table of counts over a few columns. All K of them share the privacy budget (ε, δ) equally, so more
    marginals mean more noise in each. Nothing private is read: this is arithmetic.

    Two ways convert ρ of zCDP as the paper does; two convert it tightly; the exact one is what a release uses. A second
    table shows up to which number of marginals Laplace noise is smaller, by each accounting. If up to r rows of a
    person are protected, multiply all noise by r. Several ε and δ are compared side by side, with a panel each in a
    plot.

    \b
      dpsyn compare-noise --epsilon 1 --marginals 50
      dpsyn compare-noise --epsilon 1 --marginals 50 --neighbors replace
      dpsyn compare-noise --epsilon 0.5 --delta 1e-8 --marginals 10 --plot noise.png
      dpsyn compare-noise --epsilon 0.01,1 --delta 1e-8,1e-12 --marginals 50 --plot figure.svg   the paper's figure
      dpsyn compare-noise --epsilon 1 --delta 0 --marginals 5             pure ε: Laplace noise only
      dpsyn compare-noise --epsilon 1 --marginals 50 --error 1e-5         marginals at constant error, by rows
    """
    epsilons, deltas = _parse_numbers(epsilon, "ε"), _parse_numbers(delta, "δ")
    if error is not None and not 0 < error < 1:
        raise UserError(f"--error is {error}; give a share of the rows between 0 and 1, such as 1e-5")
    comparison = {
        "marginals": marginals,
        "neighbors": neighbors,
        "budgets": [_compare_mechanisms(e, d, marginals, neighbors) for e in epsilons for d in deltas],
    }
    if error is not None:
        comparison["growth"] = [_count_marginals(e, d, error, neighbors) for e in epsilons for d in deltas]
    if plot:
        _plot(plot, comparison, columns=len(deltas))
    if as_json:
        output.print_json(comparison)
        return
    _show_comparison(comparison)
    if plot:
        output.print_written(str(plot))


def _parse_numbers(text: str, name: str) -> list[float]:
    """Up to four numbers, from a text such as ``0.01,1``, without repetitions."""
    try:
        numbers = [*dict.fromkeys(float(part) for part in text.split(","))]
    except ValueError:
        raise UserError(f"{quote_argument(text)} is not a list of {name}; write one number, or 0.01,1") from None
    if len(numbers) > MAX_VALUES:
        raise UserError(f"{quote_argument(text)}: give at most {MAX_VALUES} values of {name}")
    return numbers


def _compare_mechanisms(epsilon: float, delta: float, marginals: int, neighbors: str) -> dict[str, Any]:
    """What is printed about one budget, as plain data."""
    choices = dpsyn.compare_noise_mechanisms(epsilon, delta, marginals, neighbors=neighbors)
    best = min(choice.std for choice in choices)
    crossings = {
        relation: {
            name: dpsyn.laplace_gaussian_crossover(epsilon, delta, method, neighbors=relation)
            for name, method in ACCOUNTINGS.items()
        }
        for relation in (NEIGHBORS if delta else ())
    }
    return {
        "epsilon": epsilon,
        "delta": delta,
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
        "crossings": crossings or None,
    }


def _count_marginals(epsilon: float, delta: float, error: float, neighbors: str) -> dict[str, Any]:
    """How many marginals have counts with a standard deviation of this share of the rows, by the number of rows."""
    return {
        "epsilon": epsilon,
        "delta": delta,
        "error": error,
        "marginals": [
            {
                "rows": rows,
                **{
                    name: dpsyn.max_marginals(epsilon, each, error * rows, neighbors=neighbors)
                    for name, each in (("pure", 0.0), ("delta", delta), ("delta_1_over_rows_squared", rows**-2.0))
                },
            }
            for rows in SHOWN_ROW_COUNTS
        ],
    }


# ── text ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _show_comparison(comparison: dict[str, Any]) -> None:
    budgets, relation = comparison["budgets"], NEIGHBORS[comparison["neighbors"]]
    count = format_count(comparison["marginals"], "marginal")
    if len(budgets) == 1:
        _show_ways(budgets[0], f"Standard deviation of each count for {count}, {_budget_text(budgets[0])}, {relation}")
    else:
        names = list(dict.fromkeys(way["name"] for budget in budgets for way in budget["ways"]))
        stds = [{way["name"]: way["standard_deviation"] for way in budget["ways"]} for budget in budgets]
        output.print_table(
            f"Standard deviation of each count for {count}, {relation}",
            ("way", *map(_budget_text, budgets)),
            [(name, *(format_number(std[name], 4) if name in std else "–" for std in stds)) for name in names],
            right=range(1, len(budgets) + 1),
        )
    crossed = [budget for budget in budgets if budget["crossings"]]
    if crossed:
        _show_crossings(crossed)
    if len(budgets) == 1:
        output.print_line(_crossover_text(budgets[0], comparison["neighbors"]))
    for growth in comparison.get("growth", ()):
        _show_growth(growth)


def _show_ways(budget: dict[str, Any], title: str) -> None:
    rows = [
        (way["name"], format_number(way["standard_deviation"], 4), f"{way['times_the_best']:.2f}", way["what_it_is"])
        for way in budget["ways"]
    ]
    output.print_table(title, ("way", "std", "× best", "what it is"), rows, right=(1, 2))
    output.print_line(_advice(next(way for way in budget["ways"] if way["recommended"])))


def _show_crossings(budgets: list[dict[str, Any]]) -> None:
    """Where Laplace and Gaussian noise cross, by each accounting, and why the paper's is not the exact one."""
    rows = [
        (_budget_text(budget), NEIGHBORS[relation], *(f"{crossings[name]:.1f}" for name in ACCOUNTINGS))
        for budget in budgets
        for relation, crossings in budget["crossings"].items()
    ]
    output.print_table(
        "Laplace noise (basic composition) and Gaussian noise are equal at this number of marginals",
        ("budget", "neighboring tables", "zCDP as in the paper", "zCDP, tight", "exact"),
        rows,
        right=(2, 3, 4),
    )
    unbounded = [budget["crossings"]["add-remove"] for budget in budgets]
    crossings = ", ".join(f"{crossing['paper']:.0f}" for crossing in unbounded)
    surplus = max(math.sqrt(crossing["paper"] / crossing["exact"]) - 1 for crossing in unbounded)
    output.print_line(
        f"As the paper converts ρ, they cross at {crossings} marginals (rounded, one row added or removed).\n"
        f"That formula bounds ε from above: it asks for {100 * surplus:.0f} % more Gaussian noise than the guarantee "
        f"needs{' here' if len(budgets) == 1 else ', at most'}.\n"
        "Exact accounting adds no more than needed, so Gaussian noise is the smaller one for fewer marginals already."
    )


def _show_growth(growth: dict[str, Any]) -> None:
    """How many marginals are possible at constant error, by the number of rows."""
    columns = {
        "pure": "pure ε",
        "delta": f"δ = {format_number(growth['delta'])}",
        "delta_1_over_rows_squared": "δ = 1/rows²",
    }
    if not growth["delta"]:
        columns.pop("delta")
    counts = growth["marginals"]
    output.print_table(
        f"Marginals whose counts have a standard deviation of {format_number(growth['error'])} of the rows, "
        f"ε = {format_number(growth['epsilon'])}",
        ("rows", *columns.values()),
        [(f"{row['rows']:,}", *(f"{row[name]:,}" for name in columns)) for row in counts],
        right=range(len(columns) + 1),
    )
    before, last = counts[-2], counts[-1]
    factors = [
        f"{last[name] / before[name]:.3g} times for {words}" for name, words in columns.items() if before[name] >= 100
    ]
    if factors:
        output.print_line(f"Ten times the rows allow more marginals: {', '.join(factors)}.")


def _budget_text(budget: dict[str, Any]) -> str:
    return f"ε = {format_number(budget['epsilon'])}, δ = {format_number(budget['delta'])}"


def _advice(best: dict[str, Any]) -> str:
    noise, way = best["name"].split(", ")
    reach = format_number(best["standard_deviation"] * _STDS_WITHIN_95[noise], 3)
    return (
        f"Use {noise} noise ({way}): the error of 95 % of the counts will be less than {reach} rows.\n"
        f"Cells with fewer rows than that are mostly noise; fewer marginals or larger cells help."
    )


def _crossover_text(budget: dict[str, Any], neighbors: str) -> str:
    if budget["crossings"] is None:
        return "Without a δ there is one way only. With a δ such as 1e-9, Gaussian noise is smaller for many marginals."
    crossover = budget["crossings"][neighbors]["exact"]
    if crossover < 1:
        return "With this budget, Gaussian noise is smaller for any number of marginals."
    few = format_count(math.floor(crossover), "marginal")
    return f"With this budget, Laplace noise is smaller for up to {few}, Gaussian noise for more."


# ── plot ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _plot(path: Path, comparison: dict[str, Any], *, columns: int) -> None:
    """Plot every way for 1 to 200 marginals, or up to twice the number asked for and the largest crossing."""
    check_picture_suffix(path)
    chosen, neighbors, budgets = comparison["marginals"], comparison["neighbors"], comparison["budgets"]
    crossings = [budget["crossings"][neighbors] if budget["crossings"] else {} for budget in budgets]
    largest = max(200, 2 * chosen, *(math.ceil(2 * each) for crossing in crossings for each in crossing.values()))
    counts = sorted({chosen, *(round(largest ** (step / 60)) for step in range(61))})
    with output.show_status("Plotting"):
        panels = [
            _make_panel(budget["epsilon"], budget["delta"], counts, neighbors, crossing)
            for budget, crossing in zip(budgets, crossings, strict=True)
        ]
        plot_noise(path, panels, chosen=chosen, columns=columns, relation=NEIGHBORS[neighbors])


def _make_panel(
    epsilon: float, delta: float, counts: list[int], neighbors: str, crossings: dict[str, float]
) -> NoisePanel:
    stds: dict[str, list[float]] = {}
    for count in counts:
        for choice in dpsyn.compare_noise_mechanisms(epsilon, delta, count, neighbors=neighbors):
            stds.setdefault(choice.name, []).append(choice.std)
    return NoisePanel(epsilon=epsilon, delta=delta, marginals=counts, stds=stds, crossings=crossings)
