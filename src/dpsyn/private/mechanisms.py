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

from dpsyn.accounting import Exponential, Gaussian, Laplace, PartitionSelection
from dpsyn.private.exponential import sample_exponential_mechanism

NOISE_CHUNK = 500
"""Numbers a thread noises at once: a sampler takes 12 µs for each and 100 µs for the call; see ``bench.noise``."""


MAX_NOISY_STEPS = 2**62
"""Answers, in steps of the lattice, beyond which they are cut; only absurd budgets come near."""

ChargedAnswer = tuple[NDArray[np.int64], Gaussian | Laplace]
"""An exact answer and the spend that was charged for it."""


class Mechanisms(Protocol):
    """Turns exact answers into released ones; each answer is one spend of the ledger.

    Whatever is made with another one than ``SystemNoise`` is stamped not private.
    """

    def add_noise(self, answers: Sequence[ChargedAnswer]) -> list[NDArray[np.int64]]:
        """Whole numbers with noise on each, by the spend of each answer; Gaussian ones are multiples of 2^−lattice."""

    def select_partitions(self, counts: Mapping[str, int], cost: PartitionSelection) -> dict[str, int]:
        """The keys whose noisy count reaches the threshold, sorted, with those counts; in steps of the noise."""

    def choose_candidates(self, scores: NDArray[np.int64], cost: Exponential) -> NDArray[np.int64]:
        """Positions of as many candidates as the spend draws, without replacement, in the order of drawing."""


class SystemNoise:
    """Exact discrete noise from OpenDP, and exact choices, from the operating system's randomness."""

    def add_noise(self, answers: Sequence[ChargedAnswer]) -> list[NDArray[np.int64]]:
        """Noise on every number of every answer, drawn in chunks that all threads share.

        Privacy: Gaussian noise is N_ℤ(0, (2^s σ)²) on counts × 2^s, Laplace noise P(x) ∝ e^(−|x|/b) on counts. Both
        scales are those the spend was charged for; 2^s σ is exact, because s only moves the exponent. Answers too
        large for 64 bits are cut first, which makes no two of them differ more.
        """
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            chunks = pool.map(
                _add_noise_to_chunk, (chunk for exact, spend in answers for chunk in _split_into_chunks(exact, spend))
            )
            noisy = np.concatenate([np.empty(0, np.int64), *chunks])
        parts = np.split(noisy, list(accumulate(exact.size for exact, _ in answers)))[:-1]
        return [part.reshape(exact.shape) for part, (exact, _) in zip(parts, answers, strict=True)]

    def select_partitions(self, counts: Mapping[str, int], cost: PartitionSelection) -> dict[str, int]:
        """Noise on the count of every key that occurs; those at or above the cut are listed.

        Privacy: keys are taken in sorted order, so that nothing depends on the order of rows. That keys below the cut
        stay hidden is what the spend's δ pays for.
        """
        keys = sorted(counts)
        (noisy,) = self.add_noise([(np.array([counts[key] for key in keys], np.int64), cost.noise)])
        steps = 2**cost.noise.lattice if isinstance(cost.noise, Gaussian) else 1
        return {
            key: number for key, number in zip(keys, noisy.tolist(), strict=True) if number >= cost.threshold * steps
        }

    def choose_candidates(self, scores: NDArray[np.int64], cost: Exponential) -> NDArray[np.int64]:
        """Candidates drawn one after another, P ∝ e^(score/t) among those that are left.

        Privacy: t is the scale that the spend was charged for, and the probabilities are exact, see ``peeling``.
        OpenDP draws the same by trying candidates at random, which takes minutes where one of 100 000 stands out.
        """
        return sample_exponential_mechanism(scores, cost.scale, cost.selections)


NoiseChunk = tuple[Any, NDArray[np.int64]]
"""A measurement of OpenDP and numbers for it."""


def _split_into_chunks(exact: NDArray[np.int64], cost: Gaussian | Laplace) -> Iterator[NoiseChunk]:
    """The numbers of an answer in steps of its noise, cut into chunks, with the measurement that noises them."""
    if isinstance(cost, Gaussian):
        measurement = _gaussian_measurement(cost.sigma * 2.0**cost.lattice)
        values = (
            np.clip(exact.ravel(), -MAX_NOISY_STEPS >> cost.lattice, MAX_NOISY_STEPS >> cost.lattice) * 2**cost.lattice
        )
    else:
        measurement, values = _laplace_measurement(cost.scale), exact.ravel()
    for start in range(0, len(values), NOISE_CHUNK):
        yield measurement, values[start : start + NOISE_CHUNK]


def _add_noise_to_chunk(chunk: NoiseChunk) -> NDArray[np.int64]:
    measurement, values = chunk
    return np.array(measurement(values), np.int64)


@cache
def _gaussian_measurement(scale: float) -> Any:
    """OpenDP's discrete Gaussian on vectors of whole numbers."""
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance

    return make_gaussian(_integer_vectors(), l2_distance(T="f64"), scale=scale)


@cache
def _laplace_measurement(scale: float) -> Any:
    """OpenDP's discrete Laplace on vectors of whole numbers."""
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance

    return make_laplace(_integer_vectors(), l1_distance(T="i64"), scale=scale)


def _integer_vectors() -> Any:
    """OpenDP's domain of such vectors; its prelude is not used, because that loads every library it knows."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.mod import enable_features

    enable_features("contrib")
    return vector_domain(atom_domain(T="i64"))
