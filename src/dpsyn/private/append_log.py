"""An append-only log for one process: each line is on disk completely or not at all.

A line is a SHA-256, computed from the hash of the previous line and the text of this line, followed by that text. Lines
are only appended. Anything after the last line break was being written when the process died. ``append`` had not
returned for it, so it is cut off. Any other damage is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from dpsyn.atomic_files import lock_while_open, sync
from dpsyn.errors import JournalError, describe_os_error


class AppendLog:
    """An open log file, locked for this process; made by ``create`` or ``reopen``.

    Attributes:
        path: the file.
        texts: the lines that the file had when it was opened.
    """

    def __init__(self, path: Path, file: BinaryIO, texts: Sequence[bytes], digest: bytes) -> None:
        self.path, self.texts = path, texts
        self._file: BinaryIO | None = file
        self._digest = digest
        self._lock = threading.Lock()

    @classmethod
    def create(cls, path: Path) -> AppendLog:
        """Create an empty file that only its owner can read; a JournalError if the file exists."""
        with _explain_os_errors(path):
            file = open(path, "x+b", opener=lambda name, flags: os.open(name, flags, 0o600))  # noqa: SIM115 -- stays open
            log = cls(path, file, (), b"")
            try:
                _lock_exclusively(file, path)
                sync(path.absolute().parent)
            except BaseException:
                log.remove()
                raise
        return log

    @classmethod
    def reopen(cls, path: Path) -> AppendLog:
        """Open an existing file and cut off an incomplete last line; refused if there is no complete line."""
        with _explain_os_errors(path):
            file = open(path, "r+b")  # noqa: SIM115 -- stays open
            try:
                _lock_exclusively(file, path)
                content = file.read()
                whole = content.rfind(b"\n") + 1
                if not whole:  # it may be any file, so nothing is cut off
                    raise JournalError(
                        f"{path} has no complete line: its run measured nothing; remove it to start a new run"
                    )
                texts, digest = _parse_lines(content[:whole], path)
                file.truncate(whole)
                file.seek(whole)
            except BaseException:
                file.close()
                raise
        return cls(path, file, texts, digest)

    def append(self, texts: Sequence[bytes]) -> None:
        """Add lines; they are on disk when this returns.

        After a failure the file is closed: it may end in an incomplete line, and nothing may follow that.
        """
        with self._lock, _explain_os_errors(self.path):
            file, digest, lines = self.require_open(), self._digest, []
            for text in texts:
                digest = _hash_line(digest, text)
                lines.append(digest + b" " + text + b"\n")
            try:
                file.write(b"".join(lines))
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                self.release()
                raise
            self._digest = digest

    def require_open(self) -> BinaryIO:
        """The open file; a JournalError if it was closed."""
        if self._file is None:
            raise JournalError(f"the journal {self.path} is closed, because its run ended or failed; resume the run")
        return self._file

    def release(self) -> None:
        """Close the file, so another process can open it."""
        file, self._file = self._file, None
        if file:
            with contextlib.suppress(OSError):
                file.close()

    def remove(self) -> None:
        """Close the file and remove it."""
        self.release()
        remove_log(self.path)


def remove_log(path: Path) -> None:
    """Remove a log file, if it exists."""
    with _explain_os_errors(path):
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _explain_os_errors(path: Path) -> Iterator[None]:
    """Raise errors of the operating system as a JournalError."""
    try:
        yield
    except OSError as error:
        raise JournalError(f"the journal {path} cannot be written: {describe_os_error(error)}") from None


def _parse_lines(lines: bytes, path: Path) -> tuple[list[bytes], bytes]:
    """The texts of complete lines, and the hash of the last one."""
    texts, digest = [], b""
    for number, line in enumerate(lines.split(b"\n")[:-1], start=1):
        given, _, text = line.partition(b" ")
        digest = _hash_line(digest, text)
        if given != digest:
            raise JournalError(
                f"line {number} of {path} is damaged, or {path} is no journal; restore it from a backup, "
                "or remove it and start a new run"
            )
        texts.append(text)
    return texts, digest


def _hash_line(previous: bytes, text: bytes) -> bytes:
    return hashlib.sha256(previous + text).hexdigest().encode()


def _lock_exclusively(file: BinaryIO, path: Path) -> None:
    if not lock_while_open(file):
        raise JournalError(f"the journal {path} is in use by another process; wait until that process has ended")
