"""Random choices of an evaluation: each purpose has numbers of its own, so that none disturbs another."""

from __future__ import annotations

import numpy as np


def generator(seed: int, purpose: str) -> np.random.Generator:
    """Random numbers for one purpose, the same for the same seed."""
    return np.random.default_rng([seed, *purpose.encode()])
