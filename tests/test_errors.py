from __future__ import annotations

import re

from dpsyn import errors


def test_the_drawing_shows_the_whole_tree() -> None:
    drawn = re.findall(r"\b(\w+Error)\b", (errors.__doc__ or "").split("\n\n")[1])

    found = [
        name for name, value in vars(errors).items() if isinstance(value, type) and value.__module__ == "dpsyn.errors"
    ]

    assert sorted(drawn) == sorted(found)
