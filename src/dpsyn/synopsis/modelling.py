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
from dpsyn.records import Codec, even_weights
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
    if silent_about:
        raise SchemaError(f"no marginal says anything about {', '.join(sorted(silent_about))}; give one for each")
    histograms = _histograms(Codec(schema), releases)
    factors = factors_of(schema, recoding, histograms)
    rows = _public_rows(schema, max(estimated_rows(said) if total is None else total, 0.0))
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


def _histograms(codec: Codec, releases: Sequence[Release]) -> dict[str, NDArray[np.float64]]:
    """Weights over the fine codes of every attribute: likely counts, so that no rare value is lost."""
    return {name: likely_counts(*_fine_values(codec, place, releases)) for place, name in enumerate(codec.names)}


def _fine_values(codec: Codec, place: int, releases: Sequence[Release]) -> tuple[NDArray[np.float64], float]:
    """The best linear estimate of an attribute's fine counts from tables over cells and over bins; its deviation.

    Cells of a bin are moved together so that their sum becomes the weighted mean of both measurements; where only bins
    were measured, their counts are spread evenly over values, and the noise in the bins does not matter.
    """
    bins, even = codec.groupings[place], even_weights(codec.attributes[place])
    cells, others = _singles(codec, codec.names[place], releases)
    if not cells:
        share = even / bins.sums(even)[bins.group_of]
        return (averaged(others)[0].values[bins.group_of] * share if others else even), 0.0
    base = averaged(cells)[0]
    if not others:
        return base.values, math.sqrt(base.variance)
    members, sums, other = np.bincount(bins.group_of), bins.sums(base.values), averaged(others)[0]
    trust = base.variance * members / (base.variance * members + other.variance)  # in the bins, against their cells
    moved: NDArray[np.float64] = base.values + ((other.values - sums) * trust / members)[bins.group_of]
    return moved, math.sqrt(base.variance)


def _singles(codec: Codec, name: str, releases: Sequence[Release]) -> tuple[list[Estimate], list[Estimate]]:
    """The 1-way tables of an attribute over its cells, and those that say something about its bins only."""
    fine, coarse = Recoding.fine(codec), Recoding.coarse(codec)
    cells, others = [], []
    for recoding, marginal in _measured(releases):
        if marginal.clique != (name,):
            continue
        if (over_cells := carried(marginal, recoding, fine)) is not None:
            cells.append(over_cells)
        elif (over_bins := carried(marginal, recoding, coarse)) is not None:
            others.append(over_bins)
    return cells, others
