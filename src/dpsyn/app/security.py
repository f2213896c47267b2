"""Who may ask: one person on this computer, from a page of this server.

- The address that ``dpsyn app`` prints has a random token. It is exchanged for a cookie that scripts cannot read and
  that browsers send from pages of this server only (HttpOnly, SameSite=Strict).
- The Host of every request must be one of this server's names, so a foreign name that resolves to this computer (DNS
  rebinding) is refused.
- What changes anything must come from a page of this server: its Origin is compared, and the form or header must have
  the token of the session.
- Bodies are limited. Nothing is cached, framed, or loaded from elsewhere; pages run the server's own scripts only.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpsyn.errors import UserError
from dpsyn.report.html_page import render_template

MAX_FORM_BYTES = 4_000_000
"""The largest form: a schema of some thousand columns. Uploads of tables have a limit of their own."""

UPLOAD_PATH = "/upload"

LOGIN_SECONDS = 1.0
"""How late a wrong password is answered, so that they cannot be tried by the thousand."""

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
"""What every answer has, unless a page sets its own."""


class RefusedError(UserError):
    """A form that does not come from a page of this session."""


class TooLargeError(UserError):
    """A body that exceeds its limit."""


@dataclass(frozen=True)
class Access:
    """The secrets of one run of the server, and the names that it answers to.

    Attributes:
        hosts: the Host headers that are accepted, such as ``127.0.0.1:8123``.
        scheme: ``http``, or ``https`` with TLS files.
        password: what may be given instead of the token; None without one.
        token: what the printed address has.
        session: the value of the cookie.
        form_token: what every form has.
        cookie_name: the name of the cookie. Servers at all ports share cookies, so each has a name of its own.
    """

    hosts: frozenset[str]
    scheme: str = "http"
    password: str | None = field(default=None, repr=False)
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    form_token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    cookie_name: str = field(default_factory=lambda: f"dpsyn_{secrets.token_hex(4)}")

    def is_signed_in(self, cookies: Mapping[str, str]) -> bool:
        """Whether a request has the cookie of this session."""
        return hmac.compare_digest(cookies.get(self.cookie_name, "").encode(), self.session.encode())

    def check_form(self, given: str) -> None:
        """Refuse a form without the token of this session."""
        if not hmac.compare_digest(given.encode(), self.form_token.encode()):
            raise RefusedError("this page is out of date, perhaps because the server was restarted; load it again")

    def sign_in(self, response: Response) -> Response:
        """An answer that sets the cookie."""
        response.set_cookie(
            self.cookie_name,
            self.session,
            httponly=True,
            samesite="strict",
            secure=self.scheme == "https",
        )
        return response


class Guard:
    """Refuses requests as the module's docstring says, before any page sees them."""

    def __init__(self, app: ASGIApp, access: Access, max_upload: int) -> None:
        self._app, self._access, self._max_upload = app, access, max_upload
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        limit = self._max_upload if scope["path"] == UPLOAD_PATH else MAX_FORM_BYTES
        receive, send = _limit_body(receive, limit), _with_headers(send)
        request = Request(scope, receive)
        refusal = self._refuse(request, limit) or await self._answer_stranger(request)
        await (refusal or self._app)(scope, receive, send)

    def _refuse(self, request: Request, limit: int) -> Response | None:
        """Refuse foreign names, foreign pages and large bodies."""
        host = request.headers.get("host", "")
        if host not in self._access.hosts:
            return PlainTextResponse("This server does not answer to that name.", 403)
        if request.method not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("This method is not known.", 405)
        if request.method == "POST" and request.headers.get("origin") != f"{self._access.scheme}://{host}":
            return PlainTextResponse("This request does not come from a page of this server.", 403)
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > limit:
            return PlainTextResponse(f"This is too large; at most {limit:,} bytes are accepted.", 413)
        return None

    async def _answer_stranger(self, request: Request) -> Response | None:
        """What somebody gets who is not signed in; None for somebody who is."""
        path = request.scope["path"]
        if path == "/open" and request.method == "GET":
            given = request.query_params.get("token", "")
            if hmac.compare_digest(given.encode(), self._access.token.encode()):
                # a redirect would come without the cookie if another page, such as a file, has opened this one
                return self._access.sign_in(HTMLResponse(render_page("opened.html")))
        elif path.startswith("/static/") or self._access.is_signed_in(request.cookies):
            return None
        elif path == "/login" and request.method == "POST" and self._access.password is not None:
            return await self._sign_in(request, self._access.password)
        return self._close()

    async def _sign_in(self, request: Request, password: str) -> Response:
        """Compare a password; wrong ones are answered late, one after the other."""
        try:
            given = str((await request.form(max_files=0)).get("password", ""))
        except (TooLargeError, HTTPException):
            given = ""
        if hmac.compare_digest(given.encode(), password.encode()):
            return self._access.sign_in(redirect("/"))
        async with self._one_at_a_time:
            await asyncio.sleep(LOGIN_SECONDS)
        return self._close(wrong=True)

    def _close(self, *, wrong: bool = False) -> Response:
        """The page of a door that is closed."""
        return HTMLResponse(render_page("closed.html", password=self._access.password is not None, wrong=wrong), 403)


def render_page(name: str, **context: object) -> str:
    """A page of the workbench for somebody who is not signed in."""
    from dpsyn.app.layout import TEMPLATES

    return render_template(name, TEMPLATES, **context)


def redirect(path: str) -> Response:
    """Send the browser to another page of this server, with a GET request."""
    return RedirectResponse(path, 303)


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers


def _limit_body(receive: Receive, limit: int) -> Receive:
    """A body that is refused once more of it arrives than it may have."""
    seen = 0

    async def receive_limited() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise TooLargeError(f"this is too large; at most {limit:,} bytes are accepted")
        return message

    return receive_limited
