"""What if pairs were measured without the part that one-way marginals determine? A simulation, for ``bench.ablation``.

A table from which the means along each attribute are subtracted changes less if a row is added: its squared
sensitivity is multiplied by Π(1 − 1/nᵢ), a quarter for two attributes of two values each. So its noise is smaller at
the same cost. The subtracted part is added again from the one-way marginals, with their noise. Here the noise is added
to exact counts, without any privacy: the simulation shows what a recipe would gain, not how to release it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.utility import Table
from dpsyn.encoding import Recoding
from dpsyn.inference import MeasurementRound, Release, fit_model
from dpsyn.marginals import Marginal
from dpsyn.recipes import Measurements
from dpsyn.recipes.adaptive_selection import measure_tables

_LATTICE = 12


class Residuals:
    """``measure_tables`` of the default recipe, with the pairs among its marginals replaced."""

    def __init__(self, table: Table, seed: int) -> None:
        self._codes, self._random = np.ascontiguousarray(table.codes), np.random.default_rng(seed)

    def measure_tables(self, table: Any, previous: Measurements, *arguments: Any) -> Measurements:
        """The same measurements, but the pairs of the last round have the noise of residuals."""
        measurements = measure_tables(table, previous, *arguments)
        last = measurements.rounds[-1]
        one_way = self._one_way_tables(previous, table.recoding)
        codes = table.recoding.apply(self._codes)
        pairs = [
            self._add_one_way(marginal, _count(codes, table.recoding, marginal), [one_way[n] for n in marginal.clique])
            if len(marginal.clique) == 2
            else marginal
            for marginal in last.marginals
        ]
        return replace(measurements, rounds=(*measurements.rounds[:-1], MeasurementRound(last.recoding, tuple(pairs))))

    def _one_way_tables(self, previous: Measurements, recoding: Recoding) -> dict[str, NDArray[np.float64]]:
        """One-way tables of the same total, from one-way marginals alone."""
        rounds = [one for one in previous.rounds if all(len(marginal.clique) == 1 for marginal in one.marginals)]
        model = fit_model(previous.schema, recoding, [Release(tuple(rounds))], total=previous.row_count)
        tables = {table.clique[0]: table.values for table in model.tables}
        return {name: values + (model.total - values.sum()) / len(values) for name, values in tables.items()}

    def _add_one_way(
        self, marginal: Marginal, exact: NDArray[np.int64], one_way: Sequence[NDArray[np.float64]]
    ) -> Marginal:
        """A noisy residual plus the part that its two one-way tables determine."""
        std = marginal.std * math.sqrt(math.prod(1 - 1 / size for size in exact.shape))
        noisy = exact + self._random.normal(0, std, exact.shape)
        residual = noisy - noisy.mean(0, keepdims=True) - noisy.mean(1, keepdims=True) + noisy.mean()
        one, other = one_way
        whole = residual + one[:, None] / len(other) + other[None, :] / len(one) - one.sum() / exact.size
        return Marginal(marginal.clique, np.rint(whole * 2**_LATTICE).astype(np.int64), _LATTICE, std)


def _count(codes: NDArray[Any], recoding: Recoding, marginal: Marginal) -> NDArray[np.int64]:
    columns = [codes[:, recoding.index_of(name)].astype(np.int64) for name in marginal.clique]
    cells = np.ravel_multi_index(columns, marginal.raw.shape)
    return np.bincount(cells, minlength=marginal.raw.size).reshape(marginal.raw.shape)
