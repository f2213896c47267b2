"""Everything that was released about some attributes, as noisy observations of their table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpsyn.encoding import Codec, Recoding, project_to_recoding
from dpsyn.inference.fit import MIN_VARIANCE, one_way_evidence
from dpsyn.inference.histogram_hierarchy import GroupCounts, Histogram, combine_counts
from dpsyn.inference.measurements import Release, iterate_marginals
from dpsyn.marginals import Clique, Estimate
from dpsyn.query.linear_estimation import Observation, Parity, QueryValues
from dpsyn.query.query import OutputAxis


def collect_observations(
    releases: tuple[Release, ...], recoding: Recoding, clique: Clique, *, rows: float | None = None
) -> list[Observation | Parity]:
    """What every marginal implies about the table of a clique under a recoding; ``rows`` is their number if public."""
    observations: list[Observation | Parity] = [] if rows is None else [Observation((), np.array(rows), 0.0)]
    observations += [project_to_clique(projected, clique) for projected in _project_marginals(releases, recoding)]
    return [*observations, *_collect_coefficients(releases, recoding, clique)]


def project_to_clique(estimate: Estimate, clique: Clique) -> Observation:
    """The sums of a table over those attributes of a clique that it holds."""
    axes = tuple(axis for axis, name in enumerate(clique) if name in estimate.clique)
    values = np.asarray(estimate.project([clique[axis] for axis in axes]))
    return Observation(axes, values, estimate.variance * estimate.values.size / values.size)


def _collect_coefficients(releases: Sequence[Release], recoding: Recoding, clique: Clique) -> Iterator[Parity]:
    """The Fourier coefficients of all sets of binary attributes of the clique, if 0 and 1 mean what they meant then."""
    binary = {c.name for c in recoding.columns if len(c.tables) == 1 and np.array_equal(c.tables[0], [0, 1])}
    axis_of = {name: axis for axis, name in enumerate(clique) if name in binary}
    for scores in (each for release in releases for each in release.scores if not each.are_distances):
        for names, value in zip(scores.cliques, scores.values.tolist(), strict=True):
            if axis_of.keys() >= {*names}:
                yield Parity(tuple(sorted(axis_of[name] for name in names)), value, scores.std**2)


@lru_cache(maxsize=4)  # one query needs them many times, and queries come in series
def _project_marginals(releases: tuple[Release, ...], recoding: Recoding) -> list[Estimate]:
    """Every marginal over the codes of a recoding; those that do not fit it are left out."""
    projections = (project_to_recoding(marginal, source, recoding) for source, marginal in iterate_marginals(releases))
    return [projected for projected in projections if projected is not None]


# ── One attribute, measured over its cells, over its bins, or both ───────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class OneWayEstimate:
    """The best linear unbiased estimate of the outputs of one attribute.

    Attributes:
        counts: the estimated count of each output; it may be negative.
        stds: their standard deviations.
        whole: whether every output consists of whole measured groups; otherwise some of them are interpolated.
    """

    counts: QueryValues
    stds: QueryValues
    whole: bool


def estimate_one_way_outputs(
    codec: Codec, releases: tuple[Release, ...], name: str, axis: OutputAxis, weights: QueryValues | None = None
) -> OneWayEstimate | None:
    """Estimate the outputs of an attribute from everything that was measured about it, at any resolution.

    An output that has a part of a measured group gets the part by ``weights``, those of all cells; without them, and if
    nothing was measured, there is no estimate. All outputs are sums of one estimate, so a range always has the sum of
    its parts.
    """
    histogram = combine_measured_counts(codec, releases, name)
    if histogram is None:
        return None
    counted = axis.output_of >= 0
    atoms = len(histogram.values)
    cell_weights = np.ones(len(axis.output_of)) if weights is None else weights
    totals = np.bincount(histogram.atom_of, cell_weights, atoms)
    cell_weights = np.where((totals > 0)[histogram.atom_of], cell_weights, 1.0)
    totals, cells = np.bincount(histogram.atom_of, cell_weights, atoms), np.bincount(histogram.atom_of, minlength=atoms)
    pairs, pair_of = np.unique(axis.output_of[counted] * atoms + histogram.atom_of[counted], return_inverse=True)
    output, atom = np.divmod(pairs, atoms)
    whole = bool((np.bincount(pair_of) == cells[atom]).all())
    if not whole and weights is None:
        return None
    parts = np.bincount(pair_of, cell_weights[counted]) / totals[atom]
    counts, variances = histogram.sum_parts(output, atom, parts, axis.size)
    return OneWayEstimate(counts, np.sqrt(variances), whole)


@lru_cache(maxsize=64)  # the parts of a range are asked for one after the other
def combine_measured_counts(codec: Codec, releases: tuple[Release, ...], name: str) -> Histogram | None:
    """The histogram of an attribute, from its one-way marginals and from larger ones over its cells or bins."""
    evidence = [
        GroupCounts(grouping.group_of, estimate.values, max(estimate.variance, MIN_VARIANCE))
        for grouping, estimate in one_way_evidence(releases, codec.domain, name)
    ]
    index, targets = codec.names.index(name), (Recoding.fine(codec), Recoding.coarse(codec))
    for recoding, marginal in iterate_marginals(releases):
        if name in marginal.clique and len(marginal.clique) > 1:
            projections = ((target, project_to_recoding(marginal, recoding, target)) for target in targets)
            found = next(((target, projected) for target, projected in projections if projected is not None), None)
            if found is not None:
                one_way = project_to_clique(found[1], (name,))
                evidence.append(GroupCounts(found[0].columns[index].tables[0], one_way.values, one_way.variance))
    return combine_counts(evidence) if evidence else None
