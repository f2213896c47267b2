"""The files of a release folder, and how to find its synopsis and its table.

Wherever a synopsis or a table is read, a release folder stands for the one that it holds.
"""

from __future__ import annotations

import json
from pathlib import Path

from dpsyn.atomic_files import is_table_name
from dpsyn.errors import SourceError
from dpsyn.suggestions import format_names

SYNOPSIS_NAME = "synopsis.dpsyn"
CERTIFICATE_JSON_NAME = "certificate.json"
CERTIFICATE_TEXT_NAME = "certificate.txt"
DATAPACKAGE_NAME = "datapackage.json"
README_NAME = "README.txt"
SIGNATURES_NAME = "signatures.json"
CARD_NAME = "deployment-card.json"
CROISSANT_NAME = "croissant.json"
CHOICE_JSON_NAME, CHOICE_TEXT_NAME = "choice.json", "choice.txt"
VERIFIER_NAME = "verify_release.py"
PARTS_FOLDER = "synthetic"
"""The folder of a table of many files, in the release folder."""

RESERVED_NAMES = (SYNOPSIS_NAME, CERTIFICATE_JSON_NAME, CERTIFICATE_TEXT_NAME, DATAPACKAGE_NAME, README_NAME)
"""What every release folder holds besides its table."""

OPTIONAL_NAMES = (SIGNATURES_NAME, CARD_NAME, CROISSANT_NAME, VERIFIER_NAME, CHOICE_JSON_NAME, CHOICE_TEXT_NAME)
"""What a release folder holds if it was asked for, or if it was chosen among candidates."""


def is_release(path: str | Path) -> bool:
    """Whether a path is a folder that DPSyn has written as a release."""
    return all((Path(path) / name).is_file() for name in (SYNOPSIS_NAME, CERTIFICATE_JSON_NAME))


def find_synopsis(path: str | Path) -> Path:
    """The synopsis of a release folder; any other path as it is."""
    return Path(path) / SYNOPSIS_NAME if is_release(path) else Path(path)


def find_table(path: str | Path) -> Path:
    """The synthetic table of a release folder; any other path as it is."""
    if not is_release(path):
        return Path(path)
    tables = [each for each in sorted(Path(path).iterdir()) if _is_table(each)]
    if len(tables) != 1:
        held = f"several tables: {format_names([each.name for each in tables])}" if tables else "no table"
        raise SourceError(f"the release folder {path} holds {held}; give the path of the table")
    return tables[0]


def find_run(journal: str | Path) -> str:
    """The name of the run whose journal this is, by which its ledger knows it; empty if it does not say."""
    try:
        with open(journal, "rb") as file:
            header = json.loads(file.readline().partition(b" ")[2])
    except (OSError, ValueError):
        return ""
    return str(header.get("run", "")) if isinstance(header, dict) else ""


def _is_table(path: Path) -> bool:
    return path.name == PARTS_FOLDER if path.is_dir() else is_table_name(path.name)
