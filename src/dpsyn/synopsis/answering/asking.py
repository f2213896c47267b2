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
from dpsyn.synopsis.answering.carriednoise import carried_deviations
from dpsyn.synopsis.answering.leastnorm import least_norm
from dpsyn.synopsis.answering.linear import Axes, Linear, Shares, Table, linear_estimate, reflected, spread
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
    """One attribute, if it was measured as finely as it is asked for."""
    if len(question.asked) > 1:
        return None
    [(name, outputs)] = question.asked.items()
    told, view = single_estimate_of(codec, synopsis.releases, name, outputs), _view(synopsis, question, codec)
    counts = held(synopsis.model, view.clique)
    if told is None or counts is None:
        return None
    return _Found(view, folded(counts, view.shares), told[1], told[0], "covered")


def _as_declared(synopsis: Synopsis, question: Question, codec: Codec) -> _Found | None:
    """Several attributes over the bins of the schema, if a table with all was measured before the model merged some."""
    view = View.of(question, Recoding.coarse(codec), codec, synopsis.model.histograms)
    if view.alike(_view(synopsis, question, codec)) or view.cells > MOST_CELLS:
        return None
    linear = _linear(synopsis, Recoding.coarse(codec), view)
    if not linear.complete:
        return None
    counts = norm_sub(linear.table(), synopsis.model.total)
    return _covered(view, counts, linear)


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
        return _covered(view, norm_sub(linear.table(), synopsis.model.total) if counts is None else counts, linear)
    known = linear.known()
    if counts is not None:  # a table that the recipe worked out itself
        errors = carried_deviations(counts, linear, known, view.shares)
        outputs = folded(counts, view.shares)
        return _Found(view, outputs, errors, outputs, "model", None, view.split)
    return _reconstructed(synopsis, view, linear, known, method)


def _covered(view: View, counts: Table, linear: Linear) -> _Found:
    """A table that was measured, or its sums."""
    centres, errors = folded(linear.table(), view.shares), linear.deviations(view.shares)
    return _Found(view, folded(counts, view.shares), errors, centres, "covered", 0.0, view.split)


def _reconstructed(synopsis: Synopsis, view: View, linear: Linear, known: list[Axes], method: Method) -> _Found:
    """A table put together from its largest known sums, or counted in records of the model where that is better."""
    found = METHODS[method](view.shape, [Part(axes, _sums(synopsis, view, linear, axes)) for axes in known])
    errors = carried_deviations(found.values, linear, known, view.shares)
    off = _of_outputs(model_error(synopsis.releases, synopsis.model, view.clique, known), view)
    if method == "maximum entropy" and not pairs_are_known(known, len(view.shape)):
        drawn, sampling = counted(synopsis.model, view.clique)
        if _tells_more(drawn - found.values, sampling, known):
            outputs = folded(drawn, view.shares)
            errors = np.sqrt(errors**2 + folded(sampling**2, _squared(view.shares)))
            return _Found(view, outputs, errors, outputs, "model", off, view.split)
    notes = () if found.settled else (f"{method} did not settle: sums are off by up to {found.gap:,.1f} rows",)
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


def _sums(synopsis: Synopsis, view: View, linear: Linear, axes: Axes) -> Table:
    """The consistent counts over some columns of a view; where the model has none, the best linear estimate of them."""
    sums = held(synopsis.model, tuple(view.clique[axis] for axis in axes))
    return norm_sub(linear.sums(axes), synopsis.model.total) if sums is None else sums


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
