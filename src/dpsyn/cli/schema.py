"""``dpsyn schema``: declare what is public about a table."""

from __future__ import annotations

import shlex
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dpsyn
from dpsyn.cli import output, review
from dpsyn.cli.command_group import CommandGroup
from dpsyn.cli.common_options import TEXT_OUTPUT, common_options
from dpsyn.report.numbers import format_count
from dpsyn.suggestions import format_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dpsyn import AttributeCheck, OpenCheck, Schema, SchemaCheck, UnitCheck


@click.group(cls=CommandGroup)
def command() -> None:
    """Declare what is public about a table: its columns, their values and bounds, the privacy unit.

    A release uses nothing about the table but this file and noisy counts, so everything in it must be known without
    looking at the rows. The usual steps:

    \b
      dpsyn schema draft people.csv -o schema.yaml     a first guess, made from the data
      dpsyn schema review schema.yaml                  correct and approve it, one attribute at a time
      (or edit schema.yaml: possible values, not observed ones; then:)
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
    with output.show_status(f"Reading {data}"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the summary shows the notes of the draft
        drafted = dpsyn.draft_schema(
            data,
            query=query,
            rows=rows,
            encoding=encoding,
            separator={"tab": "\t", "\\t": "\t"}.get(separator or "", separator),
            decimal=decimal,
            missing=missing or None,
        )
    output.write_text(target, drafted.to_yaml(), private=True)
    output.print_written(target, "It is private until you have reviewed it; see the notes at its top.")
    review.show_summary(drafted, target)


@command.command("import")
@click.argument("metadata", metavar="FILE", type=click.Path())
@common_options("output", "force", output=TEXT_OUTPUT)
def import_(metadata: str, target: str, force: bool) -> None:
    """Make a schema from metadata that you already have.

    FILE is a domain.json as private-pgm uses it (attribute → number of codes), SDV metadata, or a Frictionless table
    schema or data package. What it does not state is left empty, with a comment that asks for it. Such metadata is
    often made from the data, so the values and bounds need your approval before a release.

    \b
      dpsyn schema import domain.json -o schema.yaml
    """
    output.refuse_to_overwrite(target, force)
    output.write_text(target, dpsyn.import_schema(metadata))
    output.print_written(target, "Its values and bounds need your approval: such metadata is often made from the data.")
    if target != "-":
        approve = f"dpsyn schema approve {shlex.quote(target)} --all --because REASON"
        output.print_line(f"If {Path(metadata).name} is public, or was written from a public source: {approve}")


@command.command(short_help="Declare that what a draft states is publicly known.")
@click.argument("file", metavar="FILE", type=click.Path())
@click.argument("attributes", metavar="ATTRIBUTE...", nargs=-1)
@common_options("because")
@click.option("--all", "everything", is_flag=True, help="All entries that were drafted, except those with a remark.")
@click.option("--as-drafted", is_flag=True, help="Also entries that are exactly as they were read off the data.")
@click.option("--despite-remarks", is_flag=True, help="Also named entries with an open remark, which is removed.")
def approve(
    file: str, attributes: tuple[str, ...], because: str, everything: bool, as_drafted: bool, despite_remarks: bool
) -> int:
    """Declare that what a draft states about some attributes is publicly known.

    A draft states exact facts about rows: the lowest and highest value, and every value that occurs. Compare it with
    a public source first, and correct it. This shows what is declared, changes `provenance: data` to `provenance:
    approved` and records the reason; the rest of FILE stays as it is. The certificate of every release lists these
    attributes as drafted from the data and declared public for that reason, so its readers can judge. An attribute
    that you wrote yourself, from a code book for instance, is `provenance: public`.

    Two kinds of entries need a separate yes: those that are exactly as they were read off the data (--as-drafted), and
    those with an open remark (name them, with --despite-remarks, or answer the remark in FILE and remove it). On a
    terminal you are asked. `dpsyn schema review FILE` shows one entry after the other. `derive NAME` and `"rule 1"`
    name derivations and rules.

    \b
      dpsyn schema approve schema.yaml age sex --because "questionnaire 2024, page 3"
      dpsyn schema approve schema.yaml --all --as-drafted --because "code book 2024"
    """
    if bool(attributes) == everything:
        raise click.UsageError("name the attributes to approve, or give --all")
    entries = dpsyn.SchemaDraft.load(file).entries(*attributes)
    review.show_entries(entries)
    yes = {"as_drafted": as_drafted, "despite_remarks": despite_remarks}
    if output.can_ask() and not any(yes.values()) and any(entry.unchanged or entry.remark for entry in entries):
        attributes, everything = review.ask_for_each_kind(entries), False
        yes = dict.fromkeys(yes, True)
        if not attributes:
            output.print_line("Nothing was approved.")
            return 2
    approval = dpsyn.approve_schema(file, attributes, because=because, everything=everything, **yes)
    if approval.approved:
        output.print_line(
            f"Approved as public, because {because}: {format_names(approval.approved, review.MAX_NAMES)}."
        )
        output.print_line("The certificate of every release lists what was drafted from the data and approved.")
    review.show_left(approval.left, file)
    output.print_line(_remaining_approvals(file))
    return 0 if approval.approved or not entries else 2


def _remaining_approvals(file: str) -> str:
    try:
        left = dpsyn.Schema.load(file).unapproved_statements()
    except dpsyn.DPSynError as error:
        return f"The file is not complete yet: {error}"
    return f"Still to do: {format_names(left, review.MAX_NAMES)}." if left else "Nothing is left to approve."


@command.command("review")
@click.argument("file", metavar="FILE", type=click.Path())
@common_options("because", because={"required": False, "default": "", "help": "The reason that is offered first."})
def review_command(file: str, because: str) -> int:
    """Walk through a draft on the terminal, one entry at a time.

    Each entry is shown with its remark. You accept it with a reason why it is public, change its kind, bounds or
    values, leave the column out, skip it or quit. Every answer is saved at once, so you can go on later where you
    stopped.

    \b
      dpsyn schema review schema.yaml --because "code book 2024"
    """
    review.walk_through(file, because)
    output.print_line(_remaining_approvals(file))
    return 0


@command.command()
@click.argument("file", metavar="FILE", type=click.Path())
@common_options(
    "data",
    "query",
    "epsilon",
    data={"metavar": "[DATA]", "required": False},
    epsilon={
        "required": False,
        "default": 1.0,
        "show_default": True,
        "help": "The ε of a later release, for which it is counted how many texts of open attributes would be listed.",
    },
)
@common_options("json")
def check(file: str, data: str | None, query: str | None, epsilon: float, as_json: bool) -> int:
    """Check a schema; with DATA, also how well the table fits it.

    Without DATA nothing private is read. With DATA the figures are private: they count, column by column, the cells
    that do not fit, the persons with more rows than the privacy unit allows, and the texts of open attributes that are
    in enough rows to be listed by a release. The exit code is 2 if a release would refuse the table.

    \b
      dpsyn schema check schema.yaml
      dpsyn schema check schema.yaml people.csv --epsilon 0.5
    """
    schema = dpsyn.Schema.load(file)
    if as_json and data is None:
        raise click.UsageError("--json prints how a table fits; give DATA")
    if not as_json:
        show_schema(schema, file, whole=data is None)
    if data is None:
        return 0
    with output.show_status(f"Reading {data}"):
        fit = dpsyn.check_table(schema, data, query=query)
    from dpsyn.forecasts.closed_form import expect_thresholds  # loads numpy, which --help must not

    needed = expect_thresholds(schema, epsilon, rows=schema.expected_size or fit.rows or 1)
    if as_json:
        output.print_json(check_data(fit, needed, epsilon))
    else:
        show_check(fit, needed, epsilon)
    return 2 if fit.problems else 0


@command.command("json-schema", short_help="The JSON Schema of schema files, for editors.")
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


def show_check(result: SchemaCheck, needed: Mapping[str, int], epsilon: float) -> None:
    """Print what becomes of the cells of a table, for every attribute with cells that do not fit; private."""
    output.print_line(dpsyn.PRIVATE_NOTICE)
    for problem in result.problems:
        output.print_line(f"A release would refuse this table: {problem}.")
    for remark in result.remarks:
        output.print_line(f"Probably a mistake: {remark}.")
    misfits = [entry for entry in result.attributes if entry.inside < result.rows]
    counts = {
        "entirely inside": len(result.attributes) - len(misfits),
        "with empty or other cells": len(misfits),
        "open": len(result.open),
        "identifiers": len(result.identifiers),
        "derived": len(result.derived),
        "not in the schema": len(result.extra),
    }
    columns = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    output.print_line(f"{result.where}: {format_count(result.rows, 'row')}. Columns: {columns}.")
    if misfits:
        headings = ("attribute", "inside", "empty", "unreadable", "out of range", "which become")
        output.print_table("", headings, [_check_row(entry) for entry in misfits], right=(1, 2, 3, 4))
    if result.open:
        most = max(needed.values())
        output.print_line(f"Open; at ε = {epsilon:g} a release lists a text that is in about {most:,} rows or more:")
    for entry in result.open:
        output.print_line(f"  {entry.name}: {_describe_open(entry, needed[entry.name], result.rows)}")
    if result.unit:
        output.print_line(_describe_unit(result.unit))
    if broken := {number: rows for number, rows in result.rule_violations.items() if rows}:
        violations = ", ".join(f"rule {number} by {format_count(rows, 'row')}" for number, rows in broken.items())
        output.print_line(f"Rules that rows of this table break; synthetic rows will keep them: {violations}.")
    for label, names in (
        ("Identifiers, never measured", result.identifiers),
        ("Derived, so not compared", result.derived),
        ("Not in the schema, so never read", result.extra),
        ("Not checked here", result.skipped),
    ):
        if names:
            output.print_line(f"{label}: {', '.join(names)}.")


def check_data(result: SchemaCheck, needed: Mapping[str, int], epsilon: float) -> dict[str, Any]:
    """What becomes of the cells of a table, as plain data for JSON; the notice that it is private comes first."""
    listed = {entry.name: entry.count_listed(needed[entry.name]) for entry in result.open}
    data = {"notice": dpsyn.PRIVATE_NOTICE, "epsilon": epsilon, **asdict(result)}
    data["open"] = [
        {"name": name, "texts": len(entry.counts), "listed": listed[name][0], "listed_rows": listed[name][1]}
        for entry in result.open
        for name in [entry.name]
    ]
    return data


def _describe_open(entry: OpenCheck, needed: int, rows: int) -> str:
    """How many texts of an open attribute a release would list."""
    texts, listed_rows = entry.count_listed(needed)
    if not entry.counts:
        return "all cells are empty; remove it from the schema, or describe its values"
    if not texts:
        return "no text is in so many rows, so all would become 'other'; list its values, or remove it from the schema"
    return f"{format_count(texts, 'text')}, in {listed_rows / max(rows, 1):.0%} of the rows"


def _describe_unit(unit: UnitCheck) -> str:
    """How many persons have more rows than a release uses."""
    persons = f"{unit.name}: {format_count(unit.persons, 'person')}"
    without = f" {format_count(unit.rows_without_id, 'row')} without an id: left out." if unit.rows_without_id else ""
    bound = f"max_rows: {unit.max_rows}"
    if not unit.exceeding:
        return f"{persons}, none with more rows than {bound}.{without}"
    more = f"{unit.exceeding:,} of them with more rows than {bound}"
    return f"{persons}, {more}; a release leaves out {format_count(unit.dropped_rows, 'row')} of theirs.{without}"


def _check_row(entry: AttributeCheck) -> tuple[str, ...]:
    outside = entry.below + entry.above
    counts = (entry.inside, entry.empty, entry.unreadable, outside)
    values = [entry.empty_goes_to] * bool(entry.empty) + [entry.other_goes_to] * bool(entry.unreadable)
    values += ["the nearer bound"] * bool(outside)
    return entry.name, *(f"{count:,}" for count in counts), ", ".join(dict.fromkeys(values))
