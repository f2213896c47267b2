"""``dpsyn evaluate``: how close a synthetic table is to the real one, or to what was released."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

import dpsyn
from dpsyn.cli import output, release_run, released_evaluation
from dpsyn.cli.common_options import LEDGER_OPTIONS, common_options, complete_files
from dpsyn.errors import UserError, quote_argument
from dpsyn.progress import MAKE_REPORT, Step
from dpsyn.release_files import is_release

if TYPE_CHECKING:
    from dpsyn import Evaluation, ReleaseComparison

PRESET_NAMES = ("paper", "match3")
"""Names for ``--help``, which must not load the metrics; a test compares them with the library's."""

_REAL_TABLE_OPTIONS = {
    "schema": "--schema",
    "certificate": "--certificate",
    "preset": "--preset",
    "target": "--target",
    "nist_income": "--nist-income",
    "max_codes": "--nist-specs",
    "seed": "--seed",
    "query": "--query",
    "epsilon": "--epsilon",
}
"""Options that concern the real table, by parameter: they make no sense with ``--against-release``."""

_UNPROTECTED_OPTIONS = {
    "certificate": "--certificate",
    "preset": "--preset",
    "target": "--target",
    "nist_income": "--nist-income",
    "max_codes": "--nist-specs",
    "seed": "--seed",
}
"""Options of figures that are computed from the real rows without protection: they make no sense with ``--epsilon``."""

_SPENDING_OPTIONS = {
    "delta": "--delta",
    "allow_large_epsilon": "--allow-large-epsilon",
    "criteria": "--criteria",
    "attributes": "--no-attributes",
    "ledger": "--ledger",
    "dataset": "--dataset",
    "protect": "--protect-query-rows",
    "engine": "--engine",
    "resume": "--resume",
}
"""Options of a released evaluation: they make no sense without ``--epsilon``."""

_INCOME_KEY = re.compile(r"(?:^|,)\s*(region|sex|income|sexes)\s*=")
_INCOME_EXAMPLE = "region=district,sex=sex,income=wage"


_TRAINING = Step("training classifiers", 10)

EVALUATION_STEPS = (
    Step("reading both tables", 3),
    Step("computing the NIST scores", 4),
    _TRAINING,
    Step("comparing marginals", 4),
)
"""The steps of an evaluation."""


@click.command()
@click.argument("tables", metavar="[REAL] SYNTHETIC...", nargs=-1, shell_complete=complete_files)
@common_options("schema", schema={"required": False})
@click.option("--html", "page", metavar="FILE", help="Write an HTML report; needs the extra report.")
@click.option("--json", "json_file", metavar="FILE", help="Write all figures as JSON; - for standard output.")
@click.option(
    "--against-release",
    "release",
    type=click.Path(path_type=Path),
    metavar="SYNOPSIS",
    help="Compare with what was released instead of a real table; the result may be published. Of a release folder, "
    "its own rows are compared if no SYNTHETIC is given.",
)
@click.option(
    "--certificate",
    type=click.Path(path_type=Path),
    metavar="SYNOPSIS",
    help="Show the certificate and the budget of this synopsis, from which the synthetic table was sampled, in the "
    "private report.",
)
@click.option(
    "--preset",
    default=PRESET_NAMES[0],
    show_default=True,
    type=click.Choice(PRESET_NAMES),
    help="The NIST metrics as the paper describes them, or as the scorer of the contest's third match computed them: "
    "all columns are codes, derived ones and numbers too.",
)
@click.option(
    "--nist-specs",
    "max_codes",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="For match3: the contest's JSON file with the largest code of columns, maxval; by default that in the schema.",
)
@click.option("--target", metavar="COLUMN", help="Also train classifiers that predict it; needs the extra ml.")
@click.option(
    "--nist-income",
    metavar="COLUMNS",
    help=f"Also the NIST Gini index and gender gap, such as {_INCOME_EXAMPLE}. Incomes of 999998 and more are left "
    "out as codes. sexes=A|B names the two values to compare; by default 1|2 or the first two.",
)
@click.option(
    "--by",
    metavar="COLUMNS",
    help="Columns whose values divide the rows into groups, such as sex,region: the error of each group. By "
    "default those that the schema declares as groups.",
)
@common_options(
    "epsilon",
    "delta",
    "allow_large_epsilon",
    epsilon={
        "required": False,
        "help": "Spend this ε on an evaluation that may be published: every figure is measured with noise, through the "
        "privacy gate, and has a 95 % interval. 0.05 suffices for the overall figures of tens of thousands of rows.",
    },
    delta={"help": "δ of that guarantee; by default 1e-9, or 1/expected_size² if that is smaller."},
)
@click.option(
    "--criteria",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --epsilon: acceptance criteria on distances, means and coefficients; see docs/how-to/evaluation.md.",
)
@click.option(
    "--no-attributes",
    "attributes",
    is_flag=True,
    default=True,
    flag_value=False,
    help="With --epsilon: no distance for each column, so that the other figures get their part of the budget.",
)
@common_options(
    *LEDGER_OPTIONS,
    "seed",
    "query",
    "protect",
    "engine",
    "resume",
    "force",
    "quiet",
    ledger={"help": "With --epsilon: record its budget here; dpsyn ledger new begins one."},
    seed={"default": 0, "show_default": True, "help": "The same seed makes the same random choices in the metrics."},
    query={"help": "A SELECT on REAL: a table of a database, or its files, which are called data there."},
)
def command(
    tables: tuple[str, ...],
    schema: Path | None,
    page: str | None,
    json_file: str | None,
    release: Path | None,
    certificate: Path | None,
    nist_income: str | None,
    by: str | None,
    epsilon: float | None,
    force: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Compare a synthetic table with the real one, or with what was released.

    Every figure stands beside two baselines: the sampling floor, which a fresh sample of the real rows would reach,
    and independent, which the real rows reach with every column shuffled by itself. Several synthetic tables, such as
    those for several ε, are scored one after the other and then together, as the NIST contest ranked its teams.

    What is printed is computed from the real rows and not protected: do not publish it, and do not choose among
    releases by it. With --against-release no real table is read: the synthetic one is compared with the released
    counts, and the result may be published.

    With --epsilon the real rows are compared through the privacy gate: the figures cost privacy budget like any
    release, and may be published. Criteria and groups must be decided without looking at the real rows.

    \b
      dpsyn evaluate people.csv synthetic.csv -s schema.yaml
      dpsyn evaluate people.csv synthetic.csv -s schema.yaml --html report.html --certificate s.dpsyn
      dpsyn evaluate people.csv synthetic.csv -s schema.yaml --json scores.json --target employed
      dpsyn evaluate people.csv synthetic.csv -s schema.yaml --nist-income region=district,sex=sex,income=income
      dpsyn evaluate people.csv release/ -s schema.yaml               a release folder stands for its rows
      dpsyn evaluate --against-release s.dpsyn synthetic.csv --html publishable.html
      dpsyn evaluate --against-release release/
      dpsyn evaluate people.csv release/ -s schema.yaml --epsilon 0.05 --ledger ledger.db --html quality.html
      dpsyn evaluate people.csv release/ -s schema.yaml --epsilon 0.1 --criteria criteria.yaml --by sex,district
    """
    if release is not None and not tables and is_release(release):
        tables = (str(release),)
    inputs = (*tables, *filter(None, (schema, release, certificate, options["max_codes"])))
    release_run.check_result_files({"--html": page, "--json": json_file}, force or options["resume"], inputs)
    if page is not None:
        from dpsyn.report.charts import require_vega

        require_vega()
    spending = {parameter: options.pop(parameter) for parameter in _SPENDING_OPTIONS}
    if epsilon is None:
        _refuse_options(_SPENDING_OPTIONS, "is about an evaluation that spends budget; give --epsilon, too")
    if release is not None:
        _refuse_options(_REAL_TABLE_OPTIONS, "needs the real table, which --against-release does not read")
        _compare_with_release(release, tables, released_evaluation.parse_groups(by), page, json_file, quiet)
        return
    if not tables:
        raise click.UsageError("Missing argument '[REAL] SYNTHETIC...'.")
    if schema is None:
        raise click.UsageError("Missing option '-s' / '--schema'.")
    if len(tables) < 2:
        raise click.UsageError("Missing argument 'SYNTHETIC...'.")
    groups = released_evaluation.parse_groups(by)
    if epsilon is not None:
        _refuse_options(_UNPROTECTED_OPTIONS, "is computed from the real rows without protection; leave out --epsilon")
        given = {"epsilon": epsilon, "by": groups, "query": options["query"], "force": force, "quiet": quiet}
        released_evaluation.evaluate_with_noise(tables, schema, page, json_file, **given, **spending)
        return
    if page is not None and len(tables) > 2:
        raise click.UsageError("--html makes a report of one synthetic table; call it once for each")
    public, synopsis = dpsyn.Schema.load(schema), None if certificate is None else dpsyn.Synopsis.load(certificate)
    if synopsis is not None and _compared_columns(synopsis.schema) != _compared_columns(public):
        raise UserError(
            f"{certificate} does not have the columns of {schema}; give the synopsis of this table's release"
        )
    options["income_columns"], options["by"] = parse_income_columns(nist_income), groups
    each = [step for step in EVALUATION_STEPS if step != _TRAINING or options["target"]]
    steps = each * (len(tables) - 1) + ([MAKE_REPORT] if page else [])
    with output.show_progress(quiet, steps) as progress:
        evaluations = [dpsyn.evaluate(tables[0], table, public, progress=progress, **options) for table in tables[1:]]
        if page is not None:
            from dpsyn.report.evaluation_report import private_report

            progress(MAKE_REPORT.phase, 0.0)
            output.write_text(page, private_report(evaluations[0], synopsis), private=True)
    if json_file is not None:
        _write_json(json_file, evaluations)
    if _prints_results(page, json_file, quiet):
        _show_evaluations(evaluations)
    _print_files(page, json_file, quiet)


def _compare_with_release(
    synopsis: Path,
    tables: tuple[str, ...],
    by: tuple[str, ...] | None,
    page: str | None,
    json_file: str | None,
    quiet: bool,
) -> None:
    """Compare a synthetic table with released counts, without a real table."""
    if len(tables) != 1:
        raise click.UsageError("--against-release reads no real table; give the synthetic one alone")
    from dpsyn.report import release_report as words

    released = dpsyn.Synopsis.load(synopsis)
    counting = Step("counting synthetic rows", 3)
    with output.show_progress(quiet, [counting, *([MAKE_REPORT] if page else [])]) as progress:
        progress(counting.phase, 0.0)
        comparison = released.compare_rows(dpsyn.read_table(tables[0]), by=by)
        if page is not None:
            progress(MAKE_REPORT.phase, 0.0)
            output.write_text(page, words.comparison_report(released, comparison))
    if json_file is not None:
        text = output.format_json(comparison.to_dict()) + "\n"
        output.write_text(json_file, text)
    if _prints_results(page, json_file, quiet):
        output.print_line(f"{words.publication_banner(released)}\n")
        _print_verdict(words.comparison_verdict(released, comparison).lines)
        output.print_table("", words.COMPARISON_HEADINGS, words.comparison_rows(comparison), right=range(1, 4))
        _print_groups(comparison, "noise floor", released.schema.groups if by is None else by)
        output.print_line(words.COMPARISON_BASELINES)
    _print_files(page, json_file, quiet)


def _print_groups(comparison: Evaluation | ReleaseComparison, floor: str, by: Sequence[str] = ()) -> None:
    """Print the groups, if any were asked for."""
    from dpsyn.report import groups as words

    if rows := words.group_rows(comparison.groups):
        output.print_table("", words.group_headings(floor), rows, right=range(1, 7))
    lines = words.group_lines(comparison.groups, by)
    if rows or lines:
        output.print_line("\n".join([*lines, *([words.GROUP_EXPLANATION] if rows else [])]))


def _print_verdict(lines: Sequence[str]) -> None:
    """Print the sentences of a verdict, the headline first, and an empty line."""
    headline, *details = lines
    output.print_line("\n".join([headline, *(f"  - {line}" for line in details), ""]))


def _prints_results(page: str | None, json_file: str | None, quiet: bool) -> bool:
    """Whether tables of text are printed: not beside a result on standard output, nor quietly beside one in a file."""
    targets = [target for target in (page, json_file) if target is not None]
    return "-" not in targets and not (quiet and targets)


def _print_files(page: str | None, json_file: str | None, quiet: bool) -> None:
    if not quiet and "-" not in (page, json_file):
        for target in filter(None, (page, json_file)):
            output.print_written(target)


def _refuse_options(options: Mapping[str, str], why: str) -> None:
    """Refuse options that were given although they make no sense here; they are named by their parameters."""
    context = click.get_current_context()
    for parameter, option in options.items():
        if context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option} {why}")


def parse_income_columns(text: str | None) -> dpsyn.IncomeColumns | None:
    """The columns of the NIST income metric, from a text such as ``region=district,sex=sex,income=wage``.

    A comma separates two of them only if one of the four keys follows, so column names may contain commas.
    """
    if text is None:
        return None
    before, *parts = _INCOME_KEY.split(text)
    keys, values = parts[::2], [value.strip() for value in parts[1::2]]
    columns: dict[str, Any] = dict(zip(keys, values, strict=True))
    if before.strip() or len(columns) < len(keys) or not {"region", "sex", "income"} <= columns.keys():
        raise click.UsageError(
            f"--nist-income is {quote_argument(text)}; give three columns, such as {_INCOME_EXAMPLE}"
        )
    if "sexes" in columns:
        pair = [value.strip() for value in columns["sexes"].split("|")]
        if len(pair) != 2:
            raise click.UsageError(
                f"sexes is {quote_argument(columns['sexes'])}; give two values with a bar between, such as F|M"
            )
        columns["sexes"] = (pair[0], pair[1])
    return dpsyn.IncomeColumns(**columns)


def _compared_columns(schema: dpsyn.Schema) -> set[str]:
    return {attribute.name for attribute in schema.modeled_attributes}


def _write_json(target: str, evaluations: list[Evaluation]) -> None:
    from dpsyn.report import evaluation_report as words

    text = output.format_json(words.evaluation_data(evaluations)) + "\n"
    output.write_text(target, text, private=True)


def _show_evaluations(evaluations: list[Evaluation]) -> None:
    """Print all figures, after the notice that they are private."""
    from dpsyn.report import evaluation_report as words

    output.print_line(f"{evaluations[0].notice}\n")
    for evaluation in evaluations:
        numbers = range(1, 4)
        output.print_line(words.evaluation_title(evaluation))
        _print_verdict(words.evaluation_verdict(evaluation).lines)
        output.print_table("", words.EVALUATION_HEADINGS, words.score_rows(evaluation), right=numbers)
        output.print_table("", words.WORST_HEADINGS, words.worst_rows(evaluation), right=numbers)
        _print_groups(evaluation, "sampling floor")
    if len(evaluations) > 1:
        output.print_line(words.combined_line(evaluations))
    output.print_line(words.EVALUATION_BASELINES)
    notes = [note for evaluation in evaluations for note in words.evaluation_notes(evaluation)]
    output.print_line("\n".join(dict.fromkeys(notes)))
