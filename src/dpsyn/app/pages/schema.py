"""Schema: the draft as an editable table, with remarks, a check against the file, approvals, undo, and its text."""

from __future__ import annotations

import json
import re
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import dpsyn
from dpsyn.app.jobs import Job
from dpsyn.app.layout import Site, act, describe_error, show, text_of
from dpsyn.app.schema_form import KIND_WORDS, fields_of_kinds, read_entry, view_entries
from dpsyn.app.security import redirect
from dpsyn.app.workspace import TABLE_JOBS, PrivateTable
from dpsyn.errors import UserError, shorten

MAX_LIVE_BYTES = 50_000_000
"""The largest file that is checked by itself after every change: a second or two of work."""


def schema_page(request: Request, site: Site) -> Response:
    """The schema of a table."""
    table = site.work.table(request.path_params["table"])
    job = table.job("draft")
    if job.state == "running" or not table.has_schema:
        if job.state == "none":
            return redirect(f"/tables/{table.id}")
        return site.render(request, "drafting.html", table=table, job=job, step="schema")
    return _render(request, site, table)


def _render(request: Request, site: Site, table: PrivateTable, status: int = 200, **context: Any) -> Response:
    draft = table.read_draft()
    entries = view_entries(draft)
    document = draft.document
    facts: dict[str, Any] = {
        "step": "schema",
        "table": table,
        "entries": entries,
        "waiting": [each for each in entries if each.is_open],
        "document": document,
        "text": draft.to_yaml(),
        "digest": table.schema_digest,
        "invalid": _find_mistake(draft),
        "kinds": KIND_WORDS,
        "fields": fields_of_kinds(),
        "identifiers": [each.title for each in entries if each.kind == "identifier"],
        "undo": len(table.undo_files()),
        "reason": str(table.facts.get("reason", "")),
        "check": read_check(table),
        "live": (table.byte_size or MAX_LIVE_BYTES + 1) <= MAX_LIVE_BYTES,
        "opened": request.query_params.get("open", ""),
        "failed": {},
    }
    return site.render(request, "schema.html", status, **{**facts, **context})


def _find_mistake(draft: dpsyn.SchemaDraft) -> str:
    """Why a draft is not a schema yet; empty if it is one."""
    try:
        draft.to_schema()
    except UserError as error:
        return describe_error(error)
    return ""


def _change(request: Request, site: Site, form: FormData, change: Any, done: str) -> Response:
    """Change one entry; a mistake is shown beside it, with what was entered."""
    table = site.work.table(request.path_params["table"])
    title, number = str(form.get("title", "")), text_of(form, "number")
    try:
        table.change_schema(change)
    except UserError as error:
        texts = {name.removeprefix("field."): str(text) for name, text in form.items() if name.startswith("field.")}
        failed = {"title": title, "problem": describe_error(error), "form": dict(form), "texts": texts}
        known = title in (view.title for view in view_entries(table.read_draft()))
        problem = "" if known else failed["problem"]  # of the table as a whole, or of an entry that is gone
        return _render(request, site, table, 400, failed=failed, opened=number, problem=problem)
    return redirect(f"/tables/{table.id}/schema?done={done}&open={number if number.isdigit() else ''}#entry-{number}")


def edit_entry(request: Request, site: Site, form: FormData) -> Response:
    """Set the fields of an attribute."""
    title = str(form.get("title", ""))
    return _change(
        request, site, form, lambda draft: _edit(draft, title, read_entry(text_of(form, "kind"), form)), "saved"
    )


def _edit(draft: dpsyn.SchemaDraft, title: str, fields: dict[str, Any]) -> dpsyn.SchemaDraft:
    """Edit an entry; an approved one that says something else then needs another approval."""
    edited = draft.edit(title, **fields)
    before, after = ({**each.document["attributes"].get(title, {}), "drafted": ""} for each in (draft, edited))
    if before.get("provenance") != "approved":
        return edited
    return draft if before == after else edited.edit(title, provenance="data", because=None)


def approve_entry(request: Request, site: Site, form: FormData) -> Response:
    """Declare that an entry is publicly known, with the reason."""
    table = site.work.table(request.path_params["table"])
    title, reason = str(form.get("title", "")), text_of(form, "because")
    yes = {"as_drafted": "as_drafted" in form, "despite_remarks": "despite_remarks" in form}
    if reason:
        table.save(reason=reason)
    return _change(request, site, form, lambda draft: draft.approve(title, because=reason, **yes), "approved")


def approve_all(request: Request, site: Site, form: FormData) -> Response:
    """Approve all entries without an open remark at once."""
    table = site.work.table(request.path_params["table"])
    reason = text_of(form, "because")
    table.change_schema(lambda d: d.approve(because=reason, everything=True, as_drafted="as_drafted" in form))
    table.save(reason=reason)
    rest = any(view.state == "as read" for view in view_entries(table.read_draft()))
    return redirect(f"/tables/{table.id}/schema?done={'approved-rest' if rest else 'approved'}")


def leave_out(request: Request, site: Site, form: FormData) -> Response:
    """Remove an entry; a column without one is not read."""
    title = str(form.get("title", ""))
    return _change(request, site, form, lambda draft: draft.leave_out(title), "left-out")


def describe_table(request: Request, site: Site, form: FormData) -> Response:
    """Set the dataset's name, its expected size, the neighboring relation, the privacy unit and groups."""
    return _change(request, site, form, lambda draft: draft.describe_table(**_read_description(form)), "saved")


def _read_description(form: FormData) -> dict[str, Any]:
    unit = text_of(form, "unit")
    return {
        "dataset": text_of(form, "dataset") or None,
        "expected_size": _read_count(form, "expected_size"),
        "neighbors": text_of(form, "neighbors") or "add-remove",
        "privacy_unit": {"id": unit, "max_rows": _read_count(form, "max_rows") or 1} if unit else None,
        "groups": [name.strip() for name in text_of(form, "groups").split(",") if name.strip()] or None,
    }


def _read_count(form: FormData, name: str) -> int | None:
    """A number of rows, also with marks between thousands; None if it is left empty."""
    text = text_of(form, name)
    if not _COUNT.fullmatch(text):
        raise UserError(f"{shorten(text, 40)!r} is not a whole number of rows; write it as 50000")
    return int(re.sub("[^0-9]", "", text)) if text else None


_COUNT = re.compile("|[0-9]{1,15}|[0-9]{1,3}([., '\u00a0\u202f][0-9]{3}){1,4}")


def save_text(request: Request, site: Site, form: FormData) -> Response:
    """Replace the whole text; refused if somebody has changed it meanwhile."""
    table = site.work.table(request.path_params["table"])
    text = str(form.get("yaml", "")).replace("\r\n", "\n")
    try:
        if text_of(form, "digest") != table.schema_digest:
            raise UserError(
                "the schema was changed meanwhile, perhaps in another window; copy your text, load the page again"
            )
        given = dpsyn.SchemaDraft(text)
        given.entries()
        kept = given.withdraw_approvals(table.read_draft())
        table.replace_schema(kept.to_yaml())
    except UserError as error:
        failed = {"title": "", "problem": describe_error(error), "form": {"yaml": text}}
        return _render(request, site, table, 400, failed=failed, text=text, opened="yaml")
    done = "saved" if kept.to_yaml() == text else "withdrawn"
    return redirect(f"/tables/{table.id}/schema?done={done}&open=yaml#yaml")


def undo(request: Request, site: Site, form: FormData) -> Response:
    """Take back the last change."""
    table = site.work.table(request.path_params["table"])
    return redirect(f"/tables/{table.id}/schema?done={'undone' if table.undo() else 'nothing'}")


# ── the check against the file ───────────────────────────────────────────────────────────────────────────────


def start_check(request: Request, site: Site, form: FormData) -> Response:
    """Check the table against the schema, as ``dpsyn schema check`` does; private."""
    table = site.work.table(request.path_params["table"])
    table.job("check").start(["schema", "check", str(table.schema_path), table.data, "--json"])
    table.save(checked=table.schema_digest)
    return redirect(f"/tables/{table.id}/schema")


def read_check(table: PrivateTable) -> dict[str, Any]:
    """The last check: its state, whether it is of the schema as it is now, and its figures by attribute; private."""
    job = table.job("check")
    state = job.state
    fresh = state != "none" and table.facts.get("checked") == table.schema_digest
    result: dict[str, Any] = {"state": state, "fresh": fresh, "figures": {}, "error": job.error}
    figures = _read_figures(job)
    if state in ("done", "failed") and figures:
        by_name = {entry["name"]: entry for entry in (*figures["attributes"], *figures["open"])}
        misfits = [entry["name"] for entry in figures["attributes"] if entry["misplaced"]]
        cells = _describe_cells(figures)
        result |= {"figures": figures, "by_name": by_name, "misfits": misfits, "cells": cells, "error": ""}
    return result


def _read_figures(job: Job) -> dict[str, Any]:
    try:
        figures = json.loads((job.folder / "output.txt").read_bytes())
    except (OSError, ValueError):
        return {}
    return figures if isinstance(figures, dict) else {}


def _describe_cells(figures: dict[str, Any]) -> dict[str, str]:
    """What becomes of cells that are not values of their attribute, in words, by attribute; private."""
    words = {}
    for entry in figures["attributes"]:
        parts = [f"{entry[key]:,} {name}" for key, name in _CELL_WORDS.items() if entry[key]]
        if parts:
            words[entry["name"]] = f"{', '.join(parts)} of {figures['rows']:,} cells"
    return words


_CELL_WORDS = {
    "empty": "empty",
    "unreadable": "not listed or unreadable",
    "below": "below the range",
    "above": "above the range",
}


def check_state(request: Request, site: Site) -> Response:
    """Which jobs of a table still run, for the scripts of its pages."""
    table = site.work.table(request.path_params["table"])
    return JSONResponse({name: table.job(name).state for name in TABLE_JOBS})


ROUTES = [
    Route("/tables/{table}/schema", show(schema_page)),
    Route("/tables/{table}/state", show(check_state)),
    *(
        Route(f"/tables/{{table}}/{name}", act(action), methods=["POST"])
        for name, action in {
            "edit": edit_entry,
            "approve": approve_entry,
            "approve-all": approve_all,
            "leave-out": leave_out,
            "describe": describe_table,
            "yaml": save_text,
            "undo": undo,
            "check": start_check,
        }.items()
    ),
]
