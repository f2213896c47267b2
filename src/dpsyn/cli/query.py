"""``dpsyn query``: any marginal of a synopsis, with standard errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

import dpsyn
from dpsyn.cli import output
from dpsyn.report import answers as words
from dpsyn.report.synopsis import privacy_warning_lines

if TYPE_CHECKING:
    from dpsyn import Schema

MAX_SHOWN_COUNTS = 500
"""Counts that are listed on a terminal; --json has all."""


@click.command()
@click.argument("synopsis", metavar="SYNOPSIS", type=click.Path(path_type=Path))
@click.argument("attributes", metavar="[ATTRIBUTES]", default="")
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Count only rows that meet it: sex=F, age=30..39, job=nurse|cook, job=missing. Several must all be met.",
)
@click.option("--cells", is_flag=True, help="List numbers and dates by their finest cells, not by their bins.")
@click.option("--level", type=float, default=0.95, show_default=True, metavar="P", help="Probability of an interval.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    synopsis: Path, attributes: str, conditions: tuple[str, ...], cells: bool, level: float, as_json: bool
) -> None:
    """Ask a synopsis how many rows have which values. The private table is not needed, and no privacy is spent.

    ATTRIBUTES are names separated by commas; without any, all rows that meet the conditions are counted together.

    \b
      dpsyn query s.dpsyn age,sex
      dpsyn query s.dpsyn age,sex --where "age=30..39" --where job=nurse
      dpsyn query s.dpsyn --where "age=30..39" --where sex=F
      dpsyn query s.dpsyn age,sex,job --json

    Every count comes with the standard error that the noise of the release causes. Counts of attributes that no
    released table holds together are worked out from several tables; how far that may be off besides is told apart.
    """
    held = dpsyn.Synopsis.load(synopsis)
    found = held.marginal(
        *parse_names(attributes, held.schema), where=dpsyn.parse_conditions(conditions, held.schema.names), cells=cells
    )
    if as_json:
        output.print_line(json.dumps(found.to_data(level), indent=2, ensure_ascii=False, allow_nan=False))
        return
    rows = words.answer_rows(found, level, MAX_SHOWN_COUNTS)
    for line in privacy_warning_lines(held):
        output.print_line(line)
    count = len(found.attributes)
    output.print_table("", words.answer_headings(found, level), rows, right=range(count, count + 3))
    if found.counts.size > MAX_SHOWN_COUNTS:
        output.print_line(f"These are the first {MAX_SHOWN_COUNTS} of {found.counts.size:,} counts; --json lists all.")
    for line in words.answer_lines(found, level):
        output.print_line(line)


def parse_names(text: str, schema: Schema) -> list[str]:
    """Names separated by commas; a name may have commas in it itself, and the longest that there is counts."""
    left, found = text.split(",") if text.strip() else [], []
    while left:
        parts = next((n for n in range(len(left), 0, -1) if ",".join(left[:n]).strip() in schema), 1)
        found.append(",".join(left[:parts]).strip())
        left = left[parts:]
    return found
