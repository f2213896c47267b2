"""Frequent itemsets are the same, in whatever form the baskets come."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as papq
import pytest

import dpsyn
from dpsyn.engines.baskets import BasketEngine
from dpsyn.schema import BasketSchema
from dpsyn.sources import open_basket_source

BASKETS = [["a", "b", "c"], ["a", "b"], ["a"], [], ["b", "c", "d"], ["a", "b", "d"]] * 5
NOTHING: list[Any] = [None]
ROWS = [(f"b{number}", item) for number, basket in enumerate(BASKETS) for item in basket or NOTHING]
TABLE = pa.table({"basket": [basket for basket, _ in ROWS], "item": pa.array([item for _, item in ROWS], pa.string())})
NO_NOISE = 10**6


def cast(kind: pa.DataType) -> Callable[[Path], Any]:
    return lambda folder: pa.table({name: TABLE[name].cast(kind) for name in TABLE.column_names})


def written(write: Callable[[Path], Any], name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        write(folder / name)
        return folder / name

    return make


def lines() -> bytes:
    return "".join(" ".join(basket) + "\n" for basket in BASKETS).encode()


WAYS: dict[str, Callable[[Path], Any]] = {
    "lists": lambda folder: BASKETS,
    ".dat": written(lambda path: path.write_bytes(lines()), "b.dat"),
    ".dat.gz": written(lambda path: path.write_bytes(gzip.compress(lines())), "b.dat.gz"),
    "CSV": written(lambda path: TABLE.to_pandas().to_csv(path, index=False), "b.csv"),
    "Parquet": written(lambda path: papq.write_table(TABLE, path), "b.parquet"),
    "pandas": lambda folder: TABLE.to_pandas(),
    "pandas objects": lambda folder: TABLE.to_pandas().astype(object),
    "pandas categories": lambda folder: TABLE.to_pandas().astype("category"),
    "pandas in Arrow": lambda folder: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda folder: pl.from_arrow(TABLE),
    "polars LazyFrame": lambda folder: pl.from_arrow(TABLE).lazy(),  # type: ignore[union-attr]
    "polars categories": lambda folder: pl.from_arrow(TABLE).cast(pl.Categorical),
    "DuckDB": lambda folder: duckdb.connect().from_arrow(TABLE),
    **{
        f"Arrow {kind}": cast(kind)
        for kind in (
            pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(),
            pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.large_string()),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_itemsets_are_the_same_in_every_form(tmp_path: Path, way: str) -> None:
    result = dpsyn.frequent_itemsets(
        WAYS[way](tmp_path), items=["a", "b", "c", "d"], epsilon=NO_NOISE, allow_large_epsilon=True, top=3
    )

    found = {itemset.items: round(itemset.count) for itemset in result.itemsets}
    assert found == {("a",): 20, ("b",): 20, ("a", "b"): 15}


@pytest.mark.parametrize("way", WAYS)
def test_all_items_that_occur_are_counted_in_every_form(tmp_path: Path, way: str) -> None:
    engine = BasketEngine(open_basket_source(WAYS[way](tmp_path)), BasketSchema(items=None), bytes(16))

    assert engine.count_items(max_items=3) == {"a": 20, "b": 20, "c": 10, "d": 10}
    assert engine.count() == len(BASKETS)
