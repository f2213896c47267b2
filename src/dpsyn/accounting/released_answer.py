"""A released answer and its hash, which ties the numbers of a release to the measurement that was charged for them."""

from __future__ import annotations

import hashlib
import json

import numpy as np
from numpy.typing import NDArray

ReleasedAnswer = NDArray[np.int64] | tuple[str, ...]
"""Noisy numbers in steps of their noise, or the keys that partition selection listed."""


def hash_answer(answer: ReleasedAnswer) -> str:
    """The SHA-256 of an answer.

    It is computed from the shape in JSON, a line break, and the numbers as little-endian 64-bit integers in row order;
    or from the list of keys in JSON.
    """
    if isinstance(answer, tuple):
        return hashlib.sha256(json.dumps(list(answer)).encode()).hexdigest()
    shape = json.dumps(list(answer.shape)).encode()
    return hashlib.sha256(shape + b"\n" + answer.astype("<i8").tobytes()).hexdigest()
