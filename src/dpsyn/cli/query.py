"""``dpsyn query``: any marginal of a synopsis with standard errors; means and regressions with intervals."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dpsyn
from dpsyn.cli import output
from dpsyn.cli.common_options import common_options
from dpsyn.cli.pool import print_conclusion
from dpsyn.errors import QueryError, quote_argument
from dpsyn.progress import DRAW_REPLICATES
from dpsyn.report import answers as words
from dpsyn.report.synopsis import privacy_warning_lines

if TYPE_CHECKING:
    from dpsyn import Conclusion, Schema, Synopsis

METHODS = ("maximum-entropy", "least-norm", "linear-program")
"""Names for ``--help``, which must not load the library; a test compares them with the library's."""

MAX_SHOWN_COUNTS = 500
"""Counts that are listed on a terminal; --json has all."""


@click.command()
@common_options("synopsis")
@click.argument("attributes", metavar="[ATTRIBUTES]", default="")
@common_options(
    "where",
    where={
        "help": "Count only rows that satisfy it: sex=F, age=30..39, job=nurse|cook, job=missing. If it is given "
        "several times, rows must satisfy all conditions."
    },
)
@click.option("--mean", metavar="NAME", help="The mean of numbers; of truth values, the share of true ones.")
@click.option("--quantile", metavar="NAME=P", help="A quantile: age=0.5 is the median; several: age=0.1,0.5,0.9.")
@click.option("--correlation", metavar="NAME,NAME", help="The correlation of two attributes.")
@click.option(
    "--regress",
    metavar="FORMULA",
    help="A regression such as 'income ~ age + sex': linear, or logistic for an outcome of two values.",
)
@click.option("--by", metavar="NAMES", help="Attributes, separated by commas: groups for --mean and --quantile.")
@click.option("--spearman", is_flag=True, help="With --correlation: of ranks instead of values.")
@click.option(
    "--replicates",
    type=click.IntRange(min=2),
    metavar="K",
    help="Tables that a mean, quantile, correlation or regression is computed from.  [default: 20]",
)
@common_options("seed", seed={"help": "The same seed gives the same mean, quantile, correlation or regression."})
@click.option(
    "--uncertainty",
    type=click.Choice(["all", "noise"]),
    help="Whether its interval is about a population (all) or about the private rows (noise).  [default: all]",
)
@click.option("--finest", is_flag=True, help="List numbers and dates by their finest cells, not by their bins.")
@click.option(
    "--confidence",
    type=float,
    default=0.95,
    show_default=True,
    metavar="P",
    help="Probability that an interval contains the true value.",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default=METHODS[0],
    show_default=True,
    help="How to reconstruct counts of attributes that no released marginal contains together. Maximum entropy is the "
    "most accurate; the others are for comparison.",
)
@common_options("json")
def command(
    synopsis: Path,
    attributes: str,
    conditions: tuple[str, ...],
    mean: str | None,
    quantile: str | None,
    correlation: str | None,
    regress: str | None,
    by: str | None,
    spearman: bool,
    replicates: int | None,
    seed: int | None,
    uncertainty: str | None,
    finest: bool,
    confidence: float,
    method: str,
    as_json: bool,
) -> None:
    """Query a synopsis: counts of rows, means, regressions. The private table is not needed, and no privacy is spent.

    ATTRIBUTES are names separated by commas. Without any, all rows that satisfy the conditions are counted together.

    \b
      dpsyn query s.dpsyn age,sex
      dpsyn query s.dpsyn age,sex --where "age=30..39" --where job=nurse
      dpsyn query s.dpsyn --where "age=30..39" --where sex=F
      dpsyn query s.dpsyn age,sex,job --json
      dpsyn query s.dpsyn --mean income --by sex
      dpsyn query s.dpsyn --quantile age=0.5 --where sex=F
      dpsyn query s.dpsyn --regress "income ~ age + sex"

    Every count comes with its standard error and an interval. Counts of attributes that no released marginal contains
    together are reconstructed from several marginals; their errors include an estimate of the model error, and the
    part that is noise is shown beside. Means, quantiles, correlations and
    regressions are computed from replicates; their intervals include the privacy noise and sampling.
    """
    released = dpsyn.Synopsis.load(synopsis)
    names = parse_names(attributes, released.schema)
    where = dpsyn.parse_conditions(conditions, released.schema.names)
    statistics = {"--mean": mean, "--quantile": quantile, "--correlation": correlation, "--regress": regress}
    chosen = [name for name, value in statistics.items() if value is not None]
    given: dict[str, Any] = {"replicates": replicates, "seed": seed, "uncertainty": uncertainty}
    options = {name: value for name, value in given.items() if value is not None}
    check_statistic(chosen, names, options, by, spearman, finest)
    if chosen:
        with output.show_progress(as_json, [DRAW_REPLICATES]) as progress:
            options |= {"where": where, "level": confidence, "progress": progress}
            pooled = answer_statistic(released, chosen[0], str(statistics[chosen[0]]), by, spearman, options)
        if not as_json:
            for line in privacy_warning_lines(released):
                output.print_line(line)
        print_conclusion(pooled, as_json)
        return
    reconstruction: Any = method.replace("-", " ")
    answer = released.marginal(*names, where=where, cells=finest, method=reconstruction)
    if as_json:
        output.print_json(answer.to_data(confidence))
        return
    rows = words.answer_rows(answer, confidence, MAX_SHOWN_COUNTS)
    for line in privacy_warning_lines(released):
        output.print_line(line)
    headings = words.answer_headings(answer, confidence)
    output.print_table("", headings, rows, right=range(len(answer.attributes), len(headings)))
    if answer.counts.size > MAX_SHOWN_COUNTS:
        output.print_line(f"These are the first {MAX_SHOWN_COUNTS} of {answer.counts.size:,} counts; --json lists all.")
    for line in words.answer_lines(answer, confidence):
        output.print_line(line)


def check_statistic(
    chosen: Sequence[str],
    counted: Sequence[str],
    options: Collection[str],
    by: str | None,
    spearman: bool,
    finest: bool,
) -> None:
    """Refuse options that contradict each other."""
    if len(chosen) > 1 or (chosen and counted):
        named = [*chosen, *(["ATTRIBUTES, which are counted"] if counted else [])]
        raise QueryError(f"{' and '.join(named)} cannot be combined; ask for one at a time")
    if options and not chosen:
        raise QueryError(f"--{next(iter(options))} is for --mean, --quantile, --correlation and --regress")
    if by and not {*chosen} & {"--mean", "--quantile"}:
        raise QueryError("--by gives the groups of --mean and --quantile; for counts, list all attributes together")
    if spearman and "--correlation" not in chosen:
        raise QueryError("--spearman is for --correlation")
    if finest and chosen:
        raise QueryError("--finest is for counts")


def answer_statistic(
    released: Synopsis, kind: str, value: str, by: str | None, spearman: bool, options: dict[str, Any]
) -> Conclusion:
    """The answer to one of the options that ask for a statistic."""
    groups = parse_names(by or "", released.schema)
    if kind == "--mean":
        return released.mean(value, by=groups, **options)
    if kind == "--quantile":
        name, _, listed = value.rpartition("=") if "=" in value else (value, "", "0.5")
        return released.quantile(name.strip(), _parse_probabilities(listed), by=groups, **options)
    if kind == "--regress":
        return released.regress(value, **options)
    names = parse_names(value, released.schema)
    if len(names) != 2:
        raise QueryError(f"--correlation is {quote_argument(value)}; give two attributes, separated by a comma")
    return released.correlation(*names, method="spearman" if spearman else "pearson", **options)


def _parse_probabilities(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise QueryError(
            f"{quote_argument(text)} is no probability; write NAME=P with numbers between 0 and 1, such as age=0.5"
        ) from None


def parse_names(text: str, schema: Schema) -> list[str]:
    """Names separated by commas. A name may contain commas itself: the longest name that exists is taken."""
    parts, names = text.split(",") if text.strip() else [], []
    while parts:
        length = next((n for n in range(len(parts), 0, -1) if ",".join(parts[:n]).strip() in schema), 1)
        names.append(",".join(parts[:length]).strip())
        parts = parts[length:]
    return names
