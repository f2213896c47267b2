"""An append-only SQLite file whose entries are chained by hashes.

Entry 1 begins the chain, and its hash identifies the file. Entry n holds the hash of entry n−1, so a changed, reordered
or missing entry is detected by reading. A file that was cut, or rewritten from scratch, can only be detected by
comparing it with a head (number and hash of an entry) that was recorded elsewhere.

Durability: one connection per transaction, a rollback journal and ``synchronous=EXTRA``. When ``open_transaction``
ends, the entry is on disk; a process killed before that leaves the file as it was, rolled back by the next reader. A
write-ahead log would be faster, but it spreads the data over three files, and a copy of one of them would lack charges.

Locks: SQLite locks the file by the means of the system, and ``exclusive_edit`` by a file beside it, which also works on
drives that only pretend to lock, such as some network drives. After each transaction the last entry is read back.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dpsyn.atomic_files import atomic_write, exclusive_edit
from dpsyn.errors import LedgerError, OutputError, describe_os_error
from dpsyn.suggestions import suggest_file

LEDGER_FORMAT = 2
"""The version of the file format."""

BEGIN_KIND = "begin"
"""The kind of the first entry; its random number makes every ledger a different one."""

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

    @classmethod
    def from_data(cls, data: Any) -> LedgerHead:
        """Read a head back from plain data; a ValueError if it is none."""
        sequence, digest = (data.get("sequence"), data.get("hash")) if isinstance(data, dict) else (None, None)
        if type(sequence) is not int or sequence < 1:
            raise ValueError("it does not contain a ledger entry")
        if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
            raise ValueError("it does not contain the hash of a ledger entry")
        return cls(sequence, digest)


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

    def head(self) -> LedgerHead | None:
        """The last entry; None if there is none."""
        last = self.connection.execute("SELECT sequence, hash FROM entries ORDER BY sequence DESC LIMIT 1").fetchone()
        return LedgerHead(*last) if last else None

    def hash_of(self, sequence: int) -> Any:
        """The hash that an entry has in the file; None if there is no such entry."""
        row = self.connection.execute("SELECT hash FROM entries WHERE sequence = ?", (sequence,)).fetchone()
        return row[0] if row else None

    def append(self, dataset: str, run: str, kind: str, data: dict[str, Any]) -> LedgerHead:
        """Add an entry at the end."""
        last = self.head()
        sequence, previous = (last.sequence + 1, last.hash) if last else (1, _GENESIS_HASH)
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        fields = [sequence, time, dataset, run, kind, json.dumps(data, sort_keys=True), previous]
        head = LedgerHead(sequence, hash_entry(fields))
        self.connection.execute(f"INSERT INTO entries ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?)", [*fields, head.hash])
        return head


def create_chain(path: Path) -> LedgerHead:
    """Begin a chain in a new file, whole or not at all; a file that exists is refused."""
    if not path.absolute().parent.is_dir():
        raise LedgerError(
            f"the ledger {path} cannot be written: the folder {path.parent} does not exist; create it, or give another "
            "path"
        )
    with _explain_errors(path, "written"), exclusive_edit(path):
        if os.path.lexists(path):
            raise LedgerError(f"{path} exists already; a ledger is begun once, in a file of its own")
        with atomic_write(path) as temporary, contextlib.closing(_connect(temporary, "rwc")) as connection:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("BEGIN IMMEDIATE")
            for statement in _split_statements(_CREATE_TABLES):
                connection.execute(statement)
            head = LedgerTransaction(connection).append("", "", BEGIN_KIND, {"ledger": secrets.token_hex(32)})
            connection.execute("COMMIT")
        return head


@contextlib.contextmanager
def open_transaction(path: Path) -> Iterator[LedgerTransaction]:
    """An exclusive transaction: it is on disk when the block ends, and leaves no trace if it fails."""
    with _explain_errors(path, "written"):
        _require_file(path)
        with exclusive_edit(path, wait=_LOCK_TIMEOUT):
            with contextlib.closing(_connect(path, "rw")) as connection:
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("BEGIN IMMEDIATE")
                transaction = LedgerTransaction(connection)
                try:
                    _require_ledger(connection, path)
                    yield transaction
                    head = transaction.head()
                except BaseException:
                    with contextlib.suppress(sqlite3.Error):  # SQLite may have rolled back by itself
                        connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT")
            _read_back(path, head)


@contextlib.contextmanager
def open_reading(path: Path) -> Iterator[LedgerTransaction]:
    """All entries as they are at one moment; nothing can be written."""
    with _explain_errors(path, "read"):
        _require_file(path)
        with contextlib.closing(_connect(path, "rw")) as connection:  # not "ro": a crash may have left a rollback to do
            connection.execute("BEGIN")
            _require_ledger(connection, path)
            yield LedgerTransaction(connection)


def _read_back(path: Path, head: LedgerHead | None) -> None:
    """Refuse to go on if the file, opened again, lacks the entry that was just written to it."""
    with contextlib.closing(_connect(path, "rw")) as connection:
        if head and LedgerTransaction(connection).hash_of(head.sequence) != head.hash:
            raise LedgerError(
                f"the ledger {path} lost the entry that was just written to it: the file was replaced meanwhile, or "
                "its drive does not keep what is written. Nothing may be released; keep the ledger on a local drive"
            )


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
            faults.append(f"entry {expected} is missing: entry {entry.sequence!r} follows entry {expected - 1}")
            break
        if not all(isinstance(text, str) for text in (*fields[1:], entry.hash)):
            faults.append(f"entry {expected} is not as DPSyn writes it")
        if entry.previous != previous:
            faults.append(f"entry {expected} does not follow entry {expected - 1}: the chain was cut or reordered")
        if entry.hash != hash_entry(fields):
            faults.append(f"entry {expected} was changed after it was written")
        previous, hashes[expected] = entry.hash, entry.hash
    if not faults and not hashes:
        faults.append("entry 1 is missing: the ledger is empty")
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


def _require_file(path: Path) -> None:
    if path.is_file():
        return
    if os.path.lexists(path):
        raise _not_a_ledger_error(path)
    guess = suggest_file(path)
    correct = f"{guess} Correct" if guess else "; correct"
    raise LedgerError(
        f"there is no ledger {path}{correct} the path, or begin a ledger there with  dpsyn ledger new {path}"
    )


def _require_ledger(connection: sqlite3.Connection, path: Path) -> None:
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
def _explain_errors(path: Path, verb: str) -> Iterator[None]:
    """Turn errors of SQLite and of the operating system into ours."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        if name == "SQLITE_NOTADB":
            raise _not_a_ledger_error(path) from None
        hint = _DAMAGED_HINT if name.startswith("SQLITE_CORRUPT") else _HINTS[verb]
        raise LedgerError(f"the ledger {path} cannot be {verb}: {error}; {hint}") from None
    except (UnicodeDecodeError, OverflowError):  # SQLite keeps texts as they are, also those of its own tables
        raise LedgerError(
            f"the ledger {path} cannot be {verb}: it holds a text that is not UTF-8, or a number that is too large; "
            f"{_DAMAGED_HINT}"
        ) from None
    except OutputError as error:  # of the lock beside it, or of a new file
        raise LedgerError(f"{error}. Nothing was recorded or released") from None
    except OSError as error:
        raise LedgerError(f"the ledger {path} cannot be {verb}: {describe_os_error(error)}; {_HINTS[verb]}") from None


_DAMAGED_HINT = "it is damaged: restore it from a backup, and verify that against the certificates released since"
_HINTS = {
    "written": "nothing was recorded, so nothing may be released; free disk space or allow writing, and try again",
    "read": "allow reading, or wait until no other program uses it",
}
