"""``dpsyn simulate``: an artificial table for any schema."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import click

import dpsyn
from dpsyn.cli import output, release_run
from dpsyn.cli.common_options import common_options
from dpsyn.errors import OutputError
from dpsyn.report.numbers import format_count

if TYPE_CHECKING:
    from dpsyn.simulation import InteractionStrength


@click.command()
@click.argument("schema", metavar="SCHEMA", type=click.Path(path_type=Path))
@common_options(
    "rows",
    "seed",
    rows={"help": "Number of rows; by default the expected size in the schema."},
    seed={"help": "The same seed makes the same table."},
)
@click.option(
    "--row-seed",
    type=click.IntRange(min=0),
    metavar="N",
    help="A seed for the rows alone: other rows of the distribution that --seed selects.",
)
@common_options(
    "output",
    "force",
    "quiet",
    output={"help": "Where to write: .csv, .csv.gz, .parquet, .arrow; - for standard output."},
)
def command(
    schema: Path, rows: int | None, seed: int | None, row_seed: int | None, target: str, force: bool, quiet: bool
) -> None:
    """Make an artificial table that fits a schema, for contests, tests and benchmarks.

    \b
      dpsyn simulate schema.yaml --rows 100000 --seed 7 -o table.csv
      dpsyn simulate schema.yaml --rows 100000 --seed 7 --row-seed 8 -o more.csv
      dpsyn simulate schema.yaml --rows 1000000 -o table.parquet

    The joint distribution is random but realistic: skewed values, spikes, heaping on round numbers, columns that are
    empty together, dependences of two and three columns that no tree describes, derived columns, rules that hold in
    every row, and wages that differ by sex and region where there are such columns. The process is documented; the seed
    selects one distribution. No real row is involved.
    """
    from dpsyn.simulation import simulate

    release_run.refuse_collisions({"--output": target}, {"schema": schema})
    if output.is_folder(target):
        raise OutputError(f"{target} is a folder; give the name of a file in it")
    output.check_target(target, force, folders=False)
    public = dpsyn.Schema.load(schema)
    rows = public.expected_size if rows is None else rows
    if rows is None:
        raise click.UsageError("the schema has no expected_size; give the number of rows with --rows N")
    seed = secrets.randbelow(2**32) if seed is None else seed
    table = simulate(public, rows, seed, row_seed=row_seed)
    with output.show_status("Making rows", quiet):
        dpsyn.write_table(table.batches(), target, synthetic=True)
    if quiet or target == "-":
        return
    rows_of = "" if row_seed is None else f", row seed {row_seed}"
    output.print_line(f"Wrote {target}: {format_count(rows, 'artificial row')}, seed {seed}{rows_of}.")
    if rows:
        for line in _strength_lines(table.strength()):
            output.print_line(line)


def _strength_lines(strength: InteractionStrength) -> list[str]:
    return [
        "How strongly attributes depend on each other, from 0 (not at all) to 1:",
        f"  pairs: {strength.pairs:.3f} from independence on average, at most {strength.strongest_pair:.3f}; "
        f"independent attributes would show {strength.chance_pairs:.3f} by chance",
        f"  triples: {strength.triples:.3f} from what their pairs imply, at most {strength.strongest_triple:.3f}; "
        f"by chance {strength.chance_triples:.3f}",
        "A value is the share of rows that are in other cells than without the dependence (total variation distance), "
        f"in the first {format_count(strength.rows, 'row')}, with values in five groups.",
    ]
