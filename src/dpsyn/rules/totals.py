"""Public numbers of rows: tables that agree with them, and rows as many as they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from dpsyn.marginals import Estimate
from dpsyn.rules.valuing import Steps
from dpsyn.schema import Schema
from dpsyn.schema.constraints import Cells, Counted, Selection, constraints_of
from dpsyn.transforms import Recoding

Mask = NDArray[np.bool_]
Draw = Callable[[int, Mapping[str, Mask]], tuple[Cells, Steps]]
"""So many rows that meet conditions."""

_ROUNDS = 10
_MOST_MOVES = 20_000


def raked(tables: Sequence[Estimate], schema: Schema, recoding: Recoding, rows: float) -> list[Estimate]:
    """Tables scaled so that they tell the public numbers of rows, where those are of whole codes."""
    totals = [total for total in constraints_of(schema).by_table if total.selection]
    return [
        _raked(table, [(t, i) for t in totals if (i := _inside(table, t.selection, recoding)) is not None], rows)
        for table in tables
    ]


def _raked(table: Estimate, totals: Sequence[tuple[Counted, Mask]], rows: float) -> Estimate:
    values = np.array(table.values)
    for _ in range(_ROUNDS if totals else 0):
        for total, inside in totals:
            for part, wanted in ((inside, float(total.count)), (~inside, max(rows - total.count, 0.0))):
                found = values[part].sum()
                values[part] *= wanted / found if found > 0 else 1.0
    return Estimate(table.clique, values, table.variance)


def _inside(table: Estimate, selection: Selection, recoding: Recoding) -> Mask | None:
    """Which cells of a table a condition selects; None if it does not tell, or only parts of cells are meant."""
    axes = [np.ones(size, np.bool_) for size in table.values.shape]
    for source, mask in selection:
        place = next(place for place, column in enumerate(recoding.columns) if source in column.sources)
        column = recoding.columns[place]
        if column.name not in table.clique or len(column.sources) > 1:
            return None
        codes = [np.bincount(column.tables[0], part, column.size) > 0 for part in (mask, ~mask)]
        if (codes[0] & codes[1]).any():
            return None
        axes[table.clique.index(column.name)] &= codes[0]
    inside: Mask = reduce(np.logical_and.outer, axes)
    return inside


def moved_to_totals(
    schema: Schema, cells: Cells, steps: Steps, scale: float, draw: Draw, rng: np.random.Generator
) -> tuple[Cells, Steps]:
    """Rows of which as many meet each public condition as it says, times ``scale``.

    Rows that are too many in one place become rows like those where there are too few.

    Args:
        schema: its totals.
        cells: rows × measured attributes.
        steps: of some attributes, by their places.
        scale: rows of the table in parts of those that the totals speak of.
        draw: makes rows for a place that has none.
        rng: decides.
    """
    known = constraints_of(schema)
    totals = [total for total in known.by_table if total.selection]
    if not totals or not len(cells):
        return cells, steps
    strata = _Strata(totals, known.sizes)
    wanted = np.array([round(total.count * scale) for total in totals])
    own = strata.of_rows(cells)
    moves = _moves(np.bincount(own, minlength=len(strata.members)), strata.members, wanted)
    cells = cells.copy(order="F")
    steps = {place: own_steps.copy() for place, own_steps in steps.items()}
    before = own.copy()
    for (source, target), number in moves.items():
        leaving = rng.choice(np.flatnonzero(own == source), number, replace=False)
        like = np.flatnonzero(before == target)
        new_cells, new_steps = (cells, steps) if len(like) else draw(number, strata.conditions(target, known.names))
        chosen = rng.choice(like, number) if len(like) else np.arange(number)
        cells[leaving] = new_cells[chosen]
        for place in steps:
            steps[place][leaving] = new_steps[place][chosen]
        own[leaving] = target
        before[leaving] = -1
    return cells, steps


class _Strata:
    """Rows told apart by which conditions they meet: each stratum is a set of cells of every attribute concerned."""

    def __init__(self, totals: Sequence[Counted], sizes: Sequence[int]) -> None:
        self._places = sorted({place for total in totals for place, _ in total.selection})
        self._class_of, memberships = [], []
        for place in self._places:
            everywhere = np.ones(sizes[place], np.bool_)
            masks = np.stack([dict(total.selection).get(place, everywhere) for total in totals])
            kinds, class_of = np.unique(masks, axis=1, return_inverse=True)
            self._class_of.append(class_of.reshape(-1))
            memberships.append(kinds.T)
        self._shape = [len(kinds) for kinds in memberships]
        members = np.ones((1, len(totals)), np.bool_)
        for kinds in memberships:
            members = (members[:, None, :] & kinds[None, :, :]).reshape(-1, len(totals))
        self.members: Mask = members
        """Strata × totals: which strata each total counts."""

    def of_rows(self, cells: Cells) -> NDArray[np.int64]:
        """The stratum of each row."""
        classes = [own[cells[:, place]] for place, own in zip(self._places, self._class_of, strict=True)]
        return np.ravel_multi_index(classes, self._shape)

    def conditions(self, stratum: int, names: Sequence[str]) -> dict[str, Mask]:
        """The cells of a stratum, by attribute."""
        classes = np.unravel_index(stratum, self._shape)
        zipped = zip(self._places, self._class_of, classes, strict=True)
        return {names[place]: own == kind for place, own, kind in zipped}


def _moves(counts: NDArray[np.int64], members: Mask, wanted: NDArray[np.int64]) -> dict[tuple[int, int], int]:
    """How many rows go from which stratum to which, so that all totals are met, as nearly as that can be."""
    counts = counts.copy()
    moves: dict[tuple[int, int], int] = {}
    weights = counts.astype(np.float64) + 0.5
    for _ in range(_MOST_MOVES):
        gaps = wanted - members.T @ counts
        if not gaps.any():
            break
        worth = members @ np.sign(gaps)
        target = _heaviest(worth == worth.max(), weights)
        there = counts > 0
        source = _heaviest(there & (worth == worth[there].min()), counts)
        if worth[target] <= worth[source]:
            break
        changed = members[source] != members[target]
        number = int(min(counts[source], np.abs(gaps[changed & (gaps != 0)]).min()))
        number = max(1, number if number < 10 else number // 2)  # other strata have their part in it
        counts[source] -= number
        counts[target] += number
        weights[target] /= 2
        moves[source, target] = moves.get((source, target), 0) + number
    return _direct(moves)


def _heaviest(among: Mask, weights: NDArray[np.float64] | NDArray[np.int64]) -> int:
    return int(np.argmax(np.where(among, weights, -1.0)))


def _direct(moves: dict[tuple[int, int], int]) -> dict[tuple[int, int], int]:
    """Moves without detours: no stratum gives rows and gets some."""
    net: dict[int, int] = {}
    for (source, target), number in moves.items():
        net[source] = net.get(source, 0) - number
        net[target] = net.get(target, 0) + number
    giving = [[s, -n] for s, n in sorted(net.items()) if n < 0]
    getting = [[s, n] for s, n in sorted(net.items()) if n > 0]
    direct: dict[tuple[int, int], int] = {}
    while giving:
        number = min(giving[-1][1], getting[-1][1])
        direct[giving[-1][0], getting[-1][0]] = number
        giving[-1][1] -= number
        getting[-1][1] -= number
        giving, getting = [g for g in giving if g[1]], [g for g in getting if g[1]]
    return direct
