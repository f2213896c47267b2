"""Every kind of table is read as batches, and a broken one gives one clear message."""

from __future__ import annotations

import gzip
import os
import warnings
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as pafeather
import pyarrow.ipc as paipc
import pyarrow.parquet as papq
import pytest

from dpsyn.encoding import Codec
from dpsyn.errors import SourceError
from dpsyn.schema import Boolean, Categorical, Datetime, Integer, Real, Schema
from dpsyn.sources import BATCH_ROWS, encode_batches, open_source

SCHEMA = Schema(
    attributes=(
        Integer(name="age", low=0, high=120, missing=True),
        Categorical(name="place of birth", values=("Åre", 'so "called"', "a\nb"), missing=True),
        Real(name="weight", low=0, high=200, decimals=1, missing=True),
        Datetime(name="seen", start="2016-01-01", end="2016-12-31", missing=True),
        Boolean(name="ok", missing=True),
    )
)
CODEC = Codec(SCHEMA)
CODES = np.stack([np.random.default_rng(1).integers(0, size, 500) for size in CODEC.fine_sizes], axis=1)
TABLE = CODEC.decode(CODES, np.random.default_rng(2))
CSV_TABLE = TABLE.to_pandas()
SECRET = "Zaphod"


def codes_of(data: Any, **options: Any) -> list[list[int]]:
    """All codes of a table, read as in a release."""
    batches = list(encode_batches(open_source(data, **options), CODEC))
    return [row for batch in batches for row in batch.tolist()]


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    CSV_TABLE.to_csv(path, index=False)
    return path


# ── every kind of table gives the same codes ─────────────────────────────────────────────────────────────────


def test_a_csv_file_is_read(csv: Path) -> None:
    assert codes_of(csv) == CODES.tolist()
    assert codes_of(str(csv)) == CODES.tolist()


@pytest.mark.parametrize("suffix", [".csv.gz", ".csv.bz2", ".csv.zst", ".tsv"])
def test_compressed_and_tabbed_files_are_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"people.v1{suffix}"
    text = CSV_TABLE.to_csv(index=False, sep="\t" if suffix == ".tsv" else ",").encode()
    with pa.output_stream(str(path), compression="detect") as stream:
        stream.write(text)

    assert codes_of(path) == CODES.tolist()


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_another_delimiter_is_recognized(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "people.csv"
    CSV_TABLE.to_csv(path, index=False, sep=separator)

    assert codes_of(path) == CODES.tolist()


def test_a_byte_order_mark_and_windows_line_ends_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    CSV_TABLE.to_csv(path, index=False, lineterminator="\r\n", encoding="utf-8-sig")

    assert codes_of(path) == CODES.tolist()


def test_parquet_files_and_folders_are_read(tmp_path: Path) -> None:
    papq.write_table(TABLE, tmp_path / "people.parquet", row_group_size=100)
    folder = tmp_path / "folder"
    folder.mkdir()
    papq.write_table(TABLE.slice(0, 200), folder / "part-0.parquet")
    papq.write_table(TABLE.slice(200), folder / "part-1.parquet")

    assert codes_of(tmp_path / "people.parquet") == CODES.tolist()
    assert codes_of(folder) == CODES.tolist()


def test_a_partitioned_folder_has_its_folders_as_columns(tmp_path: Path) -> None:
    papq.write_to_dataset(TABLE.append_column("year", pa.array([2000, 2001] * 250)), tmp_path, partition_cols=["year"])

    source = open_source(tmp_path)
    years = [year for batch in source.batches(["year"]) for year in batch.column("year").to_pylist()]

    assert sorted(years) == ["2000"] * 250 + ["2001"] * 250


@pytest.mark.parametrize("write", ["file", "stream", "feather"])
def test_arrow_files_are_read(tmp_path: Path, write: str) -> None:
    path = tmp_path / "people.arrow"
    if write == "feather":
        pafeather.write_feather(TABLE, str(path))
    else:
        opener = paipc.new_file if write == "file" else paipc.new_stream
        with opener(str(path), TABLE.schema) as writer:
            writer.write_table(TABLE, max_chunksize=70)

    assert codes_of(path) == CODES.tolist()


def test_frames_and_arrow_objects_are_read() -> None:
    assert codes_of(TABLE) == CODES.tolist()
    assert codes_of(TABLE.to_pandas()) == CODES.tolist()
    assert codes_of(TABLE.to_pandas(types_mapper=pd.ArrowDtype)) == CODES.tolist()
    assert codes_of(pl.from_arrow(TABLE)) == CODES.tolist()
    assert codes_of(pl.from_arrow(TABLE).lazy()) == CODES.tolist()  # type: ignore[union-attr]
    assert codes_of(TABLE.to_reader()) == CODES.tolist()
    assert codes_of(TABLE.to_batches()[0]) == CODES.tolist()


def test_categories_of_frames_are_read() -> None:
    frame = TABLE.to_pandas().astype({"place of birth": "category"})
    polars = pl.from_arrow(TABLE).with_columns(pl.col("place of birth").cast(pl.Categorical))  # type: ignore[union-attr]

    assert codes_of(frame) == CODES.tolist()
    assert codes_of(polars) == CODES.tolist()


def test_a_frame_of_python_objects_is_read_entry_by_entry() -> None:
    frame = pd.DataFrame({name: pd.Series(TABLE[name].to_pylist(), dtype=object) for name in TABLE.column_names})
    mixed = frame.copy()
    mixed.loc[0, "age"] = "not a number"

    assert codes_of(frame) == CODES.tolist()
    assert codes_of(mixed)[1:] == CODES.tolist()[1:]


def test_all_null_values_of_pandas_are_missing() -> None:
    frame = pd.DataFrame({name: pd.Series([pd.NA, None, float("nan"), pd.NaT], dtype=object) for name in CODEC.names})

    assert codes_of(frame) == [[size - 1 for size in CODEC.fine_sizes]] * 4


def test_duckdb_relations_queries_and_tables_are_read(tmp_path: Path) -> None:
    path = tmp_path / "house.duckdb"
    people = TABLE
    with duckdb.connect(str(path)) as connection:
        connection.register("people_view", people)
        connection.execute("CREATE TABLE people AS SELECT * FROM people_view")

    assert codes_of(path, query="people") == CODES.tolist()
    assert codes_of(path, query="SELECT * FROM people;") == CODES.tolist()
    with duckdb.connect(str(path), read_only=True) as connection:
        assert codes_of(connection.table("people")) == CODES.tolist()


def test_sources_can_be_read_again_and_streams_cannot() -> None:
    table = open_source(TABLE)
    stream = open_source(TABLE.to_reader())

    for source in (table, stream):
        assert sum(batch.num_rows for batch in source.batches(["age"])) == 500

    assert sum(batch.num_rows for batch in table.batches(["age"])) == 500
    assert not stream.rereadable
    with pytest.raises(SourceError, match="only once"):
        list(stream.batches(["age"]))


def test_large_tables_come_in_bounded_batches(tmp_path: Path) -> None:
    rows = 300_000
    table = pa.table({"age": np.arange(rows) % 100})
    papq.write_table(table, tmp_path / "a.parquet")
    table.to_pandas().to_csv(tmp_path / "a.csv", index=False)

    for data in (tmp_path / "a.parquet", table, table.to_pandas()):
        sizes = [batch.num_rows for batch in open_source(data).batches(["age"])]

        assert sum(sizes) == rows
        assert max(sizes) <= 1 << 17


# ── unusual but valid tables ─────────────────────────────────────────────────────────────────────────────────────


def one_column(tmp_path: Path, text: bytes, name: str = "a") -> list[bytes]:
    path = tmp_path / "odd.csv"
    path.write_bytes(text)
    return [entry for batch in open_source(path).batches([name]) for entry in batch.column(name).to_pylist()]


def test_a_file_with_only_a_header_has_no_rows(tmp_path: Path) -> None:
    assert one_column(tmp_path, b"a,b\n") == []
    assert one_column(tmp_path, b"a,b") == []


def test_lines_that_end_with_a_carriage_return_are_read(tmp_path: Path) -> None:
    assert one_column(tmp_path, b"a,b\r1,2\r3,4\r") == [b"1", b"3"]
    assert one_column(tmp_path, b"a,b\r1,2") == [b"1"]


def test_a_comma_inside_a_name_is_not_a_delimiter(tmp_path: Path) -> None:
    assert one_column(tmp_path, b'a;"size, cm";c;d\n1;2;3;4\n', "size, cm") == [b"2"]


def test_a_quote_inside_a_name_does_not_extend_the_header_into_the_rows(tmp_path: Path) -> None:
    text = f'size 5",b\n1,"{SECRET}"\n3,4\n'.encode()

    assert one_column(tmp_path, text, "b") == [SECRET.encode(), b"4"]
    assert open_source(tmp_path / "odd.csv").schema.names == ['size 5"', "b"]


def test_a_quote_that_is_never_closed_in_the_first_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="its first line, or a quote in it, does not end") as caught:
        one_column(tmp_path, f'"a,b\n{SECRET},2\n'.encode())

    assert SECRET not in str(caught.value)


def test_a_nul_byte_in_a_row_is_part_of_its_entry(tmp_path: Path) -> None:
    assert one_column(tmp_path, b"a,b\n1\x002,3\n") == [b"1\x002"]


def test_one_row_without_a_line_end_is_read(tmp_path: Path) -> None:
    assert one_column(tmp_path, b"a,b\n1,2") == [b"1"]


def test_quoted_newlines_delimiters_and_invalid_bytes_stay_in_their_entry(tmp_path: Path) -> None:
    text = b'a,b\n"x\ny",1\n"p,""q""",2\n\xff\xfe,3\n,4\n'

    assert one_column(tmp_path, text) == [b"x\ny", b'p,"q"', b"\xff\xfe", b""]


def test_an_empty_line_in_a_table_of_one_column_is_a_row(tmp_path: Path) -> None:
    assert one_column(tmp_path, b"a\n1\n\n2\n") == [b"1", b"", b"2"]


def test_long_entries_are_read(tmp_path: Path) -> None:
    assert one_column(tmp_path, b"a,b\n" + b"x" * 10_000 + b",1\n") == [b"x" * 10_000]


def test_names_with_spaces_quotes_and_line_breaks_are_read(tmp_path: Path) -> None:
    text = '"a b","c\nd","Ö"\n1,2,3\n'.encode()

    assert one_column(tmp_path, text, "c\nd") == [b"2"]
    assert one_column(tmp_path, text, "Ö") == [b"3"]


# ── broken tables ────────────────────────────────────────────────────────────────────────────────────────────


def broken_files(folder: Path) -> Iterator[tuple[Any, str]]:
    def write(name: str, content: bytes) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    plain = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i) for i in range(50_000))
    yield folder / "none.csv", "there is no file"
    yield write("empty.csv", b""), "is empty"
    yield write("blank.csv", b"\n\n"), "is empty"
    os.mkfifo(folder / "pipe.csv")
    yield folder / "pipe.csv", r"pipe\.csv is neither a file nor a folder"
    (folder / "zero.csv").symlink_to("/dev/zero")
    yield folder / "zero.csv", r"zero\.csv is neither a file nor a folder"
    yield write("cut.csv.gz", gzip.compress(plain)[:-2000]), "cut off"
    yield write("plain.csv.gz", plain), "cut off, or its format may not match its suffix"
    yield write("wide.csv", "a,b\n1,2\n".encode("utf-16")), "is text in UTF-16"
    yield write("latin.csv", "ä,b\n1,2\n".encode("latin-1")), "names of the columns are not in the encoding"
    yield write("text.parquet", SECRET.encode() * 100), "Parquet"
    yield write("text.arrow", SECRET.encode() * 100), "Arrow"
    yield write("text.duckdb", SECRET.encode() * 100), "name a table or give a SELECT"
    yield write("people.docx", b"PK"), "suffix is not that of a known format"
    yield write("people.xlsx", b"PK"), "it may be damaged"
    yield write("people.sav", b"PK"), "it may be damaged"
    yield write("people", b"a,b\n"), "suffix is not that of a known format"
    (folder / "nothing").mkdir()
    yield folder / "nothing", "no Parquet file"
    yield [1, 2], "an object of type list is not a table"
    yield pd.Series([1]), "does not provide its rows as Arrow batches"


def read_all(data: Any) -> None:
    source = open_source(data)
    for _ in source.batches(source.schema.names):
        pass


def test_a_broken_table_gives_one_clear_message_without_its_entries(tmp_path: Path) -> None:
    for data, expected in broken_files(tmp_path):
        with pytest.raises(SourceError, match=expected) as caught:
            read_all(data)

        assert SECRET not in str(caught.value), data
        assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_a_truncated_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    papq.write_table(TABLE, path)
    path.write_bytes(path.read_bytes()[:-100])

    with pytest.raises(SourceError, match="cut off"):
        open_source(path)


def test_parquet_files_with_other_columns_are_refused(tmp_path: Path) -> None:
    papq.write_table(TABLE, tmp_path / "a.parquet")
    papq.write_table(TABLE.drop_columns(["ok"]), tmp_path / "b.parquet")

    with pytest.raises(SourceError, match="column 'ok' is in some files but not in others"):
        open_source(tmp_path)


@pytest.mark.parametrize("pattern", ["", "*.parquet"])
def test_columns_whose_types_differ_from_file_to_file_are_read_as_text(tmp_path: Path, pattern: str) -> None:
    """A library infers the type of each file, and may infer another one where a column is empty."""
    first, second = TABLE.slice(0, 200), TABLE.slice(200)
    for name in ("age", "seen", "ok"):
        second = second.set_column(second.column_names.index(name), name, second[name].cast(pa.string()))
    empty = pa.table({name: pa.nulls(3) for name in TABLE.column_names})
    for number, part in enumerate((first, second, empty)):
        papq.write_table(part, tmp_path / f"{number}.parquet")
    missing = [size - 1 for size in CODEC.fine_sizes]

    assert codes_of(tmp_path / pattern) == [*CODES.tolist(), *[missing] * 3]
    if not pattern:
        assert len(query_rows(tmp_path, "SELECT age FROM data")) == 503


def test_a_file_that_a_pattern_lists_twice_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "2024" / "may").mkdir(parents=True)
    papq.write_table(TABLE, tmp_path / "2024" / "may" / "rows.parquet")

    source = open_source(str(tmp_path / "**" / "**" / "*.parquet"))

    assert sum(batch.num_rows for batch in source.batches(["age"])) == len(TABLE)


@pytest.mark.parametrize("pattern", ["", "*.parquet"])
@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_a_file_under_two_names_is_refused_because_its_rows_would_count_twice(
    tmp_path: Path, pattern: str, link: Any
) -> None:
    papq.write_table(TABLE, tmp_path / "may.parquet")
    link(tmp_path / "latest.parquet", tmp_path / "may.parquet")

    with pytest.raises(SourceError, match=r"latest\.parquet and .*may\.parquet are the same file"):
        open_source(str(tmp_path / pattern))


def test_files_with_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("age,age\n1,2\n")

    with pytest.raises(SourceError, match="several columns named 'age'"):
        open_source(str(tmp_path / "*.csv"))


def test_a_malformed_address_of_a_database_is_refused() -> None:
    with pytest.raises(SourceError, match="the given address cannot be read"):
        open_source("postgresql://steward:secret@[host/census", query="people")


def test_a_query_may_have_several_lines(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.sql("create table people as select 1 as age")

    source = open_source(tmp_path / "people.duckdb", query="select\n*\nfrom\npeople")

    assert sum(batch.num_rows for batch in source.batches(["age"])) == 1


def test_a_query_that_fails_while_it_runs_does_not_quote_entries(tmp_path: Path) -> None:
    path = tmp_path / "house.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT '{SECRET}' AS a")
    source = open_source(path, query="SELECT error(a) AS a FROM t")

    with pytest.raises(SourceError, match="the query failed") as caught:
        list(source.batches(["a"]))

    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT cast(a AS INT) AS a FROM t; SELECT * FROM t",
        "PIVOT (SELECT cast(a AS INT) z, 1 AS a FROM t) ON z",
        "SET VARIABLE v = (SELECT cast(max(a) AS INT) FROM t)",
        "COPY t TO 'stolen.csv'",
        "SELECT cast(a AS INT) AS a, count(*) OVER () AS n FROM t",
    ],
)
def test_no_statement_can_bring_an_entry_into_a_message(tmp_path: Path, query: str) -> None:
    path = tmp_path / "house.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT '{SECRET}' AS a FROM range(5)")

    with pytest.raises(SourceError) as caught:
        list(open_source(path, query=query).batches(["a"]))

    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None or SECRET not in str(caught.value.__context__)


def test_a_lazy_frame_that_fails_does_not_quote_entries() -> None:
    lazy = pl.LazyFrame({"age": ["1", SECRET]}).with_columns(pl.col("age").cast(pl.Int64))

    with pytest.raises(SourceError) as caught:
        open_source(lazy)

    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_stream_that_raises_does_not_quote_entries() -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield TABLE.to_batches()[0]
        raise KeyError(SECRET)

    source = open_source(pa.RecordBatchReader.from_batches(TABLE.schema, broken()))

    with pytest.raises(SourceError) as caught:
        list(source.batches(["age"]))

    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_polars_frame_of_python_objects_is_read_entry_by_entry() -> None:
    frame = pl.DataFrame({"age": [7, None, "8", object()]}, schema={"age": pl.Object})
    codec = Codec(Schema(attributes=(SCHEMA["age"],)))

    codes = [row for batch in encode_batches(open_source(frame), codec) for row in batch[:, 0].tolist()]

    assert codes == [7, 121, 8, 121]


class Hostile:
    """An object whose every method fails."""

    def __str__(self) -> str:
        raise KeyError(SECRET)

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        raise KeyError(SECRET)

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    "entry",
    [
        np.array([1, 2]),
        np.array([]),
        pd.Series([1, 2]),
        f"{SECRET}\ud800",
        10**5000,
        Decimal("sNaN"),
        Hostile(),
        [[]],
        {},
    ],
    ids=lambda entry: type(entry).__name__,
)
def test_any_object_in_a_frame_is_read_and_changes_no_other_entry(entry: Any) -> None:
    entries = np.empty(3, object)
    entries[0], entries[1], entries[2] = "Åre", entry, "a\nb"
    frame = pd.DataFrame({"place of birth": pd.Series(entries, dtype=object)})
    codec = Codec(Schema(attributes=(SCHEMA["place of birth"],)))

    codes = [row for batch in encode_batches(open_source(frame), codec) for row in batch[:, 0].tolist()]

    assert [codes[0], codes[2]] == [0, 2]
    assert codes[1] == 3


class Verbose:
    """An object whose text comes with a warning."""

    def __str__(self) -> str:
        warnings.warn(SECRET, UserWarning, stacklevel=2)
        return "Åre"


@pytest.mark.parametrize("kind", ["objects", "categories", "polars"])
def test_warnings_of_objects_in_a_frame_are_not_shown(kind: str) -> None:
    frame: Any = pd.DataFrame({"place of birth": pd.Series([Verbose(), "a\nb"], dtype=object)})
    if kind == "categories":
        frame = frame.astype("category")
    if kind == "polars":
        frame = pl.DataFrame({"place of birth": [Verbose(), "a\nb"]}, schema={"place of birth": pl.Object})
    codec = Codec(Schema(attributes=(SCHEMA["place of birth"],)))

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        source = open_source(frame)
        codes = [row for batch in encode_batches(source, codec) for row in batch[:, 0].tolist()]

    assert codes == [0, 2]
    assert [str(warning.message) for warning in shown] == []


def test_mixed_categories_and_surrogates_in_text_are_read() -> None:
    codec = Codec(Schema(attributes=(Categorical(name="c", values=("1", "a"), other="z"),)))
    mixed = pd.DataFrame({"c": pd.Categorical([1, "a", None])})
    text = pd.DataFrame({"c": pd.Series(["a", "\ud800"], dtype=pd.StringDtype("python"))})

    for frame, expected in ((mixed, [0, 1, 2]), (text, [1, 2])):
        codes = [row for batch in encode_batches(open_source(frame), codec) for row in batch[:, 0].tolist()]

        assert codes == expected


def test_folder_names_are_text_whatever_they_look_like(tmp_path: Path) -> None:
    for name in ("01234", "99999", "__HIVE_DEFAULT_PARTITION__", "A%20B", "%FF"):
        (tmp_path / f"zip={name}").mkdir()
        papq.write_table(pa.table({"v": [1]}), tmp_path / f"zip={name}" / "x.parquet")

    source = open_source(tmp_path)

    values = {entry for batch in source.batches(["zip"]) for entry in batch.column("zip").to_pylist()}
    assert values == {"01234", "99999", None, "A B", "\ufffd"}


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (b"a\n\n\n\n", 3),
        (b"a\n\n\n\n1\n", 4),
        (b"a,b\r1,2\r3,4\r", 2),
        (b"a,b\r1,2\r3,4\r5,6\n7,8\n", 4),
        (b'"a\rx",b\n1,2\n', 1),
        (b"\n\na\n1\n", 1),
        (b"a,b\n\n\n", 0),
        (b"a;b\r1;2\r3;4,5\n7;8\n", 3),
        (b"\xef\xbb\xbfa,b\n1,2\n", 1),
    ],
)
def test_as_many_rows_are_read_as_there_are(tmp_path: Path, text: bytes, rows: int) -> None:
    path = tmp_path / "odd.csv"
    path.write_bytes(text)

    source = open_source(path)

    assert sum(batch.num_rows for batch in source.batches(source.schema.names)) == rows


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("nothing_here", "the query on .* is not valid: .*nothing_here"),
        ("SELEKT 1", "the query on .* is not valid: .*SELEKT"),
        (None, "name a table or give a SELECT"),
    ],
)
def test_a_query_that_cannot_be_planned_is_explained(tmp_path: Path, query: str | None, expected: str) -> None:
    path = tmp_path / "house.duckdb"
    duckdb.connect(str(path)).close()

    with pytest.raises(SourceError, match=expected):
        open_source(path, query=query)


def test_a_query_needs_a_path() -> None:
    with pytest.raises(SourceError, match="a query needs the path"):
        open_source(TABLE, query="people")


def test_structure_is_checked_before_a_row_is_read(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_bytes(b"age,seen\n1,2\n3\n")

    with pytest.raises(SourceError, match="there is no column 'ok'"):
        list(encode_batches(open_source(path), CODEC))


def query_rows(data: Any, query: str) -> list[dict[str, Any]]:
    source = open_source(data, query=query)
    table = pa.Table.from_batches(list(source.batches(source.schema.names)), source.schema)
    return list(table.to_pylist())


@pytest.fixture
def houses(tmp_path: Path) -> Path:
    """A folder of two Parquet files."""
    folder = tmp_path / "houses"
    folder.mkdir()
    for number in range(2):
        papq.write_table(pa.table({"rooms": [number, number + 1], "street": ["a", "b"]}), folder / f"{number}.parquet")
    return folder


@pytest.mark.parametrize("name", ["data", "houses", "'{}'"])
def test_a_query_selects_from_a_folder_by_its_name_or_path(houses: Path, name: str) -> None:
    rows = query_rows(houses, f"SELECT rooms * 2 AS twice FROM {name.format(houses)} WHERE street = 'b'")

    assert sorted(row["twice"] for row in rows) == [2, 4]


def test_a_query_selects_from_a_pattern(houses: Path) -> None:
    pattern = str(houses / "*.parquet")

    assert query_rows(pattern, "SELECT count(*) AS n FROM data") == [{"n": 4}]
    assert query_rows(pattern, f"SELECT count(*) AS n FROM '{pattern}'") == [{"n": 4}]


def test_entries_of_csv_files_are_text_in_a_query_even_if_they_look_like_numbers(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_bytes(b"age,name\n007,Ann\n,\xff\n")

    rows = query_rows(tmp_path / "people.csv", "SELECT * FROM people")

    assert rows == [{"age": "007", "name": "Ann"}, {"age": "", "name": None}]


def test_the_result_of_a_query_is_read_again_and_in_batches_and_has_the_size_of_its_files(tmp_path: Path) -> None:
    papq.write_table(pa.table({"a": range(5 * BATCH_ROWS)}), tmp_path / "t.parquet")
    source = open_source(tmp_path / "t.parquet", query="SELECT a FROM t WHERE a >= 0")

    readings = [[batch.num_rows for batch in source.batches(["a"])] for _ in range(2)]

    assert source.rereadable
    assert source.byte_size == (tmp_path / "t.parquet").stat().st_size
    assert [sum(sizes) for sizes in readings] == [5 * BATCH_ROWS] * 2
    assert max(readings[0]) <= BATCH_ROWS


@pytest.mark.parametrize(
    "query", ["SELECT * FROM '{}'", "SELECT * FROM read_csv('{}')", "SELECT * FROM read_text('{}')"]
)
def test_a_query_on_files_reaches_no_other_file(houses: Path, tmp_path: Path, query: str) -> None:
    (tmp_path / "other.csv").write_text(f"a\n{SECRET}\n")

    with pytest.raises(SourceError, match=r"the query on .* is not valid") as caught:
        query_rows(houses, query.format(tmp_path / "other.csv"))

    assert SECRET not in str(caught.value)


def test_names_in_a_query_are_never_python_variables(houses: Path) -> None:
    with pytest.raises(SourceError, match=r"the query on .* is not valid: .*source"):
        query_rows(houses, "SELECT * FROM source")


def test_a_broken_file_below_a_query_is_named_and_nothing_is_quoted(houses: Path) -> None:
    whole = (houses / "1.parquet").read_bytes()
    (houses / "1.parquet").write_bytes(whole[:4] + b"\xff" * (len(whole) // 3) + whole[4 + len(whole) // 3 :])

    with pytest.raises(SourceError, match=r"1\.parquet cannot be read") as caught:
        query_rows(houses, "SELECT street FROM data")

    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_a_query_on_files_that_fails_does_not_quote_entries(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(f"age\n{SECRET}\n")

    with pytest.raises(SourceError, match="the query failed") as caught:
        query_rows(tmp_path / "people.csv", "SELECT max(cast(age AS INT)) AS age FROM people")

    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


def partitioned(folder: Path) -> Path:
    """A file in a folder whose name contains a value of its rows."""
    (folder / "people" / f"illness={SECRET}").mkdir(parents=True)
    file = folder / "people" / f"illness={SECRET}" / "part-0.parquet"
    papq.write_table(TABLE, file)
    return file


def test_a_broken_file_of_a_partitioned_folder_is_named_without_its_value(tmp_path: Path) -> None:
    file = partitioned(tmp_path)
    whole = file.read_bytes()
    for damage in (b"nothing", whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :]):
        file.write_bytes(damage)

        for data in (tmp_path / "people", tmp_path / "people" / "*" / "*.parquet", file):
            with pytest.raises(SourceError, match=r"illness=…/part-0\.parquet") as caught:
                read_all(data)

            assert SECRET not in str(caught.value)


def test_a_file_with_two_names_is_named_without_its_value(tmp_path: Path) -> None:
    file = partitioned(tmp_path)
    file.with_name("again.parquet").hardlink_to(file)

    with pytest.raises(SourceError, match="the same file") as caught:
        open_source(tmp_path / "people")

    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("stray", ["_SUCCESS", ".part-0.parquet.crc", "_metadata.txt", ".hidden"])
def test_files_that_begin_with_a_dot_or_an_underscore_are_ignored(houses: Path, stray: str) -> None:
    (houses / stray).write_bytes(b"no rows")

    assert query_rows(houses, "SELECT count(*) AS n FROM data") == [{"n": 4}]


@pytest.mark.parametrize("stray", ["notes.txt", "0.crc"])
def test_any_other_file_in_a_folder_is_named(houses: Path, stray: str) -> None:
    (houses / stray).write_bytes(b"no rows")

    with pytest.raises(SourceError, match=f"{stray} cannot be read.*not be Parquet"):
        open_source(houses)
