"""What does a crash cost? Kills releases, fills their disks, hangs up on them, and resumes them.

    python -m bench.torture [--kills 200] [--disks 40] [--hangups 20] [--accuracy 10] [--seed 1]

Each release is the command line itself, in a child process, on a small made-up table. It is stopped once or more, and
then resumed until it ends:

- **kills**: SIGKILL, half of them at a random time, half at a point between the noise and the use of an answer: before
  the answer is in the journal, when it is sealed there, inside the ledger's transaction, when that is committed;
- **disks**: a small tmpfs with too little room for the ledger, the journal, or an output, each alone;
- **hangups**: SIGHUP, as from a closed terminal;
- **order**: a trace of system calls (strace) shows that a power failure at any moment leaves an answer or its result on
  disk: the journal is synced before the ledger commits, every output is synced before the journal is removed.

After each stop the ledger must be intact and the output whole or absent. At the end the release must be complete, every
measurement must have been charged once, what was stored must be in the result, and the ledger must agree with the
certificate. Any other outcome is listed, and the exit code is 1. ``--accuracy`` then measures what a crash between
charge and use costs in accuracy, and what a damaged journal costs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import dpsyn
from bench.measuring import provenance
from dpsyn.accounting import Ledger, hash_chain
from dpsyn.cli import main as command_line
from dpsyn.demo import people, people_schema
from dpsyn.private.append_log import AppendLog

ROWS = 1_000
MAX_SECONDS = 4.0
"""The latest moment of a kill at a random time; a release takes about two seconds."""

WINDOW = ("before the journal", "sealed in the journal", "inside the transaction", "after the commit")
"""The points between the noise and the use of an answer at which a release is killed."""

KINDS = ("file", "folder", "synopsis", "no ledger")
TMPFS_KILOBYTES = 600


@dataclass(slots=True)
class Case:
    """One release that is stopped and resumed.

    Attributes:
        folder: where everything is.
        kind: what it writes, and whether it keeps a ledger.
        output: the output, if it is not the usual one.
        ledger: the ledger, if it is not the usual one.
        extra: a second output.
    """

    folder: Path
    kind: str = "file"
    output: Path | None = None
    ledger: Path | None = None
    extra: Path | None = None
    faults: list[str] = field(default_factory=list, init=False)

    @property
    def target(self) -> Path:
        """The output of the command."""
        name = {"folder": "release", "synopsis": "s.dpsyn"}.get(self.kind, "rows.csv")
        return self.output or self.folder / name

    @property
    def journal(self) -> Path:
        """The journal of the command."""
        return Path(f"{self.target}.journal")

    @property
    def book(self) -> Ledger | None:
        """The ledger of the release."""
        return None if self.kind == "no ledger" else Ledger(self.ledger or self.folder / "ledger.db")

    @property
    def synopsis(self) -> Path:
        """Where the numbers of the release are when it is complete."""
        return {"folder": self.target / "synopsis.dpsyn", "synopsis": self.target}.get(
            self.kind, self.extra or self.folder / "kept.dpsyn"
        )

    def arguments(self, resume: bool) -> list[str]:
        """The command line."""
        command = "measure" if self.kind == "synopsis" else "synthesize"
        options = [str(self.folder / "people.csv"), "-s", str(self.folder / "schema.yaml"), "--epsilon", "1", "-q"]
        options += ["-o", f"{self.target}/" if self.kind == "folder" else str(self.target)]
        options += ["--ledger", str(self.book.path), "--dataset", "people"] if self.book else []
        options += ["--synopsis", str(self.synopsis)] if self.kind in ("file", "no ledger") else []
        return [command, *options, *(["--resume"] if resume else [])]


# ── a release in a child process ─────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Stop:
    """When a release is stopped: after some seconds by a signal, or at the n-th passage of a point."""

    seconds: float | None = None
    number: int = signal.SIGKILL
    point: str = ""
    passage: int = 0


def run(case: Case, stop: Stop | None = None, *, resume: bool = False) -> tuple[int, str]:
    """Run the command in a child; its exit code (minus the signal that ended it) and what it printed."""
    errors = case.folder / "stderr.txt"
    process = os.fork()
    if process == 0:
        _become_command(case, stop, resume, errors)
    if stop and stop.seconds is not None:
        _wait(process, stop.seconds)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, stop.number)
    status = os.waitpid(process, 0)[1]
    code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    return code, errors.read_text("utf-8", "replace")


def _wait(process: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return
        time.sleep(0.002)


def _become_command(case: Case, stop: Stop | None, resume: bool, errors: Path) -> None:
    code = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)
        descriptor = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 2)
        os.dup2(descriptor, 1)
        if stop and stop.point:
            _die_at(stop)
        code = command_line.run(case.arguments(resume))
        sys.stderr.flush()
        sys.stdout.flush()
    finally:
        os._exit(code)


def _die_at(stop: Stop) -> None:
    """Make this process kill itself when it passes a point for the n-th time."""
    passages = Counter[str]()

    def passes(point: str) -> None:
        passages[point] += 1
        if point == stop.point and passages[point] > stop.passage:
            os.kill(os.getpid(), signal.SIGKILL)

    append, transaction = AppendLog.append, hash_chain.open_transaction

    def watched_append(self: AppendLog, texts: Any) -> None:
        passes("before the journal")
        append(self, texts)
        passes("sealed in the journal")

    @contextlib.contextmanager
    def watched_transaction(path: Path, *options: Any, **more: Any) -> Iterator[Any]:
        with transaction(path, *options, **more) as opened:
            yield opened
            passes("inside the transaction")
        passes("after the commit")

    AppendLog.append = watched_append  # type: ignore[method-assign]
    hash_chain.open_transaction = watched_transaction


# ── what must hold ───────────────────────────────────────────────────────────────────────────────────────────


def check_stopped(case: Case) -> list[str]:
    """What must hold whenever a release was stopped; the hashes of the answers that were charged."""
    if case.target.exists() and case.target.is_file() and case.target.suffix == ".csv":
        lines = case.target.read_bytes().count(b"\n")
        if lines < 2:
            case.faults.append(f"an output of {lines} lines")
    if case.book is None or not case.book.path.exists():
        return []
    if found := case.book.verify().faults:
        case.faults.append(f"the ledger: {found[0]}")
        return []
    runs = [one for dataset in case.book.datasets() for one in dataset.runs if one.measurements]
    return [measurement["answer_hash"] for measurement in runs[-1].measurements] if runs else []


def complete(case: Case) -> tuple[int, str]:
    """Resume a release until it ends, or start it again if there is nothing to resume."""
    for _ in range(3):
        resume = case.journal.exists() and b"\n" in case.journal.read_bytes()
        if not resume:
            case.journal.unlink(missing_ok=True)
            if case.target.exists():  # it was complete before it was stopped
                return 0, ""
        code, shown = run(case, resume=resume)
        if code == 0:
            return code, shown
    return code, shown


def check_complete(case: Case, held: list[str]) -> None:
    """What must hold at the end: a whole result, every measurement charged once, nothing that was stored lost."""
    code, shown = complete(case)
    if code != 0:
        case.faults.append(f"it cannot be completed (exit code {code}): {shown.strip()[-300:]}")
        return
    if case.journal.exists() or not case.synopsis.exists():
        case.faults.append("a journal is left, or there is no result")
        return
    if leftovers := list(case.folder.glob(".*.partial")):
        for path in leftovers:  # of a killed process; nobody else can remove them
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    synopsis = dpsyn.Synopsis.load(case.synopsis)  # refuses numbers that were not charged
    certificate, release = synopsis.certificates[-1], synopsis.releases[-1]
    assert certificate is not None
    measurements = certificate.account.measurements
    answers = sum(len(each.marginals) for each in release.rounds) + len(release.scores)
    charged = sum(m.purpose.startswith(("marginal", "fine histogram", "distances")) for m in measurements)
    if charged != answers:
        case.faults.append(f"{charged} answers were charged, and {answers} are in the result")
    if not set(held) <= {m.answer_hash for m in measurements}:
        case.faults.append("an answer that was charged is not in the result")
    if case.book and (found := case.book.verify([dpsyn.read_ledger_checkpoint(case.synopsis)]).faults):
        case.faults.append(f"the ledger disagrees with the certificate: {found[0]}")


def prepare(folder: Path, kind: str, **places: Path) -> Case:
    """A folder with the table, the schema and, if there is to be one, an empty ledger."""
    folder.mkdir(parents=True)
    dpsyn.write_table(people(rows=ROWS), folder / "people.csv", synthetic=False)
    people_schema().save(folder / "schema.yaml")
    case = Case(folder, kind, **places)
    if case.book:
        Ledger.create(case.book.path).set_cap("people", dpsyn.Cap.for_guarantee(1_000, 1e-6))
    return case


# ── the tortures ─────────────────────────────────────────────────────────────────────────────────────────────


def kill(folder: Path, number: int, chance: random.Random) -> Case:
    """A release that is killed, every other one between the noise and the use of an answer; some of them twice."""
    case = prepare(folder, KINDS[number % len(KINDS)])
    held: list[str] = []
    for _ in range(chance.choice([1, 1, 2])):
        points = WINDOW[:2] if case.book is None else WINDOW
        stop = (
            Stop(point=chance.choice(points), passage=chance.randrange(8))
            if number % 2
            else Stop(seconds=chance.uniform(0, MAX_SECONDS))
        )
        resume = case.journal.exists() and b"\n" in case.journal.read_bytes()
        if not resume:
            case.journal.unlink(missing_ok=True)
        if case.target.exists():
            break
        run(case, stop, resume=resume)
        now = check_stopped(case)
        if not set(held) <= set(now) and resume:
            case.faults.append("charges vanished from the ledger")
        held = now
    check_complete(case, held if case.journal.exists() else [])
    return case


def hang_up(folder: Path, number: int, chance: random.Random) -> Case:
    """A release whose terminal is closed."""
    case = prepare(folder, KINDS[number % len(KINDS)])
    code, shown = run(case, Stop(seconds=chance.uniform(0, MAX_SECONDS), number=signal.SIGHUP))
    if code not in (0, 130, -signal.SIGHUP):
        case.faults.append(f"exit code {code} after SIGHUP: {shown.strip()[-200:]}")
    if list(case.folder.glob(".*.partial")) and code == 130:
        case.faults.append("a partial file is left after SIGHUP")
    check_complete(case, check_stopped(case) if case.journal.exists() else [])
    return case


def fill_disk(folder: Path, number: int, chance: random.Random, mount: Path) -> Case:
    """A release with too little room for its ledger, its journal, or an output."""
    place = ("ledger", "journal", "output")[number % 3]
    if place == "ledger":
        case = prepare(folder, "file", ledger=mount / "ledger.db")
    elif place == "journal":  # beside the link, while the output is where the link points to
        case = prepare(folder, "file", output=mount / "rows.csv")
        case.target.symlink_to(folder / "rows.csv")
    else:
        case = prepare(folder, "file", extra=mount / "kept.dpsyn")
    free = chance.randrange({"ledger": 60, "journal": 40, "output": 30}[place])
    room = shutil.disk_usage(mount).free
    (mount / "filler").write_bytes(b"x" * max(0, room - (free << 10)))
    code, shown = run(case)
    if code not in (0, 2):
        case.faults.append(f"exit code {code} with a full disk for the {place}: {shown.strip()[-300:]}")
    held = check_stopped(case) if case.journal.exists() else []
    (mount / "filler").unlink()
    if code != 0:
        check_complete(case, held)
    case.kind = f"{place}{'' if code else ' (enough room)'}"
    return case


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """A small tmpfs; None where it cannot be mounted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_KILOBYTES}k", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=False)


# ── the order of system calls ────────────────────────────────────────────────────────────────────────────────


CALLS = "fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat"


def trace_order(folder: Path) -> list[str] | None:
    """What is wrong with the order in which a release syncs, renames and removes files; None without strace."""
    if shutil.which("strace") is None:
        return None
    faults = []
    for kind in ("file", "folder", "synopsis"):
        case = prepare(folder / kind, kind)
        log = folder / f"{kind}.strace"
        command = ["strace", "-f", "-y", "-o", str(log), "-e", f"trace={CALLS}", sys.executable, "-m", "dpsyn"]
        done = subprocess.run([*command, *case.arguments(False)], capture_output=True, check=False)
        if done.returncode:
            return None if b"ptrace" in done.stderr else [f"{kind}: the traced release failed"]
        faults += [f"{kind}: {fault}" for fault in find_disorder(log.read_text("utf-8", "replace"), case)]
    return faults


def find_disorder(trace: str, case: Case) -> list[str]:
    """What is wrong with the order of calls: see the module's docstring."""
    events = [_parse_call(line) for line in _join_calls(trace)]
    calls = [(name, paths) for name, paths in events if name and case.folder.name in "".join(paths)]
    removal = next((n for n, (name, p) in enumerate(calls) if name.startswith("unlink") and _is(p, case.journal)), None)
    if removal is None:
        return ["the journal is not removed"]
    faults, synced, folder_synced = [], set[str](), False
    for name, paths in calls[:removal]:
        if name.endswith("sync"):
            synced.add(paths[0])
            folder_synced |= paths[0] == str(case.folder)
        elif name.startswith("rename") and ".partial" in paths[0]:
            folder_synced = False
            if paths[0] not in synced:
                faults.append(f"{Path(paths[1]).name} is renamed before it is synced")
    if not folder_synced:
        faults.append("the journal is removed before the folder of the results is synced")
    faults += _find_late_journals(calls, case)
    return faults


def _find_late_journals(calls: list[tuple[str, list[str]]], case: Case) -> list[str]:
    """Whether each transaction of the ledger, which ends with the removal of its rollback journal, follows a sync."""
    assert case.book is not None
    commits = [n for n, (name, p) in enumerate(calls) if name.startswith("unlink") and p[-1].endswith(".db-journal")]
    syncs = [n for n, (name, p) in enumerate(calls) if name.endswith("sync") and _is(p, case.journal)]
    charges = list(pairwise(commits))[1:-1]  # the first two are of the reservation, the last one closes the run
    late = sum(not any(a < sync < b for sync in syncs) for a, b in charges)
    return [f"{late} of {len(charges)} charges were committed before the answers were synced"] if late else []


def _is(paths: list[str], expected: Path) -> bool:
    return any(path == str(expected) for path in paths)


def _join_calls(trace: str) -> Iterator[str]:
    """The lines of a trace; a call that another thread interrupted is one line, where it ended."""
    begun: dict[str, str] = {}
    for line in trace.splitlines():
        process = line.partition(" ")[0]
        resumed = re.match(r"\d+ +<\.\.\. \w+ resumed>(.*)", line)
        if line.endswith("<unfinished ...>"):
            begun[process] = line.removesuffix("<unfinished ...>").rstrip()
        else:
            yield begun.pop(process, "") + resumed[1] if resumed else line


def _parse_call(line: str) -> tuple[str, list[str]]:
    call = re.match(r"\d+ +(\w+)\((.*)\) += 0", line)
    if not call:
        return "", []
    return call[1], re.findall(r'"([^"]*)"', call[2]) or re.findall(r"<([^>]*)>", call[2])


# ── what a crash costs ───────────────────────────────────────────────────────────────────────────────────────


def measure_accuracy(folder: Path, releases: int, chance: random.Random) -> list[str]:
    """The mean 2-way total variation distance of releases that ran through, were killed, or lost an answer."""

    def whole(_: Case) -> None:
        """Nothing happens."""

    def killed(case: Case) -> None:
        run(case, Stop(point="sealed in the journal", passage=1 + chance.randrange(3)))

    def damaged(case: Case) -> None:
        run(case, Stop(point="after the commit", passage=2 + chance.randrange(2)))
        lines = case.journal.read_bytes().splitlines(keepends=True)
        case.journal.write_bytes(b"".join(lines[:-1]))

    real = people(rows=ROWS)
    lines = []
    for number, (words, happen) in enumerate(
        {"not interrupted": whole, "killed between noise and use": killed, "the last answer damaged": damaged}.items()
    ):
        distances = []
        for release in range(releases):
            case = prepare(folder / f"{number}-{release}", "file")
            happen(case)
            code, shown = complete(case)
            if code:
                lines.append(f"  {words}: {shown.strip()[-200:]}")
                continue
            rows = dpsyn.read_table(case.target)
            distances.append(pair_distance(real, rows))
        error = np.std(distances, ddof=1) / len(distances) ** 0.5 if len(distances) > 1 else float("nan")
        mean = np.mean(distances) if distances else float("nan")
        lines.append(f"  {words:<30} {mean:.4f} ± {error:.4f}  ({len(distances)} releases)")
    return lines


def pair_distance(real: Any, synthetic: Any) -> float:
    """The mean total variation distance of all two-way marginals."""
    result = dpsyn.evaluate(real, synthetic, people_schema())
    return float(np.mean([pair.distance.synthetic for pair in result.pairs]))


# ── the whole ────────────────────────────────────────────────────────────────────────────────────────────────


def torture(
    name: str, number: int, make: Callable[[Path, int, random.Random], Case], folder: Path, chance: random.Random
) -> list[str]:
    """Make and check a number of cases; print a line, and return what is wrong."""
    faults, kinds = [], Counter[str]()
    started = time.monotonic()
    for index in range(number):
        case = make(folder / f"{name}-{index}", index, chance)
        kinds[case.kind] += 1
        faults += [f"{name} {index} ({case.kind}): {fault}" for fault in case.faults]
        if not case.faults:
            shutil.rmtree(case.folder, ignore_errors=True)
    shown = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    print(
        f"{name:<8} {number:>4} cases, {len(faults)} faults, {time.monotonic() - started:.0f} s  ({shown})", flush=True
    )
    return faults


def warm_up(folder: Path) -> None:
    """Load everything that a release loads, so children start quickly."""
    case = prepare(folder, "file")
    code, shown = run(case)
    assert code == 0, shown
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dpsyn.measure(people(rows=50), people_schema(), 1.0).generate(rows=5, seed=1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option, default in (("kills", 200), ("disks", 40), ("hangups", 20), ("accuracy", 0), ("seed", 1)):
        parser.add_argument(f"--{option}", type=int, default=default)
    options = parser.parse_args()
    print(provenance(options.seed))
    chance = random.Random(options.seed)
    faults: list[str] = []
    with tempfile.TemporaryDirectory(prefix="torture-") as name, small_disk(Path(name) / "disk") as mount:
        folder = Path(name)
        warm_up(folder / "warm")
        faults += torture("kills", options.kills, kill, folder, chance)
        if mount is None:
            print("disks    not run: a tmpfs cannot be mounted here")
        else:

            def on_disk(at: Path, index: int, drawn: random.Random) -> Case:
                for path in mount.iterdir():
                    path.unlink()
                return fill_disk(at, index, drawn, mount)

            faults += torture("disks", options.disks, on_disk, folder, chance)
        faults += torture("hangups", options.hangups, hang_up, folder, chance)
        disorder = trace_order(folder / "order")
        print("order    not run: there is no strace" if disorder is None else f"order    {len(disorder)} faults")
        faults += disorder or []
        if options.accuracy:
            print("mean 2-way total variation distance")
            print("\n".join(measure_accuracy(folder / "accuracy", options.accuracy, chance)))
    print("\n".join(faults) or "every release was completed; nothing was lost, understated or paid for twice")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
