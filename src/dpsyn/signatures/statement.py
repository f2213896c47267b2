"""The statement about a release that is signed, and the file of its signatures.

One statement names everything that is published: the SHA-256 and size of every file of the release folder, the SHA-256
of the synopsis manifest, which lists that of every array, of each certificate, and the ledger entry of each release.
So a signature belongs to one release as a whole, and no part of it can be exchanged with that of another.

What is signed: the bytes of ``DOMAIN``, then the statement as JSON with sorted keys, without spaces, in ASCII. It holds
texts, whole numbers, lists, objects and null only, so there is one such form. ``DOMAIN`` names the purpose and its
version; a signature for another purpose is none of a release.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsyn.atomic_files import write_text
from dpsyn.errors import SignatureError, describe_os_error
from dpsyn.release_files import SIGNATURES_NAME, SYNOPSIS_NAME, VERIFIER_NAME, is_release
from dpsyn.signatures.keys import MAX_KEY_FILE_BYTES, SIGNATURE_BYTES, PublicKey, SigningKey
from dpsyn.suggestions import suggest_file

DOMAIN = b"dpsyn release statement, version 1\n"
"""What every signed message begins with, so that a signature made for another purpose cannot stand for one of these."""

STATEMENT_KIND = "dpsyn release"
SIGNATURES_KIND = "dpsyn signatures"
SIGNATURES_FORMAT = 1
"""The version of the statement and of the file of signatures."""

MANIFEST_NAME = "manifest.json"
_MAX_SIGNATURES_BYTES = 50_000_000  # a release of 100 000 files takes a third of it
_MAX_MANIFEST_BYTES = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseStatement:
    """What is signed about a release.

    Attributes:
        files: the SHA-256 and the size in bytes of every file, by its path in the folder. A synopsis by itself counts
            as the file ``synopsis.dpsyn``, whatever its name.
        manifest: the SHA-256 of the manifest in the synopsis.
        certificates: the SHA-256 of each release's certificate, in canonical form; None if its numbers were imported.
        ledger_heads: the ledger entry that each certificate names; None if there was no ledger.
    """

    files: Mapping[str, tuple[str, int]]
    manifest: str
    certificates: tuple[str | None, ...]
    ledger_heads: tuple[dict[str, Any] | None, ...]

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "kind": STATEMENT_KIND,
            "format": SIGNATURES_FORMAT,
            "files": {name: {"sha256": digest, "bytes": size} for name, (digest, size) in sorted(self.files.items())},
            "manifest_sha256": self.manifest,
            "certificates_sha256": list(self.certificates),
            "ledger_heads": list(self.ledger_heads),
        }


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature and the public key that it claims to be by."""

    public_key: PublicKey
    signature: bytes


@dataclass(frozen=True, slots=True)
class SignedStatement:
    """The content of a file of signatures: a statement, as plain data and unchecked, and who signed it."""

    statement: dict[str, Any]
    signatures: tuple[Signature, ...]

    @property
    def message(self) -> bytes:
        """The bytes that are signed."""
        return DOMAIN + canonical_json(self.statement)

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        signatures = [
            {"public_key": str(each.public_key), "signature": base64.b64encode(each.signature).decode()}
            for each in self.signatures
        ]
        return {
            "kind": SIGNATURES_KIND,
            "format": SIGNATURES_FORMAT,
            "statement": self.statement,
            "signatures": signatures,
        }


def canonical_json(data: Any) -> bytes:
    """Plain data in its one canonical form: sorted keys, no spaces, ASCII."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def hash_certificate(certificate: Mapping[str, Any] | None) -> str | None:
    """The SHA-256 of a certificate in canonical form; None if there is none."""
    return None if certificate is None else hashlib.sha256(canonical_json(certificate)).hexdigest()


def signatures_path(release: str | Path) -> Path:
    """Where the signatures of a release are: in its folder, or beside a synopsis."""
    path = Path(release)
    return path / SIGNATURES_NAME if path.is_dir() else path.with_name(f"{path.name}.{SIGNATURES_NAME}")


def sign_release(release: str | Path, key: SigningKey) -> Path:
    """Sign a release folder or a synopsis as it is, and return the path of the file of signatures.

    A signature by another key that is there stays if it is of the same content; otherwise it would be void, and it is a
    SignatureError: remove the file of signatures first.

    Args:
        release: the folder, or the synopsis.
        key: the private key.
    """
    path, target = Path(release), signatures_path(release)
    if path.is_dir() and not is_release(path):
        raise SignatureError(f"{path} is a folder, but not a release folder; give one that DPSyn has written")
    _refuse_private_keys(path)
    statement = describe_release(path).to_data()
    message = DOMAIN + canonical_json(statement)
    kept: tuple[Signature, ...] = ()
    if os.path.lexists(target):
        known = read_signatures(target)
        if known.statement != statement:
            raise SignatureError(
                f"{target} signs other content: the release was changed since. If the change was meant, remove this "
                "file and sign again; others who had signed must do so, too"
            )
        kept = tuple(each for each in known.signatures if each.public_key != key.public_key)
    signed = SignedStatement(statement, (*kept, Signature(key.public_key, key.sign(message))))
    write_text(target, json.dumps(signed.to_data(), indent=1, ensure_ascii=True) + "\n")
    return target


def _refuse_private_keys(path: Path) -> None:
    """Refuse to sign a folder with a private key in it: whoever gets the release could sign in its owner's name."""
    for name in list_files(path) if path.is_dir() else ():
        file = path / name
        if file.stat().st_size <= MAX_KEY_FILE_BYTES and b"PRIVATE KEY-----" in file.read_bytes():
            raise SignatureError(
                f"{file} is a private key, which would be published with the release; move it elsewhere, and make a "
                "new one if others have seen it"
            )


def describe_release(release: str | Path) -> ReleaseStatement:
    """The statement about a release folder, or about a synopsis, as it is on disk."""
    path = Path(release)
    if not path.is_dir():
        files, synopsis = {SYNOPSIS_NAME: _hash_file(path)}, path
    else:
        files = {name: _hash_file(path / name) for name in list_files(path)}
        synopsis = path / SYNOPSIS_NAME
    manifest = read_manifest_bytes(synopsis)
    certificates = find_certificates(manifest, synopsis)
    return ReleaseStatement(
        files=files,
        manifest=hashlib.sha256(manifest).hexdigest(),
        certificates=tuple(map(hash_certificate, certificates)),
        ledger_heads=tuple(each and each.get("ledger_head") for each in certificates),
    )


def list_files(folder: Path) -> Iterator[str]:
    """The paths of all files in a release folder, with slashes, except the file of signatures; links are refused."""
    for parent, folders, names in os.walk(folder):
        for name in sorted([*folders, *names]):
            path = Path(parent, name)
            mode = path.lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise SignatureError(f"{path} is a link or a device; a release folder holds files only")
            relative = path.relative_to(folder).as_posix()
            if stat.S_ISREG(mode) and relative != SIGNATURES_NAME:
                yield relative


def read_signatures(path: Path) -> SignedStatement:
    """Read a file of signatures; the statement and the signatures in it are not verified yet."""
    try:
        if path.stat().st_size > _MAX_SIGNATURES_BYTES:
            raise SignatureError(f"{path} is too large for a file of signatures")
        data = load_json(path.read_bytes())
    except OSError as error:
        raise SignatureError(f"{path} cannot be read: {describe_os_error(error)}") from None
    except (ValueError, RecursionError):
        raise SignatureError(f"{path} is not JSON as DPSyn writes it") from None
    try:
        mark = (data["kind"], data["format"], type(data["format"]), len(data))
        if mark != (SIGNATURES_KIND, SIGNATURES_FORMAT, int, 4):
            raise SignatureError(f"{path} is not a file of signatures in format {SIGNATURES_FORMAT}")
        signatures = tuple(_parse_signature(each) for each in data["signatures"])
        statement = data["statement"]
    except (LookupError, TypeError, AttributeError):
        raise SignatureError(f"{path} is not a file of signatures as DPSyn writes it") from None
    if not isinstance(statement, dict) or not signatures:
        raise SignatureError(f"{path} holds no signed statement")
    if len({each.public_key for each in signatures}) < len(signatures):
        raise SignatureError(f"{path} holds two signatures by the same key")
    return SignedStatement(statement, signatures)


def _parse_signature(data: Any) -> Signature:
    text = data["signature"]
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != SIGNATURE_BYTES or base64.b64encode(raw).decode() != text or len(data) != 2:
        raise SignatureError(f"a signature is not written as {SIGNATURE_BYTES} bytes in Base64")
    return Signature(PublicKey.parse(str(data["public_key"])), raw)


def load_json(content: bytes) -> Any:
    """Parse JSON; a ValueError if an object has the same key twice, because readers differ in which one counts."""

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) < len(pairs):
            raise ValueError("a key is there twice")
        return built

    return json.loads(content, object_pairs_hook=build)


def read_manifest_bytes(synopsis: Path) -> bytes:
    """The bytes of the manifest in a synopsis."""
    try:
        with zipfile.ZipFile(synopsis) as archive:
            if archive.getinfo(MANIFEST_NAME).file_size > _MAX_MANIFEST_BYTES:
                raise SignatureError(f"{synopsis} is not a synopsis: its manifest is too large")
            return archive.read(MANIFEST_NAME)
    except OSError as error:
        raise SignatureError(f"{synopsis} cannot be read: {describe_os_error(error)}{suggest_file(synopsis)}") from None
    except (KeyError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error):
        raise SignatureError(f"{synopsis} is not a synopsis; give a release folder or a synopsis of DPSyn") from None


def find_certificates(manifest: bytes, synopsis: Path) -> tuple[dict[str, Any] | None, ...]:
    """The certificates in the manifest of a synopsis, as plain data; None for imported numbers."""
    try:
        certificates = tuple(release["certificate"] for release in load_json(manifest)["releases"])
    except (ValueError, LookupError, TypeError, RecursionError):
        raise SignatureError(f"{synopsis} has a manifest that is not as DPSyn writes it") from None
    if not all(each is None or isinstance(each, dict) for each in certificates):
        raise SignatureError(f"{synopsis} has a certificate that is not as DPSyn writes it")
    return certificates


def verifier_source() -> str:
    """The text of the stand-alone verifier, one file that needs Python alone."""
    return Path(__file__).with_name(VERIFIER_NAME).read_text("utf-8")


def _hash_file(path: Path) -> tuple[str, int]:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest(), os.fstat(file.fileno()).st_size
    except (OSError, ValueError) as error:
        reason = describe_os_error(error) if isinstance(error, OSError) else "no file can have such a name"
        raise SignatureError(f"{path} cannot be read: {reason}{suggest_file(path)}") from None
