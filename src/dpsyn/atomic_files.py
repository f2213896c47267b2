"""Atomic files: a result is written to a temporary file and renamed, so no partial result is ever visible."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import os
import secrets
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from dpsyn.errors import MissingExtraError, OutputError, describe_os_error, quote_argument

MAX_LOCK_WAIT = 30.0
"""Seconds that an edit of a file waits for other edits. One edit takes a second if the file is very large."""

_WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Errors that can only come from writing."""


@contextlib.contextmanager
def atomic_write(path: Path, *, private: bool = False) -> Iterator[Path]:
    """A temporary path in the same folder; it becomes ``path`` if the block succeeds and is removed if not.

    Links are followed. A device such as ``/dev/null`` is refused rather than replaced by a file. Errors in the block
    that do not concern this file, such as errors from reading another one, are raised unchanged.
    """
    path = _resolve_file(path)
    temporary = path.with_name(f".{path.name[:50]}.{secrets.token_hex(4)}.partial")
    try:
        try:
            yield temporary
        except OSError as error:
            if temporary.name in str(error) or error.errno in _WRITE_ERRORS:
                raise _unwritable_error(path, error) from None
            raise
        _replace_file(temporary, path, private=private)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder next to ``path``; it becomes ``path`` if the block succeeds and is removed if not.

    A folder that is not empty is refused; an empty one is replaced.
    """
    path = _resolve_folder(path)
    temporary = path.with_name(f".{path.name[:50]}.{secrets.token_hex(4)}.partial")
    try:
        with _translate_os_errors(path):
            temporary.mkdir()
        yield temporary
        with _translate_os_errors(path):
            for file in temporary.rglob("*"):
                sync(file)
            sync(temporary)
            if path.is_dir():
                path.rmdir()  # it is empty; not every system can rename a folder to an existing one
            os.rename(temporary, path)
            sync(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_text(path: Path, text: str, *, private: bool = False) -> None:
    """Write a text file in UTF-8 with plain newlines; a new private file can be read by its owner only.

    A private file that replaces another keeps the permissions of owner and group. Permissions of everybody, which the
    older file may have had because it was public, are removed.
    """
    with atomic_write(path, private=private) as temporary:
        try:
            temporary.touch(
                0o600 if private or path.exists() else 0o666
            )  # nobody else can read the file while it is written
            temporary.write_bytes(text.encode())
        except OSError as error:
            raise _unwritable_error(path, error) from None


@contextlib.contextmanager
def exclusive_edit(path: Path, *, wait: float | None = None) -> Iterator[None]:
    """Hold an exclusive lock on a file while editing it, across threads and processes.

    The lock is a file next to it, which every system can create exactly once. Links to one file share a lock. It names
    its process, so that the lock of a process of this computer that was killed is removed by the next one; a process
    that has got its number since then is told apart by the time of its start. ``wait`` is how many seconds other
    editors may take, by default ``MAX_LOCK_WAIT``.
    """
    real = Path(os.path.realpath(path))
    lock = real.with_name(f".{real.name[:50]}.lock")
    _acquire_lock(lock, path, MAX_LOCK_WAIT if wait is None else wait)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def lock_while_open(file: BinaryIO) -> bool:
    """Lock a file while it is open, and return whether that was possible; False if another process has locked it.

    The operating system unlocks it when the process ends in any way.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(1 << 40)  # a byte that nobody reads: on Windows a lock also excludes readers
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            file.seek(0)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _acquire_lock(lock: Path, path: Path, wait: float) -> None:
    """Create a lock file, after waiting for other editors to remove theirs."""
    end = time.monotonic() + wait
    while True:
        try:
            _create_lock(lock)
            return
        except OSError as error:
            # Windows reports "denied" while a lock that was just removed is still open somewhere
            if not isinstance(error, FileExistsError) and not (os.name == "nt" and isinstance(error, PermissionError)):
                raise _unwritable_error(path, error) from None
        owner = _read_owner(lock)
        if owner and owner.is_gone() and _remove_lock_of(owner, lock):
            continue
        if time.monotonic() > end:
            raise OutputError(_describe_waiting(path, lock, owner))
        time.sleep(0.01)


def _create_lock(lock: Path) -> None:
    """Create a lock file that names this process; a FileExistsError if there is one.

    It is linked when it is complete, so a process that is killed never leaves a lock without a name. Where there are no
    links, and on a full disk, it is created first.
    """
    complete = lock.with_name(f"{lock.name}.{secrets.token_hex(4)}")
    try:
        complete.write_text(_LockOwner.this_process().to_text(), "utf-8")
        os.link(complete, lock)
        return
    except FileExistsError:
        raise
    except OSError:
        descriptor = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    finally:
        with contextlib.suppress(OSError):
            complete.unlink(missing_ok=True)
    with contextlib.suppress(OSError), open(descriptor, "w", encoding="utf-8") as file:
        file.write(_LockOwner.this_process().to_text())


@dataclass(frozen=True, slots=True)
class _LockOwner:
    """What a lock file says about the process that holds it.

    Attributes:
        process: the number of the process.
        start: when it started, which tells it from a later process with the same number; ``-`` if it is not known.
        token: a random word, so that no two locks are the same.
        computer: the name of its computer.
    """

    process: int
    start: str
    token: str
    computer: str

    @classmethod
    def this_process(cls) -> _LockOwner:
        return cls(os.getpid(), _start_of_process(os.getpid()), secrets.token_hex(8), socket.gethostname())

    def to_text(self) -> str:
        return f"{self.process} {self.start} {self.token} {self.computer}"

    def is_gone(self) -> bool:
        """Whether the process was one of this computer and has ended; only POSIX systems can tell."""
        if os.name != "posix" or self.computer != socket.gethostname():
            return False
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except (OSError, OverflowError):  # of another user, or not a number of a process
            pass
        return "-" not in (self.start, now := _start_of_process(self.process)) and now != self.start


def _start_of_process(process: int) -> str:
    """When a process started, counted from the start of the computer, which is named, too; ``-`` if unknown."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip()
        return f"{boot}/{fields[19]}"
    except (OSError, IndexError, ValueError):  # there is no such process, or no /proc
        return "-"


def _read_owner(lock: Path) -> _LockOwner | None:
    """Who holds a lock; None if it is gone, being written, or not ours."""
    try:
        process, start, token, computer = lock.read_text("utf-8").split(" ", 3)
        return _LockOwner(int(process), start, token, computer) if token.isalnum() else None
    except (OSError, ValueError):
        return None


def _remove_lock_of(owner: _LockOwner, lock: Path) -> bool:
    """Remove the lock of a process that is gone, and nobody else's; False if another process is about to do it.

    Several processes may wait for the same lock, and one that is slow must not remove the lock that a faster one has
    taken since. So only the process that creates the claim to this one lock may remove it, and it looks again first.
    """
    claim = lock.with_name(f"{lock.name}.{owner.token[:32]}.claim")
    try:
        os.close(os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except OSError:
        return False
    try:
        if _read_owner(lock) == owner:
            lock.unlink(missing_ok=True)
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            claim.unlink(missing_ok=True)
    return True


def _describe_waiting(path: Path, lock: Path, owner: _LockOwner | None) -> str:
    if owner is None:
        return f"{path} is being edited by another command; if there is no such command, remove {lock}"
    where = "this computer" if owner.computer == socket.gethostname() else f"the computer {owner.computer[:100]!r}"
    return (
        f"{path} is being edited by process {owner.process} on {where}; wait until it has ended. If there is no such "
        f"process, such as after that computer was switched off or a container was removed, remove {lock}"
    )


def check_writable(path: Path) -> None:
    """Refuse a path that cannot be written, before any work is done for it."""
    resolved = _resolve_file(path)
    trial = resolved.with_name(f".{resolved.name[:50]}.{secrets.token_hex(4)}.trial")
    try:
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise _unwritable_error(path, error) from None


def table_format(path: str | Path) -> str:
    """The table format of a suffix: ``csv``, ``parquet``, ``arrow``, ``xlsx``, ``sav`` or ``dta``; also of .csv.gz.

    A format whose library is not installed is refused, so that nothing is spent on a table that cannot be written.
    """
    kind = _find_format(path)
    if kind is not None:
        for library in _TABLE_LIBRARIES.get(kind, ()):
            if importlib.util.find_spec(library) is None:
                raise MissingExtraError(library, "office", f"writing {kind} files")
        return kind
    if Path(path).name.lower().endswith((".sas7bdat", ".xpt", ".xls", ".ods", ".zsav")):
        raise OutputError(f"{path}: this format is read but not written; use .csv, .parquet, .xlsx, .sav or .dta")
    raise OutputError(
        f"{path}: its suffix is not that of a table; use .csv, .csv.gz, .parquet, .arrow, .xlsx, .sav or .dta"
    )


def stores_types(path: str | Path) -> bool:
    """Whether the format of a table's suffix stores the type of each column as Arrow has it."""
    return table_format(path) in ("parquet", "arrow")


def is_table_name(path: str | Path) -> bool:
    """Whether the suffix of a path is that of a table that DPSyn writes."""
    return _find_format(path) is not None


def _find_format(path: str | Path) -> str | None:
    name = Path(path).name.lower()
    return next((kind for suffixes, kind in _TABLE_FORMATS.items() if name.endswith(suffixes)), None)


_TABLE_FORMATS = {
    (".csv", ".csv.gz"): "csv",
    (".parquet", ".pq"): "parquet",
    (".arrow", ".feather", ".ipc"): "arrow",
    (".xlsx",): "xlsx",
    (".sav",): "sav",
    (".dta",): "dta",
}
_TABLE_LIBRARIES = {"xlsx": ("xlsxwriter",), "sav": ("pyreadstat", "polars"), "dta": ("pyreadstat", "polars")}


def _resolve_file(path: Path) -> Path:
    """The path of a result, with links followed; refused if it cannot be a file."""
    if "\0" in str(path):
        raise OutputError(f"{quote_argument(path)} cannot be written: no file has such a name")
    try:
        path = Path(os.path.realpath(path)) if path.is_symlink() else path
        if path.is_dir():
            raise OutputError(f"{path} is a folder; give the name of a file in it")
        if path.exists() and not path.is_file():
            raise OutputError(f"{path} is a device or a pipe; give the name of a file")
        if not path.parent.is_dir():
            raise OutputError(f"{path} cannot be written: there is no folder {path.parent}")
    except OSError as error:  # such as a name that is too long
        raise _unwritable_error(path, error) from None
    return path


def _resolve_folder(path: Path) -> Path:
    """The path of a new folder, with links followed; refused if anything there would be lost."""
    with _translate_os_errors(path):
        path = Path(os.path.realpath(path))
        if path.is_dir() and any(path.iterdir()):
            raise OutputError(f"{path} is not empty; give the name of a new folder")
        if path.exists() and not path.is_dir():
            raise OutputError(f"{path} is a file; give the name of a new folder")
        if not path.parent.is_dir():
            raise OutputError(f"{path} cannot be created: there is no folder {path.parent}")
    return path


@contextlib.contextmanager
def _translate_os_errors(path: Path) -> Iterator[None]:
    """Turn errors of the operating system about a path into OutputErrors."""
    try:
        yield
    except OSError as error:
        raise _unwritable_error(path, error) from None


def _replace_file(temporary: Path, path: Path, *, private: bool) -> None:
    try:
        if path.exists():
            shutil.copymode(path, temporary)  # the new file gets the permissions of the old one
            if private:
                temporary.chmod(path.stat().st_mode & 0o770)
        sync(temporary)
        os.replace(temporary, path)
        sync(path.parent)
    except OSError as error:
        raise _unwritable_error(path, error) from None


def sync(path: Path) -> None:
    """Make sure that a file, or what a folder lists, survives a power failure.

    Results are synced before the journal of their run is removed, so at any moment one of them is on disk. Windows
    cannot sync folders and keeps track of names by itself.
    """
    if os.name != "posix" and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable_error(path: Path, error: OSError) -> OutputError:
    return OutputError(f"{path} cannot be written: {describe_os_error(error)}")
