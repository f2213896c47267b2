"""Codes of synthetic rows from a model, under conditions if there are any."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import UserError
from dpsyn.progress import Progress, silent
from dpsyn.records import Codes, Grouping
from dpsyn.rules import can_keep, keep_rules, moved_to_totals, require_possible
from dpsyn.schema import Schema
from dpsyn.synopsis.parts import Model
from dpsyn.synthesis import gibbs, synthesize
from dpsyn.transforms import RecodedColumn

Allowed = Mapping[str, NDArray[np.bool_]]
"""For some attributes, which of their fine codes are allowed."""

FEW, ENOUGH = 1_000, 4_000
"""Fewer rows than the first are drawn from as many as the second: a handful that is bound to all tables by itself
matches their largest cells, but no row of it need make sense."""

FAINT = 1e-9
"""The share of an attribute's weight that is spread over all of its codes, so that none is impossible if asked for."""


EXPANSIONS = 16
"""Draws of fine codes within a model's codes, where rules do not let the first ones be together."""


def draw_codes(
    model: Model,
    names: Sequence[str],
    rows: int,
    allowed: Allowed,
    *,
    seed: int,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> Codes:
    """Fine codes of rows: rows × attributes.

    Args:
        model: what to draw from.
        names: the attributes of the fine codes.
        rows: how many.
        allowed: conditions, all of which every row meets.
        seed: of the model's codes.
        rng: draws fine codes among those that a model's code stands for.
        progress: is told how far it is.
    """
    codes, expand = _drawn(model, names, rows, allowed, seed=seed, progress=progress)
    return expand(codes, rng)


def _drawn(
    model: Model, names: Sequence[str], rows: int, allowed: Allowed, *, seed: int, progress: Progress
) -> tuple[NDArray[np.integer], Callable[[NDArray[np.integer], np.random.Generator], Codes]]:
    """The model's codes of rows, and what draws fine codes from them."""
    _refuse_conditions_on_differences(model, names, allowed)
    weights = [_weights(model, name, allowed) for name in names]
    where = {
        column.name: _odds(column, model, names, weights)
        for column in model.recoding.columns
        if any(names[source] in allowed for source in column.sources)
    }

    def expand(codes: NDArray[np.integer], rng: np.random.Generator) -> Codes:
        return model.recoding.expand(codes, weights, rng)

    return model_codes(model, rows, where, seed=seed, progress=progress), expand


def draw_kept(
    schema: Schema,
    model: Model,
    rows: int,
    allowed: Allowed,
    *,
    seed: int,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> tuple[Codes, Mapping[str, NDArray[np.int64]]]:
    """Fine codes of rows that keep all rules of the schema, and the steps of values that orders and sums compare.

    Public totals are met by a table as large as the model's, and in proportion by any other; not under conditions.
    """
    names = [name for name, _ in model.recoding.origin]
    require_possible(schema, allowed)

    def kept(number: int, within: Allowed, told: Progress = silent) -> tuple[Codes, dict[int, NDArray[np.int64]]]:
        own, expand = _drawn(model, names, number, within, seed=seed, progress=told)
        cells = expand(own, rng)
        for _ in range(EXPANSIONS):  # other values within the same bins may keep the rules
            bad = np.flatnonzero(~can_keep(schema, cells))
            if not len(bad):
                break
            cells[bad] = expand(own[bad], rng)
        return keep_rules(schema, cells, rng, within)

    codes, steps = kept(rows, allowed, progress)
    if not allowed:
        scale = 1.0 if rows == round(model.total) else rows / max(model.total, 1.0)
        codes, steps = moved_to_totals(schema, codes, steps, scale, kept, rng)
    return codes, {names[place]: own for place, own in steps.items()}


def model_codes(
    model: Model, rows: int, where: Mapping[str, NDArray[np.float64]], *, seed: int, progress: Progress = silent
) -> NDArray[np.integer]:
    """The model's codes of rows, rows × attributes.

    Codes drawn from the fitted distribution; if there is none they are fitted, unless they must meet conditions.
    """
    if model.fitted is None and not where:
        return synthesize(model.tables, model.recoding.names, model.recoding.sizes, rows, seed=seed, progress=progress)
    fitted = model.fitted or gibbs.fit(model.tables, model.recoding.names, model.recoding.sizes, seed=0)
    number = ENOUGH if 0 < rows < FEW else rows
    chunks = list(gibbs.generate(fitted, number, seed=seed, where=where, progress=progress))
    codes = np.concatenate([np.empty((len(fitted.names), 0), np.uint16), *chunks], axis=1).T
    if number > rows:
        codes = codes[np.random.default_rng(seed).choice(number, rows, replace=False)]
    return codes


def _refuse_conditions_on_differences(model: Model, names: Sequence[str], allowed: Allowed) -> None:
    """Refuse a condition on what is drawn as a difference from another attribute: rows would have to be thrown away."""
    for source, reference in model.recoding.references.items():
        if names[source] in allowed:
            anchor = names[reference.anchor]
            raise UserError(
                f"{names[source]!r} was measured as its difference from {anchor!r}, so that no rows can be drawn under "
                f"a condition on it; put the condition on {anchor!r}"
            )


def _weights(model: Model, name: str, allowed: Allowed) -> NDArray[np.float64]:
    """Weights of an attribute's fine codes; none for those that are not allowed."""
    weights = model.histograms[name]
    if name not in allowed:
        return weights
    return np.where(allowed[name], weights + FAINT * max(float(weights.sum()), 1.0), 0.0)


def _odds(
    column: RecodedColumn, model: Model, names: Sequence[str], weights: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """How likely each code of a column is to stand for fine codes that are allowed."""
    joint, whole = np.ones(1), np.ones(1)
    for source, table in zip(column.sources, column.tables, strict=True):
        digits, before = Grouping(table), model.histograms[names[source]]
        before = before + FAINT * max(float(before.sum()), 1.0)
        joint = np.multiply.outer(joint, digits.sums(weights[source])).ravel()
        whole = np.multiply.outer(whole, digits.sums(before)).ravel()
    if column.merged is not None:
        joint, whole = (Grouping(column.merged).sums(part) for part in (joint, whole))
    odds: NDArray[np.float64] = np.minimum(joint / whole, 1.0)
    return odds
