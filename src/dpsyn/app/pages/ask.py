"""Ask: any marginal of a synopsis with error bars, as a table and a picture; costs no privacy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from dpsyn.app.answers import describe_answer
from dpsyn.app.layout import Site, act, describe_error, show
from dpsyn.app.security import redirect
from dpsyn.app.workspace import NotFoundError, Release
from dpsyn.errors import UserError
from dpsyn.report.release_facts import page_facts
from dpsyn.report.synopsis import privacy_warning_lines

MAX_ATTRIBUTES = 3
"""Attributes that one question may have on the page."""


def ask_release(request: Request, site: Site) -> Response:
    """Questions about a release of the workbench."""
    release = _find_made(request, site)
    return _answer(request, site, release.output, release, "ask")


def _find_made(request: Request, site: Site) -> Release:
    release = site.work.release(request.path_params["release"])
    if not release.is_made:
        raise NotFoundError("the release is not complete, so there is nothing to ask")
    return release


def ask_file(request: Request, site: Site) -> Response:
    """Questions about the synopsis that the server was started for."""
    if site.synopsis is None:
        raise NotFoundError("there is no such page")
    return _answer(request, site, site.synopsis, None, "")


def _answer(request: Request, site: Site, path: Path, release: Release | None, step: str) -> Response:
    synopsis = site.load_synopsis(path)
    names = [attribute.name for attribute in synopsis.schema.modeled_attributes]
    asked = [name for name in request.query_params.getlist("a") if name][:MAX_ATTRIBUTES]
    where = [line.strip() for line in request.query_params.get("where", "").splitlines() if line.strip()]
    facts: dict[str, Any] = {
        "title": release.title if release else synopsis.schema.dataset or path.name,
        "names": names,
        "asked": asked,
        "where": "\n".join(where),
        "warnings": privacy_warning_lines(synopsis),
        "facts": page_facts(synopsis),
        "result": None,
        "problem": "",
    }
    if not asked and not where:
        asked = names[:1]
        facts["asked"] = asked
    try:
        facts["result"] = describe_answer(synopsis, list(dict.fromkeys(asked)), where)
    except UserError as error:
        facts["problem"] = describe_error(error)
    return site.render(request, "ask.html", 400 if facts["problem"] else 200, **facts, release=release, step=step)


def start_export(request: Request, site: Site, form: FormData) -> Response:
    """Make one page with all questions about one and two attributes, as ``dpsyn app --export`` does."""
    release = _find_made(request, site)
    if not release.questions.exists():
        words = ["--ask", str(release.output / "synopsis.dpsyn"), "--export", str(release.questions)]
        release.export_job.start(["app", *words])
    return redirect(f"/releases/{release.id}/ask")


def send_export(request: Request, site: Site) -> Response:
    """The page with all questions, for publication."""
    release = _find_made(request, site)
    if not release.questions.exists():
        raise NotFoundError("the page for publication is not made yet")
    return FileResponse(release.questions, media_type="application/octet-stream", filename=f"{release.id}-ask.html")


def export_state(request: Request, site: Site) -> Response:
    """Whether the page for publication is being made, for the script of its page."""
    return JSONResponse({"export": _find_made(request, site).export_job.state})


ROUTES = [
    Route("/releases/{release}/ask", show(ask_release)),
    Route("/releases/{release}/ask.html", show(send_export)),
    Route("/releases/{release}/export", act(start_export), methods=["POST"]),
    Route("/releases/{release}/export-state", show(export_state)),
]

FILE_ROUTES = [Route("/", show(ask_file))]
"""What is there if the server was started for one synopsis alone."""
