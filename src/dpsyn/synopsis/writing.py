"""Rows that are yet to be drawn → files and folders, never all of them in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from dpsyn.progress import Progress
from dpsyn.records import write_table
from dpsyn.schema import where_in_words
from dpsyn.synopsis import folder as folders
from dpsyn.synopsis import sharding
from dpsyn.synopsis.drawing import Drawing
from dpsyn.synopsis.synopsis import Synopsis, Where

ROWS = "synthetic"
"""The folder of parts in a release folder."""


def is_folder(target: str | Path) -> bool:
    """Whether a release folder is meant: a name that ends in a slash, or a folder that is there."""
    return str(target).endswith(("/", os.sep)) or Path(target).is_dir()


def write_file(target: str | Path, drawing: Drawing, progress: Progress) -> None:
    """One file, or standard output."""
    write_table(_batches(drawing, progress), target, synthetic=True)


def write_whole(target: str | Path, synopsis: Synopsis, drawing: Drawing, where: Where, progress: Progress) -> None:
    """A release folder whose rows are one file."""
    conditions = where_in_words(synopsis.schema, where)
    folders.write_release(target, _batches(drawing, progress), synopsis, conditions=conditions)


def write_parted(
    target: str | Path,
    synopsis: Synopsis,
    drawing: Drawing,
    where: Where,
    workers: sharding.Workers,
    progress: Progress,
) -> None:
    """A release folder whose rows are many files."""

    def parts(folder: Path) -> list[Path]:
        return sharding.write_parts(
            folder, synopsis, drawing.rows, seed=drawing.seed, where=where, workers=workers, progress=progress
        )

    conditions = where_in_words(synopsis.schema, where)
    folders.write_release_of_parts(target, synopsis, ROWS, drawing.no_rows().schema, parts, conditions=conditions)


def _batches(drawing: Drawing, progress: Progress) -> Iterator[pa.RecordBatch]:
    return sharding.grouped(drawing, sharding.batches(drawing, progress))
