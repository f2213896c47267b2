"""Tables of a real PostgreSQL server are read in batches; nothing is written, and no entry is quoted."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsyn.cli.main import run
from dpsyn.encoding import Codec, Recoding
from dpsyn.engines import open_engine
from dpsyn.errors import SourceError
from dpsyn.schema import Categorical, Integer, Schema
from dpsyn.sources import open_source
from tests.conftest import SEARCHED

pytestmark = pytest.mark.initdb
ROWS = 200_000
SCHEMA = Schema(attributes=(Categorical(name="sex", values=("F", "M")), Integer(name="age", low=0, high=99, bins=10)))


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
            subprocess.run([program("psql"), "-q", url, "-c", table], check=True)
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
    assert run(["synthesize", address, "--query", "people", "--recipe", "independent", "--rows", "9", *release]) == 0
