"""Verify: whether a release is intact, who vouches for it, and what it cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import dpsyn
from dpsyn.app.layout import Site, act, describe_error, show, text_of
from dpsyn.errors import UserError

VERDICTS = {
    "verified": "Verified: whoever has this key vouches for the release, and its cost is as certified.",
    "refused": "Refused: do not rely on this release. Get it again from its publisher, and tell them what was found.",
    "unsigned": "Consistent, but not verified: no key was given, so nobody vouches for it, and anyone can make a "
    "consistent release.",
}


def verify_page(request: Request, site: Site) -> Response:
    """The form; with a release of the workbench filled in, if one is named."""
    named = request.query_params.get("release", "")
    given = {"path": str(site.work.release(named).output)} if named else {}
    return _render(request, site, given=given)


def verify_release(request: Request, site: Site, form: FormData) -> Response:
    """Verify a release, as ``dpsyn verify`` does; the public key comes from the reader."""
    given = {name: text_of(form, name) for name in ("path", "key", "ledger")}
    try:
        if not given["path"]:
            raise UserError("give the folder of a release, or a synopsis, such as /home/me/release")
        ledger = site.work.ledger if given["ledger"] else None
        result = dpsyn.verify(Path(given["path"]).expanduser(), given["key"] or None, ledger=ledger)
    except UserError as error:
        return _render(request, site, 400, given=given, problem=describe_error(error))
    return _render(request, site, given=given, result=result)


def _render(request: Request, site: Site, status: int = 200, **context: Any) -> Response:
    made = [each for each in site.work.releases() if each.is_made]
    facts = {"step": "", "releases": made, "given": {}, "result": None, "verdicts": VERDICTS}
    return site.render(request, "verify.html", status, **{**facts, **context})


ROUTES = [
    Route("/verify", show(verify_page)),
    Route("/verify", act(verify_release), methods=["POST"]),
]
