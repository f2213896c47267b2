"""Small tables, synopses and reports for tests."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

from dpsyn.encoding import Codec, Recoding
from dpsyn.evaluation import Evaluation, evaluate
from dpsyn.schema import Boolean, Categorical, Datetime, Integer, Ordinal, Schema
from dpsyn.synopsis import Synopsis

HOSTILE = "</script><script>window.caught = 1</script>"
"""The name of an attribute that tries to be a script."""

VALUES = ("\"><img src=x onerror='window.caught = 2'>", "'\u2028`${window.caught = 3}`<!--", "ümläut & 日本 🜁", "}{][")
"""Values that try to be markup or code."""

SCHEMA = Schema(
    attributes=(
        Integer(name="age", low=0, high=99, bins=(0, 18, 40, 65), missing=True),
        Categorical(name=HOSTILE, values=VALUES),
        Ordinal(name="size", values=("S", "M", "L")),
        Boolean(name="member"),
        Datetime(name="since", start="2016-01-01", end="2019-12-31", resolution="month"),
        Categorical(name="code", codes=40),
    ),
    dataset="club <b>& co</b>",
)


def rows(count: int = 400, seed: int = 0) -> pa.Table:
    """Rows in which most columns depend on each other."""
    rng = np.random.default_rng(seed)
    size = rng.integers(0, 3, count)
    value = (size + (rng.random(count) < 0.1)) % 4
    month = np.minimum(47, size * 16 + rng.integers(0, 16, count))
    return pa.table(
        {
            "age": pa.array([int(a) if a < 95 else None for a in size * 30 + rng.integers(0, 36, count)]),
            HOSTILE: [VALUES[code] for code in value],
            "size": ["SML"[code] for code in size],
            "member": (size == 1) | (rng.random(count) < 0.2),
            "since": [f"{2016 + code // 12}-{code % 12 + 1:02}" for code in month],
            "code": size * 13 + rng.integers(0, 13, count),
        }
    )


def shuffle_column(table: pa.Table, name: str, seed: int = 1) -> pa.Table:
    """The table with one column shuffled."""
    order = np.random.default_rng(seed).permutation(table.num_rows)
    return table.set_column(table.schema.get_field_index(name), name, table.column(name).take(pa.array(order)))


@cache
def synopsis(std: float = 4.0) -> Synopsis:
    """Marginals of the rows with noise: of each attribute, of the first pairs, and of three together."""
    codec, rng = Codec(SCHEMA), np.random.default_rng(5)
    codes = Recoding.coarse(codec).apply(codec.encode(rows()))
    names = codec.names
    cliques = [*((name,) for name in names), (names[0], names[2]), (names[1], names[2]), tuple(names[1:4])]
    marginals = {}
    for clique in cliques:
        axes = [names.index(name) for name in clique]
        counts = np.zeros([codec.coarse_sizes[axis] for axis in axes])
        np.add.at(counts, tuple(codes[:, axis] for axis in axes), 1)
        marginals[clique] = np.round(counts + rng.normal(0, std, counts.shape))
    return Synopsis.from_marginals(SCHEMA, marginals, std=std, source=f"a test {HOSTILE}")


@cache
def evaluation(shuffle: str = "") -> Evaluation:
    """Scores of other rows of the same kind, with a column shuffled if one is named."""
    other = rows(seed=9)
    return evaluate(rows(), shuffle_column(other, shuffle) if shuffle else other, SCHEMA)


@cache
def opposite_evaluation() -> Evaluation:
    """Scores of rows whose columns depend on each other the other way around: worse than shuffled columns."""
    other = rows(seed=9)
    for name, reverse in (("size", {"S": "L", "M": "S", "L": "M"}), ("member", {True: False, False: True})):
        column = [reverse[value] for value in other.column(name).to_pylist()]
        other = other.set_column(other.schema.get_field_index(name), name, pa.array(column))
    return evaluate(rows(), other, SCHEMA)
