"""Synthetic rows from a model, under conditions if there are any, chunk by chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.progress import Progress, silent
from dpsyn.records import Codec, Grouping
from dpsyn.synopsis.parts import Model
from dpsyn.synthesis import gibbs, synthesize
from dpsyn.transforms import RecodedColumn

Allowed = Mapping[str, NDArray[np.bool_]]
"""For some attributes, which of their fine codes are allowed."""

FEW, ENOUGH = 1_000, 4_000
"""Fewer rows than the first are drawn from as many as the second: a handful that is bound to all tables by itself
matches their largest cells, but no row of it need make sense."""

WHOLE = 1 << 18
"""Rows at most that are fitted together where a model has no distribution to draw from, but tables to be matched."""

FAINT = 1e-9
"""The share of an attribute's weight that is spread over all of its codes, so that none is impossible if asked for."""


class Drawing:
    """Rows of a model, in chunks that know nothing of each other.

    A chunk is a function of the model, the seed, its number and the number of rows: the same on any machine, whoever
    draws it and in whatever order. It is bound to the model's marginals by itself, so that all of them together are.

    Attributes:
        rows: how many there are.
        seed: what they are drawn from.
        most: rows of a chunk at most.
        chunks: how many there are.
    """

    def __init__(self, model: Model, codec: Codec, rows: int, allowed: Allowed, *, seed: int) -> None:
        self._codec, self.rows, self.seed = codec, rows, seed
        self._weights = [_weights(model, name, allowed) for name in codec.names]
        self._where = {
            column.name: _odds(column, model, codec.names, self._weights)
            for column in model.recoding.columns
            if any(codec.names[source] in allowed for source in column.sources)
        }
        self._model = _fitted(model) if self._where else model
        states = np.random.SeedSequence(seed).generate_state(2, np.uint64)
        self._code_seed, self._value_seed = int(states[0]), int(states[1])
        self.most = gibbs.CHUNK if self._model.fitted else WHOLE
        self.chunks = max(1, -(-rows // self.most))

    def size(self, number: int) -> int:
        """The rows of a chunk; chunks are of about equal size."""
        return self.rows // self.chunks + (number < self.rows % self.chunks)

    def table(self, number: int, progress: Progress = silent) -> pa.Table:
        """The rows of a chunk as a table of the schema's types."""
        rng = np.random.default_rng([self._value_seed, number])
        codes = self._codes(number, progress)
        fine = self._model.recoding.expand(codes, self._weights, rng)
        before = number * (self.rows // self.chunks) + min(number, self.rows % self.chunks)
        return self._codec.decode(fine, rng, first_row=before)

    def no_rows(self) -> pa.Table:
        """No rows, but the columns of a table with some."""
        return self._codec.decode(np.zeros((0, len(self._codec.names)), np.uint8), np.random.default_rng(0))

    def _codes(self, number: int, progress: Progress) -> NDArray[np.integer]:
        size, seed = self.size(number), self._code_seed
        if self.chunks == 1:
            return model_codes(self._model, size, self._where, seed=seed, progress=progress)
        if self._model.fitted is None:
            own = int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0])
            return model_codes(self._model, size, self._where, seed=own, progress=progress)
        return gibbs.generate_chunk(self._model.fitted, size, number, seed=seed, where=self._where).T


def _fitted(model: Model) -> Model:
    """The model with a distribution that can be drawn from under conditions."""
    if model.fitted is not None:
        return model
    tables, recoding = model.tables, model.recoding
    return replace(model, fitted=gibbs.fit(tables, recoding.names, recoding.sizes, seed=0))


def model_codes(
    model: Model, rows: int, where: Mapping[str, NDArray[np.float64]], *, seed: int, progress: Progress = silent
) -> NDArray[np.integer]:
    """The model's codes of rows, rows × attributes.

    Codes drawn from the fitted distribution; if there is none they are fitted, unless they must meet conditions.
    """
    if model.fitted is None and not where:
        return synthesize(model.tables, model.recoding.names, model.recoding.sizes, rows, seed=seed, progress=progress)
    fitted = model.fitted
    if fitted is None:
        raise InternalError("conditions need a distribution to draw from")
    number = ENOUGH if 0 < rows < FEW else rows
    chunks = list(gibbs.generate(fitted, number, seed=seed, where=where, progress=progress))
    codes = np.concatenate([np.empty((len(fitted.names), 0), np.uint16), *chunks], axis=1).T
    if number > rows:
        codes = codes[np.random.default_rng(seed).choice(number, rows, replace=False)]
    return codes


def _weights(model: Model, name: str, allowed: Allowed) -> NDArray[np.float64]:
    """Weights of an attribute's fine codes; none for those that are not allowed."""
    weights = model.histograms[name]
    if name not in allowed:
        return weights
    return np.where(allowed[name], weights + FAINT * max(float(weights.sum()), 1.0), 0.0)


def _odds(
    column: RecodedColumn, model: Model, names: Sequence[str], weights: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """How likely each code of a column is to stand for fine codes that are allowed."""
    joint, whole = np.ones(1), np.ones(1)
    for source, table in zip(column.sources, column.tables, strict=True):
        digits, before = Grouping(table), model.histograms[names[source]]
        before = before + FAINT * max(float(before.sum()), 1.0)
        joint = np.multiply.outer(joint, digits.sums(weights[source])).ravel()
        whole = np.multiply.outer(whole, digits.sums(before)).ravel()
    if column.merged is not None:
        joint, whole = (Grouping(column.merged).sums(part) for part in (joint, whole))
    odds: NDArray[np.float64] = np.minimum(joint / whole, 1.0)
    return odds
