"""Rows whose cells were drawn, mended so that all rules hold, and values chosen inside the cells so that they do.

A model that knows the rules draws few rows that break one; a model that does not may draw many. Both are mended in the
same way, and none is dropped: first totals by the sum of their parts; then one attribute at a time, taken from a row
that keeps the rules; then all attributes that the rules tie together, taken from one such row. If no row keeps the
rules, one that does is worked out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import UserError
from dpsyn.rules.valuing import Steps, draw_steps
from dpsyn.schema import Schema
from dpsyn.schema.constraints import Adding, Cells, Constraint, Constraints, constraints_of
from dpsyn.schema.satisfying import Witness, witness

Allowed = Mapping[str, NDArray[np.bool_]]
"""For some attributes, which of their cells are asked for."""

_TRIES = 12
"""Single attributes that are tried in a row before all are taken from another row."""


def keep_rules(
    schema: Schema, cells: Cells, rng: np.random.Generator, allowed: Allowed | None = None
) -> tuple[Cells, Steps]:
    """Cells of rows that keep all rules of a schema, and the steps of the values that orders and sums compare.

    Args:
        schema: its rules.
        cells: rows × measured attributes; rows that keep the rules stay as they are.
        rng: decides.
        allowed: conditions that the rows meet already, and will meet.
    """
    known = constraints_of(schema)
    places = {name: place for place, name in enumerate(known.names)}
    within = {places[name]: mask for name, mask in (allowed or {}).items()}
    mended = cells.copy(order="F") if known.by_row else cells
    steps: Steps = {}
    for tied, rules in known.components():
        _mend_cells(mended, tied, rules, known, within, rng)
        found, good = draw_steps(mended, rules, rng)
        if not good.all():
            _copy_rows(mended, found, tied, good, partial(_any_row, rules, known, within), rng)
        steps |= found
    return mended, steps


def can_keep(schema: Schema, cells: Cells) -> NDArray[np.bool_]:
    """Which rows have cells whose values can keep each rule of a schema."""
    return _holds(cells, constraints_of(schema).by_row)


def require_possible(schema: Schema, allowed: Allowed) -> None:
    """Refuse conditions that the rules make impossible."""
    known = constraints_of(schema)
    places = {name: place for place, name in enumerate(known.names)}
    within = {places[name]: mask for name, mask in allowed.items()}
    for tied, rules in known.components():
        if witness(rules, known.sizes, within) is None:
            about = [known.names[place] for place in tied if place in within]
            numbers = ", ".join(str(rule.number) for rule in rules)
            raise UserError(
                f"no row can meet the conditions on {', '.join(about)}: the schema rules it out "
                f"({'rule' if len(rules) == 1 else 'rules'} {numbers}); ask for something else"
            )


def _mend_cells(
    cells: Cells,
    tied: Sequence[int],
    rules: Sequence[Constraint],
    known: Constraints,
    within: Mapping[int, NDArray[np.bool_]],
    rng: np.random.Generator,
) -> None:
    """Change the cells of rows in which a rule cannot hold, in place."""
    for rule in rules:
        if isinstance(rule, Adding):
            _sum_up(cells, rule, rules, within, rng)
    good = _holds(cells, rules)
    bad, donors = np.flatnonzero(~good), np.flatnonzero(good)
    for _ in range(_TRIES if len(donors) else 0):
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
        _copy_rows(cells, {}, tied, keeping, partial(_any_row, rules, known, within), rng)


def _sum_up(
    cells: Cells,
    rule: Adding,
    rules: Sequence[Constraint],
    within: Mapping[int, NDArray[np.bool_]],
    rng: np.random.Generator,
) -> None:
    """Give totals that cannot be the sum of their parts the cell of a sum of them, where all rules allow that."""
    total, *parts = rule.scales
    bad = np.flatnonzero(~rule.holds(cells))
    if total.derived or not len(bad):
        return
    trial = np.array(cells[bad])
    drawn = [rng.integers(part.low[own], part.high[own] + 1) for part in parts for own in [trial[:, part.place]]]
    proper = np.flatnonzero(~total.missing)
    places = np.searchsorted(total.low[proper], np.sum(drawn, axis=0), side="right") - 1
    trial[:, total.place] = proper[np.clip(places, 0, len(proper) - 1)]
    allowed = within.get(total.place, np.ones(len(total.missing), np.bool_))
    mended = _holds(trial, rules) & allowed[trial[:, total.place]]
    cells[bad[mended], total.place] = trial[mended, total.place]


def _holds(cells: Cells, rules: Sequence[Constraint]) -> NDArray[np.bool_]:
    good = np.ones(len(cells), np.bool_)
    for rule in rules:
        good &= rule.holds(cells)
    return good


def _copy_rows(
    cells: Cells,
    steps: Steps,
    tied: Sequence[int],
    good: NDArray[np.bool_],
    otherwise: Callable[[], Witness],
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


def _any_row(rules: Sequence[Constraint], known: Constraints, within: Mapping[int, NDArray[np.bool_]]) -> Witness:
    found = witness(rules, known.sizes, within)
    if isinstance(found, Witness):
        return found
    numbers = ", ".join(str(rule.number) for rule in rules)
    raise UserError(f"no row was found that keeps the rules {numbers} under these conditions; ask for something else")
