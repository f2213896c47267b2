"""A small constraint solver: finds a row that satisfies all rules, by search with propagation.

Cells are searched first, then values inside the cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpsyn.schema.constraint_model import Domains, Mask, OrderConstraint, RowConstraint, Scale, SumConstraint

MAX_SEARCH_NODES = 3_000
"""Search nodes after which the solver gives up; rules that people write need a few dozen."""

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SatisfyingRow:
    """Part of a row that satisfies some rules.

    Attributes:
        cells: the cell of each attribute, by its index.
        steps: the step of each number or date whose value matters, by its index.
    """

    cells: Mapping[int, int]
    steps: Mapping[int, int]


def find_satisfying_row(
    constraints: Sequence[RowConstraint], sizes: Sequence[int], allowed: Mapping[int, Mask] | None = None
) -> SatisfyingRow | Literal["unknown"] | None:
    """Find cells and values that satisfy all these constraints, each in an allowed cell; None if there are none.

    Returns ``unknown`` if the search was given up, which happens only for very intricate rules.
    """
    indices = sorted({index for constraint in constraints for index in constraint.indices})
    domains = {
        index: np.flatnonzero(allowed[index]) if allowed and index in allowed else np.arange(sizes[index])
        for index in indices
    }
    orders = [constraint for constraint in constraints if isinstance(constraint, OrderConstraint)]
    stack, visited = [domains], 0
    while stack:
        visited += 1
        if visited > MAX_SEARCH_NODES:
            return "unknown"
        node = stack.pop()
        if not _propagate(constraints, node) or _orders_contradict(orders, node):
            continue
        if len(orders) > 1 and (branches := _decide_missing(orders, node)):
            stack += branches
            continue
        undecided = [index for index in indices if len(node[index]) > 1]
        if not undecided:
            row = _find_steps(constraints, {index: int(cells[0]) for index, cells in node.items()})
            if row is not None:
                return row
            continue
        index = min(undecided, key=lambda index: len(node[index]))
        half = len(node[index]) // 2
        stack += [{**node, index: node[index][half:]}, {**node, index: node[index][:half]}]
    return None


def _propagate(constraints: Sequence[RowConstraint], domains: Domains) -> bool:
    """Remove impossible cells until nothing changes; returns whether every domain has a cell left."""
    if not all(len(cells) for cells in domains.values()):
        return False
    while True:
        previous = sum(len(cells) for cells in domains.values())
        for constraint in constraints:
            if not constraint.narrow(domains) or not all(len(domains[index]) for index in constraint.indices):
                return False
        if sum(len(cells) for cells in domains.values()) == previous:
            return True


def _decide_missing(orders: Sequence[OrderConstraint], domains: Domains) -> list[Domains]:
    """Split the domain of an attribute that may be missing or not, the cells with values last; [] if there is none."""
    for scale in (scale for order in orders for scale in order.scales):
        cells = domains[scale.index]
        missing = scale.missing[cells]
        if missing.any() and not missing.all():
            return [{**domains, scale.index: cells[missing]}, {**domains, scale.index: cells[~missing]}]
    return []


def _orders_contradict(orders: Sequence[OrderConstraint], domains: Domains) -> bool:
    """Whether some attributes that have a value would have to ascend in a circle, one of them strictly."""
    if len(orders) < 2:
        return False
    chains = [
        ([scale.name for scale in order.scales if not scale.missing[domains[scale.index]].any()], order.strict)
        for order in orders
    ]
    names = sorted({name for chain, _ in chains for name in chain})
    above = np.eye(len(names), dtype=np.bool_)  # row and column: whether the second is not below the first
    strictly = np.zeros_like(above)
    for chain, strict in chains:
        positions = [names.index(name) for name in chain]
        above[positions[:-1], positions[1:]] = True
        strictly[positions[:-1], positions[1:]] |= strict
    for middle in range(len(names)):
        above |= np.outer(above[:, middle], above[middle])
    return bool((strictly & above.T).any())


# ── values inside cells ──────────────────────────────────────────────────────────────────────────────────────


def _find_steps(constraints: Sequence[RowConstraint], cells: dict[int, int]) -> SatisfyingRow | None:
    """Find values inside these cells that satisfy orders and sums; None if there are none."""
    value_constraints = [c for c in constraints if isinstance(c, OrderConstraint | SumConstraint)]
    row = np.zeros((1, max(cells, default=0) + 1), np.int64)
    for index, cell in cells.items():
        row[0, index] = cell
    if not all(constraint.holds(row)[0] for constraint in constraints):
        return None
    scales = {
        s.index: s for c in value_constraints for s in c.scales if not s.derived and not s.missing[cells[s.index]]
    }
    start = {index: (int(s.first[cells[index]]), int(s.last[cells[index]])) for index, s in scales.items()}
    stack, visited = [start], 0
    while stack and visited < MAX_SEARCH_NODES:
        visited += 1
        node = stack.pop()
        if not all(_can_hold_within(c, cells, node) for c in value_constraints):
            continue
        undecided = [index for index, (low, high) in node.items() if high > low]
        if not undecided:
            return SatisfyingRow(cells, {index: low for index, (low, _) in node.items()})
        index = max(undecided, key=lambda index: node[index][1] - node[index][0])
        low, high = node[index]
        middle = (low + high) // 2
        stack += [{**node, index: (middle + 1, high)}, {**node, index: (low, middle)}]
    return None


def _can_hold_within(
    constraint: OrderConstraint | SumConstraint, cells: dict[int, int], within: dict[int, Interval]
) -> bool:
    """Whether values between these bounds may satisfy a constraint; exact if each interval is a single value."""
    scales = [scale for scale in constraint.scales if not scale.missing[cells[scale.index]]]
    ends = [_ends(scale, cells, within) for scale in scales]
    if isinstance(constraint, SumConstraint):
        if len(scales) < len(constraint.scales):
            return True
        return sum(low for low, _ in ends[1:]) <= ends[0][1] and sum(high for _, high in ends[1:]) >= ends[0][0]
    lowest = -(2**62)
    for low, high in ends:
        if max(low, lowest) > high:
            return False
        lowest = max(low, lowest) + constraint.strict
    return True


def _ends(scale: Scale, cells: dict[int, int], within: dict[int, Interval]) -> Interval:
    cell = cells[scale.index]
    first, last = (scale.first[cell], scale.last[cell]) if scale.derived else within[scale.index]
    low, high = scale.to_common_scale(np.array([first, last], np.int64)).tolist()
    return low, high
