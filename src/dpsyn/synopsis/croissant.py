"""Croissant metadata (MLCommons, version 1.1): the description by which catalogs and libraries find and load a table.

It is made from ``datapackage.json`` and the guarantee, so it holds nothing that these do not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dpsyn.accounting.exact_numbers import format_short
from dpsyn.inference.measurements import Release

VERSION = "http://mlcommons.org/croissant/1.1"
_RESPONSIBLE_AI = "http://mlcommons.org/croissant/RAI/1.0"

_OWN_TERMS = (
    *("arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field", "fileProperty"),
    *(
        "fileObject",
        "fileSet",
        "format",
        "includes",
        "isArray",
        "isLiveDataset",
        "jsonPath",
        "key",
        "md5",
        "parentField",
        "path",
    ),
    *("recordSet", "references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField"),
    *("transform",),
)
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "name": {"@container": "@language"},
    "description": {"@container": "@language"},
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in _OWN_TERMS},
}
"""The JSON-LD context that the specification asks for."""

_TYPES = {
    "boolean": "sc:Boolean",
    "integer": "sc:Integer",
    "number": "sc:Float",
    "date": "sc:Date",
    "datetime": "sc:DateTime",
    "time": "sc:Time",
}


def describe_dataset(
    package: Mapping[str, Any],
    hashes: Sequence[str],
    releases: Sequence[Release],
    date: str,
    whole: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """The content of ``croissant.json``, as plain data.

    Args:
        package: the content of ``datapackage.json``.
        hashes: the SHA-256 of each of the table's files.
        releases: the releases that the rows are sampled from.
        date: when the release was made, such as ``2026-11-18``.
        whole: the ε and δ of all candidates and the choice among them, if the release was chosen.
    """
    resource = package["resources"][0]
    paths = [resource["path"]] if isinstance(resource["path"], str) else list(resource["path"])
    files = [
        {
            "@type": "cr:FileObject",
            "@id": path,
            "name": path,
            "contentUrl": path,
            "encodingFormat": resource["mediatype"],
            "sha256": digest,
        }
        for path, digest in zip(paths, hashes, strict=True)
    ]
    if len(files) == 1:
        files[0]["contentSize"] = f"{resource['bytes']} B"
        source, sets = {"fileObject": {"@id": paths[0]}}, []
    else:
        source, sets = {"fileSet": {"@id": "rows"}}, [_describe_file_set(paths, resource["mediatype"])]
    budgets = [each.certificate.account.budget for each in releases if each.certificate]
    stated = [whole] if whole else [(float(budget.epsilon), float(budget.delta)) for budget in budgets]
    guarantees = [f"({epsilon:g}, {format_short(delta)})" for epsilon, delta in stated]
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": [VERSION, _RESPONSIBLE_AI],
        "name": package["name"],
        "description": package["description"],
        "datePublished": date,
        "version": "1.0.0",
        "isLiveDataset": False,
        "distribution": [*files, *sets],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "rows-of-table",
                "name": "rows-of-table",
                "description": "Synthetic rows.",
                "field": _describe_fields(resource["schema"]["fields"], source),
            }
        ],
        "rai:hasSyntheticData": True,
        "rai:dataCollection": "Rows were sampled from a model of noisy counts of a private table; none was collected.",
        "rai:personalSensitiveInformation": (
            "The counts are differentially private"
            + (f" with (ε, δ) = {', '.join(guarantees)}" if guarantees else "")
            + "; certificate.txt states for whom. A row may equal a real one by chance."
        ),
        "rai:dataLimitations": "Statistics that were not measured may be far from those of the private table.",
    }


def _describe_file_set(paths: Sequence[str], media_type: str) -> dict[str, Any]:
    folder, suffix = paths[0].split("/")[0], paths[0].rsplit(".", 1)[-1]
    return {
        "@type": "cr:FileSet",
        "@id": "rows",
        "name": "rows",
        "includes": f"{folder}/*.{suffix}",
        "encodingFormat": media_type,
    }


def _describe_fields(fields: Sequence[Mapping[str, Any]], source: Mapping[str, Any]) -> list[dict[str, Any]]:
    described: list[dict[str, Any]] = []
    names: set[str] = set()
    for number, field in enumerate(fields, start=1):
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", field["name"]) or "column"
        name = plain if plain not in names else f"{plain}-{number}"
        names.add(name)
        described.append(
            {
                "@type": "cr:Field",
                "@id": f"rows-of-table/{name}",
                "name": name,
                "description": field.get("description", field["name"]),
                "dataType": _TYPES.get(field["type"], "sc:Text"),
                "source": {**source, "extract": {"column": field["name"]}},
            }
        )
    return described
