"""A random process that makes rows of a schema: attributes drawn one after the other, each from some before it.

Every attribute hangs on one to three earlier ones and on one of a few hidden classes of rows, with an effect of each
and one of every two of them together: so there are relations of three that no pair shows, and hidden classes tie
attributes to each other that no arrow joins. No tree, and no graph of few arrows, describes such a table.

Which attributes are empty together is hidden as well: each that can be missing belongs to one of a few blocks, which
are left out as a whole in some rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.schema import Attribute, Ordinal, Ranged, Schema
from dpsyn.simulation.roles import WageEffect, wage_effect
from dpsyn.simulation.shapes import Weights, positions, shape_of

Codes = NDArray[np.int64]

CLASSES = (4, 5, 6)
"""The hidden variables: how many classes each has."""

BLOCKS = 3
"""Groups of attributes that are missing together."""

MOST_CELLS = 2**18
"""Contexts × values of one attribute's table: all tables together fit into memory, whatever the schema."""

_MOST_GROUPS = 6
_WINDOW = 12
"""Attributes hang on some of the last so many drawn before them, as columns of a table that stand side by side do."""


@dataclass(frozen=True, slots=True, eq=False)
class Parent:
    """What an attribute hangs on: values of an earlier attribute (or a hidden one) merged into a few groups."""

    place: int
    group_of: Codes

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return int(self.group_of.max()) + 1


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One attribute drawn given others.

    Attributes:
        place: the attribute.
        parents: what it hangs on; their groups together are the context of a row.
        ends: cumulative weights of all values, context after context, each context one long.
        block: the block it is missing with, or −1.
        missing: how often it is empty where its block is there, and where it is left out.
    """

    place: int
    parents: tuple[Parent, ...]
    ends: Weights
    block: int
    missing: tuple[float, float]

    def drawn(self, columns: Sequence[Codes], left_out: NDArray[np.bool_], random: np.random.Generator) -> Codes:
        """The codes of this attribute for rows whose earlier codes are given."""
        rows = len(columns[0])
        context = np.zeros(rows, np.int64)
        for parent in self.parents:
            context = context * parent.groups + parent.group_of[columns[parent.place]]
        values = len(self.ends) // int(np.prod([parent.groups for parent in self.parents], dtype=np.int64))
        found = np.searchsorted(self.ends, context + random.random(rows), side="right") - context * values
        codes: Codes = np.clip(found, 0, values - 1)
        if self.block >= 0:
            rate = np.where(left_out[:, self.block], self.missing[1], self.missing[0])
            codes = np.where(random.random(rows) < rate, values, codes)
        return codes


@dataclass(frozen=True, slots=True, eq=False)
class Process:
    """Attributes in the order in which they are drawn, after the hidden ones.

    Attributes:
        steps: one for each attribute; places count the attributes, then the hidden variables.
        hidden: weights of the classes of each hidden variable.
        blocks: how often each block is left out.
    """

    steps: tuple[Step, ...]
    hidden: tuple[Weights, ...]
    blocks: Weights

    def draw(self, rows: int, random: np.random.Generator) -> list[Codes]:
        """The codes of rows, a column for each attribute."""
        nothing = np.zeros(rows, np.int64)
        columns = [nothing] * (len(self.steps) + len(self.hidden))
        for number, weights in enumerate(self.hidden):
            columns[len(self.steps) + number] = random.choice(len(weights), rows, p=weights)
        left_out = random.random((rows, len(self.blocks))) < self.blocks
        for step in self.steps:
            columns[step.place] = step.drawn(columns, left_out, random)
        return columns[: len(self.steps)]


def random_process(schema: Schema, seed: int) -> Process:
    """A process for the coded attributes of a schema; the seed decides everything about it."""
    random = np.random.default_rng([seed, 0])
    attributes = [attribute for attribute in schema.measured if attribute.coded]
    effect = wage_effect(schema)
    hidden = tuple(random.dirichlet(np.full(classes, 3.0)) for classes in CLASSES)
    sizes = [attribute.cells for attribute in attributes] + [len(weights) for weights in hidden]
    ordered = [isinstance(attribute, Ranged | Ordinal) for attribute in attributes] + [False] * len(hidden)
    before: list[int] = []
    shapes: dict[int, Weights] = {}
    steps = []
    for place in _order(attributes, effect):
        attribute = attributes[place]
        chosen = _chosen(attributes, place, before, effect, random)
        most = max(2, int((MOST_CELLS / attribute.proper_cells) ** (1 / max(1, len(chosen) + 1))))
        latent = len(attributes) + int(random.integers(len(hidden)))
        parents = tuple(
            Parent(p, _grouped(sizes[p], min(most, _MOST_GROUPS), ordered[p], shapes.get(p), random))
            for p in (*chosen, latent)
        )
        shapes[place] = shape_of(attribute, random)
        tilt = _wage_tilt(attributes, place, parents, effect, random)
        ends = _table(attribute, shapes[place], parents, tilt, random)
        block = int(random.integers(BLOCKS)) if attribute.has_missing else -1
        steps.append(Step(place, parents, ends, block, (random.uniform(0.005, 0.08), random.uniform(0.7, 0.98))))
        before.append(place)
    return Process(tuple(steps), hidden, random.uniform(0.05, 0.25, BLOCKS))


def _order(attributes: Sequence[Attribute], effect: WageEffect | None) -> list[int]:
    """As in the table, but wages last: they hang on what comes before."""
    return sorted(range(len(attributes)), key=lambda p: effect is not None and attributes[p].name == effect.wage)


def _chosen(
    attributes: Sequence[Attribute],
    place: int,
    before: Sequence[int],
    effect: WageEffect | None,
    random: np.random.Generator,
) -> list[int]:
    """The earlier attributes that one hangs on: neighbours in the table, and now and then a distant one."""
    if effect is not None and attributes[place].name == effect.wage:
        names = [attribute.name for attribute in attributes]
        return [names.index(effect.region), names.index(effect.sex)]
    near = list(before[-_WINDOW:])
    far = [p for p in before[:-_WINDOW] if random.random() < 2 / max(2, len(before))]
    pool = near + far
    number = min(len(pool), int(random.integers(1, 4)))
    return [int(p) for p in random.choice(pool, number, replace=False)] if number else []


def _grouped(size: int, most: int, ordered: bool, weights: Weights | None, random: np.random.Generator) -> Codes:
    """The group of every code: stretches of about equal weight if values are ordered, else any; none is empty."""
    number = min(size, most)
    if size <= number:
        return np.arange(size)
    shares = np.full(size, 1 / size) if weights is None else np.append(weights, np.zeros(size - len(weights)))
    order = np.arange(size) if ordered else random.permutation(size)
    middle = np.cumsum(shares[order]) - shares[order] / 2
    groups = np.empty(size, np.int64)
    groups[order] = np.clip((middle * number).astype(np.int64), 0, number - 1)
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def _table(
    attribute: Attribute,
    shape: Weights,
    parents: Sequence[Parent],
    tilt: Weights | None,
    random: np.random.Generator,
) -> Weights:
    """Cumulative weights of values in every context: the shape, tilted by every parent and by every two together."""
    groups = [parent.groups for parent in parents]
    where, values = positions(attribute, shape, random), len(shape)
    logs = np.log(shape).reshape((1,) * len(groups) + (values,))
    smooth = isinstance(attribute, Ranged | Ordinal)
    for axis, number in enumerate(groups):
        logs = logs + _effect(number, where, smooth, random.uniform(0.6, 1.8), random).reshape(
            [number if other == axis else 1 for other in range(len(groups))] + [values]
        )
    for first in range(len(groups)):
        for second in range(first + 1, len(groups)):
            shape_of_pair = [number if axis in (first, second) else 1 for axis, number in enumerate(groups)]
            pair = _effect(groups[first] * groups[second], where, smooth, random.uniform(0.3, 1.5), random)
            logs = logs + pair.reshape([*shape_of_pair, values])
    if tilt is not None:
        logs = logs + (tilt.reshape(*tilt.shape, *(1,) * (len(groups) - 2))[..., None] * where)
    logs = np.broadcast_to(logs, (*groups, values)).reshape(-1, values)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    ends = np.cumsum(weights, axis=1)
    ends /= ends[:, -1:]
    steps: Weights = (ends + np.arange(float(len(ends)))[:, None]).ravel()
    return steps


def _effect(contexts: int, where: Weights, smooth: bool, strength: float, random: np.random.Generator) -> Weights:
    """What each context adds to the logarithms of the values' weights: a tilt and a bend if ordered, else any."""
    tilt, bend = random.normal(0, strength, (2, contexts, 1))
    effect: Weights = 1.5 * tilt * where + bend * (where**2 - 1 / 3)
    if not smooth:
        effect = effect + random.normal(0, 0.7 * strength, (contexts, len(where)))
    return effect


def _wage_tilt(
    attributes: Sequence[Attribute],
    place: int,
    parents: Sequence[Parent],
    effect: WageEffect | None,
    random: np.random.Generator,
) -> Weights | None:
    """How far wages are tilted up, for every group of regions and every sex; the gap differs by region."""
    if effect is None or attributes[place].name != effect.wage:
        return None
    regions, sexes = parents[0].groups, parents[1].groups
    level, gap = random.normal(0, 0.5, (regions, 1)), random.normal(1.0, 0.7, (regions, 1))
    sides = np.linspace(0.5, -0.5, sexes)[None, :] if sexes > 1 else np.zeros((1, 1))
    return level + gap * sides
