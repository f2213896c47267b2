"""Rows of a fitted model, any number of them, in chunks that know nothing of each other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import UserError
from dpsyn.inference.gibbs.chains import Chains, QuadraticPenalty, polish_chains, tighten_chains
from dpsyn.inference.gibbs.layout import Columns
from dpsyn.inference.gibbs.model import GibbsModel
from dpsyn.inference.methods import Gibbs
from dpsyn.progress import Progress, ignore_progress

ValueConditions = Mapping[str, NDArray[np.float64] | NDArray[np.bool_]]
"""For some attributes, how likely each of their values is to meet a condition: 0 if it never does."""

_SMALL_CHUNK, _LARGE_CHUNK, _MANY_ROWS, _MAX_PRECISE_CHUNK = 1 << 14, 1 << 16, 1 << 18, 1 << 19
"""Rows at most that are drawn together; each chunk is bound to the model's marginals by itself, and what it loses by
having whole rows is less in a large one. Small ones keep several threads busy where there are not many rows; rows of
precise tables are one chunk up to the last, though one thread draws them: 305 000 rows of 600 tables come as close as
.004 to them then, in five chunks .007."""

_MAX_WAITING_CHUNKS = 16
"""Chunks drawn before the first of them is taken: enough to keep threads busy, and few to keep in memory."""


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
    """Rows of the model, attributes × rows, a chunk at a time.

    A chunk is a function of ``seed``, its number and its size: the same on any machine. Conditions are kept by every
    row and nothing is thrown away.
    """
    options = options or Gibbs()
    sizes = chunk_sizes(rows, chunk or max_chunk_rows(model, rows, options))
    alone = len(sizes) == 1
    with ThreadPoolExecutor() as pool:
        waiting: deque[Future[Columns]] = deque()
        for number, size in enumerate(sizes):
            drawn = partial(sample_chunk, model, size, number, seed=seed, where=where, options=options, alone=alone)
            waiting.append(pool.submit(drawn))
            if len(waiting) > _MAX_WAITING_CHUNKS:
                progress("drawing rows", (number - _MAX_WAITING_CHUNKS) / len(sizes))
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    progress("drawing rows", 1.0)


def max_chunk_rows(model: GibbsModel, rows: int, options: Gibbs | None = None) -> int:
    """How many of these rows are drawn together at most."""
    if model.noise_distance < (options or Gibbs()).tighten_below_noise:
        return _MAX_PRECISE_CHUNK if rows <= _MAX_PRECISE_CHUNK else _LARGE_CHUNK
    return _LARGE_CHUNK if rows >= _MANY_ROWS else _SMALL_CHUNK


def chunk_sizes(rows: int, chunk: int) -> Sequence[int]:
    """How rows are split: into as few chunks as possible, of about equal size; no rows are one empty chunk."""
    if rows < 0:
        raise UserError(f"{rows} rows cannot be drawn; give 0 or more")
    number = max(1, -(-rows // chunk))
    return [rows // number + (place < rows % number) for place in range(number)]


def sample_chunk(
    model: GibbsModel,
    rows: int,
    number: int,
    *,
    seed: int,
    where: ValueConditions | None = None,
    options: Gibbs | None = None,
    alone: bool = False,
) -> Columns:
    """One chunk: an exact sample of the forest, then sweeps with the parameters as they are.

    The counts are held near those that the model expects, first gently, then firmly; under conditions gently, and
    those of the tables that tell of all conditions: free sweeps went astray where many tables are precise. A chunk that
    stays ``alone`` is bound to precise tables as closely as can be; among many it need not, for what whole rows leave
    in one and in another is not the same.
    """
    options = options or Gibbs()
    allowed = _index_conditions(model, where or {})
    random = np.random.default_rng([seed, number])
    columns = model.forest.sample(rows, int(random.integers(2**63)), allowed)
    chains = Chains(model.layout, columns, None, random, allowed)
    if allowed:
        counts, known = model.conditional_counts(rows, allowed)
        gentle = QuadraticPenalty(counts, np.where(known, options.sweep_stiffness, 0.0), options.max_force)
        for _ in range(options.conditional_sweeps):
            chains.sweep(model.log_weights, gentle)
        return columns
    logs, counts = model.log_weights, model.expected_counts(rows)
    for _ in range(options.sampling_sweeps):
        chains.sweep(
            logs, QuadraticPenalty(counts, model.layout.target_stiffness(options.sweep_stiffness), options.max_force)
        )
    polish_chains(chains, logs, counts, options)
    if alone and model.noise_distance < options.tighten_below_noise:
        tighten_chains(chains, logs, counts, options)
    return columns


def _index_conditions(model: GibbsModel, where: ValueConditions) -> dict[int, NDArray[np.float64]]:
    """Conditions by the places of their attributes."""
    places = {name: place for place, name in enumerate(model.names)}
    for name, values in where.items():
        if name not in places:
            raise UserError(f"there is no attribute {name} to put a condition on; there are {', '.join(model.names)}")
        if values.shape != (model.layout.sizes[places[name]],) or not values.any():
            raise UserError(f"the condition on {name} allows none of its {model.layout.sizes[places[name]]} values")
    return {places[name]: np.asarray(values, np.float64) for name, values in where.items()}
