"""The first step of most recipes: every attribute by itself."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from dpsyn.accounting import exact_fraction, split_exactly
from dpsyn.encoding import Codec, Recoding, merge_rare_values
from dpsyn.errors import UserError
from dpsyn.inference import MeasurementRound, Release, estimate_one_way, estimate_row_count
from dpsyn.marginals import Clique
from dpsyn.private import PrivateTable, initial_recoding
from dpsyn.schema import Open
from dpsyn.synopsis import Synopsis


def measure_one_way(table: PrivateTable, rho: Fraction) -> tuple[PrivateTable, tuple[MeasurementRound, ...]]:
    """Buy the values of open attributes and measure the 1-way marginal of every attribute, in equal shares.

    Where cells are finer than bins, half of an attribute's share goes to each: sums of many noisy cells would be poor
    estimates of the bins, and bins say nothing about spikes. An open attribute spends half of its share on its values.
    Attributes that the schema groups are measured as one, with the shares of all.

    Privacy: spends ``rho`` of ρ, and the δ that the budget keeps for thresholds if there are open attributes.
    """
    opened = [attribute.name for attribute in table.schema.measured_attributes if isinstance(attribute, Open)]
    codec = Codec(table.schema)
    finer = [
        name
        for name, cells, bins in zip(codec.names, codec.fine_sizes, codec.coarse_sizes, strict=True)
        if cells > bins
    ]
    names = [attribute.name for attribute in table.schema.measured_attributes]
    weights = [1 if name in opened or name in finer else 2 for name in names] + [1] * (len(opened) + len(finer))
    shares = split_exactly(rho, weights)
    of_bins, of_extras = (
        dict(zip(names, shares, strict=False)),
        dict(zip([*opened, *finer], shares[len(names) :], strict=True)),
    )

    deltas = split_exactly(table.budget.threshold_delta, [1] * len(opened)) if opened else ()
    for name, delta in zip(opened, deltas, strict=True):
        table = table.discover_values(name, of_extras[name], delta)
    codec = Codec(table.schema)
    table = table.recode(initial_recoding(table.schema))
    of_columns = {
        c.name: sum((of_bins[codec.names[s]] for s in c.sources), Fraction(0)) for c in table.recoding.columns
    }
    parts: list[tuple[Recoding, dict[Clique, Fraction]]] = [
        (table.recoding, {(name,): share for name, share in of_columns.items()})
    ]
    if finer:
        parts.insert(0, (Recoding.fine(codec), {(name,): of_extras[name] for name in finer}))
    found = table.measure_recodings(parts)
    return table, tuple(
        MeasurementRound(recoding, tuple(some)) for (recoding, _), some in zip(parts, found, strict=True)
    )


# ── The second step of most recipes: rare values merged, and what can be measured after that ──


KEEP_RECODING_ABOVE = 0.8
"""A recoding with so large a part of the codes that could be told apart is kept for the marginals measured under it."""


def recode_rare_values(
    table: PrivateTable,
    rounds: tuple[MeasurementRound, ...],
    previous: Synopsis | None,
    *,
    rare_sigmas: float,
    rare_rows: float = 0.0,
) -> tuple[Recoding, frozenset[str]]:
    """The recoding with rare values merged, and the attributes whose merged value counts as empty.

    Values are rare if their noisy count is below ``rare_sigmas`` standard deviations or below ``rare_rows``, and so many are
    merged that every pair is small enough to be measured beside others. A synopsis that is extended keeps the recoding
    that its marginals were measured under, unless that is much coarser than what can be told apart now.
    """
    recoding, most = table.recoding, math.isqrt(min(table.limits.max_marginal_cells, table.noisy_values_left // 4))
    releases = (*(previous.releases if previous else ()), Release("", rounds))
    result, zeroed = recoding, set()
    for name in recoding.names:
        single = estimate_one_way(releases, recoding, name)
        crowd = len(single.values) > most  # then fewer than so many values stay, ties included, and one for the others
        crowded = np.nextafter(np.sort(single.values)[-most], np.inf) if crowd else -np.inf
        merging = merge_rare_values(
            single.values, max(rare_sigmas * math.sqrt(single.variance), rare_rows, float(crowded))
        )
        result = result.merge(name, merging.grouping)
        if merging.zeroed:
            zeroed.add(name)
    if previous and any(len(known.clique) > 1 for known in previous.model.tables):
        old = previous.model.recoding
        if sum(old.sizes) >= KEEP_RECODING_ABOVE * sum(result.sizes):
            return old, frozenset()
    return result, frozenset(zeroed)


def measurable_pairs(table: PrivateTable) -> list[Clique]:
    """All pairs that are small enough to be measured at all."""
    pairs: list[Clique] = list(combinations(table.recoding.names, 2))
    return [
        pair
        for pair, cells in zip(pairs, count_cells(table, pairs), strict=True)
        if cells <= table.limits.max_marginal_cells
    ]


def count_cells(table: PrivateTable, cliques: Iterable[Clique]) -> list[int]:
    """How many cells each marginal has."""
    sizes = dict(zip(table.recoding.names, table.recoding.sizes, strict=True))
    return [math.prod([sizes[name] for name in clique]) for clique in cliques]


# ── The first step of recipes that measure large tables: values bought and merged where that is needed ──


ONE_WAY_SHARE = 0.15
"""The part of ρ for every attribute by itself, where that is needed."""

COUNT_SHARE = 0.01
"""The part of ρ for a first count of the rows, where their number is not known at all."""

MAX_UNMERGED_VALUES = 16
"""Attributes of more values are measured by themselves first, so that rare values can be merged."""

RARE_SIGMAS = 3.0
"""Values with a noisy count below so many standard deviations are merged."""


@dataclass(frozen=True, slots=True, eq=False)
class PreparedTable:
    """A table whose attributes are ready to be measured together.

    Attributes:
        table: the table, recoded.
        rounds: what was measured so far.
        zeroed_attributes: attributes whose last code counts as empty.
        row_count: about how many rows there are; public, or bought.
        rho_left: the ρ that is left.
    """

    table: PrivateTable
    rounds: tuple[MeasurementRound, ...]
    zeroed_attributes: frozenset[str]
    row_count: float
    rho_left: Fraction


def prepare_table(table: PrivateTable, previous: Synopsis | None = None) -> PreparedTable:
    """Measure attributes by themselves if values must be bought, merged or told apart within bins; else little.

    Privacy: spends a part of ρ, and the δ for thresholds if there are open attributes.
    """
    attributes = table.schema.measured_attributes
    needed = any(isinstance(a, Open) or a.cells > a.size or a.size > MAX_UNMERGED_VALUES for a in attributes)
    known = table.public_row_count() or table.schema.expected_size
    share = ONE_WAY_SHARE if needed else 0.0 if known else COUNT_SHARE
    first, left = split_exactly(table.budget.rho, [exact_fraction(share), 1 - exact_fraction(share)])
    if needed:
        table, stages = measure_one_way(table, first)
        recoding, zeroed = recode_rare_values(table, stages, previous, rare_sigmas=RARE_SIGMAS)
        table = table.recode(recoding)
    else:
        table = table.recode(previous.model.recoding) if previous else table
        smallest = min(zip(table.recoding.sizes, table.recoding.names, strict=True))[1]
        stages = (MeasurementRound(table.recoding, tuple(table.measure([(smallest,)], [first]))),) if first else ()
        zeroed = frozenset()
    return PreparedTable(table, stages, zeroed, max(known or _estimate_row_count(stages, table), 1.0), left)


def _estimate_row_count(rounds: tuple[MeasurementRound, ...], table: PrivateTable) -> float:
    """The number of rows as the tables measured so far tell it."""
    release = [Release("", rounds)]
    measured = {marginal.clique[0] for stage in rounds for marginal in stage.marginals}
    told = [estimate_one_way(release, table.recoding, name) for name in table.recoding.names if name in measured]
    return estimate_row_count(told)


def refuse_to_extend(previous: Synopsis | None, recipe: str) -> None:
    """Say that a recipe makes a model of its own, which earlier releases have no part in."""
    if previous is not None:
        raise UserError(f"the recipe {recipe!r} cannot extend a synopsis; use another, such as 'dpsyn'")
