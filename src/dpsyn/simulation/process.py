"""A random process that makes rows of a schema: attributes drawn one after the other, each from some before it.

Every attribute hangs on one to three earlier ones and on one of a few hidden classes of rows, with an effect of each
and one of every two of them together: so there are relations of three that no pair shows, and hidden classes tie
attributes to each other that no arrow joins. No tree, and no graph of few arrows, describes such a table.

Which attributes are empty together is hidden as well: each that can be missing belongs to one of a few blocks, which
are left out as a whole in some rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.schema import Attribute, Datetime, Ordinal, Ranged, Schema

CodeColumn = NDArray[np.int64]

HIDDEN_CLASSES = (4, 5, 6)
"""The hidden variables: how many classes each has."""

MISSING_BLOCKS = 3
"""Groups of attributes that are missing together."""

MAX_CONDITIONAL_CELLS = 2**18
"""Contexts × values of one attribute's table: all tables together fit into memory, whatever the schema."""

_MAX_GROUPS = 6
_PARENT_WINDOW = 12
"""Attributes hang on some of the last so many drawn before them, as columns of a table that stand side by side do."""


@dataclass(frozen=True, slots=True, eq=False)
class Parent:
    """What an attribute hangs on: values of an earlier attribute (or a hidden one) merged into a few groups."""

    axis: int
    group_of: CodeColumn

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return int(self.group_of.max()) + 1


@dataclass(frozen=True, slots=True, eq=False)
class AttributeStep:
    """One attribute drawn given others.

    Attributes:
        axis: the attribute.
        parents: what it hangs on; their groups together are the context of a row.
        ends: cumulative weights of all values, context after context, each context one long.
        block: the block it is missing with, or −1.
        missing: how often it is empty where its block is there, and where it is left out.
    """

    axis: int
    parents: tuple[Parent, ...]
    ends: ValueWeights
    block: int
    missing: tuple[float, float]

    def sample(
        self, columns: Sequence[CodeColumn], left_out: NDArray[np.bool_], random: np.random.Generator
    ) -> CodeColumn:
        """The codes of this attribute for rows whose earlier codes are given."""
        rows = len(columns[0])
        context = np.zeros(rows, np.int64)
        for parent in self.parents:
            context = context * parent.groups + parent.group_of[columns[parent.axis]]
        values = len(self.ends) // int(np.prod([parent.groups for parent in self.parents], dtype=np.int64))
        found = np.searchsorted(self.ends, context + random.random(rows), side="right") - context * values
        codes: CodeColumn = np.clip(found, 0, values - 1)
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

    steps: tuple[AttributeStep, ...]
    hidden: tuple[ValueWeights, ...]
    blocks: ValueWeights

    def sample(self, rows: int, random: np.random.Generator) -> list[CodeColumn]:
        """The codes of rows, a column for each attribute."""
        nothing = np.zeros(rows, np.int64)
        columns = [nothing] * (len(self.steps) + len(self.hidden))
        for number, weights in enumerate(self.hidden):
            columns[len(self.steps) + number] = random.choice(len(weights), rows, p=weights)
        left_out = random.random((rows, len(self.blocks))) < self.blocks
        for step in self.steps:
            columns[step.axis] = step.sample(columns, left_out, random)
        return columns[: len(self.steps)]


def random_process(schema: Schema, seed: int) -> Process:
    """A process for the coded attributes of a schema; the seed decides everything about it."""
    random = np.random.default_rng([seed, 0])
    attributes = [attribute for attribute in schema.measured_attributes if attribute.coded]
    effect = find_wage_effect(schema)
    hidden = tuple(random.dirichlet(np.full(classes, 3.0)) for classes in HIDDEN_CLASSES)
    sizes = [attribute.cells for attribute in attributes] + [len(weights) for weights in hidden]
    ordered = [isinstance(attribute, Ranged | Ordinal) for attribute in attributes] + [False] * len(hidden)
    before: list[int] = []
    shapes: dict[int, ValueWeights] = {}
    steps = []
    for place in _sampling_order(attributes, effect):
        attribute = attributes[place]
        chosen = _choose_parents(attributes, place, before, effect, random)
        most = max(2, int((MAX_CONDITIONAL_CELLS / attribute.proper_cells) ** (1 / max(1, len(chosen) + 1))))
        latent = len(attributes) + int(random.integers(len(hidden)))
        parents = tuple(
            Parent(p, _group_codes(sizes[p], min(most, _MAX_GROUPS), ordered[p], shapes.get(p), random))
            for p in (*chosen, latent)
        )
        shapes[place] = random_shape(attribute, random)
        tilt = _wage_tilt(attributes, place, parents, effect, random)
        ends = _conditional_table(attribute, shapes[place], parents, tilt, random)
        block = int(random.integers(MISSING_BLOCKS)) if attribute.has_missing else -1
        steps.append(
            AttributeStep(place, parents, ends, block, (random.uniform(0.005, 0.08), random.uniform(0.7, 0.98)))
        )
        before.append(place)
    return Process(tuple(steps), hidden, random.uniform(0.05, 0.25, MISSING_BLOCKS))


def _sampling_order(attributes: Sequence[Attribute], effect: WageEffect | None) -> list[int]:
    """As in the table, but wages last: they hang on what comes before."""
    return sorted(range(len(attributes)), key=lambda p: effect is not None and attributes[p].name == effect.wage)


def _choose_parents(
    attributes: Sequence[Attribute],
    axis: int,
    before: Sequence[int],
    effect: WageEffect | None,
    random: np.random.Generator,
) -> list[int]:
    """The earlier attributes that one hangs on: neighbors in the table, and now and then a distant one."""
    if effect is not None and attributes[axis].name == effect.wage:
        names = [attribute.name for attribute in attributes]
        return [names.index(effect.region), names.index(effect.sex)]
    near = list(before[-_PARENT_WINDOW:])
    far = [p for p in before[:-_PARENT_WINDOW] if random.random() < 2 / max(2, len(before))]
    pool = near + far
    number = min(len(pool), int(random.integers(1, 4)))
    return [int(p) for p in random.choice(pool, number, replace=False)] if number else []


def _group_codes(
    size: int, max_groups: int, ordered: bool, weights: ValueWeights | None, random: np.random.Generator
) -> CodeColumn:
    """The group of every code: stretches of about equal weight if values are ordered, else any; none is empty."""
    number = min(size, max_groups)
    if size <= number:
        return np.arange(size)
    shares = np.full(size, 1 / size) if weights is None else np.append(weights, np.zeros(size - len(weights)))
    order = np.arange(size) if ordered else random.permutation(size)
    middle = np.cumsum(shares[order]) - shares[order] / 2
    groups = np.empty(size, np.int64)
    groups[order] = np.clip((middle * number).astype(np.int64), 0, number - 1)
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def _conditional_table(
    attribute: Attribute,
    shape: ValueWeights,
    parents: Sequence[Parent],
    tilt: ValueWeights | None,
    random: np.random.Generator,
) -> ValueWeights:
    """Cumulative weights of values in every context: the shape, tilted by every parent and by every two together."""
    groups = [parent.groups for parent in parents]
    where, values = value_positions(attribute, shape, random), len(shape)
    logs = np.log(shape).reshape((1,) * len(groups) + (values,))
    smooth = isinstance(attribute, Ranged | Ordinal)
    for axis, number in enumerate(groups):
        logs = logs + _random_effect(number, where, smooth, random.uniform(0.6, 1.8), random).reshape(
            [number if other == axis else 1 for other in range(len(groups))] + [values]
        )
    for first in range(len(groups)):
        for second in range(first + 1, len(groups)):
            shape_of_pair = [number if axis in (first, second) else 1 for axis, number in enumerate(groups)]
            pair = _random_effect(groups[first] * groups[second], where, smooth, random.uniform(0.3, 1.5), random)
            logs = logs + pair.reshape([*shape_of_pair, values])
    if tilt is not None:
        logs = logs + (tilt.reshape(*tilt.shape, *(1,) * (len(groups) - 2))[..., None] * where)
    logs = np.broadcast_to(logs, (*groups, values)).reshape(-1, values)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    ends = np.cumsum(weights, axis=1)
    ends /= ends[:, -1:]
    steps: ValueWeights = (ends + np.arange(float(len(ends)))[:, None]).ravel()
    return steps


def _random_effect(
    contexts: int, where: ValueWeights, smooth: bool, strength: float, random: np.random.Generator
) -> ValueWeights:
    """What each context adds to the logarithms of the values' weights: a tilt and a bend if ordered, else any."""
    tilt, bend = random.normal(0, strength, (2, contexts, 1))
    effect: ValueWeights = 1.5 * tilt * where + bend * (where**2 - 1 / 3)
    if not smooth:
        effect = effect + random.normal(0, 0.7 * strength, (contexts, len(where)))
    return effect


def _wage_tilt(
    attributes: Sequence[Attribute],
    axis: int,
    parents: Sequence[Parent],
    effect: WageEffect | None,
    random: np.random.Generator,
) -> ValueWeights | None:
    """How far wages are tilted up, for every group of regions and every sex; the gap differs by region."""
    if effect is None or attributes[axis].name != effect.wage:
        return None
    regions, sexes = parents[0].groups, parents[1].groups
    level, gap = random.normal(0, 0.5, (regions, 1)), random.normal(1.0, 0.7, (regions, 1))
    sides = np.linspace(0.5, -0.5, sexes)[None, :] if sexes > 1 else np.zeros((1, 1))
    return level + gap * sides


# ── How the values of one attribute are spread, by itself: skew, bumps, spikes and heaps on round numbers ──


ValueWeights = NDArray[np.float64]

WIDE_RANGE_STEPS = 2_000
"""Ranges of more steps are skewed as amounts of money are: their logarithm has the bumps."""

_ROUND_NUMBERS = (1_000, 500, 100, 50, 10, 5)
"""Numbers that people round to."""


def random_shape(attribute: Attribute, random: np.random.Generator) -> ValueWeights:
    """Positive weights of the cells of an attribute that are not missing; they add up to one."""
    if isinstance(attribute, Ranged):
        weights = _range_weights(attribute, random)
    elif isinstance(attribute, Ordinal):
        weights = _bump_weights(np.linspace(0, 1, attribute.proper_cells), random)
    else:
        weights = _zipf_weights(attribute.proper_cells, random)
    shares: ValueWeights = weights / weights.sum()
    return shares


def value_positions(attribute: Attribute, weights: ValueWeights, random: np.random.Generator) -> ValueWeights:
    """Where each value lies between −1 and 1, most of them spread evenly: its rank if values are ordered."""
    if isinstance(attribute, Ranged | Ordinal):
        ends = np.cumsum(weights)
        ranks: ValueWeights = ends + np.concatenate([[0.0], ends[:-1]]) - 1
        return ranks
    return random.uniform(-1, 1, len(weights))


def _zipf_weights(size: int, random: np.random.Generator) -> ValueWeights:
    """Few frequent categories and many rare ones, by Zipf's law with a bend, in random order."""
    ranks = np.arange(size) + random.uniform(0.5, 4)
    weights: ValueWeights = random.permutation(ranks ** -random.uniform(0.8, 2.2))
    return weights


def _bump_weights(positions: ValueWeights, random: np.random.Generator) -> ValueWeights:
    """One to three bumps on a low floor, along places between 0 and 1."""
    weights = np.full(len(positions), 0.05)
    for _ in range(random.integers(1, 4)):
        centre, width = random.beta(1.2, 2.0), random.uniform(0.05, 0.25)
        weights += random.uniform(0.3, 1) * np.exp(-0.5 * ((positions - centre) / width) ** 2)
    return weights


def _range_weights(attribute: Ranged, random: np.random.Generator) -> ValueWeights:
    edges = attribute.grid().edges
    first, widths = edges[:-1], np.diff(edges)
    middle = first + (widths - 1) / 2
    if attribute.steps > WIDE_RANGE_STEPS and not isinstance(attribute, Datetime):
        far = np.log1p(np.abs(attribute.origin + middle))
        weights = _bump_weights(far / max(far.max(), 1e-9), random) * widths / (1 + np.abs(attribute.origin + middle))
    else:
        weights = _bump_weights(middle / max(attribute.steps - 1, 1), random) * widths
    if isinstance(attribute, Datetime):
        weights = weights * (1 + 0.3 * np.sin(middle / max(attribute.steps, 1) * random.uniform(6, 40)))
    else:
        weights = weights * _heap_factors(attribute.origin + first, widths, random)
    return _add_spikes(attribute, weights, random)


def _heap_factors(values: NDArray[np.int64], widths: NDArray[np.int64], random: np.random.Generator) -> ValueWeights:
    """How much more often round numbers are given than their neighbors, where a number has a cell of its own."""
    factors = np.ones(len(values))
    liking = random.uniform(0.1, 0.8)
    for power, step in enumerate(reversed(_ROUND_NUMBERS)):
        factors = np.where((widths == 1) & (values % step == 0), 1 + liking * (power + 1), factors)
    return factors


def _add_spikes(attribute: Ranged, weights: ValueWeights, random: np.random.Generator) -> ValueWeights:
    """Declared spikes and zero hold a share of all rows, however wide the range is."""
    steps = [attribute.step_of(spike) for spike in attribute.spikes]
    if not isinstance(attribute, Datetime) and 0 <= -attribute.origin < attribute.steps:
        steps.append(-attribute.origin)
    if not steps:
        return weights
    cells = attribute.grid().cell_of(np.array(steps, np.int64))
    share = random.uniform(0.1, 0.45)
    spread: ValueWeights = weights / weights.sum() * (1 - share)
    np.add.at(spread, cells, share * random.dirichlet(np.ones(len(cells))))
    return spread


# ── Which columns of a schema speak of region, sex and wage, by their names ──


_REGION_WORDS = ("region", "city", "county", "district", "state", "province", "puma", "municipality", "canton")
_SEX_WORDS = ("sex", "gender")
_WAGE_WORDS = ("incwage", "wage", "wages", "income", "salary", "earnings", "pincp", "pay")


@dataclass(frozen=True, slots=True)
class WageEffect:
    """Wages differ by sex, and by how much differs by region.

    Attributes:
        region: the attribute that names the region.
        sex: the attribute that names the sex.
        wage: the numbers that differ.
    """

    region: str
    sex: str
    wage: str


def find_wage_effect(schema: Schema) -> WageEffect | None:
    """The three columns, or None if the schema lacks one of them."""
    measured = [attribute for attribute in schema.measured_attributes if attribute.coded]
    region = _first_name_with([a.name for a in measured if not isinstance(a, Ranged)], _REGION_WORDS)
    sex = _first_name_with([a.name for a in measured if not isinstance(a, Ranged)], _SEX_WORDS)
    wage = _first_name_with([a.name for a in measured if isinstance(a, Ranged)], _WAGE_WORDS)
    return WageEffect(region, sex, wage) if region and sex and wage else None


def _first_name_with(names: list[str], wanted: tuple[str, ...]) -> str | None:
    """The first name that has one of these words in it, the words tried in their order."""
    for word in wanted:
        for name in names:
            if word in re.split(r"[^a-z0-9]+", name.lower()):
                return name
    return None
