"""The mechanisms: OpenDP's exact noise samplers and an exact exponential mechanism, with system randomness.

There is no seed, and no way to give one. Tests use another ``Mechanisms`` instead; the certificate of such a run states
*not private* permanently.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import Exponential, Gaussian, Laplace, PartitionSelection
from dpsyn.errors import InternalError
from dpsyn.private.exponential_mechanism import sample_exponential_mechanism

NOISE_CHUNK = 500
"""Values to which a thread adds noise at once: a sampler takes 12 µs for each, 100 µs per call (``bench.noise``)."""

MAP_ROUNDING = Fraction(1, 10**12)
"""How much larger than the charge, relatively, the loss by OpenDP's privacy map may be: it rounds up, in 64 bits."""

MAX_NOISY_STEPS = 2**62
"""The largest answer, in steps of the lattice; larger ones are clipped. Only absurd budgets come near it."""

ChargedAnswer = tuple[NDArray[np.int64], Gaussian | Laplace]
"""An exact answer and the cost that was charged for it."""


class Mechanisms(Protocol):
    """Turns exact answers into released ones; each answer is one measurement in the ledger.

    A run with any other implementation than ``SystemNoise`` is certified as not private.
    """

    def add_noise(self, answers: Sequence[ChargedAnswer]) -> list[NDArray[np.int64]]:
        """Add noise of each answer's scale to every value; Gaussian answers are returned in steps of 2^−lattice."""

    def select_partitions(self, counts: Mapping[str, int], cost: PartitionSelection) -> dict[str, int]:
        """The keys whose noisy count reaches the threshold, sorted, with their noisy counts in steps of the noise."""

    def choose_candidates(self, scores: NDArray[np.int64], cost: Exponential) -> NDArray[np.int64]:
        """Positions of the selected candidates, without replacement, in the order of their selection."""


class SystemNoise:
    """Exact discrete noise from OpenDP, and exact choices, with the randomness of the operating system."""

    def add_noise(self, answers: Sequence[ChargedAnswer]) -> list[NDArray[np.int64]]:
        """Add noise to every value of every answer, in chunks that all threads share.

        Privacy: Gaussian noise is N_ℤ(0, (2^s σ)²) on counts × 2^s, Laplace noise P(x) ∝ e^(−|x|/b) on counts. Both
        scales are those that were charged; 2^s σ is exact, because s only changes the exponent. Answers too large for
        64 bits are clipped first, which never increases the difference of two answers.
        """
        with _noise_workers(sum(exact.size for exact, _ in answers)) as pool:
            chunks = pool.map(
                _add_noise_to_chunk, (chunk for exact, cost in answers for chunk in _split_into_chunks(exact, cost))
            )
            noisy = np.concatenate([np.empty(0, np.int64), *chunks])
        parts = np.split(noisy, list(accumulate(exact.size for exact, _ in answers)))[:-1]
        return [part.reshape(exact.shape) for part, (exact, _) in zip(parts, answers, strict=True)]

    def select_partitions(self, counts: Mapping[str, int], cost: PartitionSelection) -> dict[str, int]:
        """Add noise to the count of every key that occurs, and list the keys that reach the threshold.

        Privacy: keys are taken in sorted order, so nothing depends on the order of rows. The δ of the cost is the
        probability that a key of a single unit is listed.
        """
        keys = sorted(counts)
        (noisy,) = self.add_noise([(np.array([counts[key] for key in keys], np.int64), cost.noise)])
        steps = 2**cost.noise.lattice if isinstance(cost.noise, Gaussian) else 1
        return {key: value for key, value in zip(keys, noisy.tolist(), strict=True) if value >= cost.threshold * steps}

    def choose_candidates(self, scores: NDArray[np.int64], cost: Exponential) -> NDArray[np.int64]:
        """Select candidates one after another, P ∝ e^(score/t) among the remaining ones.

        Privacy: t is the scale that was charged, and the probabilities are exact, see ``private.exponential``. OpenDP
        samples from the same distribution by trying candidates at random, which takes minutes if one of 100 000 stands
        out.
        """
        return sample_exponential_mechanism(scores, cost.scale, cost.selections)


def _noise_workers(values: int) -> Executor:
    """Threads for many values; the calling thread for a few, which takes less time than starting another."""
    return ThreadPoolExecutor(os.cpu_count()) if values > NOISE_CHUNK else _CallingThread()


class _CallingThread(Executor):
    """An executor without threads: ``map`` calls the function as results are taken."""

    def map(self, fn: Callable[..., Any], *iterables: Iterable[Any], **_: Any) -> Iterator[Any]:
        return map(fn, *iterables)


NoiseChunk = tuple[Any, NDArray[np.int64]]
"""An OpenDP measurement and the values for it."""


def _split_into_chunks(exact: NDArray[np.int64], cost: Gaussian | Laplace) -> Iterator[NoiseChunk]:
    """The values of an answer in steps of its noise, split into chunks, with the measurement that adds the noise."""
    values = exact.ravel()
    if isinstance(cost, Gaussian):
        values = np.clip(values, -MAX_NOISY_STEPS >> cost.lattice, MAX_NOISY_STEPS >> cost.lattice) * 2**cost.lattice
    measurement = _opendp_measurement(cost)
    for start in range(0, len(values), NOISE_CHUNK):
        yield measurement, values[start : start + NOISE_CHUNK]


def _add_noise_to_chunk(chunk: NoiseChunk) -> NDArray[np.int64]:
    measurement, values = chunk
    return np.array(measurement(values), np.int64)


@lru_cache(maxsize=1024)
def _opendp_measurement(cost: Gaussian | Laplace) -> Any:
    """OpenDP's measurement that adds the noise of a cost to vectors of whole numbers.

    Privacy: OpenDP computes from the measurement itself what it costs if two neighbors' vectors differ by Δ. If that is
    more than the charge, the noise is refused, so noise and charge cannot drift apart.
    """
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance

    measurement: Any  # OpenDP's maps have no types
    if isinstance(cost, Gaussian):
        steps = 2.0**cost.lattice
        measurement = make_gaussian(_integer_vectors(), l2_distance(T="f64"), scale=cost.sigma * steps)
        distance = math.nextafter(math.sqrt(cost.sensitivity_squared), math.inf) * steps
        charged = cost.rho
    else:
        measurement = make_laplace(_integer_vectors(), l1_distance(T="i64"), scale=cost.scale)
        distance = math.ceil(cost.sensitivity)
        (charged,) = cost.pure_epsilons
    _check_privacy_map(measurement.map(distance), charged)
    return measurement


def _check_privacy_map(loss: float, charged: Fraction) -> None:
    if not loss <= charged * (1 + MAP_ROUNDING):
        raise InternalError(
            f"the noise costs {loss:.17g} by OpenDP's privacy map, more than the {float(charged):.17g} that was "
            "charged for it; nothing was released. Please report it, with the version of OpenDP"
        )


def _integer_vectors() -> Any:
    """OpenDP's domain of such vectors; ``opendp.prelude`` is not used, because it loads every optional library."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.mod import enable_features

    enable_features("contrib")
    return vector_domain(atom_domain(T="i64"))
