"""``dpsyn forecast``: what a release will be worth, before it costs anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import dpsyn
from dpsyn.atomic_files import check_writable
from dpsyn.cli import output, release_run
from dpsyn.cli.common_options import RECIPE_OPTIONS, common_options
from dpsyn.progress import Step
from dpsyn.report.forecast_plot import plot_forecast
from dpsyn.report.noise_plot import check_picture_suffix
from dpsyn.report.numbers import format_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpsyn import Forecast

MAX_SHOWN_ATTRIBUTES = 40
"""Columns that are listed; --json has all of them."""


@click.command()
@common_options(
    "schema",
    "epsilon",
    "delta",
    "rows",
    *RECIPE_OPTIONS,
    "public",
    "public_schema",
    epsilon={
        "required": False,
        "type": str,
        "default": "0.1,0.5,1,2,5",
        "show_default": True,
        "metavar": "E,E,...",
        "help": "The ε to compare, separated by commas.",
    },
    delta={"help": "δ of the privacy guarantee; by default 1e-9, or 1/rows² if that is smaller."},
    public={
        "help": "Public rows that will be a prior: their number and columns count. Simulated rows of the same "
        "population take their place."
    },
    rows={"type": click.IntRange(min=1), "help": "About how many rows the table has; by default the expected size."},
)
@click.option(
    "--releases",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    metavar="N",
    help="Releases to simulate for each ε and each strength of dependence; more are steadier and take longer.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also plot it, into a .png or .svg file, which is overwritten; needs the extra plot.",
)
@common_options("json", "quiet")
def command(
    schema: Path,
    epsilon: str,
    delta: float | None,
    rows: int | None,
    recipe: str | None,
    settings: Sequence[str],
    predicted: str | None,
    analyses: tuple[str, ...],
    weights: Sequence[str],
    plan: Path | None,
    public: str | None,
    public_schema: Path | None,
    releases: int,
    plot: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Forecast what a release will be worth at several ε. No data is read, and no budget is spent.

    The recipe runs on simulated tables of the schema whose columns depend weakly, moderately and strongly on each
    other. Errors are shares of the rows that are in the wrong cell, on average over columns and over pairs of columns.
    Shuffled columns have the right columns and no dependence at all: a release that is worse has lost the pairs.

    \b
      dpsyn forecast -s schema.yaml --rows 5000
      dpsyn forecast -s schema.yaml --epsilon 0.5,1,2 --rows 5000 --plot forecast.png
      dpsyn forecast -s schema.yaml --rows 5000 --recipe independent --json
      dpsyn forecast -s schema.yaml --rows 5000 --public other-region.csv

    How to choose ε and δ, what others use and what it means for a person: docs/how-to/choosing-epsilon.md
    """
    if plot:
        check_picture_suffix(plot)
        check_writable(plot)
    declared = dpsyn.Schema.load(schema)
    chosen = release_run.choose_recipe(recipe, settings, weights, plan, declared)
    epsilons = sorted({*release_run.parse_epsilons(epsilon)})
    steps = [Step(f"simulating releases at ε = {each:g}") for each in epsilons]
    with output.show_progress(quiet or as_json, steps) as progress:
        expected = dpsyn.forecast(
            declared,
            epsilons,
            rows=rows,
            delta=delta,
            recipe=chosen,
            target=predicted,
            analyses=analyses,
            public=public,
            public_schema=public_schema,
            releases=releases,
            progress=progress,
        )
    if plot:
        plot_forecast(plot, expected)
    if as_json:
        output.print_json(expected.to_dict())
        return
    _show_errors(expected)
    _show_attributes(expected)
    output.print_line(expected.verdict)
    for line in filter(None, (expected.public_gain, expected.scaling, expected.notice)):
        output.print_line(line)
    if plot:
        output.print_written(str(plot))


def _show_errors(expected: Forecast) -> None:
    rows = [
        (
            format_number(budget.epsilon, 3),
            f"{budget.moderate.one_way:.4f}",
            f"{budget.moderate.two_way:.4f}",
            "{:.4f} … {:.4f}".format(*budget.two_way_range),
            f"{budget.moderate.shuffled:.4f}",
            f"{budget.moderate.sampling:.4f}",
            *([] if budget.moderate.with_target is None else [f"{budget.moderate.with_target:.4f}"]),
            budget.moderate.verdict,
        )
        for budget in expected.budgets
    ]
    title = (
        f"Recipe {expected.recipe}, {expected.rows:,} rows × {expected.attribute_count} columns, "
        f"δ = {format_number(expected.delta, 2)}"
    )
    of_target = [] if expected.budgets[0].moderate.with_target is None else ["pairs with the target"]
    headings = ("ε", "one-way error", "two-way error", "weak … strong", "shuffled columns", "sampling", *of_target)
    output.print_table(title, (*headings, "verdict"), rows, right=range(len(headings)))


def _show_attributes(expected: Forecast) -> None:
    """The rows that a value needs, and a text of an open attribute, for each column and ε."""
    names = [attribute.name for attribute in expected.budgets[0].attributes]
    by_budget = [{attribute.name: attribute for attribute in budget.attributes} for budget in expected.budgets]
    rows = []
    for name in names[:MAX_SHOWN_ATTRIBUTES]:
        found = [attributes[name] for attributes in by_budget if name in attributes]
        rows.append((name, *(format_number(attribute.survives, 2) for attribute in found)))
        if found[0].listed is not None:
            rows.append((f"{name}: a new text", *(f"{attribute.listed:,}" for attribute in found)))
    headings = ("column", *(f"ε = {format_number(budget.epsilon, 3)}" for budget in expected.budgets))
    title = "Rows that a value needs to stand out from the noise"
    output.print_table(title, headings, rows, right=range(1, len(headings)))
    if len(names) > MAX_SHOWN_ATTRIBUTES:
        output.print_line(f"… and {len(names) - MAX_SHOWN_ATTRIBUTES} more columns; --json lists all of them.")
