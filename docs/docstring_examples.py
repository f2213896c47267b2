"""Examples in docstrings as code: an extension of griffe, which reads the docstrings for the page of Python."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^( *)>>> .*(?:\n.+)*", re.MULTILINE)
"""A line with a prompt, and all lines up to the next empty one."""


class FencedExamples(Extension):
    """Put a fence around each example, which Markdown would take for a quotation."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(r"\1```pycon\n\g<0>\n\1```", obj.docstring.value)
