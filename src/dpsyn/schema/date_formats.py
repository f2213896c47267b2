"""Formats of dates and times in text files: the letters of strptime that Arrow, which reads most cells, supports."""

from __future__ import annotations

import re

from dpsyn.errors import SchemaError, quote_argument

DATE_PART_LETTERS = {"year": "YyDF", "month": "mbBhDF", "day": "deDF"}
"""The letters that contain a part of a date; ``%D`` is %m/%d/%y and ``%F`` is %Y-%m-%d."""

FORMAT_LETTERS = "YymbBhdeDFaAHIMSpTRz%"
"""All letters that may follow a percent sign."""


CLOCK_LETTERS = "HIMSpTR%"
"""The letters of FORMAT_LETTERS that a time of day may have."""


def as_formats(given: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """The formats of a field that holds one, several or none."""
    if given is None or isinstance(given, str):
        return () if given is None else (given,)
    if not isinstance(given, tuple) or not all(isinstance(form, str) for form in given):
        raise SchemaError(f"format is {quote_argument(given)}; give a text, or a list of texts", ("format",))
    return given


def format_problem(form: str, resolution: str) -> str | None:
    """What is wrong with a date format at a resolution, and what to do; None if it is valid."""
    letters = re.findall("%(.?)", form, re.DOTALL)
    unknown = next((letter for letter in letters if letter not in FORMAT_LETTERS or not letter), None)
    if unknown is not None:
        return f"%{unknown} is not supported; use {' '.join(f'%{letter}' for letter in FORMAT_LETTERS)}"
    if not form.isprintable():
        return "it contains a character that is not printable; remove it"
    twice = next((letter for letter in letters if letter != "%" and letters.count(letter) > 1), None)
    if twice is not None:
        return f"it has %{twice} twice; remove one"
    for part in _required_parts(resolution):
        if not set(letters).intersection(DATE_PART_LETTERS[part]):
            return f"it has no {part}; add {' or '.join(f'%{letter}' for letter in DATE_PART_LETTERS[part])}"
    return "%I is an hour of a 12-hour clock; add %p" if "I" in letters and "p" not in letters else None


def clock_format_problem(form: str) -> str | None:
    """What is wrong with the format of a time of day, and what to do; None if it is valid."""
    letters = re.findall("%(.?)", form, re.DOTALL)
    unknown = next((letter for letter in letters if letter not in CLOCK_LETTERS or not letter), None)
    if unknown is not None:
        return f"%{unknown} is not supported; use {' '.join(f'%{letter}' for letter in CLOCK_LETTERS)}"
    if not set(letters).intersection("HITR"):
        return "it has no hour; add %H"
    return "%I is an hour of a 12-hour clock; add %p" if "I" in letters and "p" not in letters else None


def _required_parts(resolution: str) -> list[str]:
    """The parts of a date that a resolution needs."""
    parts = list(DATE_PART_LETTERS)
    return parts[: parts.index(resolution) + 1] if resolution in parts else parts


def to_python_format(form: str) -> str:
    """The same format in letters that Python supports."""
    return re.sub("%(.)", lambda match: _PYTHON_LETTERS.get(match[1], match[0]), form)


_PYTHON_LETTERS = {"D": "%m/%d/%y", "F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M", "h": "%b", "e": "%d"}
