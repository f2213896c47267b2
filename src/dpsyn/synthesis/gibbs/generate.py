"""Rows of a fitted model, any number of them, in chunks that know nothing of each other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import UserError
from dpsyn.progress import Progress, silent
from dpsyn.synthesis.gibbs.chains import Chains, Pull
from dpsyn.synthesis.gibbs.fitted import Fitted
from dpsyn.synthesis.gibbs.layout import Columns
from dpsyn.synthesis.gibbs.options import GibbsOptions
from dpsyn.synthesis.gibbs.polish import polish_chains, press_chains

Conditions = Mapping[str, NDArray[np.float64] | NDArray[np.bool_]]
"""For some attributes, how likely each of their values is to meet a condition: 0 if it never does."""

_SMALL, _LARGE, _MANY, _WHOLE = 1 << 14, 1 << 16, 1 << 18, 1 << 19
"""Rows at most that are drawn together; each chunk is bound to the model's marginals by itself, and what it loses by
having whole rows is less in a large one. Small ones keep several threads busy where there are not many rows; rows of
precise tables are one chunk up to the last, though one thread draws them: 305 000 rows of 600 tables come as close as
.004 to them then, in five chunks .007."""

_AHEAD = 16
"""Chunks drawn before the first of them is taken: enough to keep threads busy, and few to keep in memory."""


def generate(
    fitted: Fitted,
    rows: int,
    *,
    seed: int,
    where: Conditions | None = None,
    chunk: int | None = None,
    options: GibbsOptions | None = None,
    progress: Progress = silent,
) -> Iterator[Columns]:
    """Rows of the model, attributes × rows, a chunk at a time.

    A chunk is a function of ``seed``, its number and its size: the same on any machine. Conditions are kept by every
    row and nothing is thrown away.
    """
    options = options or GibbsOptions()
    sizes = chunk_sizes(rows, chunk or most_rows(fitted, rows, options))
    alone = len(sizes) == 1
    with ThreadPoolExecutor() as pool:
        waiting: deque[Future[Columns]] = deque()
        for number, size in enumerate(sizes):
            drawn = partial(generate_chunk, fitted, size, number, seed=seed, where=where, options=options, alone=alone)
            waiting.append(pool.submit(drawn))
            if len(waiting) > _AHEAD:
                progress("drawing rows", (number - _AHEAD) / len(sizes))
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    progress("drawing rows", 1.0)


def most_rows(fitted: Fitted, rows: int, options: GibbsOptions | None = None) -> int:
    """How many of these rows are drawn together at most."""
    if fitted.noise < (options or GibbsOptions()).precise:
        return _WHOLE if rows <= _WHOLE else _LARGE
    return _LARGE if rows >= _MANY else _SMALL


def chunk_sizes(rows: int, chunk: int) -> Sequence[int]:
    """How rows are split: into as few chunks as possible, of about equal size; no rows are one empty chunk."""
    if rows < 0:
        raise UserError(f"{rows} rows cannot be drawn; give 0 or more")
    number = max(1, -(-rows // chunk))
    return [rows // number + (place < rows % number) for place in range(number)]


def generate_chunk(
    fitted: Fitted,
    rows: int,
    number: int,
    *,
    seed: int,
    where: Conditions | None = None,
    options: GibbsOptions | None = None,
    alone: bool = False,
) -> Columns:
    """One chunk: an exact sample of the forest, then sweeps with the parameters as they are.

    The counts are held near those that the model expects, first gently, then firmly; under conditions gently, and
    those of the tables that tell of all conditions: free sweeps went astray where many tables are precise. A chunk that
    stays ``alone`` is bound to precise tables as closely as can be; among many it need not, for what whole rows leave
    in one and in another is not the same.
    """
    options = options or GibbsOptions()
    allowed = _allowed(fitted, where or {})
    random = np.random.default_rng([seed, number])
    columns = fitted.forest.sample(rows, int(random.integers(2**63)), allowed)
    chains = Chains(fitted.layout, columns, None, random, allowed)
    if allowed:
        counts, known = fitted.conditioned(rows, allowed)
        gentle = Pull(counts, np.where(known, options.stiffest, 0.0), options.reach)
        for _ in range(options.conditioned):
            chains.sweep(fitted.logs, gentle)
        return columns
    logs, counts = fitted.logs, fitted.counts(rows)
    for _ in range(options.drawn):
        chains.sweep(logs, Pull(counts, fitted.layout.firmness(options.stiffest), options.reach))
    polish_chains(chains, logs, counts, options)
    if alone and fitted.noise < options.precise:
        press_chains(chains, logs, counts, options)
    return columns


def _allowed(fitted: Fitted, where: Conditions) -> dict[int, NDArray[np.float64]]:
    """Conditions by the places of their attributes."""
    places = {name: place for place, name in enumerate(fitted.names)}
    for name, values in where.items():
        if name not in places:
            raise UserError(f"there is no attribute {name} to put a condition on; there are {', '.join(fitted.names)}")
        if values.shape != (fitted.layout.sizes[places[name]],) or not values.any():
            raise UserError(f"the condition on {name} allows none of its {fitted.layout.sizes[places[name]]} values")
    return {places[name]: np.asarray(values, np.float64) for name, values in where.items()}
