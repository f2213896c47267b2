"""``dpsyn demo``: everything once, on a table that DPSyn makes up."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

import dpsyn
from dpsyn.cli import output, release_run
from dpsyn.demo import people, people_schema_text
from dpsyn.errors import OutputError, describe_os_error

ArrowTable = Any
"""An Arrow table."""


@click.command()
@click.option("--rows", default=20_000, show_default=True, type=click.IntRange(min=0), help="Size of the table.")
@click.option("--seed", default=0, show_default=True, help="Another seed makes other people.")
@click.option("--epsilon", default=1.0, show_default=True, metavar="E", help="ε of the promise.")
@click.option("--folder", default="demo", show_default=True, type=click.Path(path_type=Path), help="Where to write.")
@click.option("-q", "--quiet", is_flag=True, help="Do not show how far it is.")
def command(rows: int, seed: int, epsilon: float, folder: Path, quiet: bool) -> None:
    """Make up a table of people, synthesize it, and compare.

    Everything is written to a folder, anew each time, so that you can look at it and try the other commands on it. The
    people do not exist; the table is drawn from a process that DPSyn documents, and so is what is public about it.
    """
    table, schema, release = folder / "people.csv", folder / "schema.yaml", folder / "release"
    _recreate_folder(folder, release)
    output.print_line("1. A sensitive table, made up")
    made = people(rows, seed)
    dpsyn.write_table(made, table, synthetic=False)
    output.print_written(str(table), "Its first rows, and five of its columns:")
    _show_rows(made)

    output.print_line("2. What is public about it: the schema, written by a person")
    output.write_text(str(schema), people_schema_text())
    output.print_written(str(schema), "Whatever the rows tell beyond it is measured with noise.\n")

    output.print_line(f"3. dpsyn synthesize {table} -s {schema} --epsilon {epsilon:g} -o {release}/")
    with output.show_progress(quiet) as shown:
        synopsis = dpsyn.measure(table, schema, epsilon, progress=shown)
        drawn = synopsis.generate(seed=seed, output_format="arrow", progress=shown)
        synopsis.write_release(release, drawn)
    output.print_written(f"{release}/", "Synthetic rows:")
    _show_rows(drawn)

    output.print_line("4. What the guarantee is")
    release_run.print_certificate(synopsis)
    output.print_line(
        "5. How close it is. (Nobody may publish such a comparison of a real table: it is not protected.)"
    )
    headings = ("", "made-up people", "synthetic people")
    output.print_table(
        "", headings, [(words, what(made), what(drawn)) for words, what in _COMPARED_FACTS], right=(1, 2)
    )
    output.print_line(f"Look at {release}/synthetic.csv and {release}/certificate.txt, then try:")
    output.print_line(f"  dpsyn inspect {release}/synopsis.dpsyn                        who paid what for which number")
    output.print_line(f"  dpsyn generate {release}/synopsis.dpsyn --rows 5 -o -         more rows, which cost nothing")
    output.print_line(f"  dpsyn evaluate {table} {release}/synthetic.csv -s {schema}   all it preserves; private")
    compared = f"dpsyn evaluate --from-synopsis {release}/synopsis.dpsyn {release}/synthetic.csv"
    output.print_line(f"  {compared} --html {folder}/report.html   a page to look at, and to publish")
    output.print_line(
        "  dpsyn schema draft YOUR-TABLE.csv -o schema.yaml             the first step with a table of your own"
    )


def _recreate_folder(folder: Path, release: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(release, ignore_errors=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be made: {describe_os_error(error)}") from None


def _show_rows(table: ArrowTable) -> None:
    shown = table.select(["district", "age", "occupation", "income", "commute_km"]).slice(0, 4)
    output.print_table(
        "", shown.column_names, [[_format_cell(value) for value in row.values()] for row in shown.to_pylist()]
    )


def _format_cell(value: object) -> str:
    return "" if value is None else str(value)


# ── what is compared ─────────────────────────────────────────────────────────────────────────────────────────


def _share(column: str, holds: Callable[[Any], bool], among: Callable[[dict[str, Any]], bool]) -> Callable[..., str]:
    """The share of rows, among some of them, in which something holds of a column."""

    def share(table: ArrowTable) -> str:
        values = [row[column] for row in _row_dicts(table) if among(row)]
        return f"{100 * sum(map(holds, values)) / len(values):.1f} %" if values else "–"

    return share


def _mean(column: str, among: Callable[[dict[str, Any]], bool]) -> Callable[..., str]:
    def mean(table: ArrowTable) -> str:
        values = [row[column] for row in _row_dicts(table) if among(row) and row[column] is not None]
        return f"{sum(values) / len(values):,.1f}" if values else "–"

    return mean


def _row_dicts(table: ArrowTable) -> Iterable[dict[str, Any]]:
    columns = table.select(["age", "sex", "district", "education", "employed", "occupation", "income", "commute_km"])
    rows: list[dict[str, Any]] = columns.to_pylist()
    return rows


_DEGREES = ("bachelor", "master", "doctorate")
_COMPARED_FACTS: tuple[tuple[str, Callable[..., str]], ...] = (
    ("rows", lambda table: f"{table.num_rows:,}"),
    ("mean age", _mean("age", lambda row: True)),
    ("without an income", _share("income", lambda value: value == 0, lambda row: True)),
    ("mean income of those employed", _mean("income", lambda row: row["employed"])),
    (
        "mean income of graduates with a job",
        _mean("income", lambda row: row["employed"] and row["education"] in _DEGREES),
    ),
    ("nurses who are women", _share("sex", lambda value: value == "female", lambda row: row["occupation"] == "nurse")),
    ("employed, of those aged 70 and more", _share("employed", bool, lambda row: row["age"] >= 70)),
    ("way to work not given", _share("commute_km", lambda value: value is None, lambda row: True)),
)
