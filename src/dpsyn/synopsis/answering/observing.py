"""All that was released about some attributes, as observations of their table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from dpsyn.marginals import Clique, Estimate, Marginal
from dpsyn.synopsis.answering.linear import Observation, Parity
from dpsyn.synopsis.parts import Release
from dpsyn.transforms import RecodedColumn, Recoding, carried


def observed(
    releases: Sequence[Release], recoding: Recoding, clique: Clique, *, rows: float | None = None
) -> list[Observation | Parity]:
    """What every marginal says about the table of a clique under a recoding; ``rows`` if their number is public."""
    found: list[Observation | Parity] = [] if rows is None else [Observation((), np.array(rows), 0.0)]
    for source, marginal in measured(releases):
        told = carried(marginal, source, recoding)
        if told is not None:
            found.append(projected(told, clique))
        else:
            found += _parities(marginal, source, recoding, clique)
    return found


def measured(releases: Iterable[Release]) -> Iterator[tuple[Recoding, Marginal]]:
    """Every marginal, and the recoding it was measured under."""
    return ((stage.recoding, m) for release in releases for stage in release.stages for m in stage.marginals)


def projected(told: Estimate, clique: Clique) -> Observation:
    """What a table says about those attributes of a clique that it holds."""
    axes = tuple(axis for axis, name in enumerate(clique) if name in told.clique)
    values = np.asarray(told.onto([clique[axis] for axis in axes]))
    return Observation(axes, values, told.variance * told.values.size / values.size)


def _parities(marginal: Marginal, source: Recoding, recoding: Recoding, clique: Clique) -> Iterator[Parity]:
    """The parity of some attributes of the clique, if that is what was measured; and the number of rows."""
    if len(marginal.clique) != 1 or marginal.clique[0] not in source.names:
        return
    column = source.columns[source.place_of(marginal.clique[0])]
    names = parity_of(column, source.origin)
    if names is None:
        return
    even, odd = marginal.counts
    yield Parity((), float(even + odd), 2 * marginal.deviation**2)
    binary = all(name in recoding.names and recoding.sizes[recoding.place_of(name)] == 2 for name in names)
    if set(names) <= set(clique) and binary:
        axes = tuple(axis for axis, name in enumerate(clique) if name in names)
        yield Parity(axes, float(even - odd), 2 * marginal.deviation**2)


def parity_of(column: RecodedColumn, origin: Sequence[tuple[str, int]]) -> Clique | None:
    """The binary attributes of which a column tells whether an even number is 1; None if it is of another kind."""
    if column.merged is None or set(column.radices) != {2} or any(len(table) != 2 for table in column.tables):
        return None
    if any(table.tolist() != [0, 1] for table in column.tables):
        return None
    if column.merged.tolist() != parities(len(column.sources)):
        return None
    return tuple(origin[place][0] for place in column.sources)


def parities(count: int) -> list[int]:
    """For all combinations of 0 and 1, the last running fastest, whether the number of ones is odd."""
    return [place.bit_count() % 2 for place in range(2**count)]
