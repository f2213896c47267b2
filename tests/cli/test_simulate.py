"""``dpsyn simulate``: artificial tables for a schema."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from dpsyn.cli.main import run
from dpsyn.demo import people_schema_text


@pytest.fixture
def schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "schema.yaml"
    path.write_text(people_schema_text(), "utf-8")
    return path


def test_a_table_is_written_with_its_seed_and_the_strength_of_its_dependences(
    schema: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["simulate", str(schema), "--rows", "200", "--seed", "7", "-o", "table.parquet"])

    shown = capsys.readouterr().out
    assert code == 0
    assert "200 artificial rows, seed 7" in shown
    assert "from independence" in shown
    assert parquet.read_table("table.parquet").num_rows == 200


def test_the_same_seed_writes_the_same_file(schema: Path) -> None:
    for name in ("a.csv", "b.csv"):
        assert run(["simulate", str(schema), "--rows", "50", "--seed", "7", "-o", name, "--quiet"]) == 0

    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["schema.yaml", "-o", "table.txt", "--rows", "1"], "its suffix"),
        (["schema.yaml", "-o", "table.xls", "--rows", "1"], "read but not written"),
        (["schema.yaml", "-o", "no/table.csv", "--rows", "1"], "there is no folder"),
        (["schema.yaml", "-o", ".", "--rows", "1"], "is a folder"),
        (["schema.yaml", "-o", "schema.yaml", "--rows", "1", "--force"], "given twice"),
        (["nothing.yaml", "-o", "table.csv", "--rows", "1"], "no such file"),
        (["schema.yaml", "-o", "table.csv", "--rows", "-1"], "--rows"),
        (["schema.yaml", "-o", "table.csv", "--rows", "1", "--seed", "x"], "--seed"),
    ],
)
def test_mistakes_are_refused_and_write_nothing(
    schema: Path, words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["simulate", *words])

    assert code == 2
    assert complaint in capsys.readouterr().err
    assert [path.name for path in Path().iterdir()] == ["schema.yaml"]


def test_an_unknown_size_must_be_given(schema: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line for line in people_schema_text().splitlines() if not line.startswith("expected_size")]
    schema.write_text("\n".join(lines), "utf-8")

    code = run(["simulate", str(schema), "-o", "table.csv"])

    assert code == 2
    assert "--rows" in capsys.readouterr().err
