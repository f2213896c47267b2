"""``dpsyn synthesize``: a synthetic table from a sensitive one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsyn import atomic_files
from dpsyn.cli import output, release_run, released_evaluation
from dpsyn.cli.common_options import RELEASE_OPTIONS, common_options
from dpsyn.progress import MAKE_REPORT, SAMPLE_ROWS, WRITE_VALUES

if TYPE_CHECKING:
    from dpsyn import Synopsis
    from dpsyn.progress import Progress


@click.command()
@common_options(*RELEASE_OPTIONS, "output", "rows", "seed", "escape_formulas", "keep_synopsis")
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write an HTML report that may be published; needs the extra report.",
)
@click.option(
    "--by",
    metavar="COLUMNS",
    help="Columns whose values divide the rows into groups, such as sex,region, for the report, instead of the groups "
    "that the schema declares.",
)
@common_options("sign", "card", "with_verifier", "force", "quiet")
def command(
    target: str,
    rows: int | None,
    seed: int | None,
    escape_formulas: bool,
    synopsis: Path | None,
    report: Path | None,
    by: str | None,
    signing_key: Path | None,
    card: bool,
    with_verifier: bool,
    force: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Turn a sensitive table into a synthetic one that can be published.

    DATA is a .csv, .tsv, .parquet, .arrow, .xlsx, .sav, .dta, .sas7bdat or .xpt file, a folder of Parquet files, a
    pattern such as 'folder/*.parquet', or, with --query, a DuckDB database or postgresql://user@host/database. --query
    also selects from files, with the embedded DuckDB. The schema states what is public about the table. Everything else
    is measured with noise, within the privacy budget (ε, δ), and the synthetic rows are sampled from a model of these
    noisy counts.

    \b
      dpsyn synthesize people.csv -s schema.yaml --epsilon 1 -o synthetic.csv
      dpsyn synthesize people.csv -s schema.yaml --epsilon 1 -o release/
      dpsyn synthesize people.csv -s schema.yaml --epsilon 1 -o rows.parquet --ledger ledger.db --synopsis s.dpsyn
      dpsyn synthesize people.csv -s schema.yaml --epsilon 1 -o release/ --report report.html
      dpsyn synthesize people.csv -s schema.yaml --epsilon 1 -o release/ --sign steward.key --card --with-verifier
      dpsyn synthesize people.csv -s schema.yaml --epsilon 1 -o rows.csv --recipe privsyn --set rare_rows=800
      dpsyn synthesize people.csv -s schema.yaml --epsilon 1 -o rows.csv --weight income=10
      dpsyn synthesize people.parquet --query 'SELECT age, sex FROM people' -s schema.yaml --epsilon 1 -o release/

    Before anything is read, a line forecasts what the release will be worth; dpsyn forecast compares several ε. How to
    choose ε and δ, what others use and what it means for a person: docs/how-to/choosing-epsilon.md

    A run keeps its noisy answers in FILE.journal until FILE is written. If it is interrupted, the same command with
    --resume continues it. -o - prints rows and keeps nothing, so with --ledger it needs --synopsis FILE. More rows of
    the same release cost no privacy: dpsyn generate.
    """
    release_run.refuse_collisions({"--output": target, "--synopsis": synopsis, "--report": report}, options)
    release_run.check_extras(target, sign=signing_key, card=card, with_verifier=with_verifier)
    key = release_run.load_signing_key(signing_key) if signing_key else None
    extras: dict[str, Any] = {"card": card, "with_verifier": with_verifier, "sign": key}
    groups = released_evaluation.parse_groups(by)
    if groups is not None and report is None:
        raise click.UsageError("--by names the groups of a report; give --report FILE, too")
    journal = release_run.journal_path(target, synopsis)
    complete = release_run.find_complete_output(target, journal, resume=options["resume"], force=force)
    if complete is None:
        output.check_target(target, force, escape_formulas=escape_formulas)
    release_run.check_journal(journal, resume=options["resume"], ledger=options["ledger"])
    for option, extra in (("--synopsis", synopsis), ("--report", report)):
        if str(extra) == "-":
            raise click.UsageError(f"{option} cannot go to standard output; give the name of a file")
        if extra and not options["resume"]:  # an interrupted run may have written it
            output.refuse_to_overwrite(str(extra), force)
    if report:
        _check_report(report)
    with release_run.explain_resume(journal), output.show_progress(quiet) as progress:
        then = (SAMPLE_ROWS, WRITE_VALUES, MAKE_REPORT) if report else (SAMPLE_ROWS,)
        released = release_run.measure_table(journal, progress, quiet=quiet, then=then, groups=groups, **options)
        if complete is not None:
            release_run.finish_complete_run(target, journal, complete, quiet=quiet)
            return
        if synopsis:
            released.save(synopsis)
            if target == "-":
                release_run.discard_journal(journal)  # all that was paid for is in the synopsis
        if report:
            table = released.generate(rows, seed=seed, output_format="arrow", progress=progress)
            output.write_rows(released, table, target, escape_formulas=escape_formulas, **extras)
            _write_report(report, released, table, progress)
        else:
            released.write(target, rows, seed=seed, escape_formulas=escape_formulas, progress=progress, **extras)
    release_run.discard_journal(journal)
    if quiet:
        return
    if target == "-":
        release_run.print_certificate(released, to_stderr=True)
        return
    output.print_written_rows(target)
    if key:
        output.print_line(f"Signed by {key.public_key.fingerprint}: dpsyn verify {target} --key {key.public_key}")
    if synopsis:
        output.print_line(f"Wrote {synopsis}: the noisy counts; try dpsyn inspect {synopsis}.")
    if report:
        output.print_line(
            f"Wrote {report}: how close the rows are to what was released; it may be published with them."
        )
    output.print_line("")
    release_run.print_certificate(released)


def _check_report(path: Path) -> None:
    """Refuse a report that could not be written, before any budget is spent."""
    from dpsyn.report.charts import require_vega

    require_vega()
    atomic_files.check_writable(path)


def _write_report(path: Path, synopsis: Synopsis, table: Any, progress: Progress) -> None:
    from dpsyn.report.release_report import publishable_report

    progress(MAKE_REPORT.phase, 0.0)
    atomic_files.write_text(path, publishable_report(synopsis, table))
