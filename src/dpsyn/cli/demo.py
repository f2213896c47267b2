"""``dpsyn demo``: every step once, on an artificial table."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

import dpsyn
from dpsyn.cli import output, release_run
from dpsyn.cli.common_options import common_options
from dpsyn.demo import people, people_schema_text
from dpsyn.errors import OutputError, describe_os_error
from dpsyn.progress import SAMPLE_ROWS, WRITE_VALUES

ArrowTable = Any
"""An Arrow table."""


@click.command()
@common_options(
    "rows",
    "seed",
    "epsilon",
    rows={"default": 20_000, "show_default": True, "help": "Size of the table."},
    seed={"default": 0, "show_default": True, "help": "Another seed makes other people."},
    epsilon={"required": False, "default": 1.0, "show_default": True, "help": "ε of the privacy guarantee."},
)
@click.option("--folder", default="demo", show_default=True, type=click.Path(path_type=Path), help="Where to write.")
@common_options("quiet")
def command(rows: int, seed: int, epsilon: float, folder: Path, quiet: bool) -> None:
    """Make an artificial table of people, synthesize it, and compare.

    Everything is written to a folder, anew each time, for you to look at and to try the other commands on. The people
    do not exist; the process that makes them and the schema of their table are documented.

    \b
      dpsyn demo
      dpsyn demo --rows 5000 --epsilon 0.5 --folder small
    """
    table, schema, release = folder / "people.csv", folder / "schema.yaml", folder / "release"
    _recreate_folder(folder, release)
    original = people(rows, seed)
    dpsyn.write_table(original, table, synthetic=False)
    output.write_text(str(schema), people_schema_text())
    if not quiet:
        output.print_line("1. A sensitive table, artificial here")
        output.print_written(str(table), "Its first rows, and five of its columns:")
        _show_rows(original)
        output.print_line("2. What is public about it: the schema, written by a person")
        output.print_written(str(schema), "Everything else about the rows is measured with noise.\n")
        output.print_line(f"3. dpsyn synthesize {table} -s {schema} --epsilon {epsilon:g} -o {release}/")

    steps = release_run.list_steps(dpsyn.DPSyn(), (SAMPLE_ROWS, WRITE_VALUES))
    with output.show_progress(quiet, steps) as progress:
        synopsis = dpsyn.measure(table, schema, epsilon, progress=progress)
        synthetic = synopsis.generate(seed=seed, output_format="arrow", progress=progress)
        synopsis.write_release(release, synthetic)
    if not quiet:
        output.print_written(f"{release}/", "Synthetic rows:")
        _show_rows(synthetic)
        output.print_line("4. The guarantee")
        release_run.print_certificate(synopsis)
        output.print_line(
            "5. How close it is (with a real table such a comparison must not be published: it is not protected)"
        )

    rows_shown = [(label, compute(original), compute(synthetic)) for label, compute in _COMPARED_FACTS]
    output.print_table("", ("", "original people", "synthetic people"), rows_shown, right=(1, 2))
    if not quiet:
        _show_next_steps(folder, table, schema, release)


def _show_next_steps(folder: Path, table: Path, schema: Path, release: Path) -> None:
    output.print_line(f"Look at {release}/synthetic.csv and {release}/certificate.txt, then try:")
    output.print_line(
        f"  dpsyn inspect {release}/synopsis.dpsyn                        what was released, and what it cost"
    )
    output.print_line(f"  dpsyn generate {release}/synopsis.dpsyn --rows 5 -o -         more rows; costs no privacy")
    output.print_line(f"  dpsyn evaluate {table} {release}/synthetic.csv -s {schema}   how close it is; private")
    comparison = f"dpsyn evaluate --against-release {release}/synopsis.dpsyn {release}/synthetic.csv"
    output.print_line(f"  {comparison} --html {folder}/report.html   a report that may be published")
    output.print_line(
        "  dpsyn schema draft YOUR-TABLE.csv -o schema.yaml             the first step with a table of your own"
    )


def _recreate_folder(folder: Path, release: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(release, ignore_errors=True)
    except OSError as error:
        raise OutputError(f"the folder {folder} cannot be created: {describe_os_error(error)}") from None


def _show_rows(table: ArrowTable) -> None:
    sample = table.select(["district", "age", "occupation", "income", "commute_km"]).slice(0, 4)
    rows = [["" if value is None else str(value) for value in row.values()] for row in sample.to_pylist()]
    output.print_table("", sample.column_names, rows)


# ── what is compared ─────────────────────────────────────────────────────────────────────────────────────────


def _share(column: str, holds: Callable[[Any], bool], among: Callable[[dict[str, Any]], bool]) -> Callable[..., str]:
    """Computes the percentage of rows, among those selected, whose value in a column satisfies a condition."""

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
