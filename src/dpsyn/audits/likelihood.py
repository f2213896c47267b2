"""How likely released answers are on either of two neighboring tables, and answers with less noise.

The log-likelihood ratio of all released answers is the best statistic to tell two known tables apart (Neyman and
Pearson). A bound that is computed from it is valid even if the noise has another distribution than is stated here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp, ndtr

from dpsyn.accounting import Exponential, Gaussian, Laplace, PartitionSelection
from dpsyn.errors import InternalError
from dpsyn.private import RehearsedAnswer

MAX_LOG_RATIO = 50.0
"""The largest ratio of one answer: something that is impossible on the other table."""


def log_likelihood_ratio(answer: RehearsedAnswer, neighbor: Any, released: Any = None) -> float:
    """ln P(released | exact answer) − ln P(released | the neighbor's exact answer)."""
    cost, exact = answer.cost, answer.exact
    released = answer.released if released is None else released
    match cost:
        case Gaussian():
            steps = 2.0**cost.lattice
            ours, theirs = (np.asarray(released) / steps - np.asarray(each) for each in (exact, neighbor))
            return float((theirs**2 - ours**2).sum() / (2 * cost.sigma**2))
        case Laplace():
            ours, theirs = (np.abs(np.asarray(released) - np.asarray(each)).sum() for each in (exact, neighbor))
            return float(theirs - ours) / cost.scale
        case Exponential():
            return choice_log_probability(exact, released, cost.scale) - choice_log_probability(
                neighbor, released, cost.scale
            )
        case PartitionSelection():
            ratio = listing_log_probability(exact, released, cost) - listing_log_probability(neighbor, released, cost)
            return max(-MAX_LOG_RATIO, min(MAX_LOG_RATIO, ratio))
    raise InternalError(f"an audit knows nothing of {type(cost).__name__}")


def choice_log_probability(scores: NDArray[np.int64], chosen: Sequence[int], scale: float) -> float:
    """ln P of candidates that were chosen one after another, without replacement."""
    left, total = scores / scale, 0.0
    for position in chosen:
        total += float(left[position] - logsumexp(left))
        left = left.copy()
        left[position] = -np.inf
    return total


def listing_log_probability(counts: dict[str, int], listed: Any, cost: PartitionSelection) -> float:
    """ln P of the keys that were listed; a key that does not occur cannot be."""
    if any(key not in counts for key in listed):
        return -2 * MAX_LOG_RATIO
    return sum(
        listing_log_tail(count, cost)
        if key in listed
        else math.log1p(-min(listing_probability(count, cost), 1 - 1e-12))
        for key, count in counts.items()
    )


def listing_log_tail(count: int, cost: PartitionSelection) -> float:
    """ln P that a key with this count is listed."""
    margin = cost.threshold - count
    if isinstance(cost.noise, Gaussian):
        half_step = 0.5 / 2**cost.noise.lattice
        return float(log_ndtr((half_step - margin) / cost.noise.sigma))
    if margin >= 1:
        return cost.noise.log_tail(margin)
    return math.log1p(-math.exp(cost.noise.log_tail(1 - margin)))


def listing_probability(count: int, cost: PartitionSelection) -> float:
    """P that a key with this count is listed."""
    return math.exp(listing_log_tail(count, cost))


def reached_loss(answer: RehearsedAnswer, neighbor: Any) -> float:
    """How far apart the exact answers of two tables are, in units of the noise: μ for Gaussian noise, otherwise ε."""
    cost = answer.cost
    if isinstance(cost, PartitionSelection):
        common = answer.exact.keys() & neighbor.keys()
        return math.sqrt(sum((answer.exact[key] - neighbor[key]) ** 2 for key in common)) / cost.noise.std
    difference = np.asarray(answer.exact, np.float64) - np.asarray(neighbor, np.float64)
    if isinstance(cost, Gaussian):
        return float(np.sqrt((difference**2).sum())) / cost.sigma
    if isinstance(cost, Laplace):
        return float(np.abs(difference).sum()) / cost.scale
    spread = np.ptp(difference) if cost.selections == 1 else np.abs(difference).max() * cost.selections
    return float(spread) / cost.scale


def release_with_less_noise(answer: RehearsedAnswer, factor: float, rng: np.random.Generator) -> Any:
    """What would have been released had the noise been smaller by a factor: the same noise, scaled, or a new choice."""
    cost = answer.cost
    match cost:
        case Gaussian():
            exact = np.asarray(answer.exact) * 2.0**cost.lattice
            return exact + (np.asarray(answer.released) - exact) * factor
        case Laplace():
            noise = np.asarray(answer.released) - np.asarray(answer.exact)
            return np.asarray(answer.exact) + np.trunc(noise * factor + np.sign(noise) * rng.random(noise.shape))
        case Exponential():
            noisy = answer.exact / (cost.scale * factor) + rng.gumbel(size=len(answer.exact))
            return np.argsort(-noisy)[: cost.selections]
    keys = sorted(answer.exact)
    counts = np.array([answer.exact[key] for key in keys], np.float64)
    noisy = counts + rng.normal(0, cost.noise.std * factor, len(keys))
    return [key for key, value in zip(keys, noisy, strict=True) if value >= cost.threshold]


def uniform_values(answer: RehearsedAnswer, rng: np.random.Generator) -> NDArray[np.float64]:
    """The noise of an answer by its stated distribution function: independent and uniform if the noise is as stated.

    Whole numbers are spread over the steps of their distribution function by further random numbers.
    """
    cost = answer.cost
    match cost:
        case Gaussian():
            values: NDArray[np.float64] = ndtr(standardized_noise(answer))
            return values
        case Laplace():
            noise = (np.asarray(answer.released) - np.asarray(answer.exact)).ravel()
            q = math.exp(-1 / cost.scale)
            below = np.where(
                noise > 0, 1 - q ** np.maximum(noise, 0) / (1 + q), q ** np.maximum(1 - noise, 0) / (1 + q)
            )
            density = (1 - q) / (1 + q) * q ** np.abs(noise)
            return np.asarray(below + density * rng.random(noise.shape))
        case Exponential():
            logs = answer.exact / cost.scale
            probabilities = np.exp(logs - logsumexp(logs))
            first = int(answer.released[0])
            return np.array([probabilities[:first].sum() + probabilities[first] * rng.random()])
    listed = set(answer.released)
    found = []
    for key in sorted(answer.exact):
        p = listing_probability(answer.exact[key], cost)
        found.append(rng.random() * p if key in listed else p + rng.random() * (1 - p))
    return np.array(found)


def standardized_noise(answer: RehearsedAnswer) -> NDArray[np.float64]:
    """The noise of a vector of numbers, divided by its stated standard deviation."""
    cost = answer.cost
    if not isinstance(cost, Gaussian | Laplace):
        raise InternalError("only numbers have noise with a standard deviation")
    noise = np.asarray(answer.released) / 2.0**cost.lattice - np.asarray(answer.exact)
    return np.asarray(noise.ravel() / cost.std, np.float64)
