"""The release folder: everything that is published together, in one place."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsyn.errors import OutputError
from dpsyn.outputs import folder_beside, table_format, write_text
from dpsyn.records import write_table
from dpsyn.synopsis import datapackage, files
from dpsyn.synopsis.guarantee import NOT_VERIFIED, guarantee_data, guarantee_text, is_private
from dpsyn.synopsis.synopsis import Synopsis

SYNOPSIS = f"synopsis{files.SUFFIX}"
CERTIFICATE_DATA = "certificate.json"
CERTIFICATE_TEXT = "certificate.txt"
README = "README.txt"

_TAKEN = {name.casefold() for name in (SYNOPSIS, CERTIFICATE_DATA, CERTIFICATE_TEXT, README, datapackage.NAME)}


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
    _check_name(table_name)
    with folder_beside(Path(folder)) as beside:
        columns, whole = _peeked(table)
        fields = datapackage.table_schema(synopsis.schema, columns)
        write_table(whole, beside / table_name, synthetic=True)
        size, digest = _measured(beside / table_name)
        package = datapackage.package(synopsis.schema.dataset, table_name, fields, size, digest, conditions)
        _write_others(beside, synopsis, package, table_name, conditions)


def write_release_of_parts(
    folder: str | Path,
    synopsis: Synopsis,
    rows_name: str,
    columns: pa.Schema,
    write_parts: Callable[[Path], Sequence[Path]],
    *,
    conditions: str = "",
) -> None:
    """The same for a table of many files; ``write_parts`` writes them into the folder ``rows_name`` of the new one."""
    with folder_beside(Path(folder)) as beside:
        fields = datapackage.table_schema(synopsis.schema, columns)
        (beside / rows_name).mkdir()
        paths = write_parts(beside / rows_name)
        size = sum(path.stat().st_size for path in paths)
        names = [f"{rows_name}/{path.name}" for path in paths]
        package = datapackage.package(synopsis.schema.dataset, names, fields, size, None, conditions)
        _write_others(beside, synopsis, package, f"{rows_name}/", conditions)


def _write_others(folder: Path, synopsis: Synopsis, package: dict[str, Any], table_name: str, conditions: str) -> None:
    """All that belongs to a table."""
    files.save(synopsis, folder / SYNOPSIS)
    write_text(folder / datapackage.NAME, _json(package))
    write_text(folder / CERTIFICATE_DATA, _json(guarantee_data(synopsis.releases)))
    write_text(folder / CERTIFICATE_TEXT, guarantee_text(synopsis.releases))
    write_text(folder / README, _readme(table_name, conditions, private=is_private(synopsis.releases)))


def _check_name(name: str) -> None:
    if name.casefold() in _TAKEN or Path(name).name != name or name.startswith("."):
        raise OutputError(f"{name!r} cannot be the table of a release folder; give a name such as synthetic.csv")
    table_format(name)


def _peeked(table: Iterable[pa.RecordBatch] | pa.Table) -> tuple[pa.Schema, Iterable[pa.RecordBatch] | pa.Table]:
    """The names and types of the columns, and the table as it was."""
    if isinstance(table, pa.Table):
        return table.schema, table
    batches: Iterator[pa.RecordBatch] = iter(table)
    first = next(batches, None)
    if first is None:
        raise OutputError("there is nothing to write, not even the names of the columns")
    return first.schema, chain([first], batches)


def _measured(path: Path) -> tuple[int, str]:
    """The size and the SHA-256 of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return path.stat().st_size, digest


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _readme(table_name: str, conditions: str, *, private: bool | None) -> str:
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
        f"person, so use them for what many rows say together. {CERTIFICATE_TEXT} says what is guaranteed about\n"
        f"the privacy of those whose data was counted ({CERTIFICATE_DATA} says it to programs), and\n"
        f"{datapackage.NAME} describes the columns. {SYNOPSIS} holds the noisy counts themselves, from which\n"
        f"dpsyn generate draws more rows and dpsyn inspect shows what was measured, at no cost to privacy.\n"
    )
