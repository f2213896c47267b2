"""The result of an import for one attribute: its fields, and comments that ask for the missing ones."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from dpsyn.schema.attributes import Value, canonical_text
from dpsyn.schema.date_formats import format_problem
from dpsyn.schema.ranges import Resolution

FIELD_QUESTIONS = {
    "low": "lowest possible value, from public knowledge",
    "high": "highest possible value, from public knowledge",
    "start": "earliest possible date, from public knowledge, such as 2016-01-01",
    "end": "latest possible date, from public knowledge",
}
"""The comments after fields that only a person can fill in."""

OPEN_NOTE = (
    "a release discovers its values privately; if a code book lists them, use kind: categorical and values: [...]"
)
CLOCK_FORMAT_NOTE = "times of day written as {}, which is not supported; write them as 08:30 and use kind: time"

_DOMAIN = ("values", "codes", "low", "high", "start", "end")
_ISO = re.compile(r"%Y-%m-%d([T ]%H:%M(:%S(\.%f)?)?(%z|Z)?)?")
_CLOCK = re.compile(r"(%H:%M|%R)(:%S(\.%f)?)?|%T|%I:%M(:%S)? ?%p")
_LETTERS: tuple[tuple[Resolution, str], ...] = (
    ("second", "HIMSfpcXTRrs"),
    ("day", "djeaAuwxDF"),
    ("month", "mbBh"),
    ("year", "Yy"),
)
_YEARS = "YyGcxDFs"


@dataclass(frozen=True, slots=True)
class ImportedAttribute:
    """One attribute of an imported schema.

    Attributes:
        fields: its entry in the file; a field is None if a person has to fill it in.
        notes: the comments, by field.
        description: a note for readers of the schema.
    """

    fields: dict[str, Any]
    notes: dict[str, str] = field(default_factory=dict)
    description: str = ""

    @property
    def is_incomplete(self) -> bool:
        """Whether a person has to fill in a field."""
        return None in self.fields.values()

    def entry(self, because: str) -> dict[str, Any]:
        """The entry in the file; with the reason, if the source declares the whole domain.

        What the source declares of a domain starts as taken from the data: metadata is often made from the rows, and
        only a person knows.
        """
        declared = any(self.fields.get(name) is not None for name in _DOMAIN)
        texts = {
            "provenance": "data" if declared else "",
            "because": because if declared and not self.is_incomplete else "",
            "description": self.description,
        }
        return self.fields | {name: text for name, text in texts.items() if text}

    def with_field(self, name: str, value: object, note: str = "") -> ImportedAttribute:
        """The same entry with one more field and a note after it; unchanged if the value is empty."""
        notes = self.notes | ({name: note} if note else {})
        return replace(self, fields=self.fields | {name: value}, notes=notes) if value else self


def describe_attribute(kind: str, note: str = "", **fields: Any) -> ImportedAttribute:
    """An entry of a kind, with a note after the kind; comments ask for the fields that are None."""
    questions = {name: FIELD_QUESTIONS[name] for name, value in fields.items() if value is None}
    return ImportedAttribute({"kind": kind, **fields}, {"kind": note} | questions if note else questions)


def describe_dates(pattern: str | None, start: str | None = None, end: str | None = None) -> ImportedAttribute:
    """Dates or times in a format of strptime; the format is left out if it is None or an ISO format."""
    if pattern is None:
        dates = describe_attribute("datetime", start=start, end=end)
        return dates.with_field("resolution", "day", "or finer, such as second, if times matter")
    pattern = re.sub(
        r"%[-#](?=[A-Za-z])", "%", pattern
    )  # these flags matter for writing only; reading accepts one digit or two
    letters = set(re.findall("%(.)", pattern))
    if not letters.intersection(_YEARS):
        return describe_times(pattern)
    resolution = next((name for name, marks in _LETTERS if letters.intersection(marks)), "day")
    iso = _ISO.fullmatch(pattern)
    problem = None if iso else format_problem(pattern, resolution)
    note = f"written as {pattern}, which is not supported: {problem}" if problem else ""
    dates = describe_attribute("datetime", note, start=start, end=end, resolution=resolution)
    return dates if iso or problem else dates.with_field("format", pattern)


def describe_times(pattern: str, start: str | None = None, end: str | None = None) -> ImportedAttribute:
    """Times of day in a format of strptime, if cells of that format can be read."""
    if not _CLOCK.fullmatch(pattern):
        return describe_attribute("open", CLOCK_FORMAT_NOTE.format(pattern))
    times = describe_attribute("time", resolution="second" if re.search("%[ST]", pattern) else "minute")
    return times.with_field("start", start).with_field("end", end)


def distinct_values(values: object) -> tuple[Value, ...]:
    """The distinct values of a list, in order; empty if it is not a list of plain values."""
    if not isinstance(values, list) or not all(isinstance(value, str | int | float) for value in values):
        return ()
    plain = [canonical_text(value) if isinstance(value, bool) else value for value in values]
    return tuple({canonical_text(value): value for value in reversed(plain)}.values())[::-1]
