"""Releases survive kills, full disks and hangups; ``bench.torture`` at full length has the figures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from bench.torture import _join_calls

pytestmark = [
    pytest.mark.check,
    pytest.mark.skipif(os.name != "posix", reason="needs fork and signals"),
]


def test_releases_survive_kills_full_disks_and_hangups() -> None:
    command = [sys.executable, "-m", "bench.torture", "--kills", "6", "--disks", "3", "--hangups", "2"]

    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1], check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"kills +6 cases, 0 faults", done.stdout)
    assert "every release was completed" in done.stdout


def test_a_call_that_another_thread_interrupted_is_seen_where_it_ended() -> None:
    trace = """1 fsync(3</j> <unfinished ...>
2 unlink("/a") = 0
1 <... fsync resumed>)   = 0"""

    assert [*_join_calls(trace)] == ['2 unlink("/a") = 0', "1 fsync(3</j>)   = 0"]
