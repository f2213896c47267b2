"""Noisy marginals that somebody else measured, as a release whose guarantee is not verified here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsyn.accounting.spends import lattice_for
from dpsyn.errors import SynopsisError
from dpsyn.marginals import Clique, Marginal
from dpsyn.records import Codec
from dpsyn.schema import Identifier, Open, Schema
from dpsyn.schema.attributes import some
from dpsyn.synopsis.parts import Release, Stage
from dpsyn.transforms import Recoding

IMPORTED = "imported"
"""The recipe of a release that was measured elsewhere."""

LARGEST_COUNT = 2**53
"""Beyond it a float does not tell one count from the next."""


def from_marginals(
    schema: Schema,
    marginals: Mapping[Any, ArrayLike],
    *,
    deviation: float | Mapping[Any, float],
    source: str,
) -> Release:
    """A release of noisy marginals that were measured in somebody's own system.

    It has no certificate: what the numbers cost is for whoever measured them to say. Counts need not be whole; they
    are kept on a lattice that rounds them by less than a thousandth of their noise.

    Args:
        schema: what is public about the table; open attributes need their values first.
        marginals: noisy counts by attribute or by tuple of attributes, one axis each, in the order of their bins
            (``labels()``); those of a single attribute may be over its finest cells instead.
        deviation: the standard deviation of the noise in a cell, in counts: one number, or one for each marginal.
        source: who measured them and how, for whoever reads the synopsis.
    """
    if not marginals:
        raise SynopsisError("no marginals were given; give at least one, such as {'age': [12.5, 80.1]}")
    codec = Codec(schema)
    given = {_clique(name): counts for name, counts in marginals.items()}
    if len(given) < len(marginals):
        raise SynopsisError("a marginal is given twice, as a name and as a tuple of one name; give it once")
    deviations = _deviations(given, deviation)
    found = [_measured(clique, counts, deviations[clique], codec) for clique, counts in given.items()]
    stages = [
        Stage(recoding, tuple(marginal for marginal, is_fine in found if is_fine == of_cells))
        for recoding, of_cells in ((Recoding.coarse(codec), False), (Recoding.fine(codec), True))
    ]
    return Release(IMPORTED, tuple(stage for stage in stages if stage.marginals), source=_text(source))


def _measured(clique: Clique, counts: ArrayLike, deviation: float, codec: Codec) -> tuple[Marginal, bool]:
    """A marginal, and whether it is over cells rather than bins."""
    bins = _require_attributes(clique, codec)
    table = _table(clique, counts)
    in_cells = len(clique) == 1 and table.shape == (dict(codec.domain)[clique[0]],)
    if table.shape != bins and not in_cells:
        raise _wrong_shape(clique, table.shape, bins, codec)
    return _marginal(clique, table, deviation), table.shape != bins


def _clique(name: Any) -> Clique:
    clique = (name,) if isinstance(name, str) else name
    if not isinstance(clique, tuple) or not clique or len(set(clique)) < len(clique):
        raise SynopsisError(f"{name!r} does not name attributes, each once; give a name or a tuple of names")
    return clique


def _words(clique: Clique) -> str:
    return f"the marginal of {', '.join(map(str, clique))}"


def _require_attributes(clique: Clique, codec: Codec) -> tuple[int, ...]:
    """The number of bins of each attribute, if all of them have any."""
    for name in clique:
        if name not in codec.names:
            raise SynopsisError(f"{_words(clique)}: {_why_not(name, codec)}")
    bins = dict(zip(codec.names, codec.bins, strict=True))
    return tuple(bins[name] for name in clique)


def _why_not(name: str, codec: Codec) -> str:
    if name not in codec.schema:
        return f"there is no attribute {name!r} in the schema; it has {some(codec.names)}"
    attribute = codec.schema[name]
    if isinstance(attribute, Open):
        return f"{name!r} is open, so nobody knows what its counts are of; make it categorical and list its values"
    what = "an identifier" if isinstance(attribute, Identifier) else "derived from another attribute"
    return f"{name!r} is {what}, so it is not measured; leave it out"


def _table(clique: Clique, counts: ArrayLike) -> NDArray[np.float64]:
    try:
        raw = np.asarray(counts)
        if raw.dtype.kind not in "iuf":
            raise TypeError
        table = raw.astype(np.float64)
    except (TypeError, ValueError):
        raise SynopsisError(f"{_words(clique)} is not an array of numbers; give its noisy counts") from None
    if not np.isfinite(table).all() or np.abs(table).max(initial=0) > LARGEST_COUNT:
        raise SynopsisError(f"{_words(clique)} holds counts that are not finite or beyond 2^53; correct them")
    return table


def _wrong_shape(clique: Clique, found: tuple[int, ...], shape: tuple[int, ...], codec: Codec) -> SynopsisError:
    orders = "; ".join(f"{name}: {some(codec.schema[name].labels())}" for name in clique)
    cells = dict(codec.domain)[clique[0]]
    or_cells = f", or ({cells},) for its finest cells" if len(clique) == 1 and (cells,) != shape else ""
    return SynopsisError(
        f"{_words(clique)} has shape {found}, but the schema asks for {shape}{or_cells}; "
        f"give one count for each value, in this order: {orders}"
    )


def _deviations(given: Mapping[Clique, Any], deviation: float | Mapping[Any, float]) -> dict[Clique, float]:
    """The deviation of each marginal."""
    if not isinstance(deviation, Mapping):
        return {clique: _positive(clique, deviation) for clique in given}
    found = {_clique(name): value for name, value in deviation.items()}
    lacking = [clique for clique in given if clique not in found]
    surplus = [clique for clique in found if clique not in given]
    if lacking or surplus:
        what = f"{_words(lacking[0])} has no deviation" if lacking else f"there is no marginal for {surplus[0]}"
        raise SynopsisError(f"{what}; give one deviation for each marginal, with the same names in the same order")
    return {clique: _positive(clique, value) for clique, value in found.items()}


def _positive(clique: Clique, deviation: float) -> float:
    if not isinstance(deviation, int | float | np.number) or not 0 < deviation < math.inf:
        raise SynopsisError(f"{_words(clique)}: its deviation is {deviation!r}; give a positive number of counts")
    return float(deviation)


def _marginal(clique: Clique, table: NDArray[np.float64], deviation: float) -> Marginal:
    """The counts on the lattice that noise of this deviation would be drawn on, or the finest that a float fills."""
    room = 53 - math.frexp(float(np.abs(table).max(initial=1.0)))[1]
    lattice = max(0, min(lattice_for(deviation), room))
    return Marginal(clique, np.rint(np.ldexp(table, lattice)).astype(np.int64), lattice, deviation)


def _text(source: str) -> str:
    if not isinstance(source, str) or not source.strip():
        raise SynopsisError("source is empty; say who measured the marginals and how, such as 'census office, ε = 1'")
    return source.encode(errors="replace").decode()
