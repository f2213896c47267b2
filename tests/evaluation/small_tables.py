"""Small tables to compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

from dpsyn.evaluation.reader import read_tables
from dpsyn.evaluation.tables import EvaluationTables
from dpsyn.schema import Categorical, Integer, Schema

Rows = Sequence[tuple[Any, ...]]

few = settings(max_examples=40)
"""Each example reads two tables, which takes some milliseconds."""

LETTERS = Schema(
    attributes=(
        Categorical(name="a", values=("x", "y", "z")),
        Categorical(name="b", values=("p", "q"), missing=True),
        Integer(name="n", low=0, high=9, missing=True),
    )
)


def table_of(schema: Schema, rows: Rows) -> pa.Table:
    """An Arrow table of rows in the schema's order."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema.names)
    return pa.table({name: list(column) for name, column in zip(schema.names, columns, strict=True)})


def tables_from_rows(schema: Schema, real: Rows, synthetic: Rows, seed: int = 0) -> EvaluationTables:
    """A comparison of rows in the schema's order."""
    return read_tables(table_of(schema, real), table_of(schema, synthetic), schema, seed=seed)


def letters(max_size: int = 30) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Rows of the schema of letters."""
    row = st.tuples(st.sampled_from(["x", "y", "z"]), st.sampled_from(["p", "q", None]), st.none() | st.integers(0, 9))
    return st.lists(row, min_size=1, max_size=max_size)


def rows_of(comparison: EvaluationTables, number: int) -> list[tuple[Any, ...]]:
    """The rows of one of the four tables: labels of exact codes."""
    labels = [domain.labels() for domain in comparison.domains]
    rows = comparison.exact.tables[number].T.tolist()
    return [tuple(own[code] for own, code in zip(labels, codes, strict=True)) for codes in rows]
