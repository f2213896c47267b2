"""Results are written beside their place and renamed, so that a half-written one is never seen."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from dpsyn.errors import OutputError, describe_os_error

MAX_LOCK_WAIT = 30.0
"""Seconds that one edit of a file waits for others; an edit takes a second where the file is very large."""

_WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Errors that only writing can have."""


@contextlib.contextmanager
def atomic_write(path: Path, *, private: bool = False) -> Iterator[Path]:
    """A temporary path in the same folder; it becomes ``path`` if the block succeeds and vanishes if not.

    A link is followed. What is no file, such as ``/dev/null``, is refused rather than replaced by one. Errors of
    the block that are not about this file, such as those of reading another one, stay as they are.
    """
    path = _resolve_file(path)
    beside = path.with_name(f".{path.name[:50]}.{secrets.token_hex(4)}.partial")
    try:
        try:
            yield beside
        except OSError as error:
            if beside.name in str(error) or error.errno in _WRITE_ERRORS:
                raise _unwritable_error(path, error) from None
            raise
        _replace_file(beside, path, private=private)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder in the same place; it becomes ``path`` if the block succeeds and vanishes if not.

    A folder that holds something is refused, and an empty one is filled by taking its place.
    """
    path = _resolve_folder(path)
    beside = path.with_name(f".{path.name[:50]}.{secrets.token_hex(4)}.partial")
    try:
        with _translate_os_errors(path):
            beside.mkdir()
        yield beside
        with _translate_os_errors(path):
            if path.is_dir():
                path.rmdir()  # it is empty, and not every system lets a folder take the place of one
            os.rename(beside, path)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def write_text(path: Path, text: str, *, private: bool = False) -> None:
    """Write a text file in UTF-8 with plain newlines; a new private one can be read by its owner only.

    One that takes the place of another keeps the rights of its owner and group. Those of everybody, which the older
    one may have had because it was public, go.
    """
    with atomic_write(path, private=private) as beside:
        try:
            beside.touch(0o600 if private or path.exists() else 0o666)  # nobody reads what is being written
            beside.write_bytes(text.encode())
        except OSError as error:
            raise _unwritable_error(path, error) from None


@contextlib.contextmanager
def exclusive_edit(path: Path) -> Iterator[None]:
    """Let nobody else edit a file meanwhile who asks for the same, in this process or another.

    The lock is a file beside it, which every system can create exactly once. Links to one file share a lock.
    """
    real = Path(os.path.realpath(path))
    lock = real.with_name(f".{real.name[:50]}.lock")
    _acquire_lock(lock, path)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _acquire_lock(lock: Path, path: Path) -> None:
    """Create a lock file, waiting for others to remove theirs."""
    end = time.monotonic() + MAX_LOCK_WAIT
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            return
        except OSError as error:
            # Windows answers "denied" as long as a lock that was just removed is still open somewhere
            if not isinstance(error, FileExistsError) and not (os.name == "nt" and isinstance(error, PermissionError)):
                raise _unwritable_error(path, error) from None
        if time.monotonic() > end:
            raise OutputError(f"{path} is being edited by another command; if there is none, remove {lock}")
        time.sleep(0.01)


def check_writable(path: Path) -> None:
    """Refuse a place where no file can be written, before work is done for it."""
    place = _resolve_file(path)
    trial = place.with_name(f".{place.name[:50]}.{secrets.token_hex(4)}.trial")
    try:
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise _unwritable_error(path, error) from None


def table_format(path: str | Path) -> str:
    """What kind of table a suffix asks for: ``csv``, ``parquet`` or ``arrow``; compression aside."""
    name = Path(path).name.lower()
    for suffixes, kind in _TABLE_FORMATS.items():
        if name.endswith(suffixes):
            return kind
    raise OutputError(f"{path}: its suffix does not say what to write; use .csv, .csv.gz, .parquet or .arrow")


_TABLE_FORMATS = {
    (".csv", ".csv.gz"): "csv",
    (".parquet", ".pq"): "parquet",
    (".arrow", ".feather", ".ipc"): "arrow",
}


def _resolve_file(path: Path) -> Path:
    """Where a result belongs, links followed, if a file can be there."""
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
    """Where a folder belongs, links followed, if nothing is there that would be lost."""
    with _translate_os_errors(path):
        path = Path(os.path.realpath(path))
        if path.is_dir() and any(path.iterdir()):
            raise OutputError(f"{path} holds files already; give the name of a new folder")
        if path.exists() and not path.is_dir():
            raise OutputError(f"{path} is a file; give the name of a new folder")
        if not path.parent.is_dir():
            raise OutputError(f"{path} cannot be made: there is no folder {path.parent}")
    return path


@contextlib.contextmanager
def _translate_os_errors(path: Path) -> Iterator[None]:
    """Turn the system's errors about a path into ours."""
    try:
        yield
    except OSError as error:
        raise _unwritable_error(path, error) from None


def _replace_file(beside: Path, path: Path, *, private: bool) -> None:
    try:
        if path.exists():
            shutil.copymode(path, beside)  # who may read the old one may read the new one, and nobody else
            if private:
                beside.chmod(path.stat().st_mode & 0o770)
        os.replace(beside, path)
    except OSError as error:
        raise _unwritable_error(path, error) from None


def _unwritable_error(path: Path, error: OSError) -> OutputError:
    return OutputError(f"{path} cannot be written: {describe_os_error(error)}")
