"""All that was released about some attributes, as observations of their table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpsyn.marginals import Clique, Estimate, Marginal
from dpsyn.synopsis.answering.linear import Observation, Parity
from dpsyn.synopsis.parts import Release
from dpsyn.transforms import RecodedColumn, Recoding, carried


@dataclass(frozen=True, slots=True)
class EvenOdd:
    """How many rows have an even and an odd number of ones among some binary attributes.

    Attributes:
        names: the attributes.
        even: the noisy number of rows with an even number of ones.
        odd: that with an odd one.
        variance: of the noise in each.
    """

    names: Clique
    even: float
    odd: float
    variance: float


def observed(
    releases: tuple[Release, ...], recoding: Recoding, clique: Clique, *, rows: float | None = None
) -> list[Observation | Parity]:
    """What every marginal says about the table of a clique under a recoding; ``rows`` if their number is public."""
    found: list[Observation | Parity] = [] if rows is None else [Observation((), np.array(rows), 0.0)]
    for told in _told(releases, recoding):
        found += [projected(told, clique)] if isinstance(told, Estimate) else _parities(told, clique)
    return found


def measured(releases: Iterable[Release]) -> Iterator[tuple[Recoding, Marginal]]:
    """Every marginal, and the recoding it was measured under."""
    return ((stage.recoding, m) for release in releases for stage in release.stages for m in stage.marginals)


def projected(told: Estimate, clique: Clique) -> Observation:
    """What a table says about those attributes of a clique that it holds."""
    axes = tuple(axis for axis, name in enumerate(clique) if name in told.clique)
    values = np.asarray(told.onto([clique[axis] for axis in axes]))
    return Observation(axes, values, told.variance * told.values.size / values.size)


@lru_cache(maxsize=4)  # one question asks many times, and is seldom the last
def _told(releases: tuple[Release, ...], recoding: Recoding) -> list[Estimate | EvenOdd]:
    """What every marginal says about the codes of a recoding; those that say nothing are left out."""
    found: list[Estimate | EvenOdd] = []
    for source, marginal in measured(releases):
        told = carried(marginal, source, recoding) or _even_odd(marginal, source, recoding)
        found += [told] if told is not None else []
    return found


# ── parities ─────────────────────────────────────────────────────────────────────────────────────────────────


def _even_odd(marginal: Marginal, source: Recoding, recoding: Recoding) -> EvenOdd | None:
    """The parity of some attributes of a recoding, if that is what was measured."""
    if len(marginal.clique) != 1 or marginal.clique[0] not in source.names:
        return None
    names = parity_of(source.columns[source.place_of(marginal.clique[0])], source.origin)
    sizes = dict(zip(recoding.names, recoding.sizes, strict=True))
    if names is None or any(sizes.get(name) != 2 for name in names):
        return None
    even, odd = marginal.counts.tolist()
    return EvenOdd(names, even, odd, marginal.deviation**2)


def _parities(told: EvenOdd, clique: Clique) -> Iterator[Parity]:
    """The number of rows, and the parity if all its attributes are in the clique."""
    yield Parity((), told.even + told.odd, 2 * told.variance)
    if {*told.names} <= {*clique}:
        axes = tuple(axis for axis, name in enumerate(clique) if name in told.names)
        yield Parity(axes, told.even - told.odd, 2 * told.variance)


def parity_of(column: RecodedColumn, origin: Sequence[tuple[str, int]]) -> Clique | None:
    """The binary attributes of which a column tells whether an even number is 1; None if it tells something else."""
    if column.merged is None or any(table.tolist() != [0, 1] for table in column.tables):
        return None
    if column.merged.tolist() != parities(len(column.sources)):
        return None
    return tuple(origin[place][0] for place in column.sources)


def parities(count: int) -> list[int]:
    """For all combinations of 0 and 1, the last running fastest, whether the number of ones is odd."""
    return [place.bit_count() % 2 for place in range(2**count)]
