"""``dpsyn evaluate``: is a synthetic table any good?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

import dpsyn
from dpsyn import atomic_files
from dpsyn.cli import output, release_run
from dpsyn.errors import UserError

if TYPE_CHECKING:
    from dpsyn.report.evaluation_report import Evaluation

PRESET_NAMES = ("paper", "match3")
"""Names for ``--help``, which must not load the metrics; a test compares them with the library's."""


@click.command()
@click.argument("tables", metavar="[REAL] SYNTHETIC...", nargs=-1, required=True)
@click.option(
    "-s",
    "--schema",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What is public about the table; see dpsyn schema.",
)
@click.option("--html", "page", metavar="FILE", help="Write a report to look at; needs the extra dpsyn[report].")
@click.option("--json", "target_file", metavar="FILE", help="Write all figures as JSON; - for standard output.")
@click.option(
    "--from-synopsis",
    "released",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Compare with what was released instead of a real table; the result may be published.",
)
@click.option(
    "--synopsis",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What the synthetic table was made from: its certificate and budget join the report.",
)
@click.option(
    "--preset",
    default=PRESET_NAMES[0],
    show_default=True,
    type=click.Choice(PRESET_NAMES),
    help="Parameters of the NIST metrics: those of the paper, or of the contest's third match.",
)
@click.option("--target", metavar="COLUMN", help="Also train classifiers that predict it; needs the extra dpsyn[ml].")
@click.option("--region", metavar="COLUMN", help="With --sex and --income: also the NIST Gini and gender gap.")
@click.option("--sex", metavar="COLUMN", help="See --region.")
@click.option("--income", metavar="COLUMN", help="See --region; incomes of 999998 and more are left out as codes.")
@click.option("--sexes", metavar="A,B", help="The two values of --sex to compare; by default 1,2 or its first two.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), metavar="N", help="Random choices.")
@click.option("--query", metavar="SQL", help="A SELECT on REAL: a table of a DuckDB database, or files, called data.")
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
@click.option("-q", "--quiet", is_flag=True, help="Do not show how far it is.")
def command(
    tables: tuple[str, ...],
    schema: Path | None,
    page: str | None,
    target_file: str | None,
    released: Path | None,
    synopsis: Path | None,
    sexes: str | None,
    force: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Compare a synthetic table with the real one, or with what was released.

    Every figure stands beside two yardsticks: the sampling floor, what a fresh sample of the real rows would get, and
    independent, what they get with every column shuffled by itself. Several synthetic tables, such as those for several
    ε, are scored one after the other and then together, as the NIST contest ranked its teams.

    What it prints is computed from the real rows and not protected: do not publish it, and do not choose among releases
    by it. With --from-synopsis no real table is read: the synthetic one is compared with the released counts, and what
    that gives may be published.

    \b
      dpsyn evaluate people.csv synthetic.csv -s schema.yaml
      dpsyn evaluate people.csv synthetic.csv -s schema.yaml --html report.html --synopsis s.dpsyn
      dpsyn evaluate people.csv synthetic.csv -s schema.yaml --json scores.json --target employed
      dpsyn evaluate people.csv synthetic.csv -s schema.yaml --region district --sex sex --income income
      dpsyn evaluate --from-synopsis s.dpsyn synthetic.csv --html publishable.html
    """
    inputs = (*tables, *filter(None, (schema, released, synopsis)))
    _refuse_targets({"--html": page, "--json": target_file}, force, inputs)
    if released is not None:
        _refuse_options_of_the_real_table()
        _compare_with_release(released, tables, page, target_file, quiet)
        return
    if schema is None:
        raise click.UsageError("Missing option '-s' / '--schema'.")
    if len(tables) < 2:
        raise click.UsageError("Missing argument 'SYNTHETIC...'.")
    if page is not None and len(tables) > 2:
        raise click.UsageError("--html makes a report of one synthetic table; call it once for each")
    public, kept = dpsyn.Schema.load(schema), None if synopsis is None else dpsyn.Synopsis.load(synopsis)
    if kept is not None and _compared_columns(kept.schema) != _compared_columns(public):
        raise UserError(f"{synopsis} is not about the columns of {schema}; give the synopsis of this table's release")
    income = _income_columns(options.pop("region"), options.pop("sex"), options.pop("income"), _parse_pair(sexes))
    with output.show_progress(quiet) as shown:
        found = [
            dpsyn.evaluate(tables[0], t, public, income_columns=income, progress=shown, **options) for t in tables[1:]
        ]
        if page is not None:
            from dpsyn.report.evaluation_report import private_report

            shown("drawing the report", 0.0)
            output.write_text(page, private_report(found[0], kept), private=True)
    if target_file is not None:
        _write_json(target_file, found)
    if "-" not in (target_file, page):
        _show_evaluations(found)


def _compare_with_release(
    synopsis: Path,
    tables: tuple[str, ...],
    page: str | None,
    target_file: str | None,
    quiet: bool,
) -> None:
    """The mode without a real table."""
    if len(tables) > 1:
        raise click.UsageError("--from-synopsis reads no real table; give the synthetic one alone")
    from dpsyn.report import release_report as words

    released = dpsyn.Synopsis.load(synopsis)
    with output.show_progress(quiet) as shown:
        shown("counting synthetic rows", 0.0)
        closeness = released.compare_rows(dpsyn.read_table(tables[0]))
        if page is not None:
            shown("drawing the report", 0.0)
            output.write_text(page, words.comparison_report(released, closeness))
    if target_file is not None:
        text = json.dumps(closeness.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        output.write_text(target_file, text)
    if "-" not in (target_file, page):
        output.print_line(f"{words.publication_banner(released)}\n")
        output.print_table("", words.COMPARISON_HEADINGS, words.comparison_rows(closeness), right=range(1, 4))
        output.print_line(words.COMPARISON_BASELINES)


def _refuse_options_of_the_real_table() -> None:
    context = click.get_current_context()
    for name in ("schema", "synopsis", "preset", "target", "region", "sex", "income", "sexes", "seed", "query"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} needs the real table, which --from-synopsis does without")


def _refuse_targets(targets: Mapping[str, str | None], force: bool, inputs: tuple[object, ...]) -> None:
    """Refuse to write over a file that is read or exists, or where none can be, before work is done for it."""
    if all(target == "-" for target in targets.values()):
        raise click.UsageError(f"{' and '.join(targets)} cannot both go to standard output")
    files = {option: target for option, target in targets.items() if target not in (None, "-")}
    for given in inputs:
        release_run.refuse_collisions(files, {"data": given})
    for target in files.values():
        output.refuse_to_overwrite(str(target), force)
        atomic_files.check_writable(Path(str(target)))
    if targets["--html"] is not None:
        from dpsyn.report.charts import require_vega

        require_vega()


def _compared_columns(schema: dpsyn.Schema) -> set[str]:
    return {attribute.name for attribute in schema.measured_attributes}


def _parse_pair(sexes: str | None) -> tuple[str, str] | None:
    if sexes is None:
        return None
    values = [value.strip() for value in sexes.split(",")]
    if len(values) != 2:
        raise click.UsageError(f"--sexes is {sexes!r}; give two values with a comma between them")
    return values[0], values[1]


def _income_columns(
    region: str | None, sex: str | None, income: str | None, sexes: tuple[str, str] | None
) -> dpsyn.IncomeColumns | None:
    if region is None and sex is None and income is None and sexes is None:
        return None
    if region is None or sex is None or income is None:
        raise click.UsageError("the NIST Gini and gender gap need three columns: give --region, --sex and --income")
    return dpsyn.IncomeColumns(region=region, sex=sex, income=income, sexes=sexes)


def _write_json(target: str, found: list[Evaluation]) -> None:
    from dpsyn.report import evaluation_report as words

    text = json.dumps(words.evaluation_data(found), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    output.write_text(target, text, private=True)


def _show_evaluations(found: list[Evaluation]) -> None:
    """All figures for a person; the notice first."""
    from dpsyn.report import evaluation_report as words

    output.print_line(f"{found[0].notice}\n")
    for evaluation in found:
        numbers = range(1, 4)
        output.print_table(
            words.evaluation_title(evaluation), words.EVALUATION_HEADINGS, words.score_rows(evaluation), right=numbers
        )
        output.print_table("", words.WORST_HEADINGS, words.worst_rows(evaluation), right=numbers)
    if len(found) > 1:
        output.print_line(words.combined_line(found))
    output.print_line(words.EVALUATION_BASELINES)
    notes = [note for evaluation in found for note in words.evaluation_notes(evaluation)]
    output.print_line("\n".join(dict.fromkeys(notes)))
