"""Do rows, answers of queries and the publishable report agree with the table, value by value, in standard errors?

    python -m bench.agreement FOLDER... [--epsilon 1] [--recipe dpsyn] [--releases 3] [--worst 5]

Each FOLDER has a table, ``data.csv.gz``, and ``columns.json`` (see ``bench.mixed``). It is released with δ = 1e-9.
Every value that at least 0.4 % of the real rows have is counted in the synthetic rows (as many as the release
estimates), asked for with ``Synopsis.count``, and looked up in the publishable report. The difference from the real
count is divided by its standard error: that of the answer, which is the synopsis's own, and for rows the sampling error
of as many rows as well. A number that shares its cell with others is answered by its part of the cell. The report lists
bins, so it is compared by bins of at least 0.4 % of the rows.

It prints how many values there are, which share of them is off by more than 3 standard errors, and the largest
difference. Of exact normal errors, 0.27 % would be off by more than 3.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

import dpsyn
from bench.measuring import commit
from bench.mixed import DELTA, SEED, build_schema, read_table
from dpsyn.encoding import Codec
from dpsyn.recipes import DEFAULT_RECIPE
from dpsyn.schema import Ranged
from dpsyn.synopsis import Synopsis

MIN_SHARE = 0.004
MAX_ERRORS = 3.0


@dataclass(frozen=True)
class Difference:
    """How far a value's count is off.

    Attributes:
        where: rows, query or report.
        value: the attribute and the value.
        expected: the real count.
        found: the count there.
        standard_error: the standard error of that count.
    """

    where: str
    value: str
    expected: float
    found: float
    standard_error: float

    @property
    def errors(self) -> float:
        """The difference in standard errors."""
        return abs(self.found - self.expected) / max(self.standard_error, 1e-9)


def compare(real: pd.DataFrame, synopsis: Synopsis) -> Iterator[Difference]:
    """Every frequent value in rows and answers, and every frequent bin in the report."""
    rows = synopsis.generate(rows=synopsis.rows, seed=SEED)
    synthetic = rows.to_pandas()
    for name in real:
        counts: dict[object, int] = {None: int(real[name].isna().sum())}
        counts.update(real[name].value_counts().items())
        for value, count in counts.items():
            if count < MIN_SHARE * len(real):
                continue
            found, error = _ask(synopsis, str(name), value)
            column = synthetic[name]
            counted = float((column.isna() if value is None else column == value).sum())
            sampling = counted * (1 - counted / len(synthetic))
            title = f"{name}={value}"
            yield Difference("query", title, count, found, error)
            yield Difference("rows", title, count, counted, math.hypot(error, math.sqrt(max(sampling, 0.0))))
    yield from _compare_report(real, synopsis, rows)


def _ask(synopsis: Synopsis, name: str, value: object) -> tuple[float, float]:
    """The answer of a query and its standard error; a value's part of its cell if it has none of its own."""
    attribute = synopsis.schema[name]
    if value is None:
        answer = synopsis.count(**{name: "missing"})
        return float(answer), float(answer.standard_errors)
    whole = attribute.widen_to_whole_cells(value) if isinstance(attribute, Ranged) else None  # type: ignore[arg-type]
    answer = synopsis.count(**{name: value if whole is None else whole})
    values = 1
    if whole is not None and isinstance(attribute, Ranged):
        first, last = attribute.span_of(whole)
        values = last - first + 1
    return float(answer) / values, float(answer.standard_errors)


def _compare_report(real: pd.DataFrame, synopsis: Synopsis, rows: pa.Table) -> Iterator[Difference]:
    """The bins of the publishable report."""
    codec = Codec(synopsis.schema)
    codes = codec.encode(pa.Table.from_pandas(real, preserve_index=False))
    report = synopsis.compare_rows(rows)
    for attribute in report.attributes:
        if attribute.name not in codec.names:
            continue  # it was measured as a difference from another one
        index = codec.names.index(attribute.name)
        grouping = codec.groupings[index]
        truth = np.bincount(grouping.group_of[codes[:, index]], minlength=grouping.size)
        expected = dict(zip(codec.attributes[index].labels(), truth.tolist(), strict=True))
        for label, share, std in zip(attribute.labels, attribute.reference, attribute.std, strict=True):
            if expected.get(label, 0) >= MIN_SHARE * len(real):
                scale = report.estimated_rows
                yield Difference("report", f"{attribute.name}={label}", expected[label], share * scale, std * scale)


def main() -> None:
    """Release, compare, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--recipe", default=DEFAULT_RECIPE)
    parser.add_argument("--releases", type=int, default=3)
    parser.add_argument("--worst", type=int, default=5, help="how many of the largest differences to list")
    given = parser.parse_args()
    print(f"ε = {given.epsilon:g}, recipe {given.recipe}, {given.releases} releases, commit {commit()}")
    print("| table | in | values | beyond 3 standard errors | largest |")
    print("|---|---|---|---|---|")
    differences: list[Difference] = []
    for folder in given.folders:
        columns = json.loads((folder / "columns.json").read_text())
        real = read_table(folder / "data.csv.gz", columns)
        found: list[Difference] = []
        for _ in range(given.releases):
            synopsis = dpsyn.measure(
                folder / "data.csv.gz", build_schema(columns), epsilon=given.epsilon, delta=DELTA, recipe=given.recipe
            )
            found += compare(real, synopsis)
        for where in ("rows", "query", "report"):
            errors = np.array([difference.errors for difference in found if difference.where == where])
            print(
                f"| {folder.name} | {where} | {len(errors) // given.releases} | "
                f"{np.mean(errors > MAX_ERRORS):.1%} | {errors.max():.1f} |",
                flush=True,
            )
        differences += found
    for worst in sorted(differences, key=lambda difference: -difference.errors)[: given.worst]:
        print(
            f"{worst.where}: {worst.value}: {worst.found:,.0f} instead of {worst.expected:,.0f}, "
            f"standard error {worst.standard_error:,.1f}"
        )


if __name__ == "__main__":
    main()
