"""Synthetic rows from a model, under conditions if there are any, chunk by chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.constraints import (
    adjust_rows_to_totals,
    repair_rows,
    require_no_violations,
    require_satisfiable,
    satisfiable_rows,
)
from dpsyn.encoding import Codec, Codes, Grouping, RecodedColumn
from dpsyn.errors import InternalError, UserError
from dpsyn.inference import gibbs
from dpsyn.inference.measurements import Model
from dpsyn.inference.synthesis import synthesize_records
from dpsyn.progress import Progress, ignore_progress
from dpsyn.schema import Schema

AllowedCodes = Mapping[str, NDArray[np.bool_]]
"""For some attributes, which of their fine codes are allowed."""

SMALL_SAMPLE_ROWS, SMALL_SAMPLE_POOL = 1_000, 4_000
"""Fewer rows than the first are drawn from as many as the second: a handful that is bound to all tables by itself
matches their largest cells, but no row of it need make sense."""

MAX_GUM_CHUNK_ROWS = 1 << 18
"""Rows at most that are fitted together where a model has no distribution to draw from, but tables to be matched."""

SMOOTHING_SHARE = 1e-9
"""The share of an attribute's weight that is spread over all of its codes, so that none is impossible if asked for."""

EXPANSION_TRIES = 16
"""Draws of fine codes within a model's codes, where rules do not let the first ones be together."""

StepsByAttribute = dict[int, NDArray[np.int64]]
"""Which of the values of its cell each row has, by the places of attributes that orders and sums compare."""


class RowSampler:
    """Rows of a model that keep the rules of a schema, in chunks that know nothing of each other.

    A chunk is a function of the model, the seed, its number and the number of rows: the same on any machine, whoever
    draws it and in whatever order. It is bound to the model's marginals by itself, so that all of them together are.
    Public totals are met by as many rows as the model has, and in proportion by any others; not under conditions.

    Attributes:
        rows: how many there are.
        seed: what they are drawn from.
        max_chunk_rows: rows of a chunk at most.
        chunk_count: how many there are.
    """

    def __init__(self, schema: Schema, model: Model, rows: int, allowed: AllowedCodes, *, seed: int) -> None:
        require_satisfiable(schema, allowed)
        self._schema, self._codec, self.rows, self.seed = schema, Codec(schema), rows, seed
        self._allowed, self._conditioned = allowed, _ConditionedModel.of(model, self._codec.names, allowed)
        states = np.random.SeedSequence(seed).generate_state(2, np.uint64)
        self._code_seed, self._value_seed = int(states[0]), int(states[1])
        fitted = self._conditioned.model.distribution
        self.max_chunk_rows = MAX_GUM_CHUNK_ROWS if fitted is None else gibbs.max_chunk_rows(fitted, rows)
        self.chunk_count = max(1, -(-rows // self.max_chunk_rows))

    def chunk_size(self, chunk: int) -> int:
        """The rows of a chunk; chunks are of about equal size."""
        return self.rows // self.chunk_count + (chunk < self.rows % self.chunk_count)

    def sample_chunk(self, chunk: int, progress: Progress = ignore_progress) -> pa.Table:
        """The rows of a chunk as a table of the schema's types."""
        rng = np.random.default_rng([self._value_seed, chunk])
        codes, steps = self._repair_codes(self._conditioned, self._sample_codes(chunk, progress), self._allowed, rng)
        before = chunk * (self.rows // self.chunk_count) + min(chunk, self.rows % self.chunk_count)
        if not self._allowed:
            codes, steps = self._adjust_to_totals(codes, steps, before, rng)
        named = {self._codec.names[place]: own for place, own in steps.items()}
        table = self._codec.decode(codes, rng, first_row=before, steps=named)
        require_no_violations(self._schema, table)
        return table

    def empty_table(self) -> pa.Table:
        """No rows, but the columns of a table with some."""
        return self._codec.decode(np.zeros((0, len(self._codec.names)), np.uint8), np.random.default_rng(0))

    def _sample_codes(self, chunk: int, progress: Progress) -> NDArray[np.integer]:
        model, where, seed = self._conditioned.model, self._conditioned.where, self._code_seed
        if self.chunk_count > 1 and model.distribution is not None:
            return gibbs.sample_chunk(model.distribution, self.chunk_size(chunk), chunk, seed=seed, where=where).T
        if self.chunk_count > 1:
            seed = int(np.random.SeedSequence([seed, chunk]).generate_state(1, np.uint64)[0])
        return sample_codes(model, self.chunk_size(chunk), where, seed=seed, progress=progress)

    def _repair_codes(
        self, source: _ConditionedModel, codes: NDArray[np.integer], within: AllowedCodes, rng: np.random.Generator
    ) -> tuple[Codes, StepsByAttribute]:
        """Fine codes within the model's that keep the rules of rows."""
        cells = source.model.recoding.expand(codes, source.weights, rng)
        bad = np.flatnonzero(~satisfiable_rows(self._schema, cells))
        for _ in range(EXPANSION_TRIES):  # other values within the same bins may keep the rules
            if not len(bad):
                break
            cells[bad] = source.model.recoding.expand(codes[bad], source.weights, rng)
            bad = bad[~satisfiable_rows(self._schema, cells[bad])]
        return repair_rows(self._schema, cells, rng, within)

    def _adjust_to_totals(
        self, codes: Codes, steps: StepsByAttribute, before: int, rng: np.random.Generator
    ) -> tuple[Codes, StepsByAttribute]:
        """As many rows as public totals say of those that lie between ``before`` and the end of these."""
        model = self._conditioned.model

        def sample_within(number: int, within: AllowedCodes) -> tuple[Codes, StepsByAttribute]:
            source, seed = _ConditionedModel.of(model, self._codec.names, within), int(rng.integers(2**63))
            return self._repair_codes(source, sample_codes(source.model, number, source.where, seed=seed), within, rng)

        whole = self.rows if self.rows == round(model.total) else model.total
        per_row = 1 / max(whole, 1.0)
        part = (before * per_row, (before + len(codes)) * per_row)
        return adjust_rows_to_totals(self._schema, codes, steps, part, sample_within, rng)


@dataclass(frozen=True, slots=True, eq=False)
class _ConditionedModel:
    """A model under conditions.

    Attributes:
        model: with a distribution to draw from, if there are conditions.
        weights: of the fine codes of each attribute; none for those that are not allowed.
        where: for some of the model's attributes, how likely each code is to meet the conditions.
    """

    model: Model
    weights: Sequence[NDArray[np.float64]]
    where: Mapping[str, NDArray[np.float64]]

    @classmethod
    def of(cls, model: Model, names: Sequence[str], allowed: AllowedCodes) -> _ConditionedModel:
        _refuse_conditions_on_differences(model, names, allowed)
        weights = [_fine_code_weights(model, name, allowed) for name in names]
        where = {
            column.name: _condition_odds(column, model, names, weights)
            for column in model.recoding.columns
            if any(names[source] in allowed for source in column.sources)
        }
        return cls(_with_distribution(model) if where else model, weights, where)


def _with_distribution(model: Model) -> Model:
    """The model with a distribution that can be drawn from under conditions."""
    if model.distribution is not None:
        return model
    tables, recoding = model.tables, model.recoding
    return replace(model, distribution=gibbs.fit(tables, recoding.names, recoding.sizes, seed=0))


def sample_codes(
    model: Model,
    rows: int,
    where: Mapping[str, NDArray[np.float64]],
    *,
    seed: int,
    progress: Progress = ignore_progress,
) -> NDArray[np.integer]:
    """The model's codes of rows, rows × attributes.

    Codes drawn from the fitted distribution; if there is none they are fitted, unless they must meet conditions.
    """
    if model.distribution is None and not where:
        return synthesize_records(
            model.tables, model.recoding.names, model.recoding.sizes, rows, seed=seed, progress=progress
        )
    fitted = model.distribution
    if fitted is None:
        raise InternalError("conditions need a distribution to draw from")
    number = SMALL_SAMPLE_POOL if 0 < rows < SMALL_SAMPLE_ROWS else rows
    chunks = list(gibbs.sample_chunks(fitted, number, seed=seed, where=where, progress=progress))
    codes = np.concatenate([np.empty((len(fitted.names), 0), np.uint16), *chunks], axis=1).T
    if number > rows:
        codes = codes[np.random.default_rng(seed).choice(number, rows, replace=False)]
    return codes


def _refuse_conditions_on_differences(model: Model, names: Sequence[str], allowed: AllowedCodes) -> None:
    """Refuse a condition on what is drawn as a difference from another attribute: rows would have to be thrown away."""
    for source, reference in model.recoding.difference_codings.items():
        if names[source] in allowed:
            anchor = names[reference.anchor]
            raise UserError(
                f"{names[source]!r} was measured as its difference from {anchor!r}, so that no rows can be drawn under "
                f"a condition on it; put the condition on {anchor!r}"
            )


def _fine_code_weights(model: Model, name: str, allowed: AllowedCodes) -> NDArray[np.float64]:
    """Weights of an attribute's fine codes; none for those that are not allowed."""
    weights = model.histograms[name]
    if name not in allowed:
        return weights
    return np.where(allowed[name], weights + SMOOTHING_SHARE * max(float(weights.sum()), 1.0), 0.0)


def _condition_odds(
    column: RecodedColumn, model: Model, names: Sequence[str], weights: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """How likely each code of a column is to stand for fine codes that are allowed."""
    joint, whole = np.ones(1), np.ones(1)
    for source, table in zip(column.sources, column.tables, strict=True):
        digits, before = Grouping(table), model.histograms[names[source]]
        before = before + SMOOTHING_SHARE * max(float(before.sum()), 1.0)
        joint = np.multiply.outer(joint, digits.sums(weights[source])).ravel()
        whole = np.multiply.outer(whole, digits.sums(before)).ravel()
    if column.merged is not None:
        joint, whole = (Grouping(column.merged).sums(part) for part in (joint, whole))
    odds: NDArray[np.float64] = np.minimum(joint / whole, 1.0)
    return odds
