"""Noise for tests: drawn from a seed, scaled, or replayed from an earlier run. None of it is private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import Exponential, Gaussian, Laplace, Threshold
from dpsyn.private import SystemNoise
from dpsyn.private.mechanisms import Charged


@dataclass(frozen=True)
class Answer:
    """One answer of the gate: what it was before noise, what was paid, what was released."""

    exact: Any
    spend: Gaussian | Laplace | Threshold | Exponential
    released: Any


class Recording:
    """Noise from a seed; every answer is remembered."""

    def __init__(self, seed: int = 0) -> None:
        self.answers: list[Answer] = []
        self._rng = np.random.default_rng(seed)

    def noised(self, answers: Sequence[Charged]) -> list[NDArray[np.int64]]:
        return [self._noised(*answer) for answer in answers]

    def _noised(self, exact: NDArray[np.int64], spend: Gaussian | Laplace) -> NDArray[np.int64]:
        if isinstance(spend, Gaussian):
            scale = spend.sigma * 2**spend.lattice
            released = exact * 2**spend.lattice + np.rint(self._rng.normal(0, scale, exact.shape)).astype(np.int64)
        else:
            released = exact + np.rint(self._rng.laplace(0, spend.scale, exact.shape)).astype(np.int64)
        self.answers.append(Answer(exact.copy(), spend, released))
        return np.asarray(released, np.int64)

    def listed(self, counts: Mapping[str, int], spend: Threshold) -> dict[str, int]:
        released = {key: number for key, number in sorted(counts.items()) if number + self._rng.normal() >= spend.cut}
        self.answers.append(Answer(dict(counts), spend, released))
        return released

    def chosen(self, scores: NDArray[np.int64], spend: Exponential) -> NDArray[np.int64]:
        noisy = scores / spend.scale + self._rng.gumbel(size=len(scores))
        released = np.argsort(-noisy, kind="stable")[: spend.draws]
        self.answers.append(Answer(scores.copy(), spend, released))
        return released


class Replaying:
    """Releases what an earlier run released, so that both ask the same questions; remembers its own exact answers."""

    def __init__(self, earlier: Recording) -> None:
        self.answers: list[Answer] = []
        self._earlier = earlier.answers

    def _next(self, exact: Any, spend: Gaussian | Laplace | Threshold | Exponential) -> Any:
        before = self._earlier[len(self.answers)]
        assert spend == before.spend
        self.answers.append(Answer(exact, spend, before.released))
        return before.released

    def noised(self, answers: Sequence[Charged]) -> list[NDArray[np.int64]]:
        return [self._next(exact.copy(), spend) for exact, spend in answers]

    def listed(self, counts: Mapping[str, int], spend: Threshold) -> dict[str, int]:
        released: dict[str, int] = self._next(dict(counts), spend)
        return released

    def chosen(self, scores: NDArray[np.int64], spend: Exponential) -> NDArray[np.int64]:
        released: NDArray[np.int64] = self._next(scores.copy(), spend)
        return released


class Exact:
    """No noise at all: what the gate would answer for an infinite budget."""

    def noised(self, answers: Sequence[Charged]) -> list[NDArray[np.int64]]:
        return [
            np.asarray(exact * 2**spend.lattice if isinstance(spend, Gaussian) else exact) for exact, spend in answers
        ]

    def listed(self, counts: Mapping[str, int], spend: Threshold) -> dict[str, int]:
        return {key: counts[key] for key in sorted(counts) if counts[key] >= spend.cut}

    def chosen(self, scores: NDArray[np.int64], spend: Exponential) -> NDArray[np.int64]:
        return np.argsort(-scores, kind="stable")[: spend.draws]


class Inventing:
    """Releases what it was told to, whatever the exact answers are: what follows must follow from that alone."""

    def __init__(self, *, full: int, value: str) -> None:
        self._full, self._value = full, value

    def noised(self, answers: Sequence[Charged]) -> list[NDArray[np.int64]]:
        return [self._invented(exact.shape) for exact, _ in answers]

    def _invented(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        released = np.zeros(shape, np.int64)
        released.flat[self._full] = 2**40
        return released

    def listed(self, counts: Mapping[str, int], spend: Threshold) -> dict[str, int]:
        return {self._value: spend.cut}

    def chosen(self, scores: NDArray[np.int64], spend: Exponential) -> NDArray[np.int64]:
        return np.arange(spend.draws)


class Scaled(SystemNoise):
    """The real samplers with a standard deviation that is off by a factor."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def noised(self, answers: Sequence[Charged]) -> list[NDArray[np.int64]]:
        noisy = super().noised([(exact, self._scaled(spend)) for exact, spend in answers])
        pairs = zip(noisy, answers, strict=True)
        return [released // 2 if isinstance(spend, Gaussian) else released for released, (_, spend) in pairs]

    def _scaled(self, spend: Gaussian | Laplace) -> Gaussian | Laplace:
        if isinstance(spend, Gaussian):
            return replace(spend, sigma=spend.sigma * self.factor, lattice=spend.lattice + 1)
        return replace(spend, scale=spend.scale * self.factor, charged=None)
