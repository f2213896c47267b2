"""The private part of a release, from a table to its synopsis."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from dpsyn.accounting import Budget, Ledger, default_delta, delta_warning
from dpsyn.errors import SchemaError, UserError
from dpsyn.plan import Plan, budget_of, check_weights, laplace_warning, layout_of
from dpsyn.private import open_private
from dpsyn.progress import Progress, silent
from dpsyn.recipes.direct import direct
from dpsyn.recipes.dpsyn import dpsyn
from dpsyn.recipes.explore import explore
from dpsyn.recipes.fourier import fourier
from dpsyn.recipes.independent import independent
from dpsyn.recipes.mwem import MwemOptions, mwem, mwem_practical
from dpsyn.recipes.planned import planned
from dpsyn.recipes.priview import PriViewOptions, priview
from dpsyn.recipes.privsyn import privsyn
from dpsyn.recipes.recipe import Recipe
from dpsyn.recipes.selecting import DPSynOptions
from dpsyn.schema import Open, Schema
from dpsyn.selection import Every, Views, parse_views
from dpsyn.synopsis import Kind, Release, Synopsis, fit_model, kind_of
from dpsyn.synthesis import FIRST_TIME, first_time

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
"""All recipes; a test runs each on neighbouring tables and compares answers with charges."""

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
    progress: Progress = silent,
) -> Synopsis:
    """Measure a private table under a budget; what comes back may be published.

    Privacy: (ε, δ)-differential privacy for the neighbours and the unit that the schema declares. All rows are read
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
    chosen = recipe_named(recipe)
    schema = schema if isinstance(schema, Schema) else Schema.load(schema)
    schema = schema if dataset is None else msgspec.structs.replace(schema, dataset=dataset)
    before = Synopsis.load(extend) if isinstance(extend, str | Path) else extend
    schema = _extended(schema, before) if before else schema
    if workload:
        chosen = _weighted(recipe, workload, schema)
    if views is not None:
        chosen = _viewing(recipe, parse_views(views))
    plan = Plan.load(plan, schema) if isinstance(plan, str | Path) else plan
    if plan is not None:
        chosen = _planned(recipe, plan, schema, workload, before)
    budget = _budget(schema, epsilon, delta, plan)
    progress(f"reading the table{FIRST_TIME}" if first_time() else "reading the table", 0.0)
    with open_private(
        data,
        schema,
        budget,
        Ledger(Path(ledger)) if isinstance(ledger, str | Path) else ledger,
        query=query,
        engine=engine,
        journal=None if journal is None else Path(journal),
        resume=resume,
        plan=_plan(recipe, before, workload or {}, views, plan),
        declared=() if plan is None else (plan.declared_public(),),
    ) as table:
        table.require_all_answers()
        found = chosen(table, before=before, progress=progress)
    _warn_of_nothing_bought(schema, found.schema)
    release = Release(recipe if plan is None else "plan", found.stages, found.scores, table.certificate())
    releases = (*(before.releases if before else ()), release)
    model = fit_model(
        found.schema,
        found.recoding,
        releases,
        zeroed=found.zeroed,
        total=found.rows,
        method=found.method,
        tables=found.tables,
        progress=progress,
    )
    return Synopsis(found.schema, releases, model, cast(Kind, kind_of(data)))


def recipe_named(name: str) -> Recipe:
    """A recipe by its name; a UserError if there is none."""
    if name not in RECIPES:
        raise UserError(f"there is no recipe {name!r}; there are {', '.join(RECIPES)}")
    return RECIPES[name]


def _weighted(recipe: str, workload: Mapping[str, float], schema: Schema) -> Recipe:
    """The default recipe with a workload, if that fits the schema."""
    if recipe != DEFAULT_RECIPE:
        raise UserError(f"the recipe {recipe!r} knows no workload; use {DEFAULT_RECIPE!r}, or leave the workload out")
    try:
        weights = {name: float(weight) for name, weight in workload.items()}
    except (AttributeError, TypeError, ValueError):
        raise UserError(f"{workload!r} is no workload; give weights by attribute, such as {{'income': 4}}") from None
    measured = [attribute.name for attribute in schema.measured]
    for name in weights:
        if name not in measured:
            raise UserError(f"the workload has {name!r}, which is not measured; there are {', '.join(measured)}")
    check_weights(weights)
    return partial(dpsyn, options=DPSynOptions(workload=weights))


def _viewing(recipe: str, views: Views) -> Recipe:
    """A recipe that publishes the views asked for."""
    if recipe == "priview":
        return partial(priview, options=PriViewOptions(views=views))
    by_ways: dict[str, Callable[[int], Recipe]] = {
        "direct": lambda ways: partial(direct, ways=ways),
        "fourier": lambda ways: partial(fourier, ways=ways),
        "mwem": lambda ways: partial(mwem, options=MwemOptions(ways=ways)),
        "mwem-practical": lambda ways: partial(mwem, options=MwemOptions(ways=ways, practical=True)),
    }
    if recipe in by_ways and isinstance(views, Every):
        return by_ways[recipe](views.ways)
    if recipe in by_ways:
        raise UserError(f"the recipe {recipe!r} takes views such as all:3, every set of 3 attributes")
    raise UserError(f"the recipe {recipe!r} chooses its tables itself; use 'priview', or leave the views out")


def _planned(
    recipe: str, plan: Plan, schema: Schema, workload: Mapping[str, float] | None, before: Synopsis | None
) -> Recipe:
    """What a plan asks for, if it fits the schema and the other options."""
    if recipe != DEFAULT_RECIPE:
        raise UserError(f"a plan says itself what to measure; leave the recipe {recipe!r} out, or the plan")
    if before is not None:
        raise UserError("a plan cannot extend a synopsis yet; measure the table anew, or leave the plan out")
    plan.check(schema)
    return partial(planned, plan=plan, options=DPSynOptions(workload=dict(workload or {})))


def _plan(
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


def _budget(schema: Schema, epsilon: float, delta: float | None, plan: Plan | None) -> Budget:
    if delta is None:
        delta = default_delta(schema.expected_size)
    elif words := delta_warning(delta, schema.expected_size):
        warnings.warn(words, UserWarning, stacklevel=3)
    thresholds = any(isinstance(attribute, Open) for attribute in schema.measured)
    if plan is not None:
        if words := laplace_warning(plan, schema, epsilon):
            warnings.warn(words, UserWarning, stacklevel=3)
        return budget_of(layout_of(plan, schema, epsilon), epsilon, delta, thresholds=thresholds)
    return Budget.plan(epsilon, delta, thresholds=thresholds)


def _warn_of_nothing_bought(asked: Schema, found: Schema) -> None:
    """Say which open attributes will have one value in all rows."""
    for attribute in asked.measured:
        if isinstance(attribute, Open) and found[attribute.name] == attribute.bought([]):
            warnings.warn(
                f"no value of the open attribute {attribute.name!r} is in enough rows to be released: every synthetic "
                f"row says {attribute.other!r}. If its values are public, list them in the schema",
                UserWarning,
                stacklevel=3,
            )


def _extended(schema: Schema, before: Synopsis) -> Schema:
    """The schema of an earlier synopsis, with the values it bought, if it is of the same table."""
    known = before.schema
    for attribute in schema.measured:
        if isinstance(attribute, Open) and attribute.name in known and not isinstance(known[attribute.name], Open):
            schema = schema.replace_attribute(known[attribute.name])
    if schema.attributes != known.attributes or schema.derive != known.derive:
        raise SchemaError("the synopsis to extend was made under another schema; measure the table anew")
    same = (schema.neighbours, schema.unit, schema.dataset) == (known.neighbours, known.unit, known.dataset)
    if not same:
        raise SchemaError("the synopsis to extend is of another dataset, unit or neighbour relation")
    return schema
