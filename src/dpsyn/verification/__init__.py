"""Verification of releases: hashes, signature, cost, rows and ledger of what somebody published."""

from dpsyn.verification._sign import sign
from dpsyn.verification._verify import Verification, VerificationCheck, verify

__all__ = ["Verification", "VerificationCheck", "sign", "verify"]
