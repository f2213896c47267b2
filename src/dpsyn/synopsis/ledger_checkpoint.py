"""What a file records about a ledger, with its numbers: a synopsis is read as a whole, and each number is checked."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

from dpsyn import accounting
from dpsyn.accounting import LedgerCheckpoint
from dpsyn.errors import SynopsisError
from dpsyn.release_files import find_synopsis
from dpsyn.synopsis.synopsis import Synopsis


def read_ledger_checkpoint(path: str | Path) -> LedgerCheckpoint:
    """Read what a certificate (JSON), a synopsis, or the output of ``ledger verify --json`` records about a ledger.

    In a synopsis every number must be an answer that its certificate records, and the attributes of the schema and the
    recodings must be those that it was released with; otherwise the checkpoint has faults. The fitted model is
    post-processing of the numbers, and no hash covers it.

    >>> import tempfile
    >>> from dpsyn import Ledger, measure
    >>> from dpsyn.demo import people, people_schema
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(f"{folder}/ledger.db")
    ...     synopsis = measure(people(rows=500), people_schema(), 1.0, recipe="independent", ledger=ledger)
    ...     synopsis.save(f"{folder}/released.dpsyn")
    ...     ledger.verify([read_ledger_checkpoint(f"{folder}/released.dpsyn")]).faults
    ()

    Args:
        path: the file; a release folder stands for the synopsis in it.
    """
    path = find_synopsis(path)
    checkpoint = accounting.read_ledger_checkpoint(path)
    if not zipfile.is_zipfile(path):
        return checkpoint
    try:
        Synopsis.load(path)
    except SynopsisError as error:
        return replace(checkpoint, faults=(str(error).removeprefix(f"{path} "),))
    return checkpoint
