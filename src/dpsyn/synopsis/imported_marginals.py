"""Noisy marginals that were measured in another system, as a release whose guarantee is not verified here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsyn.accounting.costs import lattice_for
from dpsyn.encoding import Codec, Recoding
from dpsyn.errors import SynopsisError, quote_argument
from dpsyn.inference.measurements import MeasurementRound, Release
from dpsyn.marginals import Clique, Marginal
from dpsyn.schema import Identifier, Open, Schema
from dpsyn.suggestions import format_names, suggest_names

MAX_IMPORTED_COUNT = 2**53
"""Beyond it a float cannot distinguish one count from the next."""


def import_marginals(
    schema: Schema,
    marginals: Mapping[Any, ArrayLike],
    *,
    std: float | Mapping[Any, float],
    source: str,
) -> Release:
    """A release of noisy marginals that were measured in another system.

    It has no certificate: only the people who measured the numbers can state their cost. Counts need not be whole
    numbers; they are stored on a lattice, which rounds them by less than a thousandth of their noise.

    Privacy: nothing is verified; the guarantee is that of the system that measured the numbers.

    Args:
        schema: what is public about the table; it must have no open attributes.
        marginals: noisy counts by attribute or by tuple of attributes, one axis each, in the order of their bins
            (``labels()``); those of one attribute may be over its finest cells instead.
        std: the standard deviation of the noise in a cell, in counts: one number, or one for each marginal.
        source: who measured them and how, for the readers of the synopsis.
    """
    if not marginals:
        raise SynopsisError("no marginals were given; give at least one, such as {'age': [12.5, 80.1]}")
    codec = Codec(schema)
    given = {_parse_clique(name): counts for name, counts in marginals.items()}
    if len(given) < len(marginals):
        raise SynopsisError("a marginal is given twice, as a name and as a tuple of one name; give it once")
    stds = _parse_stds(given, std)
    parsed = [_parse_marginal(clique, counts, stds[clique], codec) for clique, counts in given.items()]
    rounds = [
        MeasurementRound(recoding, tuple(marginal for marginal, is_fine in parsed if is_fine == over_cells))
        for recoding, over_cells in ((Recoding.coarse(codec), False), (Recoding.fine(codec), True))
    ]
    return Release(tuple(each for each in rounds if each.marginals), source=_require_source(source))


def _parse_marginal(clique: Clique, counts: ArrayLike, std: float, codec: Codec) -> tuple[Marginal, bool]:
    """The marginal, and whether it is over cells rather than bins."""
    bins = _require_measured_attributes(clique, codec)
    table = _parse_counts(clique, counts)
    in_cells = len(clique) == 1 and table.shape == (dict(codec.domain)[clique[0]],)
    if table.shape != bins and not in_cells:
        raise _shape_error(clique, table.shape, bins, codec)
    return _round_to_lattice(clique, table, std), table.shape != bins


def _parse_clique(name: Any) -> Clique:
    clique = (name,) if isinstance(name, str) else name
    if not isinstance(clique, tuple) or not clique or len(set(clique)) < len(clique):
        raise SynopsisError(
            f"{quote_argument(name)} does not name attributes, each once; give a name or a tuple of names"
        )
    return clique


def _describe_marginal(clique: Clique) -> str:
    return f"the marginal of {', '.join(map(str, clique))}"


def _require_measured_attributes(clique: Clique, codec: Codec) -> tuple[int, ...]:
    """The number of bins of each attribute; an attribute that is not measured is refused."""
    for name in clique:
        if name not in codec.names:
            raise SynopsisError(f"{_describe_marginal(clique)}: {_explain_refusal(name, codec)}")
    bins = dict(zip(codec.names, codec.coarse_sizes, strict=True))
    return tuple(bins[name] for name in clique)


def _explain_refusal(name: str, codec: Codec) -> str:
    if name not in codec.schema:
        return (
            f"there is no attribute {quote_argument(name)} in the schema; {suggest_names(name, codec.names, 'it has ')}"
        )
    attribute = codec.schema[name]
    if isinstance(attribute, Open):
        return (
            f"{quote_argument(name)} is open, so the values of its counts are not known; make it "
            "categorical and list its values"
        )
    what = "an identifier" if isinstance(attribute, Identifier) else "derived from another attribute"
    return f"{quote_argument(name)} is {what}, so it is not measured; leave it out"


def _parse_counts(clique: Clique, counts: ArrayLike) -> NDArray[np.float64]:
    try:
        raw = np.asarray(counts)
        if raw.dtype.kind not in "iuf":
            raise TypeError
        table = raw.astype(np.float64)
    except (TypeError, ValueError):
        raise SynopsisError(f"{_describe_marginal(clique)} is not an array of numbers; give its noisy counts") from None
    if not np.isfinite(table).all() or np.abs(table).max(initial=0) > MAX_IMPORTED_COUNT:
        raise SynopsisError(
            f"{_describe_marginal(clique)} holds counts that are not finite or beyond 2^53; correct them"
        )
    return table


def _shape_error(clique: Clique, given: tuple[int, ...], shape: tuple[int, ...], codec: Codec) -> SynopsisError:
    orders = "; ".join(f"{name}: {format_names(codec.schema[name].labels())}" for name in clique)
    cells = dict(codec.domain)[clique[0]]
    or_cells = f", or ({cells},) for its finest cells" if len(clique) == 1 and (cells,) != shape else ""
    return SynopsisError(
        f"{_describe_marginal(clique)} has shape {given}, but the schema asks for {shape}{or_cells}; "
        f"give one count for each value, in this order: {orders}"
    )


def _parse_stds(given: Mapping[Clique, Any], std: float | Mapping[Any, float]) -> dict[Clique, float]:
    """The standard deviation of the noise in each marginal."""
    if not isinstance(std, Mapping):
        return {clique: _require_positive(clique, std) for clique in given}
    stds = {_parse_clique(name): value for name, value in std.items()}
    lacking = [clique for clique in given if clique not in stds]
    surplus = [clique for clique in stds if clique not in given]
    if lacking or surplus:
        what = (
            f"{_describe_marginal(lacking[0])} has no standard deviation"
            if lacking
            else f"there is no marginal for {surplus[0]}"
        )
        raise SynopsisError(
            f"{what}; give one standard deviation for each marginal, with the same names in the same order"
        )
    return {clique: _require_positive(clique, value) for clique, value in stds.items()}


def _require_positive(clique: Clique, std: float) -> float:
    if not isinstance(std, int | float | np.number) or not 0 < std < math.inf:
        raise SynopsisError(
            f"{_describe_marginal(clique)}: its standard deviation is {quote_argument(std)}; give a "
            "positive number of counts"
        )
    return float(std)


def _round_to_lattice(clique: Clique, table: NDArray[np.float64], std: float) -> Marginal:
    """The counts on the lattice that noise of this std is sampled on, or on the finest that a float can represent."""
    room = 53 - math.frexp(float(np.abs(table).max(initial=1.0)))[1]
    lattice = max(0, min(lattice_for(std), room))
    return Marginal(clique, np.rint(np.ldexp(table, lattice)).astype(np.int64), lattice, std)


def _require_source(source: str) -> str:
    if not isinstance(source, str) or not source.strip():
        raise SynopsisError("source is empty; state who measured the marginals and how, such as 'census office, ε = 1'")
    return source.encode(errors="replace").decode()
