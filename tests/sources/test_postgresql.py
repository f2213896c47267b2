"""Tables of a real PostgreSQL server are read in batches; nothing is written, and no entry is quoted."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from dpsyn.cli.main import run
from dpsyn.encoding import Codec, Recoding
from dpsyn.engines import open_engine
from dpsyn.errors import SourceError
from dpsyn.schema import Categorical, Integer, Schema
from dpsyn.sources import open_source, query_answer, source_identity
from dpsyn.sources.postgresql import _ServerCatalog
from tests.conftest import SEARCHED

pytestmark = pytest.mark.initdb
ROWS = 200_000
SCHEMA = Schema(attributes=(Categorical(name="sex", values=("F", "M")), Integer(name="age", low=0, high=99, bins=10)))


MORE = (
    """create table odd ("Who" text, sex char(5), pay numeric, seen timestamptz, tags text[], born date, at timestamp,
        n bigint, ok boolean, x double precision)""",
    """insert into odd values ('a', 'F', 100.4, now(), '{}', '2000-01-01', '2000-01-01 12:00', 1, true, 1.5),
        ('b', 'M', 'NaN', now(), '{x}', 'infinity', null, 9223372036854775807, false, 'infinity'),
        ('c', null, 1e400, null, null, '5874897-12-31', null, -9223372036854775808, null, 'NaN')""",
    "create view adults as select age, lower(note) as note from people where age > 17 order by age",
    "create view of_view (years) as select age from adults where age < 20",
    "create view counted as select count(*) as age from people",
    "create view on_counted as select age from counted",
    "create view joined as select p.age from people p join odd o on o.n = p.age",
    "create view hidden as select age from people where age > (select 3)",
    "create materialized view stored as select age from people",
    "create table guarded (age int)",
    "alter table guarded enable row level security",
    "alter table guarded force row level security",
    "create policy some on guarded using (age > 17)",
    "create table parted (age int) partition by range (age)",
    "create table parted_1 partition of parted for values from (0) to (50)",
    "insert into parted values (20)",
    "create table lasting (age int, stay interval, stays interval[])",
    """insert into lasting values (1, '1 day', '{1 day}'), (2, '178000000 years', '{178000000 years}'),
        (3, '2540400000 hours', '{2540400000 hours}')""",
    "create table parent (age int)",
    "create table child (more int) inherits (parent)",
    "insert into parent values (1)",
    "insert into child values (2, 3)",
    "create foreign data wrapper nothing",
    "create server far foreign data wrapper nothing",
    "create table adopting (age int)",
    "create foreign table foreign_child () inherits (adopting) server far",
    "create schema other",
    "create table other.visitors (age int)",
    "create role guest login",
    "grant select on guarded to guest",
)


def program(name: str) -> str:
    path = shutil.which(name, path=SEARCHED)
    assert path is not None
    return path


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a new server on a free local port, with a table of persons."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        user = "postgres" if os.geteuid() == 0 else None  # the server refuses to run as root
        if user:
            shutil.chown(folder, user)
        data, log = str(Path(folder) / "data"), str(Path(folder) / "log")

        def server(name: str, *arguments: str) -> None:
            subprocess.run([program(name), "-D", data, *arguments], check=True, stdout=subprocess.DEVNULL, user=user)

        server("initdb", "-U", "steward", "-A", "trust", "--no-sync")
        free.close()
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        server("pg_ctl", "-w", "-l", log, "-o", options, "start")
        try:
            url = f"postgresql://steward:secret-word@127.0.0.1:{port}/postgres"
            table = f"""create table people as select case when i % 3 = 0 then 'F' else 'M' end as sex, i % 90 as age,
                (i % 7)::numeric(5, 2) as pay, 'cell-' || i as note from generate_series(1, {ROWS}) as i"""
            subprocess.run([program("psql"), "-q", url, "-c", table, *(f"-c{more}" for more in MORE)], check=True)
            yield url
        finally:
            server("pg_ctl", "-m", "immediate", "stop")


def test_a_table_or_query_is_counted_in_memory_and_as_a_stream(address: str) -> None:
    recoding = Recoding.fine(Codec(SCHEMA))

    for query in ("people", "public.people", "SELECT age, sex FROM people;"):
        source = open_source(address, query=query)
        for kind in ("memory", "stream"):
            engine = open_engine(source, SCHEMA, kind=kind, key=bytes(16))
            assert engine.count([(0,)], recoding)[0].tolist() == [66_666, 133_334]


def rows_of(address: str, query: str) -> list[tuple[object, ...]]:
    source = open_source(address, query=query, protect="base rows")
    return [tuple(row.values()) for batch in source.batches(source.schema.names) for row in batch.to_pylist()]


def test_row_wise_queries_and_views_are_accepted_and_show_the_base_table(address: str) -> None:
    for query, text, rows in [
        ("adults", 'WHERE ("age" > 17)', sum(i % 90 > 17 for i in range(1, ROWS + 1))),
        ("of_view", '"years"', sum(i % 90 in (18, 19) for i in range(1, ROWS + 1))),
        ("parted", 'SELECT * FROM "public"."parted"', 1),
        ("other.visitors", 'SELECT * FROM "other"."visitors"', 0),
        ("SELECT a.age AS x FROM adults AS a WHERE a.note LIKE 'cell-1\\_%'", "ESCAPE '\\'", 0),
        ("SELECT AGE, sex FROM People WHERE sex = 'F' AND age IN (18, 19)", "IN (18, 19)", None),
        ('SELECT "Who" AS w FROM odd', '"Who" AS "w"', 3),
    ]:
        source = open_source(address, query=query, protect="base rows")
        answer = query_answer(source)
        assert answer is not None
        assert text in answer.text
        assert "secret-word" not in f"{answer}{source_identity(source)}"
        count = sum(batch.num_rows for batch in source.batches(source.schema.names))
        assert rows is None or count == rows


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("counted", 'in the view "public"."counted", has the function count'),
        ("on_counted", 'in the view "public"."counted", has the function count'),
        ("joined", "a join"),
        ("hidden", "a subquery"),
        ("stored", "not a table whose rows are stored"),
        ("pg_catalog.pg_class", "not a table whose rows are stored"),
        ("SELECT count(*) AS n FROM people", "the function count"),
        ("SELECT age FROM people LIMIT 1", "LIMIT"),
        ("SELECT age FROM ONLY people", "ONLY"),
        ("SELECT ctid FROM people", "no column 'ctid'"),
        ('SELECT "AGE" FROM people', "no column 'AGE'"),
        ("SELECT who FROM odd", "no column 'who'"),
        ("SELECT age FROM people TABLESAMPLE SYSTEM (1)", "a sample"),
        ("SELECT generate_series(1, age) AS a FROM people", "the function"),
        ("SELECT pg_read_file('/etc/passwd') AS a FROM people", "the function"),
        ("SELECT seen FROM odd WHERE seen > '2020-01-01'", "can only be passed on"),
        ("SELECT tags FROM odd WHERE tags = 'x'", "can only be passed on"),
        ("SELECT note FROM people WHERE note ~ 'x'", "the function|RegexpLike"),
        ("WITH d AS (DELETE FROM people RETURNING age) SELECT age FROM d", "Delete|DELETE|delete"),
    ],
)
def test_other_queries_are_refused(address: str, query: str, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        open_source(address, query=query, protect="base rows")


def test_a_table_with_row_security_is_refused_for_a_user_to_whom_it_applies(address: str) -> None:
    guest = address.replace("steward:secret-word", "guest:x")

    with pytest.raises(SourceError, match="row security policies"):
        open_source(guest, query="guarded", protect="base rows")


def test_types_mean_in_a_query_what_they_mean_in_postgresql(address: str) -> None:
    def who(condition: str) -> list[object]:
        return [row[0] for row in rows_of(address, f'SELECT "Who" FROM odd WHERE {condition}')]

    assert who("pay > 100") == ["a", "b", "c"]  # NaN is the largest number
    assert who("pay < 100.45") == ["a"]
    assert who("sex = 'F'") == ["a"]  # char(5) is padded
    assert who("sex || '.' = 'M.'") == ["b"]
    assert "c" in who("born > '2000-01-01'")
    assert who("at = TIMESTAMP '2000-01-01 12:00'") == ["a"]
    assert who("ok OR n < 0") == ["a", "c"]
    assert who("x > 1e300") == ["b", "c"]
    assert who("n / 2 = 0") == ["a"]  # whole numbers are divided without a rest
    assert who("pay / 2 > 50.1 AND pay < 200") == ["a"]


def test_no_value_of_a_server_makes_a_row_wise_query_fail(address: str) -> None:
    for expression in (
        *("n + 1", "n * n", "-n", "abs(n)", "n % 0", "pay * pay", "CAST(pay AS int)", "CAST(x AS bigint)", "x * 1e308"),
        *('CAST("Who" AS date)', "extract(year FROM born)", "date_trunc('month', born)", "CAST(born AS timestamp)"),
    ):
        assert len(rows_of(address, f"SELECT {expression} AS a FROM odd WHERE n + 1 > 0 OR true")) == 3
    assert len(rows_of(address, "people")) == ROWS


def test_rows_come_in_batches(address: str) -> None:
    batches = list(open_source(address, query="people").batches(["note", "age"]))

    assert len(batches) > 1
    assert sum(batch.num_rows for batch in batches) == ROWS
    assert batches[0].schema.names == ["note", "age"]


def test_a_query_may_end_with_a_comment(address: str) -> None:
    source = open_source(address, query="select age\nfrom people -- all of them")

    assert sum(batch.num_rows for batch in source.batches(["age"])) == ROWS


def test_errors_of_the_query_are_shown_without_entries_or_passwords(address: str) -> None:
    with pytest.raises(SourceError, match='column "income" does not exist') as planned:
        open_source(address, query="SELECT income FROM people")
    with pytest.raises(SourceError, match="the query failed") as ran:
        list(open_source(address, query="SELECT max(note::int) AS age FROM people").batches(["age"]))

    for caught in (planned, ran):
        assert "secret-word" not in str(caught.value)
        assert "cell-" not in f"{caught.value}{caught.value.__context__}"


@pytest.mark.parametrize(
    "query",
    ["DROP TABLE people", "SELECT 1; DROP TABLE people", "DELETE FROM people RETURNING age", "", "nothing_here"],
)
def test_only_a_select_is_run(address: str, query: str) -> None:
    with pytest.raises(SourceError):
        list(open_source(address, query=query).batches(["age"]))

    assert sum(batch.num_rows for batch in open_source(address, query="people").batches(["age"])) == ROWS


def test_mistakes_on_the_command_line_are_reported_before_anything_is_charged(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(
        "dpsyn_schema: 1\ndataset: people\nattributes:\n  sex: {kind: categorical, values: [F, M]}\n", encoding="utf-8"
    )
    release = ["-s", "s.yaml", "--epsilon", "1", "-o", "rows.csv", "--ledger", "l.db"]
    wrong = address.replace("127.0.0.1:", "127.0.0.1:1")

    codes = [
        run(["synthesize", address, *release]),
        run(["synthesize", address, "--query", "nowhere", *release]),
        run(["synthesize", wrong[: wrong.index(":1") + 2], "--query", "people", *release]),
    ]

    shown = capsys.readouterr().err
    assert codes == [2, 2, 2]
    assert "name a table or give a SELECT" in shown
    assert "there is no table or view 'nowhere'" in shown
    assert "secret-word" not in shown
    assert not Path("l.db").exists()
    assert run(["ledger", "new", "l.db"]) == 0
    assert run(["synthesize", address, "--query", "people", "--recipe", "independent", "--rows", "9", *release]) == 0


@pytest.mark.parametrize("protect", ["base rows", "query rows"])
def test_an_interval_of_any_length_is_read(address: str, protect: Any) -> None:
    source = open_source(address, query="SELECT age, stay, stays FROM lasting", protect=protect)

    rows = [row for batch in source.batches(["age", "stay", "stays"]) for row in batch.to_pylist()]

    assert [row["age"] for row in rows] == [1, 2, 3]
    assert [row["stay"] for row in rows] == ["1 day", "178000000 years", "2540400000:00:00"]
    assert rows[0]["stays"] == '{"1 day"}'


def test_a_table_is_read_with_those_that_inherit_from_it_if_they_are_stored_here(address: str) -> None:
    source = open_source(address, query="SELECT age FROM parent WHERE age > 0", protect="base rows")

    assert [row["age"] for batch in source.batches(["age"]) for row in batch.to_pylist()] == [1, 2]
    with pytest.raises(SourceError, match='"adopting" has a partition, or a table that inherits from it, whose rows'):
        open_source(address, query="SELECT age FROM adopting", protect="base rows")


def test_a_column_that_is_computed_when_it_is_read_is_refused() -> None:
    """Servers have virtual generated columns since version 18, so the answers of the catalog are made up."""

    class Cursor:
        answers: ClassVar[list[list[Any]]] = [[("public", "t", "r", False, None)], [("a", "int4")], [(True, True)]]

        def execute(self, *_: object, **__: object) -> None:
            pass

        def fetchall(self) -> list[Any]:
            return self.answers.pop(0)

    with pytest.raises(SourceError, match='"t" has a column that is computed when it is read, which may fail'):
        _ServerCatalog(Cursor(), "the query").find(("t",), "")
