"""Attributes that were measured as differences from others: counted in rows drawn from the model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpsyn.records import Codec
from dpsyn.synopsis.answering.answer import Answer
from dpsyn.synopsis.answering.linear import Table
from dpsyn.synopsis.answering.modelled import RECORDS
from dpsyn.synopsis.answering.question import Question
from dpsyn.synopsis.drawing import model_codes
from dpsyn.synopsis.parts import Model


def needs_rows(question: Question, model: Model, codec: Codec) -> bool:
    """Whether something is asked for whose codes no table holds, only how they differ from others."""
    return any(codec.names[source] in question.asked for source in model.recoding.references)


def answer_by_rows(question: Question, model: Model, codec: Codec) -> Answer:
    """The counts of drawn rows, as if there were as many as the table has.

    Standard errors are those of the draw and, approximately, of the noise: that of the attributes that differences are
    taken from, in every cell that an output stands for.
    """
    weights = [model.histograms[name] for name in codec.names]
    fine = model.recoding.expand(model_codes(model, RECORDS, {}, seed=0), weights, np.random.default_rng(0))
    shares = _shares(question, fine, codec)
    counts = shares * model.total
    sampling = np.sqrt(shares * (1 - shares) / RECORDS) * model.total
    errors = np.sqrt(sampling**2 + _noise(question, model, codec) ** 2 * np.maximum(shares, 1 / RECORDS))
    names = [codec.names[source] for source in model.recoding.references if codec.names[source] in question.asked]
    return Answer(
        attributes=question.names,
        labels=question.labels,
        counts=counts,
        errors=errors,
        centres=counts,
        how="model",
        model_error=None,
        notes=(f"{', '.join(names)}: measured as a difference from another attribute, so counted in drawn rows",),
    )


def _shares(question: Question, fine: np.ndarray, codec: Codec) -> Table:
    """The part of the rows in every cell of the answer."""
    outputs = {name: asked.output_of[fine[:, codec.names.index(name)]] for name, asked in question.asked.items()}
    met = np.all([codes >= 0 for codes in outputs.values()], axis=0)
    shape = [question.asked[name].size for name in question.names]
    index = np.zeros(int(met.sum()), np.int64)
    for name, size in zip(question.names, shape, strict=True):
        index = index * size + outputs[name][met]
    return np.bincount(index, minlength=math.prod(shape)).reshape(shape) / len(fine)


def _noise(question: Question, model: Model, codec: Codec) -> float:
    """The standard deviation of the noise in all rows together, as the tables of what is asked for tell it."""
    places = {place: r.anchor for place, r in model.recoding.references.items() if codec.names[place] in question.asked}
    return math.sqrt(sum(_variance(model, [*places, *places.values()])))


def _variance(model: Model, places: Sequence[int]) -> list[float]:
    columns = {c.name for c in model.recoding.columns if set(places) & set(c.sources)}
    return [min(t.variance * t.values.size for t in model.tables if name in t.clique) for name in columns]
