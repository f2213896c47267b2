"""``dpsyn measure``: the private part of a release alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpsyn import atomic_files
from dpsyn.cli import output, release_run
from dpsyn.cli.common_options import RELEASE_OPTIONS, SYNOPSIS_OUTPUT, common_options
from dpsyn.errors import OutputError


@click.command()
@common_options(*RELEASE_OPTIONS, "output", output=SYNOPSIS_OUTPUT)
@click.option("--extend", type=click.Path(path_type=Path), metavar="OLD", help="An earlier synopsis to improve.")
@common_options("sign", "force", "quiet")
def command(
    target: str, extend: Path | None, signing_key: Path | None, force: bool, quiet: bool, **options: Any
) -> None:
    """Measure a sensitive table and keep the noisy counts as a synopsis, from which any number of rows can be sampled.

    A synopsis is one file that may be published. It holds every number that was released from the private table, what
    each number cost, and the model that rows are sampled from.

    \b
      dpsyn measure people.csv -s schema.yaml --epsilon 1 -o s.dpsyn
      dpsyn inspect s.dpsyn                                  what was released, and what each number cost
      dpsyn generate s.dpsyn --rows 1000 -o rows.csv         costs no privacy, however often
      dpsyn query s.dpsyn age,sex                            any table of counts, with error bars; costs no privacy
      dpsyn measure people.csv -s schema.yaml --epsilon 1 --recipe priview --set views=covering:2x8 -o s.dpsyn
      dpsyn measure people.csv -s schema.yaml --epsilon 0.5 --extend s.dpsyn -o better.dpsyn

    Before anything is read, a line forecasts what the release will be worth; dpsyn forecast compares several ε. How to
    choose ε and δ, what others use and what it means for a person: docs/how-to/choosing-epsilon.md

    --sign KEY writes s.dpsyn.signatures.json beside the synopsis, by which readers verify it: dpsyn verify s.dpsyn.

    --extend measures the same table again and combines both releases; their privacy budgets add up. If the earlier one
    was recorded in a ledger, give that ledger again.
    """
    release_run.refuse_collisions({"--output": target}, {**options, "extend": extend})
    if target == "-" or output.is_folder(target):
        raise OutputError(f"a synopsis cannot be written to {target}; give the name of a file, such as s.dpsyn")
    key = release_run.load_signing_key(signing_key) if signing_key else None
    journal = release_run.journal_path(target)
    complete = release_run.find_complete_output(target, journal, resume=options["resume"], force=force)
    output.refuse_to_overwrite(target, force or complete is not None)
    atomic_files.check_writable(Path(target))
    release_run.check_journal(journal, resume=options["resume"], ledger=options["ledger"])
    with release_run.explain_resume(journal), output.show_progress(quiet) as progress:
        synopsis = release_run.measure_table(journal, progress, quiet=quiet, extend=extend, **options)
        if complete is not None:
            release_run.finish_complete_run(target, journal, complete, quiet=quiet)
            return
        synopsis.save(target, sign=key)
    release_run.discard_journal(journal)
    if not quiet:
        output.print_line(f"Wrote {target}. Sample rows with: dpsyn generate {target} -o rows.csv")
        if key:
            output.print_line(f"Signed by {key.public_key.fingerprint}: dpsyn verify {target} --key {key.public_key}")
        output.print_line(f"Query counts with: dpsyn query {target} ATTRIBUTE,ATTRIBUTE\n")
        release_run.print_certificate(synopsis)
