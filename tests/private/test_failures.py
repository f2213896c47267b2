"""Files that are broken or do not fit each other, workers that die: a clear error or none, and the ledger is right."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq
import pytest

from dpsyn.accounting import Budget, Ledger
from dpsyn.errors import SourceError
from dpsyn.private import open_private
from dpsyn.schema import Categorical, Schema
from tests.engines.engines import kill_a_worker_once, spark_session
from tests.private.noise_doubles import RecordingNoise

SCHEMA = Schema(attributes=(Categorical(name="a", codes=4), Categorical(name="b", codes=3)), dataset="failing")
RHO = Fraction(1, 1000)
every_kind = pytest.mark.parametrize("kind", ["memory", "stream", pytest.param("spark", marks=pytest.mark.java)])


def table(rows: int = 20_000) -> pa.Table:
    rng = np.random.default_rng(2)
    return pa.table({"a": rng.integers(0, 4, rows), "b": rng.integers(0, 3, rows)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    parts = tmp_path / "parts"
    parts.mkdir()
    for part in range(3):
        papq.write_table(table(), parts / f"{part}.parquet", compression="none")
    return parts


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.db")


def open_(folder: Path, ledger: Ledger, kind: Any, **options: Any) -> Any:
    if kind == "spark":
        spark_session()
    return open_private(
        str(folder / "*.parquet"), SCHEMA, Budget.for_guarantee(1, 1e-9), ledger, engine=kind, **options
    )


@every_kind
def test_a_file_with_other_columns_is_refused_before_anything_is_reserved(
    folder: Path, ledger: Ledger, kind: str
) -> None:
    papq.write_table(table(9).rename_columns(["a", "c"]), folder / "1.parquet")

    with pytest.raises(SourceError, match="column 'b' is in some files but not in others"):
        open_(folder, ledger, kind)

    assert ledger.datasets() == ()


@every_kind
def test_a_broken_file_is_named_and_nothing_is_charged(folder: Path, ledger: Ledger, kind: str) -> None:
    content = bytearray((folder / "2.parquet").read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)  # the rows; the footer is as it was
    (folder / "2.parquet").write_bytes(content)

    with pytest.raises(SourceError, match=r"2\.parquet cannot be read"), open_(folder, ledger, kind) as private:
        private.measure([("a",)], [RHO])

    (account,) = ledger.datasets()
    (run,) = account.runs
    assert run.closed
    assert run.rho == run.spent_rho == 0
    assert ledger.verify()


@pytest.mark.java
def test_noise_is_added_and_charged_once_although_a_worker_is_killed(
    folder: Path, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_a_worker_once(monkeypatch, "count_partition", tmp_path / "killed")
    noise = RecordingNoise()

    with open_(folder, ledger, "spark", mechanisms=noise) as private:
        private.measure([("a",), ("a", "b")], [RHO, RHO])

    assert (tmp_path / "killed").exists()
    assert [answer.exact.sum() for answer in noise.answers] == [60_000, 60_000]
    assert len(ledger.datasets()[0].runs[0].measurements) == 2
    assert ledger.verify()
