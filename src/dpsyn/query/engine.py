"""Any marginal of a synopsis, with standard errors: which estimate answers a query, and the answer.

PriView (SIGMOD 2014): a table that one released marginal (*view*) covers is a sum over that view; any other table is
reconstructed from everything that the views have in common with it. Queries are post-processing of what was released,
so they cost no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, Protocol

import numpy as np

from dpsyn.encoding import Codec, Recoding, are_equivalent, project_to_levels
from dpsyn.errors import QueryError, quote_argument
from dpsyn.inference import norm_sub
from dpsyn.inference.measurements import Model, Release, iterate_marginals
from dpsyn.marginals import Clique
from dpsyn.query.answer import Answer, AnswerSource
from dpsyn.query.linear_estimation import (
    Axes,
    LinearEstimate,
    Observation,
    OutputWeights,
    QueryValues,
    estimate_linear,
    expand_interactions,
    reflect,
    shrink_to_model,
)
from dpsyn.query.model_error import ModelVariances, estimate_model_variances, interactions_within, pairs_are_known
from dpsyn.query.model_marginals import answer_from_sampled_rows, model_marginal, needs_sampled_rows, sampled_marginal
from dpsyn.query.noise_propagation import propagate_noise
from dpsyn.query.observations import collect_observations, estimate_one_way_outputs
from dpsyn.query.query import MAX_QUERY_CELLS, Query, QueryView, contract_axes
from dpsyn.query.reconstruction import KnownMarginal, Reconstruction, least_norm, linear_program, maximum_entropy
from dpsyn.schema import Schema

ReconstructionMethod = Literal["maximum entropy", "least norm", "linear program"]

RECONSTRUCTION_METHODS: dict[ReconstructionMethod, Callable[[tuple[int, ...], list[KnownMarginal]], Reconstruction]] = {
    "maximum entropy": maximum_entropy,
    "least norm": least_norm,
    "linear program": linear_program,
}
"""Ways to reconstruct a table; maximum entropy is the most accurate (``bench/priview.py``)."""


UNKNOWN_MODEL_ERROR = (
    "no released number shows the model error, so it was taken to be as large as the counts (root mean square)"
)
"""A note of an answer."""


class Queryable(Protocol):
    """What queries are answered from; a ``Synopsis`` is one."""

    @property
    def schema(self) -> Schema:
        """What is public about the table."""

    @property
    def releases(self) -> tuple[Release, ...]:
        """What was measured."""

    @property
    def model(self) -> Model:
        """The model inferred from the releases."""


def answer_query(
    synopsis: Queryable,
    names: Sequence[str],
    where: Mapping[str, object],
    *,
    cells: bool = False,
    method: ReconstructionMethod = "maximum entropy",
) -> Answer:
    """The counts of all rows that meet the conditions, by the values of the named attributes."""
    if method not in RECONSTRUCTION_METHODS:
        raise QueryError(
            f"there is no reconstruction method {quote_argument(method)}; use one of "
            f"{', '.join(RECONSTRUCTION_METHODS)}"
        )
    query, codec = Query.of(synopsis.schema, names, where, cells=cells), Codec(synopsis.schema)
    answer = (
        answer_from_sampled_rows(query, synopsis.model, codec)
        if needs_sampled_rows(query, synopsis.model, codec)
        else _answer_one_way(synopsis, query, codec)
        or _answer_in_schema_bins(synopsis, query, codec)
        or _answer_at_levels(synopsis, query, codec)
        or _answer_in_model_codes(synopsis, query, codec, method)
    )
    return replace(answer, laplace=any(release.has_laplace_noise for release in synopsis.releases))


# ── Estimates that can answer a query ────────────────────────────────────────────────────────────────────────


def _answer_one_way(synopsis: Queryable, query: Query, codec: Codec) -> Answer | None:
    """One attribute that was measured at several resolutions, such as cells and bins.

    Counts are those of the model, from which rows are sampled. Intervals are around the best linear estimate.
    """
    [(name, axis), *others] = query.axes.items()
    if others or synopsis.schema[name].cells == synopsis.schema[name].size:
        return None
    estimate = estimate_one_way_outputs(codec, synopsis.releases, name, axis, synopsis.model.histograms[name])
    view = _model_view(synopsis, query, codec)
    table = model_marginal(synopsis.model, view.clique)
    if estimate is None or table is None:
        return None
    counts = contract_axes(table, view.weights)
    interpolated = () if estimate.whole else (name,)
    return _make_answer(
        query,
        view,
        counts,
        estimate.stds,
        "covered",
        centers=estimate.counts,
        model_errors=None if interpolated else np.zeros(counts.shape),
        interpolated_attributes=interpolated,
    )


def _answer_in_schema_bins(synopsis: Queryable, query: Query, codec: Codec) -> Answer | None:
    """Several attributes over the bins of the schema, if a marginal of all was measured before some were merged."""
    view = QueryView.of(query, Recoding.coarse(codec), codec, synopsis.model.histograms)
    if view.has_same_columns(_model_view(synopsis, query, codec)) or view.cells > MAX_QUERY_CELLS:
        return None
    linear = _estimate_view(synopsis, Recoding.coarse(codec), view)
    return _answer_covered(synopsis, query, view, linear, None) if linear.complete else None


def _answer_at_levels(synopsis: Queryable, query: Query, codec: Codec) -> Answer | None:
    """Several attributes that were measured together, but only at coarser levels than the model has.

    The finest such marginal decides the levels; everything else that was measured as finely tells about them, too.
    Where the query cuts a group of a level, its rows are interpolated.
    """
    model_view = _model_view(synopsis, query, codec)
    if len(model_view.columns) < 2 or model_marginal(synopsis.model, model_view.clique) is not None:
        return None
    recoding = _finest_levels(synopsis, model_view)
    if recoding is None:
        return None
    view = QueryView.of(query, recoding, codec, synopsis.model.histograms)
    linear = _estimate_view(synopsis, recoding, view) if view.cells <= MAX_QUERY_CELLS else None
    if linear is None or not linear.complete:
        return None
    return _answer_covered(synopsis, query, view, linear, _model_table_at_levels(synopsis.model, view))


def _finest_levels(synopsis: Queryable, model_view: QueryView) -> Recoding | None:
    """The recoding of the model with the columns of a view as in the marginal that has them all in the most cells.

    None if there is none, or if the model has them as finely, so that it answers itself.
    """
    best: tuple[int, Recoding] | None = None
    for source, marginal in iterate_marginals(synopsis.releases):
        if not {*model_view.clique} <= {*marginal.clique}:
            continue
        columns = [source.columns[source.index_of(name)] for name in model_view.clique]
        if project_to_levels(marginal, source, synopsis.model.recoding) is None:
            continue
        cells = math.prod(column.size for column in columns)
        if best is None or cells > best[0]:
            replaced = {column.name: column for column in columns}
            kept = tuple(replaced.get(column.name, column) for column in synopsis.model.recoding.columns)
            best = cells, Recoding(kept, synopsis.model.recoding.origin)
    if best is None or all(map(are_equivalent, best[1].columns, synopsis.model.recoding.columns)):
        return None
    return best[1]


def _model_table_at_levels(model: Model, view: QueryView) -> QueryValues | None:
    """The counts of a view in the model's table of the same attributes at the same levels; None if it has none."""
    for table in model.tables:
        if {*table.clique} == {*view.clique}:
            sums = np.asarray(table.project(view.clique))
            same = sums.shape == view.shape and all(
                np.array_equal(
                    np.asarray(table.levels.get(column.name, np.arange(own.size)))[own.tables[0]], column.tables[0]
                )
                for column in view.columns
                for own in [model.recoding.columns[model.recoding.index_of(column.name)]]
                if len(column.sources) == 1 and column.merged is None and own.merged is None
            )
            if same:
                return sums
    return None


def _answer_in_model_codes(synopsis: Queryable, query: Query, codec: Codec, method: ReconstructionMethod) -> Answer:
    """Any attributes, over the codes of the model."""
    view = _model_view(synopsis, query, codec)
    if view.cells > MAX_QUERY_CELLS:
        raise QueryError(
            f"{', '.join(view.attributes)} have {view.cells:,} combinations of values, more than {MAX_QUERY_CELLS:,}; "
            "ask for fewer attributes at a time"
        )
    linear = _estimate_view(synopsis, synopsis.model.recoding, view)
    table = model_marginal(synopsis.model, view.clique)
    if linear.complete:
        return _answer_covered(synopsis, query, view, linear, table)
    known = linear.known_axes()
    if not known:
        raise QueryError(f"no released marginal has {', '.join(view.attributes)}; the query cannot be answered")
    if table is not None:  # a table that the recipe estimated itself
        variances = estimate_model_variances(synopsis.releases, synopsis.model, view.clique, linear, known, table)
        errors = propagate_noise(table, linear, known, view.weights)
        return _answer_uncovered(query, view, table, errors, "model", variances)
    return _answer_reconstructed(synopsis, query, view, linear, known, method)


def _answer_covered(
    synopsis: Queryable, query: Query, view: QueryView, linear: LinearEstimate, model_table: QueryValues | None
) -> Answer:
    """A table that was measured, or sums of one."""
    best = linear if model_table is None else shrink_to_model(linear, reflect(model_table, range(model_table.ndim)))
    counts = contract_axes(norm_sub(best.table(), synopsis.model.total), view.weights)
    centers, errors = contract_axes(linear.table(), view.weights), linear.output_stds(view.weights)
    model_errors = None if view.interpolated_attributes else np.zeros(counts.shape)
    return _make_answer(query, view, counts, errors, "covered", centers=centers, model_errors=model_errors)


def _answer_reconstructed(
    synopsis: Queryable,
    query: Query,
    view: QueryView,
    linear: LinearEstimate,
    known: list[Axes],
    method: ReconstructionMethod,
) -> Answer:
    """A table reconstructed from its largest known sums, or counted in rows of the model where that is closer."""
    table = RECONSTRUCTION_METHODS[method](view.shape, _known_marginals(synopsis, view, linear, known))
    errors = propagate_noise(table.values, linear, known, view.weights)
    variances = estimate_model_variances(synopsis.releases, synopsis.model, view.clique, linear, known, table.values)
    if method == "maximum entropy" and not pairs_are_known(known, len(view.shape)):
        sampled, sampling_std = sampled_marginal(synopsis.model, view.clique)
        difference = sampled - table.values
        if _model_is_closer(difference, sampling_std, known):
            errors = np.sqrt(errors**2 + contract_axes(sampling_std**2, _square_weights(view.weights)))
            return _answer_uncovered(query, view, sampled, errors, "model", variances, difference)
    inexact = not table.converged or table.max_gap > max(1.0, float(errors.max()))
    notes = (f"{method} did not converge: sums differ by up to {table.max_gap:,.1f} rows",) if inexact else ()
    return _answer_uncovered(query, view, table.values, errors, "reconstructed", variances, notes=notes)


def _answer_uncovered(
    query: Query,
    view: QueryView,
    table: QueryValues,
    errors: QueryValues,
    source: AnswerSource,
    variances: ModelVariances,
    difference: QueryValues | None = None,
    *,
    notes: tuple[str, ...] = (),
) -> Answer:
    """The outputs of a table that was not measured; ``errors`` is the noise that was propagated to them.

    The errors of cells are taken to be independent. Where the model replaces the reconstruction, their ``difference``
    is an error of one of them.
    """
    squares = _square_weights(view.weights)
    hidden = np.maximum(contract_axes(variances.hidden, squares) - errors**2, 0.0)
    squared_errors = contract_axes(variances.unknown, squares) + hidden
    if difference is not None:
        squared_errors = squared_errors + contract_axes(difference, view.weights) ** 2
    counts = contract_axes(table, view.weights)
    notes = notes if variances.estimated else (*notes, UNKNOWN_MODEL_ERROR)
    return _make_answer(query, view, counts, errors, source, model_errors=np.sqrt(squared_errors), notes=notes)


def _make_answer(
    query: Query,
    view: QueryView,
    counts: QueryValues,
    errors: QueryValues,
    source: AnswerSource,
    *,
    centers: QueryValues | None = None,
    model_errors: QueryValues | None,
    interpolated_attributes: Clique | None = None,
    notes: tuple[str, ...] = (),
) -> Answer:
    """The answer from the outputs of a view.

    Unless they are given, ``centers`` are the counts, and interpolated attributes those of the view.
    """
    centers = counts if centers is None else centers
    counts, errors, centers = (view.arrange_outputs(outputs, query) for outputs in (counts, errors, centers))
    model_errors = None if model_errors is None else view.arrange_outputs(model_errors, query)
    return Answer(
        attributes=query.names,
        labels=query.labels,
        counts=counts,
        standard_errors=errors,
        interval_centers=centers,
        source=source,
        model_errors=model_errors,
        interpolated_attributes=view.interpolated_attributes
        if interpolated_attributes is None
        else interpolated_attributes,
        notes=notes,
        values=query.values,
    )


def estimate_complete_view(synopsis: Queryable, query: Query, codec: Codec) -> tuple[QueryView, LinearEstimate] | None:
    """The view and the linear estimate by which a query that released tables cover is answered; None otherwise."""
    return (
        _complete(synopsis, Recoding.coarse(codec), query, codec)
        or _complete(synopsis, synopsis.model.recoding, query, codec)
        or _complete(synopsis, _finest_levels(synopsis, _model_view(synopsis, query, codec)), query, codec)
    )


def _complete(
    synopsis: Queryable, recoding: Recoding | None, query: Query, codec: Codec
) -> tuple[QueryView, LinearEstimate] | None:
    if recoding is None:
        return None
    view = QueryView.of(query, recoding, codec, synopsis.model.histograms)
    linear = _estimate_view(synopsis, recoding, view) if view.cells <= MAX_QUERY_CELLS else None
    return (view, linear) if linear is not None and linear.complete else None


# ── Estimates of a view ──────────────────────────────────────────────────────────────────────────────────────


def _model_view(synopsis: Queryable, query: Query, codec: Codec) -> QueryView:
    return QueryView.of(query, synopsis.model.recoding, codec, synopsis.model.histograms)


def _estimate_view(synopsis: Queryable, recoding: Recoding, view: QueryView) -> LinearEstimate:
    """The best linear estimate of the table of a view."""
    certificates = [release.certificate for release in synopsis.releases if release.certificate]
    is_public = all(certificate.privacy_unit.row_count_is_public for certificate in certificates)
    rows = synopsis.model.total if synopsis.schema.row_count_is_public and is_public else None
    return estimate_linear(view.shape, collect_observations(synopsis.releases, recoding, view.clique, rows=rows))


def _known_marginals(
    synopsis: Queryable, view: QueryView, linear: LinearEstimate, known: Sequence[Axes]
) -> list[KnownMarginal]:
    """The counts over some columns of a view: the linear estimate, shrunk to the model where the model has them."""
    tables = {axes: model_marginal(synopsis.model, tuple(view.clique[axis] for axis in axes)) for axes in known}
    observed = [Observation(axes, table, 1.0) for axes, table in tables.items() if table is not None]
    if len(observed) == len(known):
        linear = shrink_to_model(linear, estimate_linear(view.shape, observed).coefficients)
    return [KnownMarginal(axes, norm_sub(linear.sums(axes), synopsis.model.total)) for axes in known]


def _model_is_closer(difference: QueryValues, sampling_std: QueryValues, known: Sequence[Axes]) -> bool:
    """Whether rows of the model are predicted to be closer to the truth than a reconstruction, from their difference.

    In the known components both should agree, so the difference there is the error of the model's fit. In the unknown
    components they differ by what tables of other attributes imply, which the reconstruction lacks, and by chance. A
    sum of n squares that are due to chance alone has a standard deviation of √(2/n) of itself; two standard deviations
    must not decide.
    """
    inside = expand_interactions(interactions_within(known, difference.ndim), difference.shape)
    squares = reflect(difference, range(difference.ndim)) ** 2
    by_chance = float((sampling_std**2).sum()) * float((~inside).mean())
    added = float(squares[~inside].sum()) - by_chance * (1 + 2 * math.sqrt(2 / max(1, int((~inside).sum()))))
    return added > float(squares[inside].sum()) + by_chance


def _square_weights(weights: Sequence[OutputWeights | None]) -> list[OutputWeights | None]:
    return [None if given is None else given**2 for given in weights]
