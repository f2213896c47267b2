"""An append-only SQLite file whose entries are chained by hashes.

Entry n holds the hash of entry n−1, so a changed, reordered or missing entry is detected by reading. A file that was
cut, or rewritten from scratch, can only be detected by comparing it with a head (number and hash of an entry) that was
recorded elsewhere.

Durability: one connection per transaction, a rollback journal and ``synchronous=EXTRA``. When ``open_transaction``
ends, the entry is on disk; a process killed before that leaves the file as it was, rolled back by the next reader. A
write-ahead log would be faster, but it spreads the data over three files, and a copy of one of them would lack charges.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dpsyn.errors import LedgerError

LEDGER_FORMAT = 2
"""The version of the file format."""

_APPLICATION_ID = 0x44505379  # "DPSy", SQLite's application id
_GENESIS_HASH = "0" * 64
_LOCK_TIMEOUT = 60.0  # seconds to wait for another process
_COLUMNS = "sequence, time, dataset, run, kind, payload, previous, hash"
_CREATE_TABLES = f"""
CREATE TABLE entries (sequence INTEGER PRIMARY KEY, time TEXT NOT NULL, dataset TEXT NOT NULL, run TEXT NOT NULL,
                      kind TEXT NOT NULL, payload TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL UNIQUE);
CREATE INDEX entries_of_run ON entries (run, dataset, kind);
CREATE TRIGGER no_change BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END;
CREATE TRIGGER no_removal BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never removed'); END;
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {LEDGER_FORMAT};
"""


@dataclass(frozen=True, slots=True)
class LedgerHead:
    """The number and the hash of an entry; they fix the whole chain up to it."""

    sequence: int
    hash: str

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"sequence": self.sequence, "hash": self.hash}


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One line of the chain; ``payload`` is JSON text."""

    sequence: int
    time: str
    dataset: str
    run: str
    kind: str
    payload: str
    previous: str
    hash: str

    @property
    def data(self) -> dict[str, Any]:
        """The payload as plain data."""
        data: dict[str, Any] = json.loads(self.payload)
        return data

    @property
    def head(self) -> LedgerHead:
        """The number and the hash of this entry."""
        return LedgerHead(self.sequence, self.hash)


@dataclass(frozen=True, slots=True)
class LedgerTransaction:
    """An open transaction: nobody else can write until it ends."""

    connection: sqlite3.Connection

    def entries(self, run: str | None = None) -> tuple[LedgerEntry, ...]:
        """All entries, or those of one run, in order."""
        where, values = ("", ()) if run is None else ("WHERE run = ?", (run,))
        rows = self.connection.execute(f"SELECT {_COLUMNS} FROM entries {where} ORDER BY sequence", values)
        return tuple(LedgerEntry(*row) for row in rows)

    def count_kinds(self, run: str) -> tuple[str, dict[str, int]]:
        """The dataset of a run and the number of its entries of each kind; fast for any number of entries."""
        query = "SELECT dataset, kind, count(*) FROM entries WHERE run = ? GROUP BY dataset, kind"
        rows = self.connection.execute(query, (run,)).fetchall()
        return (rows[0][0] if rows else ""), {kind: number for _, kind, number in rows}

    def append(self, dataset: str, run: str, kind: str, data: dict[str, Any]) -> LedgerHead:
        """Add an entry at the end."""
        last = self.connection.execute("SELECT sequence, hash FROM entries ORDER BY sequence DESC LIMIT 1").fetchone()
        sequence, previous = (last[0] + 1, last[1]) if last else (1, _GENESIS_HASH)
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        fields = [sequence, time, dataset, run, kind, json.dumps(data, sort_keys=True), previous]
        head = LedgerHead(sequence, hash_entry(fields))
        self.connection.execute(f"INSERT INTO entries ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?)", [*fields, head.hash])
        return head


@contextlib.contextmanager
def open_transaction(path: Path) -> Iterator[LedgerTransaction]:
    """An exclusive transaction: it is on disk when the block ends, and leaves no trace if it fails."""
    with _explain_sqlite_errors(path, "written"), contextlib.closing(_connect(path, "rwc")) as connection:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("BEGIN IMMEDIATE")
        try:
            _initialize(connection, path)
            yield LedgerTransaction(connection)
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # SQLite may have rolled back by itself
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def read_entries(path: Path) -> tuple[LedgerEntry, ...]:
    """All entries of a file."""
    if not path.is_file():
        raise LedgerError(
            f"there is no ledger {path}; dpsyn ledger set-cap creates one, and so does a release with --ledger"
        )
    with _explain_sqlite_errors(path, "read"), contextlib.closing(_connect(path, "rw")) as connection:
        if _read_file_mark(connection) != (_APPLICATION_ID, LEDGER_FORMAT):
            raise _not_a_ledger_error(path)
        return LedgerTransaction(connection).entries()


def hash_entry(fields: Sequence[Any]) -> str:
    """The SHA-256 of an entry's fields up to the hash of the entry before it."""
    return hashlib.sha256(json.dumps(list(fields), default=repr).encode()).hexdigest()


def find_faults(entries: Iterable[LedgerEntry], heads: Iterable[LedgerHead] = ()) -> list[str]:
    """The faults of a chain, in sentences; heads recorded elsewhere must be part of it."""
    faults: list[str] = []
    previous, hashes = _GENESIS_HASH, {}
    for expected, entry in enumerate(entries, start=1):
        fields = [entry.sequence, entry.time, entry.dataset, entry.run, entry.kind, entry.payload, entry.previous]
        if entry.sequence != expected:
            faults.append(f"entry {expected} is missing: entry {entry.sequence} follows entry {expected - 1}")
            break
        if entry.previous != previous:
            faults.append(f"entry {expected} does not follow entry {expected - 1}: the chain was cut or reordered")
        if entry.hash != hash_entry(fields):
            faults.append(f"entry {expected} was changed after it was written")
        previous, hashes[expected] = entry.hash, entry.hash
    for head in heads:
        if hashes.get(head.sequence) != head.hash:
            faults.append(
                f"entry {head.sequence} is not the one that a release recorded: the ledger was cut or rewritten, "
                f"or the release was recorded in another ledger"
            )
    return faults


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    address = f"file:{quote(str(path.absolute()))}?mode={mode}"
    return sqlite3.connect(address, uri=True, timeout=_LOCK_TIMEOUT, isolation_level=None)


def _initialize(connection: sqlite3.Connection, path: Path) -> None:
    """Create the tables of a new file; refuse a file that is not a ledger."""
    if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        for statement in _split_statements(_CREATE_TABLES):
            connection.execute(statement)
    if _read_file_mark(connection) != (_APPLICATION_ID, LEDGER_FORMAT):
        raise _not_a_ledger_error(path)


def _split_statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one, because ``sqlite3.executescript`` would commit first."""
    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _read_file_mark(connection: sqlite3.Connection) -> tuple[int, int]:
    mark = connection.execute("PRAGMA application_id").fetchone()[0]
    return mark, connection.execute("PRAGMA user_version").fetchone()[0]


def _not_a_ledger_error(path: Path) -> LedgerError:
    return LedgerError(
        f"{path} is not a ledger that this version of DPSyn can read (format {LEDGER_FORMAT}); give another file"
    )


@contextlib.contextmanager
def _explain_sqlite_errors(path: Path, verb: str) -> Iterator[None]:
    """Turn SQLite's errors into ours."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        if name == "SQLITE_NOTADB":
            raise _not_a_ledger_error(path) from None
        if not path.absolute().parent.is_dir():
            raise LedgerError(
                f"the ledger {path} cannot be {verb}: the folder {path.parent} does not exist; create it, or give "
                f"another path. Nothing was recorded or released"
            ) from None
        hint = _DAMAGED_HINT if name.startswith("SQLITE_CORRUPT") else _HINTS[verb]
        raise LedgerError(f"the ledger {path} cannot be {verb}: {error}; {hint}") from None


_DAMAGED_HINT = "it is damaged: restore it from a backup, and verify that against the certificates released since"
_HINTS = {
    "written": "nothing was recorded, so nothing may be released; free disk space or allow writing, and try again",
    "read": "allow reading, or wait until no other program uses it",
}
