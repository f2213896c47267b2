"""Synthetic tables as files, folders or standard output."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpsyn
from dpsyn import outputs
from dpsyn.cli import output
from dpsyn.errors import OutputError

if TYPE_CHECKING:
    from dpsyn import Synopsis


def check(target: str, force: bool) -> None:
    """Refuse a place that cannot be written, before anything is paid for."""
    if target == "-":
        return
    if is_folder(target):
        if os.path.isdir(target) and os.listdir(target):
            raise OutputError(f"{target} is a folder with files in it; remove it, or give another name")
    else:
        outputs.table_format(target)
        output.refuse_to_overwrite(target, force)
    outputs.check_writable(Path(target.rstrip("/")))


def write(synopsis: Synopsis, table: Any, target: str, where: dict[str, str] | None = None) -> None:
    """Write an Arrow table of rows that were drawn from a synopsis."""
    if is_folder(target):
        synopsis.write_release(target, table, where=where)
    else:
        dpsyn.write_table(table, target, synthetic=True)


def say_written(target: str) -> None:
    """Say where the rows are, and what else."""
    if is_folder(target):
        output.say(f"Wrote {target}: the rows, the synopsis they were drawn from, and the certificate.")
    else:
        output.say(f"Wrote {target}.")


def numbered(target: str, number: int) -> list[str]:
    """Names for several tables: rows.csv gives rows-1.csv and so on, folder/ gives folder-1/ and so on."""
    if target == "-":
        raise OutputError("several tables do not fit into standard output; give the name of a file")
    slash = target[len(target.rstrip("/")) :]
    path = Path(target)
    stem, dot, suffixes = path.name.partition(".")
    return [f"{path.with_name(f'{stem}-{place}{dot}{suffixes}')}{slash}" for place in range(1, number + 1)]


def is_folder(target: str) -> bool:
    """Whether a release folder is meant: a name that ends in a slash, or a folder that is there."""
    return target.endswith(("/", os.sep)) or Path(target).is_dir()
