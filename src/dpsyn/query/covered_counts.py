"""Counts of a table that was measured, before negative ones are removed, and the covariance of any sums of them.

The counts of an ``Answer`` are not negative, which biases sums of many small ones. Statistics that are ratios of sums
are better computed without that bias; then their noise is known exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding import Codec
from dpsyn.inference import norm_sub
from dpsyn.inference.histogram_hierarchy import Histogram, as_floats
from dpsyn.marginals import Clique
from dpsyn.query.engine import Queryable, estimate_complete_view
from dpsyn.query.linear_estimation import LinearEstimate, QueryValues, expand_interactions, reflect
from dpsyn.query.model_marginals import needs_sampled_rows
from dpsyn.query.observations import combine_measured_counts
from dpsyn.query.query import Query, QueryView, contract_axes


@dataclass(frozen=True, slots=True, eq=False)
class CoveredCounts:
    """The counts of all combinations of values of some attributes, from a table of all of them.

    Attributes:
        query: the query, of single cells.
        laplace: whether some noise has a Laplace distribution.
        estimate: the best linear unbiased estimate: of one attribute at any resolution, or of a table.
        interpolated_attributes: the attributes that were measured in groups, divided by their own histograms.
        unbiased_counts: the estimated counts, with an axis for each attribute; some may be negative.
        non_negative_counts: the counts without negative ones, with the same sum if that is positive.
    """

    query: Query
    laplace: bool
    estimate: OneWayParts | LinearTable
    interpolated_attributes: Clique
    unbiased_counts: QueryValues = field(init=False)
    non_negative_counts: QueryValues = field(init=False)

    def __post_init__(self) -> None:
        counts = self.estimate.arrange_counts(self.query)
        object.__setattr__(self, "unbiased_counts", counts)
        object.__setattr__(self, "non_negative_counts", norm_sub(counts, max(float(counts.sum()), 0.0)))

    def groups_of(self, name: str) -> GroupedAxis | None:
        """The groups of values in which an attribute was measured; None if it was measured value by value."""
        if name not in self.interpolated_attributes or not isinstance(self.estimate, LinearTable):
            return None
        return self.estimate.groups_of(name)

    def noise_covariance(self, weights: QueryValues) -> QueryValues:
        """The covariance matrix of two weighted sums of the counts, due to the noise; ``weights`` are sums × counts.

        From variances of their sum and difference: cov(a, b) = (var(a + b) − var(a − b))/4.
        """
        one, other = weights
        first, second, both, difference = self.noise_variances(np.stack([one, other, one + other, one - other]))
        return np.array([[first, (both - difference) / 4], [(both - difference) / 4, second]])

    def noise_variances(self, weights: QueryValues) -> QueryValues:
        """The variances of weighted sums of the counts, due to the noise; ``weights`` are sums × counts."""
        return self.estimate.sum_variances(weights, self.query)


@dataclass(frozen=True, slots=True, eq=False)
class GroupedAxis:
    """Values of an attribute that was measured in groups together with others.

    Attributes:
        shares: values × groups: the share of each value in its group, by the histogram of the attribute alone.
        counts: the unbiased number of rows of each group.
    """

    shares: QueryValues
    counts: QueryValues

    @property
    def group_of(self) -> NDArray[np.int64]:
        """The group of each value."""
        return np.asarray(self.shares.argmax(axis=1), np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class OneWayParts:
    """The histogram of one attribute, and the part of an atom that each output has; an output lies in one atom."""

    histogram: Histogram
    atoms: NDArray[np.int64]
    parts: QueryValues

    def arrange_counts(self, query: Query) -> QueryValues:
        """The count of each output."""
        return self.histogram.values[self.atoms] * self.parts

    def sum_variances(self, weights: QueryValues, query: Query) -> QueryValues:
        """The variances of weighted sums."""
        size = len(self.histogram.values)
        parts = np.stack([as_floats(np.bincount(self.atoms, each * self.parts, size)) for each in weights])
        output, atom = np.divmod(np.arange(parts.size), size)
        return self.histogram.sum_parts(output, atom, parts.ravel(), len(parts))[1]


@dataclass(frozen=True, slots=True, eq=False)
class LinearTable:
    """The best linear estimate of the table of a view."""

    view: QueryView
    linear: LinearEstimate

    def arrange_counts(self, query: Query) -> QueryValues:
        """The counts of outputs, with an axis for each attribute of the query."""
        return self.view.arrange_outputs(contract_axes(self.linear.table(), self.view.weights), query)

    def sum_variances(self, weights: QueryValues, query: Query) -> QueryValues:
        """The variances of weighted sums, from those of the coefficients, which are independent."""
        by_column = self._arrange_weights(weights, query)
        codes = contract_axes(by_column, [None, *(None if given is None else given.T for given in self.view.weights)])
        coefficients = reflect(codes, range(1, codes.ndim)).reshape(len(weights), -1)
        variances = expand_interactions(self.linear.variances, self.linear.shape).ravel()
        return coefficients**2 @ variances

    def groups_of(self, name: str) -> GroupedAxis | None:
        """The codes of the column of an attribute, if the column is of this attribute alone."""
        for axis, (column, given) in enumerate(zip(self.view.columns, self.view.weights, strict=True)):
            if column.name == name and len(column.sources) == 1 and given is not None:
                return GroupedAxis(given, self.linear.sums((axis,)))
        return None

    def _arrange_weights(self, weights: QueryValues, query: Query) -> QueryValues:
        """Weights of the outputs of a query, with an axis for each column of the view."""
        listed = [name for name in self.view.attributes if name in query.names]
        ordered = np.transpose(weights, [0, *(1 + query.names.index(name) for name in listed)])
        outputs = [
            column.size if given is None else len(given)
            for column, given in zip(self.view.columns, self.view.weights, strict=True)
        ]
        return ordered.reshape(len(weights), *outputs)


def find_covered_counts(synopsis: Queryable, names: Sequence[str], where: Mapping[str, object]) -> CoveredCounts | None:
    """The counts of some attributes, cell by cell; None unless a table of all of them was measured."""
    schema = synopsis.schema
    if any(schema.parts_of(name) != (name,) for name in names) or {*names} & {each.name for each in schema.derive}:
        return None
    query, codec = Query.of(schema, names, where, cells=True), Codec(schema)
    if needs_sampled_rows(query, synopsis.model, codec):
        return None
    laplace = any(release.has_laplace_noise for release in synopsis.releases)
    if len(query.axes) == 1 and schema[names[0]].cells != schema[names[0]].size:
        parts = _divide_histogram(synopsis, query, codec)
        return None if parts is None else CoveredCounts(query, laplace, parts, ())
    found = estimate_complete_view(synopsis, query, codec)
    return (
        None if found is None else CoveredCounts(query, laplace, LinearTable(*found), found[0].interpolated_attributes)
    )


def _divide_histogram(synopsis: Queryable, query: Query, codec: Codec) -> OneWayParts | None:
    """The histogram of the only attribute of a query, divided among its values as the model has them."""
    [(name, axis)] = query.axes.items()
    histogram = combine_measured_counts(codec, synopsis.releases, name)
    if histogram is None:
        return None
    weights, size = synopsis.model.histograms[name], len(histogram.values)
    totals = np.bincount(histogram.atom_of, weights, size)
    weights = np.where((totals > 0)[histogram.atom_of], weights, 1.0)
    shares = weights / np.bincount(histogram.atom_of, weights, size)[histogram.atom_of]
    cells = axis.listed_cells
    return OneWayParts(histogram, histogram.atom_of[cells], shares[cells])
