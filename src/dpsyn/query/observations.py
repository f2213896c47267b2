"""All that was released about some attributes, as observations of their table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpsyn.encoding import Codec, RecodedColumn, Recoding, project_to_recoding
from dpsyn.inference.measurements import Release
from dpsyn.marginals import Clique, Estimate, Marginal
from dpsyn.query.blue import Observation, Parity, QueryValues
from dpsyn.query.query import OutputAxis


@dataclass(frozen=True, slots=True)
class ParityCounts:
    """How many rows have an even and an odd number of ones among some binary attributes.

    Attributes:
        names: the attributes.
        even: the noisy number of rows with an even number of ones.
        odd: that with an odd one.
        variance: of the noise in each.
    """

    names: Clique
    even: float
    odd: float
    variance: float


def collect_observations(
    releases: tuple[Release, ...], recoding: Recoding, clique: Clique, *, rows: float | None = None
) -> list[Observation | Parity]:
    """What every marginal says about the table of a clique under a recoding; ``rows`` if their number is public."""
    found: list[Observation | Parity] = [] if rows is None else [Observation((), np.array(rows), 0.0)]
    for told in _project_marginals(releases, recoding):
        found += [project_to_clique(told, clique)] if isinstance(told, Estimate) else _parity_observations(told, clique)
    return found


def iterate_marginals(releases: Iterable[Release]) -> Iterator[tuple[Recoding, Marginal]]:
    """Every marginal, and the recoding it was measured under."""
    return ((stage.recoding, m) for release in releases for stage in release.rounds for m in stage.marginals)


def project_to_clique(estimate: Estimate, clique: Clique) -> Observation:
    """What a table says about those attributes of a clique that it holds."""
    axes = tuple(axis for axis, name in enumerate(clique) if name in estimate.clique)
    values = np.asarray(estimate.project([clique[axis] for axis in axes]))
    return Observation(axes, values, estimate.variance * estimate.values.size / values.size)


@lru_cache(maxsize=4)  # one question asks many times, and is seldom the last
def _project_marginals(releases: tuple[Release, ...], recoding: Recoding) -> list[Estimate | ParityCounts]:
    """What every marginal says about the codes of a recoding; those that say nothing are left out."""
    found: list[Estimate | ParityCounts] = []
    for source, marginal in iterate_marginals(releases):
        told = project_to_recoding(marginal, source, recoding) or _parity_counts(marginal, source, recoding)
        found += [told] if told is not None else []
    return found


# ── parities ─────────────────────────────────────────────────────────────────────────────────────────────────


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
    """The binary attributes of which a column tells whether an even number is 1; None if it tells something else."""
    if column.merged is None or any(table.tolist() != [0, 1] for table in column.tables):
        return None
    if column.merged.tolist() != parity_table(len(column.sources)):
        return None
    return tuple(origin[place][0] for place in column.sources)


def parity_table(count: int) -> list[int]:
    """For all combinations of 0 and 1, the last running fastest, whether the number of ones is odd."""
    return [place.bit_count() % 2 for place in range(2**count)]


# ── One attribute by itself, measured over its cells, over its bins, or both ──


def estimate_one_way_outputs(
    codec: Codec, releases: Sequence[Release], name: str, axis: OutputAxis
) -> tuple[QueryValues, QueryValues] | None:
    """The best linear unbiased estimate of each output, and its deviation; None if it was not measured so finely.

    With cells x of variance v, and the sum y of the m cells of a bin of variance u, the best estimate of the cells is
    x + t·(y − Σx)/m, t = vm/(vm + u). If c cells of the bin count for an output, f = tc/m, it gets Σx + f·(y − Σx) of
    the bin, whose variance is v·(c(1−f)² + (m−c)f²) + uf².
    """
    bin_of = codec.groupings[codec.names.index(name)].group_of
    counted, bins = axis.output_of >= 0, int(bin_of.max()) + 1
    pairs, pair_of = np.unique(axis.output_of[counted] * bins + bin_of[counted], return_inverse=True)
    output, place = np.divmod(pairs, bins)
    inside, size = np.bincount(pair_of), np.bincount(bin_of)[place]
    over_cells, over_bins = _mean_counts(codec, releases, name)
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
    estimate, spread = (np.bincount(output, part, axis.size) for part in (sums, variances))
    return estimate.astype(np.float64), np.sqrt(spread)


MeanCounts = tuple[QueryValues, float]
"""Counts and the variance of each."""


def _mean_counts(codec: Codec, releases: Sequence[Release], name: str) -> tuple[MeanCounts | None, MeanCounts | None]:
    """The counts over cells, and over bins where a marginal tells no more: means weighted by inverse variance."""
    fine, coarse = Recoding.fine(codec), Recoding.coarse(codec)
    found: tuple[list[MeanCounts], list[MeanCounts]] = [], []
    for recoding, marginal in iterate_marginals(releases):
        if name not in marginal.clique:
            continue
        for seen, target in zip(found, (fine, coarse), strict=True):
            told = project_to_recoding(marginal, recoding, target)
            if told is not None:
                alone = project_to_clique(told, (name,))
                seen.append((alone.values, alone.variance))
                break
    return _weighted_mean(found[0]), _weighted_mean(found[1])


def _weighted_mean(seen: list[MeanCounts]) -> MeanCounts | None:
    if not seen:
        return None
    precision = math.fsum(1 / variance for _, variance in seen)
    return np.asarray(sum(values / variance for values, variance in seen)) / precision, 1 / precision
