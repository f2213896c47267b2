"""The folder of the workbench: private tables with their schemas, releases, and a ledger.

    ledger.db                     unless another ledger is given
    tables/NAME-ID/               private: only the owner of the account can read it
        table.json                where the rows are, and how the file is written
        data/                     the file, if it was uploaded
        schema.yaml, undo/        the schema, and what it was before each change
        draft/ check/ forecast/   jobs
    releases/NAME-ID/             a release and its job
        release.json              what was asked for
        schema.yaml, plan.yaml    copies, so that a later change of the schema changes no release
        release/ report.html      what may be published
        release.journal           while it is not complete
        rows/ID/                  further rows, each a job
        ask/                      the page for publication that answers questions, and its job
        private/                  the comparison with the real table

A name that comes from a browser is accepted only if it is the name of an entry.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dpsyn
from dpsyn import release_files
from dpsyn.app.jobs import Job
from dpsyn.atomic_files import exclusive_edit, write_text
from dpsyn.errors import UserError, describe_os_error

MAX_UNDO = 100
"""Changes of a schema that can be undone."""

MAX_NAME_LENGTH = 80

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,120}")

_TOKEN = re.compile(r"[0-9a-f]{16}")
"""A random word in a form, which what the form starts is named by."""

TABLE_JOBS = ("draft", "check", "forecast")

READING_OPTIONS = ("encoding", "separator", "decimal", "missing")
"""How a text file is written, as ``dpsyn schema draft`` takes it."""


class NotFoundError(UserError):
    """There is no such table, release or file."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folder of everything, and the ledger of all releases."""

    folder: Path
    ledger: Path

    @classmethod
    def open(cls, folder: Path, ledger: Path | None = None) -> Workspace:
        """Open a folder, or begin one that only the owner of the account can read.

        A ledger that is given must exist; the folder's own is begun with the folder.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for name in ("tables", "releases"):
                (folder / name).mkdir(exist_ok=True, mode=0o700)
        except OSError as error:
            raise UserError(f"the folder {folder} cannot be used: {describe_os_error(error)}") from None
        _refuse_shared(folder)
        own = folder / "ledger.db"
        if ledger is None and not own.exists():
            dpsyn.Ledger.create(own)
        chosen = (ledger or own).absolute()
        dpsyn.Ledger(chosen).datasets()
        return cls(folder.absolute(), chosen)

    # ── tables ───────────────────────────────────────────────────────────────────────────────────────────────

    def tables(self) -> list[PrivateTable]:
        """All tables, the latest first."""
        return sorted((PrivateTable(path) for path in _folders(self.folder / "tables")), key=lambda each: -each.created)

    def table(self, name: str) -> PrivateTable:
        """The table of this name."""
        return PrivateTable(_find(self.folder / "tables", name, "table"))

    def add_table(self, data: str, title: str = "") -> PrivateTable:
        """A table whose file stays where it is."""
        try:
            path = Path(data).expanduser()
            exists = bool(data.strip()) and path.exists()
        except (OSError, RuntimeError):  # too long, not readable, or of a person who is not known here
            exists = False
        if not exists:
            raise UserError(f"there is no file {data!r}; give its whole path, such as /home/me/people.csv")
        return self._new_table(title or path.name, str(path.absolute()))

    def new_upload(self, file_name: str) -> tuple[PrivateTable, Path]:
        """A table whose file is still to be written, at the path that is returned."""
        name = clean_name(Path(file_name.replace("\\", "/")).name)
        table = self._new_table(name, "")
        (table.folder / "data").mkdir(mode=0o700)
        path = table.folder / "data" / name
        table.save(data=str(path))
        return table, path

    def _new_table(self, title: str, data: str) -> PrivateTable:
        folder = self.folder / "tables" / _new_id(title)
        folder.mkdir(mode=0o700)
        table = PrivateTable(folder)
        table.save(title=title, data=data, created=datetime.now(tz=UTC).timestamp())
        return table

    def remove_table(self, table: PrivateTable) -> None:
        """Remove what is kept of a table, an uploaded file included; releases stay."""
        unfinished = [each.id for each in self.releases() if each.table_id == table.id and not each.is_complete]
        if unfinished:
            raise UserError("a release of this table is not complete; finish it or give it up first")
        if any(table.job(name).state == "running" for name in TABLE_JOBS):
            raise UserError("the table is being read; wait until that is done")
        shutil.rmtree(table.folder)

    # ── releases ─────────────────────────────────────────────────────────────────────────────────────────────

    def releases(self) -> list[Release]:
        """All releases, the latest first."""
        found = (Release(path, self.ledger) for path in _folders(self.folder / "releases"))
        return sorted(found, key=lambda each: -each.created)

    def release(self, name: str) -> Release:
        """The release of this name."""
        return Release(_find(self.folder / "releases", name, "release"), self.ledger)

    def find_started(self, token: str) -> Release | None:
        """The release that a form has started; None if it has not."""
        found = (path for path in _folders(self.folder / "releases") if path.name.endswith(f"-{token}"))
        path = next(found, None) if _TOKEN.fullmatch(token) else None
        return Release(path, self.ledger) if path else None

    def new_release(
        self, title: str, token: str, settings: Mapping[str, Any], files: Mapping[str, str]
    ) -> tuple[Release, bool]:
        """The release that a form started, and whether it is new: a form that is sent twice starts one release.

        Its folder appears with everything that its command needs, so that a release is never half begun.
        """
        if not _TOKEN.fullmatch(token):
            raise UserError("this form is not complete; load the page again")
        with exclusive_edit(self.folder / "releases" / token):  # two requests of one form
            if started := self.find_started(token):
                return started, False
            folder = self.folder / "releases" / f"{clean_name(title).partition('.')[0][:40] or 'table'}-{token}"
            begun = self.folder / "releases" / f".{token}"
            shutil.rmtree(begun, ignore_errors=True)  # of a server that was killed
            begun.mkdir(mode=0o700)
            for name, text in files.items():
                write_text(begun / name, text, private=True)
            Release(begun, self.ledger).save(**settings, title=title, created=datetime.now(tz=UTC).timestamp())
            begun.rename(folder)
        return Release(folder, self.ledger), True


class _Entry:
    """A folder with a JSON file about it."""

    file_name = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            facts = json.loads((folder / self.file_name).read_bytes())
        except (OSError, ValueError):
            facts = {}
        self.facts: dict[str, Any] = facts if isinstance(facts, dict) else {}

    @property
    def id(self) -> str:
        """Its name in addresses."""
        return self.folder.name

    @property
    def title(self) -> str:
        """Its name for people."""
        return str(self.facts.get("title") or self.id)

    @property
    def created(self) -> float:
        """When it was made, in seconds since 1970."""
        return float(self.facts.get("created", 0.0))

    @property
    def created_text(self) -> str:
        """When it was made, in local time."""
        return f"{datetime.fromtimestamp(self.created).astimezone():%Y-%m-%d %H:%M}"

    def save(self, **facts: Any) -> None:
        """Keep facts about it."""
        self.facts |= facts
        write_text(self.folder / self.file_name, json.dumps(self.facts), private=True)


class PrivateTable(_Entry):
    """A private table and its schema."""

    file_name = "table.json"

    @property
    def data(self) -> str:
        """Where its rows are."""
        return str(self.facts.get("data", ""))

    @property
    def is_uploaded(self) -> bool:
        """Whether the file is a copy in the workbench's folder."""
        return Path(self.data).parent == self.folder / "data"

    @property
    def byte_size(self) -> int | None:
        """The size of its file; None if that is not known."""
        try:
            return os.stat(self.data).st_size if os.path.isfile(self.data) else None
        except OSError:
            return None

    @property
    def reading(self) -> dict[str, Any]:
        """How its file is written, as far as a person has said so."""
        return {name: value for name in READING_OPTIONS if (value := self.facts.get(name))}

    @property
    def schema_path(self) -> Path:
        """The file of its schema."""
        return self.folder / "schema.yaml"

    @property
    def has_schema(self) -> bool:
        """Whether there is a schema."""
        return self.schema_path.exists()

    def job(self, name: str) -> Job:
        """One of its jobs."""
        return Job(self.folder / name)

    def read_draft(self) -> dpsyn.SchemaDraft:
        """Its schema as it is now."""
        if not self.has_schema:
            raise NotFoundError("this table has no schema yet; draft one first")
        return dpsyn.SchemaDraft.load(self.schema_path)

    @property
    def schema_digest(self) -> str:
        """A short hash of its schema, by which a result of an earlier one is recognized."""
        return hashlib.sha256(self.schema_path.read_bytes()).hexdigest()[:16] if self.has_schema else ""

    # ── changes of the schema ────────────────────────────────────────────────────────────────────────────────

    def change_schema(self, change: Callable[[dpsyn.SchemaDraft], dpsyn.SchemaDraft]) -> None:
        """Change the schema, and keep what it was."""
        before = self.schema_path.read_text("utf-8")
        dpsyn.SchemaDraft.update(self.schema_path, change)
        if self.schema_path.read_text("utf-8") != before:
            self._keep_for_undo(before)

    def replace_schema(self, text: str) -> None:
        """Replace the schema, and keep what it was."""
        dpsyn.SchemaDraft(text).entries()
        if self.has_schema:
            self._keep_for_undo(self.schema_path.read_text("utf-8"))
        write_text(self.schema_path, text, private=True)

    def undo(self) -> bool:
        """Take back the last change; whether there was one."""
        kept = self.undo_files()
        if not kept:
            return False
        write_text(self.schema_path, kept[-1].read_text("utf-8"), private=True)
        kept[-1].unlink()
        return True

    def undo_files(self) -> list[Path]:
        """What the schema was before each change, the latest last."""
        return sorted((self.folder / "undo").glob("*.yaml"))

    def keep_for_undo(self) -> None:
        """Keep the schema, before a command replaces it."""
        if self.has_schema:
            self._keep_for_undo(self.schema_path.read_text("utf-8"))

    def _keep_for_undo(self, text: str) -> None:
        folder = self.folder / "undo"
        folder.mkdir(exist_ok=True, mode=0o700)
        kept = self.undo_files()
        number = int(kept[-1].stem) + 1 if kept else 1
        write_text(folder / f"{number:08}.yaml", text, private=True)
        for old in kept[: max(0, len(kept) + 1 - MAX_UNDO)]:
            old.unlink()


class Release(_Entry):
    """A release: asked for, running, interrupted or complete."""

    file_name = "release.json"

    def __init__(self, folder: Path, ledger: Path) -> None:
        super().__init__(folder)
        self.ledger = Path(self.facts.get("ledger", ledger))

    @property
    def table_id(self) -> str:
        """The table that it is a release of, which may be removed."""
        return str(self.facts.get("table", ""))

    @property
    def job(self) -> Job:
        """The job that makes it."""
        return Job(self.folder)

    @property
    def output(self) -> Path:
        """The release folder."""
        return self.folder / "release"

    @property
    def journal(self) -> Path:
        """The journal of its run."""
        return self.folder / "release.journal"

    @property
    def report(self) -> Path:
        """The report that may be published."""
        return self.folder / "report.html"

    @property
    def questions(self) -> Path:
        """The page for publication that answers questions."""
        return self.folder / "ask" / "ask.html"

    @property
    def export_job(self) -> Job:
        """The job that makes the page for publication."""
        return Job(self.folder / "ask")

    @property
    def comparison(self) -> Path:
        """The comparison with the real table; private."""
        return self.folder / "private" / "comparison.html"

    @property
    def is_complete(self) -> bool:
        """Whether there is nothing left to do for it, also because it was given up."""
        return self.is_made or bool(self.facts.get("given_up"))

    @property
    def is_made(self) -> bool:
        """Whether all that it consists of is written."""
        return release_files.is_release(self.output) and not self.journal.exists()

    @property
    def state(self) -> str:
        """``running``, ``done``, ``failed``, ``interrupted`` or ``given up``."""
        if self.facts.get("given_up"):
            return "given up"
        state = self.job.state
        if state in ("none", "done"):  # before its command was started, or before all of it was written
            return "done" if self.is_made else "interrupted"
        return "done" if self.is_made and state != "running" else state

    @property
    def run(self) -> str:
        """The name of its run in the ledger; empty before it has begun."""
        return release_files.find_run(self.journal) or str(self.facts.get("run", "")) or self._certified_run()

    def _certified_run(self) -> str:
        """The run that the certificate of a complete release names."""
        if not self.is_made:
            return ""
        try:
            certificate = json.loads((self.output / release_files.CERTIFICATE_JSON_NAME).read_bytes())
            return str(certificate["releases"][-1]["certificate"]["run"])
        except (OSError, ValueError, LookupError, TypeError):
            return ""

    def find_account(self) -> dpsyn.RunAccount | None:
        """What the ledger knows of its run."""
        try:
            return dpsyn.Ledger(self.ledger).find_run(self.run)[1] if self.run else None
        except dpsyn.LedgerError:
            return None

    def row_jobs(self) -> list[Job]:
        """The jobs that sampled further rows, the latest first."""
        return sorted((Job(path) for path in _folders(self.folder / "rows")), key=lambda job: -job.started_at)

    def files(self) -> dict[str, Path]:
        """What can be downloaded, by its name: the files of the release folder and the report."""
        found = (
            {path.name: path for path in sorted(self.output.glob("*")) if path.is_file() and not path.is_symlink()}
            if self.is_made
            else {}
        )
        return {**found, **({"report.html": self.report} if self.report.exists() else {})}


def clean_name(name: str) -> str:
    """A name of a file that is a name everywhere: letters, digits, dots, lines; never hidden, never a path."""
    cleaned = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).lstrip(".-_")[-MAX_NAME_LENGTH:].lstrip(".-_")
    return cleaned or "table"


def _refuse_shared(folder: Path) -> None:
    """Refuse a folder whose entries other accounts could read, exchange or add."""
    if sys.platform == "win32":
        return
    top = folder.stat()
    shared = folder if top.st_mode & stat.S_IWOTH and not top.st_mode & stat.S_ISVTX else None
    for name in ("tables", "releases"):
        state = (folder / name).lstat()
        if not stat.S_ISDIR(state.st_mode) or state.st_mode & 0o077 or state.st_uid != os.getuid():
            shared = folder / name
    if shared is not None:
        raise UserError(
            f"{shared} can be read or changed by other accounts, or is a link; give a folder of its own, or make it "
            "private with chmod 700"
        )


def _new_id(title: str) -> str:
    return f"{clean_name(title).partition('.')[0][:40] or 'table'}-{secrets.token_hex(4)}"


def _folders(parent: Path) -> list[Path]:
    """The entries of a folder; those that are being removed or written are hidden."""
    return [path for path in parent.glob("*") if _ID.fullmatch(path.name) and _is_own(path)] if parent.is_dir() else []


def _is_own(path: Path) -> bool:
    """Whether it is a folder, and no link to one elsewhere."""
    return path.is_dir() and not path.is_symlink()


def _find(parent: Path, name: str, kind: str) -> Path:
    if not _ID.fullmatch(name) or not _is_own(parent / name):
        raise NotFoundError(f"there is no such {kind}; it may have been removed")
    return parent / name
