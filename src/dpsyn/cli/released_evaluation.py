"""``dpsyn evaluate --epsilon``: an evaluation through the privacy gate, which may be published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dpsyn
from dpsyn.cli import output, release_run
from dpsyn.errors import OutputError
from dpsyn.progress import MAKE_REPORT, READ_TABLE, Step

if TYPE_CHECKING:
    from dpsyn import ReleasedEvaluation

STEPS = (Step("reading the synthetic table", 1), READ_TABLE, Step("measuring distances", 4))
"""The steps of a released evaluation."""


def parse_groups(text: str | None) -> tuple[str, ...] | None:
    """The attributes of groups, from a text such as ``sex,region``; None stands for those of the schema."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise click.UsageError(f"--by is {text!r}; give attributes with commas between, such as sex,region")
    return tuple(names)


def evaluate_with_noise(
    tables: tuple[str, ...],
    schema: Path,
    page: str | None,
    json_file: str | None,
    *,
    ledger: Path | None,
    criteria: Path | None,
    resume: bool,
    force: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Measure how close a synthetic table is to the private one, write the results, and print them."""
    if len(tables) != 2:
        raise click.UsageError("--epsilon measures one synthetic table; give REAL and SYNTHETIC")
    files = [target for target in (json_file, page) if target not in (None, "-")]
    if ledger is not None and not files:
        raise OutputError(
            "a release that is recorded in a ledger must be kept, because its budget is spent even if its output is "
            "lost; give --json FILE or --html FILE"
        )
    journal = Path(f"{files[0]}.journal") if files else None
    release_run.refuse_collisions(
        {"--json": json_file, "--html": page, "the journal": journal},
        {"data": tables[0], "schema": schema, "ledger": ledger, "plan": criteria},
    )
    if resume and journal is None:
        raise OutputError("a run that writes no file keeps no journal, so it cannot be resumed; give --json FILE")
    for target in files:
        output.refuse_to_overwrite(str(target), force or resume)  # an interrupted run may have written one of them
    release_run.check_journal(journal, resume=resume, ledger=None)
    steps = [*STEPS, *([MAKE_REPORT] if page else [])]
    with (
        release_run.explain_resume(journal),
        output.show_progress(quiet, steps) as progress,
        release_run.show_notes(quiet),
    ):
        evaluation = dpsyn.release_evaluation(
            *tables,
            schema,
            criteria=criteria,
            ledger=ledger,
            journal=journal,
            resume=resume,
            progress=progress,
            **options,
        )
        if json_file is not None:
            output.write_text(json_file, output.format_json(evaluation.to_dict()) + "\n")
        if page is not None:
            from dpsyn.report.released_evaluation import released_evaluation_page

            progress(MAKE_REPORT.phase, 0.0)
            output.write_text(page, released_evaluation_page(evaluation))
    release_run.discard_journal(journal)
    if "-" in (page, json_file) or (quiet and files):
        return
    _show(evaluation)
    if not quiet:
        for target in files:
            output.print_written(str(target))
        output.print_line("\n" + evaluation.certificate.summary().rstrip("\n"))


def _show(evaluation: ReleasedEvaluation) -> None:
    """Print the findings, then a table for each kind of figure."""
    from dpsyn.report import released_evaluation as words

    output.print_line(f"{evaluation.notice}\n")
    headline, *details = words.evaluation_lines(evaluation)
    output.print_line("\n".join([headline, *(f"  - {line}" for line in details), ""]))
    if rows := words.criterion_rows(evaluation):
        output.print_table("", words.CRITERION_HEADINGS, rows, right=(1, 2))
    output.print_table("", words.DISTANCE_HEADINGS, words.overall_rows(evaluation), right=(1, 2, 3))
    if rows := words.attribute_rows(evaluation):
        output.print_table("", words.DISTANCE_HEADINGS, rows, right=(1, 2, 3))
    if rows := words.group_rows(evaluation):
        output.print_table("", words.GROUP_HEADINGS, rows, right=(1, 2, 3, 4, 5))
        output.print_line(words.GROUP_EXPLANATION)
    output.print_line(words.EXPLANATION)
