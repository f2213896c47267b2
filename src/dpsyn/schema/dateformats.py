"""How a text file writes dates: those letters of strptime that Arrow, which reads the cells, reads rightly everywhere.

Left out are letters that it ignores (``%j``, ``%Z``), knows on some systems only (``%f``, ``%s``, ``%k``) or reads by
the settings of the machine (``%c``, ``%x``, ``%X``, ``%r``).
"""

from __future__ import annotations

import re

PARTS = {"year": "YyDF", "month": "mbBhDF", "day": "deDF"}
"""The letters that name a part of a date; ``%D`` is %m/%d/%y and ``%F`` is %Y-%m-%d."""

LETTERS = "YymbBhdeDFaAHIMSpTRz%"
"""All that may follow a percent sign."""


def format_problem(form: str, resolution: str) -> str | None:
    """What is wrong with a format for dates of a resolution, and what to do; None if nothing is."""
    letters = re.findall("%(.?)", form, re.DOTALL)
    unknown = next((letter for letter in letters if letter not in LETTERS or not letter), None)
    if unknown is not None:
        return f"%{unknown} is not read; use {' '.join(f'%{letter}' for letter in LETTERS)}"
    if not form.isprintable():
        return "a character in it is not printable; leave it out"
    twice = next((letter for letter in letters if letter != "%" and letters.count(letter) > 1), None)
    if twice is not None:
        return f"it has %{twice} twice; once is enough"
    for part in _needed(resolution):
        if not set(letters).intersection(PARTS[part]):
            return f"it does not name the {part}; add {' or '.join(f'%{letter}' for letter in PARTS[part])}"
    return "%I is an hour of half a day; add %p" if "I" in letters and "p" not in letters else None


def _needed(resolution: str) -> list[str]:
    """The parts of a date that a resolution tells apart."""
    parts = list(PARTS)
    return parts[: parts.index(resolution) + 1] if resolution in parts else parts


def spelled_out(form: str) -> str:
    """The same format in letters that Python knows."""
    return re.sub("%(.)", lambda found: _SPELLED.get(found[1], found[0]), form)


_SPELLED = {"D": "%m/%d/%y", "F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M", "h": "%b", "e": "%d"}
