"""Many rows are sampled in parts: the same by any worker, and together as close to the model as each part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq
import pytest

from dpsyn import Synopsis
from dpsyn.errors import UserError
from dpsyn.sampling import parallel
from dpsyn.sampling.parallel import count_parts, part_name, write_parts
from dpsyn.schema import Categorical, Datetime, Identifier, Integer, Real, Schema

SCHEMA = Schema(
    attributes=(
        Identifier(name="id", output="fresh"),
        Categorical(name="sex", values=("F", "M")),
        Integer(name="age", low=0, high=99, bins=10, missing=True),
        Real(name="pay", low=0, high=9, bins=3, decimals=2),
        Datetime(name="day", start="2024-01-01", end="2024-12-31", resolution="day", bins=4),
    )
)
ROWS = 70_000


@pytest.fixture(scope="module")
def synopsis() -> Synopsis:
    rng = np.random.default_rng(5)
    tables = {("sex", "age"): rng.random((2, 11)) * 100, ("sex", "pay"): rng.random((2, 3)), "day": rng.random(4)}
    scaled = {name: table / table.sum() * 10_000 for name, table in tables.items()}
    return Synopsis.from_marginals(SCHEMA, scaled, std=3.0, source="made up")


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "PART_ROWS", 4 * 16_384)
    monkeypatch.setattr(parallel, "GROUP_ROWS", 2 * 16_384)


def read(paths: list[Path]) -> pa.Table:
    return pa.concat_tables([papq.read_table(path) for path in paths]).combine_chunks()


def counts(table: pa.Table) -> np.ndarray[Any, Any]:
    """The joint distribution of sex and bins of age, as shares."""
    sex = (np.asarray(table["sex"].to_numpy(zero_copy_only=False)) == "M").astype(int)
    age = table["age"].fill_null(100).to_numpy() // 10
    return np.bincount(sex * 11 + age, minlength=22) / len(table)


def test_a_folder_of_parts_is_the_table_that_fits_into_memory(synopsis: Synopsis, tmp_path: Path) -> None:
    paths = write_parts(tmp_path, synopsis.sampler(ROWS, seed=3))

    whole = synopsis.generate(ROWS, seed=3, output_format="arrow")
    assert [path.name for path in paths] == [part_name(number) for number in range(2)]
    assert read(paths).equals(whole)
    assert whole["id"].to_pylist() == list(range(ROWS))
    assert papq.read_schema(paths[0]).metadata[b"dpsyn"] == b"synthetic"


def test_progress_runs_from_the_first_part_to_the_last(synopsis: Synopsis, tmp_path: Path) -> None:
    fractions: list[float] = []

    sampler = synopsis.sampler(ROWS, seed=3)
    write_parts(tmp_path, sampler, worker_count=1, progress=lambda _, done: fractions.append(done))

    assert fractions == [0.0, 0.5, 1.0]  # two files


def test_a_part_depends_neither_on_its_worker_nor_on_the_other_parts(synopsis: Synopsis, tmp_path: Path) -> None:
    sampler = synopsis.sampler(ROWS, seed=3)

    alone = pa.Table.from_batches(parallel.sample_part(sampler, 1))

    (tmp_path / "one").mkdir()
    paths = write_parts(tmp_path / "one", synopsis.sampler(ROWS, seed=3), worker_count=1)
    assert read([paths[1]]).equals(alone)
    assert count_parts(sampler) == len(paths)
    assert not alone.equals(pa.Table.from_batches(parallel.sample_part(synopsis.sampler(ROWS, seed=4), 1)))


def test_processes_sample_the_same_rows(synopsis: Synopsis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the change would not reach other processes
    where = {"sex": "F"}

    sampler = synopsis.sampler(20_000, seed=3, where=where)
    paths = write_parts(tmp_path, sampler, workers="processes", worker_count=1)

    assert read(paths).equals(synopsis.generate(20_000, seed=3, where=where, output_format="arrow"))


def test_all_parts_together_have_the_marginals_of_the_model(synopsis: Synopsis) -> None:
    fitted = synopsis.model.distribution
    assert fitted is not None
    expected = next(table for table in fitted.marginals() if table.clique == ("sex", "age")).values.ravel()

    table = synopsis.generate(ROWS, seed=1, output_format="arrow")

    distance = np.abs(counts(table) - expected / expected.sum()).sum() / 2
    assert distance < 0.001  # independent rows would differ by 0.005: each chunk is fitted to the marginals


def test_a_release_folder_of_many_rows_lists_its_files(synopsis: Synopsis, tmp_path: Path) -> None:
    synopsis.write(f"{tmp_path}/large/", ROWS, seed=3)

    package = json.loads((tmp_path / "large" / "datapackage.json").read_text("utf-8"))
    paths = package["resources"][0]["path"]
    assert paths == [f"synthetic/{part_name(number)}" for number in range(2)]
    assert read([tmp_path / "large" / path for path in paths]).num_rows == ROWS
    assert {path.name for path in (tmp_path / "large").iterdir()} >= {"synopsis.dpsyn", "certificate.txt", "synthetic"}


def test_one_file_has_the_rows_of_generate(synopsis: Synopsis, tmp_path: Path) -> None:
    for rows in (0, 5, 40_000):
        synopsis.write(tmp_path / "rows.parquet", rows, seed=3)

        assert papq.read_table(tmp_path / "rows.parquet").equals(synopsis.generate(rows, seed=3, output_format="arrow"))


def test_a_model_without_a_distribution_is_sampled_in_chunks_too(
    synopsis: Synopsis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dataclasses

    from dpsyn.sampling import sampler

    monkeypatch.setattr(sampler, "MAX_GUM_CHUNK_ROWS", 2_000)
    matched = dataclasses.replace(synopsis, model=dataclasses.replace(synopsis.model, distribution=None))

    paths = write_parts(tmp_path, matched.sampler(10_000, seed=3))

    table = read(paths)
    expected = next(table for table in matched.model.tables if table.clique == ("sex", "age")).values.ravel()
    assert table.equals(matched.generate(10_000, seed=3, output_format="arrow"))
    assert np.abs(counts(table) - expected / expected.sum()).sum() / 2 < 0.01


def test_too_many_rows_and_unknown_workers_are_refused(synopsis: Synopsis, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="from 0 to 1,000,000,000,000"):
        synopsis.write(tmp_path / "rows.csv", 10**13)
    with pytest.raises(UserError, match="do not fit into one table"):
        synopsis.generate(2**31)
    with pytest.raises(UserError, match="threads or processes"):
        write_parts(tmp_path, synopsis.sampler(10), workers="magic")  # type: ignore[arg-type]


@pytest.mark.java
def test_spark_samples_the_same_rows_in_the_same_parts(synopsis: Synopsis, tmp_path: Path) -> None:
    from tests.engines.engines import spark_session

    frame = synopsis.spark_frame(spark_session(), 80_000, seed=3)

    frame.write.parquet(str(tmp_path / "spark"))

    sampled = read(sorted((tmp_path / "spark").glob("part-*.parquet")))
    whole = synopsis.generate(80_000, seed=3, output_format="arrow")
    assert frame.rdd.getNumPartitions() == 2
    assert sampled.cast(whole.schema).equals(whole)
