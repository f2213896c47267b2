"""Types survive: a table goes in with a type, and synthetic rows come out with the type that the document says."""

from __future__ import annotations

import datetime as dt
import json
import zipfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as papq
import pytest

import dpsyn
from dpsyn.encoding.column_types import holds_all_values, parse_type, record_types
from dpsyn.encoding.dataframes import OutputFormat, convert_rows
from dpsyn.schema import Schema
from dpsyn.sources import open_source

DOCUMENT = Path(__file__).parents[1] / "docs" / "reference" / "types.md"
START, END = "<!-- types: begin -->\n", "<!-- types: end -->\n"

WHOLE = dpsyn.Integer(name="x", low=0, high=99)
WHOLE_OR_MISSING = dpsyn.Integer(name="x", low=0, high=99, missing=True)
WIDE = dpsyn.Integer(name="x", low=0, high=999)
PRICE = dpsyn.Real(name="x", low=0, high=99, decimals=2)
TRUTH = dpsyn.Boolean(name="x")
TRUTH_OR_MISSING = dpsyn.Boolean(name="x", missing=True)
SIZE = dpsyn.Ordinal(name="x", values=("small", "medium", "large"))
CODE = dpsyn.Categorical(name="x", values=(1, 2, 9))
DAY = dpsyn.Datetime(name="x", start="2020-01-01", end="2020-12-31")
MINUTE = dpsyn.Datetime(name="x", start="2020-01-01", end="2020-12-31", resolution="minute")
CLOCK = dpsyn.Time(name="x")
SECONDS = dpsyn.Real(name="x", low=0, high=60, decimals=3)

TEXTS, NUMBERS, INSTANTS = ["small", "large"], [1, 2], [dt.datetime(2020, 2, 3, 4, 5), dt.datetime(2020, 3, 4, 5, 6)]
DAYS, CLOCKS = [each.date() for each in INSTANTS], [each.time() for each in INSTANTS]
LENGTHS = [dt.timedelta(seconds=9)] * 2
BERLIN = [each.replace(tzinfo=dt.UTC) for each in INSTANTS]


def pandas_columns() -> Iterator[tuple[str, pd.Series[Any], dpsyn.schema.Attribute]]:
    """A note on the values, a column, and the attribute that describes it."""
    for kind in ("int64", "uint8", "Int64", "UInt8", "int64[pyarrow]"):
        yield "", pd.Series(NUMBERS, dtype=kind), WHOLE
    for kind in ("int64", "float64", "int16", "Int64"):
        yield "can be missing", pd.Series(NUMBERS, dtype=kind), WHOLE_OR_MISSING
    yield "up to 999", pd.Series(NUMBERS, dtype="int8"), WIDE
    for kind in ("float64", "float32", "Float32", "decimal128(6, 2)[pyarrow]"):
        given: Any = pd.ArrowDtype(pa.decimal128(6, 2)) if "decimal" in kind else kind
        yield "", pd.Series([Decimal("1.50"), Decimal("2.25")], dtype=given), PRICE
    for kind in ("bool", "boolean"):
        yield "", pd.Series([True, False], dtype=kind), TRUTH
        yield "can be missing", pd.Series([True, False], dtype=kind), TRUTH_OR_MISSING
    yield "", pd.Series(TEXTS, dtype=object), SIZE
    yield "", pd.Series(TEXTS, dtype="str"), SIZE
    yield "", pd.Series(TEXTS, dtype="string"), SIZE
    yield "", pd.Series(TEXTS, dtype="category"), SIZE
    yield "ordered", pd.Series(TEXTS, dtype=pd.CategoricalDtype(["small", "medium", "large"], ordered=True)), SIZE
    yield "of numbers", pd.Series(NUMBERS, dtype="category"), CODE
    for unit in ("us", "ns", "s"):
        yield "", pd.Series(INSTANTS, dtype=f"datetime64[{unit}]"), MINUTE
    yield "of days", pd.Series(DAYS, dtype="datetime64[us]"), DAY
    yield "", pd.Series(BERLIN).dt.tz_convert("Europe/Berlin"), MINUTE
    yield "of dates", pd.Series(DAYS, dtype=object), DAY
    yield "", pd.Series(LENGTHS, dtype="timedelta64[ns]"), SECONDS


def polars_columns() -> Iterator[tuple[str, pl.Series, dpsyn.schema.Attribute]]:
    for kind in (pl.Int64, pl.Int8, pl.UInt8, pl.UInt64):
        yield "can be missing", pl.Series("x", NUMBERS, kind), WHOLE_OR_MISSING
    yield "up to 999", pl.Series("x", NUMBERS, pl.Int8), WIDE
    for number in (pl.Float64(), pl.Float32(), pl.Decimal(6, 2)):
        yield "", pl.Series("x", [Decimal("1.50"), Decimal("2.25")], pl.Decimal(6, 2)).cast(number), PRICE
    yield "can be missing", pl.Series("x", [True, False]), TRUTH_OR_MISSING
    for text in (pl.String(), pl.Categorical(), pl.Enum(["small", "medium", "large"]), pl.Enum(["small", "large"])):
        yield "", pl.Series("x", TEXTS, text), SIZE
    yield "", pl.Series("x", DAYS), DAY
    yield "", pl.Series("x", INSTANTS), MINUTE
    yield "of days", pl.Series("x", INSTANTS), DAY
    yield "", pl.Series("x", INSTANTS, pl.Datetime("ms")), MINUTE
    yield "", pl.Series("x", INSTANTS, pl.Datetime("us", "Europe/Berlin")), MINUTE
    yield "", pl.Series("x", CLOCKS), CLOCK
    yield "", pl.Series("x", LENGTHS, pl.Duration("ms")), SECONDS


def arrow_columns() -> Iterator[tuple[str, pa.Array, dpsyn.schema.Attribute]]:
    for kind in (pa.int64(), pa.uint8(), pa.int16()):
        yield "can be missing", pa.array(NUMBERS, kind), WHOLE_OR_MISSING
    yield "up to 999", pa.array(NUMBERS, pa.int8()), WIDE
    for kind in (pa.float64(), pa.float32(), pa.decimal128(6, 2), pa.decimal64(6, 3)):
        yield "", pa.array([1.5, 2.25]).cast(kind), PRICE
    yield "can be missing", pa.array([True, False]), TRUTH_OR_MISSING
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        yield "", pa.array(TEXTS, kind), SIZE
    for index, ordered in ((pa.int8(), False), (pa.int32(), True)):
        codes = pa.array([0, 1], index)
        yield "", pa.DictionaryArray.from_arrays(codes, pa.array(TEXTS), ordered=ordered), SIZE
    for kind in (pa.date32(), pa.date64(), pa.timestamp("us")):
        yield "of days", pa.array(DAYS).cast(kind), DAY
    for kind in (pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("ms", "Europe/Berlin")):
        yield "", pa.array(BERLIN if kind.tz else INSTANTS, kind), MINUTE
    for kind in (pa.time32("s"), pa.time64("us")):
        yield "", pa.array(CLOCKS, kind), CLOCK
    yield "", pa.array(LENGTHS, pa.duration("ms")), SECONDS


def duckdb_columns() -> Iterator[tuple[str, str, dpsyn.schema.Attribute]]:
    for kind in ("BIGINT", "UTINYINT", "SMALLINT"):
        yield "can be missing", kind, WHOLE_OR_MISSING
    yield "", "DOUBLE", PRICE
    yield "", "FLOAT", PRICE
    yield "", "DECIMAL(6,2)", PRICE
    yield "can be missing", "BOOLEAN", TRUTH_OR_MISSING
    yield "", "VARCHAR", SIZE
    yield "", "ENUM('small', 'medium', 'large')", SIZE
    yield "", "DATE", DAY
    yield "", "TIMESTAMP", MINUTE
    yield "", "TIMESTAMP WITH TIME ZONE", MINUTE
    yield "", "TIME", CLOCK
    yield "", "INTERVAL", SECONDS


def tables() -> Iterator[tuple[OutputFormat, str, Any, str, dpsyn.schema.Attribute]]:
    """Every column of the document: the library, the name of its type, a table, a note, and its attribute."""
    for note, series, attribute in pandas_columns():
        yield "pandas", str(series.dtype), series.to_frame("x"), note, attribute
    for note, column, attribute in polars_columns():
        yield "polars", str(column.dtype), column.to_frame(), note, attribute
    for note, array, attribute in arrow_columns():
        yield "arrow", str(array.type), pa.table({"x": array}), note, attribute
    for note, kind, attribute in duckdb_columns():
        yield "duckdb", kind, kind, note, attribute  # a relation would keep its connection open


def type_name(table: Any) -> str:
    """The name of the type of the only column of a table."""
    if isinstance(table, pd.DataFrame):
        return str(table.dtypes["x"])
    if isinstance(table, pl.DataFrame):
        return str(table.schema["x"])
    return str(table.schema.field("x").type if isinstance(table, pa.Table) else table.types[0])


def plain_rows(attribute: Any, count: int = 50) -> pa.Table:
    """Rows as they are sampled, with every value of a short list and with missing values where they are allowed."""
    codec = dpsyn.encoding.Codec(Schema(attributes=(attribute,)))
    sizes = codec.fine_sizes
    codes = np.stack([np.arange(count) % size for size in sizes], axis=1)
    return codec.decode(codes, np.random.default_rng(1))


def come_back(table: Any, attribute: Any, library: OutputFormat) -> Any:
    schema = Schema(attributes=(attribute,))
    if library == "duckdb":
        table = duckdb.sql(f"SELECT CAST(NULL AS {table}) AS x")
    types = record_types(schema, open_source(table).schema, library)
    return convert_rows(plain_rows(attribute), schema, types, library)


WORDS = {
    "integer": "whole numbers",
    "real": "numbers",
    "boolean": "truth values",
    "ordinal": "texts",
    "categorical": "codes",
    "datetime": "timestamps",
    "time": "times",
}


def make_document_table() -> str:
    titles = {"pandas": "pandas", "polars": "polars", "arrow": "Arrow", "duckdb": "DuckDB"}
    sections: dict[str, list[str]] = {library: [] for library in titles}
    for library, name, table, note, attribute in tables():
        back = type_name(come_back(table, attribute, library))
        kind = "days" if attribute == DAY else "seconds" if attribute == SECONDS else WORDS[attribute.kind]
        shown = "the same" if back == name else f"`{back}`"
        note = "" if note in ("of days", "of dates", "of numbers") else f", {note}" if note else ""
        sections[library].append(f"| `{name}` | {kind}{note} | {shown} |")
    heading = "| type | values in the schema | comes back as |\n|---|---|---|"
    return "\n".join("\n".join([f"### {titles[library]}\n", heading, *rows, ""]) for library, rows in sections.items())


CASES = list(tables())


@pytest.mark.parametrize(
    ("library", "table", "attribute"),
    [pytest.param(case[0], case[2], case[4], id=f"{case[0]} {case[1]} {case[3]}") for case in CASES],
)
def test_the_values_of_a_column_survive_its_type(library: OutputFormat, table: Any, attribute: Any) -> None:
    """Read as a table, the typed rows have the codes of the plain ones."""
    codec = dpsyn.encoding.Codec(Schema(attributes=(attribute,)))
    rows = come_back(table, attribute, library)
    batches = [codec.encode(batch) for batch in open_source(rows).batches(["x"])]

    assert np.concatenate(batches).tolist() == codec.encode(plain_rows(attribute)).tolist()


# ── what a type may depend on ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("attribute", [WHOLE, WHOLE_OR_MISSING, PRICE, SIZE, TRUTH_OR_MISSING, DAY, MINUTE])
@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_the_types_that_readers_choose_by_values_all_come_back_as_one(attribute: Any, library: OutputFormat) -> None:
    """One empty cell makes integers floats, and one word makes them texts: neither may be seen in the types."""
    columns: dict[str, list[Any]] = {
        "whole": [1, 2],
        "empty cell": [1.0, None],
        "fraction": [1.5, 2.0],
        "word": ["1", "word"],
        "truth": [True, False],
        "nothing": [None, None],
        "date": DAYS,
        "timestamp": INSTANTS,
    }
    make: Any = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}[library]
    values = {note: each for note, each in columns.items() if library != "arrow" or note not in ("timestamp",)}

    back = {type_name(come_back(make({"x": each}), attribute, library)) for each in values.values()}

    assert len(back) == 1


def test_the_types_do_not_depend_on_the_sampled_values() -> None:
    schema = Schema(attributes=(WHOLE_OR_MISSING,))
    with_missing = plain_rows(WHOLE_OR_MISSING, 101)
    without = with_missing.slice(0, 10)
    assert [rows.column("x").null_count > 0 for rows in (with_missing, without)] == [True, False]

    for library in ("pandas", "polars", "arrow", "duckdb"):
        names = {type_name(convert_rows(rows, schema, {}, library)) for rows in (with_missing, without)}
        assert len(names) == 1


def test_the_categories_of_a_table_are_not_recorded() -> None:
    schema = Schema(attributes=(SIZE,))
    secret = pd.DataFrame({"x": pd.Categorical(["small", "S3CRET"])})
    enum = pl.DataFrame({"x": pl.Series(["small"], dtype=pl.Enum(["small", "S3CRET"]))})

    recorded = [record_types(schema, open_source(secret).schema, "pandas")]
    recorded += [record_types(schema, open_source(enum).schema, "polars")]

    assert all(types["x"].index for types in recorded)
    assert "S3CRET" not in str(recorded)
    assert list(come_back(secret, SIZE, "pandas")["x"].cat.categories) == list(SIZE.values)


def test_columns_that_the_schema_does_not_describe_are_not_recorded() -> None:
    table = pa.table({"x": pa.array([1], pa.uint8()), "y": pa.array([1], pa.uint8())})

    assert set(record_types(Schema(attributes=(WHOLE,)), table.schema, "arrow")) == {"x"}


# ── which types hold which values ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "attribute", "held"),
    [
        (pa.int8(), dpsyn.Integer(name="x", low=-128, high=127), True),
        (pa.int8(), dpsyn.Integer(name="x", low=-129, high=127), False),
        (pa.uint8(), dpsyn.Integer(name="x", low=-1, high=5), False),
        (pa.int8(), PRICE, False),
        (pa.int8(), CODE, True),
        (pa.int8(), dpsyn.Categorical(name="x", values=(1, 2), other=999), False),
        (pa.int8(), SIZE, False),
        (pa.int8(), TRUTH, False),
        (pa.float32(), dpsyn.Integer(name="x", low=0, high=2**24), True),
        (pa.float32(), dpsyn.Integer(name="x", low=0, high=2**24 + 1), False),
        (pa.decimal128(4, 2), PRICE, True),
        (pa.decimal128(4, 2), dpsyn.Real(name="x", low=0, high=100, decimals=2), False),
        (pa.decimal128(4, 1), PRICE, False),
        (pa.decimal128(4, 1), dpsyn.Categorical(name="x", values=(0.5, 0.25)), False),
        (pa.duration("ms"), SECONDS, True),
        (pa.duration("s"), SECONDS, False),
        (pa.timestamp("ns"), dpsyn.Datetime(name="x", start="1600", end="1700", resolution="year"), False),
        (pa.timestamp("us"), dpsyn.Datetime(name="x", start="1600", end="1700", resolution="year"), True),
        (pa.timestamp("s"), dpsyn.Datetime(name="x", start="2020", end="2021", resolution="millisecond"), False),
        (pa.date64(), MINUTE, False),
        (pa.time32("ms"), dpsyn.Time(name="x", resolution="microsecond", end="23:59:59.999999"), False),
        (pa.large_string(), SIZE, True),
        (pa.large_string(), WHOLE, False),
        (pa.uint8(), DAY, False),
    ],
)
def test_a_type_is_used_only_if_it_holds_all_values_of_the_schema(kind: Any, attribute: Any, held: bool) -> None:
    assert holds_all_values(kind, attribute) is held


def test_more_values_than_an_index_has_make_it_wider() -> None:
    many = dpsyn.Categorical(name="x", values=tuple(f"v{number}" for number in range(200)))
    table = pa.table({"x": pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array(["v0"]))})

    back = come_back(table, many, "arrow")

    assert back.schema.field("x").type.index_type == pa.int32()
    assert back.column("x").to_pylist() == plain_rows(many).column("x").to_pylist()


@pytest.mark.parametrize("name", ["", "string", "list<item: int64>", "decimal128(99, 2)", "timestamp[us, tz=$(x)]", 7])
def test_only_the_types_of_columns_have_names(name: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        parse_type(name)


# ── a whole release ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def synopsis() -> dpsyn.Synopsis:
    """Measured from a pandas frame with four declared types."""
    described: dict[str, Any] = {"age": WHOLE_OR_MISSING, "size": SIZE, "seen": MINUTE, "price": PRICE}
    schema = Schema(
        attributes=tuple(msgspec.structs.replace(attribute, name=name) for name, attribute in described.items())
    )
    frame = pd.DataFrame(
        {
            "age": pd.array([31, None] * 100, dtype="UInt8"),
            "size": pd.Categorical(TEXTS * 100, ordered=True),
            "seen": pd.Series(BERLIN * 100).dt.tz_convert("Europe/Berlin"),
            "price": np.linspace(0, 9, 200, dtype="float32"),
        }
    )
    measured = dpsyn.measure(frame, schema, epsilon=1, recipe="independent")
    assert measured.generate(20).dtypes.astype(str).tolist() == frame.dtypes.astype(str).tolist()
    return measured


def test_rows_from_the_file_of_a_synopsis_have_the_types(synopsis: dpsyn.Synopsis, tmp_path: Path) -> None:
    synopsis.save(tmp_path / "people.dpsyn")
    loaded = dpsyn.Synopsis.load(tmp_path / "people.dpsyn")

    assert loaded.column_types == synopsis.column_types
    pd.testing.assert_frame_equal(loaded.generate(20, seed=1, output_format="pandas"), synopsis.generate(20, seed=1))
    assert str(loaded.generate(20).schema.field("age").type) == "uint8"
    assert loaded.generate(20, output_format="polars").schema["seen"] == pl.Datetime("us", "Europe/Berlin")


def test_replicates_have_the_types(synopsis: dpsyn.Synopsis) -> None:
    assert [str(each.dtypes["age"]) for each in synopsis.replicates(2, 10)] == ["UInt8", "UInt8"]


def test_parquet_files_have_the_types_and_text_files_are_as_before(synopsis: dpsyn.Synopsis, tmp_path: Path) -> None:
    synopsis.write(tmp_path / "rows.parquet", 20, seed=1)
    synopsis.write(tmp_path / "rows.csv", 20, seed=1)
    dpsyn.write_table(synopsis.generate_arrow(20, seed=1), tmp_path / "plain.csv", synthetic=True)

    assert papq.read_schema(tmp_path / "rows.parquet").field("age").type == pa.uint8()
    assert (tmp_path / "rows.csv").read_text() == (tmp_path / "plain.csv").read_text()


@pytest.mark.parametrize(
    "types",
    [
        {"nobody": {"values": "uint8"}},
        {"age": {"values": "uint7"}},
        {"age": {"index": "double"}},
        {"age": {"pandas": "numpy"}},
        {"age": {"categories": ["S3CRET"]}},
    ],
)
def test_a_file_with_wrong_types_is_refused(synopsis: dpsyn.Synopsis, types: Any, tmp_path: Path) -> None:
    path = tmp_path / "people.dpsyn"
    synopsis.save(path)
    change_manifest(path, lambda manifest: manifest | {"column_types": types})

    with pytest.raises(dpsyn.SynopsisError):
        dpsyn.Synopsis.load(path)


def test_a_file_without_types_is_read_as_before(synopsis: dpsyn.Synopsis, tmp_path: Path) -> None:
    path = tmp_path / "people.dpsyn"
    synopsis.save(path)
    change_manifest(path, lambda manifest: {key: manifest[key] for key in manifest if key != "column_types"})

    assert dpsyn.Synopsis.load(path).generate(5).schema.field("age").type == pa.int64()


def change_manifest(path: Path, change: Any) -> None:
    """Write a synopsis file again with another manifest."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
        infos = {info.filename: info for info in file.infolist()}
    members["manifest.json"] = json.dumps(change(json.loads(members["manifest.json"]))).encode()
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(infos[name], content)


if __name__ == "__main__":
    before, _, rest = DOCUMENT.read_text("utf-8").partition(START)
    DOCUMENT.write_text(f"{before}{START}{make_document_table()}{END}{rest.partition(END)[2]}", "utf-8")
