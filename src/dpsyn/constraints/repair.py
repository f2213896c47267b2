"""Rows whose cells were drawn, mended so that all rules hold, and values chosen inside the cells so that they do.

A model that knows the rules draws few rows that break one; a model that does not may draw many. Both are mended in the
same way, and none is dropped: first impossible values and totals by themselves; then one attribute at a time, taken
from a row that keeps the rules; then all attributes that the rules tie together, taken from one such row. If no row
keeps the rules, one that does is worked out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import QueryError
from dpsyn.schema import Schema
from dpsyn.schema.constraint_model import (
    CellMatrix,
    ConstraintModel,
    IntArray,
    OrderConstraint,
    RowConstraint,
    Scale,
    StructuralZero,
    SumConstraint,
    compile_constraints,
)
from dpsyn.schema.solver import SatisfyingRow, find_satisfying_row

AllowedCells = Mapping[str, NDArray[np.bool_]]
"""For some attributes, which of their cells are asked for."""

_MAX_TRIES = 12
"""Single attributes that are tried in a row before all are taken from another row."""


def repair_rows(
    schema: Schema, cells: CellMatrix, rng: np.random.Generator, allowed: AllowedCells | None = None
) -> tuple[CellMatrix, RowSteps]:
    """Cells of rows that keep all rules of a schema, and the steps of the values that orders and sums compare.

    Args:
        schema: its rules.
        cells: rows × measured attributes; rows that keep the rules stay as they are.
        rng: decides.
        allowed: conditions that the rows meet already, and will meet.
    """
    known = compile_constraints(schema)
    places = {name: place for place, name in enumerate(known.names)}
    within = {places[name]: mask for name, mask in (allowed or {}).items()}
    mended = cells.copy(order="F") if known.row_constraints else cells
    steps: RowSteps = {}
    for tied, rules in known.components():
        _repair_cells(mended, tied, rules, known, within, rng)
        found, good = sample_steps(mended, rules, rng)
        if not good.all():
            _copy_rows(mended, found, tied, good, partial(_find_row, rules, known, within), rng)
        steps |= found
    return mended, steps


def satisfiable_rows(schema: Schema, cells: CellMatrix) -> NDArray[np.bool_]:
    """Which rows have cells whose values can keep each rule of a schema."""
    return _holds(cells, compile_constraints(schema).row_constraints)


def require_satisfiable(schema: Schema, allowed: AllowedCells) -> None:
    """Refuse conditions that the rules make impossible."""
    known = compile_constraints(schema)
    places = {name: place for place, name in enumerate(known.names)}
    within = {places[name]: mask for name, mask in allowed.items()}
    for tied, rules in known.components():
        if find_satisfying_row(rules, known.sizes, within) is None:
            about = [known.names[place] for place in tied if place in within]
            numbers = ", ".join(str(rule.number) for rule in rules)
            raise QueryError(
                f"no row can meet the conditions on {', '.join(about)}: the schema rules it out "
                f"({'rule' if len(rules) == 1 else 'rules'} {numbers}); ask for something else"
            )


def _repair_cells(
    cells: CellMatrix,
    tied: Sequence[int],
    rules: Sequence[RowConstraint],
    known: ConstraintModel,
    within: Mapping[int, NDArray[np.bool_]],
    rng: np.random.Generator,
) -> None:
    """Change the cells of rows in which a rule cannot hold, in place."""
    for rule in rules:
        if isinstance(rule, SumConstraint):
            _repair_sum_cells(cells, rule, rules, within, rng)
        elif isinstance(rule, StructuralZero):
            _leave_structural_zero(cells, rule, rules, within, rng)
    good = _holds(cells, rules)
    bad, donors = np.flatnonzero(~good), np.flatnonzero(good)
    for _ in range(_MAX_TRIES if len(donors) else 0):
        if not len(bad):
            return
        trial = np.array(cells[bad])
        one = rng.choice(np.array(tied), len(bad))
        trial[np.arange(len(bad)), one] = cells[rng.choice(donors, len(bad)), one]
        mended = _holds(trial, rules)
        for place in tied:
            cells[bad[mended], place] = trial[mended, place]
        bad = bad[~mended]
    if len(bad):
        keeping = np.ones(len(cells), np.bool_)
        keeping[bad] = False
        _copy_rows(cells, {}, tied, keeping, partial(_find_row, rules, known, within), rng)


def _leave_structural_zero(
    cells: CellMatrix,
    rule: StructuralZero,
    rules: Sequence[RowConstraint],
    within: Mapping[int, NDArray[np.bool_]],
    rng: np.random.Generator,
) -> None:
    """Give rows in an impossible combination another value of that attribute in it which fewest rules speak of.

    So what many rules hang on, such as whether a person was asked at all, stays as it was drawn. The new value is one
    that other rows have.
    """
    bad = np.flatnonzero(~rule.holds(cells))
    if not len(bad):
        return
    place, mask = min(rule.selection, key=lambda entry: sum(entry[0] in other.indices for other in rules))
    allowed = ~mask & within.get(place, np.ones(len(mask), np.bool_))
    donors = np.flatnonzero(allowed[cells[:, place]])
    if len(donors):
        cells[bad, place] = cells[rng.choice(donors, len(bad)), place]
    elif allowed.any():
        cells[bad, place] = rng.choice(np.flatnonzero(allowed), len(bad))


def _repair_sum_cells(
    cells: CellMatrix,
    rule: SumConstraint,
    rules: Sequence[RowConstraint],
    within: Mapping[int, NDArray[np.bool_]],
    rng: np.random.Generator,
) -> None:
    """Give totals that cannot be the sum of their parts the cell of a sum of them, where all rules allow that."""
    total, *parts = rule.scales
    bad = np.flatnonzero(~rule.holds(cells))
    if total.derived or not len(bad):
        return
    trial = np.array(cells[bad])
    drawn = [rng.integers(part.low[own], part.high[own] + 1) for part in parts for own in [trial[:, part.index]]]
    proper = np.flatnonzero(~total.missing)
    places = np.searchsorted(total.low[proper], np.sum(drawn, axis=0), side="right") - 1
    trial[:, total.index] = proper[np.clip(places, 0, len(proper) - 1)]
    allowed = within.get(total.index, np.ones(len(total.missing), np.bool_))
    mended = _holds(trial, rules) & allowed[trial[:, total.index]]
    cells[bad[mended], total.index] = trial[mended, total.index]


def _holds(cells: CellMatrix, rules: Sequence[RowConstraint]) -> NDArray[np.bool_]:
    good = np.ones(len(cells), np.bool_)
    for rule in rules:
        good &= rule.holds(cells)
    return good


def _copy_rows(
    cells: CellMatrix,
    steps: RowSteps,
    tied: Sequence[int],
    good: NDArray[np.bool_],
    otherwise: Callable[[], SatisfyingRow],
    rng: np.random.Generator,
) -> None:
    """Give the other rows the tied attributes of good ones, cells and steps, in place; of one worked out if none is."""
    bad, donors = np.flatnonzero(~good), np.flatnonzero(good)
    if len(donors):
        chosen = rng.choice(donors, len(bad))
        for place in tied:
            cells[bad, place] = cells[chosen, place]
        for place in steps:
            steps[place][bad] = steps[place][chosen]
        return
    found = otherwise()
    for place in tied:
        cells[bad, place] = found.cells[place]
    for place in steps:
        steps[place][bad] = found.steps.get(place, 0)


def _find_row(
    rules: Sequence[RowConstraint], known: ConstraintModel, within: Mapping[int, NDArray[np.bool_]]
) -> SatisfyingRow:
    found = find_satisfying_row(rules, known.sizes, within)
    if isinstance(found, SatisfyingRow):
        return found
    numbers = ", ".join(str(rule.number) for rule in rules)
    raise QueryError(f"no row was found that keeps the rules {numbers} under these conditions; ask for something else")


# ── Values inside cells, drawn together where rules compare or add them ──


RowSteps = dict[int, IntArray]
"""The step of every row for some attributes, by their places; whatever where there is no value."""

_RESAMPLING_ROUNDS = 24
"""Values that do not ascend are drawn anew so often: of two in one cell, one in ten million is left."""


def sample_steps(
    cells: CellMatrix, rules: Sequence[RowConstraint], rng: np.random.Generator
) -> tuple[RowSteps, NDArray[np.bool_]]:
    """A step in its cell for every attribute that the rules compare or add, and in which rows they keep the rules.

    Sums are put together first. Then what does not ascend is drawn anew, which leaves values that ascend as likely as
    they were; what is left after some rounds is drawn one value after the other.
    """
    comparing = [rule for rule in rules if isinstance(rule, OrderConstraint | SumConstraint)]
    scales = {scale.index: scale for rule in comparing for scale in rule.scales if not scale.derived}
    steps = {place: _sample_uniformly(scale, cells, rng) for place, scale in scales.items()}
    for rule in comparing:
        if isinstance(rule, SumConstraint):
            _sample_sum(rule, cells, steps, rng)
    good = _values_hold(comparing, cells, steps)
    ordered = [rule for rule in comparing if isinstance(rule, OrderConstraint)]
    for number in range(_RESAMPLING_ROUNDS + 1 if ordered else 0):
        bad = np.flatnonzero(~good)
        if not len(bad):
            break
        again = {place: _sample_uniformly(scale, cells[bad], rng) for place, scale in scales.items()}
        for rule in comparing:
            if isinstance(rule, SumConstraint):
                _sample_sum(rule, cells[bad], again, rng)
        if number == _RESAMPLING_ROUNDS:
            for rule in ordered:
                _sample_in_order(rule, cells[bad], again, rng)
        mended = _values_hold(comparing, cells[bad], again)
        for place in steps:
            steps[place][bad[mended]] = again[place][mended]
        good[bad[mended]] = True
    return steps, good


def _sample_uniformly(scale: Scale, cells: CellMatrix, rng: np.random.Generator) -> IntArray:
    own = cells[:, scale.index]
    return rng.integers(scale.first[own], scale.last[own] + 1)


def _values_hold(
    rules: Sequence[OrderConstraint | SumConstraint], cells: CellMatrix, steps: RowSteps
) -> NDArray[np.bool_]:
    good = np.ones(len(cells), np.bool_)
    for rule in rules:
        own = [cells[:, scale.index] for scale in rule.scales]
        values = [_common_values(scale, cell, steps) for scale, cell in zip(rule.scales, own, strict=True)]
        good &= rule.holds_for_values(
            values, [scale.missing[cell] for scale, cell in zip(rule.scales, own, strict=True)]
        )
    return good


def _common_values(scale: Scale, cell: NDArray[np.integer], steps: RowSteps) -> IntArray:
    return scale.to_common_scale(scale.first[cell] if scale.derived else steps[scale.index])


# ── sums ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _sample_sum(rule: SumConstraint, cells: CellMatrix, steps: RowSteps, rng: np.random.Generator) -> None:
    """Draw the total among those that its cell and the parts' cells allow, and move the parts until they add up to it.

    Steps are of the same size in all of them.
    """
    total, *parts = rule.scales
    own = [cells[:, scale.index] for scale in rule.scales]
    ends = [(scale.low[cell], scale.high[cell]) for scale, cell in zip(rule.scales, own, strict=True)]
    low = np.maximum(ends[0][0], sum(least for least, _ in ends[1:]))
    high = np.minimum(ends[0][1], sum(most for _, most in ends[1:]))
    there = ~np.any([scale.missing[cell] for scale, cell in zip(rule.scales, own, strict=True)], axis=0) & (low <= high)
    values = [_common_values(scale, cell, steps) for scale, cell in zip(parts, own[1:], strict=True)]
    found = np.sum(values, axis=0)
    wanted = np.where((found >= low) & (found <= high), found, rng.integers(low, np.maximum(low, high) + 1))
    if total.derived:
        wanted = ends[0][0]
    lacking = np.where(there, wanted - found, 0)
    for place in rng.permutation(len(parts)):
        scale, (least, most) = parts[place], ends[1 + place]
        if scale.derived:
            continue
        move = np.clip(lacking, np.minimum(least - values[place], 0), np.maximum(most - values[place], 0))
        values[place] = values[place] + move
        lacking = lacking - move
        steps[scale.index] = np.where(there, scale.first_step_at_least(values[place]), steps[scale.index])
    if not total.derived:
        steps[total.index] = np.where(there, total.first_step_at_least(wanted), steps[total.index])


# ── orders ───────────────────────────────────────────────────────────────────────────────────────────────────


def _sample_in_order(rule: OrderConstraint, cells: CellMatrix, steps: RowSteps, rng: np.random.Generator) -> None:
    """Draw values from left to right, each above those before it and with room for those behind it."""
    own = [cells[:, scale.index] for scale in rule.scales]
    room = [np.full(len(cells), 2**62, np.int64)]
    for scale, cell in zip(reversed(rule.scales), reversed(own), strict=True):
        highest = np.minimum(scale.high[cell], room[-1])
        room.append(np.where(scale.missing[cell], room[-1], highest - rule.strict))
    reach = np.full(len(cells), -(2**62), np.int64)
    for place, (scale, cell) in enumerate(zip(rule.scales, own, strict=True)):
        first = np.maximum(scale.first[cell], scale.first_step_at_least(reach))
        last = np.minimum(scale.last[cell], scale.first_step_at_least(room[len(own) - place - 1] + 1) - 1)
        if not scale.derived:
            drawn = rng.integers(first, np.maximum(first, last) + 1)
            steps[scale.index] = np.where(scale.missing[cell] | (last < first), steps[scale.index], drawn)
        reach = np.where(scale.missing[cell], reach, _common_values(scale, cell, steps) + rule.strict)
