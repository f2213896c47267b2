"""Records from consistent tables of counts, by GUM or MCF: separate, detach, fit, append, join.

Both methods of PrivSyn share its optimizations (DPSyn paper, appendix A, "Improving the Convergence"): attributes that
no table connects are synthesized separately and joined afterwards, and attributes that only one table holds are
appended afterwards. What remains is fitted by the method.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding import contingency_table
from dpsyn.errors import InternalError
from dpsyn.inference.gibbs import kernels as gibbs_kernels
from dpsyn.inference.gum.decomposition import (
    AppendedAttribute,
    append_attribute,
    detach_attributes,
    drop_covered_tables,
    join_components,
    separate_components,
)
from dpsyn.inference.gum.gradual_update import Records, initialize_records, run_gum
from dpsyn.inference.mcf import require_solvable_flows, run_mcf
from dpsyn.inference.methods import GUM, MCF
from dpsyn.marginals import Estimate
from dpsyn.progress import Progress, ignore_progress

FIRST_RUN_NOTE = " (first run on this machine: compiling takes some seconds)"


def synthesize_records(
    tables: Sequence[Estimate],
    names: Sequence[str],
    sizes: Sequence[int],
    rows: int,
    *,
    seed: int,
    method: GUM | MCF | None = None,
    progress: Progress = ignore_progress,
    threads: int | None = None,
) -> Records:
    """Synthesize records that match consistent non-negative tables.

    Attributes that no table connects are independent. Tables that form a tree are matched up to rounding, whatever the
    method. The others are fitted by the method. A table whose cells are all zero counts as uniform. The same seed gives
    the same records, whatever the number of threads.

    Args:
        tables: consistent non-negative counts; every attribute is in at least one of them.
        names: the attributes.
        sizes: the number of values of each attribute.
        rows: the number of records.
        seed: the seed of all random choices.
        method: how records are fitted to the tables, with its options; GUM with its defaults if None.
        progress: receives the phase and the fraction done.
        threads: the number of threads; as many as there are processors if None.

    Returns:
        Rows × attributes of codes, column-major.

    Raises:
        UserError: a table is too large for MCF.

    Privacy: post-processing; it costs nothing.
    """
    method = method or GUM()
    tables = expand_levels(tables)
    _check_tables(tables, dict(zip(names, sizes, strict=True)), rows)
    components = separate_components(drop_covered_tables(tables), names)
    parts = [detach_attributes(component.tables) for component in components]
    if isinstance(method, MCF):
        require_solvable_flows([table for core, _ in parts for table in core])
    progress(f"fitting records{FIRST_RUN_NOTE}" if is_first_run() else "fitting records", 0.0)
    *seeds, join_seed = np.random.SeedSequence(seed).spawn(len(components) + 1)
    combined = _CombinedProgress(progress, [len(component.tables) for component in components])
    tasks = [
        partial(
            _synthesize_component,
            *(component.names, core, appended, rows, np.random.default_rng(component_seed), method),
            partial(combined.report, index),
        )
        for index, (component, (core, appended), component_seed) in enumerate(
            zip(components, parts, seeds, strict=True)
        )
    ]
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        columns = [future.result() for future in [pool.submit(task) for task in tasks]]
    return join_components(columns, names, rows, np.random.default_rng(join_seed))


def expand_levels(tables: Sequence[Estimate]) -> list[Estimate]:
    """Tables over the values of all attributes: groups of values are divided as the attribute's own table does.

    GUM and MCF take tables of values. A table at a coarser level becomes one in which an attribute, inside a group of
    its values, does not depend on the others.
    """
    shares = {}
    for table in tables:
        for axis, name in enumerate(table.clique):
            if name not in table.levels and name not in shares:
                others = tuple(other for other in range(table.values.ndim) if other != axis)
                shares[name] = np.maximum(table.values.sum(axis=others), 0.0)
    return [_expand_table(table, shares) if table.levels else table for table in tables]


def _expand_table(table: Estimate, counts: Mapping[str, NDArray[np.float64]]) -> Estimate:
    values = table.values
    for name, group_of in table.levels.items():
        axis = table.clique.index(name)
        sums, members = np.bincount(group_of, counts[name]), np.bincount(group_of)
        within = np.where(sums[group_of] > 0, counts[name] / np.maximum(sums[group_of], 1e-300), 1 / members[group_of])
        shape = [-1 if other == axis else 1 for other in range(values.ndim)]
        values = np.take(values, group_of, axis=axis) * within.reshape(shape)
    return Estimate(table.clique, np.asarray(values, np.float64), table.variance)


def is_first_run() -> bool:
    """Whether the kernels are not compiled yet, which happens once on a machine and takes some seconds."""
    kernel = gibbs_kernels.sweep
    folder = getattr(getattr(kernel, "_cache", None), "cache_path", None)
    if folder is None:  # there is no place for a cache, so every process compiles
        return not getattr(kernel, "signatures", True)
    return not any(Path(folder).glob("kernels.*.nbi"))


def _check_tables(tables: Sequence[Estimate], sizes: dict[str, int], rows: int) -> None:
    if rows < 0:
        raise InternalError(f"the number of rows is {rows}; it cannot be negative")
    for table in tables:
        if table.values.shape != tuple(sizes.get(name) for name in table.clique):
            raise InternalError(f"the table of {', '.join(table.clique)} does not fit the sizes of its attributes")
        if not np.all(np.isfinite(table.values) & (table.values >= 0)):
            raise InternalError(f"the table of {', '.join(table.clique)} has a count that is negative or not a number")
    if missing := sizes.keys() - {name for table in tables for name in table.clique}:
        raise InternalError(f"no table has the attributes {', '.join(sorted(missing))}")


def _synthesize_component(
    component_names: Sequence[str],
    core: Sequence[Estimate],
    appended: Sequence[AppendedAttribute],
    rows: int,
    rng: np.random.Generator,
    method: GUM | MCF,
    progress: Progress,
) -> dict[str, NDArray[np.int32]]:
    """The codes of each attribute of a component: those of its core are fitted, the others appended."""
    sizes = {name: size for table in core for name, size in zip(table.clique, table.values.shape, strict=True)}
    names = [name for name in component_names if name in sizes]
    if isinstance(method, MCF):
        records = run_mcf(
            core, names, [sizes[name] for name in names], rows, rng=rng, options=method, progress=progress
        )
    else:
        records = fit_records(core, names, rows, rng=rng, options=method, progress=progress)
    columns = dict(zip(names, records.T, strict=True))
    for attribute in appended:
        columns[attribute.name] = append_attribute(columns, attribute, rows, rng)
    return columns


class _CombinedProgress:
    """The progress of several threads as one fraction of the whole."""

    def __init__(self, progress: Progress, weights: Sequence[int]) -> None:
        self._progress, self._lock = progress, Lock()
        self._weights, self._done = np.array(weights, float), np.zeros(len(weights))

    def report(self, index: int, phase: str, done: float) -> None:
        """Report the progress of one task."""
        with self._lock:
            self._done[index] = done
            self._progress(phase, float(self._weights @ self._done / max(1.0, self._weights.sum())))


# ── GUM, also where records are too few for it ───────────────────────────────────────────────────────────────


_MIN_FITTED_RECORDS = 30_000
"""The number of records that are fitted if fewer are requested than GUM can fit; these are sampled from them.

With all 105 pairs of Adult, 1 000 records fitted on their own have a mean total variation distance of .154 from the
tables; sampled from 5 000 fitted ones .10, from 20 000 .078, from 50 000 .075. 5 000 records fitted on their own have
.066, sampled from 25 000 fitted ones .039."""


def fit_records(
    tables: Sequence[Estimate],
    names: Sequence[str],
    rows: int,
    *,
    rng: np.random.Generator,
    options: GUM | None = None,
    progress: Progress = ignore_progress,
) -> Records:
    """Fit records to non-negative tables by GUM, from independent attributes.

    If records are few and tables are many, GUM copies the same records again and again and matches no table. If a
    random sample of a good fit is expected to be closer, ``_MIN_FITTED_RECORDS`` records are fitted, and the records
    are sampled from these, unless they turn out to be farther from the tables.
    """

    def fit_rows(count: int, first: float, last: float) -> Records:
        def report(phase: str, done: float) -> None:
            progress(phase, first + done * (last - first))

        return run_gum(
            initialize_records(tables, names, count, rng), names, tables, rng=rng, options=options, progress=report
        )

    if not 0 < rows < _MIN_FITTED_RECORDS:
        return fit_rows(rows, 0.0, 1.0)
    share = rows / (rows + _MIN_FITTED_RECORDS)
    few = fit_rows(rows, 0.0, share)
    if _total_distance(few, names, tables) <= sum(_expected_sampling_distance(table, rows) for table in tables):
        progress("fitting records", 1.0)
        return few
    many = fit_rows(_MIN_FITTED_RECORDS, share, 1.0)
    sampled = np.asfortranarray(many[rng.choice(_MIN_FITTED_RECORDS, rows, replace=False)])
    return min(few, sampled, key=lambda records: _total_distance(records, names, tables))


def _total_distance(records: Records, names: Sequence[str], tables: Sequence[Estimate]) -> float:
    """The sum of the total variation distances between the tables and the records."""
    axes = {name: axis for axis, name in enumerate(names)}
    total = 0.0
    for table in tables:
        counts = contingency_table([records[:, axes[name]] for name in table.clique], table.values.shape)
        shares = counts.ravel() / len(records)
        total += float(np.abs(shares - _cell_shares(table).ravel()).sum() / 2)
    return total


def _expected_sampling_distance(table: Estimate, rows: int) -> float:
    """The expected total variation distance between a table and a random sample of the records that it counts.

    The share of a cell with probability p has the standard deviation √(p(1−p)/rows); the expected absolute error is
    √(2/π) times that.
    """
    shares = _cell_shares(table)
    return float(np.sqrt(shares * (1 - shares)).sum()) / math.sqrt(2 * math.pi * rows)


def _cell_shares(table: Estimate) -> NDArray[np.float64]:
    return table.values / table.total if table.total > 0 else np.full(table.values.shape, 1 / table.values.size)
