"""The last entry of each ledger that this account of the computer has seen, stored away from the ledger.

A chain of hashes cannot show that its own end was cut off, or that an older copy of the whole file was put in its
place: both are intact. So the number and the hash of the last entry are also kept in the state folder of the user,
which is not copied, restored or shared together with the ledger. A ledger that lacks an entry which was seen in it is
refused.

The stored head may lag behind the ledger, because it is written after the entry is on disk and other accounts write to
the same ledger. It never leads it. Where it cannot be stored, such as in a container without a home, the ledger works
as well, and ``dpsyn ledger verify`` reports that nothing was remembered.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any

from dpsyn.accounting.hash_chain import LedgerHead
from dpsyn.atomic_files import write_text
from dpsyn.errors import OutputError

STATE_FOLDER_VARIABLE = "DPSYN_STATE_DIR"
"""The environment variable that names another folder, such as one that survives a container."""


def head_path(ledger_id: str) -> Path | None:
    """Where the last entry of a ledger is stored; None for an account without a home, or if the id is not a hash."""
    if not re.fullmatch("[0-9a-f]{64}", ledger_id):
        return None
    folder = _state_folder()
    return folder / "ledgers" / f"{ledger_id[:32]}.json" if folder else None


def load_head(ledger_id: str) -> LedgerHead | None:
    """The last entry of a ledger that was seen; None if there is none, or if it cannot be read."""
    path = head_path(ledger_id)
    try:
        return LedgerHead.from_data(json.loads(path.read_bytes())) if path else None
    except (OSError, ValueError, RecursionError):
        return None


def store_head(ledger_id: str, head: LedgerHead, ledger: Path) -> None:
    """Store the last entry of a ledger, unless a later one is stored or the folder cannot be written."""
    path, stored = head_path(ledger_id), load_head(ledger_id)
    if path is None or (stored and stored.sequence >= head.sequence):
        return
    data: dict[str, Any] = {**head.to_data(), "ledger": str(ledger.absolute())}
    with contextlib.suppress(OSError, OutputError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_text(path, json.dumps(data) + "\n", private=True)


def _state_folder() -> Path | None:
    """The folder of what a program remembers between its runs, by the conventions of the system."""
    if given := os.environ.get(STATE_FOLDER_VARIABLE):
        return Path(given)
    base = Path(os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME", ""))
    if base.is_absolute():
        return base / "dpsyn"
    try:
        return Path.home() / ".local" / "state" / "dpsyn"
    except RuntimeError:  # there is no home
        return None
