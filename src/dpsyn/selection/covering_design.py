"""Covering designs: few blocks of attributes, none too large, such that every t attributes are together in a block.

PriView (SIGMOD 2014, section 4.2) measures such blocks as its views, so every t-way marginal is contained in a view.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.selection.finite_geometry import (
    FIELD_ORDERS,
    QUADRUPLE_EXPONENTS,
    affine_plane,
    binary_flats,
    boolean_quadruples,
    cyclic_design,
    inversive_plane,
    projective_plane,
)

Block = tuple[int, ...]
"""A block: indices of attributes, ascending."""

MAX_SUBSETS = 20_000_000
"""The maximum number dᵗ of entries of the table of covered subsets; enough for all triples of 270 attributes."""

MAX_GROUP_UNIONS = 20_000
"""The maximum number of unions of groups that are listed; a design with more views is never measured."""

IMPROVEMENT_ATTEMPTS = 200
"""Attempts to make a design smaller; more attempts gain little."""

FULL_EFFORT_SUBSETS = 50_000
"""The number of entries of that table up to which all attempts are made; beyond, fewer in proportion."""

REMOVED_BLOCKS = (2, 7)
"""The number of blocks that an attempt removes: at least the first, less than the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCapacity:
    """The limits of a block.

    Attributes:
        sizes: the number of values of every attribute.
        max_attributes: the maximum number of attributes of a block.
        max_cells: the maximum number of cells of a block, the product of its sizes.
    """

    sizes: tuple[int, ...]
    max_attributes: int
    max_cells: int

    def __post_init__(self) -> None:
        if not self.sizes or self.max_attributes < 1 or max(self.sizes) > self.max_cells:
            raise InternalError(
                f"blocks of {self.max_attributes} attributes and {self.max_cells} cells cannot hold every attribute"
            )

    def count_cells(self, block: Sequence[int]) -> int:
        """The number of cells of a block."""
        return math.prod([self.sizes[index] for index in block])

    def fits(self, block: Sequence[int]) -> bool:
        """Whether a block is within the limits."""
        return len(block) <= self.max_attributes and self.count_cells(block) <= self.max_cells


def build_covering_design(
    capacity: BlockCapacity, strength: int, *, attempts: int = IMPROVEMENT_ATTEMPTS, seed: int = 0
) -> list[Block]:
    """Build blocks that cover every set of ``strength`` attributes that fits into a block, and every attribute.

    The result is the smallest of a greedy design, of all unions of ``strength`` groups of attributes, and, if all
    attributes have the same size, of finite geometries whose points are attributes. It is then improved by removing
    blocks and covering again what is missing. The same capacity, strength and seed give the same design.
    """
    strength = min(strength, capacity.max_attributes, len(capacity.sizes))
    if strength < 1 or len(capacity.sizes) ** strength > MAX_SUBSETS:
        raise InternalError(f"sets of {strength} of {len(capacity.sizes)} attributes are too many to cover")
    rng = np.random.default_rng(seed)
    best: list[Block] = []
    for design in ([], *_constructions(capacity, strength)):
        cover = _Cover(capacity, strength)
        for block in design:
            cover.add(block)
        _complete(cover, rng)
        _prune(cover, rng)
        if not best or _design_size(cover.blocks, capacity) < _design_size(best, capacity):
            best = list(cover.blocks)
    attempts = min(attempts, attempts * FULL_EFFORT_SUBSETS // len(capacity.sizes) ** strength)
    best = _improve_design(best, capacity, strength, attempts, rng)
    held = {index for block in best for index in block}
    return sorted([*best, *((index,) for index in range(len(capacity.sizes)) if index not in held)])


def _design_size(design: Sequence[Block], capacity: BlockCapacity) -> tuple[int, int]:
    """The criterion of a design, less is better: the number of blocks, then of cells."""
    return len(design), sum(capacity.count_cells(block) for block in design)


# ── constructions ────────────────────────────────────────────────────────────────────────────────────────────


def _constructions(capacity: BlockCapacity, strength: int) -> Iterator[list[Block]]:
    """Designs by formula; subsets that they leave uncovered are covered afterwards."""
    groups = _groups(capacity, strength)
    if math.comb(len(groups), strength) <= MAX_GROUP_UNIONS:
        yield [_union(groups, chosen) for chosen in combinations(range(len(groups)), min(strength, len(groups)))]
    if len(set(capacity.sizes)) == 1:
        longest = max(n for n in range(1, capacity.max_attributes + 1) if capacity.sizes[0] ** n <= capacity.max_cells)
        for lines in _geometries(strength, longest):
            yield from _deal_attributes(lines, len(capacity.sizes), longest)


def _geometries(strength: int, max_length: int) -> Iterator[list[Block]]:
    """Finite geometries: lines or circles that hold every pair, or every triple, of points, most of them once."""
    orders = [order for order in FIELD_ORDERS if order <= max_length]
    if strength == 2:
        yield from (affine_plane(order) for order in orders)
        yield from (projective_plane(order) for order in orders if order < max_length)
        yield cyclic_design()
    if strength == 3:
        yield from (boolean_quadruples(power) for power in QUADRUPLE_EXPONENTS if max_length >= 4)
        yield from (inversive_plane(order) for order in orders if order < max_length)
        yield binary_flats()


def _groups(capacity: BlockCapacity, strength: int) -> list[Block]:
    """Split attributes into few groups, the largest first, so small that any ``strength`` groups fit into a block."""
    group_capacity = BlockCapacity(
        sizes=capacity.sizes,
        max_attributes=max(1, capacity.max_attributes // strength),
        max_cells=max(math.floor(capacity.max_cells ** (1 / strength) + 1e-9), max(capacity.sizes)),
    )
    groups: list[list[int]] = []
    for index in sorted(range(len(capacity.sizes)), key=lambda index: -capacity.sizes[index]):
        first_fit = next((group for group in groups if group_capacity.fits([*group, index])), None)
        if first_fit is None:
            groups.append([index])
        else:
            first_fit.append(index)
    return [tuple(group) for group in groups]


def _deal_attributes(lines: Sequence[Block], count: int, max_length: int) -> Iterator[list[Block]]:
    """The lines of a geometry with attributes dealt to its points, unless lines become too long."""
    points = max(map(max, lines)) + 1
    if len(lines[0]) * -(-count // points) <= max_length:
        dealt = [tuple(range(point, count, points)) for point in range(points)]
        yield [block for block in (_union(dealt, line) for line in lines) if len(block) > 1]


def _union(groups: Sequence[Block], chosen: Sequence[int]) -> Block:
    return tuple(sorted(index for group in chosen for index in groups[group]))


# ── covered subsets ──────────────────────────────────────────────────────────────────────────────────────────


class _Cover:
    """Blocks, the number of blocks that hold each t-subset, and the subsets that are still open."""

    def __init__(self, capacity: BlockCapacity, strength: int) -> None:
        self.capacity, self.strength = capacity, strength
        self.blocks: list[Block] = []
        self.open = _coverable_subsets(capacity, strength)
        self._times = np.where(self.open, 0, 2)  # subsets that cannot be covered always count as covered twice

    def add(self, block: Block) -> None:
        """Add a block, unless it does not fit."""
        if self.capacity.fits(block):
            self.blocks.append(block)
            held = self._subsets(block)
            self._times[held] += 1
            self.open[held] = False

    def remove(self, index: int) -> None:
        """Remove a block."""
        held = self._subsets(self.blocks.pop(index))
        self._times[held] -= 1
        self.open[held] = self._times[held] == 0

    def is_needed(self, index: int) -> bool:
        """Whether a block holds a subset that no other block holds."""
        return bool((self._times[self._subsets(self.blocks[index])] == 1).any())

    def _subsets(self, block: Block) -> tuple[NDArray[np.intp], ...]:
        return np.ix_(*[np.array(block)] * self.strength)


def _coverable_subsets(capacity: BlockCapacity, strength: int) -> NDArray[np.bool_]:
    """Which tuples of attributes have no attribute twice and are small enough for a block."""
    count = len(capacity.sizes)
    axes = np.meshgrid(*[np.arange(count)] * strength, indexing="ij", sparse=True)
    cells = np.ones((1,) * strength)
    for axis in axes:
        cells = cells * np.array(capacity.sizes, np.float64)[axis]
    possible = np.broadcast_to(cells <= capacity.max_cells, (count,) * strength).copy()
    for one, other in combinations(axes, 2):
        possible &= one != other
    return possible


# ── greedy design and its improvement ────────────────────────────────────────────────────────────────────


def _complete(cover: _Cover, rng: np.random.Generator) -> None:
    """Add blocks until all subsets are covered."""
    while cover.open.any():
        cover.add(tuple(sorted(_next_block(cover, rng))))


def _next_block(cover: _Cover, rng: np.random.Generator) -> list[int]:
    """An open subset, extended by the attributes that cover most open subsets for their size, up to the capacity."""
    open_, sizes = cover.open, np.array(cover.capacity.sizes, np.float64)
    block, left = [], open_
    while left.ndim:
        weights = left.sum(axis=tuple(range(1, left.ndim)))
        block.append(_pick_largest(weights.astype(np.float64), rng))
        left = left[block[-1]]
    covered, seen = np.zeros(len(sizes)), 0
    while True:
        for fewer in combinations(block, cover.strength - 1):
            if seen == 0 or block[-1] in fewer:
                covered += open_[fewer]
        seen = len(block)
        fits = np.full(len(sizes), len(block) < cover.capacity.max_attributes)
        fits &= np.prod(sizes[block]) * sizes <= cover.capacity.max_cells
        fits[block] = False
        gains = np.where(fits, covered, 0.0) / np.log2(sizes + 1)
        if not gains.any():
            return block
        block.append(_pick_largest(gains, rng))


def _pick_largest(weights: NDArray[np.float64], rng: np.random.Generator) -> int:
    """The index of one of the largest weights, at random."""
    return int(rng.choice(np.flatnonzero(weights >= weights.max() * (1 - 1e-9))))


def _prune(cover: _Cover, rng: np.random.Generator) -> None:
    """Remove blocks that are not needed, in random order."""
    for block in [cover.blocks[index] for index in rng.permutation(len(cover.blocks))]:
        index = cover.blocks.index(block)
        if not cover.is_needed(index):
            cover.remove(index)


def _improve_design(
    design: list[Block], capacity: BlockCapacity, strength: int, attempts: int, rng: np.random.Generator
) -> list[Block]:
    """Repeatedly remove a few blocks and cover the open subsets again; keep the result if it is not worse."""
    cover, best = _Cover(capacity, strength), design
    for block in design:
        cover.add(block)
    for _ in range(attempts if len(design) > 1 else 0):
        for index in sorted(rng.permutation(len(cover.blocks))[: rng.integers(*REMOVED_BLOCKS)], reverse=True):
            cover.remove(index)
        _complete(cover, rng)
        _prune(cover, rng)
        if _design_size(cover.blocks, capacity) <= _design_size(best, capacity):
            best = list(cover.blocks)
            continue
        for block in set(cover.blocks) - set(best):
            cover.remove(cover.blocks.index(block))
        for block in set(best) - set(cover.blocks):
            cover.add(block)
    return best
