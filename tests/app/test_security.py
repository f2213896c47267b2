"""Attacks on the workbench: none of them sees or changes anything."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import re
import shutil
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Route

import dpsyn
from dpsyn.app import jobs, security
from dpsyn.app.pages import budget, start
from dpsyn.app.security import Access
from dpsyn.app.server import Address, make_app
from dpsyn.app.workspace import Workspace, clean_name
from dpsyn.errors import UserError
from tests.app.workbench import (
    ADDRESS,
    MAX_UPLOAD,
    ORIGIN,
    Visitor,
    find_token,
    make_approved_table,
    make_site,
    work_here,
    write_table,
)
from tests.memory import trace_peak


@pytest.fixture
def visitor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Visitor:
    monkeypatch.setattr(jobs, "_spawn", work_here)
    return Visitor(make_site(tmp_path))


def list_routes(visitor: Visitor) -> list[tuple[str, str]]:
    """Every method and path of the application, with a name that nobody has."""
    routes = [route for route in make_app(visitor.site).routes if isinstance(route, Route)]
    paths = [(method, re.sub(r"\{\w+\}", "x", route.path)) for route in routes for method in route.methods or ()]
    assert len(paths) > 35
    return [(method, path) for method, path in paths if method != "HEAD"]


def list_files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


# ── who asks ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_nobody_without_the_token_sees_any_page(visitor: Visitor) -> None:
    stranger = Visitor(visitor.site, signed_in=False)
    before = list_files(visitor.site.work.folder)

    for method, path in list_routes(visitor):
        if not path.startswith("/static/"):
            answer = stranger.request(
                method, path, data={"form_token": visitor.site.access.form_token} if method == "POST" else None
            )
            assert (answer.status_code, "set-cookie" in answer.headers) == (403, False), (method, path)
            assert visitor.site.access.form_token not in answer.text
    assert stranger.get("/open", params={"token": "guess"}).status_code == 403
    assert stranger.get("/open").status_code == 403
    stranger.cookies.set(visitor.site.access.cookie_name, "guess")
    assert stranger.get("/").status_code == 403
    assert list_files(visitor.site.work.folder) == before


def test_the_token_becomes_a_cookie_that_only_this_site_sends_and_no_script_reads(visitor: Visitor) -> None:
    answer = Visitor(visitor.site, signed_in=False).get("/open", params={"token": visitor.site.access.token})

    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert visitor.site.access.token not in answer.headers["set-cookie"]
    assert visitor.site.access.token not in visitor.get("/").text
    assert (
        Access(hosts=frozenset(), scheme="https")
        .sign_in(security.redirect("/"))
        .headers["set-cookie"]
        .endswith("Secure")
    )


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8123", "127.0.0.1:8124", "localhost", ""])
def test_a_foreign_host_is_refused_even_with_the_cookie_and_the_token(visitor: Visitor, host: str) -> None:
    for method, path in [*list_routes(visitor), ("GET", f"/open?token={visitor.site.access.token}")]:
        assert visitor.request(method, path, headers={"host": host}).status_code == 403, path


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://127.0.0.1:9999", "https://127.0.0.1:8123", "null", ""]
)
def test_a_form_from_a_foreign_page_is_refused_even_with_the_cookie_and_the_token(
    visitor: Visitor, origin: str
) -> None:
    before = list_files(visitor.site.work.folder)
    headers = {"origin": origin, "x-form-token": visitor.site.access.form_token}

    for method, path in list_routes(visitor):
        if method == "POST":
            assert visitor.submit(path, headers=headers).status_code == 403, path
    del visitor.headers["origin"]
    assert visitor.submit("/ledger/cap", {"dataset": "x", "epsilon": "1", "delta": "0.1"}).status_code == 403
    assert list_files(visitor.site.work.folder) == before


def test_a_form_without_the_token_of_the_session_changes_nothing(visitor: Visitor) -> None:
    before = list_files(visitor.site.work.folder)

    for method, path in list_routes(visitor):
        if method == "POST":
            for form in ({}, {"form_token": "guess"}):
                assert visitor.post(path, data=form).status_code in (400, 403), path
    cap = {"dataset": "x", "epsilon": "1", "delta": "0.1", "form_token": "guess"}
    assert visitor.post("/ledger/cap", data=cap).status_code == 403
    assert dpsyn.Ledger(visitor.site.work.ledger).datasets() == ()
    assert list_files(visitor.site.work.folder) == before


def test_a_link_changes_nothing(visitor: Visitor) -> None:
    posts = {path for method, path in list_routes(visitor) if method == "POST"}
    gets = {path for method, path in list_routes(visitor) if method == "GET"}

    for path in posts - gets:
        assert visitor.get(path).status_code == 404, path


def test_every_answer_forbids_foreign_scripts_frames_and_caches(visitor: Visitor) -> None:
    stranger = Visitor(visitor.site, signed_in=False)
    answers = [visitor.get("/"), visitor.get("/nothing"), stranger.get("/"), visitor.get("/static/app.js")]
    answers += [visitor.get("/", headers={"host": "evil"}), visitor.submit("/ledger/cap"), visitor.get("/ledger")]

    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe-inline" not in policy.replace("style-src-attr 'unsafe-inline'", "")
        assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == ("no-store", "nosniff")
        assert not re.search(r"<script(?! src=\"/static/)|\son\w+=", answer.text) or answer.url.path.startswith(
            "/static"
        )


# ── paths ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/..%2fserver.py",
        "/static/%2e%2e/%2e%2e/errors.py",
        "/static//etc/passwd",
        "/static/app_base.html",
        "/tables/%2e%2e",
        "/tables/..%2f..%2fsecret",
        "/tables/%2fetc",
        "/releases/../tables",
        "/releases/..%2ftables",
        "/releases/.hidden",
        "/releases/%00",
        "/releases/x/files/..%2f..%2fledger.db",
        "/releases/x/rows/../job.json",
    ],
)
def test_a_path_leads_nowhere_else(visitor: Visitor, path: str) -> None:
    (visitor.site.work.folder.parent / "secret").mkdir()

    answer = visitor.get(path)

    assert answer.status_code == 404
    assert "root:" not in answer.text
    assert "import" not in answer.text


@pytest.mark.parametrize(
    "name",
    [
        "../../evil.csv",
        "/etc/passwd",
        "..\\..\\evil.csv",
        ".bashrc",
        "",
        "...",
        "a/b/c.csv",
        "x\0.csv",
        "ü" * 999 + ".csv",
    ],
)
def test_the_name_of_an_upload_stays_in_its_folder(visitor: Visitor, name: str, tmp_path: Path) -> None:
    before = list_files(tmp_path)
    page = visitor.upload(name, b"a,b\n1,2\n")

    table = visitor.site.work.table(page.removeprefix("/tables/"))
    made = {path for path in list_files(tmp_path) - before if (tmp_path / path).is_file()}
    assert made == {f"work/tables/{table.id}/table.json", f"work/tables/{table.id}/data/{Path(table.data).name}"}
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}", Path(table.data).name)
    assert (os.stat(table.data).st_mode & 0o777, os.stat(table.folder).st_mode & 0o777) == (0o600, 0o700)
    assert clean_name(name) == Path(table.data).name or "/" in name or "\\" in name


def test_a_file_of_a_release_is_one_of_its_own(visitor: Visitor, tmp_path: Path) -> None:
    page = make_approved_table(visitor, tmp_path)
    form = {"token": find_token(visitor, page), "epsilon": "1", "recipe": "independent"}
    place = visitor.submit(f"{page}/release", form).headers["location"]

    assert visitor.get(f"{place}/files/synthetic.csv").status_code == 200
    for name in ("release.json", "job.json", "schema.yaml", "..%2frelease.json", "%2e%2e%2fjob.json", "messages.txt"):
        assert visitor.get(f"{place}/files/{name}").status_code == 404, name


# ── sizes ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_upload_that_announces_too_much_is_refused_before_it_is_read(visitor: Visitor) -> None:
    read: list[bytes] = []

    def body() -> Iterator[bytes]:
        read.append(b"x")
        yield b"x"

    headers = {"x-form-token": visitor.site.access.form_token, "content-length": str(MAX_UPLOAD + 1)}
    answer = visitor.post("/upload", params={"name": "x.csv"}, content=body(), headers=headers)

    assert (answer.status_code, read) == (413, [])
    assert visitor.site.work.tables() == []


def test_an_upload_that_turns_out_too_large_leaves_nothing(visitor: Visitor) -> None:
    headers = {"x-form-token": visitor.site.access.form_token}
    chunks = (b"x" * 100_000 for _ in range(MAX_UPLOAD // 100_000 + 1))  # no length is announced
    answer = visitor.post("/upload", params={"name": "x.csv"}, content=chunks, headers=headers)

    assert answer.status_code == 413
    assert visitor.site.work.tables() == []


def test_an_upload_that_breaks_off_leaves_nothing(visitor: Visitor) -> None:
    app, answers = make_app(visitor.site), []
    parts = iter([{"type": "http.request", "body": b"a,b\n1", "more_body": True}, {"type": "http.disconnect"}])
    headers = {
        "host": ADDRESS,
        "origin": ORIGIN,
        "x-form-token": visitor.site.access.form_token,
        "cookie": f"{visitor.site.access.cookie_name}={visitor.site.access.session}",
    }
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/upload",
        "query_string": b"name=x.csv",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }

    async def receive() -> Any:
        return next(parts)

    async def send(message: Any) -> None:
        answers.append(message)

    asyncio.run(app(scope, receive, send))

    assert answers[0]["status"] == 400
    assert visitor.site.work.tables() == []


def test_a_form_that_is_too_large_is_refused(visitor: Visitor) -> None:
    assert visitor.submit("/tables", {"data": "x" * (security.MAX_FORM_BYTES + 1)}).status_code == 413


def store_pieces(path: Path, pieces: int, size: int) -> None:
    """Store an upload that arrives in pieces."""

    async def body() -> Any:
        for _ in range(pieces):
            yield b"x" * size

    asyncio.run(start._store(body(), path))


def test_an_upload_is_written_piece_by_piece(tmp_path: Path) -> None:
    pieces, size = 200, 200_000
    _, peak = trace_peak(store_pieces, tmp_path / "large.csv", pieces, size)

    assert (tmp_path / "large.csv").stat().st_size == pieces * size
    assert peak < 10 * size


def test_an_upload_has_its_name_only_once_it_is_whole(tmp_path: Path) -> None:
    """A server that is killed must not leave the first rows of a table as the table."""
    seen: list[list[str]] = []

    async def body() -> Any:
        for _ in range(2):
            yield b"1\n"
            seen.append([path.name for path in tmp_path.iterdir()])

    asyncio.run(start._store(body(), tmp_path / "table.csv"))

    assert seen == [[".table.csv.part"]] * 2
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


# ── one form, one charge ─────────────────────────────────────────────────────────────────────────────────────


def count_runs(visitor: Visitor) -> int:
    return sum(len(account.runs) for account in dpsyn.Ledger(visitor.site.work.ledger).datasets())


def test_a_form_that_is_sent_twice_is_charged_once(visitor: Visitor, tmp_path: Path) -> None:
    page = make_approved_table(visitor, tmp_path)
    form = {"token": find_token(visitor, page), "epsilon": "1", "recipe": "independent"}

    first, second = visitor.submit(f"{page}/release", form), visitor.submit(f"{page}/release", form)
    back = visitor.submit(f"{page}/release", {**form, "epsilon": "2"})  # the back button, and another ε

    place = first.headers["location"]
    assert [each.headers["location"] for each in (second, back)] == [f"{place}?done=once"] * 2
    assert "nothing was charged again" in visitor.page_text(f"{place}?done=once")
    assert count_runs(visitor) == 1
    assert len(visitor.site.work.releases()) == 1


def test_another_release_of_the_same_people_needs_a_confirmation(visitor: Visitor, tmp_path: Path) -> None:
    page = make_approved_table(visitor, tmp_path)
    form = {"epsilon": "1", "recipe": "independent"}
    visitor.submit(f"{page}/release", {**form, "token": find_token(visitor, page)})
    # the back button loads the form anew, so it has another token
    again = visitor.submit(f"{page}/release", {**form, "token": find_token(visitor, page)})

    assert again.status_code == 400
    assert count_runs(visitor) == 1
    visitor.submit(f"{page}/release", {**form, "token": find_token(visitor, page), "again": "on"})
    assert count_runs(visitor) == 2


def test_two_clicks_at_the_same_moment_make_one_release(visitor: Visitor, tmp_path: Path) -> None:
    token, made = "0123456789abcdef", []
    barrier = threading.Barrier(8)

    def click() -> None:
        barrier.wait()
        made.append(visitor.site.work.new_release("people", token, {}, {"schema.yaml": "x"}))

    threads = [threading.Thread(target=click) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(is_new for _, is_new in made) == 1
    assert len({release.id for release, _ in made}) == 1


def test_two_windows_at_the_same_moment_need_the_confirmation_too(
    visitor: Visitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = make_approved_table(visitor, tmp_path)
    forms = [{"epsilon": "1", "recipe": "independent", "token": find_token(visitor, page)} for _ in range(2)]
    windows = [visitor, Visitor(visitor.site)]
    meeting, find_earlier = threading.Barrier(2), budget._find_earlier

    def find_together(*arguments: Any) -> Any:
        found = find_earlier(*arguments)
        with contextlib.suppress(threading.BrokenBarrierError):
            meeting.wait(0.3)
        return found

    monkeypatch.setattr(budget, "_find_earlier", find_together)
    with ThreadPoolExecutor(2) as pool:
        answers = pool.map(lambda window, form: window.submit(f"{page}/release", form), windows, forms)

    assert sorted(answer.status_code for answer in answers) == [303, 400]
    assert count_runs(visitor) == 1


@pytest.mark.parametrize("token", ["", "x", "../../../../etc/x", "0123456789ABCDEF", "0123456789abcdef0"])
def test_a_form_with_a_strange_token_starts_nothing(visitor: Visitor, tmp_path: Path, token: str) -> None:
    page = make_approved_table(visitor, tmp_path)

    assert visitor.submit(f"{page}/release", {"token": token, "epsilon": "1"}).status_code == 400
    assert visitor.site.work.releases() == []


def test_two_browsers_do_not_overwrite_each_other(visitor: Visitor, tmp_path: Path) -> None:
    page = make_approved_table(visitor, tmp_path)
    other = Visitor(visitor.site)
    digest = re.search(r'name="digest" value="(\w+)"', visitor.get(f"{page}/schema").text)
    assert digest
    other.submit(
        f"{page}/edit", {"title": "age", "number": "0", "kind": "integer", "field.low": "0", "field.high": "120"}
    )
    late = visitor.submit(f"{page}/yaml", {"digest": digest[1], "yaml": "dpsyn_schema: 1\nattributes: {}\n"})

    assert late.status_code == 400
    assert "was changed meanwhile" in late.text
    assert "high: 120" in visitor.site.work.table(page.removeprefix("/tables/")).schema_path.read_text()


# ── other addresses ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "--password-file"),
        ({"password": "a long password"}, "--tls-certificate"),
        ({"certificate": (Path("c"), Path("k"))}, "--password-file"),
    ],
)
@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "example.org"])
def test_another_address_needs_a_password_and_tls(host: str, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        Address(host, **options)


def test_every_address_needs_a_name() -> None:
    protected: dict[str, Any] = {"password": "a long password", "certificate": (Path("c"), Path("k"))}

    with pytest.raises(UserError, match="--name"):
        Address("0.0.0.0", **protected)
    assert Address("0.0.0.0", names=("lab.example",), **protected).hosts(443) >= {"lab.example:443", "lab.example"}
    assert Address("192.168.1.5", **protected).hosts(8443) == {"192.168.1.5:8443"}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.9.9.9"])
def test_this_computer_needs_neither(host: str) -> None:
    assert Address(host).is_loopback


def test_a_wrong_password_is_refused_late_and_the_right_one_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security, "LOGIN_SECONDS", 0.2)
    site = make_site(tmp_path, password="correct horse battery")
    stranger = Visitor(site, signed_in=False)
    begin = time.monotonic()

    assert "Password" in stranger.get("/").text
    assert stranger.post("/login", data={"password": "guess"}).status_code == 403
    assert time.monotonic() - begin >= 0.2
    assert stranger.get("/").status_code == 403
    assert stranger.post("/login", files={"password": b"x"}).status_code == 403
    assert stranger.post("/login", data={"password": "correct horse battery"}).status_code == 303
    assert stranger.get("/").status_code == 200


def test_without_a_password_there_is_nothing_to_guess(visitor: Visitor) -> None:
    assert Visitor(visitor.site, signed_in=False).post("/login", data={"password": ""}).status_code == 403


# ── what is shown ────────────────────────────────────────────────────────────────────────────────────────────


def test_an_internal_error_shows_where_it_was_and_never_what_it_said(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = visitor.upload("people.csv", write_table(tmp_path / "people.csv").read_bytes())

    def fail(*_: object, **__: object) -> None:
        raise ValueError("the cell of Mrs. Miller")

    monkeypatch.setattr(start, "preview_table", fail)
    answer = visitor.get(page)

    assert answer.status_code == 500
    assert "ValueError in test_security.py" in answer.text
    assert "Miller" not in answer.text


def test_the_folder_can_be_read_by_its_owner_only(visitor: Visitor, tmp_path: Path) -> None:
    make_approved_table(visitor, tmp_path)

    others = [path for path in visitor.site.work.folder.rglob("*") if path.is_dir() and os.stat(path).st_mode & 0o077]
    assert os.stat(visitor.site.work.folder).st_mode & 0o777 == 0o700
    assert others == []


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are of another kind")
@pytest.mark.parametrize(("name", "mode"), [("", 0o777), ("tables", 0o755), ("tables", 0o770), ("releases", 0o777)])
def test_a_folder_that_others_can_read_or_change_is_refused(name: str, mode: int, tmp_path: Path) -> None:
    """They could read a private table, or put another one in its place."""
    folder = tmp_path / "work"
    Workspace.open(folder)
    os.chmod(folder / name, mode)

    with pytest.raises(UserError, match="by other accounts"):
        Workspace.open(folder)
    os.chmod(folder / name, 0o700)
    Workspace.open(folder)


def test_links_in_the_folder_lead_nowhere(visitor: Visitor, tmp_path: Path) -> None:
    place = _released(visitor, tmp_path)
    work, outside = visitor.site.work, tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("Miller", "utf-8")
    for kind, name in (("tables", "linked-1"), ("releases", "linked-2")):
        os.symlink(outside, work.folder / kind / name)
        assert visitor.get(f"/{kind}/{name}").status_code == 404
    output = work.release(place.removeprefix("/releases/")).output
    os.symlink(outside / "secret.txt", output / "linked.txt")

    assert visitor.get(f"{place}/files/linked.txt").status_code == 404
    with zipfile.ZipFile(io.BytesIO(visitor.get(f"{place}/folder").content)) as archive:
        assert not [name for name in archive.namelist() if "linked" in name]
        assert [name for name in archive.namelist() if name.endswith("synthetic.csv")]
    shutil.rmtree(work.folder / "tables")
    os.symlink(outside, work.folder / "tables")
    with pytest.raises(UserError, match="is a link"):
        Workspace.open(work.folder)


def _released(visitor: Visitor, folder: Path) -> str:
    """A release; the path of its page."""
    page = make_approved_table(visitor, folder)
    form = {"token": find_token(visitor, page), "epsilon": "1", "recipe": "independent"}
    return str(visitor.submit(f"{page}/release", form).headers["location"])


def test_a_ledger_that_is_given_must_exist(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"missing\.db"):
        Workspace.open(tmp_path / "work", tmp_path / "missing.db")


def test_the_addresses_of_a_loopback_server_are_its_names() -> None:
    assert Address().hosts(8123) == {ADDRESS, "localhost:8123", "[::1]:8123"}
    assert f"http://{ADDRESS}" == ORIGIN
