"""What measuring a marginal would leave of its error, told from released numbers before anything is paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.consistency import norm_sub

DEVIATIONS = 9
"""Noise scales at which errors are simulated; between them they are interpolated."""


@dataclass(frozen=True, slots=True, eq=False)
class PredictedErrors:
    """The error ‖estimate − truth‖₁ that each of several tables would have, by the deviation of its noise.

    Once negative counts are removed, a table of c cells is off by much less than c·σ·√(2/π): most cells of a sparse
    table are empty and stay so. Hence noise is added to a guess of the table and projected, which is free.

    Attributes:
        deviations: ascending scales at which errors were simulated.
        errors: tables × scales.
    """

    deviations: NDArray[np.float64]
    errors: NDArray[np.float64]

    @classmethod
    def simulate(cls, guesses: Sequence[NDArray[np.float64]], deviations: NDArray[np.float64]) -> PredictedErrors:
        """Simulate the measurement of guessed tables once at each scale, with the same random numbers every time."""
        rng = np.random.default_rng(0)
        errors = np.empty((len(guesses), len(deviations)))
        for place, guess in enumerate(guesses):
            noise = rng.standard_normal(guess.shape)
            for scale, deviation in enumerate(deviations):
                projected = norm_sub(guess + deviation * noise, float(guess.sum()))
                errors[place, scale] = np.abs(projected - guess).sum()
        return cls(deviations, errors)

    def at(self, deviations: NDArray[np.float64]) -> NDArray[np.float64]:
        """The error of each table at a scale of its own, interpolated in the logarithm of the scale."""
        known = np.log(self.deviations)
        asked = np.clip(np.log(deviations), known[0], known[-1])
        left = np.clip(np.searchsorted(known, asked) - 1, 0, len(known) - 2)
        part = (asked - known[left]) / (known[left + 1] - known[left])
        tables = np.arange(len(self.errors))
        found: NDArray[np.float64] = self.errors[tables, left] * (1 - part) + self.errors[tables, left + 1] * part
        return found
