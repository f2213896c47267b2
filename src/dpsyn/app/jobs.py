"""Jobs: commands of ``dpsyn`` in processes of their own, whose state is in a folder.

A job outlives the server that started it: all that is known of it is read from its folder, so a server that was killed
and started again finds every job as it is. The process holds a lock on a file while it runs, which the operating
system releases however it ends.

    job.json        the arguments of the command
    worker.lock     locked while the process runs; its content is the number of the process
    progress.json   the current step, see ``PROGRESS_FILE``
    output.txt      what the command printed
    messages.txt    its notes and errors
    outcome.json    its exit code, once it has ended by itself
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dpsyn.app.field_names import name_fields
from dpsyn.atomic_files import exclusive_edit, lock_while_open, write_text
from dpsyn.errors import UserError

PROGRESS_FILE = "progress.json"

INTERRUPTED = 130
"""The exit code of a command that was interrupted."""

MAX_START_SECONDS = 30.0
"""The longest time that a process may take until it has locked its file."""

MAX_MESSAGE_BYTES = 100_000
"""How much is read of what a command printed about itself."""

JobState = Literal["none", "running", "done", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class Job:
    """A command in a folder; see the module's docstring."""

    folder: Path

    # ── what is known of it ──────────────────────────────────────────────────────────────────────────────────

    @property
    def arguments(self) -> list[str]:
        """The arguments of the command; none if it was never started."""
        words = _read_json(self.folder / "job.json").get("arguments", [])
        return [str(word) for word in words]

    @property
    def command_line(self) -> str:
        """What one would type on a terminal."""
        return shlex.join(["dpsyn", *self.arguments])

    @property
    def started_at(self) -> float:
        """When it was started last, in seconds since 1970; 0 if it never was."""
        return float(_read_json(self.folder / "job.json").get("started", 0.0))

    @property
    def state(self) -> JobState:
        """Whether it runs, has succeeded, has failed, or was interrupted in whatever way."""
        if not (self.folder / "job.json").exists():
            return "none"
        if self._is_locked():
            return "running"
        code = _read_json(self.folder / "outcome.json").get("code")
        if code is None:
            is_starting = not self._process and time.time() - self.started_at < MAX_START_SECONDS
            return "running" if is_starting else "interrupted"
        return "done" if code == 0 else "interrupted" if code == INTERRUPTED else "failed"

    @property
    def progress(self) -> dict[str, Any]:
        """The current step; see ``output.PROGRESS_FILE_VARIABLE``."""
        return _read_json(self.folder / PROGRESS_FILE)

    @property
    def output(self) -> str:
        """What the command printed."""
        return _read_start(self.folder / "output.txt")

    @property
    def error(self) -> str:
        """The error with which the command ended, in the words of the pages; empty if it did not."""
        text = _read_start(self.folder / "messages.txt")
        errors = re.split(r"^(?:dpsyn: |Error: )", text, flags=re.MULTILINE)
        return name_fields(errors[-1].strip()) if len(errors) > 1 else ""

    @property
    def notes(self) -> list[str]:
        """The notes that the command printed, for the person who started it."""
        text = _read_start(self.folder / "messages.txt")
        return [name_fields(line.removeprefix("Note: ")) for line in text.splitlines() if line.startswith("Note: ")]

    # ── start, interrupt ─────────────────────────────────────────────────────────────────────────────────────

    def start(self, arguments: Sequence[str]) -> None:
        """Start the command, unless it runs already; two requests at the same moment start it once."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with exclusive_edit(self.folder / "job.json"):
            if self.state == "running":
                return
            for name in ("outcome.json", PROGRESS_FILE, "worker.lock"):
                (self.folder / name).unlink(missing_ok=True)
            job = {"arguments": list(arguments), "started": time.time()}
            write_text(self.folder / "job.json", json.dumps(job), private=True)
            process = _spawn(self.folder)
        threading.Thread(target=process.wait, daemon=True).start()  # so that it does not stay as a zombie

    def interrupt(self) -> None:
        """Interrupt the command as Ctrl-C does; what its journal holds stays."""
        if self._is_locked() and (process := self._process):
            os.kill(process, signal.SIGTERM)

    @property
    def _process(self) -> int | None:
        text = _read_start(self.folder / "worker.lock")
        return int(text) if text.isdigit() else None

    def _is_locked(self) -> bool:
        try:
            with open(self.folder / "worker.lock", "r+b") as file:
                return not lock_while_open(file)
        except OSError:
            return False


def work(folder: Path, run: Callable[[list[str]], int]) -> int:
    """Run the command of a job in this process: ``run`` gets its arguments and returns its exit code."""
    arguments = Job(folder).arguments
    if not arguments:
        raise UserError(f"{folder} is not the folder of a job")
    with open(folder / "worker.lock", "a+b") as lock:
        if not _lock_soon(lock):
            raise UserError(f"the job in {folder} runs already")
        lock.truncate(0)
        lock.write(str(os.getpid()).encode())
        lock.flush()
        code = run(arguments)
        write_text(folder / "outcome.json", json.dumps({"code": code}), private=True)
    return code


def _lock_soon(lock: Any) -> bool:
    """Lock a file; somebody who looks whether it is locked holds it for a moment."""
    for _ in range(100):
        if lock_while_open(lock):
            return True
        time.sleep(0.01)
    return False


def _spawn(folder: Path) -> subprocess.Popen[bytes]:
    """The process of a job: in a session of its own, so that it does not end with the server."""
    environment = {**os.environ, "DPSYN_PROGRESS_FILE": str(folder / PROGRESS_FILE), "PYTHONUTF8": "1"}
    words = [sys.executable, "-m", "dpsyn", "app", "--work", str(folder)]
    with open(folder / "output.txt", "wb") as output, open(folder / "messages.txt", "wb") as messages:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=messages,
            env=environment,
            start_new_session=True,
        )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _read_start(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(MAX_MESSAGE_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
