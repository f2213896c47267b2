"""``dpsyn synthesize``: a synthetic table from a sensitive one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsyn import outputs
from dpsyn.cli import measuring, output, progress, tables

if TYPE_CHECKING:
    from dpsyn import Synopsis
    from dpsyn.progress import Progress


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
@click.option(
    "--rows",
    type=click.IntRange(min=0),
    metavar="N",
    help="How many; by default as many as the table is estimated to have.",
)
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Makes rows reproducible; never the noise.")
@click.option("--synopsis", "kept", type=click.Path(path_type=Path), metavar="FILE", help="Keep the noisy tables too.")
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write an HTML report that may be published; needs the extra dpsyn[report].",
)
def command(
    target: str,
    rows: int | None,
    seed: int | None,
    kept: Path | None,
    report: Path | None,
    force: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Turn a sensitive table into a synthetic one that can be published.

    DATA is a .csv, .tsv, .parquet or .arrow file (also compressed), a folder of Parquet files, a pattern such as
    'folder/*.parquet', or, with --query, a DuckDB database or postgresql://user@host/database. --query also selects
    from files, by the embedded DuckDB. The schema says what is public about the table; whatever the rows tell beyond it
    is measured with noise, within the promise (ε, δ), and rows are made that match the noisy tables.

    \b
      dpsyn synthesize people.csv -s schema.yaml --epsilon 1 -o synthetic.csv
      dpsyn synthesize people.csv -s schema.yaml --epsilon 1 -o release/
      dpsyn synthesize people.csv -s schema.yaml --epsilon 1 -o rows.parquet --ledger ledger.db --synopsis s.dpsyn
      dpsyn synthesize people.csv -s schema.yaml --epsilon 1 -o release/ --report report.html
      dpsyn synthesize people.parquet --query 'SELECT age, sex FROM people' -s schema.yaml --epsilon 1 -o release/

    A run keeps its answers in FILE.journal until FILE is written. If it was interrupted, the same command with
    --resume goes on where it stopped. More rows of the same release cost nothing: dpsyn generate.
    """
    measuring.refuse_collisions({"--output": target, "--synopsis": kept, "--report": report}, options)
    tables.check(target, force)
    for option, extra in (("--synopsis", kept), ("--report", report)):
        if str(extra) == "-":
            raise click.UsageError(f"{option} cannot go to standard output; give the name of a file")
        if extra and not options["resume"]:  # an interrupted run may have written it
            output.refuse_to_overwrite(str(extra), force)
    if report:
        _check_report(report)
    journal = measuring.journal_of(target)
    measuring.refuse_unfinished(journal, options["resume"])
    with measuring.resumable(journal), progress.shown(quiet) as shown:
        synopsis = measuring.measured(journal, shown, quiet=quiet, **options)
        if kept:
            synopsis.save(kept)
        if report:
            table = synopsis.generate(rows, seed=seed, kind="arrow", progress=shown)
            _write_report(report, synopsis, table, shown)
            tables.write(synopsis, table, target)
        else:
            synopsis.write(target, rows, seed=seed, progress=shown)
    measuring.discard(journal)
    if quiet:
        return
    if target == "-":
        measuring.say_certificate(synopsis, to_errors=True)
        return
    tables.say_written(target)
    if kept:
        output.say(f"Wrote {kept}: the noisy tables; try dpsyn inspect {kept}.")
    if report:
        output.say(f"Wrote {report}: how close the rows are to what was released; it may be published with them.")
    output.say("")
    measuring.say_certificate(synopsis)


def _check_report(place: Path) -> None:
    """Refuse a report that could not be written, before anything is paid for."""
    from dpsyn.report.vega import require_vega

    require_vega()
    outputs.check_writable(place)


def _write_report(place: Path, synopsis: Synopsis, table: Any, shown: Progress) -> None:
    from dpsyn.report.publishable import publishable_report

    shown("drawing the report", 0.0)
    outputs.write_text(place, publishable_report(synopsis, table))
