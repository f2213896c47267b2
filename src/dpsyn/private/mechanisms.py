"""Where noise comes from: OpenDP's exact samplers, and exact choices, fed by the operating system.

There is no seed, and no way to give one. Tests put another ``Mechanisms`` in its place; a run that used it is stamped
*not private* for ever.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import Exponential, Gaussian, Laplace, Threshold
from dpsyn.private.peeling import peeled

CHUNK = 500
"""Numbers a thread noises at once: a sampler takes 12 µs for each and 100 µs for the call; see ``bench.noise``."""


LARGEST = 2**62
"""Answers, in steps of the lattice, beyond which they are cut; only absurd budgets come near."""

Charged = tuple[NDArray[np.int64], Gaussian | Laplace]
"""An exact answer and the spend that was charged for it."""


class Mechanisms(Protocol):
    """Turns exact answers into released ones; each answer is one spend of the ledger.

    Whatever is made with another one than ``SystemNoise`` is stamped not private.
    """

    def noised(self, answers: Sequence[Charged]) -> list[NDArray[np.int64]]:
        """Whole numbers with noise on each, by the spend of each answer; Gaussian ones are multiples of 2^−lattice."""

    def listed(self, counts: Mapping[str, int], spend: Threshold) -> dict[str, int]:
        """The keys whose noisy count reaches the threshold, sorted, with those counts; in steps of the noise."""

    def chosen(self, scores: NDArray[np.int64], spend: Exponential) -> NDArray[np.int64]:
        """Positions of as many candidates as the spend draws, without replacement, in the order of drawing."""


class SystemNoise:
    """Exact discrete noise from OpenDP, and exact choices, from the operating system's randomness."""

    def noised(self, answers: Sequence[Charged]) -> list[NDArray[np.int64]]:
        """Noise on every number of every answer, drawn in chunks that all threads share.

        Privacy: Gaussian noise is N_ℤ(0, (2^s σ)²) on counts × 2^s, Laplace noise P(x) ∝ e^(−|x|/b) on counts. Both
        scales are those the spend was charged for; 2^s σ is exact, because s only moves the exponent. Answers too
        large for 64 bits are cut first, which makes no two of them differ more.
        """
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            chunks = pool.map(_drawn, (chunk for exact, spend in answers for chunk in _chunks(exact, spend)))
            noisy = np.concatenate([np.empty(0, np.int64), *chunks])
        parts = np.split(noisy, list(accumulate(exact.size for exact, _ in answers)))[:-1]
        return [part.reshape(exact.shape) for part, (exact, _) in zip(parts, answers, strict=True)]

    def listed(self, counts: Mapping[str, int], spend: Threshold) -> dict[str, int]:
        """Noise on the count of every key that occurs; those at or above the cut are listed.

        Privacy: keys are taken in sorted order, so that nothing depends on the order of rows. That keys below the cut
        stay hidden is what the spend's δ pays for.
        """
        keys = sorted(counts)
        (noisy,) = self.noised([(np.array([counts[key] for key in keys], np.int64), spend.noise)])
        steps = 2**spend.noise.lattice if isinstance(spend.noise, Gaussian) else 1
        return {key: number for key, number in zip(keys, noisy.tolist(), strict=True) if number >= spend.cut * steps}

    def chosen(self, scores: NDArray[np.int64], spend: Exponential) -> NDArray[np.int64]:
        """Candidates drawn one after another, P ∝ e^(score/t) among those that are left.

        Privacy: t is the scale that the spend was charged for, and the probabilities are exact, see ``peeling``.
        OpenDP draws the same by trying candidates at random, which takes minutes where one of 100 000 stands out.
        """
        return peeled(scores, spend.scale, spend.draws)


Chunk = tuple[Any, NDArray[np.int64]]
"""A measurement of OpenDP and numbers for it."""


def _chunks(exact: NDArray[np.int64], spend: Gaussian | Laplace) -> Iterator[Chunk]:
    """The numbers of an answer in steps of its noise, cut into chunks, with the measurement that noises them."""
    if isinstance(spend, Gaussian):
        measurement = _gaussian(spend.sigma * 2.0**spend.lattice)
        values = np.clip(exact.ravel(), -LARGEST >> spend.lattice, LARGEST >> spend.lattice) * 2**spend.lattice
    else:
        measurement, values = _laplace(spend.scale), exact.ravel()
    for start in range(0, len(values), CHUNK):
        yield measurement, values[start : start + CHUNK]


def _drawn(chunk: Chunk) -> NDArray[np.int64]:
    measurement, values = chunk
    return np.array(measurement(values), np.int64)


@cache
def _gaussian(scale: float) -> Any:
    """OpenDP's discrete Gaussian on vectors of whole numbers."""
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance

    return make_gaussian(_whole_numbers(), l2_distance(T="f64"), scale=scale)


@cache
def _laplace(scale: float) -> Any:
    """OpenDP's discrete Laplace on vectors of whole numbers."""
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance

    return make_laplace(_whole_numbers(), l1_distance(T="i64"), scale=scale)


def _whole_numbers() -> Any:
    """OpenDP's domain of such vectors; its prelude is not used, because that loads every library it knows."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.mod import enable_features

    enable_features("contrib")
    return vector_domain(atom_domain(T="i64"))
