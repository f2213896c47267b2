"""What was probably meant by a name that does not exist: the known names, or the files of a folder, most like it."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence
from itertools import islice

_MAX_SHOWN_NAMES = 8

_MAX_LISTED_FILES = 10_000
"""Files of a folder among which a similar name is looked for; a folder of more takes longer to list than to read."""


def format_names(labels: Sequence[str], most: int = _MAX_SHOWN_NAMES) -> str:
    """The first names, by default eight, and how many more there are."""
    shown = ", ".join(labels[:most])
    return shown if len(labels) <= most else f"{shown} and {len(labels) - most:,} more"


def find_similar(name: object, known: Iterable[str], count: int = 3) -> list[str]:
    """The known names most like a name, upper and lower case apart; none if none is similar."""
    plain = {other.casefold(): other for other in known}
    return [plain[other] for other in difflib.get_close_matches(str(name).casefold(), plain, count)]


def suggest_names(name: object, known: Sequence[str], otherwise: str = "there are ") -> str:
    """A suggestion for an unknown name: the known names most like it, or else a list of known names.

    >>> suggest_names("incme", ["age", "income"]), suggest_names("town", ["age", "income"])
    ('did you mean income?', 'there are age, income')
    """
    similar = find_similar(name, known)
    return f"did you mean {' or '.join(similar)}?" if similar else f"{otherwise}{format_names(known)}"


def suggest_file(path: str | os.PathLike[str]) -> str:
    """A suggestion for a file that does not exist, such as "; did you mean schema.yaml?"; empty if there is none.

    Only names of files in its folder are looked at, never their content. A common suffix does not make names similar.
    """
    folder, name = os.path.split(os.fspath(path))
    try:
        with os.scandir(folder or os.curdir) as entries:
            names = [entry.name for entry in islice(entries, _MAX_LISTED_FILES) if not entry.name.startswith(".")]
    except (OSError, ValueError):  # there is no such folder, or no folder has such a name
        return ""
    if name in names:
        return ""
    stem = _stem(name)
    similar = [each for each in find_similar(name, sorted(names)) if find_similar(stem, [_stem(each)])]
    return f"; did you mean {os.path.join(folder, similar[0])}?" if similar else ""


def _stem(name: str) -> str:
    return os.path.splitext(name)[0]
