"""What the fields of a schema mean, in the words of the docstrings, for error messages and editors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import msgspec


def summary(kind: type) -> str:
    """The first sentence about a type."""
    return inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].replace("``", "")


def field_meanings(kind: type[msgspec.Struct]) -> dict[str, str]:
    """What every field means, by its key in a file; a type's own words come before those of its bases."""
    keys = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    found: dict[str, str] = {}
    for base in kind.__mro__:
        for name, meaning in _attributes_section(inspect.cleandoc(base.__doc__ or "")):
            if name in keys:
                found.setdefault(keys[name], meaning)
    return found


def in_short(meaning: str) -> str:
    """The first clause of a meaning."""
    return re.split(r"[;.](?:\s|$)", meaning)[0]


def _attributes_section(doc: str) -> Iterator[tuple[str, str]]:
    """The entries below ``Attributes:``, each with its continuation lines."""
    _, _, section = doc.partition("\nAttributes:\n")
    for entry in re.split(r"^ {4}(?=\w)", section, flags=re.MULTILINE)[1:]:
        name, _, meaning = entry.partition(":")
        yield name, " ".join(meaning.replace("``", "").split())
