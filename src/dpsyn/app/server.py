"""The server: the pages put together, the address it listens at, and how it is opened in a browser."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import tempfile
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from dpsyn.app.layout import TEMPLATES, Site, report_problem, show
from dpsyn.app.pages import ask, budget, ledger, release, schema, start, verify
from dpsyn.app.security import Access, Guard
from dpsyn.app.workspace import NotFoundError, Workspace
from dpsyn.atomic_files import write_text
from dpsyn.errors import UserError, describe_os_error
from dpsyn.report import html_page

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")

STATIC_FILES = {
    "page.css": html_page.TEMPLATES / "page.css",
    "page.js": html_page.TEMPLATES / "page.js",
    "app.css": TEMPLATES / "app.css",
    "app.js": TEMPLATES / "app.js",
}
"""What pages load, by its name; nothing else is served."""


@dataclass(frozen=True)
class Address:
    """Where to listen, and what protects an address that others can reach.

    Attributes:
        host: an address of this computer.
        port: the port; 0 for any that is free.
        names: further names by which browsers reach it.
        password: the password; needed unless the host is loopback.
        certificate: the TLS certificate and its key; needed unless the host is loopback.
    """

    host: str = "127.0.0.1"
    port: int = 0
    names: tuple[str, ...] = ()
    password: str | None = None
    certificate: tuple[Path, Path] | None = None

    def __post_init__(self) -> None:
        if self.is_loopback:
            return
        if self.password is None or self.certificate is None:
            raise UserError(
                f"--host {self.host} lets other computers reach private tables; give --password-file, "
                "--tls-certificate and --tls-key too, or leave out --host"
            )
        if self.host in ("0.0.0.0", "::") and not self.names:
            raise UserError(f"--host {self.host} is every address; give the name that browsers use with --name")

    @property
    def is_loopback(self) -> bool:
        """Whether only this computer reaches it."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def scheme(self) -> str:
        """How browsers reach it."""
        return "https" if self.certificate else "http"

    def bind(self) -> socket.socket:
        """A socket that listens there."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((self.host, self.port))
        except (OSError, OverflowError) as error:
            listening.close()
            reason = describe_os_error(error) if isinstance(error, OSError) else str(error)
            raise UserError(f"{self.host}, port {self.port} cannot be used: {reason}") from None
        return listening

    def hosts(self, port: int) -> frozenset[str]:
        """The Host headers of requests to it."""
        own = f"[{self.host}]" if ":" in self.host else self.host
        names = [*(LOOPBACK_NAMES if self.is_loopback else ()), own, *self.names]
        usual = {"http": 80, "https": 443}[self.scheme]
        return frozenset([*(f"{name}:{port}" for name in names), *(names if port == usual else ())])


def make_app(site: Site) -> Starlette:
    """The application: all pages, or those of one synopsis, behind the guard."""
    pages = ask.FILE_ROUTES
    if site.workspace is not None:
        pages = [*start.ROUTES, *schema.ROUTES, *budget.ROUTES, *release.ROUTES, *ask.ROUTES, *ledger.ROUTES]
        pages += verify.ROUTES
    app = Starlette(
        routes=[Route("/static/{name}", show(static_file)), *pages],
        middleware=[Middleware(Guard, access=site.access, max_upload=site.max_upload)],
        exception_handlers={404: _not_found, 405: _not_found},
    )
    app.state.site = site
    return app


def static_file(request: Request, site: Site) -> Response:
    """A style, script or picture of the pages."""
    path = STATIC_FILES.get(request.path_params["name"])
    if path is None:
        raise NotFoundError("there is no such file")
    return FileResponse(path)


async def _not_found(request: Request, _: Exception) -> Response:
    return report_problem(request, request.app.state.site, NotFoundError("there is no such page"))


def serve(
    address: Address,
    workspace: Workspace | None,
    *,
    synopsis: Path | None = None,
    max_upload: int,
    open_browser: bool,
    announce: Callable[[str], None],
) -> None:
    """Serve until interrupted; ``announce`` gets the address, which only its reader may know."""
    with address.bind() as listening:
        port = listening.getsockname()[1]
        access = Access(hosts=address.hosts(port), scheme=address.scheme, password=address.password)
        site = Site(access, workspace, synopsis, max_upload)
        shown = "127.0.0.1" if address.is_loopback else (*address.names, address.host)[0]
        link = f"{address.scheme}://{shown}:{port}/open?token={quote(access.token)}"
        config = uvicorn.Config(
            make_app(site),
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=3,
            lifespan="off",
            ssl_certfile=str(address.certificate[0]) if address.certificate else None,
            ssl_keyfile=str(address.certificate[1]) if address.certificate else None,
        )
        listening.listen(config.backlog)
        announce(link)
        with tempfile.TemporaryDirectory(prefix="dpsyn-") as folder, contextlib.suppress(KeyboardInterrupt):
            if open_browser:
                _open_browser(link, Path(folder))
            uvicorn.Server(config).run(sockets=[listening])


def _open_browser(link: str, folder: Path) -> None:
    """Open the browser by a private file that leads to the link: other users may see the arguments of programs."""
    page = folder / "open.html"
    write_text(page, html_page.render_template("redirect.html", TEMPLATES, link=link), private=True)
    with contextlib.suppress(webbrowser.Error):
        webbrowser.open(page.as_uri())
