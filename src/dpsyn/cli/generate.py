"""``dpsyn generate``: rows from a synopsis."""

from __future__ import annotations

from pathlib import Path

import click

import dpsyn
from dpsyn.cli import output, release_run


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
@click.option(
    "--rows",
    type=click.IntRange(min=0),
    metavar="N",
    help="How many; by default as many as the whole table is estimated to have.",
)
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="The same seed gives the same rows.")
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Rows that meet it: sex=F, age=30..39, job=nurse|cook, job=missing. Several must all be met.",
)
@click.option(
    "--replicates",
    type=click.IntRange(min=1),
    metavar="K",
    help="K tables drawn independently, as FILE-1, FILE-2 and so on.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
def command(
    synopsis: Path,
    target: str,
    rows: int | None,
    seed: int | None,
    conditions: tuple[str, ...],
    replicates: int | None,
    force: bool,
    quiet: bool,
) -> None:
    """Make synthetic rows from a synopsis. The private table is not needed, and no privacy is spent.

    \b
      dpsyn generate s.dpsyn -o rows.csv
      dpsyn generate s.dpsyn --rows 1000000 --seed 7 -o rows.parquet
      dpsyn generate s.dpsyn --rows 5 -o -
      dpsyn generate s.dpsyn --rows 100000000 -o large/             Parquet files in large/synthetic/
      dpsyn generate s.dpsyn --where sex=F --where age=30..39 --rows 10000 -o women.csv
      dpsyn generate s.dpsyn --replicates 5 -o rows.csv          rows-1.csv to rows-5.csv

    Rows are written as they are drawn, so any number of them can be made in little memory. Under conditions rows are
    drawn that meet them; none are thrown away, so rare conditions take no longer. Replicates show how much a result
    varies by sampling rows, not how much it varies by the privacy noise, which they share.
    """
    targets = [target] if replicates is None else output.number_targets(target, replicates)
    for place in targets:
        release_run.refuse_collisions({"--output": place}, {"synopsis": synopsis})
        output.check_target(place, force)
    released = dpsyn.Synopsis.load(synopsis)
    where = dpsyn.parse_conditions(conditions, released.schema.names)
    with output.show_progress(quiet) as shown:
        if replicates is None:
            released.write(target, rows, seed=seed, where=where, progress=shown)
        else:
            drawn = released.replicates(replicates, rows, seed=seed, where=where, output_format="arrow", progress=shown)
            for place, table in zip(targets, drawn, strict=True):
                output.write_rows(released, table, place, where)
    if not quiet and target != "-":
        for place in targets:
            output.print_written_rows(place)
    if not quiet and replicates is not None:
        output.print_line(
            "They differ by sampling. The privacy noise is the same in all of them, so they do not show it."
        )
