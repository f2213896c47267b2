"""Everything that was released about some attributes, as noisy observations of their table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpsyn.encoding import Codec, RecodedColumn, Recoding, project_to_recoding
from dpsyn.inference.fit import MIN_VARIANCE, one_way_evidence
from dpsyn.inference.histogram_hierarchy import GroupCounts, Histogram, combine_counts
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
    histogram = _combine_all(codec, releases, name)
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
def _combine_all(codec: Codec, releases: tuple[Release, ...], name: str) -> Histogram | None:
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
