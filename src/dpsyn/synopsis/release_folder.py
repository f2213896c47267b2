"""The release folder: everything that is published together, in one place."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsyn.atomic_files import atomic_folder, table_format, write_text
from dpsyn.encoding import write_table
from dpsyn.errors import OutputError
from dpsyn.progress import Progress
from dpsyn.sampling import parallel
from dpsyn.sampling.sampler import RowSampler
from dpsyn.schema import format_conditions
from dpsyn.synopsis import datapackage
from dpsyn.synopsis import release_folder as folders
from dpsyn.synopsis.guarantee import NOT_VERIFIED, guarantee_data, guarantee_text, is_private
from dpsyn.synopsis.serialization import synopsis_file
from dpsyn.synopsis.synopsis import AttributeConditions, Synopsis

SYNOPSIS_NAME = f"synopsis{synopsis_file.SUFFIX}"
CERTIFICATE_JSON_NAME = "certificate.json"
CERTIFICATE_TEXT_NAME = "certificate.txt"
README_NAME = "README.txt"

_RESERVED_NAMES = {
    name.casefold()
    for name in (SYNOPSIS_NAME, CERTIFICATE_JSON_NAME, CERTIFICATE_TEXT_NAME, README_NAME, datapackage.DATAPACKAGE_NAME)
}


def write_release(
    folder: str | Path,
    table: Iterable[pa.RecordBatch] | pa.Table,
    synopsis: Synopsis,
    table_name: str = "synthetic.csv",
    *,
    conditions: str = "",
) -> None:
    """Write a synthetic table and all that belongs to it into a new folder.

    It holds the table, the synopsis, the certificates as JSON and as text, a description of the columns
    (``datapackage.json``) and a README; both name the ``conditions`` that rows were drawn to meet. It is filled beside
    its place and renamed, so that nobody sees half of it; a folder that holds something is refused.
    """
    _check_table_name(table_name)
    with atomic_folder(Path(folder)) as beside:
        columns, whole = _peek_columns(table)
        fields = datapackage.describe_columns(synopsis.schema, columns)
        write_table(whole, beside / table_name, synthetic=True)
        size, digest = _size_and_digest(beside / table_name)
        package = datapackage.describe_package(synopsis.schema.dataset, table_name, fields, size, digest, conditions)
        _write_metadata(beside, synopsis, package, table_name, conditions)


def write_partitioned_release(
    folder: str | Path,
    synopsis: Synopsis,
    rows_name: str,
    columns: pa.Schema,
    write_parts: Callable[[Path], Sequence[Path]],
    *,
    conditions: str = "",
) -> None:
    """The same for a table of many files; ``write_parts`` writes them into the folder ``rows_name`` of the new one."""
    with atomic_folder(Path(folder)) as beside:
        fields = datapackage.describe_columns(synopsis.schema, columns)
        (beside / rows_name).mkdir()
        paths = write_parts(beside / rows_name)
        size = sum(path.stat().st_size for path in paths)
        names = [f"{rows_name}/{path.name}" for path in paths]
        package = datapackage.describe_package(synopsis.schema.dataset, names, fields, size, None, conditions)
        _write_metadata(beside, synopsis, package, f"{rows_name}/", conditions)


def _write_metadata(
    folder: Path, synopsis: Synopsis, package: dict[str, Any], table_name: str, conditions: str
) -> None:
    """All that belongs to a table."""
    synopsis_file.save_synopsis(synopsis, folder / SYNOPSIS_NAME)
    write_text(folder / datapackage.DATAPACKAGE_NAME, _format_json(package))
    write_text(folder / CERTIFICATE_JSON_NAME, _format_json(guarantee_data(synopsis.releases)))
    write_text(folder / CERTIFICATE_TEXT_NAME, guarantee_text(synopsis.releases))
    write_text(folder / README_NAME, _format_readme(table_name, conditions, private=is_private(synopsis.releases)))


def _check_table_name(name: str) -> None:
    if name.casefold() in _RESERVED_NAMES or Path(name).name != name or name.startswith("."):
        raise OutputError(f"{name!r} cannot be the table of a release folder; give a name such as synthetic.csv")
    table_format(name)


def _peek_columns(table: Iterable[pa.RecordBatch] | pa.Table) -> tuple[pa.Schema, Iterable[pa.RecordBatch] | pa.Table]:
    """The names and types of the columns, and the table as it was."""
    if isinstance(table, pa.Table):
        return table.schema, table
    batches: Iterator[pa.RecordBatch] = iter(table)
    first = next(batches, None)
    if first is None:
        raise OutputError("there is nothing to write, not even the names of the columns")
    return first.schema, chain([first], batches)


def _size_and_digest(path: Path) -> tuple[int, str]:
    """The size and the SHA-256 of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return path.stat().st_size, digest


def _format_json(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _format_readme(table_name: str, conditions: str, *, private: bool | None) -> str:
    stamps = {
        True: "",
        False: "NOT PRIVATE. The noise came from a test: nothing in this folder may be published.\n\n",
        None: f"{NOT_VERIFIED} The counts were measured elsewhere; only their source knows how noisy they are.\n\n",
    }
    stamp = stamps[private]
    drawn = f"Every row was drawn to meet {conditions}: they stand for a part of the table.\n\n" if conditions else ""
    return (
        f"{stamp}{drawn}"
        f"The rows of {table_name} are synthetic: they were drawn from noisy counts, and none stands for a real\n"
        f"person, so use them for what many rows say together. {CERTIFICATE_TEXT_NAME} says what is guaranteed about\n"
        f"the privacy of those whose data was counted ({CERTIFICATE_JSON_NAME} says it to programs), and\n"
        f"{datapackage.DATAPACKAGE_NAME} describes the columns. {SYNOPSIS_NAME} holds the noisy counts themselves, from which\n"
        f"dpsyn generate draws more rows and dpsyn inspect shows what was measured, at no cost to privacy.\n"
    )


# ── Rows that are yet to be drawn → files and folders, never all of them in memory ──


PARTS_FOLDER = "synthetic"
"""The folder of parts in a release folder."""


def is_release_folder(target: str | Path) -> bool:
    """Whether a release folder is meant: a name that ends in a slash, or a folder that is there."""
    return str(target).endswith(("/", os.sep)) or Path(target).is_dir()


def sample_file(target: str | Path, sampler: RowSampler, progress: Progress) -> None:
    """One file, or standard output."""
    write_table(_sample_grouped_batches(sampler, progress), target, synthetic=True)


def sample_release(
    target: str | Path, synopsis: Synopsis, sampler: RowSampler, where: AttributeConditions, progress: Progress
) -> None:
    """A release folder whose rows are one file."""
    conditions = format_conditions(synopsis.schema, where)
    folders.write_release(target, _sample_grouped_batches(sampler, progress), synopsis, conditions=conditions)


def sample_partitioned_release(
    target: str | Path,
    synopsis: Synopsis,
    sampler: RowSampler,
    where: AttributeConditions,
    workers: parallel.WorkerKind,
    progress: Progress,
) -> None:
    """A release folder whose rows are many files."""

    def write_parts(folder: Path) -> list[Path]:
        return parallel.write_parts(
            folder, synopsis, sampler.rows, seed=sampler.seed, where=where, workers=workers, progress=progress
        )

    conditions = format_conditions(synopsis.schema, where)
    folders.write_partitioned_release(
        target, synopsis, PARTS_FOLDER, sampler.empty_table().schema, write_parts, conditions=conditions
    )


def _sample_grouped_batches(sampler: RowSampler, progress: Progress) -> Iterator[pa.RecordBatch]:
    return parallel.group_chunks(sampler, parallel.sample_batches(sampler, progress))
