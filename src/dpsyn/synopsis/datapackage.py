"""The description of a synthetic table for other programs: a Frictionless data package, version 1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dpsyn.atomic_files import table_format
from dpsyn.schema import (
    AnyAttribute,
    Categorical,
    Datetime,
    Identifier,
    Integer,
    Ordinal,
    Real,
    Schema,
    Time,
    canonical_text,
)

"""The name of the file in the standard."""

_MEDIA_TYPES = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.file",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "sav": "application/x-spss-sav",
    "dta": "application/x-stata-dta",
}
_DIALECT = {"delimiter": ",", "lineTerminator": "\n", "quoteChar": '"', "doubleQuote": True, "header": True}
_TIME_FORMATS = {"s": "%Y-%m-%d %H:%M:%S", "ms": "%Y-%m-%d %H:%M:%S.%f", "us": "%Y-%m-%d %H:%M:%S.%f"}
"""The format of timestamps in a text file, by unit."""

_CLOCK_FORMATS = {"s": "%H:%M:%S", "ms": "%H:%M:%S.%f", "us": "%H:%M:%S.%f"}
"""The format of times of day."""


def describe_package(
    dataset: str,
    path: str | Sequence[str],
    fields: dict[str, Any],
    size: int,
    digest: str | Sequence[str],
    conditions: str = "",
) -> dict[str, Any]:
    """The content of ``datapackage.json`` for one table, as plain data.

    Args:
        dataset: the name of the dataset; may be empty.
        path: the name of the table's file, or of its files in the order of rows.
        fields: the description of its columns, from ``describe_columns``.
        size: the number of bytes.
        digest: their SHA-256, or that of each file. The standard has a hash of one file only, so those of several are
            in a property of their own, ``hashes``.
        conditions: the conditions that every row was sampled to meet, as text.
    """
    first = path if isinstance(path, str) else path[0]
    kind = table_format(first)
    tabular = "tabular-" if kind == "csv" else ""  # in the standard no other format is tabular
    text = {"encoding": "utf-8", "dialect": _DIALECT} if kind == "csv" else {}
    return {
        "profile": f"{tabular}data-package",
        "name": _slug(dataset) or "synthetic-table",
        "description": "Synthetic rows, sampled by DPSyn from a model of noisy counts. A row may equal a real one by "
        "chance." + (f" All of them were sampled to meet {conditions}." if conditions else ""),
        "resources": [
            {
                "profile": f"{tabular}data-resource",
                "name": _slug(re.split("[./]", first)[0]) or "table",
                "path": path if isinstance(path, str) else list(path),
                "format": kind,
                "mediatype": _MEDIA_TYPES[kind],
                **({"compression": "gz"} if first.lower().endswith(".gz") else {}),
                **text,
                "bytes": size,
                **(
                    {"hash": f"sha256:{digest}"}
                    if isinstance(digest, str)
                    else {"hashes": [f"sha256:{each}" for each in digest]}
                ),
                "schema": fields,
            }
        ],
    }


def describe_columns(schema: Schema, table: pa.Schema) -> dict[str, Any]:
    """The fields of a table: their types and the domains of their values."""
    fields = [_describe_field(schema[column.name], column.type) for column in table]
    missing = any(schema[name].has_missing for name in table.names)
    return {"fields": fields, "missingValues": [""] if missing else []}


def _describe_field(attribute: AnyAttribute, kind: pa.DataType) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": attribute.name, **_describe_type(kind)}
    if attribute.description:
        entry["description"] = attribute.description
    if isinstance(attribute, Ordinal):
        entry["categoriesOrdered"] = True
    constraints = _describe_domain(attribute, kind)
    if constraints:
        entry["constraints"] = constraints
    return entry


def _describe_type(kind: pa.DataType) -> dict[str, str]:
    if pa.types.is_boolean(kind):
        return {"type": "boolean"}
    if pa.types.is_integer(kind):
        return {"type": "integer"}
    if pa.types.is_floating(kind):
        return {"type": "number"}
    if pa.types.is_date(kind):
        return {"type": "date"}
    if pa.types.is_timestamp(kind):
        return {"type": "datetime", "format": _TIME_FORMATS[kind.unit]}
    if pa.types.is_time(kind):
        return {"type": "time", "format": _CLOCK_FORMATS[kind.unit]}
    return {"type": "string"}


def _describe_domain(attribute: AnyAttribute, kind: pa.DataType) -> dict[str, Any]:
    match attribute:
        case Identifier():
            return {"required": True, "unique": True}
        case Categorical():
            domain: dict[str, Any] = {"enum": [_typed_value(value, kind) for value in attribute.all_values()]}
        case Integer() | Real():
            domain = {"minimum": attribute.low, "maximum": attribute.high}
        case Datetime():
            first, last = attribute.values_at(np.array([0, attribute.steps - 1]))
            domain = {"minimum": _format_instant(first, kind), "maximum": _format_instant(last, kind)}
        case Time():
            ends = pa.array(attribute.micros_at(np.array([0, attribute.steps - 1])), pa.time64("us"))
            first, last = ends.cast(kind, safe=False).cast(pa.string()).to_pylist()
            domain = {"minimum": first, "maximum": last}
        case _:
            domain = {}
    reads_as_missing = "" in domain.get("enum", ())  # in a text file an empty text looks like an empty cell
    return domain if attribute.has_missing or reads_as_missing else {"required": True, **domain}


def _typed_value(value: Any, kind: pa.DataType) -> Any:
    """A value of a list, in the type of its column."""
    if pa.types.is_integer(kind):
        return int(value)
    return float(value) if pa.types.is_floating(kind) else canonical_text(value)


def _format_instant(instant: np.datetime64, kind: pa.DataType) -> str:
    """A date or time as it is written in a text file."""
    unit = "D" if pa.types.is_date(kind) else kind.unit
    return str(instant.astype(f"datetime64[{unit}]")).replace("T", " ")


def _slug(name: str) -> str:
    """The name in the characters that the standard allows."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")
