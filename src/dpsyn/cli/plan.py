"""``dpsyn plan``: write down what is known about a table, and see what it costs before anything is spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

import dpsyn
from dpsyn.cli import output
from dpsyn.errors import UserError
from dpsyn.report.numbers import format_number

MAX_WARNED_TABLES = 5
"""Tables that are named in a warning."""

_SCHEMA_OPTION = click.option(
    "-s", "--schema", required=True, type=click.Path(path_type=Path), metavar="FILE", help="The schema of the table."
)
_PLAN_ARGUMENT = click.argument("file", metavar="PLAN", type=click.Path(path_type=Path))


@click.group()
def command() -> None:
    """Write down what you know about a table: what belongs together, what follows from what, what to measure.

    A plan is public, like a schema: make it from what you know without the rows, or from what was released about
    them. It may fix everything that is measured, or some of it and leave the rest to selection. The usual way:

    \b
      dpsyn explore people.csv -s schema.yaml --epsilon 0.1 -o first.dpsyn
      dpsyn plan draft first.dpsyn -o plan.yaml                   a first guess, for you to finish
      dpsyn plan check plan.yaml -s schema.yaml
      dpsyn plan predict plan.yaml -s schema.yaml --epsilon 0.1,1,10
      dpsyn synthesize people.csv -s schema.yaml --plan plan.yaml --epsilon 1 -o synthetic.csv
    """


@command.command()
@click.argument("synopsis", metavar="SYNOPSIS", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", "target", default="-", metavar="FILE", help="Where to write; standard output if left out."
)
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
def draft(synopsis: Path, target: str, force: bool) -> None:
    """Guess a plan from a synopsis, for you to finish; costs no privacy.

    SYNOPSIS is what dpsyn explore wrote, or any other synopsis whose tables were chosen by scores of pairs.
    """
    output.refuse_to_overwrite(target, force)
    plan = dpsyn.Plan.draft(dpsyn.Synopsis.load(synopsis))
    output.write_text(target, plan.to_yaml())
    output.print_written(target, f"Next: dpsyn plan check {target} -s schema.yaml")


@command.command()
@_PLAN_ARGUMENT
@_SCHEMA_OPTION
def check(file: Path, schema: Path) -> None:
    """Check that a plan fits a schema, at every budget; nothing private is read.

    A mistake is told with its line: an attribute that there is not, shares that exceed the budget, an attribute that is
    recoded twice, a marginal across groups. Conditions such as when: epsilon < 0.3 are tried on both sides.
    """
    plan = dpsyn.Plan.load(file, dpsyn.Schema.load(schema))
    output.print_line(
        f"{file} is valid and fits {schema}: {output.format_count(len(plan.transforms), 'transform')}, "
        f"{output.format_count(len(plan.marginals), 'line')} of marginals, "
        f"{output.format_count(len(plan.groups), 'group')}."
    )
    budgets = plan.representative_epsilons()
    if len(budgets) > 1:
        output.print_line(
            f"It has variants by budget; checked at ε = {', '.join(format_number(e, 3) for e in budgets)}."
        )
    output.print_line(f"See its noise with: dpsyn plan predict {file} -s {schema} --epsilon 0.1,1,10")


@command.command()
@_PLAN_ARGUMENT
@_SCHEMA_OPTION
@click.option("--epsilon", default="0.1,1,10", show_default=True, metavar="E,E…", help="One or several ε.")
@click.option("--delta", type=float, metavar="D", help="δ of the promise; by default as in dpsyn synthesize.")
@click.option("--rows", type=click.IntRange(min=1), metavar="N", help="Expected rows, if the schema does not say.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def predict(file: Path, schema: Path, epsilon: str, delta: float | None, rows: int | None, as_json: bool) -> None:
    """Predict the noise of every table that a plan names, at several budgets; nothing private is read.

    A table whose noise exceeds what a cell holds on average is mostly noise: merge values, give it a larger share, or
    leave it out at that budget (when: epsilon >= ...).
    """
    known = dpsyn.Schema.load(schema)
    plan = dpsyn.Plan.load(file, known)
    found = {e: plan.predict(known, e, delta=delta, rows=rows) for e in _parse_epsilons(epsilon)}
    if as_json:
        output.print_line(
            json.dumps([_prediction_data(e, entry) for e, entries in found.items() for entry in entries], indent=2)
        )
        return
    for e, entries in found.items():
        _show_predictions(e, entries)


def _parse_epsilons(text: str) -> list[float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise UserError(f"{text!r} is not a list of ε; write 0.1,1,10") from None
    if not all(0 < number < float("inf") for number in numbers):
        raise UserError(f"{text!r}: give positive numbers, such as 0.1,1,10")
    return numbers


def _show_predictions(epsilon: float, entries: list[Any]) -> None:
    lines = [
        (
            ", ".join(entry.clique),
            entry.kind,
            f"{entry.cells:,}",
            f"{entry.mechanism} {format_number(entry.deviation, 3)}",
            format_number(entry.rows, 3),
            f"{100 * entry.wrong:.1f} %",
        )
        for entry in entries
    ]
    output.print_table(
        f"ε = {format_number(epsilon, 3)}",
        ("table", "for", "cells, at most", "noise per cell", "rows per cell", "rows misplaced"),
        lines,
        right=(2, 3, 4, 5),
    )
    drowned = [", ".join(entry.clique) for entry in entries if entry.drowned]
    if drowned:
        shown = "; ".join(drowned[:MAX_WARNED_TABLES]) + (
            f"; and {len(drowned) - MAX_WARNED_TABLES} more" if len(drowned) > MAX_WARNED_TABLES else ""
        )
        output.print_line(f"Warning: at ε = {format_number(epsilon, 3)} the noise exceeds the signal in {shown}.")


def _prediction_data(epsilon: float, entry: Any) -> dict[str, object]:
    return {
        "epsilon": epsilon,
        "attributes": list(entry.clique),
        "for": entry.kind,
        "cells": entry.cells,
        "mechanism": entry.mechanism,
        "part_of_budget": entry.part,
        "deviation": entry.deviation,
        "rows_per_cell": entry.rows,
        "rows_misplaced": entry.wrong,
        "drowned": entry.drowned,
    }
