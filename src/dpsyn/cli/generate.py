"""``dpsyn generate``: rows from a synopsis."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dpsyn
from dpsyn.cli import output, release_run
from dpsyn.cli.common_options import SYNTHESIS_METHODS, common_options
from dpsyn.errors import UserError
from dpsyn.progress import DRAW_REPLICATES, SAMPLE_ROWS

if TYPE_CHECKING:
    from dpsyn import GUM, MCF, Gibbs

_ROOT = "synthesis"
"""The option of a recipe that concerns rows rather than what is released, and the only one that ``--set`` takes."""

UNCERTAINTY = ("all", "noise", "rows")
"""Names for ``--help``, which must not load the library; a test compares them with the library's."""

_CARRIED = {
    "all": "They differ by the privacy noise and by sampling from a population: analyze each of them, then dpsyn pool.",
    "noise": "They differ by the privacy noise alone: conclusions from dpsyn pool are about the private rows.",
    "rows": "They differ by sampling rows. The privacy noise is the same in all of them, so they do not show it, and "
    "dpsyn pool refuses them.",
}
"""What replicates carry, by what differs between them."""


PREVIEW_ROWS = 10
"""Rows that are shown on a terminal if nothing else is requested."""


@click.command()
@common_options(
    "synopsis",
    "output",
    "rows",
    "seed",
    "where",
    "set",
    output={
        "required": False,
        "default": "-",
        "help": "Where to write: .csv, .csv.gz, .parquet, .arrow; FOLDER/ for a "
        "release folder. By default rows go to standard output; on a terminal the first 10, unless --rows is given.",
    },
    set={
        "help": f"How rows are synthesized: synthesis=NAME with {', '.join(SYNTHESIS_METHODS)}, and options of this "
        "method, such as synthesis.alpha=0.2; dpsyn recipes gum lists those of gum. May be given several times."
    },
)
@click.option(
    "--replicates",
    type=click.IntRange(min=1),
    metavar="K",
    help="Write K tables, FILE-1, FILE-2 and so on, whose differences show how uncertain a result is: analyze each, "
    "then dpsyn pool. 20 are usual.",
)
@click.option(
    "--uncertainty",
    type=click.Choice(UNCERTAINTY),
    help="What differs between replicates. all: the private table is a sample of a population, which conclusions are "
    "about. noise: conclusions are about the private rows. rows: only rows are sampled again, from one model; dpsyn "
    f"pool refuses such tables.  [default: {UNCERTAINTY[0]}]",
)
@common_options("escape_formulas", "force", "quiet")
def command(
    synopsis: Path,
    target: str,
    rows: int | None,
    seed: int | None,
    conditions: tuple[str, ...],
    settings: tuple[str, ...],
    replicates: int | None,
    uncertainty: str | None,
    escape_formulas: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Sample synthetic rows from a synopsis. The private table is not needed, and no privacy is spent.

    \b
      dpsyn generate s.dpsyn -o rows.csv
      dpsyn generate s.dpsyn --rows 1000000 --seed 7 -o rows.parquet
      dpsyn generate s.dpsyn                                        shows 10 rows on a terminal
      dpsyn generate release/ --rows 1000 > rows.csv                release/ stands for its synopsis
      dpsyn generate s.dpsyn --rows 100000000 -o large/             Parquet files in large/synthetic/
      dpsyn generate s.dpsyn --where sex=F --where age=30..39 --rows 10000 -o women.csv
      dpsyn generate s.dpsyn --replicates 20 -o rows.csv            rows-1.csv to rows-20.csv, for dpsyn pool
      dpsyn generate s.dpsyn --set synthesis=gum --set synthesis.alpha=0.2 -o rows.csv

    Rows are written while they are sampled, so any number of them takes little memory. Conditional rows are sampled
    directly rather than by rejection, so a 1-in-100,000 condition is as fast as a common one.

    Each replicate is from its own draw of the model: the released numbers with the recorded noise drawn again, and with
    it the sampling of the private table from a population. So a result varies between replicates as it would between
    releases of other samples. FILE-replicates.json, beside the tables, describes them for dpsyn pool.
    """
    if uncertainty is not None and replicates is None:
        raise UserError("--uncertainty is what differs between replicates; give their number with --replicates")
    targets = [target] if replicates is None else output.number_targets(target, replicates)
    described = output.name_record(target)
    if replicates is not None:
        output.refuse_to_overwrite(described, force)
    for path in targets:
        release_run.refuse_collisions({"--output": path}, {"synopsis": synopsis})
        output.check_target(path, force, escape_formulas=escape_formulas)
    synthesis = choose_synthesis(settings)
    kind: Any = uncertainty or UNCERTAINTY[0]
    released = dpsyn.Synopsis.load(synopsis)
    where = dpsyn.parse_conditions(conditions, released.schema.names)
    preview = rows is None and target == "-" and output.is_terminal(sys.stdout)
    rows = PREVIEW_ROWS if preview else rows
    with output.show_progress(quiet, [SAMPLE_ROWS if replicates is None else DRAW_REPLICATES]) as progress:
        if replicates is None:
            released.write(
                target,
                rows,
                seed=seed,
                where=where,
                synthesis=synthesis,
                escape_formulas=escape_formulas,
                progress=progress,
            )
        else:
            tables = released.replicates(
                replicates,
                rows,
                seed=seed,
                uncertainty=kind,
                where=where,
                synthesis=synthesis,
                output_format="arrow",
            )
            progress(DRAW_REPLICATES.phase, 0.0)
            for number, (path, table) in enumerate(zip(targets, tables, strict=True), 1):
                progress(DRAW_REPLICATES.phase, number / replicates)
                output.write_rows(released, table, path, where, escape_formulas=escape_formulas)
            tables.save_record(described, synopsis, targets)
    if not quiet and preview:
        output.print_line(
            f"These are {PREVIEW_ROWS} rows; write as many as the table has to a file with -o rows.csv.", to_stderr=True
        )
    if not quiet and target != "-":
        for path in targets:
            output.print_written_rows(path)
    if not quiet and replicates is not None:
        output.print_line(f"Wrote {described}, which describes them for dpsyn pool.")
        output.print_line(_CARRIED[kind])


def choose_synthesis(settings: Sequence[str]) -> Gibbs | GUM | MCF | None:
    """The synthesis method that ``--set`` describes; None for the one that the release was made with."""
    given = release_run.parse_settings(settings)
    for path in given:
        if path != _ROOT and not path.startswith(f"{_ROOT}."):
            raise UserError(
                f"--set {path} cannot be changed any more: rows are sampled from what was released, so only {_ROOT} "
                f"and the options below it can be chosen here, such as {_ROOT}=gum"
            )
    if not given:
        return None
    if _ROOT not in given:
        first = next(iter(given))
        raise UserError(
            f"--set {first} is an option of a synthesis method; name the method too, with --set {_ROOT}=NAME: "
            f"{', '.join(SYNTHESIS_METHODS)}. dpsyn recipes NAME lists its options"
        )
    name = given.pop(_ROOT)
    return dpsyn.find_synthesis(name, {path.removeprefix(f"{_ROOT}."): value for path, value in given.items()})
