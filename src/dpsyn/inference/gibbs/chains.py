"""Records as Markov chains: sweeps that draw every value anew while the counts are held near their targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.inference.gibbs import kernels
from dpsyn.inference.gibbs.layout import CellValues, CliqueLayout, Columns, column_type
from dpsyn.inference.gibbs.model import GibbsModel
from dpsyn.inference.methods import Gibbs

_Result = TypeVar("_Result")

_PART_RECORDS = 8192
_MAX_PARTS = 8
"""Records are split for threads by their number alone, so that the result is the same on any machine."""

_MAX_LOG_WEIGHT = 30.0
"""Logarithms of weights are kept within this distance of what is usual in their clique."""

_NO_VALUE_WEIGHTS = np.ones(0, np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class QuadraticPenalty:
    """What holds the counts of a layout's cliques near their targets.

    The records are drawn from p(X) ∝ Π exp Σ_c θ_c(x_c) · exp(−½ Σ_c λ_c ‖n_c(X) − t_c‖²): each record more than
    wanted in a cell lowers the logarithm of its weight by λ.

    Attributes:
        targets: t, a number for each cell; only differences within a clique matter.
        stiffness: λ, one for each clique.
        max_force: the most that λ‖n − t‖∞ may be; λ is lowered to it.
        max_total_stiffness: the most by which one record more than wanted lowers the logarithm of a value's weight, in all cliques of
            its attribute together. With 57 cliques of an attribute at 1 each, weights left the range of single
            precision, and records were thrown about.
    """

    targets: CellValues
    stiffness: CellValues
    max_force: float
    max_total_stiffness: float = 16.0

    def forces(self, layout: CliqueLayout, counts: NDArray[np.int64]) -> tuple[CellValues, CellValues]:
        """What the pull adds to the parameters at these counts, for each cell; and λ as it was lowered."""
        gaps = counts - self.targets
        gaps -= layout.repeat_per_cell(layout.sum_by_clique(gaps) / layout.lengths)
        widest = np.maximum.reduceat(np.abs(gaps), layout.offsets[:-1])
        stiffness = np.minimum(self.stiffness, self.max_force / np.maximum(widest, 1.0))
        return -layout.repeat_per_cell(stiffness) * gaps, stiffness


@dataclass(slots=True, eq=False)
class Chains:
    """Records that sweeps change in place.

    Attributes:
        layout: the cliques that the records are counted by.
        columns: attributes × records.
        pool: threads to work on, a part of the records each; None to work on all of them here.
        random: where keys and orders come from.
        allowed: values that conditioned attributes may take; the records must keep to it already.
    """

    layout: CliqueLayout
    columns: Columns
    pool: Executor | None
    random: np.random.Generator
    allowed: Mapping[int, NDArray[np.float64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.columns.shape[0] != len(self.layout.sizes) or not self.columns.flags.c_contiguous:
            raise InternalError(f"records of shape {self.columns.shape} do not fit {len(self.layout.sizes)} attributes")

    def counts(self) -> NDArray[np.int64]:
        """How many records are in each cell."""

        def count(part: tuple[int, int]) -> NDArray[np.int64]:
            totals = np.zeros(self.layout.offsets[-1], np.int64)
            kernels.count(self.columns, *part, *self.layout.count_indices, totals)
            return totals

        return sum(self._map_parts(count), start=np.zeros(self.layout.offsets[-1], np.int64))

    def distance(self, targets: CellValues) -> float:
        """Mean total variation distance of the records' counts and targets for as many."""
        apart = self.layout.sum_by_clique(np.abs(self.counts() - targets))
        return float(np.mean(apart[: self.layout.target_count]) / max(1, 2 * self.columns.shape[1]))

    def sweep(self, parameters: CellValues, penalty: QuadraticPenalty | None = None) -> CellValues:
        """Draw each value of each record once, attributes in random order; returns the forces of the pull.

        Every part of the records sees its own moves at once, as if the other parts moved alike; what they did together
        shows in the next sweep.
        """
        counts, parts = self.counts(), self.parts()
        forces, stiffness = np.zeros(len(counts)), np.zeros(len(self.layout.cliques))
        if penalty is not None:
            bound = penalty.max_total_stiffness / (self.layout.max_degrees * len(parts))
            forces, stiffness = replace(penalty, stiffness=np.minimum(penalty.stiffness, bound)).forces(
                self.layout, counts
            )
        live = self._weights(parameters + forces, counts)
        away = stiffness * len(parts)
        moves = (np.exp(away).astype(np.float32), np.exp(-away).astype(np.float32))
        order = self.random.permutation(len(self.layout.sizes))
        key = self.random.integers(0, 2**64, dtype=np.uint64)
        bars = self._value_weights()

        def sweep(part: tuple[int, int]) -> None:
            kernels.sweep(self.columns, *part, order, *self.layout.sweep_indices, *bars, *moves, live, key)

        self._map_parts(sweep)
        return forces

    def parts(self) -> Sequence[tuple[int, int]]:
        """Where the records are split: first and stop of each part."""
        return [(0, self.columns.shape[1])] if self.pool is None else split_records(self.columns.shape[1])

    def _map_parts(self, work: Callable[[tuple[int, int]], _Result]) -> list[_Result]:
        """Work on all parts at once."""
        return [work(part) for part in self.parts()] if self.pool is None else list(self.pool.map(work, self.parts()))

    def _weights(self, logs: CellValues, counts: NDArray[np.int64]) -> NDArray[np.float32]:
        """Exponentials, scaled so that the records' own cells have one on average: products then stay in range."""
        usual = self.layout.sum_by_clique(logs * counts) / max(1, self.columns.shape[1])
        return np.exp(np.clip(logs - self.layout.repeat_per_cell(usual), -_MAX_LOG_WEIGHT, _MAX_LOG_WEIGHT)).astype(
            np.float32
        )

    def _value_weights(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Weights of the values of conditioned attributes, and where each attribute's begin; −1 if it has none."""
        starts = np.full(len(self.layout.sizes), -1, np.int64)
        end = 0
        for place in sorted(self.allowed):
            starts[place] = end
            end += len(self.allowed[place])
        rows = [np.asarray(self.allowed[place], np.float32) for place in sorted(self.allowed)]
        return (np.concatenate(rows) if rows else _NO_VALUE_WEIGHTS), starts


def split_records(records: int) -> Sequence[tuple[int, int]]:
    """Equal parts, a power of two of them."""
    number = 1
    while number < _MAX_PARTS and records >= 2 * number * _PART_RECORDS:
        number *= 2
    edges = np.linspace(0, records, number + 1).astype(int)
    return [(int(first), int(stop)) for first, stop in pairwise(edges)]


# ── Bind records to a model's marginals: what is left between them is less than one record in most cells ──


def polish(records: Columns, model: GibbsModel, *, seed: int, options: Gibbs | None = None) -> Columns:
    """Records (attributes × records) moved until their counts are those that the model expects of so many.

    The values still come from the model's conditionals, so that what the cliques do not tell stays as it is; only the
    noise of having drawn a finite number of records goes.
    """
    columns = np.array(records, column_type(max(model.layout.sizes)), order="C")
    with ThreadPoolExecutor() as pool:
        chains = Chains(model.layout, columns, pool, np.random.default_rng(seed))
        polish_chains(chains, model.log_weights, model.expected_counts(columns.shape[1]), options or Gibbs())
    return columns


def polish_chains(chains: Chains, parameters: CellValues, expected: CellValues, options: Gibbs) -> None:
    """The same in place, for counts expected of these very records."""
    stiffness = chains.layout.target_stiffness(options.polishing_stiffness / len(chains.parts()))
    for _ in range(options.polishing_sweeps):
        chains.sweep(parameters, QuadraticPenalty(expected, stiffness, options.max_force))


def tighten_chains(chains: Chains, parameters: CellValues, expected: CellValues, options: Gibbs) -> None:
    """Bind them closer, where tables are so precise that whole rows are what is left: ever firmer, as steel is cooled.

    Firm at once, rows are stuck: with 364 tables of three attributes of Adult, at a distance of .0084 instead of .006.
    """
    pull = QuadraticPenalty(expected, chains.layout.target_stiffness(options.tightening_stiffness), options.max_force)
    for number in range(options.max_tightening_sweeps):
        if chains.distance(expected) <= options.tightening_tolerance:
            break
        most = pull.max_total_stiffness * (options.tightening_stiffness / pull.max_total_stiffness) ** (
            number / options.max_tightening_sweeps
        )
        chains.sweep(parameters, replace(pull, max_total_stiffness=most))
