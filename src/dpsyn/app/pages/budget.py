"""Budget: ε and δ, with a forecast of what the release will be worth and what the ledger has left beside them."""

from __future__ import annotations

import json
import math
import secrets
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import FormData, QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import dpsyn
from dpsyn.app.layout import Site, act, describe_error, show, text_of
from dpsyn.app.security import redirect
from dpsyn.app.workspace import PrivateTable, Release
from dpsyn.atomic_files import exclusive_edit
from dpsyn.errors import UserError
from dpsyn.report.ledger import account_data, account_lines, format_time
from dpsyn.report.numbers import format_number

PRESETS = (0.1, 0.5, 1.0, 2.0, 5.0)
"""ε that the page offers, and that a detailed forecast compares."""

QUICK_RECIPES = ("dpsyn", "independent")
"""Recipes that have a forecast within a second."""

MAX_SHOWN_ATTRIBUTES = 60

PLAN_NAME = "plan.yaml"
"""The steward's plan in the folder of a release, if there is one."""


def budget_page(request: Request, site: Site) -> Response:
    """The form that starts a release."""
    table = site.work.table(request.path_params["table"])
    return _render(request, site, table)


def _render(request: Request, site: Site, table: PrivateTable, status: int = 200, **context: Any) -> Response:
    draft = table.read_draft()
    schema, problem = _read_schema(draft)
    account = _find_account(site, schema.dataset if schema else "")
    facts: dict[str, Any] = {
        "step": "budget",
        "table": table,
        "schema": schema,
        "waiting": draft.unapproved,
        "problem": problem,
        "attributes": [each.name for each in schema.modeled_attributes] if schema else [],
        "recipes": {name: kind for name, kind in dpsyn.RECIPES.items() if name not in ("planned", "explore")},
        "baselines": [name for name, kind in dpsyn.RECIPES.items() if kind.is_baseline],
        "token": secrets.token_hex(8),
        "presets": PRESETS,
        "account": account,
        "account_lines": account_lines(account, set_cap="in the ledger") if account else [],
        "share": _used_share(account),
        "given": {},
        "earlier": _find_earlier(site, schema.dataset) if schema else [],
        "others": [each for each in site.work.tables() if each.id != table.id],
        "simulated": _read_simulation(table),
        "simulation": table.job("forecast"),
    }
    return site.render(request, "budget.html", status, **{**facts, **context})


def _read_schema(draft: dpsyn.SchemaDraft) -> tuple[dpsyn.Schema | None, str]:
    try:
        return draft.to_schema(), ""
    except UserError as error:
        return None, describe_error(error)


def _find_account(site: Site, dataset: str) -> dpsyn.DatasetAccount | None:
    accounts = dpsyn.Ledger(site.work.ledger).datasets()
    return next((account for account in accounts if account.dataset == dataset), None)


@dataclass(frozen=True, slots=True)
class EarlierRelease:
    """A release of the same people: a run in the ledger that has spent something or may, or one that is just starting.

    Attributes:
        epsilon: its ε.
        time: when it was begun.
        release: the release in the workbench; None if it was made elsewhere.
    """

    epsilon: str
    time: str
    release: Release | None


def _find_earlier(site: Site, dataset: str) -> list[EarlierRelease]:
    """What was released of a dataset, by whatever way to the same ledger, the latest first."""
    releases = [each for each in site.work.releases() if each.ledger == site.work.ledger]
    by_run = {each.run: each for each in releases if each.run}
    account = _find_account(site, dataset)
    runs = [run for run in account.runs if run.measurements or not run.closed] if account else []
    starting = [
        each for each in releases if not each.run and each.state == "running" and each.facts.get("dataset") == dataset
    ]
    return [
        *(EarlierRelease(str(each.facts.get("epsilon", "")), each.created_text, each) for each in starting),
        *(
            EarlierRelease(format_number(float(run.budget.epsilon)), format_time(run.opened_at), by_run.get(run.run))
            for run in reversed(runs)
        ),
    ]


def _used_share(account: dpsyn.DatasetAccount | None) -> float | None:
    return account_data(account)["used"]["share_of_cap"] if account else None


# ── what ε means, and what the release will be worth ─────────────────────────────────────────────────────────


def bound_certainty(epsilon: float, before: float) -> float:
    """How sure somebody can be afterwards who was this sure before: odds grow at most by the factor e^ε.

    >>> round(bound_certainty(1.0, 0.5), 3)
    0.731
    """
    odds = before / (1 - before)
    return 1 / (1 + math.exp(-min(epsilon, 700.0)) / odds)


def forecast_part(request: Request, site: Site) -> Response:
    """A part of the page: what ε means, and the quick forecast for the values of the form."""
    table = site.work.table(request.path_params["table"])
    asked = request.query_params
    epsilon, delta, problem = _read_number(asked, "epsilon"), _read_number(asked, "delta"), ""
    schema, mistake = _read_schema(table.read_draft())
    context: dict[str, Any] = {"epsilon": epsilon, "expected": None, "empty": [], "rows": None}
    if epsilon is None or not 0 < epsilon < math.inf:
        problem = "Give ε as a positive number, such as 1."
    elif schema is None:
        problem = f"The schema is not complete yet. {mistake}"
    else:
        context |= {"certain": [(before, bound_certainty(epsilon, before)) for before in (0.01, 0.5)]}
        try:
            context |= _forecast(schema, epsilon, delta, asked)
        except UserError as error:
            problem = describe_error(error)
    return site.render(request, "forecast.html", **context, problem=problem)


def _read_number(asked: QueryParams, name: str) -> float | None:
    try:
        return float(asked[name].replace(",", "."))
    except (KeyError, ValueError):
        return None


def _forecast(schema: dpsyn.Schema, epsilon: float, delta: float | None, asked: QueryParams) -> dict[str, Any]:
    """The expected errors, which are computed within a second."""
    from dpsyn.forecasts.closed_form import expect_errors, expect_thresholds
    from dpsyn.forecasts.results import MAX_TEXT_SHARE

    rows, recipe = schema.expected_size, asked.get("recipe") or "dpsyn"
    if rows is None:
        raise UserError("there is no forecast, because the schema has no expected size: about how many rows there are")
    target = asked.get("target") or None
    if recipe not in QUICK_RECIPES:
        return {"rows": rows, "recipe": recipe}
    expected = expect_errors(schema, epsilon, delta=delta, pairs=recipe == "dpsyn", target=target)
    thresholds = {} if delta == 0 else expect_thresholds(schema, epsilon, rows=rows, delta=delta)
    empty = [name for name, needed in thresholds.items() if needed > MAX_TEXT_SHARE * rows]
    return {"rows": rows, "recipe": recipe, "expected": expected, "thresholds": thresholds, "empty": empty}


def start_simulation(request: Request, site: Site, form: FormData) -> Response:
    """A forecast in detail, from simulated releases, as ``dpsyn forecast`` makes it."""
    table = site.work.table(request.path_params["table"])
    epsilons = ",".join(f"{each:g}" for each in PRESETS)
    table.save(simulated=table.schema_digest)
    table.job("forecast").start(["forecast", "-s", str(table.schema_path), "--epsilon", epsilons, "--json"])
    return redirect(f"/tables/{table.id}/budget#details")


def _read_simulation(table: PrivateTable) -> dict[str, Any]:
    """A forecast in detail: a row of texts for each column."""
    job = table.job("forecast")
    if job.state != "done":
        return {}
    try:
        figures = json.loads((job.folder / "output.txt").read_bytes())
    except (OSError, ValueError):
        return {}
    budgets = figures["budgets"]
    names = [attribute["name"] for attribute in budgets[0]["attributes"]][:MAX_SHOWN_ATTRIBUTES]
    needed = [{each["name"]: each["survives"] for each in budget["attributes"]} for budget in budgets]
    return {
        **figures,
        "fresh": table.facts.get("simulated") == table.schema_digest,
        "headings": ["column", *(f"ε = {budget['epsilon']:g}" for budget in budgets)],
        "columns": [(name, *(f"{by_name[name]:,.0f}" for by_name in needed if name in by_name)) for name in names],
    }


# ── the release ──────────────────────────────────────────────────────────────────────────────────────────────


def start_release(request: Request, site: Site, form: FormData) -> Response:
    """Start a release, as ``dpsyn synthesize`` does; a form that is sent twice starts one."""
    table = site.work.table(request.path_params["table"])
    with exclusive_edit(site.work.folder / "release"):  # two windows: the second one is asked whether to spend again
        return _start_release(request, site, table, form)


def _start_release(request: Request, site: Site, table: PrivateTable, form: FormData) -> Response:
    given = {name: str(value) for name, value in form.items() if name != "form_token"}
    if started := site.work.find_started(text_of(form, "token")):
        return redirect(f"/releases/{started.id}?done=once")
    try:
        words = release_words(form)
        draft = table.read_draft()
        schema = draft.to_schema()
        schema.require_public("this schema")
        if "again" not in form and _find_earlier(site, schema.dataset):
            raise UserError("these people were released before; confirm that another release shall spend again")
    except UserError as error:
        return _render(request, site, table, 400, problem=describe_error(error), given=given)
    settings = {
        "table": table.id,
        "dataset": schema.dataset,
        "epsilon": text_of(form, "epsilon"),
        "ledger": str(site.work.ledger),
        "data": table.data,
        "words": words,
    }
    plan = str(form.get("plan", "")).replace("\r\n", "\n").strip()
    files = {"schema.yaml": draft.to_yaml(), **({PLAN_NAME: f"{plan}\n"} if plan else {})}
    release, is_new = site.work.new_release(table.title, text_of(form, "token"), settings, files)
    if not is_new:
        return redirect(f"/releases/{release.id}?done=once")
    release.job.start(release_arguments(release))
    return redirect(f"/releases/{release.id}")


def release_words(form: FormData) -> list[str]:
    """The options of a release, as words of the command line."""
    words = [f"--epsilon={text_of(form, 'epsilon').replace(',', '.')}"]
    for name, option in (("delta", "--delta"), ("target", "--target"), ("rows", "--rows")):
        if value := text_of(form, name):
            words.append(f"{option}={value}")
    recipe = text_of(form, "recipe")
    if recipe and not str(form.get("plan", "")).strip():
        words.append(f"--recipe={recipe}")
    for name, option in (("weights", "--weight"), ("analyses", "--analysis"), ("settings", "--set")):
        words += [f"{option}={line.strip()}" for line in str(form.get(name, "")).splitlines() if line.strip()]
    if "allow_large_epsilon" in form:
        words.append("--allow-large-epsilon")
    if not text_of(form, "epsilon"):
        raise UserError("give ε, such as 1")
    return words + _public_words(*(text_of(form, name) for name in ("public", "public_because", "public_schema")))


def _public_words(path: str, because: str, schema: str) -> list[str]:
    """The options for public data; a reason is needed, because the certificate states it."""
    if bool(path) != bool(because):
        missing = "why these rows are public" if path else "the file of public data"
        raise UserError(f"give {missing}, or leave both fields of public data empty")
    if schema and not path:
        raise UserError("give the file of public data that this schema describes, or leave out the schema")
    words = [f"--public={path}", f"--public-because={because}"] if path else []
    return [*words, f"--public-schema={schema}"] if schema else words


def release_arguments(release: Release) -> list[str]:
    """The command that makes a release, or continues it if it has a journal."""
    from dpsyn.report.charts import require_vega

    report = ["--report", str(release.report)]
    try:
        require_vega()
    except UserError:
        report = []
    resume = ["--resume"] if release.journal.exists() else []
    schema, ledger = str(release.folder / "schema.yaml"), str(release.ledger)
    words = [str(word) for word in release.facts.get("words", [])]
    if (plan := release.folder / PLAN_NAME).exists():
        words += ["--plan", str(plan)]
    where = ["-o", f"{release.output}/", *report, "--ledger", ledger]
    return ["synthesize", *words, "-s", schema, *where, *resume, "--", str(release.facts.get("data", ""))]


ROUTES = [
    Route("/tables/{table}/budget", show(budget_page)),
    Route("/tables/{table}/forecast", show(forecast_part)),
    Route("/tables/{table}/simulate", act(start_simulation), methods=["POST"]),
    Route("/tables/{table}/release", act(start_release), methods=["POST"]),
]
