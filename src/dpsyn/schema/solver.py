"""Whether there is a row that keeps all rules, and such a row: search with propagation, cells first, then values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpsyn.schema.constraint_model import Domains, IntArray, Mask, OrderConstraint, RowConstraint, Scale, SumConstraint

MAX_SEARCH_NODES = 3_000
"""Branches that are looked into; rules that people write need a few dozen."""

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SatisfyingRow:
    """Part of a row that keeps some rules.

    Attributes:
        cells: the cell of each attribute, by its place.
        steps: the step of each number or date whose value matters, by its place.
    """

    cells: Mapping[int, int]
    steps: Mapping[int, int]


def find_satisfying_row(
    constraints: Sequence[RowConstraint], sizes: Sequence[int], allowed: Mapping[int, Mask] | None = None
) -> SatisfyingRow | Literal["unknown"] | None:
    """A row's attributes that keep all these rules, each in an allowed cell; None if there is none.

    ``unknown`` if the search was given up, which takes rules that nobody would write.
    """
    places = sorted({place for constraint in constraints for place in constraint.indices})
    domains = {
        place: np.flatnonzero(allowed[place]) if allowed and place in allowed else np.arange(sizes[place])
        for place in places
    }
    waiting, looked = [domains], 0
    while waiting:
        looked += 1
        if looked > MAX_SEARCH_NODES:
            return "unknown"
        here = waiting.pop()
        if not _propagate(constraints, here):
            continue
        open_places = [place for place in places if len(here[place]) > 1]
        if not open_places:
            found = _find_steps(constraints, {place: int(cells[0]) for place, cells in here.items()})
            if found is not None:
                return found
            continue
        place = min(open_places, key=lambda place: len(here[place]))
        half = len(here[place]) // 2
        waiting += [{**here, place: here[place][half:]}, {**here, place: here[place][:half]}]
    return None


def _propagate(constraints: Sequence[RowConstraint], domains: Domains) -> bool:
    """Take out what cannot be until nothing more can be taken out; whether anything is left."""
    if not all(len(cells) for cells in domains.values()):
        return False
    while True:
        before = sum(len(cells) for cells in domains.values())
        if not all(constraint.narrow(domains) and _has_candidates(constraint, domains) for constraint in constraints):
            return False
        if sum(len(cells) for cells in domains.values()) == before:
            return True


def _has_candidates(constraint: RowConstraint, domains: Domains) -> bool:
    return all(len(domains[place]) for place in constraint.indices)


# ── values inside cells ──────────────────────────────────────────────────────────────────────────────────────


def _find_steps(constraints: Sequence[RowConstraint], cells: dict[int, int]) -> SatisfyingRow | None:
    """Values inside these cells that keep orders and sums; None if there are none."""
    comparing = [c for c in constraints if isinstance(c, OrderConstraint | SumConstraint)]
    row = np.zeros((1, max(cells, default=0) + 1), np.int64)
    for place, cell in cells.items():
        row[0, place] = cell
    if not all(constraint.holds(row)[0] for constraint in constraints):
        return None
    own = {s.index: s for c in comparing for s in c.scales if not s.derived and not s.missing[cells[s.index]]}
    start = {p: (int(s.first[cells[p]]), int(s.last[cells[p]])) for p, s in own.items()}
    waiting, looked = [start], 0
    while waiting and looked < MAX_SEARCH_NODES:
        looked += 1
        here = waiting.pop()
        if not all(_can_hold_within(c, cells, here) for c in comparing):
            continue
        wide = [place for place, (low, high) in here.items() if high > low]
        if not wide:
            return SatisfyingRow(cells, {place: low for place, (low, _) in here.items()})
        place = max(wide, key=lambda place: here[place][1] - here[place][0])
        low, high = here[place]
        middle = (low + high) // 2
        waiting += [{**here, place: (middle + 1, high)}, {**here, place: (low, middle)}]
    return None


def _can_hold_within(
    constraint: OrderConstraint | SumConstraint, cells: dict[int, int], within: dict[int, Interval]
) -> bool:
    """Whether values between these bounds may keep a rule: exact where all bounds meet."""
    scales = [scale for scale in constraint.scales if not scale.missing[cells[scale.index]]]
    ends = [_ends(scale, cells, within) for scale in scales]
    if isinstance(constraint, SumConstraint):
        if len(scales) < len(constraint.scales):
            return True
        return sum(low for low, _ in ends[1:]) <= ends[0][1] and sum(high for _, high in ends[1:]) >= ends[0][0]
    reach = -(2**62)
    for low, high in ends:
        if max(low, reach) > high:
            return False
        reach = max(low, reach) + constraint.strict
    return True


def _ends(scale: Scale, cells: dict[int, int], within: dict[int, Interval]) -> Interval:
    cell = cells[scale.index]
    first, last = (scale.first[cell], scale.last[cell]) if scale.derived else within[scale.index]
    low, high = scale.to_common_scale(_pair(first, last)).tolist()
    return low, high


def _pair(first: int, last: int) -> IntArray:
    return np.array([first, last], np.int64)
