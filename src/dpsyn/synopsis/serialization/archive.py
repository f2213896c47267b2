"""The zip file of a synopsis: a manifest in JSON and arrays, written reproducibly and validated when read.

A file may be cut off, damaged, mixed up or malicious. So nothing is unpacked before its size is checked against what
the reader expects, every array must have the type and shape that follow from the manifest, and no array is ever
unpickled.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import math
import os
import re
import stat
import struct
import tokenize
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting.checkpoint import MANIFEST_FILE
from dpsyn.errors import SynopsisError, describe_os_error, quote_argument
from dpsyn.suggestions import suggest_file

MAX_MANIFEST_BYTES = 100_000_000
"""The maximum size of a manifest; one of a hundred thousand measurements takes a third of it."""

MAX_ARRAY_BYTES = 2_000_000_000
"""The maximum size of all arrays together: a hundred times what a release has with default options."""

GET_AGAIN = "get it again from where it was released"

StoredType = Literal["<i8", "<f8"]
"""How numbers are stored: integers or floats of eight bytes, little-endian."""

_MAX_HEADER_BYTES = 4096  # the header of an array; numpy writes 128 bytes
_COMPRESSION_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ARRAY_NAME = re.compile(r"([a-z0-9-]+/)*[a-z0-9-]+\.npy")  # so that unpacking it by hand stays in one folder
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip file can represent
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    RuntimeError,
    ValueError,
    OverflowError,
    KeyError,
)
"""What reading a damaged zip file can raise; RuntimeError is for a password or an unknown compression method."""


def write_archive(path: Path, manifest: bytes, content: Mapping[str, bytes]) -> None:
    """Write a zip file whose bytes depend on its content alone: members are sorted by name and have no times."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in [(MANIFEST_FILE, manifest), *sorted(content.items())]:
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, whatever the system
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data, compresslevel=6)


@dataclass(slots=True)
class Archive:
    """An open synopsis file; whatever is wrong with it raises a SynopsisError that explains what to do."""

    _zip: zipfile.ZipFile
    _sizes: Mapping[str, int]
    _bytes_left: int
    _digests: Mapping[str, str] = field(default_factory=dict)
    _arrays: dict[tuple[str, str, tuple[int, ...]], NDArray[Any]] = field(default_factory=dict)
    _identities: dict[int, NDArray[np.int64]] = field(default_factory=dict)

    def manifest(self) -> bytes:
        """The bytes of the manifest."""
        if MANIFEST_FILE not in self._sizes:
            raise SynopsisError(
                f"is a zip file but not a synopsis: there is no {MANIFEST_FILE} in it; give another file"
            )
        return self._read_member(MANIFEST_FILE, MAX_MANIFEST_BYTES)

    def require_members(self, digests: Mapping[str, str]) -> None:
        """Refuse a file that does not hold exactly these arrays, or whose arrays are too large."""
        lacking = sorted({*digests} - {*self._sizes})
        surplus = sorted({*self._sizes} - {*digests, MANIFEST_FILE})
        if lacking or surplus:
            what = f"{lacking[0]} is missing" if lacking else f"it holds {surplus[0]}, which does not belong to it"
            raise SynopsisError(f"is damaged: {what}; {GET_AGAIN}")
        if odd := sorted(name for name in digests if not _ARRAY_NAME.fullmatch(name)):
            raise SynopsisError(f"is damaged: {quote_argument(odd[0])} is not the name of an array; {GET_AGAIN}")
        self._digests = digests
        self._reserve_bytes(sum(size for name, size in self._sizes.items() if name != MANIFEST_FILE))

    def require_all_read(self) -> None:
        """Refuse a file with an array that nothing refers to: its digest was compared with nothing."""
        if unread := sorted({*self._digests} - {name for name, _, _ in self._arrays}):
            raise SynopsisError(f"is damaged: nothing in it refers to {unread[0]}; {GET_AGAIN}")

    def array(self, name: str, stored_type: StoredType, shape: tuple[int, ...]) -> NDArray[Any]:
        """An array, read-only and cached; refused unless it has this type and shape and all its numbers are finite."""
        if (name, stored_type, shape) not in self._arrays:
            self._arrays[name, stored_type, shape] = self._read_array(name, stored_type, shape)
        return self._arrays[name, stored_type, shape]

    def _read_array(self, name: str, stored_type: StoredType, shape: tuple[int, ...]) -> NDArray[Any]:
        if name not in self._digests:
            raise SynopsisError(f"is damaged: its manifest refers to {name}, but does not list it; {GET_AGAIN}")
        data = self._read_member(name, 8 * math.prod(shape) + _MAX_HEADER_BYTES)
        if sha256_digest(data) != self._digests[name]:
            raise SynopsisError(
                f"was changed after it was written: {name} does not have the SHA-256 in its manifest; {GET_AGAIN}"
            )
        array = _parse_array(name, data, stored_type, shape)
        if stored_type == "<f8" and not np.isfinite(array).all():
            raise SynopsisError(f"is damaged: {name} holds a number that is not finite; {GET_AGAIN}")
        return array

    def identity_table(self, size: int) -> NDArray[np.int64]:
        """The table that maps every code to itself; it is not stored, but takes memory like a stored one."""
        if size not in self._identities:
            self._reserve_bytes(8 * size)
            self._identities[size] = np.arange(size)
            self._identities[size].setflags(write=False)
        return self._identities[size]

    def _reserve_bytes(self, size: int) -> None:
        if size > self._bytes_left:
            raise SynopsisError(
                f"holds arrays of more than {MAX_ARRAY_BYTES // 10**9} GB, more than any release of DPSyn; "
                f"do not open it unless you know who made it, and {GET_AGAIN}"
            )
        self._bytes_left -= size

    def _read_member(self, name: str, max_bytes: int) -> bytes:
        """The bytes of a member; more than ``max_bytes`` are refused."""
        if self._sizes[name] > max_bytes:
            raise SynopsisError(f"is damaged: {name} is larger than it can be; {GET_AGAIN}")
        with _translate_errors(), self._zip.open(name) as file:
            return file.read(max_bytes)  # bounded, whatever size the file declares


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open a synopsis file for reading."""
    _require_file(path)
    with _translate_errors(path):
        archive = zipfile.ZipFile(path)
    with archive:
        yield Archive(archive, _member_sizes(archive), MAX_ARRAY_BYTES)


@contextlib.contextmanager
def _translate_errors(path: Path | None = None) -> Iterator[None]:
    """Translate the errors of reading a zip file into SynopsisErrors."""
    try:
        yield
    except (OSError, *_ZIP_ERRORS) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # a seek before the beginning of the file
            raise SynopsisError(
                f"cannot be read: {describe_os_error(error)}; allow reading it, or copy it first"
            ) from None
        if path and not _has_zip_signature(path):
            message = "is not a synopsis; give a file that dpsyn measure or Synopsis.save has written"
            raise SynopsisError(message) from None
        reason = str(error).strip("'\"") or type(error).__name__
        raise SynopsisError(f"is cut off or damaged ({reason}); {GET_AGAIN}") from None


def _has_zip_signature(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _member_sizes(archive: zipfile.ZipFile) -> dict[str, int]:
    """The unpacked size that every member declares."""
    entries = archive.infolist()
    # other compression methods cannot be unpacked step by step
    if any(entry.compress_type not in _COMPRESSION_METHODS for entry in entries):
        raise SynopsisError(f"is compressed by a method that DPSyn does not use; {GET_AGAIN}")
    repeated = [name for name, times in Counter(entry.filename for entry in entries).items() if times > 1]
    if repeated:
        raise SynopsisError(f"is damaged: it holds {repeated[0]} twice; {GET_AGAIN}")
    return {entry.filename: entry.file_size for entry in entries}


def _require_file(path: Path) -> None:
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte
        reason = describe_os_error(error) if isinstance(error, OSError) else "no file can have such a name"
        hint = suggest_file(path) or "; give the name of a synopsis, such as s.dpsyn, or of a release folder"
        raise SynopsisError(f"cannot be read: {reason}{hint}") from None
    if stat.S_ISDIR(mode):
        raise SynopsisError(
            "is a folder, but not a release folder; give the name of the synopsis in it, such as synopsis.dpsyn"
        )
    if not stat.S_ISREG(mode):
        raise SynopsisError("is a device or a pipe; give the name of a file")


def _parse_array(name: str, data: bytes, stored_type: StoredType, shape: tuple[int, ...]) -> NDArray[Any]:
    """The array in a .npy file; its numbers are not copied."""
    buffer = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(buffer)
        if version != (1, 0):
            raise ValueError("another version")
        declared, fortran, dtype = np.lib.format.read_array_header_1_0(buffer, _MAX_HEADER_BYTES)
    except (ValueError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError):
        raise SynopsisError(f"is damaged: {name} is not an array as numpy writes it; {GET_AGAIN}") from None
    if (dtype.str, declared, bool(fortran)) != (stored_type, shape, False) or len(
        data
    ) - buffer.tell() != 8 * math.prod(shape):
        raise SynopsisError(
            f"is damaged: {name} has type {dtype.str} and shape {declared}, not {stored_type} and {shape}; {GET_AGAIN}"
        )
    native = np.dtype(stored_type).newbyteorder("=")
    return np.frombuffer(data, stored_type, offset=buffer.tell()).reshape(shape).astype(native, copy=False)


def sha256_digest(data: bytes) -> str:
    """The SHA-256 of a member's bytes, by which a mixed-up file is detected."""
    return hashlib.sha256(data).hexdigest()
