"""Min-cost flow (MCF): records are changed until they match tables of counts, each table exactly in its turn.

PrivSyn's strawman, which it compares GUM with (DPSyn paper, appendix A, "Strawman Method: Min-Cost Flow"): to match one
table exactly may spoil the others. With the exact counts of 45 pairs of Adult, MCF comes nevertheless closer than GUM,
in pairs (mean total variation distance .0041 against .0073) and in triples (.034 against .060), because it changes as
few attribute values as possible and copies no records. It takes 5 to 20 times as long
(``bench/gum.py``, docs/how-to/rows.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from dpsyn.constraints.linear_program import solve_linear_program
from dpsyn.errors import InternalError, UserError
from dpsyn.inference.gum.gradual_update import Records, round_counts
from dpsyn.inference.methods import MCF
from dpsyn.marginals import Estimate
from dpsyn.progress import Progress, ignore_progress

Integers = NDArray[np.int64]

MAX_FLOW_EDGES = 100_000
"""The maximum number of edges of a table's flow network: cells × (2^attributes − 1), see `find_cheapest_moves`.

The first match of a table takes longest: a table of 70 × 70 cells (15 000 edges) took 7 seconds, one of 100 × 100
(30 000) or 20 × 20 × 20 (56 000) cells 80 seconds, and time grows faster than the number of edges."""


def run_mcf(
    tables: Sequence[Estimate],
    names: Sequence[str],
    sizes: Sequence[int],
    rows: int,
    *,
    rng: np.random.Generator,
    options: MCF | None = None,
    progress: Progress = ignore_progress,
) -> Records:
    """Fit uniform random records to tables: they match the last table up to rounding, the others approximately.

    Args:
        tables: non-negative counts that should be consistent.
        names: the attributes.
        sizes: the number of values of each attribute.
        rows: the number of records.
        rng: the source of all random choices.
        options: when to stop.
        progress: receives the phase and the fraction done.
    """
    options = options or MCF()
    records = sample_uniform_records(sizes, rows, rng)
    passes = iterate_mcf_passes(records, names, tables, rng) if tables else iter(())
    for number, (updated, changed) in enumerate(islice(passes, options.passes)):
        progress("fitting records", (number + 1) / options.passes)
        records = updated
        if changed < options.min_changed_share * rows * len(tables):
            break
    progress("fitting records", 1.0)
    return records


def require_solvable_flows(tables: Sequence[Estimate]) -> None:
    """Refuse tables whose flow network is too large to be solved in minutes."""
    for table in tables:
        edges = table.values.size * (2 ** len(table.clique) - 1)
        if edges > MAX_FLOW_EDGES:
            raise UserError(
                f"MCF cannot match the table of {', '.join(table.clique)}: with {table.values.size:,} cells of "
                f"{len(table.clique)} attributes its flow network has {edges:,} edges, and more than "
                f"{MAX_FLOW_EDGES:,} take too long; use GUM() or Gibbs()"
            )


def iterate_mcf_passes(
    records: Records, names: Sequence[str], tables: Sequence[Estimate], rng: np.random.Generator
) -> Iterator[tuple[Records, int]]:
    """Yield the records after each pass over the tables, and the number of changes that it made, without end.

    It is the same array each time. The rows are shuffled after each pass, so that it is not always the same ones that
    are changed.
    """
    columns = np.array(records.T, np.int32, order="C")
    axes_of = [[list(names).index(name) for name in table.clique] for table in tables]
    targets = [round_counts(table.values, len(records), rng) for table in tables]
    while True:
        changed = sum(_match_table(columns, axes, target, rng) for axes, target in zip(axes_of, targets, strict=True))
        columns[:] = columns[:, rng.permutation(len(records))]
        yield columns.T, changed


def sample_uniform_records(sizes: Sequence[int], rows: int, rng: np.random.Generator) -> Records:
    """Records whose codes are independent and uniform."""
    columns = [rng.integers(size, size=rows, dtype=np.int32) for size in sizes]
    return np.array(columns, np.int32).reshape(len(sizes), rows).T


def _match_table(columns: NDArray[np.int32], axes: list[int], target: Integers, rng: np.random.Generator) -> int:
    """Change records until a table has exactly the counts of its target; returns the number of changed records."""
    cells = np.ravel_multi_index(tuple(columns[axes]), target.shape)
    counts = np.bincount(cells, minlength=target.size).reshape(target.shape)
    origins, ends = find_cheapest_moves(counts, target, rng)
    by_cell = np.argsort(cells, kind="stable")
    first = np.cumsum(counts.ravel()) - counts.ravel()
    surplus = np.bincount(origins, minlength=target.size)
    nth = np.arange(len(origins)) - np.repeat(np.cumsum(surplus) - surplus, surplus)
    moved = by_cell[first[origins] + nth]
    for axis, codes in zip(axes, np.unravel_index(ends, target.shape), strict=True):
        columns[axis, moved] = codes
    return len(origins)


def find_cheapest_moves(counts: Integers, target: Integers, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """The origin and the destination cell of each record to move, ascending by origin, so that fewest values change.

    A minimum-cost flow. Instead of an edge for each pair of cells, the network has a hub for each choice of attributes
    that stay and of their values: records flow from over-filled cells to the hubs that they agree with, and on to
    under-filled cells. The cost is the number of attributes that do not stay. So the number of edges is proportional
    to the number of cells.
    """
    excess = (counts - target).ravel()
    over, under = np.flatnonzero(excess > 0), np.flatnonzero(excess < 0)
    if not len(over):
        return over, under
    into, out = _hub_edges(over, counts.shape), _hub_edges(under, counts.shape)
    flow = _min_cost_flow(into, out, excess)
    origins, ends = (
        np.repeat(edges[:2], amount, axis=1)[:, rng.permutation(amount.sum())]
        for edges, amount in ((into, flow[: into.shape[1]]), (out, flow[into.shape[1] :]))
    )
    origins, ends = (side[0, np.argsort(side[1], kind="stable")] for side in (origins, ends))  # they meet at the hubs
    order = np.argsort(origins, kind="stable")
    return origins[order], ends[order]


def _hub_edges(cells: Integers, shape: tuple[int, ...]) -> Integers:
    """The edges between cells and hubs, as columns: the cell, the hub, and the number of attributes that change."""
    codes, edges, first = np.unravel_index(cells, shape), [], 0
    for stay in (axes for count in range(len(shape)) for axes in combinations(range(len(shape)), count)):
        hubs = np.zeros(len(cells), np.int64)
        for axis in stay:
            hubs = hubs * shape[axis] + codes[axis]
        edges.append((cells, first + hubs, np.full(len(cells), len(shape) - len(stay))))
        first += math.prod(shape[axis] for axis in stay)
    return np.concatenate(edges, axis=1)


def _min_cost_flow(into: Integers, out: Integers, excess: Integers) -> Integers:
    """The number of records on each edge into a hub and out of one, at the least cost."""
    cells, hubs, cost = np.concatenate([into, out], axis=1)
    used_hubs, hubs = np.unique(hubs, return_inverse=True)
    edges, signs = np.arange(len(cells)), np.repeat([1, -1], [into.shape[1], out.shape[1]])
    nodes, columns = np.concatenate([cells, len(excess) + hubs]), np.concatenate([edges, edges])
    demand = np.concatenate([excess, np.zeros(len(used_hubs))])
    solution = solve_linear_program(cost * (signs > 0), np.concatenate([signs, signs]), nodes, columns, demand)
    # the vertices of this polytope are integral
    if np.abs(solution - np.rint(solution)).max() > 1e-6:
        raise InternalError("the min-cost flow is not a flow of whole records")
    flow: Integers = np.rint(solution).astype(np.int64)
    return flow
