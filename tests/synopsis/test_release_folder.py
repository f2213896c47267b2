"""A release folder is complete or absent, and other programs understand it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as papq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsyn.accounting import Certificate, read_ledger_checkpoint
from dpsyn.encoding import Codec
from dpsyn.errors import OutputError, SchemaError
from dpsyn.schema import Categorical, Datetime, Derive, Identifier, Integer, Ordinal, Real, Schema
from dpsyn.schema.importers import import_schema
from dpsyn.synopsis.datapackage import describe_columns, describe_package
from dpsyn.synopsis.release_folder import write_release
from dpsyn.synopsis.replicates import how_to_use_replicates
from dpsyn.synopsis.serialization.synopsis_file import load_synopsis
from tests.strategies import coded
from tests.synopsis.synopses import HEAD, SCHEMA, certificate, content, synopsis

FILES = {"synthetic.csv", "synopsis.dpsyn", "certificate.json", "certificate.txt", "datapackage.json", "README.txt"}


def rows(schema: Schema, count: int = 20) -> pa.Table:
    """Any rows of a schema."""
    codec, rng = Codec(schema), np.random.default_rng(1)
    codes = np.stack([rng.integers(0, size, count) for size in codec.fine_sizes], axis=1)
    return codec.decode(codes, rng)


TABLE = rows(SCHEMA)


def test_a_folder_holds_everything_that_belongs_to_a_release(tmp_path: Path) -> None:
    original = synopsis(certificate(head=HEAD))

    write_release(tmp_path / "release", TABLE, original)

    folder = tmp_path / "release"
    assert {path.name for path in folder.iterdir()} == FILES
    assert pacsv.read_csv(folder / "synthetic.csv").column_names == list(SCHEMA.names)
    assert content(load_synopsis(folder / "synopsis.dpsyn")) == content(original)
    (stated_certificate,) = original.certificates
    assert stated_certificate is not None
    assert (folder / "certificate.txt").read_text("utf-8") == stated_certificate.text()
    stated = json.loads((folder / "certificate.json").read_text("utf-8"))
    assert Certificate.from_data(stated["releases"][0]["certificate"]) == stated_certificate
    readme = (folder / "README.txt").read_text("utf-8")
    assert "The rows of synthetic.csv are synthetic" in readme
    assert "NOT PRIVATE" not in readme
    assert "A spreadsheet takes a text that begins with =, +, - or @ for a formula." in readme
    assert readme.splitlines()[-5:] == [*how_to_use_replicates(original, "synopsis.dpsyn")]
    assert list(tmp_path.iterdir()) == [folder]


def test_a_readme_names_no_replicates_that_could_not_carry_the_noise() -> None:
    released = synopsis(certificate())
    fourier: Any = SimpleNamespace(releases=[SimpleNamespace(recipe={"name": "fourier"})])

    assert len(how_to_use_replicates(released)) == 5
    assert how_to_use_replicates(fourier) == ()


def test_formulas_are_escaped_in_the_table_and_the_readme_says_so(tmp_path: Path) -> None:
    table = TABLE.set_column(2, "job", [["=1"] * TABLE.num_rows])

    write_release(tmp_path / "release", table, synopsis(certificate()), escape_formulas=True)

    assert "'=1" in (tmp_path / "release" / "synthetic.csv").read_text("utf-8")
    assert "have an apostrophe before them" in (tmp_path / "release" / "README.txt").read_text("utf-8")


def test_certificate_and_synopsis_are_checkpoints_of_the_ledger(tmp_path: Path) -> None:
    write_release(tmp_path / "release", TABLE, synopsis(certificate(head=HEAD)))

    assert read_ledger_checkpoint(tmp_path / "release" / "certificate.json").head == HEAD
    assert read_ledger_checkpoint(tmp_path / "release" / "synopsis.dpsyn").head == HEAD


def test_test_noise_is_stamped_all_over_the_folder(tmp_path: Path) -> None:
    write_release(tmp_path / "release", TABLE, synopsis(certificate(), certificate(private=False)))

    for name in ("README.txt", "certificate.txt"):
        assert "NOT PRIVATE" in (tmp_path / "release" / name).read_text("utf-8")
    assert json.loads((tmp_path / "release" / "certificate.json").read_text("utf-8"))["differentially_private"] is False


def test_imported_numbers_are_never_called_private(tmp_path: Path) -> None:
    write_release(tmp_path / "release", TABLE, synopsis(None))

    for name in ("README.txt", "certificate.txt"):
        assert "Guarantee not verified here" in (tmp_path / "release" / name).read_text("utf-8")
    assert json.loads((tmp_path / "release" / "certificate.json").read_text("utf-8"))["differentially_private"] is None


def test_the_text_states_the_cost_of_every_release_and_of_all_together(tmp_path: Path) -> None:
    write_release(tmp_path / "release", TABLE, synopsis(certificate(), certificate(with_pure_step=True), None))

    text = (tmp_path / "release" / "certificate.txt").read_text("utf-8")

    assert text.count("the guarantee holds") == 2
    assert "Release 3 of 3: imported" in text
    assert "Guarantee not verified here. These numbers were measured in another system:\n  the statistics off" in text
    together = (
        "The guarantees add up to ε = 2, δ = 2e-9, against adding or removing one row; imported numbers cost more"
    )
    assert together in text


def test_the_description_fits_the_bytes_of_the_table(tmp_path: Path) -> None:
    write_release(tmp_path / "release", TABLE.to_batches(max_chunksize=7), synopsis(None))

    data = (tmp_path / "release" / "synthetic.csv").read_bytes()
    resource = json.loads((tmp_path / "release" / "datapackage.json").read_text("utf-8"))["resources"][0]
    assert (resource["path"], resource["bytes"]) == ("synthetic.csv", len(data))
    assert resource["hash"] == f"sha256:{hashlib.sha256(data).hexdigest()}"


def test_other_formats_are_described_as_what_they_are(tmp_path: Path) -> None:
    write_release(tmp_path / "a", TABLE, synopsis(None), "rows.parquet")
    write_release(tmp_path / "b", TABLE, synopsis(None), "rows.csv.gz")

    described = [json.loads((tmp_path / name / "datapackage.json").read_text("utf-8")) for name in "ab"]

    assert papq.read_schema(tmp_path / "a" / "rows.parquet").metadata[b"dpsyn"] == b"synthetic"
    assert [package["profile"] for package in described] == ["data-package", "tabular-data-package"]
    assert [package["resources"][0]["format"] for package in described] == ["parquet", "csv"]
    assert described[1]["resources"][0]["compression"] == "gz"


# ── the columns ──────────────────────────────────────────────────────────────────────────────────────────────


def import_description(schema: Schema, folder: Path) -> Schema:
    """The schema that is imported from the description of a table."""
    table = rows(schema)
    path = folder / "datapackage.json"
    fields = describe_columns(schema, table.schema)
    path.write_text(json.dumps(describe_package(schema.dataset, "rows.csv", fields, 0, "00")), "utf-8")
    return Schema.from_yaml(import_schema(path))


def test_every_kind_of_column_is_described() -> None:
    schema = Schema(
        attributes=(
            Identifier(name="id", output="fresh"),
            Identifier(name="name"),
            Integer(name="age", low=0, high=99, missing=True, description="in years"),
            Real(name="wage", low=-0.5, high=10.25),
            Ordinal(name="size", values=("S", "M", "L")),
            Categorical(name="code", values=(1, 2), missing=True),
            Categorical(name="rate", values=(0.5, 1)),
            Categorical(name="mixed", values=(1, "x"), other="else"),
            Datetime(name="born", start="1990-01", end="2020-06", resolution="month"),
            Datetime(name="seen", start="2020-01-01T08", end="2020-12-31", resolution="hour"),
            Datetime(name="heard", start="2020-01-01", end="2020-01-02", resolution="millisecond"),
            Categorical(name="half", values=("lower", "upper")),
        ),
        derive=(Derive(name="half", source="size", mapping=(("S", "lower"), ("M", "lower"), ("L", "upper"))),),
    )

    description = describe_columns(schema, rows(schema).schema)

    enums = {field["name"]: field.get("constraints", {}).get("enum") for field in description["fields"]}
    assert description["missingValues"] == [""]
    assert description["fields"][0] == {
        "name": "id",
        "type": "integer",
        "constraints": {"required": True, "unique": True},
    }
    assert description["fields"][1] == {
        "name": "age",
        "type": "integer",
        "description": "in years",
        "constraints": {"minimum": 0, "maximum": 99},
    }
    assert description["fields"][2] == {
        "name": "wage",
        "type": "number",
        "constraints": {"required": True, "minimum": -0.5, "maximum": 10.25},
    }
    assert description["fields"][3]["categoriesOrdered"] is True
    assert [field["type"] for field in description["fields"][3:7]] == ["string", "integer", "number", "string"]
    assert enums["code"] == [1, 2]
    assert enums["rate"] == [0.5, 1.0]
    assert enums["mixed"] == ["1", "x", "else"]
    assert description["fields"][7]["constraints"] == {
        "required": True,
        "minimum": "1990-01-01",
        "maximum": "2020-06-01",
    }
    assert description["fields"][8] == {
        "name": "seen",
        "type": "datetime",
        "format": "%Y-%m-%d %H:%M:%S",
        "constraints": {"required": True, "minimum": "2020-01-01 08:00:00", "maximum": "2020-12-31 23:00:00"},
    }
    assert description["fields"][9]["constraints"]["maximum"] == "2020-01-02 23:59:59.999"
    assert enums["half"] == ["lower", "upper"]


def test_a_table_without_missing_values_has_no_text_for_them() -> None:
    schema = Schema(attributes=(Categorical(name="word", values=("", "x")),))

    description = describe_columns(schema, rows(schema).schema)

    assert description == {
        "fields": [{"name": "word", "type": "string", "constraints": {"enum": ["", "x"]}}],
        "missingValues": [],
    }


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(coded(), min_size=1, max_size=3, unique_by=lambda attribute: attribute.name))
def test_the_description_is_imported_as_the_same_names_and_kinds(tmp_path: Path, attributes: list[Integer]) -> None:
    schema = Schema(attributes=tuple(a for a in attributes if "" not in a.labels()) or SCHEMA.attributes)

    imported = import_description(schema, tmp_path)

    assert [(a.name, a.kind) for a in imported] == [(a.name, a.kind) for a in schema]
    assert [a.has_missing for a in imported] == [a.has_missing for a in schema]


# ── complete or absent ───────────────────────────────────────────────────────────────────────────────────────


def test_a_failure_midway_leaves_nothing(tmp_path: Path) -> None:
    def fail_midway() -> Iterator[pa.RecordBatch]:
        yield TABLE.to_batches()[0]
        raise OutputError("the chunk failed")

    with pytest.raises(OutputError, match="the chunk failed"):
        write_release(tmp_path / "release", fail_midway(), synopsis(None))

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_empty_is_refused_and_unchanged(tmp_path: Path) -> None:
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "mine.txt").write_text("mine", "utf-8")

    with pytest.raises(OutputError, match="is not empty; give the name of a new folder"):
        write_release(tmp_path / "release", TABLE, synopsis(None))

    assert [path.name for path in tmp_path.rglob("*")] == ["release", "mine.txt"]


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "release").mkdir()

    write_release(f"{tmp_path}/release/", TABLE, synopsis(None))

    assert {path.name for path in (tmp_path / "release").iterdir()} == FILES


@pytest.mark.parametrize(
    "name", ["synopsis.dpsyn", "Certificate.JSON", "a/b.csv", "../x.csv", ".hidden.csv", "", "rows.docx", "rows"]
)
def test_an_invalid_table_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(OutputError, match=r"synthetic\.csv|its suffix is not that of a table"):
        write_release(tmp_path / "release", TABLE, synopsis(None), name)

    assert list(tmp_path.iterdir()) == []


def test_a_table_of_other_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no attribute 'wage'"):
        write_release(tmp_path / "release", pa.table({"wage": [1]}), synopsis(None))
    with pytest.raises(OutputError, match="nothing to write"):
        write_release(tmp_path / "release", iter(()), synopsis(None))

    assert list(tmp_path.iterdir()) == []
