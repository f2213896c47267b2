"""Noise for tests: from a seed, scaled, or replayed from an earlier run. None of it is private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import Exponential, Gaussian, Laplace, PartitionSelection
from dpsyn.private import SystemNoise
from dpsyn.private.mechanisms import ChargedAnswer


@dataclass(frozen=True)
class RecordedAnswer:
    """One answer of the gate: before noise, its cost, and as released."""

    exact: Any
    cost: Gaussian | Laplace | PartitionSelection | Exponential
    released: Any


class RecordingNoise:
    """Noise from a seed; every answer is remembered."""

    def __init__(self, seed: int = 0) -> None:
        self.answers: list[RecordedAnswer] = []
        self._rng = np.random.default_rng(seed)

    def add_noise(self, answers: Sequence[ChargedAnswer]) -> list[NDArray[np.int64]]:
        return [self._add_noise_to_one(*answer) for answer in answers]

    def _add_noise_to_one(self, exact: NDArray[np.int64], cost: Gaussian | Laplace) -> NDArray[np.int64]:
        if isinstance(cost, Gaussian):
            scale = cost.sigma * 2**cost.lattice
            released = exact * 2**cost.lattice + np.rint(self._rng.normal(0, scale, exact.shape)).astype(np.int64)
        else:
            released = exact + np.rint(self._rng.laplace(0, cost.scale, exact.shape)).astype(np.int64)
        self.answers.append(RecordedAnswer(exact.copy(), cost, released))
        return np.asarray(released, np.int64)

    def select_partitions(self, counts: Mapping[str, int], cost: PartitionSelection) -> dict[str, int]:
        released = {key: count for key, count in sorted(counts.items()) if count + self._rng.normal() >= cost.threshold}
        self.answers.append(RecordedAnswer(dict(counts), cost, released))
        return released

    def choose_candidates(self, scores: NDArray[np.int64], cost: Exponential) -> NDArray[np.int64]:
        noisy = scores / cost.scale + self._rng.gumbel(size=len(scores))
        released = np.argsort(-noisy, kind="stable")[: cost.selections]
        self.answers.append(RecordedAnswer(scores.copy(), cost, released))
        return released


class ReplayedNoise:
    """Releases what an earlier run released, so that both ask the same questions; remembers its own exact answers."""

    def __init__(self, earlier: RecordingNoise) -> None:
        self.answers: list[RecordedAnswer] = []
        self._earlier = earlier.answers

    def _next(self, exact: Any, cost: Gaussian | Laplace | PartitionSelection | Exponential) -> Any:
        earlier = self._earlier[len(self.answers)]
        assert cost == earlier.cost
        self.answers.append(RecordedAnswer(exact, cost, earlier.released))
        return earlier.released

    def add_noise(self, answers: Sequence[ChargedAnswer]) -> list[NDArray[np.int64]]:
        return [self._next(exact.copy(), cost) for exact, cost in answers]

    def select_partitions(self, counts: Mapping[str, int], cost: PartitionSelection) -> dict[str, int]:
        released: dict[str, int] = self._next(dict(counts), cost)
        return released

    def choose_candidates(self, scores: NDArray[np.int64], cost: Exponential) -> NDArray[np.int64]:
        released: NDArray[np.int64] = self._next(scores.copy(), cost)
        return released


class NoNoise:
    """No noise at all: what the gate would answer for an infinite budget."""

    def add_noise(self, answers: Sequence[ChargedAnswer]) -> list[NDArray[np.int64]]:
        return [np.asarray(exact * 2**cost.lattice if isinstance(cost, Gaussian) else exact) for exact, cost in answers]

    def select_partitions(self, counts: Mapping[str, int], cost: PartitionSelection) -> dict[str, int]:
        return {key: counts[key] for key in sorted(counts) if counts[key] >= cost.threshold}

    def choose_candidates(self, scores: NDArray[np.int64], cost: Exponential) -> NDArray[np.int64]:
        return np.argsort(-scores, kind="stable")[: cost.selections]


class InventedNoise:
    """Releases given values instead of the exact answers, so everything that follows must depend on them alone."""

    def __init__(self, *, full: int, value: str) -> None:
        self._full, self._value = full, value

    def add_noise(self, answers: Sequence[ChargedAnswer]) -> list[NDArray[np.int64]]:
        return [self._invent(exact.shape) for exact, _ in answers]

    def _invent(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        released = np.zeros(shape, np.int64)
        released.flat[self._full] = 2**40
        return released

    def select_partitions(self, counts: Mapping[str, int], cost: PartitionSelection) -> dict[str, int]:
        return {self._value: cost.threshold}

    def choose_candidates(self, scores: NDArray[np.int64], cost: Exponential) -> NDArray[np.int64]:
        return np.arange(cost.selections)


class ScaledNoise(SystemNoise):
    """The real samplers with a standard deviation that is off by a factor."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def add_noise(self, answers: Sequence[ChargedAnswer]) -> list[NDArray[np.int64]]:
        noisy = super().add_noise([(exact, self._scale_cost(cost)) for exact, cost in answers])
        pairs = zip(noisy, answers, strict=True)
        return [released // 2 if isinstance(cost, Gaussian) else released for released, (_, cost) in pairs]

    def _scale_cost(self, cost: Gaussian | Laplace) -> Gaussian | Laplace:
        if isinstance(cost, Gaussian):
            return replace(cost, sigma=cost.sigma * self.factor, lattice=cost.lattice + 1)
        return replace(cost, scale=cost.scale * self.factor, charged_epsilon=None)
