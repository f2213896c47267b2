"""``dpsyn query``: any marginal of a synopsis, with standard errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dpsyn
from dpsyn.cli import output
from dpsyn.cli.common_options import common_options
from dpsyn.report import answers as words
from dpsyn.report.synopsis import privacy_warning_lines

if TYPE_CHECKING:
    from dpsyn import Schema

METHODS = ("maximum-entropy", "least-norm", "linear-program")
"""Names for ``--help``, which must not load the library; a test compares them with the library's."""

MAX_SHOWN_COUNTS = 500
"""Counts that are listed on a terminal; --json has all."""


@click.command()
@common_options("synopsis")
@click.argument("attributes", metavar="[ATTRIBUTES]", default="")
@common_options(
    "where",
    where={
        "help": "Count only rows that satisfy it: sex=F, age=30..39, job=nurse|cook, job=missing. If it is given "
        "several times, rows must satisfy all conditions."
    },
)
@click.option("--finest", is_flag=True, help="List numbers and dates by their finest cells, not by their bins.")
@click.option(
    "--confidence",
    type=float,
    default=0.95,
    show_default=True,
    metavar="P",
    help="Probability that an interval contains the true count.",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default=METHODS[0],
    show_default=True,
    help="How to reconstruct counts of attributes that no released marginal contains together. Maximum entropy is the "
    "most accurate; the others are for comparison.",
)
@common_options("json")
def command(
    synopsis: Path,
    attributes: str,
    conditions: tuple[str, ...],
    finest: bool,
    confidence: float,
    method: str,
    as_json: bool,
) -> None:
    """Query a synopsis: how many rows have which values. The private table is not needed, and no privacy is spent.

    ATTRIBUTES are names separated by commas. Without any, all rows that satisfy the conditions are counted together.

    \b
      dpsyn query s.dpsyn age,sex
      dpsyn query s.dpsyn age,sex --where "age=30..39" --where job=nurse
      dpsyn query s.dpsyn --where "age=30..39" --where sex=F
      dpsyn query s.dpsyn age,sex,job --json

    Every count comes with its standard error and an interval. Counts of attributes that no released marginal contains
    together are reconstructed from several marginals; their errors include an estimate of the model error, and the
    part that is noise is shown beside.
    """
    released = dpsyn.Synopsis.load(synopsis)
    names = parse_names(attributes, released.schema)
    where = dpsyn.parse_conditions(conditions, released.schema.names)
    reconstruction: Any = method.replace("-", " ")
    answer = released.marginal(*names, where=where, cells=finest, method=reconstruction)
    if as_json:
        output.print_json(answer.to_data(confidence))
        return
    rows = words.answer_rows(answer, confidence, MAX_SHOWN_COUNTS)
    for line in privacy_warning_lines(released):
        output.print_line(line)
    headings = words.answer_headings(answer, confidence)
    output.print_table("", headings, rows, right=range(len(answer.attributes), len(headings)))
    if answer.counts.size > MAX_SHOWN_COUNTS:
        output.print_line(f"These are the first {MAX_SHOWN_COUNTS} of {answer.counts.size:,} counts; --json lists all.")
    for line in words.answer_lines(answer, confidence):
        output.print_line(line)


def parse_names(text: str, schema: Schema) -> list[str]:
    """Names separated by commas. A name may contain commas itself: the longest name that exists is taken."""
    parts, names = text.split(",") if text.strip() else [], []
    while parts:
        length = next((n for n in range(len(parts), 0, -1) if ",".join(parts[:n]).strip() in schema), 1)
        names.append(",".join(parts[:length]).strip())
        parts = parts[length:]
    return names
