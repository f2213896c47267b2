"""Maximum entropy by Gibbs sampling over the synthetic records themselves.

The records start as an exact sample of a forest of the tables (Chow and Liu 1968). Then every value is drawn again and
again given the record's others, while each cell's weight falls with every record that it holds beyond its count:
p(X) ∝ Π_i p₀(x_i) · exp(−½ Σ_c λ_c ‖n_c(X) − t_c‖²), with p₀ the forest. In the mean that is the
distribution nearest to the forest among those that follow the tables as far as their noise warrants:
p(x) ∝ p₀(x) · exp Σ_c λ_c (t_c − E n_c)(x_c). With exact tables λ is large and p the maximum entropy distribution.

Cells of weight e^(−λ·surplus) are updated record by record, so that nothing overshoots: a handful of sweeps settle
where one update per sweep needs forty (Younes 1989, Tieleman 2008 do that for Boltzmann machines).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.inference.gibbs.chains import Chains, QuadraticPenalty, polish_chains, split_records
from dpsyn.inference.gibbs.forest import Forest, build_forest
from dpsyn.inference.gibbs.layout import CellValues, CliqueLayout
from dpsyn.inference.gibbs.model import GibbsModel, LogFactors, build_log_factors
from dpsyn.inference.gibbs.targets import Target, build_targets, estimate_total, expected_noise_distance
from dpsyn.inference.methods import Gibbs
from dpsyn.marginals import Estimate, Factor
from dpsyn.progress import Progress, ignore_progress

MAX_FIT_RECORDS = 50_000
_MIN_FIT_RECORDS = 10_000
"""With fewer records the averages would be rough; rows to publish are drawn from the model, as many as one likes."""

_MIN_VARIANCE = 1e-6
"""Of tables that are exact: they are followed as if they had a little noise."""

_EMPTY_LOG_WEIGHT = -8.0
"""Added to the parameters of cells that are known to be empty."""


def fit(
    tables: Sequence[Estimate],
    names: Sequence[str],
    sizes: Sequence[int],
    *,
    seed: int,
    records: int | None = None,
    factors: Sequence[Factor] = (),
    options: Gibbs | None = None,
    progress: Progress = ignore_progress,
) -> GibbsModel:
    """The distribution nearest to independence that follows tables of counts as far as their noise warrants.

    Args:
        tables: counts of any cliques; each attribute is in one at least. They may disagree and have negative cells:
            tables as measured, or made consistent without clipping, give closer records than clipped ones.
        names: the attributes.
        sizes: how many values each has.
        seed: of all draws; the result does not depend on the number of threads.
        records: how many chains run; by default about as many as the tables speak of, 10⁴ … 5·10⁴: twice as many gain
            nothing.
        factors: what is known of combinations without counting, such as that they cannot be.
        options: how the fit runs.
        progress: told how far it is.
    """
    options = options or Gibbs()
    targets = build_targets(tables, names, sizes)
    total = estimate_total(targets)
    records = records or int(np.clip(round(total), _MIN_FIT_RECORDS, MAX_FIT_RECORDS))
    if records < 1:
        raise InternalError(f"a fit of {records} records")
    forest = build_forest([(target.indices, target.shrink_interaction()) for target in targets], len(names))
    known = build_log_factors(factors, names, sizes)
    layout = CliqueLayout.of(sizes, [target.indices for target in targets], known.cliques)
    base = _initial_parameters(layout, forest, targets, known, options)
    wanted = np.append(_stiffness(targets, total, records, options), np.ones(len(known.cliques)))
    values = np.concatenate([*(target.values.ravel() for target in targets), np.zeros(len(known.logs))])
    firm = np.minimum(wanted, layout.target_stiffness(options.sweep_stiffness / len(split_records(records))))
    pull = QuadraticPenalty(values * (records / total), firm, options.max_force)
    random = np.random.default_rng(seed)
    with ThreadPoolExecutor() as pool:
        start = forest.sample(records, int(random.integers(2**63)))
        chains = Chains(layout, start, pool, random)
        distances, forces = _settle(chains, base, pull, options, progress)
        forces = _relax(chains, base, pull, wanted, forces, options, progress)
        expected = _expected_counts(layout, pull, forces, wanted, targets, total, records / total)
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
        known.logs,
    )


def _settle(
    chains: Chains, parameters: CellValues, penalty: QuadraticPenalty, options: Gibbs, progress: Progress
) -> tuple[list[float], CellValues]:
    """Sweep until a sweep brings the records no closer to the tables: the distances on the way and the last forces."""
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
    wanted: CellValues,
    forces: CellValues,
    options: Gibbs,
    progress: Progress,
) -> CellValues:
    """Ease the pull while its forces become parameters; what the parameters have gained on average once it is easy.

    A stiff pull keeps counts near their targets, but its force wavers by √λ from sweep to sweep; an easy one is steady
    but leaves counts apart. So each sweep hands its force over to the parameters (the method of multipliers, Hestenes
    1969), and λ falls until the pull on a cell is no stronger than the draws' own tendency to their mean, λ·n = 1.
    Targets are lowered by what has been handed over, so that force = wanted·(target − count) holds at the end.
    """
    easy = np.minimum(penalty.stiffness, chains.layout.lengths / chains.columns.shape[1])
    held, mean = forces, np.zeros(len(parameters))
    for number in range(-options.relaxing_sweeps, options.averaging_sweeps):
        done = options.max_sweeps + options.relaxing_sweeps + number
        progress("fitting records", done / (options.max_sweeps + options.relaxing_sweeps + options.averaging_sweeps))
        share = max(0.0, -number / (options.relaxing_sweeps + 1))
        aim = QuadraticPenalty(
            penalty.targets - held / chains.layout.repeat_per_cell(wanted),
            penalty.stiffness**share * easy ** (1 - share),
            options.max_force,
        )
        held = held + chains.sweep(parameters + held, aim)
        if number >= 0:
            mean += held
    return mean / options.averaging_sweeps


def _stiffness(targets: Sequence[Target], total: float, records: int, options: Gibbs) -> CellValues:
    """How strongly records should follow each table: see ``GibbsOptions.trust``."""
    per_cell = np.array([total / target.values.size for target in targets])
    variance = np.array([max(target.variance, _MIN_VARIANCE) for target in targets])
    trusted = options.trust * per_cell / variance * (total / records)
    stiffness: CellValues = trusted / (1 + trusted / options.max_stiffness)
    return stiffness


def _expected_counts(
    layout: CliqueLayout,
    penalty: QuadraticPenalty,
    forces: CellValues,
    wanted: CellValues,
    targets: Sequence[Target],
    total: float,
    scale: float,
) -> CellValues:
    """The counts that rows should have: between those of the model and the tables', as far as these are known.

    The model's are those at which the tables exert the forces that were found, much steadier than the counts met on
    the way. A table of records drawn from the model varies by its count in each cell, and was measured with
    noise beside; so the share count / (count + variance) of what is left between them is followed.
    """
    known = np.zeros(len(layout.cliques) - layout.target_count)
    variance = layout.repeat_per_cell(np.append([target.variance for target in targets], known))
    aims = penalty.targets + layout.repeat_per_cell(
        (scale * total - layout.sum_by_clique(penalty.targets)) / layout.lengths
    )
    counts = np.maximum(aims - forces / layout.repeat_per_cell(wanted), 0.0)
    share = counts / np.maximum(counts + scale * variance, 1e-9)
    return np.maximum(counts + share * (aims - counts), 0.0)


def _initial_parameters(
    layout: CliqueLayout, forest: Forest, targets: Sequence[Target], log_factors: LogFactors, options: Gibbs
) -> CellValues:
    """θ of the forest: for each branch the logarithm of its conditional, in the table that it comes from.

    What is known without counting is added, in cliques of its own.
    """
    parameters = np.zeros(layout.offsets[-1])
    for branch in forest.branches:
        clique = layout.cliques[branch.source]
        kept = sorted(branch.family, key=clique.index)
        pseudocount = max(0.5, options.pseudocount_sigmas * np.sqrt(targets[branch.source].variance))
        logs = np.transpose(branch.log_conditional(pseudocount), [branch.family.index(place) for place in kept])
        shape = [layout.sizes[place] if place in kept else 1 for place in clique]
        layout.table(parameters, branch.source)[...] += logs.reshape(shape)
    empty: NDArray[np.bool_] = np.concatenate([target.surely_empty_cells().ravel() for target in targets])
    parameters[: layout.target_cells][empty] += _EMPTY_LOG_WEIGHT
    parameters[layout.target_cells :] = log_factors.logs
    return parameters
