"""Marginals of the model: from its consistent tables, or counted in rows that are sampled from it."""

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
from dpsyn.query.linear_estimation import QueryValues
from dpsyn.query.query import Query
from dpsyn.sampling.sampler import sample_codes

SAMPLED_RECORDS = 10_000
"""The number of records that are sampled to be counted. The relative error of a cell with a hundredth of the rows is
then a tenth. Two or four times as many records take that much longer, seconds for GUM, and answers are not more
accurate (``bench/priview.py``)."""


def model_marginal(model: Model, clique: Clique) -> QueryValues | None:
    """The counts of a clique in the most precise consistent table that has all its attributes; None if none has.

    A table that counts one of them at a coarser level does not have it.
    """
    tables = [table for table in model.tables if set(clique) <= set(table.clique).difference(table.levels)]
    if not tables:
        return None
    best = min(tables, key=lambda table: table.variance * table.values.size)
    return np.asarray(best.project(clique))


def sampled_marginal(model: Model, clique: Clique) -> tuple[QueryValues, QueryValues]:
    """The counts of sampled records, scaled to the number of rows, and their sampling standard deviations.

    With N records for n rows, the standard deviation of a count np is √(np(1−p)/N)·√n.
    """
    records = _sample_records(model)
    axes = [model.recoding.index_of(name) for name in clique]
    shape = [model.recoding.sizes[axis] for axis in axes]
    shares = contingency_table([records[:, axis] for axis in axes], shape) / len(records)
    return shares * model.total, np.sqrt(shares * (1 - shares) / len(records)) * model.total


@lru_cache(maxsize=2)
def _sample_records(model: Model) -> NDArray[np.integer]:
    """Codes of records of the model, always the same; cached, because queries usually come in series."""
    return sample_codes(model, SAMPLED_RECORDS, {}, seed=0)


# ── Attributes that were measured as differences from others: counted in sampled rows ────────────────────────


def needs_sampled_rows(query: Query, model: Model, codec: Codec) -> bool:
    """Whether the query has an attribute of which tables hold only the difference from another one."""
    return any(codec.names[source] in query.axes for source in model.recoding.difference_codings)


def answer_from_sampled_rows(query: Query, model: Model, codec: Codec) -> Answer:
    """The counts of sampled rows, scaled to the number of rows of the table.

    Standard errors include the sampling and, approximately, the noise: that of the attributes and of the anchors that
    they differ from, in proportion to the rows of an output.
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
        model_errors=None,
        notes=(f"{', '.join(names)}: measured as a difference from another attribute, so counted in sampled rows",),
        values=query.values,
    )


def _row_shares(query: Query, fine: np.ndarray, codec: Codec) -> QueryValues:
    """The share of the rows in every cell of the answer."""
    outputs = {name: axis.output_of[fine[:, codec.names.index(name)]] for name, axis in query.axes.items()}
    met = np.all([codes >= 0 for codes in outputs.values()], axis=0)
    shape = [query.axes[name].size for name in query.names]
    index = np.zeros(int(met.sum()), np.int64)
    for name, size in zip(query.names, shape, strict=True):
        index = index * size + outputs[name][met]
    return np.bincount(index, minlength=math.prod(shape)).reshape(shape) / len(fine)


def _total_noise_std(query: Query, model: Model, codec: Codec) -> float:
    """The std of the noise in the number of rows, summed over the most precise tables of the attributes."""
    anchors = {
        source: coding.anchor
        for source, coding in model.recoding.difference_codings.items()
        if codec.names[source] in query.axes
    }
    return math.sqrt(sum(_total_variances(model, [*anchors, *anchors.values()])))


def _total_variances(model: Model, sources: Sequence[int]) -> list[float]:
    columns = {c.name for c in model.recoding.columns if set(sources) & set(c.sources)}
    return [
        min(t.variance * t.values.size for t in model.tables if name in t.clique and name not in t.levels)
        for name in columns
    ]
