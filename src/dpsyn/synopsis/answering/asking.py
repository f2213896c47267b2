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

from dpsyn.consistency import norm_sub
from dpsyn.errors import UserError
from dpsyn.marginals import Clique
from dpsyn.records import Codec
from dpsyn.synopsis.answering.answer import Answer, How
from dpsyn.synopsis.answering.blending import blended
from dpsyn.synopsis.answering.byrows import answer_by_rows, needs_rows
from dpsyn.synopsis.answering.carriednoise import carried_deviations
from dpsyn.synopsis.answering.leastnorm import least_norm
from dpsyn.synopsis.answering.linear import Axes, Linear, Observation, Shares, Table, linear_estimate, reflected, spread
from dpsyn.synopsis.answering.linearprogram import linear_program
from dpsyn.synopsis.answering.maxent import maximum_entropy
from dpsyn.synopsis.answering.modelerror import model_error, pairs_are_known, within_any
from dpsyn.synopsis.answering.modelled import counted, held
from dpsyn.synopsis.answering.observing import observed
from dpsyn.synopsis.answering.outputs import folded
from dpsyn.synopsis.answering.parts import Part, Reconstruction
from dpsyn.synopsis.answering.question import MOST_CELLS, Question, View
from dpsyn.synopsis.answering.single import single_estimate_of
from dpsyn.transforms import Recoding

if TYPE_CHECKING:
    from dpsyn.synopsis.synopsis import Synopsis

Method = Literal["maximum entropy", "least norm", "linear program"]

METHODS: dict[Method, Callable[[tuple[int, ...], list[Part]], Reconstruction]] = {
    "maximum entropy": maximum_entropy,
    "least norm": least_norm,
    "linear program": linear_program,
}
"""Ways to reconstruct a table; maximum entropy is nearest the truth (``bench/priview.py``)."""


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Counts of outputs under a view of the question."""

    view: View
    counts: Table
    errors: Table
    centres: Table
    how: How
    model_error: float | None = 0.0
    split: Clique = ()
    notes: tuple[str, ...] = ()


def ask(
    synopsis: Synopsis,
    names: Sequence[str],
    where: Mapping[str, object],
    *,
    cells: bool = False,
    method: Method = "maximum entropy",
) -> Answer:
    """The counts of all rows that meet the conditions, by the values of the attributes named."""
    if method not in METHODS:
        raise UserError(f"there is no way {method!r} to reconstruct a table; there are {', '.join(METHODS)}")
    question, codec = Question.of(synopsis.schema, names, where, cells=cells), Codec(synopsis.schema)
    if needs_rows(question, synopsis.model, codec):
        return answer_by_rows(question, synopsis.model, codec)
    found = (
        _by_itself(synopsis, question, codec)
        or _as_declared(synopsis, question, codec)
        or _as_modelled(synopsis, question, codec, method)
    )
    return Answer(
        attributes=question.names,
        labels=question.labels,
        counts=found.view.answered(found.counts, question),
        errors=found.view.answered(found.errors, question),
        centres=found.view.answered(found.centres, question),
        how=found.how,
        model_error=found.model_error,
        split=found.split,
        notes=found.notes,
    )


# ── ways to an answer ────────────────────────────────────────────────────────────────────────────────────────


def _by_itself(synopsis: Synopsis, question: Question, codec: Codec) -> _Found | None:
    """One attribute whose bins hold several cells, if it was measured as finely as it is asked for."""
    [(name, outputs), *others] = question.asked.items()
    if others or synopsis.schema[name].cells == synopsis.schema[name].size:
        return None
    told, view = single_estimate_of(codec, synopsis.releases, name, outputs), _view(synopsis, question, codec)
    counts = held(synopsis.model, view.clique)
    if told is None or counts is None:
        return None
    return _Found(view, _nearer(folded(counts, view.shares), *told), told[1], told[0], "covered")


def _as_declared(synopsis: Synopsis, question: Question, codec: Codec) -> _Found | None:
    """Several attributes over the bins of the schema, if a table with all was measured before the model merged some."""
    view = View.of(question, Recoding.coarse(codec), codec, synopsis.model.histograms)
    if view.alike(_view(synopsis, question, codec)) or view.cells > MOST_CELLS:
        return None
    linear = _linear(synopsis, Recoding.coarse(codec), view)
    return _covered(synopsis, view, linear, None) if linear.complete else None


def _as_modelled(synopsis: Synopsis, question: Question, codec: Codec, method: Method) -> _Found:
    """Any attributes, over the codes of the model."""
    view = _view(synopsis, question, codec)
    if view.cells > MOST_CELLS:
        raise UserError(
            f"{', '.join(view.attributes)} have {view.cells:,} combinations of values, more than {MOST_CELLS:,}; "
            "ask for fewer attributes at a time"
        )
    linear, counts = _linear(synopsis, synopsis.model.recoding, view), held(synopsis.model, view.clique)
    if linear.complete:
        return _covered(synopsis, view, linear, counts)
    known = linear.known()
    if not known:
        raise UserError(f"nothing that was released tells about {', '.join(view.attributes)}; it cannot be answered")
    if counts is not None:  # a table that the recipe worked out itself
        errors = carried_deviations(counts, linear, known, view.shares)
        outputs = folded(counts, view.shares)
        return _Found(view, outputs, errors, outputs, "model", None, view.split)
    return _reconstructed(synopsis, view, linear, known, method)


def _covered(synopsis: Synopsis, view: View, linear: Linear, modelled: Table | None) -> _Found:
    """A table that was measured, or its sums."""
    best = linear if modelled is None else blended(linear, reflected(modelled, range(modelled.ndim)))
    counts = folded(norm_sub(best.table(), synopsis.model.total), view.shares)
    centres, errors = folded(linear.table(), view.shares), linear.deviations(view.shares)
    return _Found(view, counts, errors, centres, "covered", None if view.split else 0.0, view.split)


def _reconstructed(synopsis: Synopsis, view: View, linear: Linear, known: list[Axes], method: Method) -> _Found:
    """A table put together from its largest known sums, or counted in records of the model where that is better."""
    found = METHODS[method](view.shape, _sums(synopsis, view, linear, known))
    errors = carried_deviations(found.values, linear, known, view.shares)
    off = _of_outputs(model_error(synopsis.releases, synopsis.model, view.clique, known), view)
    if method == "maximum entropy" and not pairs_are_known(known, len(view.shape)):
        drawn, sampling = counted(synopsis.model, view.clique)
        if _tells_more(drawn - found.values, sampling, known):
            outputs = folded(drawn, view.shares)
            errors = np.sqrt(errors**2 + folded(sampling**2, _squared(view.shares)))
            return _Found(view, outputs, errors, outputs, "model", off, view.split)
    far = not found.settled or found.gap > max(1.0, float(errors.max()))
    notes = (f"{method} did not settle: sums are off by up to {found.gap:,.1f} rows",) if far else ()
    outputs = folded(found.values, view.shares)
    return _Found(view, outputs, errors, outputs, "reconstructed", off, view.split, notes)


# ── what they need ───────────────────────────────────────────────────────────────────────────────────────────


def _view(synopsis: Synopsis, question: Question, codec: Codec) -> View:
    return View.of(question, synopsis.model.recoding, codec, synopsis.model.histograms)


def _linear(synopsis: Synopsis, recoding: Recoding, view: View) -> Linear:
    """The best linear estimate of the table of a view."""
    public = synopsis.schema.neighbours == "replace" and synopsis.schema.unit is None
    rows = synopsis.model.total if public else None
    return linear_estimate(view.shape, observed(synopsis.releases, recoding, view.clique, rows=rows))


def _sums(synopsis: Synopsis, view: View, linear: Linear, known: Sequence[Axes]) -> list[Part]:
    """The counts over some columns of a view: the linear estimate, drawn toward the model where it tells of them."""
    told = {axes: held(synopsis.model, tuple(view.clique[axis] for axis in axes)) for axes in known}
    modelled = [Observation(axes, sums, 1.0) for axes, sums in told.items() if sums is not None]
    if len(modelled) == len(known):
        linear = blended(linear, linear_estimate(view.shape, modelled).coefficients)
    return [Part(axes, norm_sub(linear.sums(axes), synopsis.model.total)) for axes in known]


def _nearer(counts: Table, centres: Table, errors: Table) -> Table:
    """Counts drawn to unbiased estimates until they are about as far from them as these may be from the truth."""
    apart, variance = float(((counts - centres) ** 2).sum()), float((errors**2).sum())
    part = 1.0 if apart <= variance else variance / apart
    return np.maximum(centres + part * (counts - centres), 0.0)


def _tells_more(difference: Table, sampling: Table, known: Sequence[Axes]) -> bool:
    """Whether records of the model are predicted to be nearer the truth than a reconstruction, by what they differ by.

    In what is known both should be the same; what records differ by there is the error of their fit. In what is not
    known they differ by what tables of other attributes tell, which the reconstruction lacks, and by chance.
    """
    inside = spread(within_any(known, difference.ndim), difference.shape)
    squares = reflected(difference, range(difference.ndim)) ** 2
    by_chance = float((sampling**2).sum()) * float((~inside).mean())
    lacking = float(squares[~inside].sum()) - by_chance
    return lacking > float(squares[inside].sum()) + by_chance


def _of_outputs(error: float | None, view: View) -> float | None:
    """The error of an output whose cells are off by this much, root mean square, each for itself."""
    squares = [1.0 if given is None else float((given**2).sum(axis=1).mean()) for given in view.shares]
    return None if error is None else error * math.sqrt(math.prod(squares))


def _squared(shares: Sequence[Shares | None]) -> list[Shares | None]:
    return [None if given is None else given**2 for given in shares]
