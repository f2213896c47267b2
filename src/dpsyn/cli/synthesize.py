"""``dpsyn synthesize``: a synthetic table from a sensitive one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsyn import atomic_files
from dpsyn.cli import output, release_run

if TYPE_CHECKING:
    from dpsyn import Synopsis
    from dpsyn.progress import Progress


@click.command()
@release_run.release_options
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
    release_run.refuse_collisions({"--output": target, "--synopsis": kept, "--report": report}, options)
    output.check_target(target, force)
    for option, extra in (("--synopsis", kept), ("--report", report)):
        if str(extra) == "-":
            raise click.UsageError(f"{option} cannot go to standard output; give the name of a file")
        if extra and not options["resume"]:  # an interrupted run may have written it
            output.refuse_to_overwrite(str(extra), force)
    if report:
        _check_report(report)
    journal = release_run.journal_path(target)
    release_run.check_resume(journal, options["resume"])
    with release_run.explain_resume(journal), output.show_progress(quiet) as shown:
        synopsis = release_run.measure_table(journal, shown, quiet=quiet, **options)
        if kept:
            synopsis.save(kept)
        if report:
            table = synopsis.generate(rows, seed=seed, output_format="arrow", progress=shown)
            _write_report(report, synopsis, table, shown)
            output.write_rows(synopsis, table, target)
        else:
            synopsis.write(target, rows, seed=seed, progress=shown)
    release_run.discard_journal(journal)
    if quiet:
        return
    if target == "-":
        release_run.print_certificate(synopsis, to_errors=True)
        return
    output.print_written_rows(target)
    if kept:
        output.print_line(f"Wrote {kept}: the noisy tables; try dpsyn inspect {kept}.")
    if report:
        output.print_line(
            f"Wrote {report}: how close the rows are to what was released; it may be published with them."
        )
    output.print_line("")
    release_run.print_certificate(synopsis)


def _check_report(path: Path) -> None:
    """Refuse a report that could not be written, before anything is paid for."""
    from dpsyn.report.charts import require_vega

    require_vega()
    atomic_files.check_writable(path)


def _write_report(path: Path, synopsis: Synopsis, table: Any, shown: Progress) -> None:
    from dpsyn.report.release_report import publishable_report

    shown("drawing the report", 0.0)
    atomic_files.write_text(path, publishable_report(synopsis, table))
