"""Covering designs: few sets of attributes, none too large, such that every t attributes are together in one of them.

PriView (SIGMOD 2014, section 4.2) measures such sets as its views: what t attributes say together is then known.
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
    boolean_quadruples,
    inversive_plane,
    projective_plane,
)

Block = tuple[int, ...]
"""Places of attributes, ascending."""

MAX_SUBSETS = 20_000_000
"""Entries of the table of what is covered, dᵗ: 270 attributes by threes."""

MAX_GROUP_UNIONS = 20_000
"""Unions of groups that are worth listing: a design of more views than that is never measured."""

IMPROVEMENT_ATTEMPTS = 200
"""Attempts to make a design smaller; more find little."""

FULL_EFFORT_SUBSETS = 50_000
"""Entries of the table of what is covered up to which all attempts are made; beyond, in proportion fewer."""

REMOVED_BLOCKS = (2, 7)
"""How many blocks an attempt takes out: from, below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCapacity:
    """What a set of attributes may have.

    Attributes:
        sizes: the number of values of every attribute.
        max_attributes: so many at most.
        max_cells: the product of their sizes, at most.
    """

    sizes: tuple[int, ...]
    max_attributes: int
    max_cells: int

    def __post_init__(self) -> None:
        if not self.sizes or self.max_attributes < 1 or max(self.sizes) > self.max_cells:
            raise InternalError(
                f"sets of {self.max_attributes} attributes and {self.max_cells} cells cannot hold every one"
            )

    def count_cells(self, block: Sequence[int]) -> int:
        """The cells of the attributes at these places."""
        return math.prod([self.sizes[place] for place in block])

    def fits(self, block: Sequence[int]) -> bool:
        """Whether the attributes at these places may be together."""
        return len(block) <= self.max_attributes and self.count_cells(block) <= self.max_cells


def build_covering_design(
    room: BlockCapacity, strength: int, *, attempts: int = IMPROVEMENT_ATTEMPTS, seed: int = 0
) -> list[Block]:
    """Sets that hold all ``strength`` attributes that fit into a set together, and every attribute.

    The smallest of a greedy design, of all unions of ``strength`` groups of attributes, and, where all attributes have
    the same size, of finite geometries with attributes for points; improved by taking sets out and covering anew what
    is missing. The same room, strength and seed give the same design.
    """
    strength = min(strength, room.max_attributes, len(room.sizes))
    if strength < 1 or len(room.sizes) ** strength > MAX_SUBSETS:
        raise InternalError(f"{len(room.sizes)} attributes cannot be covered by {strength}s")
    rng = np.random.default_rng(seed)
    best: list[Block] = []
    for design in ([], *_constructions(room, strength)):
        cover = _Cover(room, strength)
        for block in design:
            cover.add(block)
        _complete(cover, rng)
        _prune(cover, rng)
        if not best or _design_size(cover.blocks, room) < _design_size(best, room):
            best = list(cover.blocks)
    attempts = min(attempts, attempts * FULL_EFFORT_SUBSETS // len(room.sizes) ** strength)
    best = _improve_design(best, room, strength, attempts, rng)
    held = {place for block in best for place in block}
    return sorted([*best, *((place,) for place in range(len(room.sizes)) if place not in held)])


def _design_size(design: Sequence[Block], room: BlockCapacity) -> tuple[int, int]:
    """What a good design has little of: blocks, then cells."""
    return len(design), sum(room.count_cells(block) for block in design)


# ── constructions ────────────────────────────────────────────────────────────────────────────────────────────


def _constructions(room: BlockCapacity, strength: int) -> Iterator[list[Block]]:
    """Designs that have a formula; what they leave uncovered is added afterwards."""
    groups = _groups(room, strength)
    if math.comb(len(groups), strength) <= MAX_GROUP_UNIONS:
        yield [_union(groups, some) for some in combinations(range(len(groups)), min(strength, len(groups)))]
    if len(set(room.sizes)) == 1:
        longest = max(n for n in range(1, room.max_attributes + 1) if room.sizes[0] ** n <= room.max_cells)
        for lines in _geometries(strength, longest):
            yield from _deal_attributes(lines, len(room.sizes), longest)


def _geometries(strength: int, max_length: int) -> Iterator[list[Block]]:
    """Sets of few points that hold every pair, or every triple, of points exactly once."""
    orders = [order for order in FIELD_ORDERS if order <= max_length]
    if strength == 2:
        yield from (affine_plane(order) for order in orders)
        yield from (projective_plane(order) for order in orders if order < max_length)
    if strength == 3:
        yield from (boolean_quadruples(power) for power in QUADRUPLE_EXPONENTS if max_length >= 4)
        yield from (inversive_plane(order) for order in orders if order < max_length)


def _groups(room: BlockCapacity, strength: int) -> list[Block]:
    """Attributes in few groups, so small that any ``strength`` groups fit together; the largest attributes first."""
    share = BlockCapacity(
        sizes=room.sizes,
        max_attributes=max(1, room.max_attributes // strength),
        max_cells=max(math.floor(room.max_cells ** (1 / strength) + 1e-9), max(room.sizes)),
    )
    groups: list[list[int]] = []
    for place in sorted(range(len(room.sizes)), key=lambda place: -room.sizes[place]):
        found = next((group for group in groups if share.fits([*group, place])), None)
        if found is None:
            groups.append([place])
        else:
            found.append(place)
    return [tuple(group) for group in groups]


def _deal_attributes(lines: Sequence[Block], count: int, max_length: int) -> Iterator[list[Block]]:
    """The lines of a geometry with attributes dealt to its points, if lines are then not too long."""
    points = max(map(max, lines)) + 1
    if len(lines[0]) * -(-count // points) <= max_length:
        dealt = [tuple(range(point, count, points)) for point in range(points)]
        yield [block for block in (_union(dealt, line) for line in lines) if len(block) > 1]


def _union(groups: Sequence[Block], chosen: Sequence[int]) -> Block:
    return tuple(sorted(place for group in chosen for place in groups[group]))


# ── what is covered ──────────────────────────────────────────────────────────────────────────────────────────


class _Cover:
    """Blocks, how many of them hold each t-subset, and which subsets are still open."""

    def __init__(self, room: BlockCapacity, strength: int) -> None:
        self.room, self.strength = room, strength
        self.blocks: list[Block] = []
        self.open = _coverable_subsets(room, strength)
        self._times = np.where(self.open, 0, 2)  # what cannot be covered counts as covered twice, for ever

    def add(self, block: Block) -> None:
        """One block more; what does not fit is left out."""
        if self.room.fits(block):
            self.blocks.append(block)
            held = self._subsets(block)
            self._times[held] += 1
            self.open[held] = False

    def remove(self, index: int) -> None:
        """One block less."""
        held = self._subsets(self.blocks.pop(index))
        self._times[held] -= 1
        self.open[held] = self._times[held] == 0

    def is_needed(self, index: int) -> bool:
        """Whether a block holds something that no other does."""
        return bool((self._times[self._subsets(self.blocks[index])] == 1).any())

    def _subsets(self, block: Block) -> tuple[NDArray[np.intp], ...]:
        return np.ix_(*[np.array(block)] * self.strength)


def _coverable_subsets(room: BlockCapacity, strength: int) -> NDArray[np.bool_]:
    """Which subsets, in every order of their attributes, name none twice and are small enough for a block."""
    count = len(room.sizes)
    axes = np.meshgrid(*[np.arange(count)] * strength, indexing="ij", sparse=True)
    cells = np.ones((1,) * strength)
    for axis in axes:
        cells = cells * np.array(room.sizes, np.float64)[axis]
    possible = np.broadcast_to(cells <= room.max_cells, (count,) * strength).copy()
    for one, other in combinations(axes, 2):
        possible &= one != other
    return possible


# ── greedy, and better ───────────────────────────────────────────────────────────────────────────────────────


def _complete(cover: _Cover, rng: np.random.Generator) -> None:
    """Add blocks until nothing is open."""
    while cover.open.any():
        cover.add(tuple(sorted(_next_block(cover, rng))))


def _next_block(cover: _Cover, rng: np.random.Generator) -> list[int]:
    """An open subset, grown by the attributes that close most, for their size, as long as there is room."""
    open_, sizes = cover.open, np.array(cover.room.sizes, np.float64)
    block, left = [], open_
    while left.ndim:
        weights = left.sum(axis=tuple(range(1, left.ndim)))
        block.append(_pick_largest(weights.astype(np.float64), rng))
        left = left[block[-1]]
    closed, seen = np.zeros(len(sizes)), 0
    while True:
        for fewer in combinations(block, cover.strength - 1):
            if seen == 0 or block[-1] in fewer:
                closed += open_[fewer]
        seen = len(block)
        room = np.full(len(sizes), len(block) < cover.room.max_attributes)
        room &= np.prod(sizes[block]) * sizes <= cover.room.max_cells
        room[block] = False
        gains = np.where(room, closed, 0.0) / np.log2(sizes + 1)
        if not gains.any():
            return block
        block.append(_pick_largest(gains, rng))


def _pick_largest(weights: NDArray[np.float64], rng: np.random.Generator) -> int:
    """One of the largest, at random."""
    return int(rng.choice(np.flatnonzero(weights >= weights.max() * (1 - 1e-9))))


def _prune(cover: _Cover, rng: np.random.Generator) -> None:
    """Remove blocks that hold nothing by themselves."""
    for block in [cover.blocks[place] for place in rng.permutation(len(cover.blocks))]:
        place = cover.blocks.index(block)
        if not cover.is_needed(place):
            cover.remove(place)


def _improve_design(
    design: list[Block], room: BlockCapacity, strength: int, attempts: int, rng: np.random.Generator
) -> list[Block]:
    """Take a few blocks out, cover anew what they had covered alone, and keep what is not worse."""
    cover, best = _Cover(room, strength), design
    for block in design:
        cover.add(block)
    for _ in range(attempts if len(design) > 1 else 0):
        for place in sorted(rng.permutation(len(cover.blocks))[: rng.integers(*REMOVED_BLOCKS)], reverse=True):
            cover.remove(place)
        _complete(cover, rng)
        _prune(cover, rng)
        if _design_size(cover.blocks, room) <= _design_size(best, room):
            best = list(cover.blocks)
            continue
        for block in set(cover.blocks) - set(best):
            cover.remove(cover.blocks.index(block))
        for block in set(best) - set(cover.blocks):
            cover.add(block)
    return best
