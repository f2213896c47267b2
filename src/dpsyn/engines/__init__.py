"""Exact counts of private rows, after contribution bounding. Only the gate, ``private``, may import this package.

Importing it loads the compiler of its kernels, so the gate imports it when the first table is opened.
"""

from dpsyn.engines.engine import Engine
from dpsyn.engines.factory import EngineKind, choose_engine_kind, open_engine, open_table

__all__ = ["Engine", "EngineKind", "choose_engine_kind", "open_engine", "open_table"]
