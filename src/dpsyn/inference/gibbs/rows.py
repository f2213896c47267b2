"""Sampling rows from a fitted model, any number of them, in independent chunks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import UserError, quote_argument
from dpsyn.inference.gibbs.chains import Chains, QuadraticPenalty, polish_chains, tighten_chains
from dpsyn.inference.gibbs.layout import Columns
from dpsyn.inference.gibbs.model import GibbsModel
from dpsyn.inference.methods import Gibbs
from dpsyn.progress import Progress, ignore_progress
from dpsyn.suggestions import suggest_names

ValueConditions = Mapping[str, NDArray[np.float64] | NDArray[np.bool_]]
"""For some attributes, the probability that each of their values meets a condition; 0 if it never does."""

_SMALL_CHUNK, _LARGE_CHUNK, _MANY_ROWS, _MAX_PRECISE_CHUNK = 1 << 14, 1 << 16, 1 << 18, 1 << 19
"""Maximum rows of a chunk. Each chunk is fitted to the model's marginals on its own, and rounding to whole rows costs
less in a large chunk. Small chunks keep several threads busy if there are not many rows. Rows of precise tables are one
chunk up to the last limit, although one thread samples them: 305 000 rows of 600 tables then have a distance of .004
from the tables, in five chunks .007."""

_MAX_WAITING_CHUNKS = 16
"""Maximum number of chunks that wait to be consumed: enough to keep threads busy, few enough to keep in memory."""


def sample_chunks(
    model: GibbsModel,
    rows: int,
    *,
    seed: int,
    where: ValueConditions | None = None,
    chunk: int | None = None,
    options: Gibbs | None = None,
    progress: Progress = ignore_progress,
) -> Iterator[Columns]:
    """Sample rows of the model (attributes × rows), chunk by chunk.

    A chunk is a function of ``seed``, its index and its size: the same on any machine. Every row meets the conditions;
    rows are sampled directly, not by rejection.
    """
    options = options or Gibbs()
    sizes = chunk_sizes(rows, chunk or max_chunk_rows(model, rows, options))
    only_chunk = len(sizes) == 1
    with ThreadPoolExecutor() as pool:
        waiting: deque[Future[Columns]] = deque()
        for index, size in enumerate(sizes):
            task = partial(sample_chunk, model, size, index, seed=seed, where=where, options=options, alone=only_chunk)
            waiting.append(pool.submit(task))
            if len(waiting) > _MAX_WAITING_CHUNKS:
                progress("sampling rows", (index - _MAX_WAITING_CHUNKS) / len(sizes))
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    progress("sampling rows", 1.0)


def max_chunk_rows(model: GibbsModel, rows: int, options: Gibbs | None = None) -> int:
    """The maximum number of rows of a chunk, if ``rows`` are sampled in all."""
    if model.noise_distance < (options or Gibbs()).tighten_below_noise:
        return _MAX_PRECISE_CHUNK if rows <= _MAX_PRECISE_CHUNK else _LARGE_CHUNK
    return _LARGE_CHUNK if rows >= _MANY_ROWS else _SMALL_CHUNK


def chunk_sizes(rows: int, chunk: int) -> Sequence[int]:
    """Split rows into as few chunks as possible, of about equal size; 0 rows are one empty chunk."""
    if rows < 0:
        raise UserError(f"the number of rows is {rows}; give 0 or more")
    chunks = max(1, -(-rows // chunk))
    return [rows // chunks + (index < rows % chunks) for index in range(chunks)]


def sample_chunk(
    model: GibbsModel,
    rows: int,
    index: int,
    *,
    seed: int,
    where: ValueConditions | None = None,
    options: Gibbs | None = None,
    alone: bool = False,
) -> Columns:
    """Sample one chunk: an exact sample of the forest, then sweeps with the fitted parameters.

    A penalty keeps the counts near those that the model expects, first soft, then stiff. Under conditions it is soft,
    and it holds only for the tables with all conditioned attributes: without it, sweeps drifted away where many tables
    are precise. If the chunk is the only one (``alone``), it is tightened to precise tables as closely as possible.
    Several chunks need not be, because their rounding errors differ and average out.
    """
    options = options or Gibbs()
    allowed = _index_conditions(model, where or {})
    random = np.random.default_rng([seed, index])
    columns = model.forest.sample(rows, int(random.integers(2**63)), allowed)
    chains = Chains(model.layout, columns, None, random, allowed)
    if allowed:
        counts, known = model.conditional_counts(rows, allowed)
        soft = QuadraticPenalty(counts, np.where(known, options.sweep_stiffness, 0.0), options.max_force)
        for _ in range(options.conditional_sweeps):
            chains.sweep(model.log_weights, soft)
        return chains.columns
    logs, counts = model.log_weights, model.expected_counts(rows)
    for _ in range(options.sampling_sweeps):
        chains.sweep(
            logs, QuadraticPenalty(counts, model.layout.target_stiffness(options.sweep_stiffness), options.max_force)
        )
    polish_chains(chains, logs, counts, options)
    if alone and model.noise_distance < options.tighten_below_noise:
        tighten_chains(chains, logs, counts, options)
    return chains.columns


def _index_conditions(model: GibbsModel, where: ValueConditions) -> dict[int, NDArray[np.float64]]:
    """Conditions by the indices of their attributes."""
    axes = {name: axis for axis, name in enumerate(model.names)}
    for name, values in where.items():
        if name not in axes:
            raise UserError(
                f"there is no attribute {quote_argument(name)} to set a condition on; "
                f"{suggest_names(name, model.names)}"
            )
        if values.shape != (model.layout.sizes[axes[name]],) or not values.any():
            raise UserError(
                f"the condition on {quote_argument(name)} allows none of its "
                f"{model.layout.sizes[axes[name]]} values; allow some"
            )
    return {axes[name]: np.asarray(values, np.float64) for name, values in where.items()}
