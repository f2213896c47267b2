"""Any marginal of a synopsis, with standard errors: which way leads to the answer, and the answer.

PriView (SIGMOD 2014): a table that some view holds is a sum over that view; any other is reconstructed from all that
the views have in common with it. Nothing here costs privacy: it is worked out from what was released.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from dpsyn.encoding import Codec, Recoding
from dpsyn.errors import UserError
from dpsyn.inference import norm_sub
from dpsyn.marginals import Clique
from dpsyn.query.answer import Answer, AnswerSource
from dpsyn.query.blue import (
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
from dpsyn.query.model_error import estimate_model_error, interactions_within, pairs_are_known
from dpsyn.query.model_marginals import answer_from_sampled_rows, model_marginal, needs_sampled_rows, sampled_marginal
from dpsyn.query.noise_propagation import propagate_noise
from dpsyn.query.observations import collect_observations, estimate_one_way_outputs
from dpsyn.query.query import MAX_QUERY_CELLS, Query, QueryView, contract_axes
from dpsyn.query.reconstruction import KnownMarginal, Reconstruction, least_norm, linear_program, maximum_entropy

if TYPE_CHECKING:
    from dpsyn.synopsis.synopsis import Synopsis

ReconstructionMethod = Literal["maximum entropy", "least norm", "linear program"]

RECONSTRUCTION_METHODS: dict[ReconstructionMethod, Callable[[tuple[int, ...], list[KnownMarginal]], Reconstruction]] = {
    "maximum entropy": maximum_entropy,
    "least norm": least_norm,
    "linear program": linear_program,
}
"""Ways to reconstruct a table; maximum entropy is nearest the truth (``bench/priview.py``)."""


@dataclass(frozen=True, slots=True, eq=False)
class _ViewAnswer:
    """Counts of outputs under a view of the question."""

    view: QueryView
    counts: QueryValues
    standard_errors: QueryValues
    interval_centers: QueryValues
    source: AnswerSource
    model_error: float | None = 0.0
    interpolated_attributes: Clique = ()
    notes: tuple[str, ...] = ()


def answer_query(
    synopsis: Synopsis,
    names: Sequence[str],
    where: Mapping[str, object],
    *,
    cells: bool = False,
    method: ReconstructionMethod = "maximum entropy",
) -> Answer:
    """The counts of all rows that meet the conditions, by the values of the attributes named."""
    if method not in RECONSTRUCTION_METHODS:
        raise UserError(
            f"there is no way {method!r} to reconstruct a table; there are {', '.join(RECONSTRUCTION_METHODS)}"
        )
    question, codec = Query.of(synopsis.schema, names, where, cells=cells), Codec(synopsis.schema)
    if needs_sampled_rows(question, synopsis.model, codec):
        return answer_from_sampled_rows(question, synopsis.model, codec)
    found = (
        _answer_one_way(synopsis, question, codec)
        or _answer_in_schema_bins(synopsis, question, codec)
        or _answer_in_model_codes(synopsis, question, codec, method)
    )
    return Answer(
        attributes=question.names,
        labels=question.labels,
        counts=found.view.arrange_outputs(found.counts, question),
        standard_errors=found.view.arrange_outputs(found.standard_errors, question),
        interval_centers=found.view.arrange_outputs(found.interval_centers, question),
        source=found.source,
        model_error=found.model_error,
        interpolated_attributes=found.interpolated_attributes,
        notes=found.notes,
    )


# ── ways to an answer ────────────────────────────────────────────────────────────────────────────────────────


def _answer_one_way(synopsis: Synopsis, query: Query, codec: Codec) -> _ViewAnswer | None:
    """One attribute whose bins hold several cells, if it was measured as finely as it is asked for."""
    [(name, outputs), *others] = query.axes.items()
    if others or synopsis.schema[name].cells == synopsis.schema[name].size:
        return None
    told, view = estimate_one_way_outputs(codec, synopsis.releases, name, outputs), _model_view(synopsis, query, codec)
    counts = model_marginal(synopsis.model, view.clique)
    if told is None or counts is None:
        return None
    return _ViewAnswer(
        view, _shrink_to_centers(contract_axes(counts, view.weights), *told), told[1], told[0], "covered"
    )


def _answer_in_schema_bins(synopsis: Synopsis, query: Query, codec: Codec) -> _ViewAnswer | None:
    """Several attributes over the bins of the schema, if a table with all was measured before the model merged some."""
    view = QueryView.of(query, Recoding.coarse(codec), codec, synopsis.model.histograms)
    if view.has_same_columns(_model_view(synopsis, query, codec)) or view.cells > MAX_QUERY_CELLS:
        return None
    linear = _estimate_view(synopsis, Recoding.coarse(codec), view)
    return _answer_covered(synopsis, view, linear, None) if linear.complete else None


def _answer_in_model_codes(synopsis: Synopsis, query: Query, codec: Codec, method: ReconstructionMethod) -> _ViewAnswer:
    """Any attributes, over the codes of the model."""
    view = _model_view(synopsis, query, codec)
    if view.cells > MAX_QUERY_CELLS:
        raise UserError(
            f"{', '.join(view.attributes)} have {view.cells:,} combinations of values, more than {MAX_QUERY_CELLS:,}; "
            "ask for fewer attributes at a time"
        )
    linear, counts = (
        _estimate_view(synopsis, synopsis.model.recoding, view),
        model_marginal(synopsis.model, view.clique),
    )
    if linear.complete:
        return _answer_covered(synopsis, view, linear, counts)
    known = linear.known_axes()
    if not known:
        raise UserError(f"nothing that was released tells about {', '.join(view.attributes)}; it cannot be answered")
    if counts is not None:  # a table that the recipe worked out itself
        errors = propagate_noise(counts, linear, known, view.weights)
        outputs = contract_axes(counts, view.weights)
        return _ViewAnswer(view, outputs, errors, outputs, "model", None, view.interpolated_attributes)
    return _answer_reconstructed(synopsis, view, linear, known, method)


def _answer_covered(
    synopsis: Synopsis, view: QueryView, linear: LinearEstimate, model_counts: QueryValues | None
) -> _ViewAnswer:
    """A table that was measured, or its sums."""
    best = linear if model_counts is None else shrink_to_model(linear, reflect(model_counts, range(model_counts.ndim)))
    counts = contract_axes(norm_sub(best.table(), synopsis.model.total), view.weights)
    centres, errors = contract_axes(linear.table(), view.weights), linear.output_stds(view.weights)
    return _ViewAnswer(
        view,
        counts,
        errors,
        centres,
        "covered",
        None if view.interpolated_attributes else 0.0,
        view.interpolated_attributes,
    )


def _answer_reconstructed(
    synopsis: Synopsis, view: QueryView, linear: LinearEstimate, known: list[Axes], method: ReconstructionMethod
) -> _ViewAnswer:
    """A table put together from its largest known sums, or counted in records of the model where that is better."""
    found = RECONSTRUCTION_METHODS[method](view.shape, _known_marginals(synopsis, view, linear, known))
    errors = propagate_noise(found.values, linear, known, view.weights)
    off = _model_error_per_output(estimate_model_error(synopsis.releases, synopsis.model, view.clique, known), view)
    if method == "maximum entropy" and not pairs_are_known(known, len(view.shape)):
        drawn, sampling = sampled_marginal(synopsis.model, view.clique)
        if _model_is_closer(drawn - found.values, sampling, known):
            outputs = contract_axes(drawn, view.weights)
            errors = np.sqrt(errors**2 + contract_axes(sampling**2, _square_weights(view.weights)))
            return _ViewAnswer(view, outputs, errors, outputs, "model", off, view.interpolated_attributes)
    far = not found.converged or found.max_gap > max(1.0, float(errors.max()))
    notes = (f"{method} did not settle: sums are off by up to {found.max_gap:,.1f} rows",) if far else ()
    outputs = contract_axes(found.values, view.weights)
    return _ViewAnswer(view, outputs, errors, outputs, "reconstructed", off, view.interpolated_attributes, notes)


# ── what they need ───────────────────────────────────────────────────────────────────────────────────────────


def _model_view(synopsis: Synopsis, query: Query, codec: Codec) -> QueryView:
    return QueryView.of(query, synopsis.model.recoding, codec, synopsis.model.histograms)


def _estimate_view(synopsis: Synopsis, recoding: Recoding, view: QueryView) -> LinearEstimate:
    """The best linear estimate of the table of a view."""
    rows = synopsis.model.total if synopsis.schema.row_count_is_public else None
    return estimate_linear(view.shape, collect_observations(synopsis.releases, recoding, view.clique, rows=rows))


def _known_marginals(
    synopsis: Synopsis, view: QueryView, linear: LinearEstimate, known: Sequence[Axes]
) -> list[KnownMarginal]:
    """The counts over some columns of a view: the linear estimate, drawn toward the model where it tells of them."""
    told = {axes: model_marginal(synopsis.model, tuple(view.clique[axis] for axis in axes)) for axes in known}
    modelled = [Observation(axes, sums, 1.0) for axes, sums in told.items() if sums is not None]
    if len(modelled) == len(known):
        linear = shrink_to_model(linear, estimate_linear(view.shape, modelled).coefficients)
    return [KnownMarginal(axes, norm_sub(linear.sums(axes), synopsis.model.total)) for axes in known]


def _shrink_to_centers(counts: QueryValues, centers: QueryValues, errors: QueryValues) -> QueryValues:
    """Counts drawn to unbiased estimates until they are about as far from them as these may be from the truth."""
    apart, variance = float(((counts - centers) ** 2).sum()), float((errors**2).sum())
    part = 1.0 if apart <= variance else variance / apart
    return np.maximum(centers + part * (counts - centers), 0.0)


def _model_is_closer(difference: QueryValues, sampling: QueryValues, known: Sequence[Axes]) -> bool:
    """Whether records of the model are predicted to be nearer the truth than a reconstruction, by what they differ by.

    In what is known both should be the same; what records differ by there is the error of their fit. In what is not
    known they differ by what tables of other attributes tell, which the reconstruction lacks, and by chance. A sum of
    squares that chance alone makes has a deviation of √(2/number) of itself; two of them must not decide.
    """
    inside = expand_interactions(interactions_within(known, difference.ndim), difference.shape)
    squares = reflect(difference, range(difference.ndim)) ** 2
    by_chance = float((sampling**2).sum()) * float((~inside).mean())
    lacking = float(squares[~inside].sum()) - by_chance * (1 + 2 * math.sqrt(2 / max(1, int((~inside).sum()))))
    return lacking > float(squares[inside].sum()) + by_chance


def _model_error_per_output(error: float | None, view: QueryView) -> float | None:
    """The error of an output whose cells are off by this much, root mean square, each for itself."""
    squares = [1.0 if given is None else float((given**2).sum(axis=1).mean()) for given in view.weights]
    return None if error is None else error * math.sqrt(math.prod(squares))


def _square_weights(weights: Sequence[OutputWeights | None]) -> list[OutputWeights | None]:
    return [None if given is None else given**2 for given in weights]
