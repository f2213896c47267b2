"""``dpsyn measure``: the private part of a release alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpsyn import atomic_files
from dpsyn.cli import output, release_run
from dpsyn.errors import OutputError


@click.command()
@release_run.release_options
@click.option("-o", "--output", "target", required=True, metavar="FILE", help="Where to write the synopsis: s.dpsyn.")
@click.option("--extend", type=click.Path(path_type=Path), metavar="OLD", help="An earlier synopsis to improve.")
def command(target: str, extend: Path | None, force: bool, quiet: bool, **options: Any) -> None:
    """Measure a sensitive table and keep the noisy tables as a synopsis, from which any number of rows can be made.

    A synopsis is one file that may be published. It holds every number that left the private table, what each cost,
    and what rows are drawn from.

    \b
      dpsyn measure people.csv -s schema.yaml --epsilon 1 -o s.dpsyn
      dpsyn inspect s.dpsyn                                  who paid what for which number
      dpsyn generate s.dpsyn --rows 1000 -o rows.csv         costs nothing, as often as you like
      dpsyn query s.dpsyn age,sex                            any table of counts, with error bars; costs nothing
      dpsyn measure people.csv -s schema.yaml --epsilon 0.5 --extend s.dpsyn -o better.dpsyn

    --extend measures the same table again and combines both; the promises of both releases add up.
    """
    release_run.refuse_collisions({"--output": target}, {**options, "extend": extend})
    if target == "-" or output.is_folder(target):
        raise OutputError(f"{target} is no place for a synopsis; give the name of a file, such as s.dpsyn")
    output.refuse_to_overwrite(target, force)
    atomic_files.check_writable(Path(target))
    journal = release_run.journal_path(target)
    with release_run.explain_resume(journal), output.show_progress(quiet) as shown:
        synopsis = release_run.measure_table(journal, shown, quiet=quiet, extend=extend, **options)
        synopsis.save(target)
    release_run.discard_journal(journal)
    if not quiet:
        output.print_line(f"Wrote {target}. Make rows with: dpsyn generate {target} -o rows.csv")
        output.print_line(f"Ask for counts with: dpsyn query {target} ATTRIBUTE,ATTRIBUTE\n")
        release_run.print_certificate(synopsis)
