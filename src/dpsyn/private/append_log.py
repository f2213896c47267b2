"""A file of lines for one process, each on disk as a whole or not at all.

A line is a SHA-256, of the one before it and of the text that follows it, and that text. Lines are only appended. What
follows the last line break was being written when the process died: its writer had not been told that it is there, so
it is cut off. Any other damage is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from dpsyn.errors import JournalError, describe_os_error


class AppendLog:
    """An open file of lines, which nobody else can open meanwhile; made by ``create`` or ``reopen``.

    Attributes:
        path: the file.
        texts: the lines that were there when it was opened.
    """

    def __init__(self, path: Path, file: BinaryIO, texts: Sequence[bytes], digest: bytes) -> None:
        self.path, self.texts = path, texts
        self._file: BinaryIO | None = file
        self._digest = digest
        self._lock = threading.Lock()

    @classmethod
    def create(cls, path: Path) -> AppendLog:
        """An empty file where there is none, which only its owner can read."""
        with _explain_os_errors(path):
            file = open(path, "x+b", opener=lambda name, flags: os.open(name, flags, 0o600))
            lines = cls(path, file, (), b"")
            try:
                _lock_exclusively(file, path)
                _sync_folder(path.absolute().parent)
            except BaseException:
                lines.remove()
                raise
        return lines

    @classmethod
    def reopen(cls, path: Path) -> AppendLog:
        """A file that is there, with what is left of half a line cut off; refused if there is no whole line."""
        with _explain_os_errors(path):
            file = open(path, "r+b")
            try:
                _lock_exclusively(file, path)
                content = file.read()
                whole = content.rfind(b"\n") + 1
                if not whole:  # then nothing is known about it, and nothing is cut off
                    raise JournalError(f"{path} has no whole line: its run drew nothing; remove it to start anew")
                texts, digest = _parse_lines(content[:whole], path)
                file.truncate(whole)
                file.seek(whole)
            except BaseException:
                file.close()
                raise
        return cls(path, file, texts, digest)

    def append(self, texts: Sequence[bytes]) -> None:
        """Add lines; they are on disk when this returns.

        After a failure the file is closed: it may end in half a line, which nothing must follow.
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
        """The file; a JournalError if it was closed."""
        if self._file is None:
            raise JournalError(f"the journal {self.path} is closed, because its run ended or failed; resume it")
        return self._file

    def release(self) -> None:
        """Close the file, so that others may open it."""
        file, self._file = self._file, None
        if file:
            with contextlib.suppress(OSError):
                file.close()

    def remove(self) -> None:
        """Close the file and remove it."""
        self.release()
        remove_log(self.path)


def remove_log(path: Path) -> None:
    """Remove a file of lines, if there is one."""
    with _explain_os_errors(path):
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _explain_os_errors(path: Path) -> Iterator[None]:
    """Turn the system's errors into ours."""
    try:
        yield
    except OSError as error:
        raise JournalError(f"the journal {path} cannot be written: {describe_os_error(error)}") from None


def _parse_lines(lines: bytes, path: Path) -> tuple[list[bytes], bytes]:
    """The texts of whole lines, and the hash of the last."""
    texts, digest = [], b""
    for number, line in enumerate(lines.split(b"\n")[:-1], start=1):
        given, _, text = line.partition(b" ")
        digest = _hash_line(digest, text)
        if given != digest:
            raise JournalError(
                f"line {number} of {path} is damaged, or {path} is no journal; bring it back from a backup, "
                "or remove it to start and pay anew"
            )
        texts.append(text)
    return texts, digest


def _hash_line(before: bytes, text: bytes) -> bytes:
    return hashlib.sha256(before + text).hexdigest().encode()


def _sync_folder(folder: Path) -> None:
    """Make sure that a new file is still in its folder after a power cut, where folders can be synced."""
    if os.name == "posix":
        place = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(place)
        finally:
            os.close(place)


def _lock_exclusively(file: BinaryIO, path: Path) -> None:
    """Lock a file as long as it is open; the system unlocks it when the process dies, however it does."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(1 << 40)  # a byte that nobody reads: on Windows locks keep readers out as well
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            file.seek(0)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise JournalError(f"the journal {path} is in use by another process; wait until that has ended") from None
