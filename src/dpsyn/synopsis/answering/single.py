"""One attribute by itself, measured over its cells, over its bins, or both."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpsyn.records import Codec
from dpsyn.synopsis.answering.linear import Table
from dpsyn.synopsis.answering.observing import measured, projected
from dpsyn.synopsis.answering.outputs import Outputs
from dpsyn.synopsis.parts import Release
from dpsyn.transforms import Recoding, carried


def single_estimate_of(
    codec: Codec, releases: Sequence[Release], name: str, outputs: Outputs
) -> tuple[Table, Table] | None:
    """The best linear unbiased estimate of each output, and its deviation; None if it was not measured so finely.

    With cells x of variance v, and the sum y of the m cells of a bin of variance u, the best estimate of the cells is
    x + t·(y − Σx)/m, t = vm/(vm + u). If c cells of the bin count for an output, f = tc/m, it gets Σx + f·(y − Σx) of
    the bin, whose variance is v·(c(1−f)² + (m−c)f²) + uf².
    """
    bin_of = codec.groupings[codec.names.index(name)].group_of
    counted, bins = outputs.output_of >= 0, int(bin_of.max()) + 1
    pairs, pair_of = np.unique(outputs.output_of[counted] * bins + bin_of[counted], return_inverse=True)
    output, place = np.divmod(pairs, bins)
    inside, size = np.bincount(pair_of), np.bincount(bin_of)[place]
    over_cells, over_bins = _means(codec, releases, name)
    if over_cells is None:
        if over_bins is None or (inside < size).any():
            return None
        sums, variances = over_bins[0][place], np.full(len(pairs), over_bins[1])
    else:
        cells, variance = over_cells
        total, other = over_bins or (np.zeros(bins), math.inf)
        part = variance * inside / (variance * size + other)
        sums = np.bincount(pair_of, cells[counted]) + part * (total - np.bincount(bin_of, cells))[place]
        variances = variance * (inside * (1 - part) ** 2 + (size - inside) * part**2)
        variances += part**2 * (other if over_bins else 0.0)
    estimate, spread = (np.bincount(output, part, outputs.size) for part in (sums, variances))
    return estimate.astype(np.float64), np.sqrt(spread)


Mean = tuple[Table, float]
"""Counts and the variance of each."""


def _means(codec: Codec, releases: Sequence[Release], name: str) -> tuple[Mean | None, Mean | None]:
    """The counts over cells, and over bins where a marginal tells no more: means weighted by inverse variance."""
    fine, coarse = Recoding.fine(codec), Recoding.coarse(codec)
    found: tuple[list[Mean], list[Mean]] = [], []
    for recoding, marginal in measured(releases):
        if name not in marginal.clique:
            continue
        for seen, target in zip(found, (fine, coarse), strict=True):
            told = carried(marginal, recoding, target)
            if told is not None:
                alone = projected(told, (name,))
                seen.append((alone.values, alone.variance))
                break
    return _mean(found[0]), _mean(found[1])


def _mean(seen: list[Mean]) -> Mean | None:
    if not seen:
        return None
    precision = math.fsum(1 / variance for _, variance in seen)
    return np.asarray(sum(values / variance for values, variance in seen)) / precision, 1 / precision
