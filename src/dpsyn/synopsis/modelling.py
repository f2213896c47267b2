"""From everything that was released to the one model that rows are drawn from."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn.consistency import ConsistencyOptions, averaged, consistent, likely_counts
from dpsyn.errors import SchemaError
from dpsyn.marginals import Estimate, Marginal
from dpsyn.progress import Progress, silent
from dpsyn.records import Codec, Grouping, even_weights
from dpsyn.rules import factors_of, raked, without_excluded
from dpsyn.schema import Schema, constraints_of
from dpsyn.synopsis.parts import Method, Model, Release
from dpsyn.synthesis import gibbs
from dpsyn.transforms import Recoding, carried


def fit_model(
    schema: Schema,
    recoding: Recoding,
    releases: Sequence[Release],
    *,
    zeroed: Collection[str] = (),
    total: float | None = None,
    method: Method = "gibbs",
    tables: Sequence[Estimate] = (),
    progress: Progress = silent,
) -> Model:
    """Combine the marginals of all releases by inverse variance, make them consistent and non-negative.

    Args:
        schema: what is public, and what was bought.
        recoding: the attributes to model. What was measured under a finer recoding is merged; what was measured
            under one that does not fit is left out.
        releases: everything that was measured.
        zeroed: attributes whose last code counts as empty.
        total: the number of rows, where it is public.
        method: how records are to be fitted to the tables.
        tables: what somebody worked out from the marginals; then the model follows these alone.
        progress: is told how far it is.
    """
    told = [carried(marginal, source, recoding) for source, marginal in _measured(releases)]
    said = list(tables) or [estimate for estimate in told if estimate is not None]
    silent_about = set(recoding.names) - {name for estimate in said for name in estimate.clique}
    constant = {c.name for c in recoding.columns if c.size == 1} & silent_about if said else set()
    silent_about -= constant
    if silent_about:
        raise SchemaError(f"no marginal says anything about {', '.join(sorted(silent_about))}; give one for each")
    histograms = _histograms(Codec(schema), recoding, releases, said)
    factors = factors_of(schema, recoding, histograms)
    rows = _public_rows(schema, max(estimated_rows(said) if total is None else total, 0.0))
    said += [Estimate((name,), np.array([rows]), 0.0) for name in constant]  # one code has all rows: nothing to tell
    agreed = consistent(
        [_without_zeroed(without_excluded(estimate, factors), zeroed) for estimate in said],
        total=rows,
        options=ConsistencyOptions(ripple=method != "gum"),  # PrivSyn has norm-sub alone
        progress=progress,
    )
    whole = [_with_zeroed(table, zeroed) for table in _maximal(agreed)]
    kept = tuple(raked([without_excluded(table, factors, rows) for table in whole], schema, recoding, rows))
    connected = factors or any(len(table.clique) > 1 for table in kept)
    fitted = None
    if method == "gibbs" and connected:
        fitted = gibbs.fit(kept, recoding.names, recoding.sizes, seed=0, factors=factors, progress=progress)
    return Model(recoding, kept, histograms, rows, fitted)


def _public_rows(schema: Schema, rows: float) -> float:
    """The number of rows, if the schema says it; at least as many as it says that there are of some kind."""
    totals = constraints_of(schema).by_table
    if everything := [total.count for total in totals if not total.selection]:
        return float(everything[0])
    return max([rows, *(float(total.count) for total in totals)])


def single_estimate(releases: Sequence[Release], recoding: Recoding, name: str) -> Estimate:
    """The 1-way table of an attribute under a recoding, from all 1-way marginals of it, by inverse variance."""
    told = [
        carried(marginal, source, recoding) for source, marginal in _measured(releases) if marginal.clique == (name,)
    ]
    return averaged([estimate for estimate in told if estimate is not None])[0]


def _measured(releases: Sequence[Release]) -> Iterable[tuple[Recoding, Marginal]]:
    """Every marginal, and the recoding it was measured under."""
    return ((stage.recoding, m) for release in releases for stage in release.stages for m in stage.marginals)


def estimated_rows(estimates: Sequence[Estimate]) -> float:
    """The number of rows: the sum of every table, the smaller and less noisy ones counting more.

    It is worked out before codes that count as empty are cut off, which would take rows away.
    """
    precisions = np.array([1 / max(estimate.variance * estimate.values.size, 1e-12) for estimate in estimates])
    return float(np.average([estimate.total for estimate in estimates], weights=precisions))


# ── codes that count as empty are cut off before tables are made consistent, and put back after ──────────────


def _without_zeroed(estimate: Estimate, zeroed: Collection[str]) -> Estimate:
    cut = tuple(slice(0, -1) if name in zeroed else slice(None) for name in estimate.clique)
    return Estimate(estimate.clique, np.array(estimate.values[cut]), estimate.variance)


def _with_zeroed(table: Estimate, zeroed: Collection[str]) -> Estimate:
    values = np.pad(np.maximum(table.values, 0.0), [(0, int(name in zeroed)) for name in table.clique])
    return Estimate(table.clique, values, table.variance)


def _maximal(tables: Sequence[Estimate]) -> list[Estimate]:
    """Tables whose attributes are not all in a larger one, which says the same about them."""
    cliques = [frozenset(table.clique) for table in tables]
    return [
        table for table, clique in zip(tables, cliques, strict=True) if not any(clique < other for other in cliques)
    ]


# ── weights by which codes are drawn apart ───────────────────────────────────────────────────────────────────


def _histograms(
    codec: Codec, recoding: Recoding, releases: Sequence[Release], tables: Sequence[Estimate]
) -> dict[str, NDArray[np.float64]]:
    """Weights over the fine codes of every attribute: likely counts, so that no rare value is lost.

    They are over what the recoding draws: where an attribute is told as differences, over differences.
    """
    fine = Recoding.fine(codec).refer(recoding.references)
    return {
        name: likely_counts(*_fine_values(fine, codec, place, releases, recoding, tables))
        for place, name in enumerate(codec.names)
    }


def _fine_values(
    fine: Recoding,
    codec: Codec,
    place: int,
    releases: Sequence[Release],
    recoding: Recoding,
    tables: Sequence[Estimate],
) -> tuple[NDArray[np.float64], float]:
    """The best linear estimate of an attribute's fine counts from tables over cells and over groups; its deviation.

    Cells of a group are moved together so that their sum becomes the weighted mean of both measurements; where only
    groups were measured, their counts are spread evenly over values, and the noise in them does not matter.
    """
    even = even_weights(codec.attributes[place])
    cells, others = _singles(fine, place, releases)
    if not cells and not others:
        others = _modelled(recoding, place, tables)
    if not cells:
        return (_spread(*others[0], even) if others else even), 0.0
    base = averaged(cells)[0]
    if not others:
        return base.values, math.sqrt(base.variance)
    groups, other = others[0]
    members, sums = np.bincount(groups.group_of), groups.sums(base.values)
    trust = base.variance * members / (base.variance * members + other.variance)  # in the groups, against their cells
    moved: NDArray[np.float64] = base.values + ((other.values - sums) * trust / members)[groups.group_of]
    return moved, math.sqrt(base.variance)


def _spread(groups: Grouping, told: Estimate, even: NDArray[np.float64]) -> NDArray[np.float64]:
    values: NDArray[np.float64] = told.values[groups.group_of] * (even / groups.sums(even)[groups.group_of])
    return values


def _singles(
    fine: Recoding, place: int, releases: Sequence[Release]
) -> tuple[list[Estimate], list[tuple[Grouping, Estimate]]]:
    """What tells about an attribute alone: tables over its cells, and tables over groups of them, the finest first.

    A joint attribute tells about its parts, and a table of an attribute and what it is expected by about differences.
    """
    name, cells = fine.names[place], []
    groups: dict[bytes, tuple[Grouping, list[Estimate]]] = {}
    for recoding, marginal in _measured(releases):
        if marginal.clique == (name,) or (place in fine.references and name in marginal.clique):
            over_cells = carried(marginal, recoding, fine)
            if over_cells is not None:
                cells.append(_onto(over_cells, name))
                continue
        told = _part(marginal, recoding, fine, place)
        if told is None:
            continue
        grouping, estimate = told
        if grouping.size == len(grouping.group_of):
            cells.append(Estimate((name,), estimate.values[grouping.group_of], estimate.variance))
        else:
            groups.setdefault(grouping.group_of.tobytes(), (grouping, []))[1].append(estimate)
    found = [(grouping, averaged(estimates)[0]) for grouping, estimates in groups.values()]
    return cells, sorted(found, key=lambda pair: -pair[0].size)


def _onto(estimate: Estimate, name: str) -> Estimate:
    values = np.array(estimate.onto([name]))
    return Estimate((name,), values, estimate.variance * estimate.values.size / values.size)


def _part(marginal: Marginal, recoding: Recoding, fine: Recoding, place: int) -> tuple[Grouping, Estimate] | None:
    """What a 1-way marginal tells about one of the fine attributes that its codes are made of; None if nothing."""
    if len(marginal.clique) > 1:
        return None
    column = recoding.columns[recoding.place_of(marginal.clique[0])]
    if place not in column.sources or column.merged is not None:
        return None
    mine, theirs = column.reference_of(place), fine.references.get(place)
    if not (mine is theirs or (mine and theirs and mine.alike(theirs))):
        return None
    axis = column.sources.index(place)
    counts = marginal.counts.reshape(column.radices)
    values = counts.sum(axis=tuple(other for other in range(counts.ndim) if other != axis))
    variance = marginal.deviation**2 * counts.size / values.size
    return Grouping(column.tables[axis]), Estimate((fine.names[place],), values, variance)


def _modelled(recoding: Recoding, place: int, tables: Sequence[Estimate]) -> list[tuple[Grouping, Estimate]]:
    """What tables over the model's codes tell of an attribute without a 1-way marginal; empty if nothing."""
    column = next(column for column in recoding.columns if place in column.sources)
    if len(column.sources) > 1 or column.merged is not None:
        return []
    about = [table for table in tables if column.name in table.clique]
    best = min(about, key=lambda table: table.variance * table.values.size, default=None)
    return [(Grouping(column.tables[0]), _onto(best, column.name))] if best else []
