"""``dpsyn pool``: analyses of replicates, from any program, combined into estimates with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import dpsyn
from dpsyn.cli import output
from dpsyn.cli.common_options import common_options

if TYPE_CHECKING:
    from dpsyn import Conclusion


@click.command()
@click.argument("results", type=click.Path(path_type=Path), metavar="RESULTS")
@click.option(
    "--replicates",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The file …-replicates.json that generate --replicates wrote beside the tables: checks that they carry the "
    "privacy noise, and divides the variance into sampling and privacy.",
)
@click.option("--level", type=float, default=0.95, show_default=True, metavar="P", help="Level of the intervals.")
@common_options("json")
def command(results: Path, replicates: Path | None, level: float, as_json: bool) -> None:
    """Pool analyses of replicates: estimates, standard errors and intervals that include the privacy noise.

    RESULTS is a CSV file with a row for each replicate and term, and the columns replicate, term, estimate and
    std.error, as broom::tidy() of R names them. std_error or variance may stand instead of std.error; other columns are
    ignored.

    \b
      dpsyn generate s.dpsyn --replicates 20 -o rows.csv
      (fit the same model to rows-1.csv … rows-20.csv and write all coefficients to results.csv)
      dpsyn pool results.csv --replicates rows-replicates.json

    The estimate is the mean over the m replicates. Its variance is (1 + 1/m) times their variance, with m − 1 degrees
    of freedom. Standard errors of single tables know nothing of the privacy noise; they only tell which part of the
    variance is due to sampling.
    """
    print_conclusion(dpsyn.pool_results_file(results, replicates, level), as_json)


def print_conclusion(found: Conclusion, as_json: bool) -> None:
    """Print a result as a table and sentences, or as JSON."""
    if as_json:
        output.print_json(found.to_data())
        return
    output.print_table(found.heading, found.headings(), found.text_rows(), right=range(1, 5))
    for line in found.remarks:
        output.print_line(line)
