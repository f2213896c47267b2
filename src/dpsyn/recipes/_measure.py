"""The private part of a release, from a table to its synopsis."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from dpsyn.accounting import Budget, Ledger, default_delta, delta_warning
from dpsyn.encoding.dataframes import detect_output_format
from dpsyn.errors import SchemaError, UserError
from dpsyn.inference import Release, fit_model
from dpsyn.inference.gum import FIRST_RUN_NOTE, is_first_run
from dpsyn.plan import Plan, budget_for_plan, check_weights, laplace_noise_warning, resolve_plan
from dpsyn.private import open_private
from dpsyn.progress import Progress, ignore_progress
from dpsyn.recipes.adaptive_selection import AdaptiveSelection
from dpsyn.recipes.base import Recipe
from dpsyn.recipes.baselines.direct import direct
from dpsyn.recipes.baselines.fourier import fourier
from dpsyn.recipes.baselines.mwem import MWEM, mwem, mwem_practical
from dpsyn.recipes.dpsyn import dpsyn
from dpsyn.recipes.explore import explore
from dpsyn.recipes.from_plan import measure_plan
from dpsyn.recipes.independent import independent
from dpsyn.recipes.priview import PriView, priview
from dpsyn.recipes.privsyn import privsyn
from dpsyn.schema import Open, Schema
from dpsyn.selection import AllViews, ViewScheme, parse_views
from dpsyn.synopsis import OutputFormat, Synopsis

RECIPES: dict[str, Recipe] = {
    "dpsyn": dpsyn,
    "privsyn": privsyn,
    "priview": priview,
    "independent": independent,
    "explore": explore,
    "direct": direct,
    "fourier": fourier,
    "mwem": mwem,
    "mwem-practical": mwem_practical,
}
"""All recipes; a test runs each on neighboring tables and compares answers with charges."""

DEFAULT_RECIPE = "dpsyn"


def measure(
    data: Any,
    schema: Schema | str | Path,
    epsilon: float,
    *,
    delta: float | None = None,
    recipe: str = DEFAULT_RECIPE,
    workload: Mapping[str, float] | None = None,
    views: str | None = None,
    plan: Plan | str | Path | None = None,
    ledger: Ledger | str | Path | None = None,
    dataset: str | None = None,
    query: str | None = None,
    engine: Literal["auto", "memory", "stream", "spark"] = "auto",
    extend: Synopsis | str | Path | None = None,
    journal: str | Path | None = None,
    resume: bool = False,
    progress: Progress = ignore_progress,
) -> Synopsis:
    """Measure a private table under a budget; what comes back may be published.

    Privacy: (ε, δ)-differential privacy for the neighbors and the unit that the schema declares. All rows are read
    through the gate, which pays before it looks.

    Args:
        data: a path, a pattern of paths such as ``folder/*.parquet``, a pandas or polars frame, an Arrow table, a
            DuckDB relation, a Spark DataFrame.
        schema: what is public about it, or the path of its file.
        epsilon: the ε of the promise.
        delta: its δ; by default min(1e-9, 1/expected_size²).
        recipe: the algorithm that chooses what to measure.
        workload: attributes whose tables matter more, such as ``{"income": 4}``: an error in a table with ``income``
            counts four times as much. Public: choose it without looking at the data. Recipe ``dpsyn`` only.
        views: which tables to publish: ``random:50x8`` (50 random sets of 8 attributes) or ``covering:2x8`` (all pairs
            in sets of 8) for recipe ``priview``, ``all:3`` (every 3 attributes) for ``direct``, ``fourier`` and MWEM.
        plan: what is known about the table and what to measure of it, or the path of its file; what it leaves open is
            chosen as by recipe ``dpsyn``. Public: make it without looking at the data, or from what was released.
        ledger: where the promise and every draw is recorded; without one this release is counted alone.
        dataset: under which name, if not that of the schema.
        query: a SELECT, or the name of a table, of a database; or a SELECT on files, called ``data``.
        engine: how rows are counted: with their codes held in ``memory``, as a ``stream`` that is read for each
            question, or by ``spark``; ``auto`` decides by the size of the file.
        extend: an earlier synopsis of the same table, with which the new numbers are combined.
        journal: a file that keeps every answer until the work is done, so that it can be resumed.
        resume: go on with the run whose journal this is.
        progress: is told what is going on.
    """
    chosen = find_recipe(recipe)
    schema = schema if isinstance(schema, Schema) else Schema.load(schema)
    schema = schema if dataset is None else msgspec.structs.replace(schema, dataset=dataset)
    before = Synopsis.load(extend) if isinstance(extend, str | Path) else extend
    schema = _extend_schema(schema, before) if before else schema
    if workload:
        chosen = _with_weights(recipe, workload, schema)
    if views is not None:
        chosen = _with_views(recipe, parse_views(views))
    plan = Plan.load(plan, schema) if isinstance(plan, str | Path) else plan
    if plan is not None:
        chosen = _with_plan(recipe, plan, schema, workload, before)
    budget = _make_budget(schema, epsilon, delta, plan)
    progress(f"reading the table{FIRST_RUN_NOTE}" if is_first_run() else "reading the table", 0.0)
    with open_private(
        data,
        schema,
        budget,
        Ledger(Path(ledger)) if isinstance(ledger, str | Path) else ledger,
        query=query,
        engine=engine,
        journal=None if journal is None else Path(journal),
        resume=resume,
        recipe={"name": recipe, "identity": _identify_run(recipe, before, workload or {}, views, plan)},
        declared_public=() if plan is None else (plan.declared_public(),),
    ) as table:
        table.require_all_answers()
        found = chosen(table, previous=before, progress=progress)
    _warn_of_empty_discoveries(schema, found.schema)
    release = Release(recipe if plan is None else "plan", found.rounds, found.scores, table.certificate())
    releases = (*(before.releases if before else ()), release)
    model = fit_model(
        found.schema,
        found.recoding,
        releases,
        zeroed_attributes=found.zeroed_attributes,
        total=found.row_count,
        method=found.method,
        tables=found.tables,
        progress=progress,
    )
    return Synopsis(found.schema, releases, model, cast(OutputFormat, detect_output_format(data)))


def find_recipe(name: str) -> Recipe:
    """A recipe by its name; a UserError if there is none."""
    if name not in RECIPES:
        raise UserError(f"there is no recipe {name!r}; there are {', '.join(RECIPES)}")
    return RECIPES[name]


def _with_weights(recipe: str, workload: Mapping[str, float], schema: Schema) -> Recipe:
    """The default recipe with a workload, if that fits the schema."""
    if recipe != DEFAULT_RECIPE:
        raise UserError(f"the recipe {recipe!r} knows no workload; use {DEFAULT_RECIPE!r}, or leave the workload out")
    try:
        weights = {name: float(weight) for name, weight in workload.items()}
    except (AttributeError, TypeError, ValueError):
        raise UserError(f"{workload!r} is no workload; give weights by attribute, such as {{'income': 4}}") from None
    measured = [attribute.name for attribute in schema.measured_attributes]
    for name in weights:
        if name not in measured:
            raise UserError(f"the workload has {name!r}, which is not measured; there are {', '.join(measured)}")
    check_weights(weights)
    return partial(dpsyn, options=AdaptiveSelection(weights=weights))


def _with_views(recipe: str, views: ViewScheme) -> Recipe:
    """A recipe that publishes the views asked for."""
    if recipe == "priview":
        return partial(priview, options=PriView(views=views))
    by_ways: dict[str, Callable[[int], Recipe]] = {
        "direct": lambda ways: partial(direct, ways=ways),
        "fourier": lambda ways: partial(fourier, ways=ways),
        "mwem": lambda ways: partial(mwem, options=MWEM(ways=ways)),
        "mwem-practical": lambda ways: partial(mwem, options=MWEM(ways=ways, practical=True)),
    }
    if recipe in by_ways and isinstance(views, AllViews):
        return by_ways[recipe](views.ways)
    if recipe in by_ways:
        raise UserError(f"the recipe {recipe!r} takes views such as all:3, every set of 3 attributes")
    raise UserError(f"the recipe {recipe!r} chooses its tables itself; use 'priview', or leave the views out")


def _with_plan(
    recipe: str, plan: Plan, schema: Schema, workload: Mapping[str, float] | None, before: Synopsis | None
) -> Recipe:
    """What a plan asks for, if it fits the schema and the other options."""
    if recipe != DEFAULT_RECIPE:
        raise UserError(f"a plan says itself what to measure; leave the recipe {recipe!r} out, or the plan")
    if before is not None:
        raise UserError("a plan cannot extend a synopsis yet; measure the table anew, or leave the plan out")
    plan.check(schema)
    return partial(measure_plan, plan=plan, options=AdaptiveSelection(weights=dict(workload or {})))


def _identify_run(
    recipe: str, before: Synopsis | None, workload: Mapping[str, float], views: str | None, plan: Plan | None
) -> str:
    """What must be the same when a run is resumed, besides schema, budget and data: recipe and what it extends."""
    runs = [certificate.run if certificate else "imported" for certificate in before.certificates] if before else []
    weights = ", ".join(f"{name} {float(weight)!r}" for name, weight in sorted(workload.items()))
    return (
        f"recipe {recipe}"
        + (f", weighting {weights}" if weights else "")
        + (f", views {views}" if views else "")
        + (f", plan {plan.digest()}" if plan else "")
        + (f", extending {', '.join(runs)}" if runs else "")
    )


def _make_budget(schema: Schema, epsilon: float, delta: float | None, plan: Plan | None) -> Budget:
    if delta is None:
        delta = default_delta(schema.expected_size)
    elif words := delta_warning(delta, schema.expected_size):
        warnings.warn(words, UserWarning, stacklevel=3)
    thresholds = any(isinstance(attribute, Open) for attribute in schema.measured_attributes)
    if plan is not None:
        if words := laplace_noise_warning(plan, schema, epsilon):
            warnings.warn(words, UserWarning, stacklevel=3)
        return budget_for_plan(resolve_plan(plan, schema, epsilon), epsilon, delta, thresholds=thresholds)
    return Budget.for_guarantee(epsilon, delta, thresholds=thresholds)


def _warn_of_empty_discoveries(asked: Schema, found: Schema) -> None:
    """Say which open attributes will have one value in all rows."""
    for attribute in asked.measured_attributes:
        if isinstance(attribute, Open) and found[attribute.name] == attribute.to_categorical([]):
            warnings.warn(
                f"no value of the open attribute {attribute.name!r} is in enough rows to be released: every synthetic "
                f"row says {attribute.other!r}. If its values are public, list them in the schema",
                UserWarning,
                stacklevel=3,
            )


def _extend_schema(schema: Schema, before: Synopsis) -> Schema:
    """The schema of an earlier synopsis, with the values it bought, if it is of the same table."""
    known = before.schema
    for attribute in schema.measured_attributes:
        if isinstance(attribute, Open) and attribute.name in known and not isinstance(known[attribute.name], Open):
            schema = schema.replace_attribute(known[attribute.name])
    if schema.attributes != known.attributes or schema.derive != known.derive:
        raise SchemaError("the synopsis to extend was made under another schema; measure the table anew")
    same = (schema.neighbors, schema.privacy_unit, schema.dataset) == (
        known.neighbors,
        known.privacy_unit,
        known.dataset,
    )
    if not same:
        raise SchemaError("the synopsis to extend is of another dataset, unit or neighbor relation")
    return schema
