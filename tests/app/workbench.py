"""A workbench for tests: its site, a browser of two lines, and jobs that run at once in this process."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Mapping
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pyarrow as pa
from starlette.testclient import TestClient

import dpsyn
from dpsyn.app import jobs
from dpsyn.app.layout import Site
from dpsyn.app.security import Access
from dpsyn.app.server import make_app
from dpsyn.app.workspace import Workspace
from dpsyn.cli.main import run

ADDRESS = "127.0.0.1:8123"
ORIGIN = f"http://{ADDRESS}"
MAX_UPLOAD = 1_000_000

HOSTILE = "</script><script>window.caught=1</script>"
"""The name of a column that tries to be a script."""

VALUES = ("\"><img src=x onerror='window.caught=2'>", "{{ 7*7 }}'; alert(1)//", "plain")
"""Values that try to be markup, a template, code."""


def write_table(path: Path, rows: int = 300) -> Path:
    """A CSV file with hostile names and values."""
    table = {
        "age": [index * 7 % 90 for index in range(rows)],
        HOSTILE: [VALUES[index % 3] for index in range(rows)],
        "member": [index % 4 == 0 for index in range(rows)],
    }
    dpsyn.write_table(pa.table(table), path, synthetic=False)
    return path


def make_site(folder: Path, **options: Any) -> Site:
    """A site with an empty workspace."""
    access = Access(hosts=frozenset([ADDRESS]), **options)
    return Site(access, Workspace.open(folder / "work"), max_upload=MAX_UPLOAD, started_in=folder)


class Visitor(TestClient):
    """A browser that has opened the address with the token, and sends forms as a page would."""

    def __init__(self, site: Site, *, signed_in: bool = True) -> None:
        super().__init__(make_app(site), base_url=ORIGIN, follow_redirects=False, headers={"origin": ORIGIN})
        self.site = site
        if signed_in:
            assert self.get("/open", params={"token": site.access.token}).status_code == 200

    def submit(self, path: str, form: Mapping[str, str] = {}, **more: Any) -> Any:
        """Send a form of this site."""
        return self.post(path, data={"form_token": self.site.access.form_token, **form}, **more)

    def upload(self, name: str, content: bytes) -> str:
        """Upload a file; the path of its page."""
        headers = {"x-form-token": self.site.access.form_token}
        answer = self.post("/upload", params={"name": name}, content=content, headers=headers)
        assert answer.status_code == 200, answer.text
        return str(answer.text)

    def page_text(self, path: str) -> str:
        """The page at a path; its words, not its markup."""
        answer = self.get(path)
        assert answer.status_code == 200, (path, answer.text)
        return unescape(re.sub(r"<[^>]*>", " ", answer.text))


@contextmanager
def _redirected(output: Path, messages: Path) -> Any:
    with (
        open(output, "wb") as out,
        open(messages, "wb") as err,
        mock.patch.object(sys, "stdout", io.TextIOWrapper(out, "utf-8", write_through=True)) as stdout,
        mock.patch.object(sys, "stderr", io.TextIOWrapper(err, "utf-8", write_through=True)) as stderr,
    ):
        yield
        stdout.detach()
        stderr.detach()


def work_here(folder: Path) -> Any:
    """Run the command of a job in this process, as its worker would, until it has ended."""
    with _redirected(folder / "output.txt", folder / "messages.txt"):
        code = jobs.work(folder, run)
    return SimpleNamespace(wait=lambda: code)


def make_approved_table(visitor: Visitor, folder: Path) -> str:
    """A table with an approved schema; the path of its page."""
    page = visitor.upload("people.csv", write_table(folder / "people.csv").read_bytes())
    assert visitor.submit(f"{page}/draft").status_code == 303
    visitor.submit(f"{page}/describe", {"dataset": "people", "expected_size": "300"})
    approved = visitor.submit(f"{page}/approve-all", {"because": "code book", "as_drafted": "on"})
    assert approved.status_code == 303, approved.text
    return page


def find_token(visitor: Visitor, page: str) -> str:
    """The token of the form that starts a release."""
    found = re.search(r'name="token" value="([0-9a-f]{16})"', visitor.get(f"{page}/budget").text)
    assert found
    return found[1]
