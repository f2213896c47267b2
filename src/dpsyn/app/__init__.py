"""A workbench in the browser: ``dpsyn app``.

It is a shell around the command line. Everything that takes long, or sees more of a private table than its first rows,
is a command of ``dpsyn`` in a process of its own (``jobs``), with the command's own journal, ledger and messages. The
pages write the arguments of these commands and show what they wrote.

``workspace`` is the folder in which everything is kept, ``security`` decides who may ask, ``pages`` is one module per
page, ``server`` puts them together.
"""

from __future__ import annotations

import importlib.util

from dpsyn.errors import MissingExtraError

APP_EXTRA = "app"


def require_libraries() -> None:
    """Refuse to start where the libraries of the server are not installed."""
    for library in ("starlette", "uvicorn", "python_multipart"):
        if importlib.util.find_spec(library) is None:
            raise MissingExtraError(library.replace("_", "-"), APP_EXTRA, "the workbench")
