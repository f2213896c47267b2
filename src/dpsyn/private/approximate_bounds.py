"""Approximate bounds of a numeric attribute, from a noisy histogram over powers of two.

The buckets are the same for every table, so they are public.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.encoding import EMPTY, UNREADABLE, EncodedColumn
from dpsyn.encoding.column_codecs import NumberCodec, read_through_dictionary
from dpsyn.errors import InternalError
from dpsyn.marginals import Marginal
from dpsyn.schema import Integer, Real

MAX_POWER = 52
"""The largest power of two with a bucket of its own: the bounds of a schema lie within ±2^53."""

MAGNITUDE_BUCKETS = 2 * (MAX_POWER + 2)
"""Buckets: −2^52, …, −1, 0, 1, …, 2^52 by powers of two on either side, and one for cells that are no number."""

_ZERO_BUCKET = MAX_POWER + 1


class MagnitudeColumn:
    """The numbers of an attribute in buckets [2^j, 2^(j+1)) of its lattice, on either side of zero."""

    def __init__(self, attribute: Integer | Real) -> None:
        self._numbers = NumberCodec(attribute)
        self._low, self._high = attribute.origin, attribute.origin + attribute.steps - 1

    def read(self, array: pa.Array) -> EncodedColumn:
        """The bucket of every cell; numbers out of range are clipped to the nearer bound, as everywhere."""
        if pa.types.is_dictionary(array.type):
            return read_through_dictionary(array, self.read)
        coordinates, fates = self._numbers.read_coordinates(array)
        buckets = magnitude_bucket(np.clip(coordinates, self._low, self._high).astype(np.float64))
        buckets[(fates == EMPTY) | (fates == UNREADABLE)] = MAGNITUDE_BUCKETS - 1
        return EncodedColumn(buckets.astype(np.uint8), fates)

    def write(self, codes: NDArray[Any], rng: np.random.Generator) -> pa.Array:
        """Not supported: magnitudes are only counted."""
        raise InternalError("magnitudes are measured, never written")


def magnitude_bucket(coordinates: NDArray[np.float64]) -> NDArray[np.int64]:
    """The bucket of each number: 0 has the middle bucket; ±[2^j, 2^(j+1)) lies j+1 buckets to either side of it."""
    distance = np.minimum(np.frexp(np.abs(coordinates))[1], MAX_POWER + 1)
    return (_ZERO_BUCKET + np.sign(coordinates) * np.where(coordinates == 0, 0, distance)).astype(np.int64)


def bucket_bounds(first: int, last: int) -> tuple[int, int]:
    """The smallest and the largest coordinate of consecutive buckets."""
    return _bucket_edge(first, outer=first < _ZERO_BUCKET), _bucket_edge(last, outer=last > _ZERO_BUCKET)


def narrow_bounds(attribute: Integer | Real, histogram: Marginal) -> Integer | Real:
    """The attribute with bounds at the outermost buckets that exceed the noise; unchanged if no bucket does.

    Noise alone exceeds the threshold somewhere in at most one of a thousand histograms.
    """
    counts = histogram.counts[:-1]
    threshold = histogram.std * math.sqrt(2 * math.log(1_000 * len(counts)))
    occupied = np.flatnonzero(counts > threshold)
    if len(occupied) == 0:
        return attribute
    low, high = bucket_bounds(int(occupied[0]), int(occupied[-1]))
    scale = attribute.scale if isinstance(attribute, Real) else 1
    kind = float if isinstance(attribute, Real) else int
    bounds = {"low": max(attribute.low, kind(low / scale)), "high": min(attribute.high, kind(high / scale))}
    return msgspec.structs.replace(attribute, **bounds, bins=None, spikes=(), cuts=(), other=None)


def _bucket_edge(bucket: int, *, outer: bool) -> int:
    """The end of a bucket that is farther from zero, or the one that is nearer to it."""
    side, power = (1, bucket - _ZERO_BUCKET) if bucket >= _ZERO_BUCKET else (-1, _ZERO_BUCKET - bucket)
    if power == 0:
        return 0
    return side * ((1 << power) - 1 if outer else 1 << (power - 1))
