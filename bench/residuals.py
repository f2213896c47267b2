"""What if pairs were measured without what 1-way marginals tell already? A simulation, for ``bench.ablation``.

A table whose means along each attribute are taken off changes less when a row comes: by Π(1 − 1/nᵢ) of the squared
length, a quarter for two attributes of two values each. So its noise is smaller at the same price; what was taken off
is added again from the 1-way marginals, with the noise of those. Here the noise is drawn on exact counts, without any
privacy: it shows what a recipe would gain, not how to release it.
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
from dpsyn.recipes.adaptive_selection import measure_cliques

_LATTICE = 12


class Residuals:
    """``measured`` of the default recipe, with the pairs among its marginals replaced."""

    def __init__(self, table: Table, seed: int) -> None:
        self._codes, self._random = np.ascontiguousarray(table.codes), np.random.default_rng(seed)

    def measured(self, table: Any, found: Measurements, *arguments: Any) -> Measurements:
        """The same findings, but their last pairs have the noise of residuals."""
        told = measure_cliques(table, found, *arguments)
        last = told.rounds[-1]
        singles = self._singles(found, table.recoding)
        codes = table.recoding.apply(self._codes)
        pairs = [
            self._completed(own, _counted(codes, table.recoding, own), [singles[name] for name in own.clique])
            if len(own.clique) == 2
            else own
            for own in last.marginals
        ]
        return replace(told, rounds=(*told.rounds[:-1], MeasurementRound(last.recoding, tuple(pairs))))

    def _singles(self, found: Measurements, recoding: Recoding) -> dict[str, NDArray[np.float64]]:
        """1-way tables of one total, from 1-way marginals alone."""
        stages = [stage for stage in found.rounds if all(len(own.clique) == 1 for own in stage.marginals)]
        model = fit_model(found.schema, recoding, [Release(tuple(stages))], total=found.row_count)
        tables = {table.clique[0]: table.values for table in model.tables}
        return {name: values + (model.total - values.sum()) / len(values) for name, values in tables.items()}

    def _completed(self, own: Marginal, exact: NDArray[np.int64], sides: Sequence[NDArray[np.float64]]) -> Marginal:
        """A noisy residual, and the means of it by its two 1-way tables."""
        deviation = own.std * math.sqrt(math.prod(1 - 1 / size for size in exact.shape))
        noisy = exact + self._random.normal(0, deviation, exact.shape)
        residual = noisy - noisy.mean(0, keepdims=True) - noisy.mean(1, keepdims=True) + noisy.mean()
        one, other = sides
        whole = residual + one[:, None] / len(other) + other[None, :] / len(one) - one.sum() / exact.size
        return Marginal(own.clique, np.rint(whole * 2**_LATTICE).astype(np.int64), _LATTICE, deviation)


def _counted(codes: NDArray[Any], recoding: Recoding, own: Marginal) -> NDArray[np.int64]:
    places = [codes[:, recoding.index_of(name)].astype(np.int64) for name in own.clique]
    cells = np.ravel_multi_index(places, own.raw.shape)
    return np.bincount(cells, minlength=own.raw.size).reshape(own.raw.shape)
