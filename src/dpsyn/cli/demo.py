"""``dpsyn demo``: every step once, on an artificial table."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dpsyn
from dpsyn.cli import output, release_run
from dpsyn.cli.common_options import common_options
from dpsyn.demo import people, people_schema_text
from dpsyn.errors import OutputError, describe_os_error
from dpsyn.progress import SAMPLE_ROWS, WRITE_VALUES

if TYPE_CHECKING:
    from dpsyn import Synopsis

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

    groups = _compare_groups(original, synthetic, synopsis)
    output.print_table("", ("number of", "original", "synthetic", "expected error"), groups, right=(1, 2, 3))
    if not quiet:
        output.print_line(f"{_ERROR_EXPLANATION}\n")
        _show_next_steps(folder, table, schema, release)


def _show_next_steps(folder: Path, table: Path, schema: Path, release: Path) -> None:
    output.print_line(f"Look at {release}/synthetic.csv and {release}/certificate.txt, then try:")
    for words, purpose in (
        (f"inspect {release}", "what was released, and what it cost"),
        (f"generate {release} --rows 5", "more rows; costs no privacy"),
        (f"query {release} age,sex", "counts with error bars; costs no privacy"),
        (f"evaluate {table} {release} -s {schema}", "how close it is; private"),
        (f"evaluate --against-release {release} --html {folder}/report.html", "a report that may be published"),
        ("schema draft YOUR-TABLE.csv -o schema.yaml", "the first step with a table of your own"),
    ):
        output.print_line(f"  dpsyn {words:<70}  {purpose}")


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


_COMPARED_GROUPS: tuple[tuple[str, dict[str, str]], ...] = (
    ("women", {"sex": "female"}),
    ("women of 30 to 39", {"sex": "female", "age": "30..39"}),
    ("people without an income", {"income": "0"}),
    ("teachers", {"occupation": "teacher"}),
    ("graduates (bachelor) with a job", {"education": "bachelor", "employed": "true"}),
    ("nurses who are women", {"occupation": "nurse", "sex": "female"}),
    ("people of 70 and more with a job", {"employed": "true", "age": "70..104"}),
)
"""Groups of people, and the conditions of a query for them."""

_ERROR_EXPLANATION = (
    "± is two standard errors, as the release itself estimates them: of the privacy noise, of sampling rows, and of\n"
    "what no measured marginal shows. About the same error is little in a large group and much in a small one. A\n"
    "larger ε makes it smaller; with more rows it matters less."
)


def _compare_groups(original: ArrowTable, synthetic: ArrowTable, synopsis: Synopsis) -> list[tuple[str, ...]]:
    """A row for each group: how many people it has in both tables, and how far apart these are expected to be."""
    return [
        (
            label,
            f"{_count_rows(original, where):,}",
            f"{_count_rows(synthetic, where):,}",
            f"± {2 * _expected_error(synopsis, where, synthetic.num_rows):,.0f}",
        )
        for label, where in _COMPARED_GROUPS
    ]


def _expected_error(synopsis: Synopsis, where: dict[str, str], rows: int) -> float:
    """The standard error of a count of synthetic rows: noise, model, and sampling."""
    answer = synopsis.marginal(where=where)
    share = min(1.0, float(answer) / max(1, rows))
    return math.hypot(
        float(answer.standard_errors), answer.model_error or 0.0, math.sqrt(max(0.0, rows * share * (1 - share)))
    )


def _count_rows(table: ArrowTable, where: dict[str, str]) -> int:
    columns = [table.column(name).to_pylist() for name in where]
    conditions = [condition.split("..") for condition in where.values()]
    return sum(all(map(_meets, values, conditions)) for values in zip(*columns, strict=True))


def _meets(value: object, condition: list[str]) -> bool:
    """Whether a value lies in a range of two numbers, or is the single value that a condition names."""
    if len(condition) == 2:
        return isinstance(value, int) and int(condition[0]) <= value <= int(condition[1])
    return str(value).lower() == condition[0]
