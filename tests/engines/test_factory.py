"""The choice of an engine depends on public facts only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as papq
import pytest

from dpsyn.engines import factory
from dpsyn.engines.memory import MemoryEngine
from dpsyn.engines.stream import StreamEngine
from dpsyn.schema import Categorical, Schema
from dpsyn.sources import open_source
from tests.engines.engines import KEY

SCHEMA = Schema(attributes=(Categorical(name="a", codes=3),))
TABLE = pa.table({"a": [0, 1, 2]})


def test_small_files_are_held_in_memory_and_large_ones_streamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    papq.write_table(TABLE, tmp_path / "t.parquet")
    source = open_source(tmp_path / "t.parquet")
    assert source.byte_size == (tmp_path / "t.parquet").stat().st_size

    small = factory.open_engine(source, SCHEMA, key=KEY)
    monkeypatch.setattr(factory, "MAX_IN_MEMORY_BYTES", source.byte_size - 1)
    large = factory.open_engine(source, SCHEMA, key=KEY)

    assert isinstance(small, MemoryEngine)
    assert isinstance(large, StreamEngine)


def test_frames_and_tables_are_held_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factory, "MAX_IN_MEMORY_BYTES", 0)

    for data in (TABLE, TABLE.to_pandas(), TABLE.to_reader()):
        assert isinstance(factory.open_engine(open_source(data), SCHEMA, key=KEY), MemoryEngine)


def test_the_compiler_is_not_loaded_with_the_package() -> None:
    code = "import sys, dpsyn, dpsyn.cli.main; assert 'numba' not in sys.modules"

    subprocess.run([sys.executable, "-c", code], check=True)
