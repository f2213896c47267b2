"""Which views to publish: sets of attributes whose tables are measured so that any other table can be worked out.

PriView (SIGMOD 2014) takes a covering design, the concept behind DPSyn random sets. How large views are, and whether
all pairs or all triples are covered, is decided by the noise that tables of pairs or triples are predicted to have.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpsyn.errors import UserError
from dpsyn.marginals import Clique
from dpsyn.selection.covering_design import MAX_SUBSETS, BlockCapacity, build_covering_design
from dpsyn.selection.pair_selection import CELL_POWER

MAX_VIEW_ATTRIBUTES = 12
"""Attributes of a view, unless they are asked for; beyond, views of binary attributes have thousands of cells."""

MAX_VIEW_CELLS = 5_000
"""Cells of a view (PrivSyn's γ), unless a single attribute has more; a pair with more is not covered."""

MAX_NOISE_RATIO = 1.5
"""Views as large as possible are taken whose noise is at most so many times the least: large views answer questions of
many attributes. Of binary attributes it takes views of six or seven (``bench/priview.py``)."""

NEGLIGIBLE_ERROR = 0.001
"""Noise of this share of the rows does not matter, so that views may be as large as they like up to it."""

MAX_TRIPLE_ERROR = 0.003
"""All triples are covered if their tables are predicted to be off by no more than this share of the rows."""

MAX_ATTRIBUTES_FOR_TRIPLES = 64
"""Attributes of which all triples may be covered; more take long to arrange."""


@dataclass(frozen=True, slots=True)
class CoveringViews:
    """A covering design: all sets of ``strength`` attributes are in a view of at most ``attributes``."""

    strength: int
    attributes: int


@dataclass(frozen=True, slots=True)
class RandomViews:
    """So many views of so many attributes each, at random; every attribute is in one at least."""

    number: int
    attributes: int


@dataclass(frozen=True, slots=True)
class AllViews:
    """Every set of ``ways`` attributes."""

    ways: int


ViewScheme = CoveringViews | RandomViews | AllViews
"""What a person may ask for."""

_FORMS: dict[str, type[CoveringViews] | type[RandomViews] | type[AllViews]] = {
    r"covering:(\d+)x(\d+)": CoveringViews,
    r"random:(\d+)x(\d+)": RandomViews,
    r"all:(\d+)": AllViews,
}


def parse_views(text: str) -> ViewScheme:
    """Views as people write them: ``covering:2x8``, ``random:50x8``, ``all:3``."""
    for form, kind in _FORMS.items():
        found = re.fullmatch(form, text.strip())
        if found:
            numbers = [int(number) for number in found.groups()]
            if min(numbers) < 1 or max(numbers) > 10_000 or (kind is CoveringViews and numbers[0] > min(3, numbers[1])):
                raise UserError(
                    f"views {text!r} make no sense; cover pairs (2) or triples (3) by views of as many or more"
                )
            return kind(*numbers)
    raise UserError(
        f"views {text!r} are not known; write covering:2x8 (all pairs in views of 8 attributes), random:50x8 (50 views "
        "of 8 random attributes) or all:3 (every 3 attributes)"
    )


@dataclass(frozen=True, slots=True)
class ViewNoise:
    """What decides how noisy views are.

    Attributes:
        rho: what they may cost together.
        sensitivity: how much one unit changes a table, in L2.
        rows: how many rows there are, about; public.
    """

    rho: float
    sensitivity: float
    rows: float


@dataclass(frozen=True, slots=True, eq=False)
class ViewSelection:
    """Views that were decided on.

    Attributes:
        cliques: their attributes.
        description: what they are, for people.
    """

    cliques: tuple[Clique, ...]
    description: str


def select_views(
    sizes: Mapping[str, int],
    noise: ViewNoise,
    scheme: ViewScheme | None = None,
    *,
    max_cells: int,
    max_total_cells: int,
) -> ViewSelection:
    """The views to measure: those asked for, or a covering design of the size and strength that the noise suggests.

    Args:
        sizes: the attributes, and how many values each has.
        noise: what the tables of views will have.
        scheme: what a person wants.
        max_cells: cells that a view may have.
        max_total_cells: cells that all views may have together; if a covering design has more, random views are taken.
    """
    names, numbers = tuple(sizes), tuple(sizes.values())
    max_cells = min(max_cells, max(MAX_VIEW_CELLS, *numbers))
    blocks: Sequence[Sequence[int]]
    if scheme is None:
        blocks, words = _suggest_views(numbers, noise, max_cells, max_total_cells)
    elif isinstance(scheme, CoveringViews):
        room = BlockCapacity(sizes=numbers, max_attributes=scheme.attributes, max_cells=max_cells)
        blocks, words = build_covering_design(room, scheme.strength), _describe_coverage(scheme.strength)
    elif isinstance(scheme, RandomViews):
        room = BlockCapacity(sizes=numbers, max_attributes=scheme.attributes, max_cells=max_cells)
        blocks, words = choose_random_views(room, scheme.number), "taken at random"
    else:
        ways = min(scheme.ways, len(names))
        if math.comb(len(names), ways) > max_total_cells:
            raise UserError(f"there are {math.comb(len(names), ways):,} sets of {ways} attributes; ask for fewer")
        blocks, words = list(combinations(range(len(names)), ways)), f"which are all sets of {ways}"
    longest = max(len(block) for block in blocks)
    error = predict_pair_error(numbers, blocks, noise)
    off = f"; a table of two attributes is predicted to be off by {_format_percent(error)} of the rows" if error else ""
    views = f"{len(blocks)} views of up to {longest} attributes" if len(blocks) > 1 else f"one view of {longest}"
    return ViewSelection(tuple(tuple(names[place] for place in block) for block in blocks), f"{views}, {words}{off}")


def _describe_coverage(strength: int) -> str:
    return {1: "which hold every attribute", 2: "which hold every pair"}.get(strength, "which hold every triple")


def _format_percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 1 else "all"


# ── what the noise suggests ──────────────────────────────────────────────────────────────────────────────────


def _suggest_views(
    sizes: tuple[int, ...], noise: ViewNoise, max_cells: int, max_total_cells: int
) -> tuple[Sequence[tuple[int, ...]], str]:
    """A covering design of triples or pairs; random views if that is too large."""
    for strength in (3, 2):
        if len(sizes) < strength or (strength == 3 and len(sizes) > MAX_ATTRIBUTES_FOR_TRIPLES):
            continue
        cells, error = _best_view_cells(sizes, strength, noise, max_cells)
        if strength == 3 and (error > MAX_TRIPLE_ERROR or cells * _min_views(sizes, strength, cells) > max_total_cells):
            continue
        room = BlockCapacity(sizes=sizes, max_attributes=min(len(sizes), MAX_VIEW_ATTRIBUTES), max_cells=cells)
        if len(sizes) ** strength <= MAX_SUBSETS and cells * _min_views(sizes, strength, cells) <= 2 * max_total_cells:
            design = build_covering_design(room, strength)
            if sum(room.count_cells(block) for block in design) <= max_total_cells:
                return design, _describe_coverage(strength)
    cells = max(64, max(sizes))
    room = BlockCapacity(sizes=sizes, max_attributes=min(len(sizes), MAX_VIEW_ATTRIBUTES), max_cells=cells)
    return choose_random_views(room, max(1, max_total_cells // (2 * cells))), "taken at random"


def _best_view_cells(sizes: tuple[int, ...], strength: int, noise: ViewNoise, max_cells: int) -> tuple[int, float]:
    """Cells of a view, and the error that a table of ``strength`` attributes is then predicted to have.

    The noise of m views of c cells has variance c·m/2ρ in a sum over a view, and a table of t attributes is in
    m·(ℓ choose t)/(d choose t) of them. So m does not matter: the variance of its interaction goes as
    c·(d choose t)/(ℓ choose t), with ℓ = log c / log s for attributes of s values.
    """
    largest = math.prod(sorted(sizes)[-strength:])  # the table that has most cells, which must fit
    least = min(max_cells, largest)
    each = math.exp(np.mean(np.log(sizes))) if max(sizes) > 1 else 1.0
    choices, errors = [], []
    for cells in sorted({least, *(2**power for power in range(2, 21) if least <= 2**power <= max_cells)}):
        length = min(len(sizes), MAX_VIEW_ATTRIBUTES, math.log(cells) / math.log(each) if each > 1 else len(sizes))
        length = max(length, strength)
        spread = math.prod((len(sizes) - n) / (length - n) for n in range(strength))
        deviation = noise.sensitivity * math.sqrt(cells * spread / (2 * noise.rho))
        choices.append(cells)
        errors.append(math.sqrt(2 / math.pi) * deviation * each ** (strength / 2) / (2 * noise.rows))
    allowed = max(MAX_NOISE_RATIO * min(errors), NEGLIGIBLE_ERROR)
    best = max(place for place, error in enumerate(errors) if error <= allowed)
    return choices[best], errors[best]


def _min_views(sizes: tuple[int, ...], strength: int, cells: int) -> int:
    """As many views as a covering design has at least, about."""
    each = math.exp(np.mean(np.log(sizes)))
    length = min(len(sizes), MAX_VIEW_ATTRIBUTES, math.log(cells) / math.log(each) if each > 1 else len(sizes))
    return math.ceil(math.prod(max((len(sizes) - n) / max(length - n, 1.0), 1.0) for n in range(strength)))


def predict_pair_error(sizes: tuple[int, ...], blocks: Sequence[Sequence[int]], noise: ViewNoise) -> float:
    """The share of rows that tables of two attributes are predicted to have in wrong cells, on average; 0 for no pairs.

    That is half the sum of |errors|, c·σ·√(2/π)/2 for c cells. The variance of a cell follows from that of the
    components of a table (``query/blue.py``); pairs that no view holds are left out.
    """
    cells = np.array([math.prod([sizes[place] for place in block]) for block in blocks], np.float64)
    shares = noise.rho * cells**CELL_POWER / (cells**CELL_POWER).sum()
    precisions = 2 * shares / noise.sensitivity**2 / cells  # of a sum over all cells of a view
    member = np.zeros((len(blocks), len(sizes)))
    for row, block in zip(member, blocks, strict=True):
        row[list(block)] = 1.0
    pairs = member.T @ (member * precisions[:, None])
    one, other = np.triu_indices(len(sizes), 1)
    held = pairs[one, other] > 0
    one, other, contrasts = one[held], other[held], np.array(sizes, np.float64) - 1
    if not len(one):
        return 0.0
    alone, together = contrasts / np.diag(pairs), contrasts[one] * contrasts[other] / pairs[one, other]
    deviations = np.sqrt(1 / precisions.sum() + alone[one] + alone[other] + together)  # of a cell, times its number
    return float(deviations.mean()) * math.sqrt(2 / math.pi) / (2 * noise.rows)


def choose_random_views(room: BlockCapacity, number: int, *, seed: int = 0) -> list[tuple[int, ...]]:
    """So many random sets of attributes, each as large as there is room for; together they hold every attribute.

    Attributes come in random order and are taken as long as they fit. The first sets take those that are in no set
    yet first; if that does not reach all of them, there are more sets than asked for.
    """
    rng, count = np.random.default_rng(seed), len(room.sizes)
    views: list[tuple[int, ...]] = []
    waiting = set(range(count))
    while len(views) < number or waiting:
        order = rng.permutation(count).tolist()
        if len(views) >= number - len(waiting):
            order.sort(key=lambda place: place not in waiting)
        view: list[int] = []
        for place in order:
            if room.fits([*view, place]):
                view.append(place)
        waiting.difference_update(view)
        views.append(tuple(sorted(view)))
    return views
