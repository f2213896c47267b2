"""View selection: sets of attributes whose marginals are measured, so that any other marginal can be reconstructed.

PriView (SIGMOD 2014, section 4.2) measures the blocks of a covering design; the concept paper behind DPSyn takes random
sets. If no scheme is given, the predicted noise of two-way and three-way marginals decides how large the views are, and
whether they cover all pairs or all triples of attributes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import UserError, quote_argument
from dpsyn.marginals import Clique
from dpsyn.selection.covering_design import MAX_SUBSETS, BlockCapacity, build_covering_design
from dpsyn.selection.pair_selection import CELL_POWER

Floats = NDArray[np.float64]

MAX_VIEW_ATTRIBUTES = 12
"""The maximum number of attributes of a view, unless the scheme gives one; with more, views of binary attributes have
thousands of cells."""

MAX_VIEW_CELLS = 5_000
"""The maximum number of cells of a view (PrivSyn's γ), unless one attribute alone has more values. A pair of attributes
with more cells is not covered."""

MAX_NOISE_RATIO = 1.5
"""Views are as large as possible with a noise of at most this multiple of the least: large views answer queries of many
attributes. Of binary attributes it takes views of six or seven (``bench/priview.py``)."""

MAX_LAPLACE_RATIO = 1.1
"""The same for the Laplace noise of views that cover pairs. It takes ℓ = 8 binary attributes, as the paper does: the
noise of pairs, ∝ 2^(ℓ/2)/(ℓ choose 2), is then 7 % above its least, at ℓ = 6, and so is that of triples, ∝
2^(ℓ/2)/(ℓ choose 3), at ℓ = 10; no other ℓ is within 10 % of both. So views that cover triples have the same size."""

NEGLIGIBLE_ERROR = 0.001
"""A predicted error of this share of the rows does not matter, so views may grow until they reach it."""

MAX_TRIPLE_ERROR = 0.003
"""All triples are covered if the predicted error of three-way marginals is at most this share of the rows."""

MAX_ATTRIBUTES_FOR_TRIPLES = 64
"""The maximum number of attributes of which all triples are covered; the design of more takes too long."""

_MAX_SCHEME_NUMBER = 10_000
"""The maximum of each number in a scheme. More views or attributes would never be measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoveringViews:
    """A covering design: every set of ``strength`` attributes is in a view (PriView, section 4.2).

    Written ``covering:2x8``: all pairs of attributes, in views of at most 8 attributes.

    Attributes:
        strength: t, the number of attributes of the sets that are covered: 1, 2 (all pairs) or 3 (all triples).
            Larger designs have too many views to be measured.
        attributes: ℓ, the maximum number of attributes of a view; at least ``strength``.

    Example:
        >>> parse_views("covering:2x8") == CoveringViews(strength=2, attributes=8)
        True
    """

    name: ClassVar[str] = "covering"

    strength: int
    attributes: int

    def __post_init__(self) -> None:
        _require_counts(self, strength=self.strength, attributes=self.attributes)
        if self.strength > min(3, self.attributes):
            raise UserError(
                f"views cannot cover sets of {self.strength} attributes by views of {self.attributes}; cover pairs (2) "
                f"or triples (3), by views of at least as many attributes"
            )

    def __str__(self) -> str:
        return f"{self.name}:{self.strength}x{self.attributes}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomViews:
    """Random sets of attributes; every attribute is in at least one of them (the concept paper behind DPSyn).

    Written ``random:50x8``: 50 views of at most 8 attributes each; ``random:50x8:7`` with the seed 7.

    Attributes:
        count: the number of views. There are more if otherwise an attribute would be in no view.
        attributes: the maximum number of attributes of a view.
        seed: which random sets; the same seed gives the same views. It is public and has nothing to do with the noise.

    Example:
        >>> parse_views("random:50x8:7") == RandomViews(count=50, attributes=8, seed=7)
        True
    """

    name: ClassVar[str] = "random"

    count: int
    attributes: int
    seed: int = 0

    def __post_init__(self) -> None:
        _require_counts(self, count=self.count, attributes=self.attributes)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed < 2**63:
            raise UserError(f"seed of the views RandomViews is {quote_argument(self.seed)}; give a whole number from 0")

    def __str__(self) -> str:
        return f"{self.name}:{self.count}x{self.attributes}" + (f":{self.seed}" if self.seed else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class AllViews:
    """Every set of ``ways`` attributes, such as all two-way marginals. Written ``all:2``.

    Attributes:
        ways: the number of attributes of each view.

    Example:
        >>> parse_views("all:3") == AllViews(ways=3)
        True
    """

    name: ClassVar[str] = "all"

    ways: int

    def __post_init__(self) -> None:
        _require_counts(self, ways=self.ways)

    def __str__(self) -> str:
        return f"{self.name}:{self.ways}"


ViewScheme = CoveringViews | RandomViews | AllViews
"""Which sets of attributes are measured as views. ``str`` gives the text that `parse_views` reads."""


def parse_views(text: str) -> ViewScheme:
    """Read a view scheme from its text: ``covering:2x8``, ``random:50x8``, ``random:50x8:7`` or ``all:3``."""
    if match := re.fullmatch(r"covering:(\d+)x(\d+)", text.strip()):
        return CoveringViews(strength=int(match[1]), attributes=int(match[2]))
    if match := re.fullmatch(r"random:(\d+)x(\d+)(?::(\d+))?", text.strip()):
        return RandomViews(count=int(match[1]), attributes=int(match[2]), seed=int(match[3] or 0))
    if match := re.fullmatch(r"all:(\d+)", text.strip()):
        return AllViews(ways=int(match[1]))
    raise UserError(
        f"views {quote_argument(text)} are not known; write covering:2x8 (all pairs in views of 8 attributes), "
        "random:50x8 (50 views of 8 random attributes; random:50x8:7 with the seed 7) or all:3 (every set of 3)"
    )


def _require_counts(scheme: object, **counts: int) -> None:
    """Refuse numbers of a scheme that are not integers from 1 to 10 000."""
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= _MAX_SCHEME_NUMBER:
            raise UserError(
                f"{name} of the views {type(scheme).__name__} is {quote_argument(count)}; "
                f"give a whole number from 1 to {_MAX_SCHEME_NUMBER:,}"
            )


@dataclass(frozen=True, slots=True)
class ViewNoise:
    """The quantities that determine the noise of views.

    Attributes:
        amount: the budget of all views together: ρ for Gaussian noise, ε for Laplace noise.
        sensitivity: the sensitivity of one marginal: in L2, or in L1 for Laplace noise.
        rows: the approximate number of rows; a public or a released number.
        pure: whether the noise is Laplace noise.
    """

    amount: float
    sensitivity: float
    rows: float
    pure: bool = False

    def variance(self, share: float | Floats) -> float | Floats:
        """The variance of a cell of a view with this share of the budget: Δ²/2ρ, or 2Δ²/ε²."""
        spent = self.amount * share
        return 2 * (self.sensitivity / spent) ** 2 if self.pure else self.sensitivity**2 / (2 * spent)


@dataclass(frozen=True, slots=True, eq=False)
class ViewSelection:
    """The selected views.

    Attributes:
        cliques: the attributes of each view.
        description: a phrase for people, such as "3 views of up to 8 attributes, which hold every pair".
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
    """Select the views to measure: those of a scheme, or a covering design whose size and strength suit the noise.

    Args:
        sizes: the attributes, and the number of values of each.
        noise: the noise of the views.
        scheme: which views to measure; None lets the noise decide.
        max_cells: the maximum number of cells of a view.
        max_total_cells: the maximum number of cells of all views together. If a covering design would have more,
            random views are selected.

    Privacy: costs nothing. The selection depends only on the schema, the budget and ``noise.rows``.
    """
    names, value_counts = tuple(sizes), tuple(sizes.values())
    max_cells = min(max_cells, max(MAX_VIEW_CELLS, *value_counts))
    blocks: Sequence[Sequence[int]]
    if scheme is None:
        blocks, property_phrase = _suggest_views(value_counts, noise, max_cells, max_total_cells)
    elif isinstance(scheme, CoveringViews):
        capacity = BlockCapacity(sizes=value_counts, max_attributes=scheme.attributes, max_cells=max_cells)
        blocks = build_covering_design(capacity, scheme.strength)
        property_phrase = _describe_coverage(scheme.strength)
    elif isinstance(scheme, RandomViews):
        capacity = BlockCapacity(sizes=value_counts, max_attributes=scheme.attributes, max_cells=max_cells)
        blocks = choose_random_views(capacity, scheme.count, seed=scheme.seed)
        property_phrase = "taken at random"
    else:
        ways = min(scheme.ways, len(names))
        if math.comb(len(names), ways) > max_total_cells:
            raise UserError(f"there are {math.comb(len(names), ways):,} sets of {ways} attributes; ask for fewer")
        blocks, property_phrase = list(combinations(range(len(names)), ways)), f"which are all sets of {ways}"
    longest = max(len(block) for block in blocks)
    error = predict_pair_error(value_counts, blocks, noise)
    error_phrase = f"; the predicted error of a two-way marginal is {_format_percent(error)} of the rows"
    views = f"{len(blocks)} views of up to {longest} attributes" if len(blocks) > 1 else f"one view of {longest}"
    return ViewSelection(
        tuple(tuple(names[index] for index in block) for block in blocks),
        f"{views}, {property_phrase}{error_phrase if error else ''}",
    )


def _describe_coverage(strength: int) -> str:
    return {1: "which hold every attribute", 2: "which hold every pair"}.get(strength, "which hold every triple")


def _format_percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 1 else "all"


# ── views that suit the noise ────────────────────────────────────────────────────────────────────────────────


def _suggest_views(
    sizes: tuple[int, ...], noise: ViewNoise, max_cells: int, max_total_cells: int
) -> tuple[Sequence[tuple[int, ...]], str]:
    """A covering design of triples or pairs; random views if that has too many cells."""
    if len(sizes) == 1:
        return [(0,)], "which is the whole table"
    for strength in (3, 2):
        if len(sizes) < strength or (strength == 3 and len(sizes) > MAX_ATTRIBUTES_FOR_TRIPLES):
            continue
        cells, error = _best_view_cells(sizes, strength, noise, max_cells)
        if strength == 3 and (error > MAX_TRIPLE_ERROR or cells * _min_views(sizes, strength, cells) > max_total_cells):
            continue
        capacity = BlockCapacity(sizes=sizes, max_attributes=min(len(sizes), MAX_VIEW_ATTRIBUTES), max_cells=cells)
        if len(sizes) ** strength <= MAX_SUBSETS and cells * _min_views(sizes, strength, cells) <= 2 * max_total_cells:
            design = build_covering_design(capacity, strength)
            if sum(capacity.count_cells(block) for block in design) <= max_total_cells:
                return design, _describe_coverage(strength)
    cells = max(64, max(sizes))
    capacity = BlockCapacity(sizes=sizes, max_attributes=min(len(sizes), MAX_VIEW_ATTRIBUTES), max_cells=cells)
    return choose_random_views(capacity, max(1, max_total_cells // (2 * cells))), "taken at random"


def _best_view_cells(sizes: tuple[int, ...], strength: int, noise: ViewNoise, max_cells: int) -> tuple[int, float]:
    """The best number of cells of a view, and the error that it predicts for a marginal of ``strength`` attributes.

    With m views of c cells, a sum over a view has the noise variance c·m/2ρ, and a marginal of t attributes is in
    m·(ℓ choose t)/(d choose t) of the views. So m does not matter: the variance of the marginal's interaction is
    proportional to c·(d choose t)/(ℓ choose t), with ℓ = log c / log s for attributes of s values. Laplace noise has
    the variance c·m²·2/ε²; the fewest views hold each marginal once, m = (d choose t)/(ℓ choose t). Its noise has one
    best size for pairs and triples (``MAX_LAPLACE_RATIO``).
    """
    if noise.pure and strength > 2:
        largest = math.prod(sorted(sizes)[-strength:])
        cells = max(_best_view_cells(sizes, 2, noise, max_cells)[0], min(max_cells, largest))
        return cells, _predict_error(sizes, strength, cells, noise)
    largest = math.prod(sorted(sizes)[-strength:])  # the cells of the largest marginal, which must fit
    smallest = min(max_cells, largest)
    choices = sorted({smallest, *(2**power for power in range(2, 21) if smallest <= 2**power <= max_cells)})
    errors = [_predict_error(sizes, strength, cells, noise) for cells in choices]
    ratio = MAX_LAPLACE_RATIO if noise.pure else MAX_NOISE_RATIO
    max_error = max(ratio * min(errors), NEGLIGIBLE_ERROR)
    best = max(index for index, error in enumerate(errors) if error <= max_error)
    return choices[best], errors[best]


def _predict_error(sizes: tuple[int, ...], strength: int, cells: int, noise: ViewNoise) -> float:
    """The predicted error of a marginal of ``strength`` attributes, if views of ``cells`` cells hold each once."""
    mean_size = math.exp(float(np.mean(np.log(sizes)))) if max(sizes) > 1 else 1.0
    length = max(_view_length(sizes, cells, mean_size), strength)
    views_per_marginal = math.prod((len(sizes) - n) / (length - n) for n in range(strength))
    std = math.sqrt(cells * float(noise.variance(1 / views_per_marginal)))
    return float(math.sqrt(2 / math.pi) * std * mean_size ** (strength / 2) / (2 * noise.rows))


def _min_views(sizes: tuple[int, ...], strength: int, cells: int) -> int:
    """The approximate minimum number of views of a covering design."""
    length = _view_length(sizes, cells, math.exp(np.mean(np.log(sizes))))
    return math.ceil(math.prod(max((len(sizes) - n) / max(length - n, 1.0), 1.0) for n in range(strength)))


def _view_length(sizes: tuple[int, ...], cells: int, mean_size: float) -> float:
    """ℓ, the number of attributes of a view with ``cells`` cells, if all attributes have their geometric mean size."""
    attributes = math.log(cells) / math.log(mean_size) if mean_size > 1 else len(sizes)
    return min(len(sizes), MAX_VIEW_ATTRIBUTES, attributes)


def predict_pair_error(sizes: tuple[int, ...], blocks: Sequence[Sequence[int]], noise: ViewNoise) -> float:
    """The predicted share of rows that two-way marginals have in wrong cells, on average; 0 if views hold no pair.

    That is half the sum of the absolute errors, c·σ·√(2/π)/2 for c cells. The variance of a cell follows from the
    variances of the components of a table (``query/linear_estimation.py``). Pairs that no view holds are left out.
    """
    cells = np.array([math.prod([sizes[index] for index in block]) for block in blocks], np.float64)
    shares = cells**CELL_POWER / (cells**CELL_POWER).sum()
    precisions = np.asarray(1 / noise.variance(shares) / cells)  # of a sum over all cells of a view
    member = np.zeros((len(blocks), len(sizes)))
    for row, block in zip(member, blocks, strict=True):
        row[list(block)] = 1.0
    pairs = member.T @ (member * precisions[:, None])
    one, other = np.triu_indices(len(sizes), 1)
    covered = pairs[one, other] > 0
    one, other, contrasts = one[covered], other[covered], np.array(sizes, np.float64) - 1
    if not len(one):
        return 0.0
    main_effects = contrasts / np.diag(pairs)
    interactions = contrasts[one] * contrasts[other] / pairs[one, other]
    stds = np.sqrt(1 / precisions.sum() + main_effects[one] + main_effects[other] + interactions)  # of a cell, times c
    return float(stds.mean()) * math.sqrt(2 / math.pi) / (2 * noise.rows)


def choose_random_views(capacity: BlockCapacity, count: int, *, seed: int = 0) -> list[tuple[int, ...]]:
    """Choose ``count`` random sets of attributes, each as large as the capacity allows; together they hold all.

    Attributes come in random order and are taken as long as they fit. The last sets take attributes that are in no set
    yet first. If that does not reach all attributes, there are more sets than ``count``.
    """
    rng, attributes = np.random.default_rng(seed), len(capacity.sizes)
    views: list[tuple[int, ...]] = []
    missing = set(range(attributes))
    while len(views) < count or missing:
        order = rng.permutation(attributes).tolist()
        if len(views) >= count - len(missing):
            order.sort(key=lambda index: index not in missing)
        view: list[int] = []
        for index in order:
            if capacity.fits([*view, index]):
                view.append(index)
        missing.difference_update(view)
        views.append(tuple(sorted(view)))
    return views
