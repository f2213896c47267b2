"""A release from stored answers alone: how a run ends that lost answers and has nothing left to measure them again."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import msgspec
import numpy as np

from dpsyn.encoding import Codec, Grouping, Recoding
from dpsyn.inference import MeasurementRound, PreviousReleases, Release, Scores, find_unmeasured
from dpsyn.private import NothingLeftError, PrivateTable, initial_recoding
from dpsyn.recipes.adaptive_grid import refine_rounds
from dpsyn.recipes.base import Measurements
from dpsyn.schema import Ranged, Schema


def measurements_from_stored(
    table: PrivateTable, error: NothingLeftError, previous: PreviousReleases | None
) -> Measurements:
    """What a run measured before nothing was left of its budget; the error if that is not enough for a release.

    The attributes are those that the recipe was about to measure. One that no stored marginal has becomes a single
    code, so its values are spread over its public domain.

    Privacy: post-processing of released numbers. Cost: none.
    """
    schema = error.schema
    if schema is None or schema.open_attributes:
        raise error
    rounds = tuple(
        one
        for released in table.released_marginals
        if _differs_in_cells_only(released.schema, schema)
        for one in refine_rounds([MeasurementRound(released.recoding, released.marginals)], released.schema, schema)
    )
    releases = (*(previous.releases if previous else ()), Release(rounds))
    complete = [r for r in (error.recoding, initial_recoding(schema)) if r and _is_complete(r, schema)]
    recoding, unmeasured = min(
        ((candidate, find_unmeasured(schema, candidate, releases)) for candidate in complete),
        key=lambda pair: len(pair[1]),
    )
    if not rounds or len(unmeasured) == len(recoding.names):
        raise error
    for name in unmeasured:
        recoding = recoding.merge(name, Grouping(np.zeros(recoding.sizes[recoding.index_of(name)], np.int64)))
    _warn(table.left_out, sorted(unmeasured))
    return Measurements(
        schema=schema,
        recoding=recoding,
        rounds=rounds,
        scores=tuple(Scores(s.kind, s.cliques, s.values, s.std) for s in table.released_scores),
        row_count=table.public_row_count(),
    )


def _warn(left_out: Sequence[str], unmeasured: Sequence[str]) -> None:
    spread = (
        f" Nothing at all is stored about {', '.join(unmeasured)}: synthetic values are spread over the public domain"
        if unmeasured
        else ""
    )
    warnings.warn(
        f"nothing is left of the budget for {left_out[0]}, nor for what would have followed: the release ends with the "
        f"answers that are stored.{spread}",
        UserWarning,
        stacklevel=4,
    )


def _differs_in_cells_only(coarser: Schema, finer: Schema) -> bool:
    """Whether the attributes of two schemas are the same, but for cells that the finer one may divide."""
    pairs = [*zip(coarser.attributes, finer.attributes, strict=False)]
    return len(coarser.attributes) == len(finer.attributes) and all(
        one == other
        or (
            isinstance(one, Ranged)
            and isinstance(other, Ranged)
            and msgspec.structs.replace(one, cuts=()) == msgspec.structs.replace(other, cuts=())
        )
        for one, other in pairs
    )


def _is_complete(recoding: Recoding, schema: Schema) -> bool:
    """Whether a recoding has every attribute of a schema once."""
    sources = sorted(source for column in recoding.columns for source in column.sources)
    return recoding.origin == tuple(Codec(schema).domain) and sources == [*range(len(recoding.origin))]
