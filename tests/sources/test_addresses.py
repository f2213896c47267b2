"""No part of a password reaches a message, however an address is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsyn.cli.main import run
from dpsyn.errors import SourceError
from dpsyn.sources import is_postgres_address, open_source, redact_address
from dpsyn.sources.addresses import normalize_postgres_address

PASSWORDS = (
    "S3cretPw",
    "S3c/retPw",
    "S3c@retPw",
    "S3c?retPw",
    "S3c#retPw",
    "12/retPw?x",
    "S3c:retPw",
    "%53etPw",
    "p w",
)
ADDRESSES = (
    "postgresql://u:{}@h/db",
    "POSTGRESQL://u:{}@h/db",
    "postgres://u:{}@h:5432/db?sslmode=require",
    "PostgreSQL://u:{}@h",
    "postgresql://h/db?user=u&password={}",
    "postgresql+psycopg2://u:{}@h/db",
    "postgres:u:{}@h/db",
    "postgresql:/u:{}@h/db",
    "mysql://u:{}@h/db",
    "mongodb+srv://u:{}@h/db",
    "jdbc:postgresql://h/db?password={}",
    "https://u:{}@h/people.csv",
    "u:{}@h/db",
    "host=h user=u password={} dbname=db",
    "host=h PASSWORD = '{}'",
    "folder/{}@h/people.csv",
)


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("query", [None, "people", "SELECT age FROM people"])
def test_no_part_of_a_password_is_shown(address: str, password: str, query: str | None) -> None:
    given = address.format(password)

    with pytest.raises(SourceError) as caught:
        open_source(given, query=query, protect="base rows")

    shown = f"{caught.value}{caught.value.__context__ or ''}"
    for part in (password, "retPw", "etPw", "S3c"):
        assert part not in shown
    assert "postgresql://" in shown or "database" in shown


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize("address", ADDRESSES)
def test_what_is_shown_of_an_address_has_no_part_of_a_password(address: str, password: str) -> None:
    shown = redact_address(address.format(password))

    assert not any(part in shown for part in ("retPw", "etPw", "S3c", "p w"))


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (
            "postgresql://steward:secret@db.example.org:5432/census?sslmode=require",
            "postgresql://db.example.org/census",
        ),
        ("postgres://[::1]:5432/census", "postgres://[::1]/census"),
        ("postgresql:///census", "postgresql:///census"),
        ("s3a://key:secret@bucket/people/2024", "s3a://bucket/people/2024"),
        ("s3a://key:se/cret@bucket/people", "the given address"),
    ],
)
def test_host_and_path_are_shown_where_they_are_certain(address: str, shown: str) -> None:
    assert redact_address(address) == shown


def test_the_scheme_of_a_postgresql_address_may_be_in_capitals() -> None:
    assert is_postgres_address("POSTGRES://u@h/Db")
    assert normalize_postgres_address("PostgreSQL://u@h/Db") == "postgresql://u@h/Db"


def test_files_whose_names_look_like_addresses_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("me@home.csv").write_text("a\n1\n")
    Path("mysql:").mkdir()
    Path("mysql:/password=1.csv").write_text("a\n1\n")

    for name in ("me@home.csv", "me@*.csv", "mysql:/password=1.csv"):
        assert open_source(name).schema.names == ["a"]


def test_the_command_line_shows_no_password(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = tmp_path / "s.yaml"
    schema.write_text("dpsyn_schema: 1\nattributes:\n  a: {kind: boolean}\n", "utf-8")
    release = ["-s", str(schema), "--epsilon", "1", "-o", str(tmp_path / "x.csv"), "--query", "people"]

    codes = [
        run(["synthesize", address.format(password), *release]) for address in ADDRESSES for password in PASSWORDS[:3]
    ]

    captured = capsys.readouterr()
    assert set(codes) == {2}
    assert not any(part in captured.err + captured.out for part in ("retPw", "S3c"))
