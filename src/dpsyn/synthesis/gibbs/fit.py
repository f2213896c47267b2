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
from dpsyn.marginals import Estimate, Factor
from dpsyn.progress import Progress, silent
from dpsyn.synthesis.gibbs.chains import Chains, Pull, parts_of
from dpsyn.synthesis.gibbs.fitted import Fitted
from dpsyn.synthesis.gibbs.forest import Forest, plant
from dpsyn.synthesis.gibbs.knowing import Known, known_of
from dpsyn.synthesis.gibbs.layout import Cells, Layout
from dpsyn.synthesis.gibbs.options import GibbsOptions
from dpsyn.synthesis.gibbs.polish import polish_chains
from dpsyn.synthesis.gibbs.targets import Target, noise_of, targets_of, total_of

MOST_RECORDS = 50_000
_LEAST_RECORDS = 10_000
"""With fewer records the averages would be rough; rows to publish are drawn from the model, as many as one likes."""

_LEAST_VARIANCE = 1e-6
"""Of tables that are exact: they are followed as if they had a little noise."""

_EMPTY = -8.0
"""Added to the parameters of cells that are known to be empty."""


def fit(
    tables: Sequence[Estimate],
    names: Sequence[str],
    sizes: Sequence[int],
    *,
    seed: int,
    records: int | None = None,
    factors: Sequence[Factor] = (),
    options: GibbsOptions | None = None,
    progress: Progress = silent,
) -> Fitted:
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
    options = options or GibbsOptions()
    targets = targets_of(tables, names, sizes)
    total = total_of(targets)
    records = records or int(np.clip(round(total), _LEAST_RECORDS, MOST_RECORDS))
    if records < 1:
        raise InternalError(f"a fit of {records} records")
    forest = plant([(target.places, target.shrunk()) for target in targets], len(names))
    known = known_of(factors, names, sizes)
    layout = Layout.of(sizes, [target.places for target in targets], known.cliques)
    base = _start_parameters(layout, forest, targets, known, options)
    wanted = np.append(_stiffness(targets, total, records, options), np.ones(len(known.cliques)))
    values = np.concatenate([*(target.values.ravel() for target in targets), np.zeros(len(known.logs))])
    firm = np.minimum(wanted, layout.firmness(options.stiffest / len(parts_of(records))))
    pull = Pull(values * (records / total), firm, options.reach)
    random = np.random.default_rng(seed)
    with ThreadPoolExecutor() as pool:
        start = forest.sample(records, int(random.integers(2**63)))
        chains = Chains(layout, start, pool, random)
        distances, forces = _settle(chains, base, pull, options, progress)
        forces = _ease(chains, base, pull, wanted, forces, options, progress)
        expected = _expected(layout, pull, forces, wanted, targets, total, records / total)
        polish_chains(chains, base + forces, expected, options)
    progress("fitting records", 1.0)
    return Fitted(
        tuple(names),
        layout,
        forest,
        (base + forces)[: layout.followed_cells],
        expected[: layout.followed_cells] / records,
        total,
        noise_of(targets, total),
        chains.columns,
        tuple(distances),
        known.logs,
    )


def _settle(
    chains: Chains, parameters: Cells, pull: Pull, options: GibbsOptions, progress: Progress
) -> tuple[list[float], Cells]:
    """Sweep until a sweep brings the records no closer to the tables: the distances on the way and the last forces."""
    distances = [chains.distance(pull.targets)]
    for number in range(options.most_sweeps):
        progress("fitting records", number / (options.most_sweeps + options.eased + options.averaged))
        forces = chains.sweep(parameters, pull)
        distances.append(chains.distance(pull.targets))
        if distances[-1] >= (1 - options.progress) * distances[-2]:
            break
    return distances, forces


def _ease(
    chains: Chains,
    parameters: Cells,
    pull: Pull,
    wanted: Cells,
    forces: Cells,
    options: GibbsOptions,
    progress: Progress,
) -> Cells:
    """Ease the pull while its forces become parameters; what the parameters have gained on average once it is easy.

    A stiff pull keeps counts near their targets, but its force wavers by √λ from sweep to sweep; an easy one is steady
    but leaves counts apart. So each sweep hands its force over to the parameters (the method of multipliers, Hestenes
    1969), and λ falls until the pull on a cell is no stronger than the draws' own tendency to their mean, λ·n = 1.
    Targets are lowered by what has been handed over, so that force = wanted·(target − count) holds at the end.
    """
    easy = np.minimum(pull.stiffness, chains.layout.lengths / chains.columns.shape[1])
    held, mean = forces, np.zeros(len(parameters))
    for number in range(-options.eased, options.averaged):
        done = options.most_sweeps + options.eased + number
        progress("fitting records", done / (options.most_sweeps + options.eased + options.averaged))
        share = max(0.0, -number / (options.eased + 1))
        aim = Pull(
            pull.targets - held / chains.layout.spread(wanted),
            pull.stiffness**share * easy ** (1 - share),
            options.reach,
        )
        held = held + chains.sweep(parameters + held, aim)
        if number >= 0:
            mean += held
    return mean / options.averaged


def _stiffness(targets: Sequence[Target], total: float, records: int, options: GibbsOptions) -> Cells:
    """How strongly records should follow each table: see ``GibbsOptions.trust``."""
    per_cell = np.array([total / target.values.size for target in targets])
    variance = np.array([max(target.variance, _LEAST_VARIANCE) for target in targets])
    trusted = options.trust * per_cell / variance * (total / records)
    stiffness: Cells = trusted / (1 + trusted / options.most_trust)
    return stiffness


def _expected(
    layout: Layout, pull: Pull, forces: Cells, wanted: Cells, targets: Sequence[Target], total: float, scale: float
) -> Cells:
    """The counts that rows should have: between those of the model and the tables', as far as these are known.

    The model's are those at which the tables exert the forces that were found, much steadier than the counts met on
    the way. A table of records drawn from the model varies by its count in each cell, and was measured with
    noise beside; so the share count / (count + variance) of what is left between them is followed.
    """
    known = np.zeros(len(layout.cliques) - layout.followed)
    variance = layout.spread(np.append([target.variance for target in targets], known))
    aims = pull.targets + layout.spread((scale * total - layout.per_clique(pull.targets)) / layout.lengths)
    counts = np.maximum(aims - forces / layout.spread(wanted), 0.0)
    share = counts / np.maximum(counts + scale * variance, 1e-9)
    return np.maximum(counts + share * (aims - counts), 0.0)


def _start_parameters(
    layout: Layout, forest: Forest, targets: Sequence[Target], known: Known, options: GibbsOptions
) -> Cells:
    """θ of the forest: for each branch the logarithm of its conditional, in the table that it comes from.

    What is known without counting is added, in cliques of its own.
    """
    parameters = np.zeros(layout.offsets[-1])
    for branch in forest.branches:
        clique = layout.cliques[branch.source]
        kept = sorted(branch.family, key=clique.index)
        pseudocount = max(0.5, options.doubt * np.sqrt(targets[branch.source].variance))
        logs = np.transpose(branch.log_conditional(pseudocount), [branch.family.index(place) for place in kept])
        shape = [layout.sizes[place] if place in kept else 1 for place in clique]
        layout.table(parameters, branch.source)[...] += logs.reshape(shape)
    empty: NDArray[np.bool_] = np.concatenate([target.surely_empty().ravel() for target in targets])
    parameters[: layout.followed_cells][empty] += _EMPTY
    parameters[layout.followed_cells :] = known.logs
    return parameters
