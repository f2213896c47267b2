"""Repair of sampled rows that violate a rule: new cells first, then values inside the cells.

A model that includes the rules samples few rows that violate one; a model that does not may sample many. Both are
repaired in the same way, and no row is dropped. First, structural zeros and totals of sums are repaired one by one.
Then single attributes are copied from a row that satisfies the rules. Then all attributes that share rules are copied
from such a row. If no row satisfies the rules, the solver finds one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import QueryError
from dpsyn.schema import Schema
from dpsyn.schema.constraint_model import (
    PARTS_OF_TIMESTAMPS,
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
"""For some attributes, which of their cells are allowed."""

_MAX_TRIES = 12
"""Attempts to repair a row by a single attribute, before all attributes are copied from another row."""


def repair_rows(
    schema: Schema, cells: CellMatrix, rng: np.random.Generator, allowed: AllowedCells | None = None
) -> tuple[CellMatrix, RowSteps]:
    """Repair rows that violate a rule; returns their cells, and the steps of values that orders and sums compare.

    Args:
        schema: its rules.
        cells: rows × measured attributes; rows that satisfy the rules are not changed.
        rng: the source of randomness.
        allowed: conditions that the rows already meet, and still meet after the repair.
    """
    model = compile_constraints(schema)
    within = {model.names.index(name): mask for name, mask in (allowed or {}).items()}
    repaired = cells.copy(order="F") if model.row_constraints else cells
    steps: RowSteps = {}
    for tied, rules in model.components():
        _repair_cells(repaired, tied, rules, model, within, rng)
        new_steps, satisfied = sample_steps(repaired, rules, rng)
        if not satisfied.all():
            _copy_rows(repaired, new_steps, tied, satisfied, partial(_find_row, rules, model, within), rng)
        steps |= new_steps
    return repaired, steps


def satisfiable_rows(schema: Schema, cells: CellMatrix) -> NDArray[np.bool_]:
    """Which rows have cells in which values can satisfy every rule of a schema."""
    return _holds(cells, compile_constraints(schema).row_constraints)


def require_satisfiable(schema: Schema, allowed: AllowedCells) -> None:
    """Refuse conditions that contradict the rules."""
    model = compile_constraints(schema)
    within = {model.names.index(name): mask for name, mask in allowed.items()}
    for tied, rules in model.components():
        if find_satisfying_row(rules, model.sizes, within) is None:
            names = ", ".join(model.names[index] for index in tied if index in within)
            numbers = [str(rule.number) for rule in rules if rule.number != PARTS_OF_TIMESTAMPS]
            which = (
                f"({'rule' if len(numbers) == 1 else 'rules'} {', '.join(numbers)})" if numbers else "(the calendar)"
            )
            raise QueryError(
                f"no row can meet the conditions on {names}: the schema excludes it {which}; give other conditions"
            )


def _repair_cells(
    cells: CellMatrix,
    tied: Sequence[int],
    rules: Sequence[RowConstraint],
    model: ConstraintModel,
    within: Mapping[int, NDArray[np.bool_]],
    rng: np.random.Generator,
) -> None:
    """Change the cells of rows that cannot satisfy a rule, in place."""
    for rule in rules:
        if isinstance(rule, SumConstraint):
            _repair_sum_cells(cells, rule, rules, within, rng)
        elif isinstance(rule, StructuralZero):
            _leave_structural_zero(cells, rule, rules, within, rng)
    satisfied = _holds(cells, rules)
    bad, donors = np.flatnonzero(~satisfied), np.flatnonzero(satisfied)
    for _ in range(_MAX_TRIES if len(donors) else 0):
        if not len(bad):
            return
        trial = np.array(cells[bad])
        attribute = rng.choice(np.array(tied), len(bad))
        trial[np.arange(len(bad)), attribute] = cells[rng.choice(donors, len(bad)), attribute]
        repaired = _holds(trial, rules)
        for index in tied:
            cells[bad[repaired], index] = trial[repaired, index]
        bad = bad[~repaired]
    if len(bad):
        satisfied = np.ones(len(cells), np.bool_)
        satisfied[bad] = False
        _copy_rows(cells, {}, tied, satisfied, partial(_find_row, rules, model, within), rng)


def _leave_structural_zero(
    cells: CellMatrix,
    rule: StructuralZero,
    rules: Sequence[RowConstraint],
    within: Mapping[int, NDArray[np.bool_]],
    rng: np.random.Generator,
) -> None:
    """Change one attribute of rows in an impossible combination: the one that occurs in the fewest rules.

    So an attribute that many rules depend on, such as whether a person was asked at all, keeps its sampled value. The
    new value is copied from another row.
    """
    bad = np.flatnonzero(~rule.holds(cells))
    if not len(bad):
        return
    index, mask = min(rule.selection, key=lambda entry: sum(entry[0] in other.indices for other in rules))
    allowed = ~mask & within.get(index, np.ones(len(mask), np.bool_))
    donors = np.flatnonzero(allowed[cells[:, index]])
    if len(donors):
        cells[bad, index] = cells[rng.choice(donors, len(bad)), index]
    elif allowed.any():
        cells[bad, index] = rng.choice(np.flatnonzero(allowed), len(bad))


def _repair_sum_cells(
    cells: CellMatrix,
    rule: SumConstraint,
    rules: Sequence[RowConstraint],
    within: Mapping[int, NDArray[np.bool_]],
    rng: np.random.Generator,
) -> None:
    """Move totals that cannot be the sum of their parts to the cell of such a sum, if all rules allow it."""
    total, *parts = rule.scales
    bad = np.flatnonzero(~rule.holds(cells))
    if total.derived or not len(bad):
        return
    trial = np.array(cells[bad])
    samples = [rng.integers(part.low[cell], part.high[cell] + 1) for part in parts for cell in [trial[:, part.index]]]
    proper = np.flatnonzero(~total.missing)
    positions = np.searchsorted(total.low[proper], np.sum(samples, axis=0), side="right") - 1
    trial[:, total.index] = proper[np.clip(positions, 0, len(proper) - 1)]
    allowed = within.get(total.index, np.ones(len(total.missing), np.bool_))
    repaired = _holds(trial, rules) & allowed[trial[:, total.index]]
    cells[bad[repaired], total.index] = trial[repaired, total.index]


def _holds(cells: CellMatrix, rules: Sequence[RowConstraint]) -> NDArray[np.bool_]:
    satisfied = np.ones(len(cells), np.bool_)
    for rule in rules:
        satisfied &= rule.holds(cells)
    return satisfied


def _copy_rows(
    cells: CellMatrix,
    steps: RowSteps,
    tied: Sequence[int],
    satisfied: NDArray[np.bool_],
    find_row: Callable[[], SatisfyingRow],
    rng: np.random.Generator,
) -> None:
    """Copy the tied attributes of rows that satisfy the rules to those that do not, in place, with their steps.

    If no row satisfies the rules, ``find_row`` provides one.
    """
    bad, donors = np.flatnonzero(~satisfied), np.flatnonzero(satisfied)
    if len(donors):
        chosen = rng.choice(donors, len(bad))
        for index in tied:
            cells[bad, index] = cells[chosen, index]
        for index in steps:
            steps[index][bad] = steps[index][chosen]
        return
    row = find_row()
    for index in tied:
        cells[bad, index] = row.cells[index]
    for index in steps:
        steps[index][bad] = row.steps.get(index, 0)


def _find_row(
    rules: Sequence[RowConstraint], model: ConstraintModel, within: Mapping[int, NDArray[np.bool_]]
) -> SatisfyingRow:
    row = find_satisfying_row(rules, model.sizes, within)
    if isinstance(row, SatisfyingRow):
        return row
    numbers = ", ".join(str(rule.number) for rule in rules)
    raise QueryError(f"no row was found that satisfies rules {numbers} under these conditions; give other conditions")


# ── values inside cells ──────────────────────────────────────────────────────────────────────────────────────


RowSteps = dict[int, IntArray]
"""The step of every row for some attributes, by their index; arbitrary where there is no value."""

_RESAMPLING_ROUNDS = 24
"""How often values that do not ascend are sampled again; of two in one cell, one pair in ten million is left."""


def sample_steps(
    cells: CellMatrix, rules: Sequence[RowConstraint], rng: np.random.Generator
) -> tuple[RowSteps, NDArray[np.bool_]]:
    """Sample a step within its cell for every attribute that rules compare or add, and test which rows satisfy them.

    Sums are sampled first. Then rows whose values do not ascend are sampled again (rejection sampling), which keeps the
    distribution of ascending values. Rows that still fail after some rounds are sampled one value after the other.
    """
    value_rules = [rule for rule in rules if isinstance(rule, OrderConstraint | SumConstraint)]
    scales = {scale.index: scale for rule in value_rules for scale in rule.scales if not scale.derived}
    steps = {index: _sample_uniformly(scale, cells, rng) for index, scale in scales.items()}
    for rule in value_rules:
        if isinstance(rule, SumConstraint):
            _sample_sum(rule, cells, steps, rng)
    satisfied = _values_hold(value_rules, cells, steps)
    ordered = [rule for rule in value_rules if isinstance(rule, OrderConstraint)]
    for attempt in range(_RESAMPLING_ROUNDS + 1 if ordered else 0):
        bad = np.flatnonzero(~satisfied)
        if not len(bad):
            break
        new_steps = {index: _sample_uniformly(scale, cells[bad], rng) for index, scale in scales.items()}
        for rule in value_rules:
            if isinstance(rule, SumConstraint):
                _sample_sum(rule, cells[bad], new_steps, rng)
        if attempt == _RESAMPLING_ROUNDS:
            for rule in ordered:
                _sample_in_order(rule, cells[bad], new_steps, rng)
        repaired = _values_hold(value_rules, cells[bad], new_steps)
        for index in steps:
            steps[index][bad[repaired]] = new_steps[index][repaired]
        satisfied[bad[repaired]] = True
    return steps, satisfied


def _sample_uniformly(scale: Scale, cells: CellMatrix, rng: np.random.Generator) -> IntArray:
    cell = cells[:, scale.index]
    return rng.integers(scale.first[cell], scale.last[cell] + 1)


def _values_hold(
    rules: Sequence[OrderConstraint | SumConstraint], cells: CellMatrix, steps: RowSteps
) -> NDArray[np.bool_]:
    satisfied = np.ones(len(cells), np.bool_)
    for rule in rules:
        row_cells = [cells[:, scale.index] for scale in rule.scales]
        values = [_common_values(scale, cell, steps) for scale, cell in zip(rule.scales, row_cells, strict=True)]
        missing = [scale.missing[cell] for scale, cell in zip(rule.scales, row_cells, strict=True)]
        satisfied &= rule.holds_for_values(values, missing)
    return satisfied


def _common_values(scale: Scale, cell: NDArray[np.integer], steps: RowSteps) -> IntArray:
    return scale.to_common_scale(scale.first[cell] if scale.derived else steps[scale.index])


# ── sums ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _sample_sum(rule: SumConstraint, cells: CellMatrix, steps: RowSteps, rng: np.random.Generator) -> None:
    """Sample a total that its cell and the cells of its parts allow, and adjust the parts until they add up to it.

    The steps of all of them have the same size.
    """
    total, *parts = rule.scales
    row_cells = [cells[:, scale.index] for scale in rule.scales]
    ends = [(scale.low[cell], scale.high[cell]) for scale, cell in zip(rule.scales, row_cells, strict=True)]
    low = np.maximum(ends[0][0], sum(least for least, _ in ends[1:]))
    high = np.minimum(ends[0][1], sum(most for _, most in ends[1:]))
    missing = [scale.missing[cell] for scale, cell in zip(rule.scales, row_cells, strict=True)]
    possible = ~np.any(missing, axis=0) & (low <= high)
    values = [_common_values(scale, cell, steps) for scale, cell in zip(parts, row_cells[1:], strict=True)]
    current = np.sum(values, axis=0)
    target = np.where((current >= low) & (current <= high), current, rng.integers(low, np.maximum(low, high) + 1))
    if total.derived:
        target = ends[0][0]
    difference = np.where(possible, target - current, 0)
    for position in rng.permutation(len(parts)):
        scale, (least, most) = parts[position], ends[1 + position]
        if scale.derived:
            continue
        move = np.clip(difference, np.minimum(least - values[position], 0), np.maximum(most - values[position], 0))
        values[position] = values[position] + move
        difference = difference - move
        steps[scale.index] = np.where(possible, scale.first_step_at_least(values[position]), steps[scale.index])
    if not total.derived:
        steps[total.index] = np.where(possible, total.first_step_at_least(target), steps[total.index])


# ── orders ───────────────────────────────────────────────────────────────────────────────────────────────────


def _sample_in_order(rule: OrderConstraint, cells: CellMatrix, steps: RowSteps, rng: np.random.Generator) -> None:
    """Sample values from left to right, each above those before it, with room for those after it."""
    row_cells = [cells[:, scale.index] for scale in rule.scales]
    room = [np.full(len(cells), 2**62, np.int64)]
    for scale, cell in zip(reversed(rule.scales), reversed(row_cells), strict=True):
        highest = np.minimum(scale.high[cell], room[-1])
        room.append(np.where(scale.missing[cell], room[-1], highest - rule.strict))
    lowest = np.full(len(cells), -(2**62), np.int64)
    for position, (scale, cell) in enumerate(zip(rule.scales, row_cells, strict=True)):
        first = np.maximum(scale.first[cell], scale.first_step_at_least(lowest))
        last = np.minimum(scale.last[cell], scale.first_step_at_least(room[len(row_cells) - position - 1] + 1) - 1)
        if not scale.derived:
            sampled = rng.integers(first, np.maximum(first, last) + 1)
            steps[scale.index] = np.where(scale.missing[cell] | (last < first), steps[scale.index], sampled)
        lowest = np.where(scale.missing[cell], lowest, _common_values(scale, cell, steps) + rule.strict)
