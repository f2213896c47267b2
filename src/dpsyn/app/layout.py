"""What all pages share: the site they belong to, their layout, and how their forms are read."""

from __future__ import annotations

import functools
import os
import threading
import traceback
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

import dpsyn
from dpsyn import release_files
from dpsyn.app.security import Access, RefusedError, TooLargeError
from dpsyn.app.workspace import NotFoundError, Workspace
from dpsyn.errors import UserError
from dpsyn.report.html_page import render_template

TEMPLATES = Path(__file__).with_name("templates")

MAX_OPEN_SYNOPSES = 8
"""Synopses that are kept in memory, because reading one takes a second."""

MAX_FORM_FIELDS = 20_000

DONE = {
    "saved": "Saved.",
    "approved": "Approved. The certificate of every release will list it with your reason.",
    "approved-rest": "Approved, except entries that are exactly as they were read off the rows: compare each of them "
    "with your public source, or confirm below that it says the same.",
    "withdrawn": "Saved. Entries that say something else than what was approved need another approval.",
    "left-out": "Left out: a release neither reads nor measures it.",
    "undone": "The last change was taken back.",
    "nothing": "There is nothing to take back.",
    "replaced": "The schema was replaced; the earlier one can be brought back with Undo.",
    "removed": "The table was removed from the workbench. Releases stay.",
    "cap": "The cap was set.",
    "closed": "The run was closed. What it measured stays spent; the rest of its budget is free again.",
    "once": "This form had been sent before, so nothing new was started and nothing was charged again.",
    "signed": "Signed. Publish your public key where your readers trust it: they verify the release by it.",
    "interrupted": "The release is being interrupted.",
}
"""What a page reports after an action. Addresses name these messages and never contain a text."""


@dataclass(frozen=True)
class Site:
    """Everything that pages need; ``workspace`` is None if only one synopsis is shown."""

    access: Access
    workspace: Workspace | None
    synopsis: Path | None = None
    max_upload: int = 0
    started_in: Path = field(default_factory=Path.cwd)
    _synopses: OrderedDict[tuple[str, int], dpsyn.Synopsis] = field(default_factory=OrderedDict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def work(self) -> Workspace:
        """The workspace; pages that need one are not there without it."""
        if self.workspace is None:
            raise NotFoundError("there is no such page")
        return self.workspace

    def load_synopsis(self, path: Path) -> dpsyn.Synopsis:
        """A synopsis; those that were used last stay in memory."""
        file = release_files.find_synopsis(path)
        key = (str(file), os.stat(file).st_mtime_ns)
        with self._lock:
            if key not in self._synopses:
                self._synopses[key] = dpsyn.Synopsis.load(file)
                while len(self._synopses) > MAX_OPEN_SYNOPSES:
                    self._synopses.popitem(last=False)
            self._synopses.move_to_end(key)
            return self._synopses[key]

    def render(self, request: Request, template: str, status: int = 200, **context: Any) -> HTMLResponse:
        """A page."""
        common = {
            "site": self,
            "form_token": self.access.form_token,
            "done": DONE.get(request.query_params.get("done", ""), ""),
            "path": request.url.path,
            "problem": "",
        }
        return HTMLResponse(render_template(template, TEMPLATES, **{**common, **context}), status)


Page = Callable[[Request, Site], Response]
Action = Callable[[Request, Site, FormData], Response]
Endpoint = Callable[[Request], Awaitable[Response]]


def show(page: Page) -> Endpoint:
    """A page for a GET request; it works in a thread, so that others need not wait."""

    @functools.wraps(page)
    async def endpoint(request: Request) -> Response:
        return await run_in_threadpool(_guarded, request, lambda: page(request, request.app.state.site))

    return endpoint


def act(action: Action) -> Endpoint:
    """What a form does; its token is compared first."""

    @functools.wraps(action)
    async def endpoint(request: Request) -> Response:
        site: Site = request.app.state.site
        try:
            form = await request.form(max_files=0, max_fields=MAX_FORM_FIELDS)
        except TooLargeError as error:
            return report_problem(request, site, error)

        def run() -> Response:
            site.access.check_form(str(form.get("form_token", "")))
            return action(request, site, form)

        return await run_in_threadpool(_guarded, request, run)

    return endpoint


def _guarded(request: Request, work: Callable[[], Response]) -> Response:
    site: Site = request.app.state.site
    try:
        return work()
    except UserError as error:
        return report_problem(request, site, error)
    except Exception as error:  # as the command line does: where it failed, without the message, which may quote rows
        if os.environ.get("DPSYN_TRACEBACK"):
            traceback.print_exc()
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__} in {os.path.basename(frame.filename)}, line {frame.lineno}"
        return site.render(request, "problem.html", 500, problem=f"Internal error ({where}); please report it.")


def report_problem(request: Request, site: Site, error: UserError) -> Response:
    """A page about a mistake of the user."""
    codes = {NotFoundError: 404, RefusedError: 403, TooLargeError: 413}
    return site.render(request, "problem.html", codes.get(type(error), 400), problem=describe_error(error))


def describe_error(error: UserError) -> str:
    """The message of an error. These pages are for the data owner, so it may show what a draft says about rows."""
    text = str(getattr(error, "private_details", "") or error)
    return text[:1].upper() + text[1:] if text[:1].isascii() else text  # δ is not Δ


def text_of(form: FormData, name: str) -> str:
    """A field of a form, without spaces around it; empty if it is not there."""
    return str(form.get(name, "")).strip()
