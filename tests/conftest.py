"""What every test run does: nothing is skipped in silence, and slow tests wait until they are asked for.

- ``DPSYN_FAIL_ON_SKIP=1`` turns a skipped test, or a skipped module, into a failure that shows the reason.
- Tests marked ``chromium``, ``java`` or ``initdb`` (PostgreSQL's) are skipped where the program is not on the path.
- Tests marked ``check``, slow and rarely breaking, are deselected unless ``--check`` or ``-m check`` asks for them;
  ``make check`` does. Tests that need a program are marked ``check`` by themselves.
- Tests marked ``slow`` are deselected unless ``--slow`` or ``-m slow`` asks for them.
- A test that fails is run again, with new fixtures, and fails if it fails twice. Privacy noise cannot be seeded, so
  among thousands of tests of it some fail by chance; a test with a false alarm in a thousand runs has one in a million
  pairs of runs. The summary lists what passed only the second time: a test that is often there needs a better
  threshold, and one without noise is broken.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings

from dpsyn.accounting.head_store import STATE_FOLDER_VARIABLE

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)  # a change is judged by the same examples twice
settings.register_profile(  # for bench.mutants: a failure is enough, its simplest example takes long to find
    "unshrunk", settings.get_profile("ci"), phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("ci" if os.environ.get("CI") else "here")

pytest_plugins = ["pytester"]

MEMORY = Path("/dev/shm")
"""A disk in memory, where Linux has one: ledgers and journals wait for a disk at every step, and never for memory."""

if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))  # where folders of tmp_path are made

PROGRAMS = {"chromium": "a Chromium browser", "java": "a Java runtime", "initdb": "a PostgreSQL server"}
"""Markers that need the program of the same name."""

ASKED_FOR = {"slow": {"slow"}, "check": {"check", *PROGRAMS}}
"""Markers of tests that run only if they are asked for: by the option of that name, or by -m and one of these names."""

LONGEST = "test_documents.py"
"""It runs every command of the README."""

SECOND_RUN = "passed the second time, after"
"""The user property of a report on a test that failed once, before the reason."""

SEARCHED = os.pathsep.join([os.environ.get("PATH", ""), *sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)])
"""Where programs are looked for: the path, and where Debian puts PostgreSQL's server, which is not on the path."""


@pytest.fixture(autouse=True, scope="session")
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ledgers of tests are remembered in a folder of the tests, also by the processes that they start."""
    folder = tmp_path_factory.mktemp("state")
    os.environ[STATE_FOLDER_VARIABLE] = str(folder)
    return folder


def pytest_addoption(parser: pytest.Parser) -> None:
    for marker in ASKED_FOR:
        parser.addoption(f"--{marker}", action="store_true", help=f"run the tests marked {marker} as well")


@pytest.hookimpl(tryfirst=True)  # before pytest looks for the markers that -m asks for
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if any(item.get_closest_marker(program) for program in PROGRAMS):
            item.add_marker("check")
    for program, words in PROGRAMS.items():
        if shutil.which(program, path=SEARCHED) is None:
            reason = f"needs {words}: there is no {program} on the path"
            for item in items:
                if item.get_closest_marker(program):
                    item.add_marker(pytest.mark.skip(reason=reason))
    items.sort(key=lambda item: item.path.name != LONGEST)  # first, so that no worker waits for it in the end
    asked = set(re.findall(r"(?<!not )\b\w+", config.getoption("markexpr")))
    for marker, names in ASKED_FOR.items():
        if not config.getoption(f"--{marker}") and not asked & names:
            _deselect(marker, config, items)


def _deselect(marker: str, config: pytest.Config, items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker(marker)]
    if marked:
        config.hook.pytest_deselected(items=marked)
        items[:] = [item for item in items if not item.get_closest_marker(marker)]


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    failed = [report for report in reports if report.failed]
    if failed and not item.config.getoption("usepdb"):
        item.session._setupstate.teardown_exact(None)  # fixtures that tests share hold the same noise
        if isinstance(item, pytest.Function):
            item._initrequest()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        for report in reports:
            report.user_properties.append((SECOND_RUN, str(failed[0].longrepr).strip().splitlines()[-1]))
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in terminalreporter.getreports("passed"):
        for reason in (value for name, value in report.user_properties if name == SECOND_RUN):
            terminalreporter.write_line(f"SECOND RUN {report.nodeid}: {SECOND_RUN} {reason}", yellow=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and _skips_fail():
        report.outcome, report.longrepr = "failed", _complaint(report.longrepr)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped and _skips_fail():
        report.outcome, report.longrepr = "failed", _complaint(report.longrepr)
    return report


def _skips_fail() -> bool:
    return os.environ.get("DPSYN_FAIL_ON_SKIP") == "1"


def _complaint(skip: object) -> str:
    reason = skip[-1] if isinstance(skip, tuple) else skip
    return f"skipped, but DPSYN_FAIL_ON_SKIP=1 lets no test be skipped: {reason}"
