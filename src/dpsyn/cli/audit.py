"""``dpsyn audit``: does this installation keep the guarantee that it states?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import dpsyn
from dpsyn.cli import output, release_run
from dpsyn.cli.common_options import common_options
from dpsyn.progress import Step

if TYPE_CHECKING:
    from dpsyn import AuditReport

AUDIT_STEPS = (Step("replaying on neighboring tables", 1), Step("looking for canaries", 10))


@click.command()
@click.option(
    "--runs",
    type=click.IntRange(20, 10**7),
    default=1_000,
    show_default=True,
    metavar="N",
    help="Runs on each of two neighboring tables; slow recipes get a part of them.",
)
@click.option(
    "--replays",
    type=click.IntRange(0, 10_000),
    default=2,
    show_default=True,
    metavar="N",
    help="Pairs of neighboring tables on which each program is replayed.",
)
@click.option(
    "--only", multiple=True, metavar="NAME", help="Audit only this recipe or method of the gate; can be repeated."
)
@click.option("--html", "page", metavar="FILE", help="Write the result as an HTML page.")
@click.option("--json", "json_file", metavar="FILE", help="Write all figures as JSON; - for standard output.")
@common_options("force", "quiet")
def command(
    runs: int,
    replays: int,
    only: tuple[str, ...],
    page: str | None,
    json_file: str | None,
    force: bool,
    quiet: bool,
) -> int:
    """Attack the installed package, on tables that it makes itself. No data is read, and no budget is spent.

    Every recipe and every method of the gate is replayed on neighboring tables: exact answers may differ by no more
    than was charged, and nothing else may differ. The noise is compared with its stated distribution. And canaries are
    looked for in what is released, which gives lower bounds of the privacy loss, each with what would have been found
    had the noise been 10, 20 or 50 % less.

    \b
      dpsyn audit                                     a few minutes
      dpsyn audit --runs 10000 --html audit.html      an hour; bounds that come near to what is claimed
      dpsyn audit --only measure --only independent

    The exit code is 1 if a fault was found. A sound installation is reported with a probability of at most 1 in 10,000.
    """
    files = release_run.check_result_files({"--html": page, "--json": json_file}, force)
    with output.show_progress(quiet, AUDIT_STEPS) as progress:
        report = dpsyn.audit(runs, replays=replays, only=only, progress=progress)
    if page is not None:
        from dpsyn.report.audit_report import audit_page

        output.write_text(page, audit_page(report))
    if json_file is not None:
        output.write_text(json_file, output.format_json(report.to_dict()) + "\n")
    if "-" not in (page, json_file):
        _show(report, quiet=quiet)
        for target in () if quiet else files:
            output.print_written(target)
    return 0 if report.passed else 1


def _show(report: AuditReport, *, quiet: bool) -> None:
    from dpsyn.report import audit_report

    if not quiet:
        tables = (
            (audit_report.REPLAY_HEADINGS, audit_report.replay_rows(report), 1),
            (audit_report.BOUND_HEADINGS, audit_report.bound_rows(report), 2),
            (audit_report.NOISE_HEADINGS, audit_report.noise_rows(report), 2),
        )
        for headings, rows, texts in filter(lambda table: table[1], tables):
            output.print_table("", headings, rows, right=range(texts, len(headings)))
        output.print_line(audit_report.EXPLANATION)
    for fault in report.faults:
        output.print_line(f"FAULT: {fault}")
    output.print_line(report.verdict)
