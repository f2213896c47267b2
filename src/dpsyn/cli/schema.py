"""``dpsyn schema``: say what is public about a table."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import click

import dpsyn
from dpsyn.cli import output

if TYPE_CHECKING:
    from dpsyn import AttributeCheck, Schema, SchemaCheck

_DATA = click.argument("data", metavar="DATA")
_QUERY = click.option(
    "--query", metavar="SQL", help="A SELECT on DATA: a table of a DuckDB database, or files, called data."
)
_OUTPUT = click.option(
    "-o", "--output", "target", default="-", metavar="FILE", help="Where to write; standard output by default."
)
_FORCE = click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")


@click.group()
def command() -> None:
    """Say what is public about a table: its columns, their values and bounds, whom to protect.

    A release uses nothing about the table but this file and noisy counts, so what stands here must be known
    without looking at the rows. The usual way:

    \b
      dpsyn schema draft people.csv -o schema.yaml     a first guess, read off the data
      (edit schema.yaml: possible values, not seen ones)
      dpsyn schema approve schema.yaml age sex --because "code book 2024"
      dpsyn schema check schema.yaml people.csv        does the table fit?
    """


@command.command()
@_DATA
@_QUERY
@click.option("--rows", default=1_000_000, show_default=True, metavar="N", help="Look at the first N rows only.")
@_OUTPUT
@_FORCE
def draft(data: str, query: str | None, rows: int, target: str, force: bool) -> None:
    """Guess a schema from a table, for you to finish.

    DATA is a .csv, .tsv, .parquet or .arrow file (also compressed), a folder of Parquet files, or a DuckDB
    database with --query. The draft is private: it shows values that were seen in the rows. Everything in it is
    marked `provenance: data`, and a release refuses it until you approve it.
    """
    output.refuse_to_overwrite(target, force)
    with output.show_status(f"Reading {data}"), warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", UserWarning)
        text = dpsyn.draft_schema(data, query=query, rows=rows)
    output.write_text(target, text, private=True)
    output.print_written(target, "It is private until you have gone through it; see the notes at its top.")
    for note in notes:
        click.echo(f"Note: {note.message}", err=True)


@command.command("import")
@click.argument("metadata", metavar="FILE", type=click.Path())
@_OUTPUT
@_FORCE
def import_(metadata: str, target: str, force: bool) -> None:
    """Make a schema from metadata that you already have.

    FILE is a domain.json as private-pgm uses it (attribute → number of codes), SDV metadata, or a Frictionless
    table schema or data package. What it does not say is left empty, with a comment that asks for it.
    """
    output.refuse_to_overwrite(target, force)
    output.write_text(target, dpsyn.import_schema(metadata))
    output.print_written(target, f"Next: dpsyn schema check {target}")
    if target != "-":
        name = Path(metadata).name
        output.print_line(f"It takes {name} as public. If that was made from the data, set provenance: data instead.")


@command.command()
@click.argument("file", metavar="FILE", type=click.Path())
@click.argument("attributes", metavar="ATTRIBUTE...", nargs=-1)
@click.option("--because", required=True, metavar="WHY", help="Where it is public, such as a code book.")
@click.option("--all", "everything", is_flag=True, help="All attributes and rules that were read off the data.")
def approve(file: str, attributes: tuple[str, ...], because: str, everything: bool) -> None:
    """Declare that what the schema says of some attributes is publicly known.

    This changes `provenance: data` to `provenance: public` and records why; the rest of FILE stays as it is. The
    certificate of every release lists it, so that a reader can judge.

    \b
      dpsyn schema approve schema.yaml age sex --because "questionnaire 2024, page 3"
    """
    if bool(attributes) == everything:
        raise click.UsageError("name the attributes to approve, or say --all")
    dpsyn.approve_schema(file, attributes, because=because, everything=everything)
    what = "Everything" if everything else ", ".join(attributes)
    output.print_line(f"{what}: public, because {because}. {_remaining_approvals(file)}")


def _remaining_approvals(file: str) -> str:
    try:
        left = dpsyn.Schema.load(file).unapproved_statements()
    except dpsyn.DPSynError as error:
        return f"The file is not finished yet: {error}"
    return f"Still to do: {', '.join(left)}." if left else "Nothing is left to approve."


@command.command()
@click.argument("file", metavar="FILE", type=click.Path())
@click.argument("data", metavar="[DATA]", required=False)
@_QUERY
def check(file: str, data: str | None, query: str | None) -> int:
    """Check a schema; with DATA, also how well the table fits it.

    Without DATA nothing private is read. With DATA the figures are private: they count cells that fall outside,
    column by column.
    """
    schema = dpsyn.Schema.load(file)
    show_schema(schema, file, whole=data is None)
    if data is None:
        return 0
    with output.show_status(f"Reading {data}"):
        fit = dpsyn.check_table(schema, data, query=query)
    show_check(fit)
    return 2 if fit.problems else 0


@command.command("json-schema")
@_OUTPUT
def json_schema(target: str) -> None:
    """Write the JSON Schema of schema files, with which editors complete and check them.

    In VS Code with the YAML extension, for instance, put this on the first line of your schema:

    \b
      # yaml-language-server: $schema=dpsyn.schema.json
    """
    output.write_text(target, json.dumps(dpsyn.Schema.json_schema(), indent=2, ensure_ascii=False) + "\n")
    output.print_written(target)


def show_schema(schema: Schema, file: str | Path, *, whole: bool = True) -> None:
    """A line, or a table, about a schema."""
    rows = [
        (a.name, a.kind, f"{a.cells:,}" if a.coded else "–", f"{a.size:,}" if a.coded else "–", a.provenance)
        for a in schema
    ]
    output.print_line(f"{file} is valid: {output.format_count(len(rows), 'attribute')}.")
    if whole:
        output.print_table("", ("attribute", "kind", "cells", "bins", "provenance"), rows, right=(2, 3))
    left = schema.unapproved_statements()
    if left:
        output.print_line(
            f"Not ready for a release: {', '.join(left[:3])}{' …' if len(left) > 3 else ''} (provenance: data)."
        )
        output.print_line(f'What you know to be public:  dpsyn schema approve {file} ATTRIBUTE... --because "..."')


def show_check(result: SchemaCheck) -> None:
    """What became of the cells, attribute by attribute where there is something to tell; private."""
    output.print_line(dpsyn.PRIVATE_NOTICE)
    for problem in result.problems:
        output.print_line(f"A release would refuse this table: {problem}.")
    told = [entry for entry in result.attributes if entry.inside < result.rows]
    whole = len(result.attributes) - len(told)
    title = f"{result.where}: {output.format_count(result.rows, 'row')}; {output.format_count(whole, 'attribute')} entirely inside"
    if told:
        headings = ("attribute", "inside", "empty", "unreadable", "out of range", "which go to")
        output.print_table(title, headings, [_check_row(entry) for entry in told], right=(1, 2, 3, 4))
    else:
        output.print_line(title)
    if broken := {number: rows for number, rows in result.rule_violations.items() if rows}:
        told_rules = ", ".join(
            f"rule {number} by {output.format_count(rows, 'row')}" for number, rows in broken.items()
        )
        output.print_line(f"Rules that this table breaks, and that synthetic rows keep all the same: {told_rules}.")
    for words, names in (
        ("Open, so there is nothing to check", result.unchecked),
        ("Not in the schema, so never read", result.extra),
        ("Not checked here", result.skipped),
    ):
        if names:
            output.print_line(f"{words}: {', '.join(names)}.")


def _check_row(entry: AttributeCheck) -> tuple[str, ...]:
    outside = entry.below + entry.above
    numbers = (entry.inside, entry.empty, entry.unreadable, outside)
    places = [entry.empty_goes_to] * bool(entry.empty) + [entry.other_goes_to] * bool(entry.unreadable)
    places += ["the nearer bound"] * bool(outside)
    return entry.name, *(f"{number:,}" for number in numbers), ", ".join(dict.fromkeys(places))
