"""Keys: the numbers of RFC 8032, files that only their owner can read, and points that are no keys."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpsyn
from dpsyn import PublicKey, SigningKey
from dpsyn.errors import MissingExtraError, OutputError, SignatureError
from dpsyn.signatures import keys, verify_release
from tests.recipes.test_golden_rows import BINARY, bits

VECTORS = [  # RFC 8032, section 7.1: public key, message, signature
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        b"",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        b"\x72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        b"\xaf\x82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
        "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
    (
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        hashlib.sha512(b"abc").digest(),
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b589"
        "09351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
    ),
]


@pytest.mark.parametrize(("key", "message", "signature"), VECTORS)
def test_the_vectors_of_the_rfc_verify(key: str, message: bytes, signature: str) -> None:
    raw, signed = bytes.fromhex(key), bytes.fromhex(signature)

    assert verify_release.ed25519_verifies(raw, message, signed)
    assert PublicKey(raw).verifies(message, signed)


@pytest.mark.parametrize(("key", "message", "signature"), VECTORS)
def test_a_changed_vector_does_not_verify(key: str, message: bytes, signature: str) -> None:
    raw, signed = bytes.fromhex(key), bytes.fromhex(signature)
    larger = (int.from_bytes(signed[32:], "little") + verify_release.ORDER).to_bytes(32, "little")
    forgeries = [
        (message + b"x", signed),
        (message, bytes([signed[0] ^ 1]) + signed[1:]),
        (message, signed[:40] + bytes([signed[40] ^ 1]) + signed[41:]),
        (message, signed[:32] + larger),
        (message, signed[:-1]),
        (message, b""),
    ]

    for text, forged in forgeries:
        assert not verify_release.ed25519_verifies(raw, text, forged)
        assert not PublicKey(raw).verifies(text, forged)


@settings(max_examples=20)
@given(st.binary(max_size=300), st.integers(0, 511))
def test_both_implementations_agree_on_signatures_and_on_flipped_bits(message: bytes, bit: int) -> None:
    key = SigningKey.generate()
    signature = bytearray(key.sign(message))

    assert verify_release.ed25519_verifies(key.public_key.raw, message, bytes(signature))
    signature[bit // 8] ^= 1 << bit % 8
    assert not verify_release.ed25519_verifies(key.public_key.raw, message, bytes(signature))
    assert not key.public_key.verifies(message, bytes(signature))


def small_order_encodings() -> set[bytes]:
    """All 32 bytes that stand for a point of small order: multiples of the group order, in every encoding."""
    found = set()
    for y in range(2, 60):
        point = verify_release.point_decode(y.to_bytes(32, "little"))
        if point is None:
            continue
        torsion, multiple = verify_release.point_multiply(verify_release.ORDER, point), verify_release.IDENTITY
        for _ in range(8):
            multiple = verify_release.point_add(multiple, torsion)
            encoded = int.from_bytes(verify_release.point_encode(multiple), "little") & (2**255 - 1)
            for y_encoded in (encoded, encoded + verify_release.P):
                if y_encoded < 2**255:
                    found |= {(y_encoded | sign << 255).to_bytes(32, "little") for sign in (0, 1)}
    return found


def test_points_of_small_order_are_no_keys_in_any_encoding() -> None:
    encodings = small_order_encodings()

    assert len(encodings) == 14
    for raw in encodings:
        assert not verify_release.is_usable_key(raw)
        with pytest.raises(SignatureError, match="none that a private key can have"):
            PublicKey(raw)


# ── texts and files ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_key_survives_its_text_and_its_files(tmp_path: Path) -> None:
    key = SigningKey.generate()
    key.save(tmp_path / "steward.key")

    assert PublicKey.parse(str(key.public_key)) == key.public_key
    assert PublicKey.parse(tmp_path / "steward.key.pub") == key.public_key
    assert SigningKey.load(tmp_path / "steward.key").public_key == key.public_key
    assert len(str(key.public_key)) == 57
    assert len(key.public_key.fingerprint) == 39
    assert "steward" not in repr(key)


@pytest.mark.skipif(os.name != "posix", reason="other systems have other permissions")
def test_a_private_key_can_be_read_by_its_owner_only(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        SigningKey.generate().save(tmp_path / "steward.key")
    finally:
        os.umask(previous)

    assert stat.S_IMODE((tmp_path / "steward.key").stat().st_mode) == 0o600


@pytest.mark.parametrize("existing", ["steward.key", "steward.key.pub"])
def test_no_key_is_overwritten(existing: str, tmp_path: Path) -> None:
    (tmp_path / existing).write_text("mine", "utf-8")

    with pytest.raises(OutputError, match="never overwritten"):
        SigningKey.generate().save(tmp_path / "steward.key")
    assert [(path.name, path.read_text("utf-8")) for path in tmp_path.iterdir()] == [(existing, "mine")]


def test_a_passphrase_protects_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, path = SigningKey.generate(), tmp_path / "steward.key"
    key.save(path, "correct horse")

    assert b"ENCRYPTED" in path.read_bytes()
    assert SigningKey.load(path, "correct horse").public_key == key.public_key
    assert SigningKey.load(path, lambda: "correct horse").public_key == key.public_key
    with pytest.raises(SignatureError, match="passphrase is another one"):
        SigningKey.load(path, "wrong")
    with pytest.raises(SignatureError, match="has a passphrase"):
        SigningKey.load(path)
    monkeypatch.setenv(keys.PASSPHRASE_VARIABLE, "correct horse")
    assert SigningKey.load(path).public_key == key.public_key


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "not a private key"),
        ("nonsense", "not a private key"),
        pytest.param(f"{SigningKey.generate().public_key}\n", "is a public key", id="public key"),
        ("\x00", "not a private key"),
    ],
)
def test_what_is_no_private_key_is_refused(content: str, match: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(content, "utf-8")

    with pytest.raises(SignatureError, match=match):
        SigningKey.load(tmp_path / "key")


@pytest.mark.parametrize("text", ["dpsyn-ed25519:", "dpsyn-ed25519:AAAA", "dpsyn-ed25519:" + "!" * 43])
def test_what_is_no_public_key_is_refused(text: str) -> None:
    with pytest.raises(SignatureError):
        PublicKey.parse(text)


def test_a_private_key_in_place_of_a_public_one_is_refused_unquoted(tmp_path: Path) -> None:
    SigningKey.generate().save(tmp_path / "steward.key")

    with pytest.raises(SignatureError, match="stays with its owner") as caught:
        PublicKey.parse(tmp_path / "steward.key")
    assert (tmp_path / "steward.key").read_text("utf-8").splitlines()[1] not in str(caught.value)


def test_a_second_spelling_of_a_key_is_refused() -> None:
    """The last character of Base64 has unused bits."""
    text = str(SigningKey.generate().public_key)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    other = text[:-1] + alphabet[alphabet.index(text[-1]) ^ 1]

    with pytest.raises(SignatureError, match="not a public key"):
        PublicKey.parse(other)
    with pytest.raises(verify_release.Misuse):
        verify_release.parse_key(other)


def test_a_missing_library_is_named_and_condemns_no_release(tmp_path: Path) -> None:
    """Whoever cannot verify a signature knows nothing about the release."""
    dpsyn.measure(bits(300), BINARY, 1.0, recipe="independent").save(tmp_path / "s.dpsyn", sign=SigningKey.generate())
    keys._cryptography.cache_clear()
    with patch.dict(sys.modules, {"cryptography.exceptions": None}):
        with pytest.raises(MissingExtraError, match="cryptography"):
            SigningKey.generate()
        with pytest.raises(MissingExtraError, match="cryptography"):
            dpsyn.verify(tmp_path / "s.dpsyn")
