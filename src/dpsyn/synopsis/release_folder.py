"""The release folder: a synthetic table and everything that is published with it.

Rows can be a table in memory, or sampled straight into the folder, so they are never all in memory.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsyn.atomic_files import atomic_folder, stores_types, table_format, write_text
from dpsyn.encoding import write_table
from dpsyn.encoding.column_types import restore_types
from dpsyn.errors import OutputError, quote_argument
from dpsyn.progress import Progress
from dpsyn.release_files import (
    CARD_NAME,
    CERTIFICATE_JSON_NAME,
    CERTIFICATE_TEXT_NAME,
    CHOICE_JSON_NAME,
    CROISSANT_NAME,
    DATAPACKAGE_NAME,
    OPTIONAL_NAMES,
    PARTS_FOLDER,
    README_NAME,
    RESERVED_NAMES,
    SIGNATURES_NAME,
    SYNOPSIS_NAME,
    VERIFIER_NAME,
)
from dpsyn.sampling import parallel
from dpsyn.sampling.sampler import RowSampler
from dpsyn.schema import AttributeConditions, format_conditions
from dpsyn.signatures import SigningKey, sign_release, verifier_source
from dpsyn.synopsis import datapackage
from dpsyn.synopsis.croissant import describe_dataset
from dpsyn.synopsis.deployment_card import describe_deployment
from dpsyn.synopsis.guarantee import NOT_VERIFIED, guarantee_data, guarantee_text, is_private
from dpsyn.synopsis.replicates import how_to_use_replicates
from dpsyn.synopsis.serialization import synopsis_file
from dpsyn.synopsis.synopsis import Synopsis


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseExtras:
    """What is written into a release folder on request.

    Attributes:
        card: a deployment card (``deployment-card.json``) and Croissant metadata (``croissant.json``).
        verifier: the stand-alone verifier (``verify_release.py``).
        key: signs everything in the folder (``signatures.json``); None does not.
    """

    card: bool = False
    verifier: bool = False
    key: SigningKey | None = None


def add_extras(folder: Path, synopsis: Synopsis, package: dict[str, Any], extras: ReleaseExtras) -> None:
    """Write into a release folder what was asked for; the signature last, because it covers all of it.

    ``package`` is the content of its ``datapackage.json``.
    """
    if extras.card:
        date = datetime.now(UTC).date().isoformat()
        path = package["resources"][0]["path"]
        hashes = [_size_and_digest(folder / name)[1] for name in ([path] if isinstance(path, str) else path)]
        whole = _read_choice(folder)
        card = describe_deployment(synopsis.schema, synopsis.releases, date, whole)
        write_text(folder / CARD_NAME, _format_json(card))
        metadata = describe_dataset(package, hashes, synopsis.releases, date, whole)
        write_text(folder / CROISSANT_NAME, _format_json(metadata))
    if extras.verifier:
        write_text(folder / VERIFIER_NAME, verifier_source())
    if extras.key:
        sign_release(folder, extras.key)


def _read_choice(folder: Path) -> tuple[float, float] | None:
    """The guarantee of all candidates and the choice among them, if the release was chosen."""
    path = folder / CHOICE_JSON_NAME
    if not path.exists():
        return None
    try:
        stated = json.loads(path.read_bytes())
        return float(stated["epsilon"]), float(stated["delta"])
    except (ValueError, LookupError, TypeError):
        raise OutputError(f"{path} is not as DPSyn writes it; choose again, or remove it") from None


def write_release(
    folder: str | Path,
    table: Iterable[pa.RecordBatch] | pa.Table,
    synopsis: Synopsis,
    table_name: str = "synthetic.csv",
    *,
    conditions: str = "",
    escape_formulas: bool = False,
    extras: ReleaseExtras = ReleaseExtras(),
) -> None:
    """Write a synthetic table and everything that is published with it into a new folder.

    It holds the table, the synopsis, the certificates as JSON and as text, a description of the columns
    (``datapackage.json``) and a README; the last two name the ``conditions`` that the rows were sampled under. The
    folder is filled under a temporary name and renamed, so it is never seen half-written. A folder that is not empty
    is refused. ``escape_formulas`` is that of ``write_table``.
    """
    _check_table_name(table_name)
    with atomic_folder(Path(folder)) as temporary:
        columns, rows = _peek_columns(table)
        fields = datapackage.describe_columns(synopsis.schema, columns)
        write_table(rows, temporary / table_name, synthetic=True, escape_formulas=escape_formulas)
        size, digest = _size_and_digest(temporary / table_name)
        package = datapackage.describe_package(synopsis.schema.dataset, table_name, fields, size, digest, conditions)
        formulas = None if table_format(table_name) != "csv" else escape_formulas
        _write_metadata(temporary, synopsis, package, table_name, conditions, extras, formulas)


def write_partitioned_release(
    folder: str | Path,
    synopsis: Synopsis,
    rows_name: str,
    columns: pa.Schema,
    write_parts: Callable[[Path], Sequence[Path]],
    *,
    conditions: str = "",
    extras: ReleaseExtras = ReleaseExtras(),
) -> None:
    """Write a release folder whose table is many files, which ``write_parts`` writes into its folder ``rows_name``."""
    with atomic_folder(Path(folder)) as temporary:
        fields = datapackage.describe_columns(synopsis.schema, columns)
        (temporary / rows_name).mkdir()
        paths = write_parts(temporary / rows_name)
        size = sum(path.stat().st_size for path in paths)
        names = [f"{rows_name}/{path.name}" for path in paths]
        digests = [_size_and_digest(path)[1] for path in paths]
        package = datapackage.describe_package(synopsis.schema.dataset, names, fields, size, digests, conditions)
        _write_metadata(temporary, synopsis, package, f"{rows_name}/", conditions, extras)


def _write_metadata(
    folder: Path,
    synopsis: Synopsis,
    package: dict[str, Any],
    table_name: str,
    conditions: str,
    extras: ReleaseExtras,
    formulas_escaped: bool | None = None,
) -> None:
    """Write everything that is published with a table; ``formulas_escaped`` is None if it is not CSV."""
    synopsis_file.save_synopsis(synopsis, folder / SYNOPSIS_NAME)
    write_text(folder / DATAPACKAGE_NAME, _format_json(package))
    write_text(folder / CERTIFICATE_JSON_NAME, _format_json(guarantee_data(synopsis.releases)))
    write_text(folder / CERTIFICATE_TEXT_NAME, guarantee_text(synopsis.releases))
    readme = _format_readme(table_name, conditions, formulas_escaped, private=is_private(synopsis.releases))
    guidance = how_to_use_replicates(synopsis, SYNOPSIS_NAME)
    readme += _describe_extras(extras)
    write_text(folder / README_NAME, readme + "".join(f"{line}\n" for line in ("", *guidance) if guidance))
    add_extras(folder, synopsis, package, extras)


def _check_table_name(name: str) -> None:
    if (
        name.casefold() in {each.casefold() for each in (*RESERVED_NAMES, *OPTIONAL_NAMES)}
        or Path(name).name != name
        or name.startswith(".")
    ):
        raise OutputError(
            f"{quote_argument(name)} cannot be the table of a release folder; give a name such as synthetic.csv"
        )
    table_format(name)


def _peek_columns(table: Iterable[pa.RecordBatch] | pa.Table) -> tuple[pa.Schema, Iterable[pa.RecordBatch] | pa.Table]:
    """The names and types of the columns, and the unchanged table."""
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


_FORMULAS = {
    None: "",
    False: (
        "\nA spreadsheet takes a text that begins with =, +, - or @ for a formula. Import the columns as text, or\n"
        "have such texts written with an apostrophe before them: dpsyn generate --escape-formulas.\n"
    ),
    True: (
        "\nTexts and names of columns that a spreadsheet would take for a formula have an apostrophe before them:\n"
        "those that begin with =, +, -, @, a tab or a carriage return.\n"
    ),
}
"""What a README states about formulas in a CSV file, by whether they are escaped."""


def _format_readme(table_name: str, conditions: str, formulas_escaped: bool | None, *, private: bool | None) -> str:
    stamps = {
        True: "",
        False: "NOT PRIVATE. The noise came from a test: nothing in this folder may be published.\n\n",
        None: f"{NOT_VERIFIED} The counts come from another system; only their source knows how private they are.\n\n",
    }
    stamp = stamps[private]
    scope = (
        f"Every row was sampled to meet {conditions}: the rows describe a part of the table.\n\n" if conditions else ""
    )
    return (
        f"{stamp}{scope}"
        f"The rows of {table_name} are synthetic: they were sampled from a model of noisy counts. A row may equal a\n"
        f"real one by chance. Use them for statistics over many rows. {CERTIFICATE_TEXT_NAME} states the privacy\n"
        f"guarantee for the people whose data was counted ({CERTIFICATE_JSON_NAME} is the same for programs), and\n"
        f"{DATAPACKAGE_NAME} describes the columns. {SYNOPSIS_NAME} holds the noisy counts themselves:\n"
        f"dpsyn generate samples more rows from it and dpsyn inspect shows what was measured, at no cost to privacy.\n"
        f"{_FORMULAS[formulas_escaped]}"
    )


def _describe_extras(extras: ReleaseExtras) -> str:
    """How to verify a signed release, for its README."""
    if not extras.key:
        return ""
    return (
        f"\n{SIGNATURES_NAME} signs every file. Verify them with the public key of whoever published the release;\n"
        "get it from a source that you trust, not from this folder: dpsyn verify FOLDER --key PUBLICKEY\n"
    )


# ── Rows sampled straight into a file or a folder ────────────────────────────────────────────────────────────


def is_release_folder(target: str | Path) -> bool:
    """Whether a release folder is meant: the name ends in a slash, or is that of an existing folder."""
    return str(target).endswith(("/", os.sep)) or Path(target).is_dir()


def sample_file(
    target: str | Path, synopsis: Synopsis, sampler: RowSampler, progress: Progress, *, escape_formulas: bool = False
) -> None:
    """Sample rows into one file, or to standard output; with the declared types of columns if the format has types."""
    batches = _sample_grouped_batches(sampler, progress)
    if str(target) != "-" and stores_types(target):
        batches = (restore_types(batch, synopsis.schema, synopsis.column_types) for batch in batches)
    write_table(batches, target, synthetic=True, escape_formulas=escape_formulas)


def sample_release(
    target: str | Path,
    synopsis: Synopsis,
    sampler: RowSampler,
    where: AttributeConditions,
    progress: Progress,
    *,
    escape_formulas: bool = False,
    extras: ReleaseExtras = ReleaseExtras(),
) -> None:
    """Sample rows into a release folder as one file."""
    conditions = format_conditions(synopsis.schema, where)
    batches = _sample_grouped_batches(sampler, progress)
    write_release(target, batches, synopsis, conditions=conditions, escape_formulas=escape_formulas, extras=extras)


def sample_partitioned_release(
    target: str | Path,
    synopsis: Synopsis,
    sampler: RowSampler,
    where: AttributeConditions,
    workers: parallel.WorkerKind,
    progress: Progress,
    *,
    extras: ReleaseExtras = ReleaseExtras(),
) -> None:
    """Sample rows into a release folder as many files."""

    def write_parts(folder: Path) -> list[Path]:
        return parallel.write_parts(folder, sampler, workers=workers, progress=progress)

    conditions = format_conditions(synopsis.schema, where)
    columns = sampler.empty_table().schema
    write_partitioned_release(
        target, synopsis, PARTS_FOLDER, columns, write_parts, conditions=conditions, extras=extras
    )


def _sample_grouped_batches(sampler: RowSampler, progress: Progress) -> Iterator[pa.RecordBatch]:
    return parallel.group_chunks(sampler, parallel.sample_batches(sampler, progress))
