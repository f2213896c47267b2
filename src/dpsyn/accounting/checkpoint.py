"""What a release recorded of a ledger: a witness that neither was changed since."""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsyn.accounting.hash_chain import LedgerHead
from dpsyn.errors import LedgerError

MANIFEST_FILE = "manifest.json"
"""The file of a synopsis that holds its certificate."""

_MAX_CHECKPOINT_BYTES = 100_000_000  # a certificate of 100 000 draws takes a third of it
_CERTIFICATE_KEYS = ("ledger_head", "run", "guarantee")
"""By each of these a certificate is told from a head alone."""


@dataclass(frozen=True, slots=True)
class LedgerCheckpoint:
    """What a file tells of a ledger.

    Attributes:
        head: an entry of it; of several releases that of the last one, a witness of all entries before it.
        certificates: those of its releases, as plain data and unchecked: the ledger is to tell what is wrong in them.
    """

    head: LedgerHead
    certificates: tuple[dict[str, Any], ...] = ()


def read_ledger_checkpoint(path: Path) -> LedgerCheckpoint:
    """What a certificate (JSON), a synopsis (a zip with a manifest), or the JSON of ``ledger verify`` tells."""
    document = _read_document(path)
    certificates = _find_certificates(document)
    if certificates is None:
        head = document.get("head", document) if isinstance(document, dict) else document
        certificates = ()
    else:
        heads = [one.get("ledger_head") for one in certificates]
        head = next((head for head in reversed(heads) if head is not None), None)
    if head is None:
        raise LedgerError(f"{path} records no entry of a ledger: its run kept none, so it cannot witness for this one")
    return LedgerCheckpoint(_parse_head(head, path), certificates)


def _find_certificates(document: Any) -> tuple[dict[str, Any], ...] | None:
    """The certificates of all releases in a document; None if it holds something else."""
    if not isinstance(document, dict):
        return None
    releases = document.get("releases")
    holders = releases if isinstance(releases, list) and releases else [document]
    found = [holder.get("certificate", holder) for holder in holders if isinstance(holder, dict)]
    known = tuple(one for one in found if isinstance(one, dict) and any(key in one for key in _CERTIFICATE_KEYS))
    return known if known or None in found else None


def _parse_head(data: Any, path: Path) -> LedgerHead:
    number, digest = (data.get("sequence"), data.get("hash")) if isinstance(data, dict) else (None, None)
    if type(number) is not int or number < 1 or not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        raise _not_a_checkpoint_error(path, "it does not name an entry of a ledger")
    return LedgerHead(number, digest)


def _read_document(path: Path) -> Any:
    """The JSON of a file, or of the manifest in a zip."""
    if not path.is_file():
        raise _not_a_checkpoint_error(path, "there is no such file")
    try:
        return json.loads(_read_manifest(path) if zipfile.is_zipfile(path) else _read_whole_file(path))
    except OSError as error:
        raise _not_a_checkpoint_error(path, (error.strerror or str(error)).lower()) from None
    except (ValueError, RecursionError):
        raise _not_a_checkpoint_error(path, "it is neither JSON nor a zip with a manifest in JSON") from None
    except (KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error):
        raise _not_a_checkpoint_error(path, f"there is no {MANIFEST_FILE} in it that can be read") from None


def _read_whole_file(path: Path) -> bytes:
    if path.stat().st_size > _MAX_CHECKPOINT_BYTES:
        raise _not_a_checkpoint_error(path, "it is too large for a certificate")
    return path.read_bytes()


def _read_manifest(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        if archive.getinfo(MANIFEST_FILE).file_size > _MAX_CHECKPOINT_BYTES:
            raise _not_a_checkpoint_error(path, f"its {MANIFEST_FILE} is too large")
        with archive.open(MANIFEST_FILE) as file:
            return file.read(_MAX_CHECKPOINT_BYTES)  # however much more its compressed bytes hold than it says


def _not_a_checkpoint_error(path: Path, why: str) -> LedgerError:
    return LedgerError(
        f"{path} cannot be compared with the ledger: {why}; give a certificate in JSON, a synopsis, "
        f"or what dpsyn ledger verify --json printed"
    )
