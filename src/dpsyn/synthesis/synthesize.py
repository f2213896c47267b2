"""From tables of counts to records: separate, take out, start, fit, append, join."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.marginals import Estimate
from dpsyn.progress import Progress, silent
from dpsyn.synthesis import gibbs
from dpsyn.synthesis.append import append, peel, uncovered
from dpsyn.synthesis.fit import fit
from dpsyn.synthesis.gum import GumOptions
from dpsyn.synthesis.join import Component, join, separate
from dpsyn.synthesis.start import Records

FIRST_TIME = " (first run on this machine: compiling takes some seconds)"


def synthesize(
    tables: Sequence[Estimate],
    names: Sequence[str],
    sizes: Sequence[int],
    rows: int,
    *,
    seed: int,
    options: GumOptions | None = None,
    progress: Progress = silent,
    threads: int | None = None,
) -> Records:
    """Records that match consistent non-negative tables: rows × attributes of codes, column-major.

    Every attribute is in one table at least. What tables do not connect is independent; tables that form a tree match
    to rounding; the others are fitted by GUM. A table that is zero throughout counts
    as uniform.

    The same seed gives the same records, whatever the number of threads.
    """
    _check(tables, dict(zip(names, sizes, strict=True)), rows)
    components = separate(uncovered(tables), names)
    progress(f"fitting records{FIRST_TIME}" if first_time() else "fitting records", 0.0)
    *seeds, last = np.random.SeedSequence(seed).spawn(len(components) + 1)
    shares = _Shares(progress, [len(component.tables) for component in components])
    work = [
        partial(_columns, component, rows, np.random.default_rng(own), options, partial(shares.tell, number))
        for number, (component, own) in enumerate(zip(components, seeds, strict=True))
    ]
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        parts = [running.result() for running in [pool.submit(task) for task in work]]
    return join(parts, names, rows, np.random.default_rng(last))


def first_time() -> bool:
    """Whether the kernels have still to be compiled, which happens once on a machine and takes some seconds."""
    folder = getattr(getattr(gibbs.kernels.sweep, "_cache", None), "cache_path", None)
    return folder is not None and not any(Path(folder).glob("kernels.*.nbi"))


def _check(tables: Sequence[Estimate], sizes: dict[str, int], rows: int) -> None:
    if rows < 0:
        raise InternalError(f"{rows} rows were asked for")
    for table in tables:
        if table.values.shape != tuple(sizes.get(name) for name in table.clique):
            raise InternalError(f"the table of {', '.join(table.clique)} does not fit its attributes")
        if not np.all(np.isfinite(table.values) & (table.values >= 0)):
            raise InternalError(f"the table of {', '.join(table.clique)} has a count that is negative or not a number")
    if missing := sizes.keys() - {name for table in tables for name in table.clique}:
        raise InternalError(f"no table has {', '.join(sorted(missing))}")


def _columns(
    component: Component, rows: int, rng: np.random.Generator, options: GumOptions | None, progress: Progress
) -> dict[str, NDArray[np.int32]]:
    """The codes of each attribute of a component."""
    core, appendices = peel(component.tables)
    left = {name for table in core for name in table.clique}
    names = [name for name in component.names if name in left]
    records = fit(core, names, rows, rng=rng, options=options, progress=progress)
    columns = dict(zip(names, records.T, strict=True))
    for appendix in appendices:
        columns[appendix.name] = append(columns, appendix, rows, rng)
    return columns


class _Shares:
    """What several threads have done, as one fraction of the whole."""

    def __init__(self, progress: Progress, weights: Sequence[int]) -> None:
        self._progress, self._lock = progress, Lock()
        self._weights, self._done = np.array(weights, float), np.zeros(len(weights))

    def tell(self, number: int, phase: str, done: float) -> None:
        """Say how far one of them is."""
        with self._lock:
            self._done[number] = done
            self._progress(phase, float(self._weights @ self._done / max(1.0, self._weights.sum())))
