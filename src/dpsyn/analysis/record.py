"""What replicates are: how many, of how many rows, and what differs between them.

It travels with them: as metadata of each table, and as a small JSON file beside tables that are files, so that results
from any program can be pooled knowing it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from dpsyn.atomic_files import write_text
from dpsyn.errors import SourceError, UserError, describe_os_error, quote_argument
from dpsyn.inference.redraw import Uncertainty

METADATA_KEY = "dpsyn.replicate"
"""Where a table says which replicate it is: a key of the metadata of an Arrow schema, or of ``attrs`` of pandas."""

RECORD_FORMAT = 1
"""The version of the file."""

MAX_RECORD_BYTES = 10_000_000
"""A larger file is not one of these; one with the names of a hundred thousand tables is smaller."""


class ReplicatesRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What replicates are.

    Attributes:
        count: the number of tables.
        rows: the number of rows of each.
        uncertainty: what differs between them: ``all``, ``noise`` or ``rows``.
        private_rows: the estimated number of private rows that they describe; 0 if it is not known.
        rows_per_unit: the largest number of rows of one privacy unit.
        seed: the seed that they were drawn with.
        conditions: the conditions that all rows meet, as text.
        synopsis: the SHA-256 of the synopsis file.
        tables: the names of the files, in order.
    """

    count: int
    rows: int
    uncertainty: Uncertainty
    private_rows: float = 0.0
    rows_per_unit: int = 1
    seed: int | None = None
    conditions: str = ""
    synopsis: str = ""
    tables: tuple[str, ...] = ()

    def require_noise(self) -> None:
        """Refuse replicates that share one privacy noise: their differences do not show it."""
        if self.uncertainty == "rows":
            raise UserError(
                'these replicates differ by the sampling of rows alone (uncertainty "rows"): all of them have the same '
                "privacy noise, so intervals from them would be far too short. Draw them again with uncertainty all, "
                "or noise for conclusions about the private rows themselves"
            )

    @property
    def sampling_factor(self) -> float | None:
        """What a variance that an analysis of one table reports is multiplied by for that of the private table.

        It is the ratio of the numbers of rows, times the rows of a privacy unit, because those may be alike. 0 if the
        private rows are the population; None if the number of private rows is not known.
        """
        if self.uncertainty == "noise":
            return 0.0
        return self.rows / self.private_rows * self.rows_per_unit if self.private_rows > 0 else None

    def save(self, path: str | Path) -> None:
        """Write the file beside the tables."""
        data = {"dpsyn_replicates": RECORD_FORMAT, **msgspec.to_builtins(self)}
        write_text(Path(path), json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def load_record(path: str | Path) -> ReplicatesRecord:
    """Read the file that ``dpsyn generate --replicates`` writes beside the tables."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_RECORD_BYTES + 1)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {describe_os_error(error)}") from None
    advice = "give the file …-replicates.json that dpsyn generate --replicates wrote beside the tables"
    try:
        data = msgspec.json.decode(content) if len(content) <= MAX_RECORD_BYTES else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        data = None
    if not isinstance(data, dict) or "dpsyn_replicates" not in data:
        raise SourceError(f"{path} does not describe replicates; {advice}")
    if data["dpsyn_replicates"] != RECORD_FORMAT:
        raise SourceError(f"{path} was written by a newer version of DPSyn; install that version")
    try:
        return _convert(data)
    except msgspec.ValidationError as error:
        raise SourceError(f"{path} is damaged: {error}; {advice}") from None


def find_record(source: Any) -> ReplicatesRecord | None:
    """What an object says about the replicates that it is or comes from; None if it says nothing.

    Replicates know it; tables have it as metadata. Results of pandas and statsmodels may keep the metadata of the table
    that they were computed from.
    """
    if isinstance(source, ReplicatesRecord):
        return source
    found = getattr(source, "record", None)
    if isinstance(found, ReplicatesRecord):
        return found
    return _parse_metadata(_find_metadata(source))


def require_record(source: Any) -> ReplicatesRecord:
    """The record of replicates, given as what ``pool`` takes: the replicates, tables of them, or the file."""
    if isinstance(source, str | Path):
        return load_record(source)
    if isinstance(source, list | tuple) and source:
        records = [require_record(each) for each in source]
        kinds = {record.uncertainty for record in records}
        if len(kinds) > 1:
            raise UserError(f"the replicates have different uncertainty: {', '.join(sorted(kinds))}; draw all alike")
        return records[0]
    found = find_record(source)
    if found is None:
        raise UserError(
            f"replicates is {quote_argument(source)}; give what synopsis.replicates() returns, its tables, or the file "
            "…-replicates.json"
        )
    return found


def _find_metadata(source: Any) -> Any:
    """The metadata of an Arrow table, of a frame or series of pandas, or of the frame behind a fitted model."""
    metadata = getattr(getattr(source, "schema", None), "metadata", None)
    if isinstance(metadata, Mapping):
        return metadata.get(METADATA_KEY.encode())
    data = getattr(getattr(source, "model", None), "data", None)
    for each in (source, getattr(data, "frame", None), getattr(data, "orig_endog", None)):
        attributes = getattr(each, "attrs", None)
        if isinstance(attributes, Mapping) and METADATA_KEY in attributes:
            return attributes[METADATA_KEY]
    return None


def _parse_metadata(found: Any) -> ReplicatesRecord | None:
    try:
        data = msgspec.json.decode(found) if isinstance(found, bytes | str) else found
        return _convert({"count": data["of"], **data}) if isinstance(data, Mapping) else None
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError):
        return None


def _convert(data: Mapping[str, Any]) -> ReplicatesRecord:
    record = msgspec.convert({**data}, ReplicatesRecord, strict=False)
    if record.count < 1 or record.rows < 0 or record.private_rows < 0 or record.rows_per_unit < 1:
        raise msgspec.ValidationError("a number is negative or zero")
    return record
