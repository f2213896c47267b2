"""``dpsyn contest``: contests on generated data."""

from __future__ import annotations

from pathlib import Path

import click

import dpsyn
from dpsyn.cli import output, release_run
from dpsyn.cli.command_group import CommandGroup
from dpsyn.cli.common_options import common_options
from dpsyn.cli.evaluate import PRESET_NAMES, parse_income_columns
from dpsyn.progress import Step
from dpsyn.report.numbers import format_count, format_rounded_down

_ROWS = click.IntRange(min=100)  # a test compares it with the library's


SCORING_STEPS = (Step("making the tables", 1), Step("scoring the references", 1), Step("scoring", 4))
"""The steps of scoring; the last one is about all submissions."""


@click.group(cls=CommandGroup)
def command() -> None:
    """Run a contest of synthetic tables on generated data: a public process, a hidden seed, a ranking.

    With real tables, a contest is decided by who knows most about the data. Here everybody knows the same: the process
    that makes the tables is public, and its seed is hidden, so nobody knows the distribution.

    \b
      dpsyn contest make schema.yaml --rows 20000 --epsilon 0.3,1,8 -o contest
      dpsyn synthesize contest/hidden/evaluation.csv -s contest/public/schema.yaml --epsilon 1 \\
          -o contest/submissions/mine-epsilon-1.csv
      dpsyn contest score contest --html ranking.html
    """


@command.command(short_help="Make the tables, from a public process and a hidden seed.")
@click.argument("schema", metavar="SCHEMA", type=click.Path(path_type=Path))
@common_options(
    "rows",
    rows={
        "type": _ROWS,
        "help": "Rows of the evaluation table; by default the expected size in the schema.",
    },
)
@click.option(
    "--development-rows",
    type=_ROWS,
    metavar="N",
    help="Rows of the development table; by default as many.",
)
@common_options(
    "epsilon",
    "delta",
    epsilon={
        "required": False,
        "type": str,
        "default": "0.3,1,8",
        "show_default": True,
        "metavar": "E,E,...",
        "help": "The ε at which contestants submit a table, separated by commas.",
    },
    delta={"help": "The largest δ; by default 1/rows², as in the NIST contest."},
)
@click.option(
    "--preset",
    default=PRESET_NAMES[0],
    show_default=True,
    type=click.Choice(PRESET_NAMES),
    help="The NIST metrics as the paper describes them, or as the scorer of the contest's third match computed them.",
)
@click.option(
    "--nist-income",
    metavar="COLUMNS",
    help="Also the NIST Gini index and gender gap, such as region=district,sex=sex,income=wage.",
)
@click.option(
    "--format",
    "suffix",
    default="csv",
    show_default=True,
    type=click.Choice(("csv", "parquet")),
    help="The format of both tables.",
)
@common_options(
    "seed",
    "output",
    "quiet",
    seed={"help": "For examples and tests; by default it is random and too long to be guessed."},
    output={"metavar": "FOLDER", "help": "Where to write; it must not exist, or be empty."},
)
def make(
    schema: Path,
    rows: int | None,
    development_rows: int | None,
    epsilon: str,
    delta: float | None,
    preset: str,
    nist_income: str | None,
    suffix: str,
    seed: int | None,
    target: str,
    quiet: bool,
) -> None:
    """Make the tables of a contest from a public process and a hidden seed.

    \b
      dpsyn contest make schema.yaml --rows 20000 --epsilon 0.3,1,8 -o contest

    \b
      FOLDER/public       for the contestants: terms, schema, development table
      FOLDER/hidden       stays with you until the end: seed, evaluation table
      FOLDER/submissions  for synthetic versions of the evaluation table, NAME-epsilon-E.csv

    Both tables are samples of one distribution. The terms hold one hash of seed, terms and schema: once you publish the
    seed, everybody can make the tables again.
    """
    if target == "-":
        raise click.UsageError("a contest is a folder; give its name with -o")
    with output.show_status("Making tables", quiet), release_run.show_notes(quiet):
        contest = dpsyn.make_contest(
            schema,
            target,
            rows=rows,
            development_rows=development_rows,
            epsilons=release_run.parse_epsilons(epsilon),
            delta=delta,
            preset=preset,
            income_columns=parse_income_columns(nist_income),
            suffix=suffix,
            seed=seed,
        )
    if not quiet:
        output.print_line(
            f"Wrote {target}: publish {target}/public with {format_count(contest.development_rows, 'row')}, and keep "
            f"{target}/hidden with {format_count(contest.rows, 'row')} to yourself."
        )
        output.print_line(
            f"Submissions go to {target}/submissions, one for each ε: {', '.join(contest.file_names())}, with δ at "
            f"most {format_rounded_down(contest.delta)}."
        )


@command.command(short_help="Score the submissions and rank the contestants.")
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@click.option(
    "--draws",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    metavar="N",
    help="Draws of random triples and queries whose scores are averaged.",
)
@click.option("--html", "page", metavar="FILE", help="Write the ranking as an HTML page.")
@click.option("--json", "json_file", metavar="FILE", help="Write all figures as JSON; - for standard output.")
@common_options("force", "quiet")
def score(folder: Path, draws: int, page: str | None, json_file: str | None, force: bool, quiet: bool) -> None:
    """Score the tables in FOLDER/submissions against the hidden evaluation table, and rank the contestants.

    A contestant's score is the mean over all ε of the contest; a table that was not submitted counts 0. A synopsis
    beside a table, NAME-epsilon-E.dpsyn, shows that its guarantee is within the contest's; a release folder
    NAME-epsilon-E/ holds both. The tables are generated, so the ranking may be published.

    \b
      dpsyn contest score contest
      dpsyn contest score contest --html ranking.html --json ranking.json
    """
    from dpsyn.report import contest_report

    files = release_run.check_result_files({"--html": page, "--json": json_file}, force)
    with output.show_progress(quiet, SCORING_STEPS) as progress, release_run.show_notes(quiet):
        ranking = dpsyn.score_submissions(folder, draws=draws, progress=progress)
    if page is not None:
        output.write_text(page, contest_report.ranking_page(ranking))
    if json_file is not None:
        output.write_text(json_file, output.format_json(ranking.to_dict()) + "\n")
    if "-" not in (page, json_file) and not (quiet and files):
        headings = contest_report.ranking_headings(ranking)
        output.print_table("", headings, contest_report.ranking_rows(ranking), right=range(2, len(headings)))
        output.print_line(contest_report.EXPLANATION)
    if not quiet and "-" not in (page, json_file):
        for target in files:
            output.print_written(target)
