"""Spark counts what the other engines count, wherever the rows are, even if workers die; only sums reach the driver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq
import pytest

from dpsyn.encoding import Codec, Recoding, column_codec_for
from dpsyn.engines import open_engine, open_table, spark, spark_tasks
from dpsyn.engines.contribution_bounding import RunningRanks
from dpsyn.engines.counting_queries import ColumnCodesQuery, MarginalsQuery, TextsQuery
from dpsyn.errors import InternalError, SourceError
from dpsyn.schema import Categorical, Identifier, Integer, Open, Schema, UnitDeclaration
from dpsyn.sources import open_source
from tests.engines.engines import KEY, in_memory, kill_a_worker_once, spark_session

ROWS = 30_000
PEOPLE = Schema(
    attributes=(
        Identifier(name="who"),
        Categorical(name="sex", values=("F", "M")),
        Integer(name="age", low=0, high=99),
        Open(name="town"),
    ),
    privacy_unit=UnitDeclaration(id="who", max_rows=2),
)
PAIRS = [(0,), (1,), (0, 1), ()]


def people(rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "who": rng.integers(0, rows // 4, rows),
            "sex": rng.choice(["F", "M", "?"], rows),
            "age": rng.integers(0, 120, rows),
            "town": rng.choice(["Ur", " Ur", "Uruk", ""], rows),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of three files with several row groups."""
    folder = tmp_path_factory.mktemp("people")
    for part in range(3):
        start, stop = part * ROWS // 3, (part + 1) * ROWS // 3
        papq.write_table(people()[start:stop], folder / f"{part}.parquet", row_group_size=3_000)
    return folder


def without_unit() -> Schema:
    return Schema(attributes=PEOPLE.attributes)


def count_pairs(engine: Any, schema: Schema) -> list[list[int]]:
    return [table.ravel().tolist() for table in engine.count(PAIRS, Recoding.fine(Codec(schema)))]


def open_spark_engine(data: Any, schema: Schema) -> Any:
    return open_engine(open_table(data, kind="spark"), schema, kind="spark", key=KEY)


# ── what workers do, without Spark ───────────────────────────────────────────────────────────────────────────


def reader_of(table: pa.Table, schema: Schema) -> spark_tasks.PartitionReader:
    return spark_tasks.PartitionReader("the test's table", table.schema, None, schema, KEY, ("town",))


@pytest.mark.parametrize(
    "query",
    [
        MarginalsQuery.of(PAIRS, Recoding.fine(Codec(without_unit()))),
        MarginalsQuery.of([()], Recoding.fine(Codec(without_unit()))),
        TextsQuery(PEOPLE["town"]),
        ColumnCodesQuery("age", column_codec_for(Integer(name="age", low=0, high=99)), 100),
    ],
    ids=["marginals", "rows", "texts", "readings"],
)
def test_workers_count_the_rows_that_count(query: Any) -> None:
    table = people(3_000)
    keyed = pa.Table.from_batches(spark_tasks.key_partition(reader_of(table, PEOPLE), query, table.to_batches(700)))
    ordered = keyed.sort_by([(name, "ascending") for name in spark_tasks.ROW_KEY_COLUMNS])

    sums = list(spark_tasks.count_sorted(query, 2, "the test's table", ordered.to_batches(300)))

    answer = query.answer((sums[0].column(spark_tasks.KEY_COLUMN), sums[0].column(spark_tasks.COUNT_COLUMN).to_numpy()))
    engine = in_memory(table, PEOPLE)
    if isinstance(query, TextsQuery):
        assert answer == engine.count_texts("town")
    elif isinstance(query, ColumnCodesQuery):
        assert answer.tolist() == engine.count_column("age", query.column, 100).tolist()
    else:
        cliques = PAIRS if len(query.cliques) > 1 else [()]
        expected = engine.count(cliques, Recoding.fine(Codec(PEOPLE)))
        assert [table.tolist() for table in answer] == [table.tolist() for table in expected]
    assert keyed.num_rows < len(table)  # at most two rows of each unit in a batch


def test_ranks_continue_from_batch_to_batch() -> None:
    keys = np.array([[1, 1, 1, 1, 2, 2, 7], [0, 0, 0, 0, 0, 0, 0], [3, 4, 5, 6, 1, 1, 0]], np.uint64)
    ranks = RunningRanks()

    batches = [
        ranks.next_ranks(keys[:, first:stop]).tolist() for first, stop in [(0, 2), (2, 3), (3, 3), (3, 5), (5, 7)]
    ]

    assert batches == [[0, 1], [2], [], [3, 0], [1, 0]]


def test_the_error_of_a_worker_quotes_no_entry() -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield from people(10).to_batches()
        raise ValueError("cell 'secret' is wrong")

    query = TextsQuery(PEOPLE["town"])

    with pytest.raises(SourceError) as caught:
        list(spark_tasks.count_partition(reader_of(people(10), without_unit()), query, broken()))

    assert "secret" not in f"{caught.value}{caught.value.__context__}{caught.value.__cause__}"


def test_only_messages_with_the_mark_of_the_run_are_taken_from_the_report_of_spark() -> None:
    def fail(report: str) -> Any:
        raise RuntimeError(report)

    def broken() -> Iterator[pa.RecordBatch]:
        yield from ()
        raise SourceError("0.parquet cannot be read")

    with pytest.raises(SourceError) as marked:
        list(spark_tasks.mark_errors("3f2a", broken()))
    ours = f"Job aborted\ndpsyn.errors.SourceError: {marked.value}\n\tat org.apache"
    quoted = "cannot cast 'dpsyn.errors.SourceError: secret' to INT"

    with pytest.raises(SourceError, match=r"^0\.parquet cannot be read$"):
        spark._attempt(lambda: fail(ours), "people", "it failed", "3f2a")
    for report, mark in ((quoted, "3f2a"), (ours, "77d1"), (ours, None)):
        with pytest.raises(SourceError, match=r"^people cannot be read; it failed$"):
            spark._attempt(lambda report=report: fail(report), "people", "it failed", mark)  # type: ignore[misc]


def test_a_clique_that_does_not_exist_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(InternalError, match="not a clique of 2"):
        MarginalsQuery.of([(5,)], Recoding.fine(Codec(without_unit())))


# ── with Spark ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.java
@pytest.mark.parametrize("schema", [PEOPLE, without_unit()], ids=["unit", "rows"])
def test_counts_from_files_and_frames_are_those_of_memory(folder: Path, schema: Schema) -> None:
    session = spark_session()
    frame = session.read.parquet(str(folder))
    held = in_memory(people(), schema)

    by_files, by_frame = open_spark_engine(str(folder / "*.parquet"), schema), open_spark_engine(frame, schema)

    assert count_pairs(by_files, schema) == count_pairs(by_frame, schema) == count_pairs(held, schema)
    assert by_frame.count_texts("town") == held.count_texts("town")


@pytest.mark.java
def test_tables_by_name_and_files_by_address_are_counted(folder: Path) -> None:
    session, schema = spark_session(), without_unit()
    session.read.parquet(str(folder)).createOrReplaceTempView("persons")
    expected = count_pairs(in_memory(people(), schema), schema)

    counts = [count_pairs(open_spark_engine(data, schema), schema) for data in ("persons", folder.as_uri())]

    assert counts == [expected, expected]


@pytest.mark.java
def test_only_sums_reach_the_driver() -> None:
    """The session limits results to four megabytes, so collecting the rows fails but collecting their counts works."""
    rng = np.random.default_rng(1)
    table = pa.table({name: rng.integers(0, 2**62, 200_000) % 1_000_003 for name in "abcd"})
    schema = Schema(attributes=tuple(Integer(name=name, low=0, high=2_000_000, bins=10) for name in "abcd"))
    frame = spark_session().createDataFrame(table)
    recoding = Recoding.coarse(Codec(schema))

    (counts,) = open_spark_engine(frame, schema).count([(0, 1)], recoding)

    assert counts.sum() == len(table)
    with pytest.raises(Exception, match="maxResultSize"):
        frame.toArrow()


@pytest.mark.java
@pytest.mark.parametrize("task", ["count_partition", "count_sorted"])
def test_a_killed_worker_changes_no_count(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    spark_session()
    schema = without_unit() if task == "count_partition" else PEOPLE
    expected = count_pairs(in_memory(people(), schema), schema)
    kill_a_worker_once(monkeypatch, task, tmp_path / "killed")

    counts = count_pairs(open_spark_engine(str(folder), schema), schema)

    assert (tmp_path / "killed").exists()
    assert counts == expected


@pytest.mark.java
def test_a_broken_file_is_named_and_nothing_is_quoted(folder: Path, tmp_path: Path) -> None:
    spark_session()
    for name in ("0.parquet", "1.parquet"):
        content = bytearray((folder / name).read_bytes())
        if name == "1.parquet":
            content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)  # the rows; the footer is as it was
        (tmp_path / name).write_bytes(content)
    schema = without_unit()
    engine = open_spark_engine(str(tmp_path), schema)

    with pytest.raises(SourceError, match=r"1\.parquet cannot be read.*cut off") as caught:
        count_pairs(engine, schema)

    assert caught.value.__context__ is None


@pytest.mark.java
def test_files_with_different_columns_are_refused_at_an_address_too(tmp_path: Path) -> None:
    spark_session()
    papq.write_table(people(9), tmp_path / "0.parquet")
    papq.write_table(people(9).drop_columns("age"), tmp_path / "1.parquet")

    for data in (str(tmp_path), tmp_path.as_uri()):
        with pytest.raises(SourceError, match="column 'age'"):
            open_spark_engine(data, without_unit())


@pytest.mark.java
def test_what_spark_cannot_count_is_refused() -> None:
    spark_session()

    with pytest.raises(SourceError, match="cannot be counted by Spark"):
        open_engine(open_source(people(9)), without_unit(), kind="spark", key=KEY)
    with pytest.raises(SourceError, match="no such table"):
        open_table("nowhere.persons", kind="spark")
    with pytest.raises(SourceError, match="no file or folder nowhere"):
        open_table("nowhere.parquet", kind="spark")
    with pytest.raises(SourceError, match="finds no Parquet"):
        open_table("file:///nowhere", kind="spark")


@pytest.mark.java
def test_a_spark_frame_is_counted_by_spark_only() -> None:
    frame = spark_session().createDataFrame([("F", 3, "Ur", 1)], "sex string, age int, town string, who int")
    source = open_table(frame)

    with pytest.raises(SourceError, match="counted by Spark"):
        open_engine(source, without_unit(), kind="memory", key=KEY)
    with pytest.raises(SourceError, match="takes no query"):
        open_table(frame, query="x")
    assert type(open_engine(source, without_unit(), key=KEY)).__name__ == "SparkEngine"
