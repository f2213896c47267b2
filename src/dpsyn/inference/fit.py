"""From everything that was released to the one model that rows are drawn from."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn.constraints import apply_structural_zeros, build_constraint_factors, rake_to_totals
from dpsyn.encoding import Codec, Grouping, Recoding, project_to_recoding, uniform_weights
from dpsyn.errors import SchemaError
from dpsyn.inference import gibbs
from dpsyn.inference.consistency import ConsistencyOptions, make_consistent
from dpsyn.inference.empirical_bayes import posterior_mean_counts
from dpsyn.inference.measurements import Model, Release, SynthesisMethod
from dpsyn.marginals import Estimate, Marginal, average_estimates
from dpsyn.progress import Progress, ignore_progress
from dpsyn.schema import Schema, compile_constraints


def fit_model(
    schema: Schema,
    recoding: Recoding,
    releases: Sequence[Release],
    *,
    zeroed_attributes: Collection[str] = (),
    total: float | None = None,
    method: SynthesisMethod = "gibbs",
    tables: Sequence[Estimate] = (),
    progress: Progress = ignore_progress,
) -> Model:
    """Combine the marginals of all releases by inverse variance, make them consistent and non-negative.

    Args:
        schema: what is public, and what was bought.
        recoding: the attributes to model. What was measured under a finer recoding is merged; what was measured
            under one that does not fit is left out.
        releases: everything that was measured.
        zeroed_attributes: attributes whose last code counts as empty.
        total: the number of rows, where it is public.
        method: how records are to be fitted to the tables.
        tables: what somebody worked out from the marginals; then the model follows these alone.
        progress: is told how far it is.
    """
    told = [project_to_recoding(marginal, source, recoding) for source, marginal in _iterate_marginals(releases)]
    said = list(tables) or [estimate for estimate in told if estimate is not None]
    silent_about = set(recoding.names) - {name for estimate in said for name in estimate.clique}
    constant = {c.name for c in recoding.columns if c.size == 1} & silent_about if said else set()
    silent_about -= constant
    if silent_about:
        raise SchemaError(f"no marginal says anything about {', '.join(sorted(silent_about))}; give one for each")
    histograms = _estimate_fine_histograms(Codec(schema), recoding, releases, said)
    factors = build_constraint_factors(schema, recoding, histograms)
    rows = _apply_public_totals(schema, max(estimate_row_count(said) if total is None else total, 0.0))
    said += [Estimate((name,), np.array([rows]), 0.0) for name in constant]  # one code has all rows: nothing to tell
    agreed = make_consistent(
        [_drop_zeroed_codes(apply_structural_zeros(estimate, factors), zeroed_attributes) for estimate in said],
        total=rows,
        options=ConsistencyOptions(ripple=method != "gum"),  # PrivSyn has norm-sub alone
        progress=progress,
    )
    whole = [_restore_zeroed_codes(table, zeroed_attributes) for table in _maximal_tables(agreed)]
    kept = tuple(
        rake_to_totals([apply_structural_zeros(table, factors, rows) for table in whole], schema, recoding, rows)
    )
    connected = factors or any(len(table.clique) > 1 for table in kept)
    fitted = None
    if method == "gibbs" and connected:
        fitted = gibbs.fit(kept, recoding.names, recoding.sizes, seed=0, factors=factors, progress=progress)
    return Model(recoding, kept, histograms, rows, fitted)


def _apply_public_totals(schema: Schema, rows: float) -> float:
    """The number of rows, if the schema says it; at least as many as it says that there are of some kind."""
    totals = compile_constraints(schema).totals
    if everything := [total.count for total in totals if not total.selection]:
        return float(everything[0])
    return max([rows, *(float(total.count) for total in totals)])


def estimate_one_way(releases: Sequence[Release], recoding: Recoding, name: str) -> Estimate:
    """The 1-way table of an attribute under a recoding, from all 1-way marginals of it, by inverse variance."""
    told = [
        project_to_recoding(marginal, source, recoding)
        for source, marginal in _iterate_marginals(releases)
        if marginal.clique == (name,)
    ]
    return average_estimates([estimate for estimate in told if estimate is not None])[0]


def _iterate_marginals(releases: Sequence[Release]) -> Iterable[tuple[Recoding, Marginal]]:
    """Every marginal, and the recoding it was measured under."""
    return ((stage.recoding, m) for release in releases for stage in release.rounds for m in stage.marginals)


def estimate_row_count(estimates: Sequence[Estimate]) -> float:
    """The number of rows: the sum of every table, the smaller and less noisy ones counting more.

    It is worked out before codes that count as empty are cut off, which would take rows away.
    """
    precisions = np.array([1 / max(estimate.variance * estimate.values.size, 1e-12) for estimate in estimates])
    return float(np.average([estimate.total for estimate in estimates], weights=precisions))


# ── codes that count as empty are cut off before tables are made consistent, and put back after ──────────────


def _drop_zeroed_codes(estimate: Estimate, zeroed_attributes: Collection[str]) -> Estimate:
    cut = tuple(slice(0, -1) if name in zeroed_attributes else slice(None) for name in estimate.clique)
    return Estimate(estimate.clique, np.array(estimate.values[cut]), estimate.variance)


def _restore_zeroed_codes(table: Estimate, zeroed_attributes: Collection[str]) -> Estimate:
    values = np.pad(np.maximum(table.values, 0.0), [(0, int(name in zeroed_attributes)) for name in table.clique])
    return Estimate(table.clique, values, table.variance)


def _maximal_tables(tables: Sequence[Estimate]) -> list[Estimate]:
    """Tables whose attributes are not all in a larger one, which says the same about them."""
    cliques = [frozenset(table.clique) for table in tables]
    return [
        table for table, clique in zip(tables, cliques, strict=True) if not any(clique < other for other in cliques)
    ]


# ── weights by which codes are drawn apart ───────────────────────────────────────────────────────────────────


def _estimate_fine_histograms(
    codec: Codec, recoding: Recoding, releases: Sequence[Release], tables: Sequence[Estimate]
) -> dict[str, NDArray[np.float64]]:
    """Weights over the fine codes of every attribute: likely counts, so that no rare value is lost.

    They are over what the recoding draws: where an attribute is told as differences, over differences.
    """
    fine = Recoding.fine(codec).code_differences(recoding.difference_codings)
    return {
        name: posterior_mean_counts(*_estimate_fine_counts(fine, codec, place, releases, recoding, tables))
        for place, name in enumerate(codec.names)
    }


def _estimate_fine_counts(
    fine: Recoding,
    codec: Codec,
    index: int,
    releases: Sequence[Release],
    recoding: Recoding,
    tables: Sequence[Estimate],
) -> tuple[NDArray[np.float64], float]:
    """The best linear estimate of an attribute's fine counts from tables over cells and over groups; its deviation.

    Cells of a group are moved together so that their sum becomes the weighted mean of both measurements; where only
    groups were measured, their counts are spread evenly over values, and the noise in them does not matter.
    """
    even = uniform_weights(codec.attributes[index])
    cells, others = _one_way_evidence(fine, index, releases)
    if not cells and not others:
        others = _evidence_from_tables(recoding, index, tables)
    if not cells:
        return (_spread_over_cells(*others[0], even) if others else even), 0.0
    base = average_estimates(cells)[0]
    if not others:
        return base.values, math.sqrt(base.variance)
    groups, other = others[0]
    members, sums = np.bincount(groups.group_of), groups.sums(base.values)
    trust = base.variance * members / (base.variance * members + other.variance)  # in the groups, against their cells
    moved: NDArray[np.float64] = base.values + ((other.values - sums) * trust / members)[groups.group_of]
    return moved, math.sqrt(base.variance)


def _spread_over_cells(groups: Grouping, estimate: Estimate, even: NDArray[np.float64]) -> NDArray[np.float64]:
    values: NDArray[np.float64] = estimate.values[groups.group_of] * (even / groups.sums(even)[groups.group_of])
    return values


def _one_way_evidence(
    fine: Recoding, index: int, releases: Sequence[Release]
) -> tuple[list[Estimate], list[tuple[Grouping, Estimate]]]:
    """What tells about an attribute alone: tables over its cells, and tables over groups of them, the finest first.

    A joint attribute tells about its parts, and a table of an attribute and what it is expected by about differences.
    """
    name, cells = fine.names[index], []
    groups: dict[bytes, tuple[Grouping, list[Estimate]]] = {}
    for recoding, marginal in _iterate_marginals(releases):
        if marginal.clique == (name,) or (index in fine.difference_codings and name in marginal.clique):
            over_cells = project_to_recoding(marginal, recoding, fine)
            if over_cells is not None:
                cells.append(_marginalize(over_cells, name))
                continue
        told = _project_to_source(marginal, recoding, fine, index)
        if told is None:
            continue
        grouping, estimate = told
        if grouping.size == len(grouping.group_of):
            cells.append(Estimate((name,), estimate.values[grouping.group_of], estimate.variance))
        else:
            groups.setdefault(grouping.group_of.tobytes(), (grouping, []))[1].append(estimate)
    found = [(grouping, average_estimates(estimates)[0]) for grouping, estimates in groups.values()]
    return cells, sorted(found, key=lambda pair: -pair[0].size)


def _marginalize(estimate: Estimate, name: str) -> Estimate:
    values = np.array(estimate.project([name]))
    return Estimate((name,), values, estimate.variance * estimate.values.size / values.size)


def _project_to_source(
    marginal: Marginal, recoding: Recoding, fine: Recoding, index: int
) -> tuple[Grouping, Estimate] | None:
    """What a 1-way marginal tells about one of the fine attributes that its codes are made of; None if nothing."""
    if len(marginal.clique) > 1:
        return None
    column = recoding.columns[recoding.index_of(marginal.clique[0])]
    if index not in column.sources or column.merged is not None:
        return None
    mine, theirs = column.difference_coding_of(index), fine.difference_codings.get(index)
    if not (mine is theirs or (mine and theirs and mine.is_equivalent(theirs))):
        return None
    axis = column.sources.index(index)
    counts = marginal.counts.reshape(column.radices)
    values = counts.sum(axis=tuple(other for other in range(counts.ndim) if other != axis))
    variance = marginal.std**2 * counts.size / values.size
    return Grouping(column.tables[axis]), Estimate((fine.names[index],), values, variance)


def _evidence_from_tables(
    recoding: Recoding, index: int, tables: Sequence[Estimate]
) -> list[tuple[Grouping, Estimate]]:
    """What tables over the model's codes tell of an attribute without a 1-way marginal; empty if nothing."""
    column = next(column for column in recoding.columns if index in column.sources)
    if len(column.sources) > 1 or column.merged is not None:
        return []
    about = [table for table in tables if column.name in table.clique]
    best = min(about, key=lambda table: table.variance * table.values.size, default=None)
    return [(Grouping(column.tables[0]), _marginalize(best, column.name))] if best else []
