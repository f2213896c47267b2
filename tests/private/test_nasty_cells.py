"""No value decides whether a release happens: a table and its neighbor with one nasty row have the same outcome.

Tables come in every way in which users give them, with the types that each library infers from the cells. Each kind of
attribute has two columns: one that is filled, where a nasty cell is among ordinary ones, and one that is empty but for
that cell, so its type is inferred from that cell alone.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import gzip
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb
import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as papq
import pytest
import yaml

from dpsyn.encoding import Codec, Recoding
from dpsyn.engines import open_engine, open_table
from dpsyn.errors import DPSynError
from dpsyn.private import open_private
from dpsyn.recipes import Direct
from dpsyn.schema import Categorical, Integer, Schema
from dpsyn.sources import encode_batches, open_source

ROWS = 10
NO_NOISE = 10**6
"""An ε at which the noise is far below one row: what is released differs by the nasty row alone."""

KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "categorical": ({"values": ["red", "blue"]}, "red"),
    "wards": ({"kind": "categorical", "values": ["001", "007"]}, "001"),
    "ordinal": ({"values": [1, 2, 3]}, "2"),
    "boolean": ({}, "true"),
    "integer": ({"low": 0, "high": 9, "missing": True}, "7"),
    "real": ({"low": 0, "high": 1, "decimals": 2}, "0.25"),
    "datetime": ({"start": "2019-01-01", "end": "2021-12-31", "missing": True}, "2020-05-01"),
    "timestamps": (
        {"kind": "datetime", "start": "2019-01-01", "end": "2021-12-31", "resolution": "minute", "missing": True},
        "2020-05-01 08:30:00",
    ),
    "years": ({"kind": "datetime", "start": "2000", "end": "2024", "resolution": "year"}, "2019"),
    "digits": ({"kind": "datetime", "start": "2019-01-01", "end": "2021-12-31", "format": "%Y%m%d"}, "20200131"),
    "time": ({"resolution": "second", "missing": True}, "08:30:15"),
    "open": ({}, "word"),
}
"""The fields of an attribute of each kind, and an ordinary cell."""

SCHEMA = Schema.from_yaml(
    yaml.safe_dump(
        {
            "dpsyn_schema": 1,
            "privacy_unit": {"id": "who", "max_rows": 2},
            "attributes": {
                "who": {"kind": "identifier"},
                **{
                    f"{prefix}{name}": {"kind": name, **fields}
                    for name, (fields, _) in KINDS.items()
                    for prefix in ("", "sparse ")
                },
            },
        }
    )
)
RECIPE = Direct(ways=1)  # what it measures is public; others choose marginals and cells by noisy counts
BUDGET = RECIPE.plan_budget(SCHEMA, NO_NOISE, 1e-6)
CODEC = Codec(SCHEMA)
NAMES = SCHEMA.names
ORDINARY = {"who": "17", **{f"{p}{name}": cell for name, (_, cell) in KINDS.items() for p in ("", "sparse ")}}

TEXTS: list[Any] = [
    "", " ", "NaN", "nan", "inf", "-inf", "NA", "null", "None", "0", "007", "-1", "1.5", "1e999", "9" * 25, "9" * 5000,
    "true", "2020-02-30", "0000-00-00", "9999-12-31", "99999-01-01", "2020-05-01 10:11:12.123456789", "12:30",
    "24:00", "8:30 pm", "2020-05-01T00:00:00+02:00", "x",
    "x" * 200_000, "\x00\x01\x1b[31m", "\ufffd", "a,b", 'a"b', '"', '""', '"a',
    "a\nb", "a\r\nb", "\r", "=1+1", "[1, 2]", "{'a': 1}", "ß" * 100, b"\xff\xfe", b"\xc3(",
]  # fmt: skip
OBJECTS: list[Any] = [
    None, float("nan"), float("inf"), -float("inf"), 1e300, 0, 7, -1, 2**63, 2**64, 10**400, 1.5, True, np.bool_(True),
    np.float32(0.1), Decimal("1.50"), Decimal("sNaN"), Fraction(1, 3), 1 + 2j, 3 + 0j, dt.date(2020, 5, 1), dt.date.max,
    dt.datetime(2020, 5, 1, 10), dt.datetime(1, 1, 1), dt.datetime(2020, 5, 1, tzinfo=dt.UTC), dt.time(12, 30),
    dt.timedelta(days=1), pd.NaT, pd.NA, pd.Timestamp("2020-05-01"), pd.Period("2020-05", "M"),
    pd.Interval(0, 1), np.datetime64("2020-05-01"), b"\xff\xfe", b"", [1, 2], [], {"a": 1}, (1,), {1}, object(),
    "\ud800",
]  # fmt: skip


USUAL = object()
"""Stands for the ordinary cell of each column."""

TYPES: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("who", "ordinal", "integer", "years", "digits"), int),
    "real": float,
    "boolean": lambda text: text == "true",
    "datetime": dt.datetime.fromisoformat,
    "timestamps": dt.datetime.fromisoformat,
    "time": dt.time.fromisoformat,
}


def columns_with(cell: Any, types: Mapping[str, Callable[[str], Any]] = MappingProxyType({})) -> dict[str, list[Any]]:
    """All columns, their ordinary cells as text or in the types that a program uses; the last row is nasty."""
    columns = {}
    for name in NAMES:
        convert = types.get(name.removeprefix("sparse "), str)
        above = [str(n) for n in range(ROWS)] if name == "who" else [ORDINARY[name]] * ROWS
        cells = [None] * ROWS if name.startswith("sparse") else [convert(text) for text in above]
        columns[name] = [*cells, convert(ORDINARY[name]) if cell is USUAL else cell]
    return columns


def write_csv(path: Path, cell: Any, quote: Callable[[bytes], bytes] | None = None) -> Path:
    """A CSV file, with cells in quotes where they need them."""
    quote = quote or (lambda raw: b'"%b"' % raw.replace(b'"', b'""') if set(raw) & {*b'",\r\n'} or not raw else raw)
    rows = zip(*columns_with(cell).values(), strict=True)
    cells = [[b"" if c is None else c if isinstance(c, bytes) else c.encode() for c in row] for row in [NAMES, *rows]]
    path.write_bytes(b"".join(b",".join(map(quote, row)) + b"\n" for row in cells))
    return path


def from_csv(read: Callable[[Path], Any]) -> Callable[[Any, Path], Any]:
    return lambda cell, folder: read(write_csv(folder / "t.csv", cell))


def compressed(cell: Any, folder: Path) -> Path:
    with pa.output_stream(str(folder / "t.csv.gz"), compression="detect") as stream:
        stream.write(write_csv(folder / "t.csv", cell).read_bytes())
    return folder / "t.csv.gz"


def to_parquet(table: pa.Table, folder: Path) -> Path:
    papq.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


def of_many_files(cell: Any, folder: Path) -> Path:
    """A folder of two files, whose types are inferred one by one."""
    table = read_arrow(write_csv(folder / "t.csv", cell))
    for number, part in enumerate((table.slice(0, ROWS), table.slice(ROWS))):
        papq.write_table(pa.Table.from_pandas(part.to_pandas()), folder / f"{number}.parquet")
    (folder / "t.csv").unlink()
    return folder


def read_arrow(path: Path) -> pa.Table:
    return pacsv.read_csv(path, parse_options=pacsv.ParseOptions(newlines_in_values=True))


CONNECTION = duckdb.connect(config={"threads": 1})

FROM_TEXT: dict[str, Callable[[Any, Path], Any]] = {
    "CSV": from_csv(lambda path: path),
    "CSV that never quotes": lambda cell, folder: write_csv(folder / "t.csv", cell, quote=lambda raw: raw),
    "compressed CSV": compressed,
    "pandas from CSV": from_csv(lambda path: pd.read_csv(path, parse_dates=["datetime", "sparse datetime"])),
    "polars from CSV": from_csv(lambda path: pl.read_csv(path, infer_schema_length=None, try_parse_dates=True)),
    "Arrow from CSV": from_csv(read_arrow),
    "Parquet": lambda cell, folder: to_parquet(read_arrow(write_csv(folder / "t.csv", cell)), folder),
    "Parquet files": of_many_files,
    "DuckDB": from_csv(lambda path: CONNECTION.read_csv(str(path), sample_size=-1)),
}
FROM_OBJECTS: dict[str, Callable[[Any, Path], Any]] = {
    "pandas": lambda cell, folder: pd.DataFrame(columns_with(cell, TYPES)),
    "polars": lambda cell, folder: pl.DataFrame(columns_with(cell, TYPES), strict=False, infer_schema_length=None),
    "polars objects": lambda cell, folder: pl.DataFrame(columns_with(cell), schema=dict.fromkeys(NAMES, pl.Object)),
    "Arrow": lambda cell, folder: pa.table({n: pa.array(c) for n, c in columns_with(cell, TYPES).items()}),
    "Parquet of pandas": lambda cell, folder: to_parquet(
        pa.Table.from_pandas(pd.DataFrame(columns_with(cell))), folder
    ),
    "DuckDB of Arrow": lambda cell, folder: CONNECTION.from_arrow(pa.table(columns_with(cell, TYPES))),
}


@contextlib.contextmanager
def listening(words: list[str]) -> Iterator[None]:
    """Everything that is warned of, logged or printed goes to ``words``."""
    handler = logging.Handler()
    handler.emit = lambda record: words.append(record.getMessage())  # type: ignore[method-assign]
    out = io.StringIO()
    logging.getLogger().addHandler(handler)
    with (
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
    ):
        warnings.simplefilter("always")
        yield
    logging.getLogger().removeHandler(handler)
    words += [out.getvalue(), *(str(warning.message) for warning in caught)]


def read(data: Any) -> tuple[list[str], list[list[int]]]:
    """Whether a release can read a table, with all of its words; and the codes of all rows but the nasty one.

    The engine has done all that depends on rows; what follows in a release depends on its noisy answers.
    """
    words: list[str] = []
    with listening(words):
        try:
            source = open_table(data)
            engine = open_engine(source, SCHEMA, key=bytes(16))
            engine.prepare()
            engine.count([(0,), (1, 2)], Recoding.fine(CODEC))
            engine.count_texts("open")
            codes = [row for batch in source.batches(CODEC.columns) for row in CODEC.encode(batch).tolist()]
        except DPSynError as error:
            return [*words, f"{type(error).__name__}: {error}"], []
    return [*words, "read"], codes[:ROWS]


def release(data: Any) -> list[str]:
    """Whether a release happens, with all of its words and what it measures; into which cells follows noisy counts."""
    words: list[str] = []
    with listening(words):
        try:
            with open_private(data, SCHEMA, BUDGET) as table:
                measured = RECIPE.measure(table, progress=lambda phase, _: words.append(phase))
        except DPSynError as error:
            return [*words, f"{type(error).__name__}: {error}"]
    return [*words, "released", *sorted({str(m.clique) for r in measured.rounds for m in r.marginals})]


def neighbors(build: Callable[[Any, Path], Any], cells: Sequence[Any], folder: Path) -> Iterator[tuple[Any, Any]]:
    """Every nasty cell, and the table that has it; without those that the library itself refuses."""
    for number, cell in enumerate(cells):
        (folder / str(number)).mkdir()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                data = build(cell, folder / str(number))
            except BaseException as error:  # the panics of polars are not exceptions
                if isinstance(error, KeyboardInterrupt):
                    raise
                continue
        yield cell, data


SAME_READER = ("compressed CSV", "Parquet")
"""Files that are read as others are, CSV and tables of Arrow, once they are open: some of the cells are enough."""

WAYS = {
    **{way: (build, TEXTS[::4] if way in SAME_READER else TEXTS) for way, build in FROM_TEXT.items()},
    **{way: (build, OBJECTS) for way, build in FROM_OBJECTS.items()},
}

MIN_TABLES = {
    **dict.fromkeys(SAME_READER, 9),
    **dict.fromkeys(("polars", "Parquet of pandas"), 5),  # these libraries refuse most mixtures of types
    **dict.fromkeys(("Arrow", "DuckDB of Arrow"), 1),
}
"""The least number of tables of a way where it is not nearly all."""

WARDS = CODEC.names.index("wards")
"""The axis of a column whose leading zeros some libraries drop."""

ORDINARY_CODES = [
    code
    for name, code in zip(
        CODEC.names,
        CODEC.encode(
            pa.table({name: ["" if name.startswith("sparse") else ORDINARY[name]] for name in CODEC.columns})
        ).tolist()[0],
        strict=True,
    )
    if name != "wards"
]

CHANGED_BY_THE_LIBRARY = {"polars": (dt.date, dt.timedelta)}
"""Cells for which a library replaces other cells of the column, before DPSyn sees the table."""


@pytest.mark.parametrize("way", WAYS)
def test_one_nasty_row_changes_neither_the_outcome_nor_the_words_nor_other_rows(tmp_path: Path, way: str) -> None:
    build, cells = WAYS[way]
    tables = neighbors(build, [USUAL, *cells], tmp_path)
    expected_words, expected_codes = read(next(tables)[1])
    count = 0

    assert expected_words[-1] == "read"
    assert [[*row[:WARDS], *row[WARDS + 1 :]] for row in expected_codes] == [ORDINARY_CODES] * ROWS
    for cell, data in tables:
        words, codes = read(data)

        assert words == expected_words, repr(cell)[:80]
        if not isinstance(cell, CHANGED_BY_THE_LIBRARY.get(way, ())):
            assert codes == expected_codes, repr(cell)[:80]
        count += 1
    assert count >= MIN_TABLES.get(way, 35)


@pytest.mark.parametrize("way", ["CSV", "pandas from CSV", "DuckDB"])
def test_a_release_happens_in_the_same_words_whatever_one_row_holds(tmp_path: Path, way: str) -> None:
    """A file, a frame and a database: other ways differ in how cells are read, which the test above compares."""
    cells = [USUAL, "", "x", "1.5", "9" * 5000, '"', "2020-02-30"]

    outcomes = [release(data) for _, data in neighbors(FROM_TEXT[way], cells, tmp_path)]

    assert "released" in outcomes[0]
    assert all(outcome == outcomes[0] for outcome in outcomes)
    assert len(outcomes) >= 6


@pytest.mark.parametrize("cell", [b"x" * 9_000_000, b'"' * 9_000_000, b"a\n" * 4_500_000, b"9" * 9_000_000])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_a_cell_of_nine_megabytes_is_one_cell(tmp_path: Path, name: str, cell: bytes) -> None:
    rows = b"a,b,c\n" + b"7,1,word\n" * ROWS + b'8,"%b",word\n' % cell.replace(b'"', b'""')
    (tmp_path / name).write_bytes(gzip.compress(rows, 1) if name.endswith(".gz") else rows)
    schema = Schema(attributes=(Integer(name="b", low=0, high=9), Categorical(name="a", values=("7", "8"))))

    codes = [row for batch in encode_batches(open_source(tmp_path / name), Codec(schema)) for row in batch.tolist()]

    assert codes == [[1, 0]] * ROWS + [[9 if cell.isdigit() else 0, 1]]


COLUMNS: dict[str, list[list[str]]] = {
    "one died, or nobody": [["2020-05-01", "", ""], ["", "", ""]],
    "a year is missing": [["2019", "2020", "2021"], ["2019", "", "2021"]],
    "wards are numbers, or one is not": [["001", "002", "7"], ["001", "x", "7"]],
    "a truth value is missing": [["True", "False", "True"], ["True", "", "True"]],
}


@pytest.mark.parametrize("cells", COLUMNS.values(), ids=COLUMNS)
@pytest.mark.parametrize("name", KINDS)
def test_types_that_pandas_infers_from_a_csv_file_refuse_nothing(name: str, cells: list[list[str]]) -> None:
    schema = Schema(attributes=(msgspec.structs.replace(SCHEMA[name], name="a"),))
    for column in cells:
        frame = pd.read_csv(io.StringIO("a,b\n" + "".join(f"{cell},1\n" for cell in column)))
        engine = open_engine(open_table(frame), schema, key=bytes(16))

        rows = (
            sum(engine.count_texts("a").values()) + frame["a"].isna().sum()
            if schema.open_attributes
            else engine.count([(0,)], Recoding.fine(Codec(schema)))[0].sum()
        )

        assert rows == 3
