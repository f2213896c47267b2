"""How kernels are compiled: on the first call, and cached on disk where there is a place for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compile_kernel(function: _Function, **options: Any) -> _Function:
    """Compile on the first call and cache the result on disk; the compiled code releases the GIL.

    numba caches in the folder that ``NUMBA_CACHE_DIR`` names, else beside the source, else in the user's cache. Where
    none of them can be written, as in a container with a read-only root and no home, every process compiles anew.
    """
    try:
        return cast(_Function, njit(cache=True, nogil=True, **options)(function))
    except RuntimeError:  # there is no place for a cache
        return cast(_Function, njit(nogil=True, **options)(function))
