"""Ledger: every dataset with its cap, what is used of it, its runs, and whether the ledger is intact."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import dpsyn
from dpsyn.app.layout import Site, act, describe_error, show, text_of
from dpsyn.app.security import redirect
from dpsyn.errors import UserError
from dpsyn.report.ledger import RUN_HEADINGS, account_data, account_lines, run_rows


def ledger_page(request: Request, site: Site) -> Response:
    """The accounts of all datasets; also whether the ledger is intact, if that is asked for."""
    return _render(request, site, **(_verify(site) if "verify" in request.query_params else {}))


def _render(request: Request, site: Site, status: int = 200, **context: Any) -> Response:
    accounts = dpsyn.Ledger(site.work.ledger).datasets()
    releases = {release.run: release for release in site.work.releases() if release.run}
    facts: dict[str, Any] = {
        "accounts": [
            {
                "account": account,
                "lines": account_lines(account, set_cap="below"),
                "share": account_data(account)["used"]["share_of_cap"],
                "runs": list(zip(account.runs, run_rows(account), strict=True)),
            }
            for account in accounts
        ],
        "headings": RUN_HEADINGS,
        "releases": releases,
        "verification": None,
        "ledger": site.work.ledger,
        "step": "",
    }
    return site.render(request, "ledger.html", status, **{**facts, **context})


def set_cap(request: Request, site: Site, form: FormData) -> Response:
    """Limit what all releases of a dataset may spend together."""
    try:
        epsilon, delta = (float(text_of(form, name).replace(",", ".")) for name in ("epsilon", "delta"))
    except ValueError:
        return _render(request, site, 400, problem="A cap needs two numbers: ε, such as 4, and δ, such as 1e-8.")
    dataset = text_of(form, "dataset")
    try:
        if not dataset:
            raise UserError("name the dataset, as its schema does")
        dpsyn.Ledger(site.work.ledger).set_cap(dataset, dpsyn.Cap.for_guarantee(epsilon, delta))
    except UserError as error:
        return _render(request, site, 400, problem=describe_error(error))
    return redirect("/ledger?done=cap")


def close_run(request: Request, site: Site, form: FormData) -> Response:
    """End a run that was abandoned."""
    run = text_of(form, "run")
    running = next((each for each in site.work.releases() if each.run == run and each.state == "running"), None)
    if running is not None:
        return _render(request, site, 400, problem="This release is running; interrupt it first.")
    dpsyn.Ledger(site.work.ledger).close(run)
    return redirect("/ledger?done=closed")


def _verify(site: Site) -> dict[str, Any]:
    """Check that no entry was changed, and that the releases of the workbench agree with the ledger."""
    made = [each for each in site.work.releases() if each.is_made and each.ledger == site.work.ledger]
    records = [dpsyn.read_ledger_checkpoint(each.output / "synopsis.dpsyn") for each in made]
    return {"verification": dpsyn.Ledger(site.work.ledger).verify(records), "compared": len(records)}


ROUTES = [
    Route("/ledger", show(ledger_page)),
    Route("/ledger/cap", act(set_cap), methods=["POST"]),
    Route("/ledger/close", act(close_run), methods=["POST"]),
]
