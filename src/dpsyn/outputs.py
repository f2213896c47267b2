"""Results are written beside their place and renamed, so that a half-written one is never seen."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from dpsyn.errors import OutputError


@contextlib.contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """A temporary path in the same folder; it becomes ``path`` if the block succeeds and vanishes if not.

    A link is followed. What is no file, such as ``/dev/null``, is refused rather than replaced by one.
    """
    path = path.resolve() if path.is_symlink() else path
    if path.is_dir():
        raise OutputError(f"{path} is a folder; give the name of a file in it")
    if path.exists() and not path.is_file():
        raise OutputError(f"{path} is a device or a pipe; give the name of a file")
    if not path.parent.is_dir():
        raise OutputError(f"{path} cannot be written: there is no folder {path.parent}")
    beside = path.with_name(f".{path.name[:50]}.{secrets.token_hex(4)}.partial")
    try:
        yield beside
        if path.exists():
            shutil.copymode(path, beside)  # who may read the old one may read the new one, and nobody else
        os.replace(beside, path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {(error.strerror or str(error)).lower()}") from None
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8 with plain newlines."""
    with written_beside(path) as beside:
        beside.write_bytes(text.encode())
