"""Releases of the answer of a query: what is protected, what the certificate states, and when a run is resumed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import dpsyn
from dpsyn import Certificate, Schema, Synopsis
from dpsyn.accounting import Budget, Ledger, PrivacyUnit
from dpsyn.cli.main import run
from dpsyn.errors import JournalError, LedgerError, SchemaError, SourceError
from dpsyn.private import PrivateTable, open_baskets, open_private
from dpsyn.schema import BasketSchema, Boolean, Categorical, Identifier, Integer, UnitDeclaration
from tests.private.noise_doubles import RecordingNoise

WOMEN = "SELECT age, sex FROM data WHERE sex = 'F'"
NORMAL = 'SELECT "age", "sex" FROM "data" WHERE ("sex" = \'F\')'
MIXING = "SELECT sex, max(CAST(age AS INT)) OVER () > 90 AS age FROM data"


def people(neighbors: Any = "add-remove", unit: UnitDeclaration | None = None) -> Schema:
    names = (Identifier(name="who"),) if unit else ()
    sex, age = Categorical(name="sex", values=("F", "M")), Integer(name="age", low=0, high=99)
    return Schema(attributes=(*names, sex, age), dataset="people", neighbors=neighbors, privacy_unit=unit)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = [f"p{i % 7},{i % 90},{'F' if i % 3 else 'M'}" for i in range(300)]
    (tmp_path / "people.csv").write_text("\n".join(["who,age,sex", *rows]) + "\n")
    return tmp_path / "people.csv"


def opened(data: Any, schema: Schema | None = None, **options: Any) -> PrivateTable:
    return open_private(data, schema or people(), Budget.for_guarantee(1, 1e-6), mechanisms=RecordingNoise(), **options)


# ── whose rows are protected ─────────────────────────────────────────────────────────────────────────────────


def test_a_query_that_mixes_rows_is_refused_before_anything_is_reserved(table: Path, tmp_path: Path) -> None:
    ledger = dpsyn.Ledger.create(tmp_path / "l.db")

    with pytest.raises(SourceError, match="a window function"):
        dpsyn.measure(table, people(), 0.1, query=MIXING, ledger=ledger, dataset="p", recipe="independent")

    assert ledger.datasets() == ()


def test_with_the_flag_the_certificate_states_that_base_rows_are_not_protected(table: Path) -> None:
    schema = Schema(attributes=(Categorical(name="sex", values=("F", "M")), Boolean(name="age")))

    synopsis = dpsyn.measure(table, schema, 1.0, query=MIXING, protect="query rows", recipe="independent")

    certificate = synopsis.certificates[0]
    assert certificate is not None
    text = certificate.text()
    assert "Privacy unit: one row of the query's answer.\n" in text
    assert "Neighboring tables differ by adding or removing one row of the query's answer.\n" in text
    assert "Rows of the base table are not protected: one of them may change many rows of the answer.\n" in text
    assert f"the table is the answer of the query: {MIXING}\n" in text
    assert certificate.privacy_unit == PrivacyUnit(record="row of the query's answer", filtered=True)
    assert Certificate.from_data(json.loads(json.dumps(certificate.to_data()))) == certificate


def test_a_row_wise_query_is_in_the_certificate_and_keeps_its_guarantee(table: Path, tmp_path: Path) -> None:
    dpsyn.measure(table, people(), 1.0, query=WOMEN, recipe="independent").save(tmp_path / "s.dpsyn")

    certificate = Synopsis.load(tmp_path / "s.dpsyn").certificates[0]

    assert certificate is not None
    assert certificate.query == NORMAL
    assert f"the table is the answer of the query: {NORMAL}\n" in certificate.text()
    assert f"the table is the answer of the query: {NORMAL}" in certificate.to_data()["declared_public"]
    assert "Privacy unit: one row.\nNeighboring tables differ by adding or removing one row.\n" in certificate.text()
    assert "base table" not in certificate.text()


def test_a_ledger_does_not_add_up_base_rows_and_rows_of_an_answer(table: Path, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.db")
    dpsyn.measure(table, people(), 1.0, query=WOMEN, ledger=ledger, recipe="independent")
    dpsyn.measure(table, people(), 1.0, ledger=ledger, recipe="independent")

    with pytest.raises(LedgerError, match="one row of the query's answer"):
        dpsyn.measure(table, people(), 1.0, query=WOMEN, protect="query rows", ledger=ledger, recipe="independent")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"protect": "query rows"}, "no query whose rows"),
        ({"protect": "rows", "query": WOMEN}, "use 'base rows' or 'query rows'"),
    ],
)
def test_a_wrong_protection_is_refused(options: dict[str, Any], words: str, table: Path) -> None:
    with pytest.raises(SourceError, match=words):
        dpsyn.measure(table, people(), 1.0, **options)
    with pytest.raises(SourceError, match=words):
        dpsyn.frequent_itemsets(table, ["a"], 1.0, **options)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT lower(who) AS who, age, sex FROM data",
        "SELECT CAST(who AS VARCHAR) AS who, age, sex FROM data",
        "SELECT who, age, sex FROM (SELECT left(who, 1) AS who, age, sex FROM data)",
        "SELECT 'p' AS who, age, sex FROM data",
    ],
)
def test_the_id_of_a_privacy_unit_is_passed_on_unchanged(query: str, table: Path) -> None:
    schema = people(unit=UnitDeclaration(id="who", max_rows=2))

    with pytest.raises(SourceError, match="computes the column 'who'"):
        opened(table, schema, query=query)
    opened(table, schema, query="SELECT age, sex, who FROM data WHERE who <> 'p1'")
    opened(table, schema, query=query, protect="query rows")


def test_the_id_of_a_basket_is_passed_on_unchanged(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("basket,item\n1,a\n1,b\n2,a\n")
    query, budget = "SELECT left(basket, 1) AS basket, item FROM data", Budget.for_guarantee(1, 0, pure_epsilons=[1])

    with pytest.raises(SourceError, match="computes the column 'basket'"):
        open_baskets(tmp_path / "b.csv", BasketSchema(items=("a", "b")), budget, query=query)
    with open_baskets(
        tmp_path / "b.csv", BasketSchema(items=("a", "b")), budget, query="SELECT basket, lower(item) AS item FROM data"
    ) as baskets:
        assert baskets.query == 'SELECT "basket", lower("item") AS "item" FROM "data"'


# ── the number of rows ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("query", "public"),
    [
        (None, True),
        ("SELECT age, sex FROM data", True),
        ("SELECT CAST(age AS INT) AS age, sex FROM (SELECT * FROM data)", True),
        (WOMEN, False),
        ("SELECT age, sex FROM data WHERE TRUE", False),
        ("SELECT age, sex FROM (SELECT * FROM data WHERE sex = 'F')", False),
    ],
)
def test_the_number_of_rows_that_a_query_selects_is_not_public(query: str | None, public: bool, table: Path) -> None:
    with opened(table, people("replace"), query=query) as private:
        assert private.public_row_count() == (300 if public else None)

    statement = private.certificate().text()
    assert ("The exact number of rows is published." in statement) == public


def test_the_number_of_rows_of_an_answer_is_never_public(table: Path) -> None:
    with opened(table, people("replace"), query="SELECT age, sex FROM data", protect="query rows") as private:
        assert private.public_row_count() is None


def test_the_certificate_does_not_speak_of_the_number_of_rows_under_add_remove(table: Path) -> None:
    with opened(table) as private:
        assert private.public_row_count() is None

    assert "exact number" not in private.certificate().text()


@pytest.mark.parametrize(("where", "public"), [("", True), (" WHERE item <> 'c'", False)])
def test_the_number_of_baskets_that_a_query_selects_is_not_public(where: str, public: bool, tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("basket,item\n1,a\n1,b\n2,a\n3,c\n")
    budget = Budget.for_guarantee(1, 0, pure_epsilons=[1])

    with open_baskets(
        tmp_path / "b.csv",
        BasketSchema(items=("a", "b"), neighbors="replace"),
        budget,
        query=f"SELECT basket, item FROM b{where}",
    ) as baskets:
        assert baskets.public_basket_count() == (3 if public else None)

    assert ("The exact number of baskets is published." in baskets.certificate().text()) == public


def test_an_estimated_number_of_rows_is_not_used_as_if_it_were_exact(table: Path) -> None:
    """A filtered release under replace answers with the error bars of one whose number of rows is not known."""
    schema = msgspec.structs.replace(people("replace"), attributes=(people("replace")["sex"],))

    def standard_error(query: str | None) -> float:
        synopsis = dpsyn.measure(table, schema, 1.0, query=query, recipe="independent")
        return float(synopsis.marginal("sex").standard_errors[0])

    assert standard_error(WOMEN) > 1.4 * standard_error(None)  # √2: of two counts with a known sum, half is known


# ── resuming and extending ───────────────────────────────────────────────────────────────────────────────────


RHO = Budget.for_guarantee(1, 1e-6).rho / 4


class Stop(Exception):  # noqa: N818
    """What interrupts a run."""


def run_and_stop(folder: Path, data: Any, **options: Any) -> None:
    """A run that measures something and is interrupted."""
    with opened(data, journal=folder / "j", **options) as private:
        private.measure([("sex",)], [RHO])
        raise Stop


def interrupted(folder: Path, data: Any, **options: Any) -> None:
    with pytest.raises(Stop):
        run_and_stop(folder, data, **options)


def resumed(folder: Path, data: Any, **options: Any) -> None:
    run_and_stop(folder, data, resume=True, **options)


def test_a_run_is_resumed_with_the_same_query_however_it_is_written(table: Path, tmp_path: Path) -> None:
    interrupted(tmp_path, table, query=WOMEN)

    for query in (f"{WOMEN} AND age <> '1'", "SELECT age, sex FROM data", None):
        with pytest.raises(JournalError, match=r"different: .*the query"):
            resumed(tmp_path, table, query=query)
    with pytest.raises(JournalError, match=r"different: the privacy unit, the query\."):
        resumed(tmp_path, table, query=WOMEN, protect="query rows")
    for query in (WOMEN, f"  {WOMEN.replace('SELECT', 'select')} ORDER BY age;"):
        with pytest.raises(Stop):
            resumed(tmp_path, table, query=query)


def test_a_run_is_not_resumed_with_a_file_that_changed(table: Path, tmp_path: Path) -> None:
    interrupted(tmp_path, table)
    content, status = table.read_bytes(), table.stat()

    table.write_bytes(content + b"p,1,F\n")
    os.utime(table, ns=(status.st_mtime_ns, status.st_mtime_ns))
    with pytest.raises(JournalError, match="different: the table"):
        resumed(tmp_path, table)
    table.write_bytes(content)
    os.utime(table, ns=(status.st_mtime_ns, status.st_mtime_ns + 1))
    with pytest.raises(JournalError, match="different: the table"):
        resumed(tmp_path, table)
    os.utime(table, ns=(status.st_mtime_ns, status.st_mtime_ns))
    (tmp_path / "moved").mkdir()
    with pytest.raises(Stop):
        resumed(tmp_path, table.rename(tmp_path / "moved" / "people.csv"))


def test_a_run_is_not_resumed_with_another_file_or_with_a_frame(table: Path, tmp_path: Path) -> None:
    interrupted(tmp_path, table)
    other = tmp_path / "other.csv"
    other.write_bytes(table.read_bytes())

    for data in (other, pa.table({"age": [1], "sex": ["F"]})):
        with pytest.raises(JournalError, match="different: the table"):
            resumed(tmp_path, data)


def test_a_frame_is_recognized_by_its_columns(tmp_path: Path) -> None:
    frame = pa.table({"age": [1, 2], "sex": ["F", "M"]})
    interrupted(tmp_path, frame)

    with pytest.raises(JournalError, match="different: the table"):
        resumed(tmp_path, frame.append_column("more", pa.array([1, 2])))
    with pytest.raises(Stop):
        resumed(tmp_path, frame)


def test_the_journal_is_private_because_it_describes_the_source(table: Path, tmp_path: Path) -> None:
    interrupted(tmp_path, table)

    assert "people.csv" in (tmp_path / "j").read_text()
    assert (tmp_path / "j").stat().st_mode & 0o777 == 0o600


def test_a_release_of_another_query_is_not_extended(table: Path, tmp_path: Path) -> None:
    first = dpsyn.measure(table, people(), 0.5, query=WOMEN, recipe="independent")
    ledger = Ledger.create(tmp_path / "l.db")

    for query in (None, "SELECT age, sex FROM data WHERE sex = 'M'"):
        with pytest.raises(SchemaError, match="of another table"):
            dpsyn.measure(table, people(), 0.5, query=query, extend=first, recipe="independent", ledger=ledger)

    (dataset,) = ledger.datasets()
    assert dataset.rho == 0
    both = dpsyn.measure(table, people(), 0.5, query=WOMEN, extend=first, recipe="independent")
    assert len(both.releases) == 2


# ── the command line ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_command_line_refuses_a_mixing_query_and_takes_it_with_the_flag(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people().save(tmp_path / "s.yaml")
    release = ["synthesize", str(table), "-s", str(tmp_path / "s.yaml"), "--epsilon", "1", "--recipe", "independent"]
    mixing = ["--query", "SELECT DISTINCT age, sex FROM people", "-o", str(tmp_path / "rows.csv")]

    assert run([*release, *mixing]) == 2
    assert "has DISTINCT" in capsys.readouterr().err
    assert not (tmp_path / "rows.csv").exists()
    assert run([*release, *mixing, "--protect-query-rows"]) == 0
    assert "Rows of the base table are not protected" in capsys.readouterr().out
    assert run([*release, "-o", str(tmp_path / "more.csv"), "--protect-query-rows"]) == 2
    assert "no query whose rows could be protected" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["synthesize", "measure", "explore", "itemsets"])
def test_every_release_command_explains_what_a_query_protects(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0

    shown = " ".join(capsys.readouterr().out.split())
    assert "--protect-query-rows" in shown
    assert "a query must make each row of its answer from one of them" in shown
