"""What the model of a synopsis says about some of its attributes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding import Codec, contingency_table
from dpsyn.inference.measurements import Model
from dpsyn.marginals import Clique
from dpsyn.query.answer import Answer
from dpsyn.query.blue import QueryValues
from dpsyn.query.query import Query
from dpsyn.sampling.sampler import sample_codes

SAMPLED_RECORDS = 10_000
"""Records that are drawn to be counted. A cell of a hundredth of the rows is then off by a tenth of itself. Two or four
times as many take as much longer, seconds for a model of GUM, and answers are no nearer (``bench/priview.py``)."""


def model_marginal(model: Model, clique: Clique) -> QueryValues | None:
    """The counts of the most precise consistent table that has all attributes of a clique; None if none has."""
    tables = [table for table in model.tables if set(clique) <= set(table.clique)]
    if not tables:
        return None
    best = min(tables, key=lambda table: table.variance * table.values.size)
    return np.asarray(best.project(clique))


def sampled_marginal(model: Model, clique: Clique) -> tuple[QueryValues, QueryValues]:
    """The counts of records drawn from the model, as if there were as many as rows, and their sampling deviations.

    A table that is drawn has counts off by √(np(1−p)/N)·√n, N being the number of records.
    """
    records = _sample_records(model)
    axes = [model.recoding.index_of(name) for name in clique]
    shape = [model.recoding.sizes[axis] for axis in axes]
    shares = contingency_table([records[:, axis] for axis in axes], shape) / len(records)
    return shares * model.total, np.sqrt(shares * (1 - shares) / len(records)) * model.total


@lru_cache(maxsize=2)
def _sample_records(model: Model) -> NDArray[np.integer]:
    """Codes of records of the model, always the same; remembered, since one question is seldom the last."""
    return sample_codes(model, SAMPLED_RECORDS, {}, seed=0)


# ── Attributes that were measured as differences from others: counted in rows drawn from the model ──


def needs_sampled_rows(query: Query, model: Model, codec: Codec) -> bool:
    """Whether something is asked for whose codes no table holds, only how they differ from others."""
    return any(codec.names[source] in query.axes for source in model.recoding.difference_codings)


def answer_from_sampled_rows(query: Query, model: Model, codec: Codec) -> Answer:
    """The counts of drawn rows, as if there were as many as the table has.

    Standard errors are those of the draw and, approximately, of the noise: that of the attributes that differences are
    taken from, in every cell that an output stands for.
    """
    weights = [model.histograms[name] for name in codec.names]
    fine = model.recoding.expand(sample_codes(model, SAMPLED_RECORDS, {}, seed=0), weights, np.random.default_rng(0))
    shares = _row_shares(query, fine, codec)
    counts = shares * model.total
    sampling = np.sqrt(shares * (1 - shares) / SAMPLED_RECORDS) * model.total
    errors = np.sqrt(sampling**2 + _total_noise_std(query, model, codec) ** 2 * np.maximum(shares, 1 / SAMPLED_RECORDS))
    names = [codec.names[source] for source in model.recoding.difference_codings if codec.names[source] in query.axes]
    return Answer(
        attributes=query.names,
        labels=query.labels,
        counts=counts,
        standard_errors=errors,
        interval_centers=counts,
        source="model",
        model_error=None,
        notes=(f"{', '.join(names)}: measured as a difference from another attribute, so counted in drawn rows",),
    )


def _row_shares(query: Query, fine: np.ndarray, codec: Codec) -> QueryValues:
    """The part of the rows in every cell of the answer."""
    outputs = {name: asked.output_of[fine[:, codec.names.index(name)]] for name, asked in query.axes.items()}
    met = np.all([codes >= 0 for codes in outputs.values()], axis=0)
    shape = [query.axes[name].size for name in query.names]
    index = np.zeros(int(met.sum()), np.int64)
    for name, size in zip(query.names, shape, strict=True):
        index = index * size + outputs[name][met]
    return np.bincount(index, minlength=math.prod(shape)).reshape(shape) / len(fine)


def _total_noise_std(query: Query, model: Model, codec: Codec) -> float:
    """The standard deviation of the noise in all rows together, as the tables of what is asked for tell it."""
    places = {
        place: r.anchor for place, r in model.recoding.difference_codings.items() if codec.names[place] in query.axes
    }
    return math.sqrt(sum(_total_variances(model, [*places, *places.values()])))


def _total_variances(model: Model, sources: Sequence[int]) -> list[float]:
    columns = {c.name for c in model.recoding.columns if set(sources) & set(c.sources)}
    return [min(t.variance * t.values.size for t in model.tables if name in t.clique) for name in columns]
