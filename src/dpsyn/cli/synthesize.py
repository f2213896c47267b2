"""``dpsyn synthesize``: a synthetic table from a sensitive one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpsyn.cli import measuring, output, progress, tables


@click.command()
@measuring.measuring_options
@click.option(
    "-o",
    "--output",
    "target",
    required=True,
    metavar="FILE",
    help="Where to write: .csv, .csv.gz, .parquet, .arrow; FOLDER/ for a whole release; - for standard output.",
)
@click.option("--rows", type=click.IntRange(min=0), metavar="N", help="How many; by default the noisy estimate.")
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Makes rows reproducible; never the noise.")
@click.option("--synopsis", "kept", type=click.Path(path_type=Path), metavar="FILE", help="Keep the noisy tables too.")
def command(
    target: str, rows: int | None, seed: int | None, kept: Path | None, force: bool, quiet: bool, **options: Any
) -> None:
    """Turn a sensitive table into a synthetic one that can be published.

    DATA is a .csv, .tsv, .parquet or .arrow file (also compressed), a folder of Parquet files, or a DuckDB database
    with --query. The schema says what is public about it; whatever the rows tell beyond it is measured with noise,
    within the promise (ε, δ), and rows are made that match the noisy tables.

    \b
      dpsyn synthesize people.csv -s schema.yaml --epsilon 1 -o synthetic.csv
      dpsyn synthesize people.csv -s schema.yaml --epsilon 1 -o release/
      dpsyn synthesize people.csv -s schema.yaml --epsilon 1 -o rows.parquet --ledger ledger.db --synopsis s.dpsyn

    A run keeps its answers in FILE.journal until FILE is written. If it was interrupted, the same command with
    --resume goes on where it stopped. More rows of the same release cost nothing: dpsyn generate.
    """
    measuring.refuse_collisions({"--output": target, "--synopsis": kept}, options)
    tables.check(target, force)
    if kept and not options["resume"]:  # an interrupted run may have written it
        output.refuse_to_overwrite(str(kept), force)
    journal = measuring.journal_of(target)
    measuring.refuse_unfinished(journal, options["resume"])
    with measuring.resumable(journal):
        with progress.shown(quiet) as shown:
            synopsis = measuring.measured(journal, shown, quiet=quiet, **options)
            if kept:
                synopsis.save(kept)
            table = synopsis.generate(rows, seed=seed, kind="arrow", progress=shown)
        tables.write(synopsis, table, target)
    measuring.discard(journal)
    if quiet:
        return
    if target == "-":
        measuring.say_certificate(synopsis, to_errors=True)
        return
    tables.say_written(target)
    if kept:
        output.say(f"Wrote {kept}: the noisy tables; try dpsyn inspect {kept}.")
    output.say("")
    measuring.say_certificate(synopsis)
