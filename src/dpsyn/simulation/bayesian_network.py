"""A random process that generates rows of a schema: a Bayesian network with hidden variables.

Attributes are sampled one after the other. Each depends on one to three earlier attributes and on one of a few hidden
variables, with a main effect of each parent and an interaction of every two parents. So there are three-way
interactions that no pair shows, and hidden variables that connect attributes without an edge between them. No tree or
sparse graph describes such a table.

Missing values are correlated as well: each attribute that can be missing belongs to one of a few blocks, and in some
rows a whole block is missing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn.schema import Attribute, Datetime, Ordinal, Ranged, Schema, Time

CodeColumn = NDArray[np.int64]

HIDDEN_CLASSES = (4, 5, 6)
"""The number of classes of each hidden variable."""

MISSING_BLOCKS = 3
"""Groups of attributes that are missing together."""

MAX_CONDITIONAL_CELLS = 2**18
"""Contexts × values of the conditional table of one attribute, so that all tables fit into memory for any schema."""

_MAX_GROUPS = 6
_PARENT_WINDOW = 12
"""Parents are mostly chosen among this many preceding attributes, because adjacent columns tend to be related."""


@dataclass(frozen=True, slots=True, eq=False)
class Parent:
    """A parent of an attribute: an earlier attribute or a hidden variable, with its values merged into groups."""

    axis: int
    group_of: CodeColumn

    @property
    def groups(self) -> int:
        """The number of groups."""
        return int(self.group_of.max()) + 1


@dataclass(frozen=True, slots=True, eq=False)
class AttributeStep:
    """How one attribute is sampled, given its parents.

    Attributes:
        axis: the attribute.
        parents: its parents; the groups of all of them are the context of a row.
        ends: cumulative probabilities of all values, one context after the other, each of total length one.
        block: the block it is missing with, or −1.
        missing: its probability of being missing if its block is present, and if its block is missing.
    """

    axis: int
    parents: tuple[Parent, ...]
    ends: ValueWeights
    block: int
    missing: tuple[float, float]

    def sample(
        self, columns: Sequence[CodeColumn], missing_blocks: NDArray[np.bool_], random: np.random.Generator
    ) -> CodeColumn:
        """Sample the codes of this attribute for rows, given their earlier codes."""
        rows = len(columns[0])
        context = np.zeros(rows, np.int64)
        for parent in self.parents:
            context = context * parent.groups + parent.group_of[columns[parent.axis]]
        values = len(self.ends) // int(np.prod([parent.groups for parent in self.parents], dtype=np.int64))
        positions = np.searchsorted(self.ends, context + random.random(rows), side="right") - context * values
        codes: CodeColumn = np.clip(positions, 0, values - 1)
        if self.block >= 0:
            rate = np.where(missing_blocks[:, self.block], self.missing[1], self.missing[0])
            codes = np.where(random.random(rows) < rate, values, codes)
        return codes


@dataclass(frozen=True, slots=True, eq=False)
class Process:
    """Attributes in the order in which they are sampled, after the hidden variables.

    Attributes:
        steps: one for each attribute; axes count the attributes, then the hidden variables.
        hidden: probabilities of the classes of each hidden variable.
        blocks: the probability that each block is missing.
    """

    steps: tuple[AttributeStep, ...]
    hidden: tuple[ValueWeights, ...]
    blocks: ValueWeights

    def sample(self, rows: int, random: np.random.Generator) -> list[CodeColumn]:
        """Sample the codes of rows, one column for each attribute."""
        zeros = np.zeros(rows, np.int64)
        columns = [zeros] * (len(self.steps) + len(self.hidden))
        for number, weights in enumerate(self.hidden):
            columns[len(self.steps) + number] = random.choice(len(weights), rows, p=weights)
        missing_blocks = random.random((rows, len(self.blocks))) < self.blocks
        for step in self.steps:
            columns[step.axis] = step.sample(columns, missing_blocks, random)
        return columns[: len(self.steps)]


def random_process(schema: Schema, seed: int) -> Process:
    """A random process for the coded attributes of a schema; it depends only on the schema and the seed."""
    random = np.random.default_rng([seed, 0])
    attributes = [attribute for attribute in schema.modeled_attributes if attribute.coded]
    effect = find_wage_effect(schema)
    hidden = tuple(random.dirichlet(np.full(classes, 3.0)) for classes in HIDDEN_CLASSES)
    sizes = [attribute.cells for attribute in attributes] + [len(weights) for weights in hidden]
    ordered = [isinstance(attribute, Ranged | Ordinal) for attribute in attributes] + [False] * len(hidden)
    sampled: list[int] = []
    shapes: dict[int, ValueWeights] = {}
    steps = []
    for axis in _sampling_order(attributes, effect):
        attribute = attributes[axis]
        chosen = _choose_parents(attributes, axis, sampled, effect, random)
        max_groups = max(2, int((MAX_CONDITIONAL_CELLS / attribute.proper_cells) ** (1 / max(1, len(chosen) + 1))))
        latent = len(attributes) + int(random.integers(len(hidden)))
        parents = tuple(
            Parent(p, _group_codes(sizes[p], min(max_groups, _MAX_GROUPS), ordered[p], shapes.get(p), random))
            for p in (*chosen, latent)
        )
        shapes[axis] = random_shape(attribute, random)
        tilt = _wage_tilt(attributes, axis, parents, effect, random)
        ends = _conditional_table(attribute, shapes[axis], parents, tilt, random)
        block = int(random.integers(MISSING_BLOCKS)) if attribute.has_missing else -1
        steps.append(
            AttributeStep(axis, parents, ends, block, (random.uniform(0.005, 0.08), random.uniform(0.7, 0.98)))
        )
        sampled.append(axis)
    return Process(tuple(steps), hidden, random.uniform(0.05, 0.25, MISSING_BLOCKS))


def _sampling_order(attributes: Sequence[Attribute], effect: WageEffect | None) -> list[int]:
    """The order of the table, but with wages last, because they depend on other attributes."""
    return sorted(range(len(attributes)), key=lambda p: effect is not None and attributes[p].name == effect.wage)


def _choose_parents(
    attributes: Sequence[Attribute],
    axis: int,
    sampled: Sequence[int],
    effect: WageEffect | None,
    random: np.random.Generator,
) -> list[int]:
    """The earlier attributes that an attribute depends on: mostly adjacent ones, sometimes a distant one."""
    if effect is not None and attributes[axis].name == effect.wage:
        names = [attribute.name for attribute in attributes]
        return [names.index(effect.region), names.index(effect.sex)]
    near = list(sampled[-_PARENT_WINDOW:])
    far = [p for p in sampled[:-_PARENT_WINDOW] if random.random() < 2 / max(2, len(sampled))]
    candidates = near + far
    count = min(len(candidates), int(random.integers(1, 4)))
    return [int(p) for p in random.choice(candidates, count, replace=False)] if count else []


def _group_codes(
    size: int, max_groups: int, ordered: bool, weights: ValueWeights | None, random: np.random.Generator
) -> CodeColumn:
    """The group of every code: intervals of about equal weight for ordered values, else random sets; none is empty."""
    groups_wanted = min(size, max_groups)
    if size <= groups_wanted:
        return np.arange(size)
    shares = np.full(size, 1 / size) if weights is None else np.append(weights, np.zeros(size - len(weights)))
    order = np.arange(size) if ordered else random.permutation(size)
    middle = np.cumsum(shares[order]) - shares[order] / 2
    groups = np.empty(size, np.int64)
    groups[order] = np.clip((middle * groups_wanted).astype(np.int64), 0, groups_wanted - 1)
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def _conditional_table(
    attribute: Attribute,
    shape: ValueWeights,
    parents: Sequence[Parent],
    tilt: ValueWeights | None,
    random: np.random.Generator,
) -> ValueWeights:
    """Cumulative probabilities of values in every context: the shape, with effects of parents and of pairs of them."""
    groups = [parent.groups for parent in parents]
    positions, values = value_positions(attribute, shape, random), len(shape)
    logs = np.log(shape).reshape((1,) * len(groups) + (values,))
    smooth = isinstance(attribute, Ranged | Ordinal)
    for axis, number in enumerate(groups):
        logs = logs + _random_effect(number, positions, smooth, random.uniform(0.6, 1.8), random).reshape(
            [number if other == axis else 1 for other in range(len(groups))] + [values]
        )
    for first in range(len(groups)):
        for second in range(first + 1, len(groups)):
            shape_of_pair = [number if axis in (first, second) else 1 for axis, number in enumerate(groups)]
            pair = _random_effect(groups[first] * groups[second], positions, smooth, random.uniform(0.3, 1.5), random)
            logs = logs + pair.reshape([*shape_of_pair, values])
    if tilt is not None:
        logs = logs + (tilt.reshape(*tilt.shape, *(1,) * (len(groups) - 2))[..., None] * positions)
    logs = np.broadcast_to(logs, (*groups, values)).reshape(-1, values)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    ends = np.cumsum(weights, axis=1)
    ends /= ends[:, -1:]
    steps: ValueWeights = (ends + np.arange(float(len(ends)))[:, None]).ravel()
    return steps


def _random_effect(
    contexts: int, positions: ValueWeights, smooth: bool, strength: float, random: np.random.Generator
) -> ValueWeights:
    """The effect of each context on the log weights of the values: linear and quadratic, plus noise if not ordered."""
    tilt, bend = random.normal(0, strength, (2, contexts, 1))
    effect: ValueWeights = 1.5 * tilt * positions + bend * (positions**2 - 1 / 3)
    if not smooth:
        effect = effect + random.normal(0, 0.7 * strength, (contexts, len(positions)))
    return effect


def _wage_tilt(
    attributes: Sequence[Attribute],
    axis: int,
    parents: Sequence[Parent],
    effect: WageEffect | None,
    random: np.random.Generator,
) -> ValueWeights | None:
    """The effect on wages of every group of regions and every sex; the gap between sexes differs by region."""
    if effect is None or attributes[axis].name != effect.wage:
        return None
    regions, sexes = parents[0].groups, parents[1].groups
    level, gap = random.normal(0, 0.5, (regions, 1)), random.normal(1.0, 0.7, (regions, 1))
    sides = np.linspace(0.5, -0.5, sexes)[None, :] if sexes > 1 else np.zeros((1, 1))
    return level + gap * sides


# ── distributions of single attributes: skew, modes, spikes and heaping on round numbers ────────────────────


ValueWeights = NDArray[np.float64]

WIDE_RANGE_STEPS = 2_000
"""Ranges with more steps are skewed like amounts of money: their logarithm has the modes."""

_ROUND_NUMBERS = (1_000, 500, 100, 50, 10, 5)
"""Units that people round to."""


def random_shape(attribute: Attribute, random: np.random.Generator) -> ValueWeights:
    """Random positive weights of the non-missing cells of an attribute; they add up to one."""
    if isinstance(attribute, Ranged):
        weights = _range_weights(attribute, random)
    elif isinstance(attribute, Ordinal):
        weights = _bump_weights(np.linspace(0, 1, attribute.proper_cells), random)
    else:
        weights = _zipf_weights(attribute.proper_cells, random)
    shares: ValueWeights = weights / weights.sum()
    return shares


def value_positions(attribute: Attribute, weights: ValueWeights, random: np.random.Generator) -> ValueWeights:
    """The position of each value between −1 and 1: its rank by weight if values are ordered, else random."""
    if isinstance(attribute, Ranged | Ordinal):
        ends = np.cumsum(weights)
        ranks: ValueWeights = ends + np.concatenate([[0.0], ends[:-1]]) - 1
        return ranks
    return random.uniform(-1, 1, len(weights))


def _zipf_weights(size: int, random: np.random.Generator) -> ValueWeights:
    """Few frequent categories and many rare ones (Zipf's law with an offset), in random order."""
    ranks = np.arange(size) + random.uniform(0.5, 4)
    weights: ValueWeights = random.permutation(ranks ** -random.uniform(0.8, 2.2))
    return weights


def _bump_weights(positions: ValueWeights, random: np.random.Generator) -> ValueWeights:
    """One to three Gaussian modes on a low uniform floor, at positions between 0 and 1."""
    weights = np.full(len(positions), 0.05)
    for _ in range(random.integers(1, 4)):
        center, width = random.beta(1.2, 2.0), random.uniform(0.05, 0.25)
        weights += random.uniform(0.3, 1) * np.exp(-0.5 * ((positions - center) / width) ** 2)
    return weights


def _range_weights(attribute: Ranged, random: np.random.Generator) -> ValueWeights:
    edges = attribute.grid().edges
    first, widths = edges[:-1], np.diff(edges)
    middle = first + (widths - 1) / 2
    if attribute.steps > WIDE_RANGE_STEPS and not isinstance(attribute, Datetime | Time):
        far = np.log1p(np.abs(attribute.origin + middle))
        weights = _bump_weights(far / max(far.max(), 1e-9), random) * widths / (1 + np.abs(attribute.origin + middle))
    else:
        weights = _bump_weights(middle / max(attribute.steps - 1, 1), random) * widths
    if isinstance(attribute, Datetime | Time):
        weights = weights * (1 + 0.3 * np.sin(middle / max(attribute.steps, 1) * random.uniform(6, 40)))
    else:
        weights = weights * _heap_factors(attribute.origin + first, widths, random)
    return _add_spikes(attribute, weights, random)


def _heap_factors(values: NDArray[np.int64], widths: NDArray[np.int64], random: np.random.Generator) -> ValueWeights:
    """Factors by which round numbers are more frequent than others, if a number has its own cell (heaping)."""
    factors = np.ones(len(values))
    preference = random.uniform(0.1, 0.8)
    for power, step in enumerate(reversed(_ROUND_NUMBERS)):
        factors = np.where((widths == 1) & (values % step == 0), 1 + preference * (power + 1), factors)
    return factors


def _add_spikes(attribute: Ranged, weights: ValueWeights, random: np.random.Generator) -> ValueWeights:
    """Give declared spikes and zero a fixed share of all rows, however wide the range is."""
    steps = [attribute.step_of(spike) for spike in attribute.spikes]
    if not isinstance(attribute, Datetime | Time) and 0 <= -attribute.origin < attribute.steps:
        steps.append(-attribute.origin)
    if not steps:
        return weights
    cells = attribute.grid().cell_of(np.array(steps, np.int64))
    share = random.uniform(0.1, 0.45)
    spread: ValueWeights = weights / weights.sum() * (1 - share)
    np.add.at(spread, cells, share * random.dirichlet(np.ones(len(cells))))
    return spread


# ── wages: columns for region, sex and wage, recognized by their names ───────────────────────────────────────


_REGION_WORDS = ("region", "city", "county", "district", "state", "province", "puma", "municipality", "canton")
_SEX_WORDS = ("sex", "gender")
_WAGE_WORDS = ("incwage", "wage", "wages", "income", "salary", "earnings", "pincp", "pay")


@dataclass(frozen=True, slots=True)
class WageEffect:
    """A three-way interaction: wages differ by sex, and the difference varies by region.

    Attributes:
        region: the attribute that names the region.
        sex: the attribute that names the sex.
        wage: the attribute with the wages.
    """

    region: str
    sex: str
    wage: str


def find_wage_effect(schema: Schema) -> WageEffect | None:
    """The three columns; None if the schema lacks one of them."""
    measured = [attribute for attribute in schema.modeled_attributes if attribute.coded]
    region = _first_name_with([a.name for a in measured if not isinstance(a, Ranged)], _REGION_WORDS)
    sex = _first_name_with([a.name for a in measured if not isinstance(a, Ranged)], _SEX_WORDS)
    wage = _first_name_with([a.name for a in measured if isinstance(a, Ranged)], _WAGE_WORDS)
    return WageEffect(region, sex, wage) if region and sex and wage else None


def _first_name_with(names: list[str], words: tuple[str, ...]) -> str | None:
    """The first name that contains one of these words; earlier words take precedence."""
    for word in words:
        for name in names:
            if word in re.split(r"[^a-z0-9]+", name.lower()):
                return name
    return None
