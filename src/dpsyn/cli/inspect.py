"""``dpsyn inspect``: what a synopsis holds."""

from __future__ import annotations

from pathlib import Path

import click

import dpsyn
from dpsyn.cli import output
from dpsyn.cli.common_options import common_options
from dpsyn.report import synopsis as words


@click.command()
@common_options("synopsis", "json")
def command(synopsis: Path, as_json: bool) -> None:
    """Show what a synopsis holds: the guarantee of every release, every number that was released, and what it cost.

    The cost is recomputed from the noisy measurements that the file records, in two ways. A file that states another
    cost is refused. Nothing in a synopsis is private. What was reached, as these numbers tell, is compared with the
    forecast for such a table.

    \b
      dpsyn inspect s.dpsyn
      dpsyn inspect s.dpsyn --json
      dpsyn ledger verify ledger.db --against s.dpsyn      does the ledger agree with it?
    """
    with output.show_status(f"Recomputing the cost of {synopsis}"):
        released = dpsyn.Synopsis.load(synopsis, recompute=True)
    if as_json:
        output.print_json(words.synopsis_data(released))
        return
    for line in [*words.overview_lines(released), *words.forecast_lines(released)]:
        output.print_line(line)
    for number, release in enumerate(released.releases, start=1):
        output.print_line(f"\nRelease {number} of {len(released.releases)}: {release.title}")
        for line in [*words.release_lines(release), *words.score_lines(release)]:
            output.print_line(line)
        output.print_table("", words.SPENDING_HEADINGS, words.spending_rows(release), right=(1, 2, 3))
