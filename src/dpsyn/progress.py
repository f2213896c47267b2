"""How long work tells what it is doing: phases and fractions, never anything about rows."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Called with the name of the current phase and how much of it is done, from 0 to 1.

Privacy: phases are named by public facts and released numbers; there is no number of rows in them.
"""


def ignore_progress(phase: str, done: float) -> None:
    """Tell nobody."""
