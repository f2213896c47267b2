"""Values inside cells, drawn together where rules compare or add them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn.schema.constraints import Adding, Ascending, Cells, Constraint
from dpsyn.schema.scales import Numbers, Scale

Steps = dict[int, Numbers]
"""The step of every row for some attributes, by their places; whatever where there is no value."""

_ROUNDS = 24
"""Values that do not ascend are drawn anew so often: of two in one cell, one in ten million is left."""


def draw_steps(cells: Cells, rules: Sequence[Constraint], rng: np.random.Generator) -> tuple[Steps, NDArray[np.bool_]]:
    """A step in its cell for every attribute that the rules compare or add, and in which rows they keep the rules.

    Sums are put together first. Then what does not ascend is drawn anew, which leaves values that ascend as likely as
    they were; what is left after some rounds is drawn one value after the other.
    """
    comparing = [rule for rule in rules if isinstance(rule, Ascending | Adding)]
    scales = {scale.place: scale for rule in comparing for scale in rule.scales if not scale.derived}
    steps = {place: _even(scale, cells, rng) for place, scale in scales.items()}
    for rule in comparing:
        if isinstance(rule, Adding):
            _add_up(rule, cells, steps, rng)
    good = _kept(comparing, cells, steps)
    ordered = [rule for rule in comparing if isinstance(rule, Ascending)]
    for number in range(_ROUNDS + 1 if ordered else 0):
        bad = np.flatnonzero(~good)
        if not len(bad):
            break
        again = {place: _even(scale, cells[bad], rng) for place, scale in scales.items()}
        for rule in comparing:
            if isinstance(rule, Adding):
                _add_up(rule, cells[bad], again, rng)
        if number == _ROUNDS:
            for rule in ordered:
                _ascend(rule, cells[bad], again, rng)
        mended = _kept(comparing, cells[bad], again)
        for place in steps:
            steps[place][bad[mended]] = again[place][mended]
        good[bad[mended]] = True
    return steps, good


def _even(scale: Scale, cells: Cells, rng: np.random.Generator) -> Numbers:
    own = cells[:, scale.place]
    return rng.integers(scale.first[own], scale.last[own] + 1)


def _kept(rules: Sequence[Ascending | Adding], cells: Cells, steps: Steps) -> NDArray[np.bool_]:
    good = np.ones(len(cells), np.bool_)
    for rule in rules:
        own = [cells[:, scale.place] for scale in rule.scales]
        values = [_values(scale, cell, steps) for scale, cell in zip(rule.scales, own, strict=True)]
        good &= rule.kept(values, [scale.missing[cell] for scale, cell in zip(rule.scales, own, strict=True)])
    return good


def _values(scale: Scale, cell: NDArray[np.integer], steps: Steps) -> Numbers:
    return scale.common(scale.first[cell] if scale.derived else steps[scale.place])


# ── sums ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _add_up(rule: Adding, cells: Cells, steps: Steps, rng: np.random.Generator) -> None:
    """Draw the total among those that its cell and the parts' cells allow, and move the parts until they add up to it.

    Steps are of the same size in all of them.
    """
    total, *parts = rule.scales
    own = [cells[:, scale.place] for scale in rule.scales]
    ends = [(scale.low[cell], scale.high[cell]) for scale, cell in zip(rule.scales, own, strict=True)]
    low = np.maximum(ends[0][0], sum(least for least, _ in ends[1:]))
    high = np.minimum(ends[0][1], sum(most for _, most in ends[1:]))
    there = ~np.any([scale.missing[cell] for scale, cell in zip(rule.scales, own, strict=True)], axis=0) & (low <= high)
    values = [_values(scale, cell, steps) for scale, cell in zip(parts, own[1:], strict=True)]
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
        steps[scale.place] = np.where(there, scale.at_least(values[place]), steps[scale.place])
    if not total.derived:
        steps[total.place] = np.where(there, total.at_least(wanted), steps[total.place])


# ── orders ───────────────────────────────────────────────────────────────────────────────────────────────────


def _ascend(rule: Ascending, cells: Cells, steps: Steps, rng: np.random.Generator) -> None:
    """Draw values from left to right, each above those before it and with room for those behind it."""
    own = [cells[:, scale.place] for scale in rule.scales]
    room = [np.full(len(cells), 2**62, np.int64)]
    for scale, cell in zip(reversed(rule.scales), reversed(own), strict=True):
        highest = np.minimum(scale.high[cell], room[-1])
        room.append(np.where(scale.missing[cell], room[-1], highest - rule.strict))
    reach = np.full(len(cells), -(2**62), np.int64)
    for place, (scale, cell) in enumerate(zip(rule.scales, own, strict=True)):
        first = np.maximum(scale.first[cell], scale.at_least(reach))
        last = np.minimum(scale.last[cell], scale.at_least(room[len(own) - place - 1] + 1) - 1)
        if not scale.derived:
            drawn = rng.integers(first, np.maximum(first, last) + 1)
            steps[scale.place] = np.where(scale.missing[cell] | (last < first), steps[scale.place], drawn)
        reach = np.where(scale.missing[cell], reach, _values(scale, cell, steps) + rule.strict)
