"""Run and result: the progress of a release, its interruption and resumption; then what came of it."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import zipfile
from pathlib import Path
from typing import Any

from starlette.background import BackgroundTask
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

import dpsyn
from dpsyn.app.jobs import Job
from dpsyn.app.layout import Site, act, describe_error, show, text_of
from dpsyn.app.pages.budget import release_arguments
from dpsyn.app.security import redirect
from dpsyn.app.workspace import NotFoundError, Release
from dpsyn.errors import UserError
from dpsyn.release_files import SIGNATURES_NAME, find_table
from dpsyn.report.ledger import spent_share
from dpsyn.report.numbers import format_count, format_percent
from dpsyn.report.synopsis import describe_guarantee, forecast_lines, independence_lines

ROW_FORMATS = ("csv", "parquet", "xlsx", "sav", "dta")

REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads allow-modals; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
)
"""Reports are whole pages with a stricter policy of their own; here they are also kept apart from the workbench."""

FILE_WORDS = {
    "synthetic.csv": "the synthetic rows",
    "synopsis.dpsyn": "the noisy counts and the model, for dpsyn and for questions",
    "certificate.txt": "the privacy certificate, for people",
    "certificate.json": "the privacy certificate, for programs",
    "datapackage.json": "what the columns are",
    "README.txt": "what is in the folder",
    "signatures.json": "who signed which files",
    "deployment-card.json": "the facts of the release, for registries",
    "croissant.json": "what the columns are, for search engines of data",
    "verify_release.py": "a program that verifies the folder without DPSyn",
    "choice.txt": "what was chosen among candidates, and what all of them cost, for people",
    "choice.json": "the same for programs",
    "report.html": "how close the rows are to what was released",
}


def release_page(request: Request, site: Site) -> Response:
    """A release: how far it is, or what came of it."""
    release = site.work.release(request.path_params["release"])
    if release.state == "done":
        return _render_result(request, site, release)
    return site.render(request, "run.html", **_describe_run(release))


def _describe_run(release: Release) -> dict[str, Any]:
    account, state = release.find_account(), release.state
    return {
        "step": "release",
        "release": release,
        "state": state,
        "job": release.job,
        "account": account,
        "spent": _describe_spent(account, state),
        "can_resume": state in ("interrupted", "failed") and (release.journal.exists() or state == "interrupted"),
        **_describe_progress(release.job),
    }


def _describe_spent(account: dpsyn.RunAccount | None, state: str) -> str:
    """What a run has spent so far, in words."""
    if account is None:
        return {"given up": "", "failed": "Nothing was reserved or spent."}.get(
            state, "Nothing is reserved or spent yet."
        )
    share = format_percent(spent_share(account))
    measured = format_count(len(account.measurements), "noisy measurement")
    if account.closed:
        return f"{measured} were made; their cost, {share} of the budget, stays spent."
    return f"The whole budget is reserved. {measured} so far, {share} of the budget; that stays spent in any case."


def _describe_progress(job: Job) -> dict[str, Any]:
    progress = job.progress
    return {
        "steps": list(progress.get("steps", [])),
        "current": progress.get("step"),
        "phase": str(progress.get("phase", "")),
        "share": float(progress.get("share", 0.0)),
        "left": str(progress.get("left", "")),
        "notes": [*progress.get("notes", []), *job.notes],
    }


def progress_data(request: Request, site: Site) -> Response:
    """How far a release is, for the script of its page."""
    release = site.work.release(request.path_params["release"])
    account, state = release.find_account(), release.state
    return JSONResponse({"state": state, "spent": _describe_spent(account, state), **_describe_progress(release.job)})


def interrupt(request: Request, site: Site, form: FormData) -> Response:
    """Interrupt a release; what was measured stays spent, and it can be continued."""
    release = site.work.release(request.path_params["release"])
    release.job.interrupt()
    return redirect(f"/releases/{release.id}?done=interrupted")


def resume(request: Request, site: Site, form: FormData) -> Response:
    """Continue a release without spending what it has spent again."""
    release = site.work.release(request.path_params["release"])
    if release.is_complete:
        return redirect(f"/releases/{release.id}")
    release.job.start(release_arguments(release))
    return redirect(f"/releases/{release.id}")


def give_up(request: Request, site: Site, form: FormData) -> Response:
    """Close the run of a release in the ledger; it cannot be continued then."""
    release = site.work.release(request.path_params["release"])
    if release.state == "running":
        raise UserError("the release is running; interrupt it first")
    account = release.find_account()
    if account is not None and not account.closed:
        dpsyn.Ledger(release.ledger).close(account.run)
    release.save(given_up=True, run=release.run)
    release.journal.unlink(missing_ok=True)
    return redirect(f"/releases/{release.id}")


# ── the result ───────────────────────────────────────────────────────────────────────────────────────────────


def _render_result(request: Request, site: Site, release: Release, status: int = 200, **context: Any) -> Response:
    synopsis = site.load_synopsis(release.output)
    files = release.files()
    facts: dict[str, Any] = {
        "step": "release",
        "release": release,
        "guarantee": describe_guarantee(synopsis),
        "lines": [*forecast_lines(synopsis), *independence_lines(synopsis)],
        "certificate": synopsis.certificates[-1].summary() if synopsis.certificates[-1] else "",
        "files": [
            (name, FILE_WORDS.get(name, ""), files[name].stat().st_size)
            for name in sorted(files, key=[*FILE_WORDS, *files].index)
        ],
        "attributes": [each.name for each in synopsis.schema.modeled_attributes],
        "rows": synopsis.rows,
        "comparison": Job(release.folder / "private"),
        "row_jobs": [(job, _describe_rows(job), _row_files(job)) for job in release.row_jobs()],
        "formats": ROW_FORMATS,
        "token": secrets.token_hex(8),
        "has_table": _table_exists(release),
        "signers": _read_signers(release),
        "signing": "",
        "given": {},
    }
    return site.render(request, "result.html", status, **{**facts, **context})


def _read_signers(release: Release) -> list[dpsyn.PublicKey]:
    """Whose signatures the folder has; verifying it checks whether they are valid."""
    try:
        entries = json.loads((release.output / SIGNATURES_NAME).read_bytes())["signatures"]
        return [dpsyn.PublicKey.parse(str(each["public_key"])) for each in entries]
    except (OSError, ValueError, LookupError, TypeError, UserError):
        return []


def _require_passphrase() -> str:
    raise UserError("the key has a passphrase; enter it")


def sign_release(request: Request, site: Site, form: FormData) -> Response:
    """Sign the release folder with the key in a file, as ``dpsyn sign`` does; or make a key first."""
    release = site.work.release(request.path_params["release"])
    path, passphrase = text_of(form, "key"), str(form.get("passphrase", ""))
    try:
        if not release.is_made:
            raise UserError("the release is not complete")
        if not path:
            raise UserError("give the file of the key, such as /home/me/steward.key")
        if "new" in form:
            dpsyn.SigningKey.generate().save(Path(path).expanduser(), passphrase or None)
        key = dpsyn.SigningKey.load(Path(path).expanduser(), passphrase or _require_passphrase)
        unsigned = not (release.output / SIGNATURES_NAME).exists()
        extras = unsigned and "extras" in form
        dpsyn.sign(release.output, key, card=extras, with_verifier=extras)
    except UserError as error:
        return _render_result(request, site, release, 400, signing=describe_error(error), given={"key": path})
    return redirect(f"/releases/{release.id}?done=signed#sign")


def _table_exists(release: Release) -> bool:
    return Path(str(release.facts.get("data", ""))).exists()


def report(request: Request, site: Site) -> Response:
    """The report that may be published."""
    release = site.work.release(request.path_params["release"])
    return _send_report(release.report)


def comparison(request: Request, site: Site) -> Response:
    """The comparison with the real table; private."""
    release = site.work.release(request.path_params["release"])
    return _send_report(release.comparison)


def _send_report(path: Path) -> Response:
    if not path.exists():
        raise NotFoundError("there is no such report yet")
    return FileResponse(path, media_type="text/html", headers={"Content-Security-Policy": REPORT_POLICY})


def compare(request: Request, site: Site, form: FormData) -> Response:
    """Compare the rows with the real table, as ``dpsyn evaluate`` does; private."""
    release = site.work.release(request.path_params["release"])
    if "understood" not in form:
        raise UserError(
            "the comparison reads the private rows without protection; confirm that you will not publish it"
        )
    schema, real = str(release.folder / "schema.yaml"), str(release.facts.get("data", ""))
    words = ["--html", str(release.comparison), "--certificate", str(release.output), "--force"]
    job = Job(release.folder / "private")
    job.start(["evaluate", "-s", schema, *words, "--", real, str(find_table(release.output))])
    return redirect(f"/releases/{release.id}#private")


def download(request: Request, site: Site) -> Response:
    """A file of the release."""
    release = site.work.release(request.path_params["release"])
    path = release.files().get(request.path_params["name"])
    if path is None:
        raise NotFoundError("the release has no such file")
    return _send_file(path)


def _send_file(path: Path, name: str = "", *, background: BackgroundTask | None = None) -> Response:
    return FileResponse(path, media_type="application/octet-stream", filename=name or path.name, background=background)


def download_folder(request: Request, site: Site) -> Response:
    """The whole release folder and the report, as a zip file."""
    release = site.work.release(request.path_params["release"])
    if not release.is_made:
        raise NotFoundError("the release is not complete")
    made = release.folder / f".zip-{secrets.token_hex(8)}"
    with zipfile.ZipFile(made, "x", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in release.output.rglob("*") if not path.is_symlink()):
            archive.write(path, Path(release.id, path.relative_to(release.output)))
        if release.report.exists():
            archive.write(release.report, Path(release.id, "report.html"))
    return _send_file(made, f"{release.id}.zip", background=BackgroundTask(made.unlink, missing_ok=True))


# ── more rows ────────────────────────────────────────────────────────────────────────────────────────────────


def sample_rows(request: Request, site: Site, form: FormData) -> Response:
    """Sample further rows, as ``dpsyn generate`` does; costs no privacy."""
    release = site.work.release(request.path_params["release"])
    token, kind = text_of(form, "token"), text_of(form, "format")
    if not re.fullmatch(r"[0-9a-f]{16}", token) or kind not in ROW_FORMATS:
        raise UserError("this form is not complete; load the page again")
    job = Job(release.folder / "rows" / token)
    if job.state == "none":
        words = [f"{option}={text_of(form, name)}" for name, option in _ROW_OPTIONS.items() if text_of(form, name)]
        words += [f"--where={line.strip()}" for line in str(form.get("where", "")).splitlines() if line.strip()]
        job.start(["generate", str(release.output), "-o", str(job.folder / f"rows.{kind}"), "--force", *words])
    return redirect(f"/releases/{release.id}#rows")


_ROW_OPTIONS = {"rows": "--rows", "seed": "--seed", "replicates": "--replicates"}


def _describe_rows(job: Job) -> str:
    """What a job of further rows was asked for, in the words of its form."""
    given = [word.removeprefix("--").replace("=", " ", 1) for word in job.arguments[4:] if word != "--force"]
    return ", ".join(given) or "as many rows as the table has"


def _row_files(job: Job) -> list[Path]:
    """What a job of further rows has written."""
    return sorted(path for path in job.folder.glob("rows*") if path.is_file()) if job.state == "done" else []


def download_rows(request: Request, site: Site) -> Response:
    """A table of further rows."""
    job = _find_row_job(request, site.work.release(request.path_params["release"]))
    path = next((each for each in _row_files(job) if each.name == request.path_params["name"]), None)
    if path is None:
        raise NotFoundError("there is no such table")
    return _send_file(path)


def stop_rows(request: Request, site: Site, form: FormData) -> Response:
    """Interrupt a job of further rows, perhaps because far too many were asked for."""
    release = site.work.release(request.path_params["release"])
    _find_row_job(request, release).interrupt()
    return redirect(f"/releases/{release.id}#rows")


def _find_row_job(request: Request, release: Release) -> Job:
    job = next((each for each in release.row_jobs() if each.folder.name == request.path_params["token"]), None)
    if job is None:
        raise NotFoundError("there is no such table")
    return job


def jobs_state(request: Request, site: Site) -> Response:
    """Whether anything still runs for a release, for the script of its page."""
    release = site.work.release(request.path_params["release"])
    states = [Job(release.folder / "private").state, *(job.state for job in release.row_jobs())]
    return JSONResponse({"running": states.count("running")})


def remove_release(request: Request, site: Site, form: FormData) -> Response:
    """Remove a release that was given up; its costs stay in the ledger."""
    release = site.work.release(request.path_params["release"])
    if release.state not in ("given up", "failed") or release.journal.exists():
        raise UserError("only a release that was given up can be removed")
    shutil.rmtree(release.folder)
    return redirect("/")


ROUTES = [
    Route("/releases/{release}", show(release_page)),
    Route("/releases/{release}/progress", show(progress_data)),
    Route("/releases/{release}/jobs", show(jobs_state)),
    Route("/releases/{release}/report", show(report)),
    Route("/releases/{release}/comparison", show(comparison)),
    Route("/releases/{release}/files/{name}", show(download)),
    Route("/releases/{release}/folder", show(download_folder)),
    Route("/releases/{release}/rows/{token}/{name}", show(download_rows)),
    Route("/releases/{release}/stop-rows/{token}", act(stop_rows), methods=["POST"]),
    *(
        Route(f"/releases/{{release}}/{name}", act(action), methods=["POST"])
        for name, action in {
            "interrupt": interrupt,
            "resume": resume,
            "give-up": give_up,
            "compare": compare,
            "sample": sample_rows,
            "remove": remove_release,
            "sign": sign_release,
        }.items()
    ),
]
