"""Scores: how far marginals are from what the model of everything released so far predicts."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding import RecodedColumn, Recoding, contingency_table
from dpsyn.inference import (
    Model,
    PreviousReleases,
    Release,
    Scores,
    estimate_one_way,
    fit_model,
    iterate_marginals,
    norm_sub,
)
from dpsyn.marginals import Clique
from dpsyn.private import PrivateTable
from dpsyn.recipes.base import Measurements
from dpsyn.recipes.resolution import Counts, Groups, PredictedTable, Resolution, coarsen_recoding
from dpsyn.selection import estimate_distances, max_distance

MIN_INTERACTION_SIGMAS = 3.5
"""An interaction with the target counts if its score is above so many standard deviations of the noise: of 500 that are
scored, none exceeds that by chance in nine of ten releases."""


def predict_tables(
    measurements: Measurements,
    previous: PreviousReleases | None,
    cliques: Sequence[Clique],
    resolution: Resolution,
) -> list[PredictedTable]:
    """Predict marginals from everything released so far; attributes are independent if no pair was measured."""
    releases = (*(previous.releases if previous else ()), Release(measurements.rounds, public=measurements.public))
    model = fit_model(measurements.schema, measurements.recoding, releases, total=measurements.row_count)
    finest = [resolution.coarser(resolution.finest(clique)) for clique in cliques]
    if model.distribution is None:
        one_way = {table.clique[0]: norm_sub(table.values, model.total) for table in model.tables}
        return [_independent_table(one_way, model, *table) for table in zip(cliques, finest, strict=True)]
    records = dict(zip(model.recoding.names, model.distribution.records, strict=True))
    scale = model.total / model.distribution.records.shape[1]
    return [_count_records(records, scale, resolution, *table) for table in zip(cliques, finest, strict=True)]


def _independent_table(one_way: Mapping[str, Counts], model: Model, clique: Clique, groups: Groups) -> PredictedTable:
    total = max(model.total, 1.0)
    parts = [groups[n].sums(one_way[n]) if n in groups else one_way[n] for n in clique]
    return PredictedTable(clique, groups, reduce(np.multiply.outer, [part / total for part in parts]) * total)


def _count_records(
    records: Mapping[str, NDArray[Any]], scale: float, resolution: Resolution, clique: Clique, groups: Groups
) -> PredictedTable:
    columns = [groups[n].merge(records[n]) if n in groups else records[n] for n in clique]
    sizes = [groups[n].size if n in groups else resolution.sizes[n] for n in clique]
    return PredictedTable(clique, groups, contingency_table(columns, sizes).astype(np.float64) * scale)


def score_cliques(
    table: PrivateTable,
    measurements: Measurements,
    predictions: Sequence[PredictedTable],
    rho: Fraction,
    resolution: Resolution,
    releases: Sequence[Release],
    target: str | None,
    screened: Collection[Clique],
) -> tuple[Measurements, Counts, dict[Clique, float]]:
    """Measure the distances of marginals from predictions; return what measuring them could remove, and record them.

    Of the tables that are ``screened``, whose parts may show nothing, the part that exceeds those of their parts is
    returned, if it stands out. Pairs that hold a list with a hierarchy are scored at its coarsest level, too; the part
    of their distance that it shows is returned as well.

    Privacy: spends ``rho``, unless there is nothing to score.
    """
    if not predictions:
        return measurements, np.empty(0), {}
    coarse = [(p, groups) for p in predictions if (groups := resolution.scored_by_hierarchy(p.clique)) is not None]
    pairs = [*((p, resolution.scoring_groups(p.clique)) for p in predictions), *coarse]
    cliques, scored = [p.clique for p, _ in pairs], [groups for _, groups in pairs]
    tables = [p.at(groups) for p, groups in pairs]
    columns: dict[str, RecodedColumn] = {}
    named: list[Clique] = []
    names_in_use = table.recoding.names
    for clique, groups in zip(cliques, scored, strict=True):
        names = []
        for name in clique:
            column = table.recoding.columns[table.recoding.index_of(name)]
            if name in groups:
                column = replace(column.regroup(groups[name]), name=_name_level(name, groups[name].size, names_in_use))
            columns[column.name] = column
            names.append(column.name)
        named.append(tuple(names))
    recoding = Recoding(tuple(columns.values()), table.recoding.origin)
    noisy = table.recode(recoding).score_predictions(named, tables, rho)
    explained = _explained_distances(tables, cliques, scored, releases, table.recoding, target)
    scores = np.sqrt(np.maximum(np.maximum(noisy.values, 0.0) ** 2 - explained**2, 0.0))
    recorded = Scores("distance from the model", tuple(cliques), noisy.values, noisy.std)
    cliques, scores, by_hierarchy = cliques[: len(predictions)], *np.split(scores, [len(predictions)])
    kinds = np.array([0 if clique in screened else len(clique) for clique in cliques])
    largest = np.array([max_distance(counts) for counts in tables[: len(predictions)]])
    for kind in set(kinds.tolist()) - {0}:
        of_kind = np.flatnonzero(kinds == kind)
        scores[of_kind] = estimate_distances(noisy.values[of_kind], noisy.std, explained[of_kind], largest[of_kind])
    found = _keep_interactions(cliques, scores, screened, MIN_INTERACTION_SIGMAS * noisy.std)
    whole = dict(zip(cliques, found.tolist(), strict=True))
    shown = {
        predicted.clique: min(1.0, distance / max(whole[predicted.clique], 1e-9))
        for (predicted, _), distance in zip(coarse, by_hierarchy.tolist(), strict=True)
    }
    return replace(measurements, scores=(*measurements.scores, recorded)), found, shown


def _name_level(name: str, size: int, names_in_use: Sequence[str]) -> str:
    """A name for an attribute at a level, other than those of all attributes."""
    label = f"{name} at {size}"
    while label in names_in_use:
        label += " groups"
    return label


def _keep_interactions(
    cliques: Sequence[Clique], scores: Counts, screened: Collection[Clique], threshold: float
) -> Counts:
    """What screened tables score beyond their parts, 0 below a threshold; interactions add up like variances."""
    own: dict[Clique, float] = {}
    for position in sorted(range(len(cliques)), key=lambda position: len(cliques[position])):
        clique, score = cliques[position], max(float(scores[position]), 0.0)
        if clique in screened:
            parts = [part for size in range(2, len(clique)) for part in combinations(clique, size)]
            beyond = math.sqrt(max(score**2 - math.fsum([own.get(part, 0.0) ** 2 for part in parts]), 0.0))
            score = beyond if beyond > threshold else 0.0
        own[clique] = score
    return np.array([own[clique] for clique in cliques])


def _explained_distances(
    tables: Sequence[Counts],
    cliques: Sequence[Clique],
    scored: Sequence[Groups],
    releases: Sequence[Release],
    recoding: Recoding,
    target: str | None,
) -> Counts:
    """The part of the distances that it would not help to measure marginals for.

    Predictions follow from noisy one-way tables, and small tables would have large scores from that alone; pairs are
    not the remedy. By sampling, too, a table of n rows differs from a model that is right: E|X − μ| in a cell with
    Poisson counts is 2μe^(−μ) for μ < 1 and about √(2μ/π) above. That counts, because a measurement shows it; except
    for a target, for which relations count that hold for other rows as well.
    """
    measured = {marginal.clique[0] for _, marginal in iterate_marginals(releases) if len(marginal.clique) == 1}
    stds: dict[tuple[str, int], float] = {}
    distances = []
    for counts, clique, groups in zip((np.maximum(t, 0.0) for t in tables), cliques, scored, strict=True):
        parts = []
        if target in clique:
            sampling = np.where(counts < 0.8, 2 * counts * np.exp(-counts), np.sqrt(2 * counts / math.pi))
            parts.append(float(sampling.sum()))
        for axis, name in enumerate(clique):
            if name not in measured:
                continue
            key = name, counts.shape[axis]
            if key not in stds:
                coarse = coarsen_recoding(recoding, {name: groups[name]} if name in groups else {})
                stds[key] = math.sqrt(estimate_one_way(releases, coarse, name).variance)
            sums = counts.sum(axis=tuple(other for other in range(counts.ndim) if other != axis))
            parts.append(math.sqrt(2 / math.pi) * float(np.minimum(sums, stds[key]).sum()))
        distances.append(math.hypot(*parts))
    return np.array(distances)
