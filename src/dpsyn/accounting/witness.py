"""The head of a ledger as a release recorded it: a witness that the ledger was not cut or rewritten since."""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from pathlib import Path
from typing import Any

from dpsyn.accounting.chain import Head
from dpsyn.errors import LedgerError

MANIFEST = "manifest.json"
"""The file of a synopsis that holds its certificate."""

_MOST_BYTES = 100_000_000  # a certificate of 100 000 draws takes a third of it
_PLACES = ("certificate", "ledger_head", "head")
"""Where a head may lie, from the outside inwards."""


def read_head(path: Path) -> Head:
    """The head in a certificate (JSON), in a synopsis (a zip with a manifest), or in the JSON of ``ledger verify``.

    Of several releases it is that of the last one that kept a ledger: it is a witness of all entries before it.
    """
    data = _last_release(_document(path))
    for place in _PLACES:
        if isinstance(data, dict) and place in data:
            data = data[place]
    if data is None:
        raise LedgerError(f"{path} records no entry of a ledger: its run kept none, so it cannot witness for this one")
    return _head(data, path)


def _last_release(data: Any) -> Any:
    """The last of several releases that kept a ledger; an empty place if none did; other data as it is."""
    releases = data.get("releases") if isinstance(data, dict) else None
    if not isinstance(releases, list) or not releases:
        return data
    return next((release for release in reversed(releases) if _records_a_head(release)), {"certificate": None})


def _records_a_head(release: Any) -> bool:
    certificate = release.get("certificate") if isinstance(release, dict) else None
    return isinstance(certificate, dict) and certificate.get("ledger_head") is not None


def _head(data: Any, path: Path) -> Head:
    number, digest = (data.get("sequence"), data.get("hash")) if isinstance(data, dict) else (None, None)
    if type(number) is not int or number < 1 or not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        raise _not_a_witness(path, "it does not name an entry of a ledger")
    return Head(number, digest)


def _document(path: Path) -> Any:
    """The JSON of a file, or of the manifest in a zip."""
    if not path.is_file():
        raise _not_a_witness(path, "there is no such file")
    try:
        return json.loads(_manifest(path) if zipfile.is_zipfile(path) else _whole(path))
    except OSError as error:
        raise _not_a_witness(path, (error.strerror or str(error)).lower()) from None
    except (ValueError, RecursionError):
        raise _not_a_witness(path, "it is neither JSON nor a zip with a manifest in JSON") from None
    except (KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error):
        raise _not_a_witness(path, f"there is no {MANIFEST} in it that can be read") from None


def _whole(path: Path) -> bytes:
    if path.stat().st_size > _MOST_BYTES:
        raise _not_a_witness(path, "it is too large for a certificate")
    return path.read_bytes()


def _manifest(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        if archive.getinfo(MANIFEST).file_size > _MOST_BYTES:
            raise _not_a_witness(path, f"its {MANIFEST} is too large")
        with archive.open(MANIFEST) as file:
            return file.read(_MOST_BYTES)  # however much more its compressed bytes hold than it says


def _not_a_witness(path: Path, why: str) -> LedgerError:
    return LedgerError(
        f"{path} cannot be compared with the ledger: {why}; give a certificate in JSON, a synopsis, "
        f"or what dpsyn ledger verify --json printed"
    )
