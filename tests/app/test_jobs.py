"""Jobs are commands in processes of their own, which outlive the server."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from dpsyn.app import jobs
from dpsyn.app.jobs import Job, work
from dpsyn.cli.main import run
from dpsyn.errors import UserError
from tests.app.workbench import work_here

PATIENCE = 60.0


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_job_runs_its_command_and_keeps_what_it_printed(tmp_path: Path) -> None:
    job = Job(tmp_path / "job")
    states = [job.state]
    job.start(["recipes", "--json"])
    states.append(job.state)
    wait_until(lambda: job.state != "running")

    assert ([*states, job.state], job.error) == (["none", "running", "done"], "")
    assert "privsyn" in job.output
    assert job.command_line == "dpsyn recipes --json"


@pytest.mark.parametrize(
    ("arguments", "state", "message"),
    [
        (["inspect", "nothing.dpsyn"], "failed", "nothing.dpsyn"),
        (["no-such-command"], "failed", "No such command"),
    ],
)
def test_a_mistake_is_kept_as_a_message(tmp_path: Path, arguments: list[str], state: str, message: str) -> None:
    job = Job(tmp_path)
    (tmp_path / "job.json").write_text(json.dumps({"arguments": arguments, "started": time.time()}))
    work_here(tmp_path)

    assert job.state == state
    assert message in job.error


@pytest.mark.check
def test_a_job_that_is_killed_is_interrupted_and_can_be_started_again(tmp_path: Path) -> None:
    schema = tmp_path / "schema.yaml"
    schema.write_text("dpsyn_schema: 1\nattributes:\n  age: {kind: integer, low: 0, high: 99}\n")
    job = Job(tmp_path / "job")
    arguments = ["simulate", str(schema), "--rows", "400000000", "-o", str(tmp_path / "large.csv")]
    job.start(arguments)
    wait_until(lambda: job._process is not None)
    first = job._process
    job.start(arguments)  # it runs already
    assert job._process == first
    assert first is not None
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: job.state != "running")
    assert job.state == "interrupted"

    job.start(arguments)
    wait_until(lambda: job._process not in (None, first))
    job.interrupt()
    wait_until(lambda: job.state != "running")
    assert job.state == "interrupted"
    assert not (tmp_path / "large.csv").exists()


def test_two_workers_do_not_run_one_job(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(json.dumps({"arguments": ["x"], "started": time.time()}))

    def begin_again(_: list[str]) -> int:
        assert Job(tmp_path).state == "running"
        with pytest.raises(UserError, match="runs already"):
            work(tmp_path, lambda _: 0)
        return 0

    assert work(tmp_path, begin_again) == 0
    assert Job(tmp_path).state == "done"


def test_two_requests_at_the_same_moment_start_one_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, meeting, started = Job(tmp_path), threading.Barrier(2), []
    look = Job.state.fget
    assert look is not None

    def look_together(self: Job) -> str:
        state = look(self)
        with contextlib.suppress(threading.BrokenBarrierError):
            meeting.wait(0.3)  # two that look at once would both start it
        return str(state)

    monkeypatch.setattr(Job, "state", property(look_together))
    monkeypatch.setattr(jobs, "_spawn", lambda folder: started.append(folder) or SimpleNamespace(wait=int))
    requests = [threading.Thread(target=job.start, args=(["recipes"],)) for _ in range(2)]
    for request in requests:
        request.start()
    for request in requests:
        request.join()

    assert started == [tmp_path]


def test_a_folder_without_a_job_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["app", "--work", str(tmp_path)]) == 2
    assert "is not the folder of a job" in capfd.readouterr().err


def test_a_process_that_never_came_up_is_interrupted_after_a_while(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(json.dumps({"arguments": ["x"], "started": time.time() - 5}))
    assert Job(tmp_path).state == "running"
    (tmp_path / "job.json").write_text(json.dumps({"arguments": ["x"], "started": time.time() - 60}))
    assert Job(tmp_path).state == "interrupted"
