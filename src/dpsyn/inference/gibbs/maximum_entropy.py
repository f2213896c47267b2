"""Maximum entropy by Gibbs sampling over the synthetic records themselves.

The records start as an exact sample of a forest of the tables (Chow and Liu 1968). Then every value is resampled
repeatedly, given the other values of its record, while the weight of a cell falls with every record above its count:
p(X) ∝ Π_i p₀(x_i) · exp(−½ Σ_c λ_c ‖n_c(X) − t_c‖²), with p₀ the forest. On average this is the
distribution closest to the forest among those that follow the tables as far as their noise justifies:
p(x) ∝ p₀(x) · exp Σ_c λ_c (t_c − E n_c)(x_c). With exact tables λ is large, and p is the maximum-entropy distribution.

The weights e^(−λ·surplus) of cells are updated record by record, so the counts do not overshoot: a handful of sweeps is
enough where one update per sweep needs forty (as Younes 1989 and Tieleman 2008 do for Boltzmann machines).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.inference.gibbs.chains import Chains, QuadraticPenalty, polish_chains, split_records
from dpsyn.inference.gibbs.forest import Branch, Forest
from dpsyn.inference.gibbs.layout import CellValues, CliqueLayout, Columns, Level
from dpsyn.inference.gibbs.model import GibbsModel, LogFactors, build_initial_forest, build_log_factors, find_one_way
from dpsyn.inference.gibbs.targets import Target, build_targets, estimate_total, expected_noise_distance
from dpsyn.inference.methods import Gibbs
from dpsyn.marginals import Estimate, Factor
from dpsyn.progress import Progress, ignore_progress

MAX_FIT_RECORDS = 50_000
_MIN_FIT_RECORDS = 10_000
"""With fewer records the averages would be rough. Any number of rows to publish is sampled from the model later."""

_MIN_VARIANCE = 1e-6
"""The variance that exact tables are given: they are followed as if they had a little noise."""

_EMPTY_LOG_WEIGHT = -8.0
"""Added to the parameters of cells that are almost surely empty."""


def fit(
    tables: Sequence[Estimate],
    names: Sequence[str],
    sizes: Sequence[int],
    *,
    seed: int,
    records: int | None = None,
    factors: Sequence[Factor] = (),
    start: Columns | None = None,
    options: Gibbs | None = None,
    progress: Progress = ignore_progress,
) -> GibbsModel:
    """Fit the maximum-entropy distribution that follows tables of counts as far as their noise justifies.

    Args:
        tables: counts of any cliques; each attribute is in at least one. They may be inconsistent and have negative
            cells: tables as measured, or made consistent without clipping, give closer records than clipped ones.
        names: the attributes.
        sizes: the number of values of each attribute.
        seed: the seed of all random choices; the result does not depend on the number of threads.
        records: the number of Markov chains; by default about the total of the tables, limited to 10⁴ … 5·10⁴: twice
            as many gain nothing.
        factors: public knowledge about combinations of values, such as structural zeros.
        start: records (attributes × records) of a model of similar tables. From these, fewer sweeps are enough.
        options: the parameters of the fit.
        progress: receives the phase and the fraction done.

    Privacy: post-processing; it costs nothing.
    """
    options = options or Gibbs()
    if start is not None:
        options = replace(options, relaxing_sweeps=1, averaging_sweeps=2, polishing_sweeps=1)
        records = start.shape[1]
    targets, levels = build_targets(tables, names, sizes)
    total = estimate_total(targets)
    records = records or int(np.clip(round(total), _MIN_FIT_RECORDS, MAX_FIT_RECORDS))
    if records < 1:
        raise InternalError(f"the number of records of a fit is {records}; it must be positive")
    log_factors = build_log_factors(factors, names, sizes)
    layout = CliqueLayout.of(sizes, [target.indices for target in targets], log_factors.cliques, levels)
    forest = build_initial_forest(targets, layout)
    base = _initial_parameters(layout, forest, targets, log_factors, options)
    stiffness = np.append(_stiffness(targets, total, records, options), np.ones(len(log_factors.cliques)))
    values = np.concatenate([*(target.values.ravel() for target in targets), np.zeros(len(log_factors.logs))])
    sweep_stiffness = np.minimum(
        stiffness, layout.target_stiffness(options.sweep_stiffness / len(split_records(records)))
    )
    penalty = QuadraticPenalty(values * (records / total), sweep_stiffness, options.max_force)
    random = np.random.default_rng(seed)
    with ThreadPoolExecutor() as pool:
        first = forest.sample(records, int(random.integers(2**63))) if start is None else start.copy()
        chains = Chains(layout, first, pool, random)
        distances, forces = _settle(chains, base, penalty, options, progress)
        forces = _relax(chains, base, penalty, stiffness, forces, options, progress)
        expected = _expected_counts(layout, penalty, forces, stiffness, targets, total, records / total)
        polish_chains(chains, base + forces, expected, options)
    progress("fitting records", 1.0)
    return GibbsModel(
        tuple(names),
        layout,
        forest,
        (base + forces)[: layout.target_cells],
        expected[: layout.target_cells] / records,
        total,
        expected_noise_distance(targets, total),
        chains.columns,
        tuple(distances),
        log_factors.logs,
    )


def _settle(
    chains: Chains, parameters: CellValues, penalty: QuadraticPenalty, options: Gibbs, progress: Progress
) -> tuple[list[float], CellValues]:
    """Sweep until the records come no closer to the tables; returns the distances of all sweeps and the last forces."""
    distances = [chains.distance(penalty.targets)]
    for number in range(options.max_sweeps):
        progress("fitting records", number / (options.max_sweeps + options.relaxing_sweeps + options.averaging_sweeps))
        forces = chains.sweep(parameters, penalty)
        distances.append(chains.distance(penalty.targets))
        if distances[-1] >= (1 - options.min_improvement) * distances[-2]:
            break
    return distances, forces


def _relax(
    chains: Chains,
    parameters: CellValues,
    penalty: QuadraticPenalty,
    stiffness: CellValues,
    forces: CellValues,
    options: Gibbs,
    progress: Progress,
) -> CellValues:
    """Lower the penalty while its forces become parameters; returns the mean of these over the averaging sweeps.

    A stiff penalty keeps counts near their targets, but its forces vary by √λ from sweep to sweep; a soft one is steady
    but leaves counts far from their targets. So each sweep adds its forces to the parameters (the method of
    multipliers, Hestenes 1969), and λ falls until the penalty on a cell is no stronger than the tendency of the samples
    to their mean, λ·n = 1. Targets are lowered by the forces added so far, so that
    force = stiffness·(target − count) holds at the end.
    """
    soft = np.minimum(penalty.stiffness, chains.layout.lengths / chains.columns.shape[1])
    added, mean = forces, np.zeros(len(parameters))
    for number in range(-options.relaxing_sweeps, options.averaging_sweeps):
        done = options.max_sweeps + options.relaxing_sweeps + number
        progress("fitting records", done / (options.max_sweeps + options.relaxing_sweeps + options.averaging_sweeps))
        share = max(0.0, -number / (options.relaxing_sweeps + 1))
        relaxed = QuadraticPenalty(
            penalty.targets - added / chains.layout.repeat_per_cell(stiffness),
            penalty.stiffness**share * soft ** (1 - share),
            options.max_force,
        )
        added = added + chains.sweep(parameters + added, relaxed)
        if number >= 0:
            mean += added
    return mean / options.averaging_sweeps


def _stiffness(targets: Sequence[Target], total: float, records: int, options: Gibbs) -> CellValues:
    """How strongly records should follow each table; see ``Gibbs.trust``."""
    per_cell = np.array([total / target.values.size for target in targets])
    variance = np.array([max(target.variance, _MIN_VARIANCE) for target in targets])
    trusted = options.trust * per_cell / variance * (total / records)
    stiffness: CellValues = trusted / (1 + trusted / options.max_stiffness)
    return stiffness


def _expected_counts(
    layout: CliqueLayout,
    penalty: QuadraticPenalty,
    forces: CellValues,
    stiffness: CellValues,
    targets: Sequence[Target],
    total: float,
    scale: float,
) -> CellValues:
    """The counts that rows should have: between those of the model and those of the tables.

    The counts of the model are those at which the tables exert the fitted forces, which is much steadier than the
    counts during the sweeps. In a table of records sampled from the model, a cell has a variance equal to its count,
    and it was measured with noise on top. So the share count / (count + variance) of the remaining difference is
    followed.
    """
    factor_variances = np.zeros(len(layout.cliques) - layout.target_count)
    variance = layout.repeat_per_cell(np.append([target.variance for target in targets], factor_variances))
    scaled = penalty.targets + layout.repeat_per_cell(
        (scale * total - layout.sum_by_clique(penalty.targets)) / layout.lengths
    )
    counts = np.maximum(scaled - forces / layout.repeat_per_cell(stiffness), 0.0)
    share = counts / np.maximum(counts + scale * variance, 1e-9)
    return np.maximum(counts + share * (scaled - counts), 0.0)


def _initial_parameters(
    layout: CliqueLayout, forest: Forest, targets: Sequence[Target], log_factors: LogFactors, options: Gibbs
) -> CellValues:
    """θ of the forest: the logarithm of the conditional of each branch, in the clique of its table.

    A branch from a table at a coarser level also has the distribution of the values inside each group; that is added in
    a clique that holds the attribute itself. The logarithms of factors are added in cliques of their own.
    """
    parameters = np.zeros(layout.offsets[-1])
    for branch in forest.branches:
        clique = layout.cliques[branch.source]
        attributes = [layout.attribute_of(variable) for variable in clique]
        pseudocount = max(0.5, options.pseudocount_sigmas * np.sqrt(targets[branch.source].variance))
        kept = sorted(branch.family, key=attributes.index)
        coarse = branch if attributes == list(clique) else _coarse_branch(branch, targets[branch.source], attributes)
        logs = np.transpose(coarse.log_conditional(pseudocount), [branch.family.index(axis) for axis in kept])
        shape = [
            layout.size_of(variable) if axis in kept else 1 for variable, axis in zip(clique, attributes, strict=True)
        ]
        layout.table(parameters, branch.source)[...] += logs.reshape(shape)
        for axis in branch.new:
            if (level := layout.level_of(clique[attributes.index(axis)])) is not None:
                _add_within_groups(parameters, layout, targets, level)
    empty: NDArray[np.bool_] = np.concatenate([target.surely_empty_cells().ravel() for target in targets])
    parameters[: layout.target_cells][empty] += _EMPTY_LOG_WEIGHT
    parameters[layout.target_cells :] = log_factors.logs
    return parameters


def _coarse_branch(branch: Branch, target: Target, attributes: list[int]) -> Branch:
    """The branch over the groups that its table counts."""
    values = target.shrink_interaction()
    projected = values.sum(axis=tuple(n for n, axis in enumerate(attributes) if axis not in branch.family))
    left = [axis for axis in attributes if axis in branch.family]
    return replace(branch, joint=np.transpose(projected, [left.index(axis) for axis in branch.family]))


def _add_within_groups(parameters: CellValues, layout: CliqueLayout, targets: Sequence[Target], level: Level) -> None:
    """Add the logarithm of each value's share of its group, in a clique that holds the attribute itself."""
    source, counts = find_one_way(targets, level.attribute)
    sums = np.bincount(level.group_of, counts)
    shares = (counts + 0.5 / len(counts)) / (sums + 0.5)[level.group_of]
    clique = layout.cliques[source]
    shape = [-1 if variable == level.attribute else 1 for variable in clique]
    layout.table(parameters, source)[...] += np.log(shares).reshape(shape)
