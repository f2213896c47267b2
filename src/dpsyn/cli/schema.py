"""``dpsyn schema``: declare what is public about a table."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import click

import dpsyn
from dpsyn.cli import output
from dpsyn.cli.common_options import TEXT_OUTPUT, common_options
from dpsyn.report.numbers import format_count

if TYPE_CHECKING:
    from dpsyn import AttributeCheck, Schema, SchemaCheck


@click.group()
def command() -> None:
    """Declare what is public about a table: its columns, their values and bounds, the privacy unit.

    A release uses nothing about the table but this file and noisy counts, so everything in it must be known without
    looking at the rows. The usual steps:

    \b
      dpsyn schema draft people.csv -o schema.yaml     a first guess, made from the data
      (edit schema.yaml: possible values, not observed ones)
      dpsyn schema approve schema.yaml age sex --because "code book 2024"
      dpsyn schema check schema.yaml people.csv        does the table fit?
    """


@command.command()
@common_options(
    "data",
    "query",
    "rows",
    "output",
    "force",
    rows={
        "type": click.IntRange(min=1),
        "default": 1_000_000,
        "show_default": True,
        "help": "Look at the first N rows only.",
    },
    output=TEXT_OUTPUT,
)
@click.option("--encoding", metavar="NAME", help="The encoding of a text file, such as cp1252; otherwise detected.")
@click.option("--separator", metavar="CHARACTER", help="The character between cells, such as ';'; otherwise detected.")
@click.option("--decimal", type=click.Choice([".", ","]), help="The decimal sign of numbers; otherwise detected.")
@click.option(
    "--missing",
    metavar="CODE",
    multiple=True,
    help="A code for missing cells, such as -9; otherwise detected. Repeatable.",
)
def draft(
    data: str,
    query: str | None,
    rows: int,
    target: str,
    force: bool,
    encoding: str | None,
    separator: str | None,
    decimal: str | None,
    missing: tuple[str, ...],
) -> None:
    """Guess a schema from a table, for you to complete.

    DATA is a .csv, .tsv, .parquet, .arrow, .xlsx, .sav, .dta, .sas7bdat or .xpt file, a folder of Parquet files,
    or a DuckDB database with --query. How a text file is written is detected: encoding, decimal sign, codes for missing
    cells. The draft is private: it shows values of the rows. Everything in it is marked `provenance: data`, and a
    release refuses it until you approve it.

    \b
      dpsyn schema draft people.csv -o schema.yaml
      dpsyn schema draft umfrage.csv --encoding cp1252 --decimal , --missing -9 --missing -8 -o schema.yaml
      dpsyn schema draft house.duckdb --query 'SELECT age, sex FROM people' -o schema.yaml
    """
    output.refuse_to_overwrite(target, force)
    with output.show_status(f"Reading {data}"), warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", UserWarning)
        text = dpsyn.draft_schema(
            data,
            query=query,
            rows=rows,
            encoding=encoding,
            separator={"tab": "\t", "\\t": "\t"}.get(separator or "", separator),
            decimal=decimal,
            missing=missing or None,
        )
    output.write_text(target, text, private=True)
    output.print_written(target, "It is private until you have reviewed it; see the notes at its top.")
    for note in notes:
        output.print_line(f"Note: {note.message}", to_stderr=True)


@command.command("import")
@click.argument("metadata", metavar="FILE", type=click.Path())
@common_options("output", "force", output=TEXT_OUTPUT)
def import_(metadata: str, target: str, force: bool) -> None:
    """Make a schema from metadata that you already have.

    FILE is a domain.json as private-pgm uses it (attribute → number of codes), SDV metadata, or a Frictionless table
    schema or data package. What it does not state is left empty, with a comment that asks for it.

    \b
      dpsyn schema import domain.json -o schema.yaml
    """
    output.refuse_to_overwrite(target, force)
    output.write_text(target, dpsyn.import_schema(metadata))
    output.print_written(target, f"Next: dpsyn schema check {target}")
    if target != "-":
        name = Path(metadata).name
        output.print_line(f"It treats {name} as public. If that was made from the data, set provenance: data instead.")


@command.command()
@click.argument("file", metavar="FILE", type=click.Path())
@click.argument("attributes", metavar="ATTRIBUTE...", nargs=-1)
@common_options("because")
@click.option("--all", "everything", is_flag=True, help="All attributes and rules that were guessed from the data.")
def approve(file: str, attributes: tuple[str, ...], because: str, everything: bool) -> None:
    """Declare that what a draft states about some attributes is publicly known.

    A draft states exact facts about rows: the lowest and highest value, and every value that occurs. Compare it with
    a public source first, and correct it. This changes `provenance: data` to `provenance: approved` and records the
    reason; the rest of FILE stays as it is. The certificate of every release lists these attributes as drafted from
    the data and declared public for that reason, so its readers can judge. An attribute that you wrote yourself, from
    a code book for instance, is `provenance: public`.

    \b
      dpsyn schema approve schema.yaml age sex --because "questionnaire 2024, page 3"
      dpsyn schema approve schema.yaml --all --because "code book 2024"
    """
    if bool(attributes) == everything:
        raise click.UsageError("name the attributes to approve, or give --all")
    dpsyn.approve_schema(file, attributes, because=because, everything=everything)
    names = "Everything that was drafted" if everything else ", ".join(attributes)
    output.print_line(f"{names}: approved as public, because {because}. {_remaining_approvals(file)}")
    output.print_line("The certificate of every release lists what was drafted from the data and approved.")


def _remaining_approvals(file: str) -> str:
    try:
        left = dpsyn.Schema.load(file).unapproved_statements()
    except dpsyn.DPSynError as error:
        return f"The file is not complete yet: {error}"
    return f"Still to do: {', '.join(left)}." if left else "Nothing is left to approve."


@command.command()
@click.argument("file", metavar="FILE", type=click.Path())
@common_options("data", "query", data={"metavar": "[DATA]", "required": False})
def check(file: str, data: str | None, query: str | None) -> int:
    """Check a schema; with DATA, also how well the table fits it.

    Without DATA nothing private is read. With DATA the figures are private: they count, column by column, the cells
    that do not fit. The exit code is 2 if a release would refuse the table.

    \b
      dpsyn schema check schema.yaml
      dpsyn schema check schema.yaml people.csv
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
@common_options("output", "force", output=TEXT_OUTPUT)
def json_schema(target: str, force: bool) -> None:
    """Write the JSON Schema of schema files, with which editors complete and check them.

    In VS Code with the YAML extension, for instance, put the second line at the top of your schema:

    \b
      dpsyn schema json-schema -o dpsyn.schema.json
      # yaml-language-server: $schema=dpsyn.schema.json
    """
    output.refuse_to_overwrite(target, force)
    output.write_text(target, output.format_json(dpsyn.Schema.json_schema()) + "\n")
    output.print_written(target)


def show_schema(schema: Schema, file: str | Path, *, whole: bool = True) -> None:
    """Print that a schema is valid, its attributes as a table if ``whole``, and what is left to approve."""
    rows = [
        (a.name, a.kind, f"{a.cells:,}" if a.coded else "–", f"{a.size:,}" if a.coded else "–", a.provenance)
        for attribute in schema
        for a in schema.timestamp_parts.get(attribute.name, (attribute,))
    ]
    output.print_line(f"{file} is valid: {format_count(len(schema.attributes), 'attribute')}.")
    if whole:
        output.print_table("", ("attribute", "kind", "cells", "bins", "provenance"), rows, right=(2, 3))
    left = schema.unapproved_statements()
    if left:
        output.print_line(
            f"Not ready for a release: {', '.join(left[:3])}{' …' if len(left) > 3 else ''} (provenance: data)."
        )
        output.print_line(
            f'Approve what you know to be public: dpsyn schema approve {file} ATTRIBUTE... --because "..."'
        )


def show_check(result: SchemaCheck) -> None:
    """Print what becomes of the cells of a table, for every attribute with cells that do not fit; private."""
    output.print_line(dpsyn.PRIVATE_NOTICE)
    for problem in result.problems:
        output.print_line(f"A release would refuse this table: {problem}.")
    for remark in result.remarks:
        output.print_line(f"Probably a mistake: {remark}.")
    misfits = [entry for entry in result.attributes if entry.inside < result.rows]
    fits = format_count(len(result.attributes) - len(misfits), "attribute")
    title = f"{result.where}: {format_count(result.rows, 'row')}; {fits} entirely inside"
    if misfits:
        headings = ("attribute", "inside", "empty", "unreadable", "out of range", "which become")
        output.print_table(title, headings, [_check_row(entry) for entry in misfits], right=(1, 2, 3, 4))
    else:
        output.print_line(title)
    if broken := {number: rows for number, rows in result.rule_violations.items() if rows}:
        violations = ", ".join(f"rule {number} by {format_count(rows, 'row')}" for number, rows in broken.items())
        output.print_line(f"Rules that rows of this table break; synthetic rows will keep them: {violations}.")
    for label, names in (
        ("Open, so there is nothing to check", result.unchecked),
        ("Not in the schema, so never read", result.extra),
        ("Not checked here", result.skipped),
    ):
        if names:
            output.print_line(f"{label}: {', '.join(names)}.")


def _check_row(entry: AttributeCheck) -> tuple[str, ...]:
    outside = entry.below + entry.above
    counts = (entry.inside, entry.empty, entry.unreadable, outside)
    values = [entry.empty_goes_to] * bool(entry.empty) + [entry.other_goes_to] * bool(entry.unreadable)
    values += ["the nearer bound"] * bool(outside)
    return entry.name, *(f"{count:,}" for count in counts), ", ".join(dict.fromkeys(values))
