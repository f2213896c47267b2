"""``dpsyn inspect``: what a synopsis holds."""

from __future__ import annotations

import json
from pathlib import Path

import click

import dpsyn
from dpsyn.cli import output
from dpsyn.report import synopsis as words


@click.command()
@click.argument("synopsis", metavar="SYNOPSIS", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(synopsis: Path, as_json: bool) -> None:
    """Show what a synopsis holds: the guarantee of every release, and who paid what for which number.

    The cost is recomputed from the draws that the file records, in two ways; a file that states another one is
    refused. Nothing in it is private.

    \b
      dpsyn inspect s.dpsyn
      dpsyn inspect s.dpsyn --json
      dpsyn ledger verify ledger.db --against s.dpsyn      does the ledger still know of it?
    """
    with output.show_status(f"Recomputing what {synopsis} cost"):
        held = dpsyn.Synopsis.load(synopsis, recompute=True)
    if as_json:
        output.print_line(json.dumps(words.synopsis_data(held), indent=2, ensure_ascii=False, allow_nan=False))
        return
    for line in words.overview_lines(held):
        output.print_line(line)
    for number, release in enumerate(held.releases, start=1):
        output.print_line(f"\nRelease {number} of {len(held.releases)}: {release.title}")
        for line in [*words.release_lines(release), *words.score_lines(release)]:
            output.print_line(line)
        output.print_table("", words.SPENDING_HEADINGS, words.spending_rows(release), right=(1, 2, 3))
