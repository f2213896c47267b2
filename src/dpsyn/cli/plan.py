"""``dpsyn plan``: what the data owner knows about a table, as a file, and the noise it leads to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import dpsyn
from dpsyn.cli import output, release_run
from dpsyn.cli.command_group import CommandGroup
from dpsyn.cli.common_options import TEXT_OUTPUT, common_options
from dpsyn.report.numbers import format_count, format_number

if TYPE_CHECKING:
    from dpsyn import PredictedMarginal

MAX_WARNED_MARGINALS = 5
"""The largest number of marginals that a warning names."""

_PLAN_ARGUMENT = click.argument("file", metavar="PLAN", type=click.Path(path_type=Path))


PREDICTION_LEGEND = (
    "Cells: the counts of a marginal, each of which gets noise. Noise per cell: its standard deviation, in rows. Rows "
    "per cell: what a cell holds on average. Rows misplaced: the share of all rows that the noise is expected to put "
    "into wrong cells; above 100 %, there is more noise than rows."
)
"""What the columns of a prediction mean."""


@click.group(cls=CommandGroup)
def command() -> None:
    """Write down what you know about a table: what belongs together, what follows from what, what to measure.

    A plan is public, like a schema: make it from what you know without the rows, or from what was released about them.
    It may fix everything that is measured, or a part of it and leave the rest to selection. The usual steps:

    \b
      dpsyn explore people.csv -s schema.yaml --epsilon 0.1 -o first.dpsyn
      dpsyn plan draft first.dpsyn -o plan.yaml                   a first guess, for you to complete
      dpsyn plan check plan.yaml -s schema.yaml
      dpsyn plan predict plan.yaml -s schema.yaml --epsilon 0.1,1,10
      dpsyn synthesize people.csv -s schema.yaml --plan plan.yaml --epsilon 1 -o synthetic.csv
    """


@command.command(short_help="A first guess from a synopsis, for you to complete.")
@common_options("synopsis", "output", "force", output=TEXT_OUTPUT)
def draft(synopsis: Path, target: str, force: bool) -> None:
    """Guess a plan from a synopsis, for you to complete; costs no privacy.

    SYNOPSIS is what dpsyn explore wrote, or any other synopsis whose marginals were selected by scores of pairs.

    \b
      dpsyn plan draft first.dpsyn -o plan.yaml
    """
    output.refuse_to_overwrite(target, force)
    plan = dpsyn.Plan.draft(dpsyn.Synopsis.load(synopsis))
    output.write_text(target, plan.to_yaml())
    nothing = (
        "Nothing in the synopsis is strong enough to be written down, so the plan only selects marginals, as the "
        "default recipe does; explore with a larger ε, or complete it by what you know. "
    )
    drafted = plan.transforms or plan.marginals or plan.groups
    output.print_written(target, f"{'' if drafted else nothing}Next: dpsyn plan check {target} -s schema.yaml")


@command.command(short_help="Does a plan fit a schema, at every budget?")
@_PLAN_ARGUMENT
@common_options("schema")
def check(file: Path, schema: Path) -> None:
    """Check that a plan fits a schema, at every budget; nothing private is read.

    A mistake is reported with its line: an unknown attribute, shares that exceed the budget, an attribute that is
    recoded twice, a marginal across groups. Conditions such as when: epsilon < 0.3 are tried on both sides.

    \b
      dpsyn plan check plan.yaml -s schema.yaml
    """
    plan = dpsyn.Plan.load(file, dpsyn.Schema.load(schema))
    entries = "1 entry" if len(plan.marginals) == 1 else f"{len(plan.marginals):,} entries"
    output.print_line(
        f"{file} is valid and fits {schema}: {format_count(len(plan.transforms), 'transform')}, "
        f"{entries} under marginals, {format_count(len(plan.groups), 'group')}."
    )
    budgets = plan.representative_epsilons()
    if len(budgets) > 1:
        output.print_line(
            f"It has variants by budget; checked at ε = {', '.join(format_number(e, 3) for e in budgets)}."
        )
    output.print_line(f"See its noise with: dpsyn plan predict {file} -s {schema} --epsilon 0.1,1,10")


@command.command(short_help="The noise of every marginal that a plan names.")
@_PLAN_ARGUMENT
@common_options(
    "schema",
    "epsilon",
    "delta",
    "rows",
    "json",
    epsilon={
        "required": False,
        "type": str,
        "default": "0.1,1,10",
        "show_default": True,
        "metavar": "E,E…",
        "help": "One or several ε.",
    },
    rows={"type": click.IntRange(min=1), "help": "Expected number of rows, if the schema does not state it."},
)
def predict(file: Path, schema: Path, epsilon: str, delta: float | None, rows: int | None, as_json: bool) -> None:
    """Predict the noise of every marginal that a plan names, at several budgets; nothing private is read.

    A marginal whose noise exceeds the average count of a cell is mostly noise: merge values, give it a larger share, or
    leave it out at that budget (when: epsilon >= ...).

    \b
      dpsyn plan predict plan.yaml -s schema.yaml --epsilon 0.1,1,10
    """
    public = dpsyn.Schema.load(schema)
    plan = dpsyn.Plan.load(file, public)
    predictions = {e: plan.predict(public, e, delta=delta, rows=rows) for e in release_run.parse_epsilons(epsilon)}
    if as_json:
        data = [_prediction_data(e, entry) for e, entries in predictions.items() for entry in entries]
        output.print_json(data)
        return
    for e, entries in predictions.items():
        _show_predictions(e, entries)
    output.print_line(PREDICTION_LEGEND)
    if rows is not None and public.expected_size is None and delta is None:
        output.print_line(
            f"δ follows from --rows here. Write expected_size: {rows} into the schema, so that the release has the "
            "same δ and this noise."
        )


def _show_predictions(epsilon: float, entries: list[PredictedMarginal]) -> None:
    lines = [
        (
            ", ".join(entry.clique),
            entry.kind,
            f"{entry.cells:,}",
            f"{entry.mechanism} {format_number(entry.std, 3)}",
            format_number(entry.rows, 3),
            f"{100 * entry.error:.1f} %",
        )
        for entry in entries
    ]
    output.print_table(
        f"ε = {format_number(epsilon, 3)}",
        ("marginal", "for", "cells, at most", "noise per cell", "rows per cell", "rows misplaced"),
        lines,
        right=(2, 3, 4, 5),
    )
    noisy = [", ".join(entry.clique) for entry in entries if entry.is_mostly_noise]
    if noisy:
        more = f"; and {len(noisy) - MAX_WARNED_MARGINALS} more" if len(noisy) > MAX_WARNED_MARGINALS else ""
        shown = "; ".join(noisy[:MAX_WARNED_MARGINALS]) + more
        output.print_line(f"Warning: at ε = {format_number(epsilon, 3)} the noise exceeds the counts in {shown}.")


def _prediction_data(epsilon: float, entry: PredictedMarginal) -> dict[str, object]:
    return {
        "epsilon": epsilon,
        "attributes": list(entry.clique),
        "for": entry.kind,
        "cells": entry.cells,
        "mechanism": entry.mechanism,
        "budget_share": entry.budget_share,
        "standard_deviation": entry.std,
        "rows_per_cell": entry.rows,
        "rows_misplaced": entry.error,
        "mostly_noise": entry.is_mostly_noise,
    }
