"""``measure``: the private part of a release, from a table to its synopsis."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from dpsyn import notebook
from dpsyn.accounting import Ledger, check_large_epsilon, default_delta, delta_warning
from dpsyn.accounting.certificate import describe_query
from dpsyn.encoding.dataframes import detect_output_format
from dpsyn.errors import LedgerError, SchemaError, UserError, quote_argument
from dpsyn.inference import FIRST_RUN_NOTE, Release, fit_model, hash_contents, is_first_run
from dpsyn.options import list_options, suggest_arguments
from dpsyn.private import (
    NothingLeftError,
    PrivateTable,
    Protect,
    ResourceEstimate,
    estimate_reading,
    open_private,
    values_purpose,
)
from dpsyn.progress import Progress, ignore_progress
from dpsyn.public import PublicTable, open_public, refuse_private_table
from dpsyn.recipes.base import NoiseChoice, Recipe
from dpsyn.recipes.dpsyn import DPSyn
from dpsyn.recipes.marginal_recipe import MarginalRecipe
from dpsyn.recipes.registry import RECIPES, find_recipe
from dpsyn.recipes.stored_answers import measurements_from_stored
from dpsyn.schema import Open, Ranged, Schema, SchemaDraft
from dpsyn.suggestions import suggest_names
from dpsyn.synopsis import Synopsis

DEFAULT_RECIPE = DPSyn.name

Engine = Literal["auto", "memory", "stream", "spark"]


@suggest_arguments
@notebook.show_progress
def measure(
    data: Any,
    schema: Schema | SchemaDraft | str | Path | None = None,
    epsilon: float | None = None,
    *,
    delta: float | None = None,
    allow_large_epsilon: bool = False,
    recipe: Recipe | str = DEFAULT_RECIPE,
    target: str | None = None,
    analyses: Sequence[str] = (),
    ledger: Ledger | str | Path | None = None,
    dataset: str | None = None,
    query: str | None = None,
    protect: Protect = "base rows",
    engine: Engine = "auto",
    extend: Synopsis | str | Path | None = None,
    journal: str | Path | None = None,
    resume: bool = False,
    public: Any = None,
    public_because: str | None = None,
    public_schema: Schema | SchemaDraft | str | Path | None = None,
    progress: Progress = ignore_progress,
) -> Synopsis:
    """Measure a private table under a privacy budget; the synopsis that comes back may be published.

    Privacy: (ε, δ)-differential privacy for the privacy unit and the neighboring relation that the schema declares.
    All rows are read through the gate, which charges the budget before it counts.

    >>> from dpsyn.demo import people, people_schema
    >>> synopsis = measure(people(rows=500), people_schema(), epsilon=1.0, recipe="independent")
    >>> synopsis.generate(rows=3, seed=1).num_rows
    3

    Args:
        data: a path, a pattern of paths such as ``folder/*.parquet``, a pandas or polars frame, an Arrow table, a
            DuckDB relation, a Spark DataFrame.
        schema: what is public about it: a schema, a draft that is approved, or the path of a schema file. Without one
            an error explains how to get it.
        epsilon: the ε of the guarantee; ``forecast`` estimates what a release is worth at each.
        delta: its δ; by default min(1e-9, 1/expected_size²). 0 is pure ε, for recipes that measure marginals only.
        allow_large_epsilon: allow an ε above 20, which is no meaningful guarantee; the certificate then says so.
        recipe: the algorithm that decides what to measure, as an object with its options, such as
            ``PrivSyn(rare_rows=800)``, or by name, with default options.
        target: an attribute that others will be used to predict, for recipes with such an option. Public: choose it
            without looking at the data.
        analyses: analyses that will be made, such as ``["income ~ age + sex"]``, for recipes with such an option: the
            tables that they need are measured in any case. Public as well.
        ledger: where the guarantee and every measurement is recorded; without one, this release is accounted alone.
        dataset: its name in the ledger, if not that of the schema.
        query: a SELECT, or the name of a table, of a database; or a SELECT on files, called ``data``. It becomes part
            of the certificate.
        protect: whose rows are protected if there is a query. For ``base rows`` the query must make each row of its
            answer from one row of the table; ``query rows`` takes any SELECT, and protects the rows of its answer.
        engine: how rows are counted: with their codes held in ``memory``, as a ``stream`` that is read for each
            question, or by ``spark``; ``auto`` decides by the size of the file.
        extend: an earlier synopsis of the same table, with which the new numbers are combined. If it was recorded in
            a ledger, that ledger must be given.
        journal: a file that keeps every answer until the work is done, so that it can be resumed.
        resume: continue the run whose journal this is.
        public: rows that are public anyway, as a prior: a table of some of the same attributes, given as ``data`` is,
            or a synopsis about other people. It is trusted as far as released numbers agree with it, and costs nothing
            (``docs/how-to/public-data.md``).
        public_because: who declares these rows public, and why they hold none of the private ones; required with
            ``public``, and repeated in the certificate.
        public_schema: how the public table is written, if not as the private one: a schema or draft of its own. What
            it derives counts as a column, so that other codes can be translated.
        progress: called with what is going on; for the first time when all that public facts decide was checked, and
            before anything is read.
    """
    recipe = declare_analyses(declare_target(coerce_recipe(recipe), target), analyses)
    check_engine(engine)
    schema = Schema.coerce(schema)
    if epsilon is None:
        raise UserError(
            "a release needs ε, the privacy loss that it may cause: measure(data, schema, epsilon=1); "
            "dpsyn.forecast(schema, rows=…) estimates what a release is worth at several ε"
        )
    schema = schema.with_dataset(dataset)
    previous = Synopsis.load(extend) if isinstance(extend, str | Path) else extend
    book = Ledger(Path(ledger)) if isinstance(ledger, str | Path) else ledger
    if previous:
        schema = _extend_schema(schema, previous)
        _require_same_ledger(previous, book)
    recipe.check(schema, previous)
    refuse_private_table(data, public)
    prior = open_prior(public, public_because, schema, recipe, book, public_schema)
    check_large_epsilon(epsilon, allowed=allow_large_epsilon)
    delta = _choose_delta(schema, delta)
    noise = choose_noise(recipe, schema, epsilon, delta, in_ledger=book is not None)
    budget = recipe.plan_budget(schema, epsilon, 0 if noise.kind == "laplace" else delta)
    if book is not None and not resume:
        book.check_room(schema.dataset, budget)
    progress(f"reading the table{FIRST_RUN_NOTE}" if is_first_run() else "reading the table", 0.0)
    with open_private(
        data,
        schema,
        budget,
        book,
        query=query,
        protect=protect,
        engine=engine,
        journal=None if journal is None else Path(journal),
        resume=resume,
        recipe=_identify_run(recipe, noise, previous, prior),
        declared_public=(*recipe.declared_public(), *((prior.declare(),) if prior else ())),
    ) as table:
        _require_same_query(table, previous)
        try:
            measurements = (
                recipe.measure(table, previous=previous, public=prior, progress=progress)
                if isinstance(recipe, DPSyn)
                else recipe.measure(table, previous=previous, progress=progress)
            )
        except NothingLeftError as error:
            measurements = measurements_from_stored(table, error, previous)
        table.bind_contents(hash_contents(measurements.schema, measurements.rounds, measurements.scores))
    _warn_of_empty_discoveries(schema, measurements.schema, table.left_out)
    release = Release(measurements.rounds, measurements.scores, table.certificate(), public=measurements.public)
    release.require_recorded(measurements.schema)
    releases = (*(previous.releases if previous else ()), release)
    model = fit_model(
        measurements.schema,
        measurements.recoding,
        releases,
        zeroed_attributes=measurements.zeroed_attributes,
        total=measurements.row_count,
        synthesis=recipe.synthesis,
        tables=measurements.tables,
        progress=progress,
    )
    return Synopsis(measurements.schema, releases, model, detect_output_format(data), table.column_types)


def estimate_resources(
    data: Any,
    schema: Schema | SchemaDraft | str | Path,
    *,
    recipe: Recipe | str = DEFAULT_RECIPE,
    query: str | None = None,
    protect: Protect = "base rows",
    engine: Engine = "auto",
) -> ResourceEstimate:
    """Estimate how often a release will read a table and how much memory it will take; no row is read.

    Args:
        data: as for ``measure``.
        schema: what is public about it, or the path of its file.
        recipe: as for ``measure``.
        query: as for ``measure``.
        protect: as for ``measure``.
        engine: as for ``measure``.
    """
    recipe = coerce_recipe(recipe)
    check_engine(engine)
    schema = Schema.coerce(schema)
    return estimate_reading(
        data,
        schema,
        recipe.max_passes(schema),
        reopenings=recipe.max_reopenings(schema),
        query=query,
        protect=protect,
        engine=engine,
    )


def check_engine(engine: object) -> None:
    """Refuse an engine that does not exist."""
    if not isinstance(engine, str) or engine not in get_args(Engine):
        known = get_args(Engine)
        hint = suggest_names(engine, known) if isinstance(engine, str) else f"there are {', '.join(known)}"
        raise UserError(f"there is no engine {quote_argument(engine)}; {hint}")


def coerce_recipe(recipe: object) -> Recipe:
    """A recipe from a recipe, or from the name of one; anything else is a UserError."""
    if isinstance(recipe, str):
        return find_recipe(recipe)
    if not isinstance(recipe, Recipe):
        raise UserError(f"recipe is {quote_argument(recipe)}; give the name of a recipe or an object such as DPSyn()")
    return recipe


def declare_target(recipe: Recipe, target: str | None) -> Recipe:
    """The recipe with a target; its own stays if none is given."""
    if target is None:
        return recipe
    if not takes_target(type(recipe)):
        able = [name for name, kind in RECIPES.items() if takes_target(kind)]
        raise UserError(f"recipe {recipe.name!r} has no target; leave it out, or use recipe {' or '.join(able)}")
    own = recipe.to_data().get("target")
    if own not in (None, target):
        raise UserError(
            f"the recipe has the target {quote_argument(own)}, and target={quote_argument(target)} is given, too; give "
            "one of them"
        )
    options: dict[str, Any] = {"target": target}
    return replace(recipe, **options)


def declare_analyses(recipe: Recipe, analyses: Sequence[str]) -> Recipe:
    """The recipe with declared analyses, besides its own."""
    if isinstance(analyses, str):
        raise UserError(f"analyses is {quote_argument(analyses)}; give a list, such as ['income ~ age + sex']")
    if not analyses:
        return recipe
    if not any(option.path == "analyses" for option in list_options(type(recipe))):
        raise UserError(f"recipe {recipe.name!r} takes no analyses; leave them out, or use recipe dpsyn")
    options: dict[str, Any] = {"analyses": (*recipe.to_data().get("analyses", ()), *analyses)}
    return replace(recipe, **options)


def takes_target(recipe: type[Recipe]) -> bool:
    """Whether a recipe has the option ``target``."""
    return any(option.path == "target" for option in list_options(recipe))


def choose_noise(recipe: Recipe, schema: Schema, epsilon: float, delta: float, *, in_ledger: bool) -> NoiseChoice:
    """The noise of a release, fixed before anything is read; δ = 0 is refused for recipes with other steps."""
    noise = recipe.choose_noise(schema, epsilon, delta, in_ledger=in_ledger)
    if delta == 0 and noise.kind != "laplace":
        able = [name for name, kind in RECIPES.items() if issubclass(kind, MarginalRecipe)]
        raise UserError(
            f"δ is 0, but recipe {recipe.name!r} uses Gaussian noise, which needs a δ such as 1e-9. Give one, or use a "
            f"recipe whose steps can all be pure, with noise 'auto' or 'laplace': {', '.join(able)}"
        )
    return noise


def open_prior(
    public: Any,
    because: str | None,
    schema: Schema,
    recipe: Recipe,
    ledger: Ledger | None = None,
    own_schema: Schema | SchemaDraft | str | Path | None = None,
) -> PublicTable | None:
    """The public table, if one is given; a recipe that makes no use of it is refused."""
    if public is None:
        if because is not None:
            raise UserError("public_because says why rows are public, but none are given; give them with public=")
        if own_schema is not None:
            raise UserError("public_schema says how public rows are written, but none are given; give public= as well")
        return None
    if not isinstance(recipe, DPSyn):
        raise UserError(f"recipe {recipe.name!r} makes no use of public rows; leave them out, or use recipe dpsyn")
    return open_public(
        public, schema, because, ledger, own_schema=None if own_schema is None else Schema.coerce(own_schema)
    )


def _identify_run(
    recipe: Recipe, noise: NoiseChoice, previous: Synopsis | None, prior: PublicTable | None
) -> dict[str, Any]:
    """What must be the same when a run is resumed, besides schema, budget and data.

    That is the recipe, what it extends, and the public table.
    """
    certificates = previous.certificates if previous else ()
    runs = [certificate.run if certificate else "imported" for certificate in certificates]
    extends, public = {"extends": runs} if runs else {}, {"public": prior.to_data()} if prior else {}
    return {**recipe.to_data(), **noise.to_data(), **extends, **public}


def _choose_delta(schema: Schema, delta: float | None) -> float:
    if delta is None:
        return default_delta(schema.expected_size)
    if message := delta_warning(delta, schema.expected_size):
        warnings.warn(message, UserWarning, stacklevel=5)
    return delta


def _warn_of_empty_discoveries(declared: Schema, released: Schema, left_out: Sequence[str]) -> None:
    """Warn of open attributes that will have one value in all rows."""
    for attribute in declared.measured_attributes:
        if isinstance(attribute, Open) and released[attribute.name] == attribute.to_categorical([]):
            reason = (
                f"the values of the open attribute {attribute.name!r} were lost, and nothing is left to discover them"
                if values_purpose(attribute.name) in left_out
                else f"no value of the open attribute {attribute.name!r} is in enough rows to be released"
            )
            warnings.warn(
                f"{reason}: every synthetic row has {attribute.other!r}. If its values are public, list them in the "
                "schema",
                UserWarning,
                stacklevel=5,
            )


def _require_same_query(table: PrivateTable, previous: Synopsis | None) -> None:
    """Refuse to combine numbers of two tables; nothing is charged yet."""
    for certificate in previous.certificates if previous else ():
        if certificate is not None and certificate.query != table.query:
            raise SchemaError(
                f"the synopsis to extend is of another table: {describe_query(certificate.query)}, and now "
                f"{describe_query(table.query)}; give the same query, or measure the table anew"
            )


def _extend_schema(schema: Schema, previous: Synopsis) -> Schema:
    """The schema of an earlier synopsis, with the values and the cells it found, if it is of the same table."""
    known = previous.schema
    for attribute in schema.measured_attributes:
        if attribute.name not in known:
            continue
        earlier = known[attribute.name]
        discovered = isinstance(attribute, Open) and not isinstance(earlier, Open)
        divided = isinstance(earlier, Ranged) and attribute == msgspec.structs.replace(earlier, cuts=())
        if discovered or divided:
            schema = schema.replace_attribute(earlier)
    if schema.attributes != known.attributes or schema.derive != known.derive:
        raise SchemaError("the synopsis to extend was made under another schema; measure the table anew")
    same = (schema.neighbors, schema.privacy_unit, schema.dataset) == (
        known.neighbors,
        known.privacy_unit,
        known.dataset,
    )
    if not same:
        raise SchemaError("the synopsis to extend is of another dataset, privacy unit or neighboring relation")
    return schema


def _require_same_ledger(previous: Synopsis, ledger: Ledger | None) -> None:
    """Refuse to extend releases that were recorded in a ledger without it: together they cost what only it adds up."""
    recorded = [certificate.run for certificate in previous.certificates if certificate and certificate.ledger_head]
    if not recorded:
        return
    if ledger is None:
        raise LedgerError(
            "the synopsis to extend was recorded in a ledger, and a release that extends it must be, too; give the "
            "ledger with --ledger (in Python: ledger=)"
        )
    known = {run.run for dataset in ledger.datasets() for run in dataset.runs}
    if unknown := [run for run in recorded if run not in known]:
        raise LedgerError(
            f"the synopsis to extend was recorded in another ledger: run {unknown[0]} is not in {ledger.path}, so the "
            "releases would not be added up; give the ledger of the earlier one"
        )
