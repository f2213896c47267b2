"""``dpsyn generate``: rows from a synopsis."""

from __future__ import annotations

from pathlib import Path

import click

import dpsyn
from dpsyn.cli import measuring, progress, tables


@click.command()
@click.argument("synopsis", metavar="SYNOPSIS", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    "target",
    required=True,
    metavar="FILE",
    help="Where to write: .csv, .csv.gz, .parquet, .arrow; FOLDER/ for a whole release; - for standard output.",
)
@click.option("--rows", type=click.IntRange(min=0), metavar="N", help="How many; by default the noisy estimate.")
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="The same seed gives the same rows.")
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
def command(synopsis: Path, target: str, rows: int | None, seed: int | None, force: bool, quiet: bool) -> None:
    """Make synthetic rows from a synopsis. The private table is not needed, and no privacy is spent.

    \b
      dpsyn generate s.dpsyn -o rows.csv
      dpsyn generate s.dpsyn --rows 1000000 --seed 7 -o rows.parquet
      dpsyn generate s.dpsyn --rows 5 -o -
    """
    measuring.refuse_collisions({"--output": target}, {"synopsis": synopsis})
    tables.check(target, force)
    released = dpsyn.Synopsis.load(synopsis)
    with progress.shown(quiet) as shown:
        table = released.generate(rows, seed=seed, kind="arrow", progress=shown)
    tables.write(released, table, target)
    if not quiet and target != "-":
        tables.say_written(target)
