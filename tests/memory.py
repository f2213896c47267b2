"""The memory that a function needs, traced in a process of its own.

``tracemalloc.stop`` may crash a process in which other threads allocate memory, as those of a test runner do.
"""

from __future__ import annotations

import multiprocessing
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any


def trace_peak(function: Callable[..., Any], *arguments: Any) -> tuple[Any, int]:
    """The result of a function of a module, and the most bytes that were allocated at once."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_trace, function, *arguments).result()


def _trace(function: Callable[..., Any], *arguments: Any) -> tuple[Any, int]:
    tracemalloc.start()
    return function(*arguments), tracemalloc.get_traced_memory()[1]
