"""``dpsyn simulate``: a made-up table for any schema."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import click

import dpsyn
from dpsyn.cli import output, release_run
from dpsyn.errors import OutputError

if TYPE_CHECKING:
    from dpsyn.simulation import InteractionStrength


@click.command()
@click.argument("schema", metavar="SCHEMA", type=click.Path(path_type=Path))
@click.option("--rows", type=click.IntRange(min=0), metavar="N", help="How many; by default the expected size.")
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="The same seed makes the same table.")
@click.option(
    "-o",
    "--output",
    "target",
    required=True,
    metavar="FILE",
    help="Where to write: .csv, .csv.gz, .parquet, .arrow; - for standard output.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
def command(schema: Path, rows: int | None, seed: int | None, target: str, force: bool, quiet: bool) -> None:
    """Make up a table that keeps to a schema, to try things on: contests, tests, benchmarks.

    \b
      dpsyn simulate schema.yaml --rows 100000 --seed 7 -o table.csv
      dpsyn simulate schema.yaml --rows 1000000 -o table.parquet

    The joint distribution is random but realistic: skewed values, spikes, heaps on round numbers, columns that are
    empty together, relations of two and three columns that no tree describes, derived columns, rules that hold in
    every row, and wages that differ by sex and region where there are such columns. How it is made is public; which one
    it is only the seed tells. No real row is involved.
    """
    from dpsyn.simulation import simulate

    release_run.refuse_collisions({"--output": target}, {"schema": schema})
    if output.is_folder(target):
        raise OutputError(f"{target} is a folder; give the name of a file in it")
    output.check_target(target, force)
    known = dpsyn.Schema.load(schema)
    wanted = rows if rows is not None else known.expected_size
    if wanted is None:
        raise click.UsageError("the schema has no expected_size; say how many rows with --rows N")
    chosen = secrets.randbelow(2**32) if seed is None else seed
    made = simulate(known, wanted, chosen)
    with output.show_status("making rows"):
        dpsyn.write_table(made.batches(), target, synthetic=True)
    if quiet or target == "-":
        return
    output.print_line(f"Wrote {target}: {output.format_count(wanted, 'made-up row')}, seed {chosen}.")
    if wanted:
        for line in _strength_lines(made.strength()):
            output.print_line(line)


def _strength_lines(strength: InteractionStrength) -> list[str]:
    return [
        f"Two attributes together are {strength.pairs:.3f} from independence on average "
        f"(at most {strength.strongest_pair:.3f}; chance alone gives {strength.chance_pairs:.3f}),",
        f"three are {strength.triples:.3f} from what their pairs tell "
        f"(at most {strength.strongest_triple:.3f}; chance alone gives {strength.chance_triples:.3f});",
        f"total variation distances in the first {output.format_count(strength.rows, 'row')}, values in five groups.",
    ]
