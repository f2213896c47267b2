"""Forecasts by simulation: the real recipe runs on simulated tables of a schema, and is judged by their rows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

import msgspec
import numpy as np

from dpsyn import notebook
from dpsyn.accounting import PartitionSelection, default_delta, epsilon_for, rho_for
from dpsyn.errors import UserError, quote_argument
from dpsyn.forecasts.results import AttributeForecast, ExpectedErrors, Forecast, ForecastAtEpsilon
from dpsyn.forecasts.simulated_table import DEPENDENCES, SimulatedTable, reduce_schema, require_rows, scale_distance
from dpsyn.inference import iterate_marginals
from dpsyn.options import suggest_arguments
from dpsyn.progress import Progress, ignore_progress
from dpsyn.public import PublicTable
from dpsyn.recipes import DEFAULT_RECIPE, Planned, Recipe, measure
from dpsyn.recipes._measure import choose_noise, coerce_recipe, declare_analyses, declare_target, open_prior
from dpsyn.recipes.one_way import RARE_SIGMAS
from dpsyn.schema import Schema, SchemaDraft
from dpsyn.schema.attributes import without_provenance
from dpsyn.simulation import Simulation, simulate
from dpsyn.synopsis import Synopsis

DEFAULT_EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)

MAX_SIMULATED_ROWS = 2_000
"""A larger table is simulated by this many rows with as much less noise: what counts is noise per row."""

MAX_SIMULATED_ATTRIBUTES = 30
"""Of more attributes, some are simulated, with as much of ρ as they would have among all of them."""

MAX_SIMULATED_EPSILON = 1_000.0
"""The largest ε of a simulated release: there is no noise any more that matters."""


FORECAST_REASON = "rows of a forecast are simulated"
"""Why the public rows of a simulated release are public."""

PUBLIC_SEED = 1_000_000
"""What is added to the seed of private rows to simulate public ones."""

SIMULATED_DATASET = "simulated table, no data"
"""What the certificate of a simulated release calls its dataset."""


@suggest_arguments
@notebook.show_progress
def forecast(
    schema: Schema | str | Path,
    epsilon: float | Sequence[float] = DEFAULT_EPSILONS,
    *,
    rows: int | None = None,
    delta: float | None = None,
    recipe: Recipe | str = DEFAULT_RECIPE,
    target: str | None = None,
    analyses: Sequence[str] = (),
    public: Any = None,
    public_schema: Schema | SchemaDraft | str | Path | None = None,
    releases: int = 1,
    seed: int = 0,
    progress: Progress = ignore_progress,
) -> Forecast:
    """Forecast what a release of a table will be worth at several ε, before anything is read or spent.

    The recipe runs as it would on the table, with the same noise, on simulated tables of the schema whose attributes
    depend weakly, moderately and strongly on each other. The rows it synthesizes are compared with the simulated ones.
    ``closed_form`` explains what the three strengths mean, and predicts the moderate one within a second.

    >>> from dpsyn.demo import people_schema
    >>> expected = forecast(people_schema(), epsilon=1.0, rows=300, recipe="independent")
    >>> expected.budgets[0].moderate.keeps_pairs
    False

    Privacy: costs nothing. No data is given, no ledger is read or written, and the simulated releases are discarded.

    Args:
        schema: what is public about the table, or the path of its file; entries need not be approved yet.
        epsilon: one ε, or several.
        rows: about how many rows the table has; the schema's expected size if not given.
        delta: the δ of the guarantee; by default min(1e-9, 1/rows²).
        recipe: as for ``measure``.
        target: as for ``measure``.
        analyses: as for ``measure``.
        public: public rows, as for ``measure``. Their number and columns count, not what they say: simulated rows of
            the same population take their place.
        public_schema: as for ``measure``.
        releases: how many releases to simulate for each ε and each strength of dependence; the figures are their means.
        seed: determines the simulated tables. The noise cannot be seeded, so figures differ a little between calls.
        progress: called with what is going on.
    """
    schema = Schema.coerce(schema)
    chosen = declare_analyses(declare_target(coerce_recipe(recipe), target), analyses)
    chosen.check(schema, None)
    epsilons = _parse_epsilons(epsilon)
    rows = require_rows(schema, rows)
    for name, number, lowest in (("releases", releases, 1), ("seed", seed, 0)):
        if isinstance(number, bool) or not isinstance(number, int) or number < lowest:
            raise UserError(f"{name} is {quote_argument(number)}; give a whole number, {lowest} or more")
    delta = default_delta(rows) if delta is None else delta
    prior = open_prior(public, None if public is None else FORECAST_REASON, schema, chosen, own_schema=public_schema)
    for each in epsilons:
        noise = choose_noise(chosen, schema, each, delta, in_ledger=False)
        chosen.plan_budget(schema, each, 0 if noise.kind == "laplace" else delta)  # refuses a wrong ε or δ at once
    some = reduce_schema(_make_public(schema), _named_attributes(chosen, schema), MAX_SIMULATED_ATTRIBUTES)
    scale = _Scale(rows, min(rows, MAX_SIMULATED_ROWS), len(some.modeled_attributes) / len(schema.modeled_attributes))
    tables = {
        name: [simulate(some, scale.simulated_rows, seed + n, dependence=dependence) for n in range(releases)]
        for name, dependence in DEPENDENCES.items()
    }
    grids = {name: [SimulatedTable.of(each.schema, each.table()) for each in made] for name, made in tables.items()}
    budgets = []
    for each in epsilons:
        runs: dict[str, list[_Run]] = {}
        for step, name in enumerate(tables):
            progress(f"simulating releases at ε = {each:g}", step / len(tables))
            pairs = zip(tables[name], grids[name], strict=True)
            runs[name] = [_simulate_release(some, *pair, chosen, each, delta, scale, prior) for pair in pairs]
        errors = {name: _mean_errors([run.errors for run in done]) for name, done in runs.items()}
        without = None
        if prior:
            pairs = zip(tables["moderate"], grids["moderate"], strict=True)
            alone = [_simulate_release(some, *pair, chosen, each, delta, scale, None) for pair in pairs]
            without = _mean_errors([run.errors for run in alone]).two_way
        of_attributes = runs["moderate"][0].attributes
        budgets.append(ForecastAtEpsilon(epsilon=each, **errors, attributes=of_attributes, without_public=without))
    return Forecast(
        rows=rows,
        delta=delta,
        recipe=chosen.name,
        attribute_count=len(schema.modeled_attributes),
        simulated_rows=scale.simulated_rows,
        simulated_attributes=len(some.modeled_attributes),
        releases=releases,
        budgets=tuple(budgets),
        public_rows=prior.table.num_rows if prior else None,
    )


# ── one simulated release ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Scale:
    """How a simulated table differs in size from the table.

    Attributes:
        rows: the rows of the table.
        simulated_rows: those of the simulated one.
        attribute_share: the part of the attributes that are simulated.
    """

    rows: int
    simulated_rows: int
    attribute_share: float

    @property
    def factor(self) -> float:
        """The number of rows that one simulated row stands for."""
        return self.rows / self.simulated_rows

    def epsilon(self, epsilon: float, delta: float) -> float:
        """The ε at which the simulated table has the same noise per row, and each attribute the same part of ρ.

        The standard deviation of Gaussian noise is in proportion to 1/√ρ, so ρ is multiplied by the square of the
        factor. That of Laplace noise, which is all there is without a δ, is in proportion to 1/ε.
        """
        if self.factor == 1 and self.attribute_share == 1:
            return epsilon
        if delta == 0:
            return min(epsilon * self.factor * self.attribute_share, MAX_SIMULATED_EPSILON)
        return min(epsilon_for(self._rho(epsilon, delta), delta), MAX_SIMULATED_EPSILON)

    def noise(self, epsilon: float, delta: float) -> float:
        """The noise of the table as a part of that of the simulated one; below 1 where the simulated ε is limited."""
        if self.factor == 1 and self.attribute_share == 1:
            return 1.0
        if delta == 0:
            return min(1.0, MAX_SIMULATED_EPSILON / (epsilon * self.factor * self.attribute_share))
        return min(1.0, math.sqrt(float(rho_for(MAX_SIMULATED_EPSILON, delta)) / self._rho(epsilon, delta)))

    def _rho(self, epsilon: float, delta: float) -> float:
        return float(rho_for(epsilon, delta)) * self.factor**2 * self.attribute_share


@dataclass(frozen=True, slots=True)
class _Run:
    """A simulated release: its errors, and what it tells about each attribute."""

    errors: ExpectedErrors
    attributes: tuple[AttributeForecast, ...]


def _simulate_release(
    schema: Schema,
    simulation: Simulation,
    grid: SimulatedTable,
    recipe: Recipe,
    epsilon: float,
    delta: float,
    scale: _Scale,
    prior: PublicTable | None,
) -> _Run:
    """Release a simulated table by a recipe, exactly as a real one, and compare its rows with the simulated ones.

    With a public table, other rows of the same simulated population are the prior, as many of them as there are public
    ones for each private row, and with the columns that those have.
    """
    public = None
    if prior:
        others = max(1, round(prior.table.num_rows / scale.factor))
        sample = replace(simulation, rows=others, row_seed=simulation.row_seed + PUBLIC_SEED).table()
        public = sample.select([name for name in sample.column_names if name in prior.table.column_names])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a δ or of values that a real table may have
        synopsis = measure(
            simulation.table(),
            msgspec.structs.replace(schema, expected_size=simulation.rows, dataset=SIMULATED_DATASET),
            scale.epsilon(epsilon, delta),
            delta=delta,
            allow_large_epsilon=True,
            recipe=recipe,
            public=public,
            public_because=None if public is None else FORECAST_REASON,
        )
    columns = grid.encode(synopsis.generate(rows=simulation.rows, seed=simulation.seed, output_format="arrow"))
    sampling = grid.sampling_distances
    two_way, shuffled = (
        scale_distance(distances, sampling, scale.factor)
        for distances in (grid.two_way_distances(columns), grid.shuffled_distances)
    )
    target = recipe.to_data().get("target")
    with_target = [target in (grid.names[a], grid.names[b]) for a, b in grid.pairs]
    is_number = np.array([ordered for _, ordered in grid.grid_counts()], np.bool_)  # values are sampled inside cells
    one_way, by_sampling = grid.one_way_distances(columns), grid.one_way_distances(grid.bootstrap_sample) * is_number
    errors = ExpectedErrors(
        one_way=float(scale_distance(one_way, by_sampling, scale.factor).mean()),
        two_way=float(two_way.mean()),
        shuffled=float(shuffled.mean()),
        sampling=float(sampling.mean()) / math.sqrt(scale.factor),
        with_target=float(two_way[with_target].mean()) if any(with_target) else None,
    )
    factor = scale.factor * scale.noise(epsilon, delta)
    return _Run(errors, _attribute_forecasts(schema, synopsis, recipe, factor))


def _mean_errors(runs: Sequence[ExpectedErrors]) -> ExpectedErrors:
    of_target = [run.with_target for run in runs if run.with_target is not None]
    return ExpectedErrors(
        one_way=mean(run.one_way for run in runs),
        two_way=mean(run.two_way for run in runs),
        shuffled=mean(run.shuffled for run in runs),
        sampling=mean(run.sampling for run in runs),
        with_target=mean(of_target) if of_target else None,
    )


def _attribute_forecasts(
    schema: Schema, synopsis: Synopsis, recipe: Recipe, factor: float
) -> tuple[AttributeForecast, ...]:
    """The noise of each attribute's one-way marginals together, and the thresholds of open ones."""
    precisions: dict[str, float] = {}
    for _, marginal in iterate_marginals(synopsis.releases):
        if len(marginal.clique) == 1:
            precisions[marginal.clique[0]] = precisions.get(marginal.clique[0], 0.0) + marginal.std**-2
    certificate = synopsis.certificates[-1]
    costs = [record.cost for record in certificate.account.measurements] if certificate else []
    selections = [cost for cost in costs if isinstance(cost, PartitionSelection)]  # one for each, in their order
    thresholds = {a.name: s.threshold for a, s in zip(schema.open_attributes, selections, strict=True)}
    options = recipe.to_data()
    sigmas, rows = options.get("rare_sigmas", RARE_SIGMAS), options.get("rare_rows", 0.0)
    return tuple(
        AttributeForecast(
            name=name,
            survives=max(factor * sigmas / math.sqrt(precision), rows),
            listed=math.ceil(factor * thresholds[name]) if name in thresholds else None,
        )
        for name, precision in precisions.items()
    )


# ── what is simulated ────────────────────────────────────────────────────────────────────────────────────────


def _parse_epsilons(epsilon: object) -> list[float]:
    given = list(epsilon) if isinstance(epsilon, Sequence) and not isinstance(epsilon, str) else [epsilon]
    numbers = [float(number) for number in given if isinstance(number, int | float) and not isinstance(number, bool)]
    if not given or len(numbers) < len(given) or not all(0 < number < math.inf for number in numbers):
        raise UserError(f"epsilon is {quote_argument(epsilon)}; give positive numbers, such as (0.1, 1, 10)")
    return sorted({*numbers})


def _make_public(schema: Schema) -> Schema:
    """The schema with every entry declared public, because the rows that are simulated from it are."""
    public: dict[str, Any] = {
        field: tuple(without_provenance(entry) for entry in getattr(schema, field))
        for field in ("attributes", "derive", "rules")
    }
    file = without_provenance(schema.file) if schema.file else None
    return msgspec.structs.replace(schema, file=file, **public)


def _named_attributes(recipe: Recipe, schema: Schema) -> frozenset[str]:
    """The attributes that a recipe names, which must be simulated; all of them if it has a plan."""
    if isinstance(recipe, Planned):
        return frozenset(schema.names)
    options = recipe.to_data()
    return frozenset([*options.get("weights", {}), *filter(None, [options.get("target")])])
