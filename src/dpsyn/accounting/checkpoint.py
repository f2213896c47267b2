"""Reads the ledger entry recorded in a certificate or synopsis, to detect later changes to either."""

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

_MAX_CHECKPOINT_BYTES = 100_000_000  # a certificate of 100 000 measurements takes a third of it
_CERTIFICATE_KEYS = ("ledger_head", "run", "guarantee")
"""A document with any of these keys is a certificate, not a ledger head alone."""


@dataclass(frozen=True, slots=True)
class LedgerCheckpoint:
    """What a file records about a ledger.

    Attributes:
        head: an entry of the ledger, which also fixes all earlier entries; of several releases, that of the last one.
        certificates: the certificates of the releases, as plain data and unchecked: ``Ledger.verify`` compares them.
            None for a release whose numbers were imported.
        path: the file.
        faults: what is wrong with the file by itself, such as a number that no certificate records.
    """

    head: LedgerHead
    certificates: tuple[dict[str, Any] | None, ...] = ()
    path: str = ""
    faults: tuple[str, ...] = ()


def read_ledger_checkpoint(path: Path) -> LedgerCheckpoint:
    """Read the checkpoint in a certificate (JSON), a synopsis (a zip with a manifest), or ``ledger verify --json``."""
    document = _read_document(path)
    certificates = _find_certificates(document)
    if certificates is None:
        head = document.get("head", document) if isinstance(document, dict) else document
        certificates = ()
    else:
        heads = [one.get("ledger_head") for one in certificates if one]
        head = next((head for head in reversed(heads) if head is not None), None)
    if head is None:
        raise LedgerError(
            f"{path} records no ledger entry, because its run kept no ledger; it cannot be compared with one"
        )
    return LedgerCheckpoint(_parse_head(head, path), certificates, str(path))


def _find_certificates(document: Any) -> tuple[dict[str, Any] | None, ...] | None:
    """The certificates of all releases in a document; None if it holds something else."""
    if not isinstance(document, dict):
        return None
    releases = document.get("releases")
    holders = releases if isinstance(releases, list) and releases else [document]
    parts = [holder.get("certificate", holder) for holder in holders if isinstance(holder, dict)]
    certificates = tuple(
        part
        for part in parts
        if part is None or (isinstance(part, dict) and any(key in part for key in _CERTIFICATE_KEYS))
    )
    return certificates or None


def _parse_head(data: Any, path: Path) -> LedgerHead:
    sequence, digest = (data.get("sequence"), data.get("hash")) if isinstance(data, dict) else (None, None)
    if type(sequence) is not int or sequence < 1:
        raise _not_a_checkpoint_error(path, "it does not contain a ledger entry")
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        raise _not_a_checkpoint_error(path, "it does not contain the hash of a ledger entry")
    return LedgerHead(sequence, digest)


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
        raise _not_a_checkpoint_error(path, f"it contains no readable {MANIFEST_FILE}") from None


def _read_whole_file(path: Path) -> bytes:
    if path.stat().st_size > _MAX_CHECKPOINT_BYTES:
        raise _not_a_checkpoint_error(path, "it is too large for a certificate")
    return path.read_bytes()


def _read_manifest(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        if archive.getinfo(MANIFEST_FILE).file_size > _MAX_CHECKPOINT_BYTES:
            raise _not_a_checkpoint_error(path, f"its {MANIFEST_FILE} is too large")
        with archive.open(MANIFEST_FILE) as file:
            return file.read(_MAX_CHECKPOINT_BYTES)  # the stated size may be wrong


def _not_a_checkpoint_error(path: Path, why: str) -> LedgerError:
    return LedgerError(
        f"{path} cannot be compared with the ledger: {why}; give a certificate in JSON, a synopsis, "
        f"or the output of dpsyn ledger verify --json"
    )
