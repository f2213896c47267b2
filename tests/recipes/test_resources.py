"""The plan of reading is an upper bound that is told before anything is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq
import pytest

import dpsyn
from dpsyn.engines import factory
from dpsyn.errors import SourceError, UserError
from dpsyn.recipes import RECIPES, estimate_resources, measure
from dpsyn.schema import Categorical, Identifier, Integer, Open, Schema, UnitDeclaration
from dpsyn.sources.parquet import ParquetSource

CODED = (Categorical(name="a", codes=2), Categorical(name="b", codes=2), Categorical(name="c", codes=2))
FINE = Integer(name="age", low=0, high=99, bins=4)


def written(folder: Path) -> Path:
    rng, rows = np.random.default_rng(4), 800
    columns: dict[str, Any] = {name: rng.integers(0, 2, rows) for name in "abc"}
    columns |= {"age": rng.integers(0, 100, rows), "town": rng.choice(["Ur", "Uruk"], rows), "who": np.arange(rows)}
    papq.write_table(pa.table(columns), folder / "t.parquet")
    return folder / "t.parquet"


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often a Parquet file is read from now on."""
    found, read = [0], ParquetSource.batches

    def counted(self: ParquetSource, columns: Any) -> Any:
        found[0] += 1
        return read(self, columns)

    monkeypatch.setattr(ParquetSource, "batches", counted)
    return found


@pytest.mark.parametrize("recipe", RECIPES)
def test_no_recipe_reads_more_often_than_planned(recipe: str, tmp_path: Path, readings: list[int]) -> None:
    schema = Schema(attributes=CODED, neighbors="replace")
    plan = estimate_resources(written(tmp_path), schema, recipe=recipe, engine="stream")
    assert readings == [0]

    measure(tmp_path / "t.parquet", schema, 1.0, recipe=recipe, engine="stream")

    assert 0 < readings[0] <= plan.passes


def test_a_plan_reads_no_more_often_than_planned(tmp_path: Path, readings: list[int]) -> None:
    schema = Schema(attributes=(*CODED, FINE), neighbors="replace")
    planned = dpsyn.Plan.from_yaml(
        """\
        dpsyn_plan: 1
        transforms:
          - {transform: recode, to: both, of: [a, b]}
          - {transform: mapping, of: c, from: age, share: 0.1}
        marginals:
          - {of: [both, c], mechanism: laplace, share: 0.1}
          - [both, age]
        selection: 0.3
        """
    )
    plan = estimate_resources(written(tmp_path), schema, recipe=dpsyn.Planned(plan=planned), engine="stream")

    measure(tmp_path / "t.parquet", schema, 1.0, recipe=dpsyn.Planned(plan=planned), engine="stream")

    assert 5 < readings[0] <= plan.passes


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_open_attributes_and_persons_are_read_as_often_as_planned(
    engine: Any, tmp_path: Path, readings: list[int]
) -> None:
    schema = Schema(
        attributes=(*CODED, FINE, Open(name="town"), Identifier(name="who")),
        privacy_unit=UnitDeclaration(id="who", max_rows=2),
    )
    plan = estimate_resources(written(tmp_path), schema, recipe="independent", engine=engine)

    measure(tmp_path / "t.parquet", schema, 5.0, recipe="independent", engine=engine)

    assert readings[0] == plan.passes  # texts, all 1-ways in one, and before that which rows of a person count


def test_the_plan_tells_engine_size_and_memory_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, schema = written(tmp_path), Schema(attributes=CODED, expected_size=10**8)

    held = dpsyn.estimate_resources(path, schema)
    monkeypatch.setattr(factory, "MAX_IN_MEMORY_BYTES", 10)
    streamed = dpsyn.estimate_resources(path, schema)

    assert (held.engine, held.passes, held.bytes) == ("memory", 1, path.stat().st_size)
    assert streamed.engine == "stream"
    assert held.memory is not None
    assert streamed.memory is not None
    assert held.memory > 10**8 * len(CODED) > streamed.memory - (600 << 20)
    assert streamed.describe().startswith("53 KB are streamed and read at most ") or "streamed" in streamed.describe()


def test_a_plan_for_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no column 'x'"):
        estimate_resources(written(tmp_path), Schema(attributes=(Categorical(name="x", codes=2),)))
    with pytest.raises(UserError, match="no recipe"):
        estimate_resources(written(tmp_path), Schema(attributes=CODED), recipe="magic")
