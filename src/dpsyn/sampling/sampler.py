"""Synthetic rows from a model, chunk by chunk, under conditions if there are any."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

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
from dpsyn.inference.fit import fit_distribution
from dpsyn.inference.gibbs import GibbsModel
from dpsyn.inference.measurements import Model
from dpsyn.inference.methods import MCF, Gibbs, Synthesis
from dpsyn.inference.synthesis import synthesize_records
from dpsyn.progress import Progress, ignore_progress
from dpsyn.schema import Schema, compile_constraints

AllowedCodes = Mapping[str, NDArray[np.bool_]]
"""For some attributes, which of their fine codes are allowed."""

SMALL_SAMPLE_ROWS, SMALL_SAMPLE_POOL = 200, 4_000
"""Samples of fewer rows than the first are taken from a larger sample of the second size. A handful of rows that is
fitted to all tables by itself matches their largest cells, but its rows need not be plausible."""

MAX_GUM_CHUNK_ROWS = 1 << 18
"""The maximum number of rows that GUM or MCF fits to the tables together."""

SMOOTHING_SHARE = 1e-9
"""The share of an attribute's weight that is spread over all of its codes, so no code that a condition asks for is
impossible."""

EXPANSION_TRIES = 16
"""How often fine codes are sampled again within a row's codes if the first ones violate a constraint together."""

StepsByAttribute = dict[int, NDArray[np.int64]]
"""Which value of its cell each row has, by the index of an attribute; for attributes in orders and sums."""


def select_synthesis(schema: Schema, model: Model, synthesis: Synthesis, progress: Progress = ignore_progress) -> Model:
    """The model for another synthesis method than the one it was made for.

    Its consistent tables stay. ``Gibbs`` needs a maximum entropy model, which is fitted here unless the model has one
    that was fitted with the same options.
    """
    if synthesis == model.synthesis:
        return model
    if isinstance(synthesis, Gibbs):
        return replace(model, synthesis=synthesis, distribution=fit_distribution(schema, model, synthesis, progress))
    return replace(model, synthesis=synthesis)


def _split_seed(seed: int) -> tuple[int, int]:
    """The seeds of codes and of values inside their cells."""
    codes, values = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    return int(codes), int(values)


class RowSampler:
    """Rows of a model that satisfy the constraints of a schema, in chunks that are independent of each other.

    A chunk is a function of the model, the seed, its number and the number of rows. It is the same on any machine,
    whichever worker samples it and in whatever order. Each chunk is fitted to the model's marginals by itself, so all
    chunks together match them. Public totals are met if as many rows are sampled as the model has, and in proportion
    for any other number; they do not apply under conditions.

    Attributes:
        rows: the number of rows.
        seed: the seed they are sampled with.
        max_chunk_rows: the maximum number of rows of a chunk.
        chunk_count: the number of chunks.

    ``codes`` are the model's codes of the rows, rows × attributes, where they are sampled already.
    """

    def __init__(
        self,
        schema: Schema,
        model: Model,
        rows: int,
        allowed: AllowedCodes,
        *,
        seed: int,
        codes: NDArray[np.integer] | None = None,
    ) -> None:
        if isinstance(model.synthesis, MCF):
            _refuse_mcf_conditions(schema, allowed)
        require_satisfiable(schema, allowed)
        self._schema, self._codec, self.rows, self.seed = schema, Codec(schema), rows, seed
        self._known_codes = codes
        self._allowed, self._conditioned = allowed, _ConditionedModel.of(model, self._codec.names, allowed)
        self._code_seed, self._value_seed = _split_seed(seed)
        sampled = _sampled_distribution(self._conditioned.model, self._conditioned.where)
        self.max_chunk_rows = (
            MAX_GUM_CHUNK_ROWS
            if sampled is None
            else gibbs.max_chunk_rows(sampled, rows, _gibbs_options(self._conditioned.model))
        )
        self.chunk_count = max(1, -(-rows // self.max_chunk_rows))

    def with_seed(self, seed: int) -> RowSampler:
        """A sampler of as many rows under the same conditions, with another seed."""
        other = copy.copy(self)
        other.seed = seed
        other._code_seed, other._value_seed = _split_seed(seed)
        return other

    def chunk_size(self, chunk: int) -> int:
        """The number of rows of a chunk; chunks have about equal sizes."""
        return self.rows // self.chunk_count + (chunk < self.rows % self.chunk_count)

    def _first_row(self, chunk: int) -> int:
        return chunk * (self.rows // self.chunk_count) + min(chunk, self.rows % self.chunk_count)

    def sample_chunk(self, chunk: int, progress: Progress = ignore_progress) -> pa.Table:
        """The rows of a chunk as a table of the schema's types."""
        rng = np.random.default_rng([self._value_seed, chunk])
        codes, steps = self._repair_codes(self._conditioned, self._sample_codes(chunk, progress), self._allowed, rng)
        first_row = self._first_row(chunk)
        if not self._allowed:
            codes, steps = self._adjust_to_totals(codes, steps, first_row, rng)
        steps_by_name = {self._codec.names[index]: values for index, values in steps.items()}
        table = self._codec.decode(codes, rng, first_row=first_row, steps=steps_by_name)
        require_no_violations(self._schema, table)
        return table

    def empty_table(self) -> pa.Table:
        """A table without rows that has the columns of the sampled ones."""
        return self._codec.decode(np.zeros((0, len(self._codec.names)), np.uint8), np.random.default_rng(0))

    def _sample_codes(self, chunk: int, progress: Progress) -> NDArray[np.integer]:
        if self._known_codes is not None:
            first = self._first_row(chunk)
            return self._known_codes[first : first + self.chunk_size(chunk)]
        model, where, seed = self._conditioned.model, self._conditioned.where, self._code_seed
        sampled = _sampled_distribution(model, where)
        if self.chunk_count > 1 and sampled is not None:
            options = _gibbs_options(model)
            return gibbs.sample_chunk(sampled, self.chunk_size(chunk), chunk, seed=seed, where=where, options=options).T
        if self.chunk_count > 1:
            seed = int(np.random.SeedSequence([seed, chunk]).generate_state(1, np.uint64)[0])
        return sample_codes(model, self.chunk_size(chunk), where, seed=seed, progress=progress)

    def _repair_codes(
        self, source: _ConditionedModel, codes: NDArray[np.integer], within: AllowedCodes, rng: np.random.Generator
    ) -> tuple[Codes, StepsByAttribute]:
        """Fine codes within the model's codes that satisfy the constraints of rows."""
        cells = source.model.recoding.expand(codes, source.weights, rng)
        self._align_weekdays(source, codes, cells, rng)
        violating = np.flatnonzero(~satisfiable_rows(self._schema, cells))
        for _ in range(EXPANSION_TRIES):  # other values within the same bins may satisfy the constraints
            if not len(violating):
                break
            cells[violating] = source.model.recoding.expand(codes[violating], source.weights, rng)
            violating = violating[~satisfiable_rows(self._schema, cells[violating])]
        return repair_rows(self._schema, cells, rng, within)

    def _align_weekdays(
        self, source: _ConditionedModel, codes: NDArray[np.integer], cells: Codes, rng: np.random.Generator
    ) -> None:
        """Sample the cells of dates again, in place, within their codes, where they have no day of their weekday."""
        names = self._codec.names
        for parts in self._schema.timestamp_parts.values():
            date, weekday = names.index(parts.date.name), names.index(parts.weekday.name)
            axis = next(a for a, column in enumerate(source.model.recoding.columns) if date in column.sources)
            column = source.model.recoding.columns[axis]
            if column.sources != (date,) or column.difference_codings:
                continue
            days = parts.days_by_weekday()
            for number in range(7):
                without = (days[:, number] == 0) & (np.arange(len(days)) < parts.date.proper_cells)
                rows = np.flatnonzero((cells[:, weekday] == number) & without[cells[:, date]])
                weights = source.weights[date] * days[:, number] / np.maximum(days.sum(axis=1), 1)
                cells[rows, date] = column.expand(codes[rows, axis], [weights], rng)[0]

    def _adjust_to_totals(
        self, codes: Codes, steps: StepsByAttribute, first_row: int, rng: np.random.Generator
    ) -> tuple[Codes, StepsByAttribute]:
        """These rows, changed to meet their part of the public totals; ``first_row`` is the index of the first one."""

        def sample_within(count: int, within: AllowedCodes) -> tuple[Codes, StepsByAttribute]:
            source = _ConditionedModel.of(self._conditional_model, self._codec.names, within)
            sampled = sample_codes(source.model, count, source.where, seed=int(rng.integers(2**63)))
            return self._repair_codes(source, sampled, within, rng)

        total = self._conditioned.model.total
        all_rows = self.rows if self.rows == round(total) else total
        per_row = 1 / max(all_rows, 1.0)
        row_range = (first_row * per_row, (first_row + len(codes)) * per_row)
        return adjust_rows_to_totals(self._schema, codes, steps, row_range, sample_within, rng)

    @cached_property
    def _conditional_model(self) -> Model:
        """The model with a distribution that can be sampled under conditions; fitted once."""
        return _with_distribution(self._conditioned.model)


def _refuse_mcf_conditions(schema: Schema, allowed: AllowedCodes) -> None:
    """Refuse, before any work, what min-cost flow cannot do: sample rows under a condition."""
    if allowed:
        raise UserError(
            f"MCF cannot sample rows under a condition, and there is one on {', '.join(allowed)}; "
            "use gibbs, or leave the condition out"
        )
    if any(total.selection for total in compile_constraints(schema).totals):
        raise UserError(
            "MCF cannot sample rows under a condition, which the public totals of the schema need; use gibbs or gum"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _ConditionedModel:
    """A model under conditions.

    Attributes:
        model: the model; under conditions it has a distribution to sample from.
        weights: the weights of the fine codes of each attribute; 0 for those that are not allowed.
        where: for some of the model's attributes, the probability that each code meets the conditions.
    """

    model: Model
    weights: Sequence[NDArray[np.float64]]
    where: Mapping[str, NDArray[np.float64]]

    @classmethod
    def of(cls, model: Model, names: Sequence[str], allowed: AllowedCodes) -> _ConditionedModel:
        _refuse_conditions_on_differences(model, names, allowed)
        weights = [_fine_code_weights(model, name, allowed) for name in names]
        where = {
            column.name: _condition_probabilities(column, model, names, weights)
            for column in model.recoding.columns
            if any(names[source] in allowed for source in column.sources)
        }
        return cls(_with_distribution(model) if where else model, weights, where)


def _with_distribution(model: Model) -> Model:
    """The model with a distribution that can be sampled under conditions."""
    if model.distribution is not None:
        return model
    tables, recoding = model.tables, model.recoding
    fitted = gibbs.fit(tables, recoding.names, recoding.sizes, seed=0, options=_gibbs_options(model))
    return replace(model, distribution=fitted)


def _gibbs_options(model: Model) -> Gibbs:
    return model.synthesis if isinstance(model.synthesis, Gibbs) else Gibbs()


def _sampled_distribution(model: Model, where: Mapping[str, NDArray[np.float64]]) -> GibbsModel | None:
    """The distribution that rows are sampled from; None if they are fitted to the tables instead.

    Under conditions rows are always sampled. ``Gibbs`` has no distribution where all attributes are independent.
    """
    if where and model.distribution is None:
        raise InternalError("rows under conditions need a distribution to sample from")
    return model.distribution if where or isinstance(model.synthesis, Gibbs) else None


def sample_codes(
    model: Model,
    rows: int,
    where: Mapping[str, NDArray[np.float64]],
    *,
    seed: int,
    progress: Progress = ignore_progress,
) -> NDArray[np.integer]:
    """The model's codes of rows, rows × attributes, by the synthesis method of the model; under conditions by Gibbs."""
    names, sizes, synthesis = model.recoding.names, model.recoding.sizes, model.synthesis
    sampled = _sampled_distribution(model, where)
    if sampled is None:  # GUM or MCF; or independent attributes, which both match to rounding
        method = None if isinstance(synthesis, Gibbs) else synthesis
        return synthesize_records(model.tables, names, sizes, rows, seed=seed, method=method, progress=progress)
    pool = SMALL_SAMPLE_POOL if 0 < rows < SMALL_SAMPLE_ROWS else rows
    chunks = gibbs.sample_chunks(
        sampled, pool, seed=seed, where=where, options=_gibbs_options(model), progress=progress
    )
    codes = np.concatenate([np.empty((len(names), 0), np.uint16), *chunks], axis=1).T
    if pool > rows:
        codes = codes[np.random.default_rng(seed).choice(pool, rows, replace=False)]
    return codes


def _refuse_conditions_on_differences(model: Model, names: Sequence[str], allowed: AllowedCodes) -> None:
    """Refuse a condition on an attribute that is sampled as a difference from another: it would need rejection."""
    for source, difference in model.recoding.difference_codings.items():
        if names[source] in allowed:
            anchor = names[difference.anchor]
            raise UserError(
                f"{names[source]!r} was measured as its difference from {anchor!r}, so rows cannot be sampled under "
                f"a condition on it; put the condition on {anchor!r}"
            )


def _fine_code_weights(model: Model, name: str, allowed: AllowedCodes) -> NDArray[np.float64]:
    """The weights of an attribute's fine codes; 0 for those that are not allowed."""
    weights = model.histograms[name]
    if name not in allowed:
        return weights
    return np.where(allowed[name], weights + SMOOTHING_SHARE * max(float(weights.sum()), 1.0), 0.0)


def _condition_probabilities(
    column: RecodedColumn, model: Model, names: Sequence[str], weights: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """The probability that each code of a column stands for fine codes that are allowed."""
    allowed, total = np.ones(1), np.ones(1)
    for source, table in zip(column.sources, column.tables, strict=True):
        digits, histogram = Grouping(table), model.histograms[names[source]]
        histogram = histogram + SMOOTHING_SHARE * max(float(histogram.sum()), 1.0)
        allowed = np.multiply.outer(allowed, digits.sums(weights[source])).ravel()
        total = np.multiply.outer(total, digits.sums(histogram)).ravel()
    if column.merged is not None:
        allowed, total = (Grouping(column.merged).sums(part) for part in (allowed, total))
    probabilities: NDArray[np.float64] = np.minimum(allowed / total, 1.0)
    return probabilities
