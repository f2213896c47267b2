"""Signatures of releases: keys, the statement that is signed, and a verifier that works without DPSyn."""

from dpsyn.signatures.keys import PublicKey, SigningKey
from dpsyn.signatures.statement import (
    ReleaseStatement,
    Signature,
    SignedStatement,
    describe_release,
    read_signatures,
    sign_release,
    signatures_path,
    verifier_source,
)

__all__ = [
    "PublicKey",
    "ReleaseStatement",
    "Signature",
    "SignedStatement",
    "SigningKey",
    "describe_release",
    "read_signatures",
    "sign_release",
    "signatures_path",
    "verifier_source",
]
