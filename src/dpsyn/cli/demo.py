"""``dpsyn demo``: everything once, on a table that DPSyn makes up."""

from __future__ import annotations

from pathlib import Path

import click

import dpsyn
from dpsyn.cli import output
from dpsyn.cli.schema import show_fit, show_schema
from dpsyn.demo import people, people_schema_text
from dpsyn.errors import OutputError, in_words


@click.command()
@click.option("--rows", default=20_000, show_default=True, type=click.IntRange(min=0), help="Size of the table.")
@click.option("--seed", default=0, show_default=True, help="Another seed makes other people.")
@click.option("--folder", default="demo", show_default=True, type=click.Path(path_type=Path), help="Where to write.")
def command(rows: int, seed: int, folder: Path) -> None:
    """Make up a table of people, describe what is public about it, and read it as a release would.

    Everything is written to a folder, anew each time, so that you can look at it and try the other commands on it.
    The people do not exist; the table is drawn from a process that DPSyn documents.
    """
    table, schema, drafted = folder / "people.csv", folder / "schema.yaml", folder / "draft.yaml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be made: {in_words(error)}") from None
    output.say("1. A sensitive table, made up")
    made = people(rows, seed)
    dpsyn.write_table(made, table, synthetic=False)
    output.wrote(str(table), "Its first rows, and five of its columns:")
    shown = made.select(["district", "age", "occupation", "income", "commute_km"]).slice(0, 4)
    output.table("", shown.column_names, [[_cell(value) for value in row.values()] for row in shown.to_pylist()])

    output.say("2. What is public about it: the schema, written by a person")
    output.write_text(str(schema), people_schema_text())
    show_schema(dpsyn.Schema.load(schema), schema)

    output.say("3. The same as a draft, for tables that have no schema yet")
    output.write_text(str(drafted), dpsyn.draft_schema(table), private=True)
    output.wrote(str(drafted), "A release refuses it until a person has gone through it, because bounds")
    output.say("and rare values that were read off the rows can belong to a single person.\n")

    output.say("4. Every cell of the table gets a code from the schema, whatever it holds")
    show_fit(dpsyn.check_table(dpsyn.Schema.load(schema), table))
    output.say(f"\nLook at {schema} and {drafted}, then try: dpsyn schema draft YOUR-TABLE.csv -o schema.yaml")


def _cell(value: object) -> str:
    return "" if value is None else str(value)
