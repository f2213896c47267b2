"""Ed25519 keys (RFC 8032): a private key that signs releases, and the public key that readers verify them with.

Private keys are PKCS #8 files in PEM, which other tools read as well, with a passphrase if one is wanted. A public key
is one line of text: ``dpsyn-ed25519:`` and 43 characters, to be published where readers trust it, such as a website.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from dpsyn.errors import MissingExtraError, OutputError, SignatureError, describe_os_error, quote_argument
from dpsyn.suggestions import suggest_file

PREFIX = "dpsyn-ed25519:"
"""What the text of a public key begins with."""

PASSPHRASE_VARIABLE = "DPSYN_KEY_PASSPHRASE"
"""The environment variable with the passphrase of a private key; a passphrase is never an argument of a command."""

PUBLIC_SUFFIX = ".pub"
"""The suffix of the file with the public key, beside the private one."""

KEY_BYTES = 32
SIGNATURE_BYTES = 64

MAX_KEY_FILE_BYTES = 10_000
"""The largest file that can be a key."""

_FIELD_PRIME = 2**255 - 19
_SMALL_ORDER_Y = frozenset(
    (
        0,
        1,
        _FIELD_PRIME - 1,
        2707385501144840649318225287225658788936804267575313519463743609750303402022,
        55188659117513257062467267217118295137698188065244968500265048394206261417927,
    )
)
"""The y of the eight points whose order divides 8: with such a key, one signature fits many messages."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key, by which anyone can verify what its private key signed.

    >>> key = SigningKey.generate().public_key
    >>> PublicKey.parse(str(key)) == key
    True

    Attributes:
        raw: its 32 bytes.
    """

    raw: bytes

    def __post_init__(self) -> None:
        if not isinstance(self.raw, bytes) or len(self.raw) != KEY_BYTES:
            raise SignatureError(f"a public key has {KEY_BYTES} bytes; copy it again from where it was published")
        y = int.from_bytes(self.raw, "little") & (2**255 - 1)
        if y >= _FIELD_PRIME or y in _SMALL_ORDER_Y:
            raise SignatureError(
                "this public key is none that a private key can have: a signature by it would prove nothing; do not "
                "trust whoever gave it to you"
            )

    @classmethod
    def parse(cls, text: str | Path | PublicKey) -> PublicKey:
        """Read a key from its text, or from a file that contains this text alone.

        Args:
            text: a text such as ``dpsyn-ed25519:…``, the path of a file with it, or a key.
        """
        if isinstance(text, PublicKey):
            return text
        if isinstance(text, str) and text.strip().startswith(PREFIX):
            return cls(_decode_key(text.strip().removeprefix(PREFIX)))
        content = _read_key_file(Path(text)).strip()
        if not content.startswith(PREFIX):
            hint = (
                "it is a private key, which stays with its owner: give the file with the suffix .pub"
                if "PRIVATE KEY" in content
                else f"a public key is one line that begins with {PREFIX}"
            )
            raise SignatureError(f"{text} holds no public key of DPSyn; {hint}")
        return cls(_decode_key(content.removeprefix(PREFIX)))

    def __str__(self) -> str:
        return PREFIX + base64.urlsafe_b64encode(self.raw).decode().rstrip("=")

    def __repr__(self) -> str:
        return f"PublicKey({self})"

    @property
    def fingerprint(self) -> str:
        """The first half of the SHA-256 of the key, in groups of four letters: for reading it out on the telephone."""
        digest = hashlib.sha256(self.raw).hexdigest()[:32]
        return "-".join(digest[i : i + 4] for i in range(0, 32, 4))

    def verifies(self, message: bytes, signature: bytes) -> bool:
        """Whether the signature of a message is by this key."""
        library = _cryptography()
        try:
            library.PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except (library.InvalidSignature, ValueError):
            return False
        return True


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key, which signs releases; whoever has it can sign in the name of its owner.

    >>> key = SigningKey.generate()
    >>> key.public_key.verifies(b"text", key.sign(b"text"))
    True
    """

    _private: Any = field(repr=False)

    @classmethod
    def generate(cls) -> SigningKey:
        """A new key, from the randomness of the operating system."""
        library = _cryptography()
        return cls(library.PrivateKey.generate())

    @classmethod
    def load(cls, path: str | Path, passphrase: str | Callable[[], str] | None = None) -> SigningKey:
        """Read a private key.

        Args:
            path: its file, as ``save`` writes it.
            passphrase: its passphrase, or a function that asks for it if it has one; by default that of the environment
                variable ``DPSYN_KEY_PASSPHRASE``.
        """
        content = _read_key_file(Path(path))
        if content.strip().startswith(PREFIX):
            raise SignatureError(f"{path} is a public key, which signs nothing; give the private key, without .pub")
        encrypted = "ENCRYPTED" in content
        given = passphrase if isinstance(passphrase, str) else os.environ.get(PASSPHRASE_VARIABLE)
        if encrypted and not given and callable(passphrase):
            given = passphrase()
        if encrypted and not given:
            raise SignatureError(
                f"the key {path} has a passphrase; set {PASSPHRASE_VARIABLE}, in Python give passphrase=…"
            )
        library = _cryptography()
        try:
            password = given.encode() if encrypted and given else None
            private = library.load_pem_private_key(content.encode(), password)
        except (ValueError, TypeError, library.UnsupportedAlgorithm):
            reason = "its passphrase is another one" if encrypted else "it is not a private key in PEM"
            raise SignatureError(f"the key {path} cannot be read: {reason}, or the file is damaged") from None
        if not isinstance(private, library.PrivateKey):
            raise SignatureError(f"the key {path} is not an Ed25519 key; make one with  dpsyn keys new FILE")
        return cls(private)

    def save(self, path: str | Path, passphrase: str | None = None) -> None:
        """Write the key to a new file that only its owner can read, and the public key beside it, as ``PATH.pub``.

        Args:
            path: the file; one that exists is never overwritten.
            passphrase: encrypts the file; without one, whoever can read the file can sign.
        """
        public = Path(f"{path}{PUBLIC_SUFFIX}")
        for each in (Path(path), public):
            if os.path.lexists(each):
                raise OutputError(f"{each} exists; a key is never overwritten: give another name")
        library = _cryptography()
        encryption = library.BestAvailableEncryption(passphrase.encode()) if passphrase else library.NoEncryption()
        content = self._private.private_bytes(library.Encoding.PEM, library.PrivateFormat.PKCS8, encryption)
        _create_file(Path(path), content, 0o600)
        _create_file(public, f"{self.public_key}\n".encode(), 0o644)

    @property
    def public_key(self) -> PublicKey:
        """The key that others verify signatures with."""
        library = _cryptography()
        return PublicKey(self._private.public_key().public_bytes(library.Encoding.Raw, library.PublicFormat.Raw))

    def sign(self, message: bytes) -> bytes:
        """The signature of a message, in 64 bytes."""
        signature: bytes = self._private.sign(message)
        return signature


def _decode_key(text: str) -> bytes:
    try:
        raw = base64.urlsafe_b64decode(text + "=")
        if base64.urlsafe_b64encode(raw).decode().rstrip("=") == text:  # a second spelling would be another text
            return raw
    except (binascii.Error, ValueError):
        pass
    raise SignatureError(f"{quote_argument(PREFIX + text)} is not a public key; copy all of it, {PREFIX} included")


def _read_key_file(path: Path) -> str:
    """The text of a key file, of limited size."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_KEY_FILE_BYTES).decode()
    except FileNotFoundError:
        hint = suggest_file(path) or f"; a public key begins with {PREFIX}"
        raise SignatureError(f"there is no key {quote_argument(str(path))}{hint}") from None
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a path with a zero byte
        reason = describe_os_error(error) if isinstance(error, OSError) else "it is not a text"
        raise SignatureError(f"the key {quote_argument(str(path))} cannot be read: {reason}") from None


def _create_file(path: Path, content: bytes, mode: int) -> None:
    """Create a file with its permissions from the start; one that exists, or appears meanwhile, is not touched."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise OutputError(f"{path} exists; a key is never overwritten: give another name") from None
    except (OSError, ValueError) as error:
        reason = describe_os_error(error) if isinstance(error, OSError) else "no file has such a name"
        raise OutputError(f"{path} cannot be written: {reason}") from None


class _Library:
    """What is used of the library ``cryptography``, loaded when the first key is needed."""

    def __init__(self) -> None:
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519

        self.InvalidSignature: type[Exception] = InvalidSignature
        self.UnsupportedAlgorithm: type[Exception] = UnsupportedAlgorithm
        self.PrivateKey = ed25519.Ed25519PrivateKey
        self.PublicKey = ed25519.Ed25519PublicKey
        self.load_pem_private_key = serialization.load_pem_private_key
        self.BestAvailableEncryption = serialization.BestAvailableEncryption
        self.NoEncryption = serialization.NoEncryption
        self.Encoding = serialization.Encoding
        self.PrivateFormat = serialization.PrivateFormat
        self.PublicFormat = serialization.PublicFormat


@lru_cache(maxsize=1)
def _cryptography() -> _Library:
    try:
        return _Library()
    except ImportError:
        raise MissingExtraError("cryptography", "sign", "signing and verifying signatures") from None
