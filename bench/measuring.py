"""What all benchmarks share: wall time, peak memory, and where a figure comes from."""

from __future__ import annotations

import importlib.util
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from types import ModuleType


def commit() -> str:
    """The commit that is checked out."""
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() or "unknown"


def provenance(seed: int) -> str:
    """The commit, the seed, the machine and the versions behind the figures that follow."""
    import numpy
    import pyarrow

    versions = f"Python {platform.python_version()}, numpy {numpy.__version__}, pyarrow {pyarrow.__version__}"
    return f"commit {commit()}, seed {seed}; {versions}; {platform.machine()}"


def load_judge(path: Path) -> ModuleType:
    """A judge of synthetic tables, from its file."""
    spec = importlib.util.spec_from_file_location("judge", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def seconds(work: Callable[[], object]) -> float:
    """The wall time of one run."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def ratio(work: Callable[[], object], baseline: Callable[[], object], rounds: int = 7) -> tuple[float, float, float]:
    """Median times of the work and of the baseline, run by turns, and the median of their ratios."""
    work(), baseline()  # warm up: file cache, thread pools
    pairs = [(seconds(work), seconds(baseline)) for _ in range(rounds)]
    return (
        median(mine for mine, _ in pairs),
        median(theirs for _, theirs in pairs),
        median(mine / theirs for mine, theirs in pairs),
    )


def peak_megabytes(module: str, *arguments: str) -> float:
    """The peak memory of ``python -m module arguments`` in a process of its own; it prints it last."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    return float(done.stdout.split()[-1])


def own_peak_megabytes() -> float:
    """The peak memory of this process so far.

    Linux carries ``ru_maxrss`` over from the process that started this one; not the mark in ``/proc``.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) / 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
