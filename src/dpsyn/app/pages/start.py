"""Start: choose a private table, look at its first rows, say how its file is written, draft its schema."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

import dpsyn
from dpsyn.app.layout import Site, act, describe_error, show, text_of
from dpsyn.app.security import UPLOAD_PATH, TooLargeError, redirect
from dpsyn.app.workspace import READING_OPTIONS, PrivateTable
from dpsyn.atomic_files import write_text
from dpsyn.demo import people
from dpsyn.diagnose.preview import preview_table
from dpsyn.errors import UserError, describe_os_error

PREVIEW_ROWS = 8

DEMO_ROWS = 20_000
"""As many as ``dpsyn demo`` makes."""

MAX_OFFERED_FILES = 200
"""Files of the folder in which the server was started that are offered by name."""

_TABLE_SUFFIXES = (".csv", ".tsv", ".txt", ".gz", ".parquet", ".arrow", ".feather", ".xlsx", ".ods", ".sav", ".dta")

SEPARATORS = {"": "detected", ",": "comma ,", ";": "semicolon ;", "\t": "tab", "|": "bar |"}
ENCODINGS = ("utf-8", "cp1252", "latin-1", "iso-8859-15", "utf-16", "cp850", "mac-roman")


def start_page(request: Request, site: Site) -> Response:
    """The tables and releases of the workbench, and how to add a table."""
    return site.render(
        request,
        "start.html",
        tables=site.work.tables(),
        releases=site.work.releases(),
        offered=_offered_files(site.started_in),
    )


def _offered_files(folder: Path) -> list[str]:
    """Paths of tables in a folder."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [str(folder / name) for name in names if name.lower().endswith(_TABLE_SUFFIXES)][:MAX_OFFERED_FILES]


def add_table(request: Request, site: Site, form: FormData) -> Response:
    """Add a table whose file stays where it is."""
    return redirect(f"/tables/{site.work.add_table(text_of(form, 'data')).id}")


def add_demo(request: Request, site: Site, form: FormData) -> Response:
    """Add an artificial table, to try the workbench with."""
    table, path = site.work.new_upload("people.csv")
    dpsyn.write_table(people(DEMO_ROWS), path, synthetic=False)
    return redirect(f"/tables/{table.id}")


async def upload(request: Request) -> Response:
    """Write an uploaded file to the work folder, piece by piece; never more than a piece of it is in memory."""
    site: Site = request.app.state.site
    table: PrivateTable | None = None
    try:
        site.access.check_form(request.headers.get("x-form-token", ""))
        table, path = site.work.new_upload(request.query_params.get("name", ""))
        await _store(request.stream(), path)
    except BaseException as error:
        if table is not None:
            shutil.rmtree(table.folder, ignore_errors=True)
        if isinstance(error, OSError):
            return PlainTextResponse(f"The file cannot be stored: {describe_os_error(error)}", 507)
        if isinstance(error, UserError):
            return PlainTextResponse(describe_error(error), 413 if isinstance(error, TooLargeError) else 400)
        if isinstance(error, ClientDisconnect):
            return PlainTextResponse("The upload was not finished.", 400)
        raise
    return PlainTextResponse(f"/tables/{table.id}")


async def _store(chunks: AsyncIterator[bytes], path: Path) -> None:
    """Write a file that has its name only once it is whole: a server that is killed leaves no part of a table."""
    partial = path.with_name(f".{path.name}.part")
    with open(partial, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        async for chunk in chunks:
            await run_in_threadpool(file.write, chunk)
    os.replace(partial, path)


def table_page(request: Request, site: Site) -> Response:
    """The first rows of a table, and how its file is written."""
    table = site.work.table(request.path_params["table"])
    preview, problem = None, ""
    try:
        preview = preview_table(table.data, rows=PREVIEW_ROWS, **table.reading)
    except UserError as error:
        problem = describe_error(error)
    return _render_table(request, site, table, preview=preview, problem=problem)


def _render_table(request: Request, site: Site, table: PrivateTable, status: int = 200, **context: Any) -> Response:
    facts = {"step": "table", "separators": SEPARATORS, "encodings": ENCODINGS, "job": table.job("draft")}
    return site.render(request, "table.html", status, table=table, **{**facts, **context})


def save_reading(request: Request, site: Site, form: FormData) -> Response:
    """Keep how the file is written; the page then shows its rows anew."""
    table = site.work.table(request.path_params["table"])
    _save_options(table, form)
    return redirect(f"/tables/{table.id}?done=saved")


def _save_options(table: PrivateTable, form: FormData) -> None:
    values: dict[str, Any] = {name: str(form.get(name, "")).strip(" ") for name in READING_OPTIONS}
    values["missing"] = [code.strip() for code in values["missing"].split(",") if code.strip()]
    table.save(**values)


def draft_schema(request: Request, site: Site, form: FormData) -> Response:
    """Draft the schema, as ``dpsyn schema draft`` does; an earlier schema can be brought back."""
    table = site.work.table(request.path_params["table"])
    _save_options(table, form)
    table.keep_for_undo()
    options = {**table.reading, "missing": table.reading.get("missing", [])}
    words = [
        f"--{name}={code}" for name, given in options.items() for code in (given if name == "missing" else [given])
    ]
    table.job("draft").start(["schema", "draft", table.data, "-o", str(table.schema_path), "--force", *words])
    return redirect(f"/tables/{table.id}/schema")


def take_schema(request: Request, site: Site, form: FormData) -> Response:
    """Use a schema that exists already, or metadata of another tool, which are JSON."""
    table = site.work.table(request.path_params["table"])
    text = str(form.get("yaml", "")).replace("\r\n", "\n")
    if text.lstrip().startswith("{"):
        metadata = table.folder / "metadata.json"
        write_text(metadata, text, private=True)
        text = dpsyn.import_schema(metadata)
    table.replace_schema(text)
    return redirect(f"/tables/{table.id}/schema?done=replaced")


def remove_table(request: Request, site: Site, form: FormData) -> Response:
    """Remove a table from the workbench."""
    site.work.remove_table(site.work.table(request.path_params["table"]))
    return redirect("/?done=removed")


ROUTES = [
    Route("/", show(start_page)),
    Route("/tables", act(add_table), methods=["POST"]),
    Route("/demo", act(add_demo), methods=["POST"]),
    Route(UPLOAD_PATH, upload, methods=["POST"]),
    Route("/tables/{table}", show(table_page)),
    Route("/tables/{table}/reading", act(save_reading), methods=["POST"]),
    Route("/tables/{table}/draft", act(draft_schema), methods=["POST"]),
    Route("/tables/{table}/take", act(take_schema), methods=["POST"]),
    Route("/tables/{table}/remove", act(remove_table), methods=["POST"]),
]
