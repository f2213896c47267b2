"""Spark counts what other engines count, wherever rows lie and whatever happens to workers; only sums come back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq
import pytest

from dpsyn.encoding import Codec, Recoding, column_codec_for
from dpsyn.engines import open_engine, open_table, tasks
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
    """Three files of several groups of rows."""
    found = tmp_path_factory.mktemp("people")
    for part in range(3):
        start, stop = part * ROWS // 3, (part + 1) * ROWS // 3
        papq.write_table(people()[start:stop], found / f"{part}.parquet", row_group_size=3_000)
    return found


def without_unit() -> Schema:
    return Schema(attributes=PEOPLE.attributes)


def counted(engine: Any, schema: Schema) -> list[list[int]]:
    return [table.ravel().tolist() for table in engine.count(PAIRS, Recoding.fine(Codec(schema)))]


def opened(data: Any, schema: Schema) -> Any:
    return open_engine(open_table(data, kind="spark"), schema, kind="spark", key=KEY)


# ── what workers do, without Spark ───────────────────────────────────────────────────────────────────────────


def reader_of(table: pa.Table, schema: Schema) -> tasks.PartitionReader:
    return tasks.PartitionReader("the test's table", table.schema, None, schema, KEY, ("town",))


@pytest.mark.parametrize(
    "question",
    [
        MarginalsQuery.of(PAIRS, Recoding.fine(Codec(without_unit()))),
        MarginalsQuery.of([()], Recoding.fine(Codec(without_unit()))),
        TextsQuery(PEOPLE["town"]),
        ColumnCodesQuery("age", column_codec_for(Integer(name="age", low=0, high=99)), 100),
    ],
    ids=["marginals", "rows", "texts", "readings"],
)
def test_rows_that_are_keyed_ordered_and_counted_are_those_that_count(question: Any) -> None:
    table = people(3_000)
    keyed = pa.Table.from_batches(tasks.key_partition(reader_of(table, PEOPLE), question, table.to_batches(700)))
    ordered = keyed.sort_by([(name, "ascending") for name in tasks.ROW_KEY_COLUMNS])

    sums = list(tasks.count_sorted(question, 2, "the test's table", ordered.to_batches(300)))

    found = question.answer((sums[0].column(tasks.KEY_COLUMN), sums[0].column(tasks.COUNT_COLUMN).to_numpy()))
    engine = in_memory(table, PEOPLE)
    if isinstance(question, TextsQuery):
        assert found == engine.count_texts("town")
    elif isinstance(question, ColumnCodesQuery):
        assert found.tolist() == engine.count_column("age", question.column, 100).tolist()
    else:
        cliques = PAIRS if len(question.cliques) > 1 else [()]
        expected = engine.count(cliques, Recoding.fine(Codec(PEOPLE)))
        assert [part.tolist() for part in found] == [part.tolist() for part in expected]
    assert keyed.num_rows < len(table)  # no batch hands on more than two rows of a person


def test_ranks_run_on_from_batch_to_batch() -> None:
    keys = np.array([[1, 1, 1, 1, 2, 2, 7], [0, 0, 0, 0, 0, 0, 0], [3, 4, 5, 6, 1, 1, 0]], np.uint64)
    ranks = RunningRanks()

    found = [ranks.next_ranks(keys[:, first:stop]).tolist() for first, stop in [(0, 2), (2, 3), (3, 3), (3, 5), (5, 7)]]

    assert found == [[0, 1], [2], [], [3, 0], [1, 0]]


def test_a_worker_tells_its_errors_in_our_words() -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield from people(10).to_batches()
        raise ValueError("cell 'secret' is wrong")

    question = TextsQuery(PEOPLE["town"])

    with pytest.raises(SourceError) as caught:
        list(tasks.count_partition(reader_of(people(10), without_unit()), question, broken()))

    assert "secret" not in f"{caught.value}{caught.value.__context__}{caught.value.__cause__}"


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

    by_files, by_frame = opened(str(folder / "*.parquet"), schema), opened(frame, schema)

    assert counted(by_files, schema) == counted(by_frame, schema) == counted(held, schema)
    assert by_frame.count_texts("town") == held.count_texts("town")


@pytest.mark.java
def test_tables_by_name_and_files_by_address_are_counted(folder: Path) -> None:
    session, schema = spark_session(), without_unit()
    session.read.parquet(str(folder)).createOrReplaceTempView("persons")
    expected = counted(in_memory(people(), schema), schema)

    found = [counted(opened(data, schema), schema) for data in ("persons", folder.as_uri())]

    assert found == [expected, expected]


@pytest.mark.java
def test_only_sums_reach_the_driver() -> None:
    """The session lets four megabytes of results through; so it fails on the rows, and not on their counts."""
    rng = np.random.default_rng(1)
    table = pa.table({name: rng.integers(0, 2**62, 200_000) % 1_000_003 for name in "abcd"})
    schema = Schema(attributes=tuple(Integer(name=name, low=0, high=2_000_000, bins=10) for name in "abcd"))
    frame = spark_session().createDataFrame(table)
    recoding = Recoding.coarse(Codec(schema))

    (found,) = opened(frame, schema).count([(0, 1)], recoding)

    assert found.sum() == len(table)
    with pytest.raises(Exception, match="maxResultSize"):
        frame.toArrow()


@pytest.mark.java
@pytest.mark.parametrize("task", ["count_partition", "count_sorted"])
def test_a_killed_worker_changes_no_count(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    spark_session()
    schema = without_unit() if task == "count_partition" else PEOPLE
    expected = counted(in_memory(people(), schema), schema)
    kill_a_worker_once(monkeypatch, task, tmp_path / "killed")

    found = counted(opened(str(folder), schema), schema)

    assert (tmp_path / "killed").exists()
    assert found == expected


@pytest.mark.java
def test_a_broken_file_is_named_in_our_words(folder: Path, tmp_path: Path) -> None:
    spark_session()
    for name in ("0.parquet", "1.parquet"):
        content = bytearray((folder / name).read_bytes())
        if name == "1.parquet":
            content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)  # the rows; the footer is as it was
        (tmp_path / name).write_bytes(content)
    schema = without_unit()
    engine = opened(str(tmp_path), schema)

    with pytest.raises(SourceError, match=r"1\.parquet cannot be read.*cut off") as caught:
        counted(engine, schema)

    assert caught.value.__context__ is None


@pytest.mark.java
def test_files_that_do_not_fit_each_other_are_refused_at_an_address_too(tmp_path: Path) -> None:
    spark_session()
    papq.write_table(people(9), tmp_path / "0.parquet")
    papq.write_table(people(9).drop_columns("age"), tmp_path / "1.parquet")

    for data in (str(tmp_path), tmp_path.as_uri()):
        with pytest.raises(SourceError, match="column 'age'"):
            opened(data, without_unit())


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
def test_a_frame_is_spark_s_alone() -> None:
    frame = spark_session().createDataFrame([("F", 3, "Ur", 1)], "sex string, age int, town string, who int")
    source = open_table(frame)

    with pytest.raises(SourceError, match="counted by Spark"):
        open_engine(source, without_unit(), kind="memory", key=KEY)
    with pytest.raises(SourceError, match="takes no query"):
        open_table(frame, query="x")
    assert type(open_engine(source, without_unit(), key=KEY)).__name__ == "SparkEngine"
