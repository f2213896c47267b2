"""Everything that was released about some attributes, as noisy observations of their table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpsyn.encoding import Codec, RecodedColumn, Recoding, project_to_recoding
from dpsyn.inference.measurements import Release, iterate_marginals
from dpsyn.marginals import Clique, Estimate, Marginal
from dpsyn.query.linear_estimation import Observation, Parity, QueryValues
from dpsyn.query.query import OutputAxis


@dataclass(frozen=True, slots=True)
class ParityCounts:
    """The noisy numbers of rows with an even and with an odd number of ones among some binary attributes.

    Attributes:
        names: the attributes.
        even: the noisy number of rows with an even number of ones.
        odd: the noisy number of rows with an odd number of ones.
        variance: the variance of the noise in each of the two.
    """

    names: Clique
    even: float
    odd: float
    variance: float


def collect_observations(
    releases: tuple[Release, ...], recoding: Recoding, clique: Clique, *, rows: float | None = None
) -> list[Observation | Parity]:
    """What every marginal implies about the table of a clique under a recoding; ``rows`` is their number if public."""
    observations: list[Observation | Parity] = [] if rows is None else [Observation((), np.array(rows), 0.0)]
    for projected in _project_marginals(releases, recoding):
        if isinstance(projected, Estimate):
            observations.append(project_to_clique(projected, clique))
        else:
            observations += _parity_observations(projected, clique)
    return observations


def project_to_clique(estimate: Estimate, clique: Clique) -> Observation:
    """The sums of a table over those attributes of a clique that it holds."""
    axes = tuple(axis for axis, name in enumerate(clique) if name in estimate.clique)
    values = np.asarray(estimate.project([clique[axis] for axis in axes]))
    return Observation(axes, values, estimate.variance * estimate.values.size / values.size)


@lru_cache(maxsize=4)  # one query needs them many times, and queries come in series
def _project_marginals(releases: tuple[Release, ...], recoding: Recoding) -> list[Estimate | ParityCounts]:
    """Every marginal over the codes of a recoding; those that do not fit it are left out."""
    projections: list[Estimate | ParityCounts] = []
    for source, marginal in iterate_marginals(releases):
        projected = project_to_recoding(marginal, source, recoding) or _parity_counts(marginal, source, recoding)
        projections += [projected] if projected is not None else []
    return projections


# ── Parities ─────────────────────────────────────────────────────────────────────────────────────────────────


def _parity_counts(marginal: Marginal, source: Recoding, recoding: Recoding) -> ParityCounts | None:
    """The parity of some attributes of a recoding, if that is what was measured."""
    if len(marginal.clique) != 1 or marginal.clique[0] not in source.names:
        return None
    names = parity_attributes(source.columns[source.index_of(marginal.clique[0])], source.origin)
    sizes = dict(zip(recoding.names, recoding.sizes, strict=True))
    if names is None or any(sizes.get(name) != 2 for name in names):
        return None
    even, odd = marginal.counts.tolist()
    return ParityCounts(names, even, odd, marginal.std**2)


def _parity_observations(counts: ParityCounts, clique: Clique) -> Iterator[Parity]:
    """The number of rows, and the parity if all its attributes are in the clique."""
    yield Parity((), counts.even + counts.odd, 2 * counts.variance)
    if {*counts.names} <= {*clique}:
        axes = tuple(axis for axis, name in enumerate(clique) if name in counts.names)
        yield Parity(axes, counts.even - counts.odd, 2 * counts.variance)


def parity_attributes(column: RecodedColumn, origin: Sequence[tuple[str, int]]) -> Clique | None:
    """The binary attributes whose parity a column holds; None if it holds something else."""
    if column.merged is None or any(table.tolist() != [0, 1] for table in column.tables):
        return None
    if column.merged.tolist() != parity_table(len(column.sources)):
        return None
    return tuple(origin[index][0] for index in column.sources)


def parity_table(count: int) -> list[int]:
    """For all combinations of 0 and 1, the last running fastest, whether the number of ones is odd."""
    return [index.bit_count() % 2 for index in range(2**count)]


# ── One attribute, measured over its cells, over its bins, or both ───────────────────────────────────────────


def estimate_one_way_outputs(
    codec: Codec, releases: Sequence[Release], name: str, axis: OutputAxis
) -> tuple[QueryValues, QueryValues] | None:
    """The best linear unbiased estimate of each output, and its std; None if it was not measured as finely.

    Let cells x have variance v, and let y be the measured sum of the m cells of a bin, with variance u. The best
    estimate of the cells is x + t·(y − Σx)/m with t = vm/(vm + u). If c cells of the bin count for an output, let
    f = tc/m: the output gets Σx + f·(y − Σx) from the bin, with variance v·(c(1−f)² + (m−c)f²) + uf².
    """
    bin_of = codec.groupings[codec.names.index(name)].group_of
    counted, bins = axis.output_of >= 0, int(bin_of.max()) + 1
    pairs, pair_of = np.unique(axis.output_of[counted] * bins + bin_of[counted], return_inverse=True)
    output, bin_index = np.divmod(pairs, bins)
    inside, size = np.bincount(pair_of), np.bincount(bin_of)[bin_index]
    over_cells, over_bins = _mean_counts(codec, releases, name)
    if over_cells is None:
        if over_bins is None or (inside < size).any():
            return None
        sums, variances = over_bins[0][bin_index], np.full(len(pairs), over_bins[1])
    else:
        cells, variance = over_cells
        bin_sums, bin_variance = over_bins or (np.zeros(bins), math.inf)
        fraction = variance * inside / (variance * size + bin_variance)
        sums = np.bincount(pair_of, cells[counted]) + fraction * (bin_sums - np.bincount(bin_of, cells))[bin_index]
        variances = variance * (inside * (1 - fraction) ** 2 + (size - inside) * fraction**2)
        variances += fraction**2 * (bin_variance if over_bins else 0.0)
    estimate, total_variance = (np.bincount(output, part, axis.size) for part in (sums, variances))
    return estimate.astype(np.float64), np.sqrt(total_variance)


MeanCounts = tuple[QueryValues, float]
"""Counts, and the variance of each of them."""


def _mean_counts(codec: Codec, releases: Sequence[Release], name: str) -> tuple[MeanCounts | None, MeanCounts | None]:
    """The mean counts over cells, and over bins from marginals that are not finer, weighted by inverse variance."""
    fine, coarse = Recoding.fine(codec), Recoding.coarse(codec)
    counts: tuple[list[MeanCounts], list[MeanCounts]] = [], []
    for recoding, marginal in iterate_marginals(releases):
        if name not in marginal.clique:
            continue
        for collected, target in zip(counts, (fine, coarse), strict=True):
            projected = project_to_recoding(marginal, recoding, target)
            if projected is not None:
                one_way = project_to_clique(projected, (name,))
                collected.append((one_way.values, one_way.variance))
                break
    return _weighted_mean(counts[0]), _weighted_mean(counts[1])


def _weighted_mean(counts: list[MeanCounts]) -> MeanCounts | None:
    if not counts:
        return None
    precision = math.fsum(1 / variance for _, variance in counts)
    return np.asarray(sum(values / variance for values, variance in counts)) / precision, 1 / precision
