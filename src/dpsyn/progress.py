"""Progress callbacks: the name of a phase and the fraction done, never anything about rows."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Called with the name of the current phase and the fraction of it that is done, from 0 to 1.

Privacy: names of phases contain only public facts and released numbers; they never contain a number of rows.
"""


def ignore_progress(phase: str, done: float) -> None:
    """No-op progress callback."""
