"""``dpsyn evaluate``: is a synthetic table any good?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dpsyn
from dpsyn import outputs
from dpsyn.cli import measuring, output, progress

if TYPE_CHECKING:
    from dpsyn.report.evaluation import Evaluation

PRESETS = ("paper", "match3")
"""Names for ``--help``, which must not load the metrics; a test compares them with the library's."""


@click.command()
@click.argument("real", metavar="REAL")
@click.argument("synthetic", metavar="SYNTHETIC...", nargs=-1, required=True)
@click.option(
    "-s",
    "--schema",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What is public about the table; see dpsyn schema.",
)
@click.option("--json", "target_file", metavar="FILE", help="Write all figures as JSON; - for standard output.")
@click.option(
    "--preset",
    default=PRESETS[0],
    show_default=True,
    type=click.Choice(PRESETS),
    help="Parameters of the NIST metrics: those of the paper, or of the contest's third match.",
)
@click.option("--target", metavar="COLUMN", help="Also train classifiers that predict it; needs the extra dpsyn[ml].")
@click.option("--region", metavar="COLUMN", help="With --sex and --income: also the NIST Gini and gender gap.")
@click.option("--sex", metavar="COLUMN", help="See --region.")
@click.option("--income", metavar="COLUMN", help="See --region; incomes of 999998 and more are left out as codes.")
@click.option("--sexes", metavar="A,B", help="The two values of --sex to compare; by default 1,2 or its first two.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), metavar="N", help="Random choices.")
@click.option("--query", metavar="SQL", help="A SELECT, or the name of a table, if REAL is a DuckDB database.")
@click.option("--force", is_flag=True, help="Overwrite the JSON file if it exists.")
@click.option("-q", "--quiet", is_flag=True, help="Do not show how far it is.")
def command(
    real: str,
    synthetic: tuple[str, ...],
    schema: Path,
    target_file: str | None,
    sexes: str | None,
    force: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Compare a synthetic table with the real one.

    Every figure stands beside two yardsticks: the sampling floor, what a fresh sample of the real rows would get, and
    independent, what they get with every column shuffled by itself. Several synthetic tables, such as those for several
    ε, are scored one after the other and then together, as the NIST contest ranked its teams.

    What it prints is computed from the real rows and not protected: do not publish it, and do not choose among releases
    by it.

    \b
      dpsyn evaluate people.csv synthetic.csv -s schema.yaml
      dpsyn evaluate people.csv synthetic.csv -s schema.yaml --json scores.json --target employed
      dpsyn evaluate people.csv synthetic.csv -s schema.yaml --region district --sex sex --income income
    """
    _refuse_places(target_file, force, (real, schema, *synthetic))
    public = dpsyn.Schema.load(schema)
    pair = _two_values(sexes)
    with progress.shown(quiet) as shown:
        found = [dpsyn.evaluate(real, table, public, sexes=pair, progress=shown, **options) for table in synthetic]
    if target_file is not None:
        _write(target_file, found)
    if target_file != "-":
        _show(found)


def _refuse_places(target: str | None, force: bool, inputs: tuple[object, ...]) -> None:
    """Refuse to write over a file that is read or exists, or where none can be, before work is done for it."""
    if target is None or target == "-":
        return
    for given in inputs:
        measuring.refuse_collisions({"--json": target}, {"data": given})
    output.refuse_to_overwrite(target, force)
    outputs.check_writable(Path(target))


def _two_values(sexes: str | None) -> tuple[str, str] | None:
    if sexes is None:
        return None
    values = [value.strip() for value in sexes.split(",")]
    if len(values) != 2:
        raise click.UsageError(f"--sexes is {sexes!r}; give two values with a comma between them")
    return values[0], values[1]


def _write(target: str, found: list[Evaluation]) -> None:
    from dpsyn.report import evaluation as words

    text = json.dumps(words.evaluation_data(found), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    output.write_text(target, text, private=True)


def _show(found: list[Evaluation]) -> None:
    """All figures for a person; the notice first."""
    from dpsyn.report import evaluation as words

    output.say(f"{found[0].notice}\n")
    for evaluation in found:
        numbers = range(1, 4)
        output.table(words.title(evaluation), words.SCORE_HEADINGS, words.score_rows(evaluation), right=numbers)
        output.table("", words.WORST_HEADINGS, words.worst_rows(evaluation), right=numbers)
    if len(found) > 1:
        output.say(words.combined_line(found))
    output.say(words.YARDSTICKS)
    output.say(f"Identical rows: {found[0].identical.note}")
    if found[0].left_out:
        output.say(f"Not compared: {', '.join(found[0].left_out)}.")
