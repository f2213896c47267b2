"""``dpsyn inspect``: what a synopsis holds."""

from __future__ import annotations

from pathlib import Path

import click

import dpsyn
from dpsyn.cli import output, release_run
from dpsyn.cli.common_options import common_options
from dpsyn.report import synopsis as words

MAX_SAMPLED_ROWS = 200_000
"""Rows that are sampled for a page: more would not change what it shows."""


@click.command()
@common_options("synopsis", "json")
@click.option(
    "--html",
    "page",
    metavar="FILE",
    help="Write an HTML page about it that may be published, with rows sampled for it; needs the extra report.",
)
@common_options("force")
def command(synopsis: Path, as_json: bool, page: str | None, force: bool) -> None:
    """Show what a synopsis holds: the guarantee of every release, every number that was released, and what it cost.

    The cost is recomputed from the noisy measurements that the file records, in two ways. A file that states another
    cost is refused. Nothing in a synopsis is private. What was reached, as these numbers tell, is compared with the
    forecast for such a table.

    \b
      dpsyn inspect s.dpsyn
      dpsyn inspect s.dpsyn --json
      dpsyn inspect s.dpsyn --html synopsis.html
      dpsyn ledger verify ledger.db --against s.dpsyn      does the ledger agree with it?
    """
    if page is not None:
        _check_page(page, as_json, force, synopsis)
    with output.show_status(f"Recomputing the cost of {synopsis}"):
        released = dpsyn.Synopsis.load(synopsis, recompute=True)
    if page is not None:
        with output.show_status("Making the page"):
            rows = released.generate_arrow(min(released.rows, MAX_SAMPLED_ROWS), seed=0)
            text = dpsyn.publishable_report(released, rows)
        output.write_text(page, text)
    if as_json:
        output.print_json(words.synopsis_data(released))
    elif page is None:
        _print_synopsis(released)
    elif page != "-":
        output.print_written(page)


def _print_synopsis(released: dpsyn.Synopsis) -> None:
    """Print the releases, their guarantees, and every measurement."""
    for line in [*words.overview_lines(released), *words.forecast_lines(released)]:
        output.print_line(line)
    for number, release in enumerate(released.releases, start=1):
        output.print_line(f"\nRelease {number} of {len(released.releases)}: {release.title}")
        for line in [*words.release_lines(release), *words.score_lines(release)]:
            output.print_line(line)
        output.print_table("", words.SPENDING_HEADINGS, words.spending_rows(release), right=(1, 2, 3))


def _check_page(page: str, as_json: bool, force: bool, synopsis: Path) -> None:
    """Refuse a page that could not be written, before any work is done."""
    from dpsyn.report.charts import require_vega

    release_run.check_result_files({"--html": page, "--json": "-" if as_json else None}, force, [synopsis])
    require_vega()
