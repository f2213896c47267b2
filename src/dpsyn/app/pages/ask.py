"""Ask: any marginal of a synopsis with error bars, as a table and a picture; costs no privacy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpsyn.app.answers import describe_answer, export_page
from dpsyn.app.layout import Site, describe_error, show
from dpsyn.app.workspace import NotFoundError, Release
from dpsyn.errors import UserError
from dpsyn.report.release_facts import page_facts
from dpsyn.report.synopsis import privacy_warning_lines

MAX_ATTRIBUTES = 3
"""Attributes that one question may have on the page."""


def ask_release(request: Request, site: Site) -> Response:
    """Questions about a release of the workbench."""
    release = site.work.release(request.path_params["release"])
    if not release.is_made:
        raise NotFoundError("the release is not complete, so there is nothing to ask")
    return _answer(request, site, release.output, release, "ask")


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


def export_release(request: Request, site: Site) -> Response:
    """One page with all questions about one and two attributes, for publication."""
    release = site.work.release(request.path_params["release"])
    if not release.is_made:
        raise NotFoundError("the release is not complete, so there is nothing to ask")
    page = export_page(site.load_synopsis(release.output))
    headers = {"Content-Disposition": f'attachment; filename="{release.id}-ask.html"'}
    return Response(page, media_type="application/octet-stream", headers=headers)


ROUTES = [
    Route("/releases/{release}/ask", show(ask_release)),
    Route("/releases/{release}/ask.html", show(export_release)),
]

FILE_ROUTES = [Route("/", show(ask_file))]
"""What is there if the server was started for one synopsis alone."""
