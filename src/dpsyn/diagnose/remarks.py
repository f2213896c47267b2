"""Remarks of a draft: what only a person who knows the table can decide about a column.

A remark is written into the entry of the column. As long as it is there, the entry is approved only by a separate yes.

Privacy: remarks describe private rows. A public entry cannot carry one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dpsyn.diagnose.profile import ColumnProfile

MIN_WORDS = 4
"""Words of a text, on average, from which a column is considered free text."""

NAMES_A_KEY = re.compile(r"(^|[^a-z])(id|uuid|guid|ssn|e-?mail|phone|key|nr|no|nummer|number)$", re.IGNORECASE)
"""Names of columns whose values name a person or a thing."""

MAY_NAME_PERSONS = "this may name persons; remove this entry to leave the column out, or make it kind: identifier"

MAX_HARMLESS_NAMES = 16
"""A list of more values in a column that is called a name may be one of persons; a few may be products or places."""

_NAMES_A_PERSON = re.compile(
    r"(^|[^a-z])((first|last|sur|full|vor|nach)?[-_ ]?name|address|adresse|street|stra(ss|ß)e|contact|kontakt)$",
    re.IGNORECASE,
)
_NAMES_A_CODE = re.compile(r"(^|[^a-z])(code|zip|plz|postcode|postal_?code|ags|icd|nace)$", re.IGNORECASE)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[A-Za-z]+")
_PHONE = re.compile(r"\+?[0-9()][0-9()/. -]{5,}[0-9]")
_NAMES_A_PHONE = re.compile(r"tel|phone|mobil|handy|fax", re.IGNORECASE)
_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?")

REPEATED_KEY = (
    "values repeat, so it may name persons with several rows; then add  privacy_unit: {id: %s, max_rows: 3}  to this "
    "file, with the most rows of one person that a release may use"
)
RARE_TEXTS = (
    "hardly any text is in many rows, so a release would spend budget on it and call nearly all of them 'other'; "
    "remove this entry to leave the column out, or group the texts first"
)


def contact_data(name: str, profile: ColumnProfile) -> str:
    """What a column of e-mail addresses, telephone or account numbers holds; empty for other columns."""
    texts = list(profile.counts)
    if not texts or (profile.number and not _NAMES_A_PHONE.search(name)):
        return ""
    if all(map(_EMAIL.fullmatch, texts)):
        return "e-mail addresses"
    if _NAMES_A_PHONE.search(name) and all(map(_PHONE.fullmatch, texts)):
        return "telephone numbers"
    return "account numbers" if all(map(_IBAN.fullmatch, texts)) else ""


def find_remark(name: str, profile: ColumnProfile, fields: Mapping[str, Any]) -> str:
    """The question about a column that only a person can answer; empty if there is none."""
    kind = fields["kind"]
    if not profile.filled_cells:
        return ""
    if profile.codes:
        codes = ", ".join(str(code) for code in profile.codes)
        listed = "values" in fields
        return (
            f"{codes}: this looks like a code for no answer, so it counts as missing"
            f"{', without telling one from another' if len(profile.codes) > 1 else ''}; if it is a value, take it out "
            f"of missing and {'add it to values' if listed else 'widen the range (a top code goes to spikes)'}"
        )
    if profile.distinct == 1 and not profile.empties and kind != "identifier":
        return "all cells are the same; list the other values that are possible, or remove this entry"
    if kind == "datetime" and not profile.instant and not profile.formats:
        written = ", ".join([*_as_list(fields["format"]), "ISO 8601"])
        return (
            f"these are dates in several formats ({written}); the first that fits a cell is used: check days and "
            "months, or write all of them in one format"
        )
    if kind == "datetime" and (other := _other_reading(profile)):
        return f"every date can also be read as {other}; state in format which comes first, the day or the month"
    if kind == "identifier" and NAMES_A_KEY.search(name) and any(times > 1 for times in profile.counts.values()):
        return REPEATED_KEY % name
    if kind == "integer" and _NAMES_A_CODE.search(name):
        return (
            "these look like codes, not amounts; list them with kind: categorical, or use kind: open, with which a "
            "release discovers the frequent ones privately"
        )
    if kind == "categorical" and _NAMES_A_PERSON.search(name) and len(fields.get("values", ())) > MAX_HARMLESS_NAMES:
        return MAY_NAME_PERSONS
    return _remark_on_texts(name, profile) if kind == "open" else ""


def _as_list(formats: str | list[str]) -> list[str]:
    return [formats] if isinstance(formats, str) else formats


def _other_reading(profile: ColumnProfile) -> str:
    """The format in which day and month are exchanged, if it fits all dates as well."""
    if profile.instant or not profile.formats:
        return ""
    exchanged = profile.formats[0].replace("%d", "%%").replace("%m", "%d").replace("%%", "%m")
    return exchanged if exchanged in profile.formats[1:] else ""


def _remark_on_texts(name: str, profile: ColumnProfile) -> str:
    words = sum(text.count(" ") + 1 for text in profile.counts) / profile.distinct
    if words >= MIN_WORDS:
        return f"this looks like free text: {RARE_TEXTS}"
    if _NAMES_A_PERSON.search(name):
        return MAY_NAME_PERSONS
    return RARE_TEXTS if profile.crowded or profile.distinct > profile.filled_cells / 2 else ""
