"""A first guess of a schema, read off the data for a person to finish.

Privacy: this is the steward's own, unpaid look at the rows. Everything in the draft is marked
``provenance: data``, and a release refuses it until a person has declared it public.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable
from fractions import Fraction
from statistics import median
from typing import Any

from dpsyn.diagnose.profile import ColumnProfile
from dpsyn.encoding.arrays import is_scalar, value_type
from dpsyn.encoding.entries import read_number
from dpsyn.errors import SourceError
from dpsyn.schema import yaml_io
from dpsyn.schema.files import SCHEMA_FORMAT, SCHEMA_KEY
from dpsyn.schema.grid import MAX_GRID_CELLS
from dpsyn.schema.ranges import MAX_LATTICE_STEPS, MAX_REAL_COORDINATE
from dpsyn.sources import Source, open_source

MAX_DRAFT_ROWS = 1_000_000
"""Rows a draft looks at: more would hardly change the guess."""

MAX_DRAFT_CATEGORIES = 100
"""Different texts up to which a column is taken for a list of categories; beyond it for open text."""

MAX_GRADES = 20
"""Different whole numbers up to which a column is taken for grades or codes rather than amounts."""

MAX_CODE = 2**63
"""Whole numbers from here on are taken for text: no column of numbers holds them all."""

MAX_DECIMALS = 9
"""Digits after the point that a draft keeps; more are seldom meant."""

NO_ROWS_WARNING = (
    "The table has no rows, so the draft holds only the names of its columns; say what each of them can hold."
)

_HEADER = """\
Drafted from the data. As long as an entry says  provenance: data  this file is private.
For each attribute compare what stands here with what is publicly known (a code book, a form, the law):
  - values, low and high should be what is possible, not what was seen in these rows;
  - cells that cannot be read, or are not listed, go to missing, or without it to the first value;
    say  other: NAME  to send them elsewhere;
  - open columns have no public list of values; a release buys the frequent ones;
  - identifiers are left out of the synthetic table.
Then declare it public:  dpsyn schema approve THIS-FILE ATTRIBUTE... --because "code book 2024"
If one person can have several rows, add  unit: {id: COLUMN, rows: 3}  with an identifier column.
"""


def draft_schema(data: Any, *, query: str | None = None, rows: int | None = MAX_DRAFT_ROWS) -> str:
    """YAML text of a drafted schema for a table, commented so that a person can finish it.

    It looks at the first million rows, or as many as ``rows`` says; None means all.

    Privacy: unpaid look at the rows; the text is private until approved.
    """
    source = open_source(data, query=query)
    profiles = _profile_columns(source, rows)
    empty = not any(profile.rows for profile in profiles.values())
    if empty:
        warnings.warn(NO_ROWS_WARNING, UserWarning, stacklevel=2)
    comments: dict[yaml_io.YamlPath, str] = {
        (): (f"{NO_ROWS_WARNING}\n" if empty else "") + _HEADER + _column_notes(source.schema.names, profiles),
        ("dataset",): "the name under which all releases of this table share a privacy budget",
        ("expected_size",): "about how many rows, from public knowledge; it sets sensible defaults",
        ("neighbors",): "add-remove hides whether a unit is in the table; replace makes the number of units public",
    }
    attributes = {}
    for name, (fields, comment) in _guess_attributes(profiles).items():
        attributes[name] = {**fields, "provenance": "data"}
        comments["attributes", name, "kind"] = comment
    document = {
        SCHEMA_KEY: SCHEMA_FORMAT,
        "dataset": "",
        "expected_size": None,
        "neighbors": "add-remove",
        "attributes": attributes,
    }
    return yaml_io.write_yaml(document, comments)


def _column_notes(names: list[str], profiles: dict[str, ColumnProfile]) -> str:
    """What is odd about the columns as a whole."""
    left_out = [name for name in names if name not in profiles]
    notes = f"Left out, because their cells are not single values: {', '.join(left_out)}.\n" if left_out else ""
    if any(read_number(name) is not None for name in names):
        notes += "Some names look like values: does the file begin with a line of names?\n"
    return notes


def _profile_columns(source: Source, rows: int | None) -> dict[str, ColumnProfile]:
    names = source.schema.names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SourceError(f"{source.label} has more than one column {twice!r}; rename all but one")
    if not all(names):
        raise SourceError(f"{source.label} has a column without a name; name it or remove it")
    profiles = {field.name: ColumnProfile() for field in source.schema if is_scalar(value_type(field.type))}
    if not profiles:
        raise SourceError(f"{source.label} has no column whose cells are single values")
    seen = 0
    for batch in source.batches(list(profiles)):
        for name, profile in profiles.items():
            profile.add(batch.column(name))
        seen += batch.num_rows
        if rows is not None and seen >= rows:
            break
    for profile in profiles.values():
        profile.finish()
    return profiles


def _guess_attributes(profiles: dict[str, ColumnProfile]) -> dict[str, tuple[dict[str, Any], str]]:
    """A guess for every column, of which at least one can be measured: keys alone are no table."""
    found = {name: guess_attribute(name, profile) for name, profile in profiles.items()}
    if any(fields["kind"] != "identifier" for fields, _ in found.values()):
        return found
    comment = "every value occurs once; if it is a key, make it kind: identifier"
    return {name: (fields | {"kind": "open"}, comment) for name, (fields, _) in found.items()}


def guess_attribute(name: str, profile: ColumnProfile) -> tuple[dict[str, Any], str]:
    """The fields of an attribute that a column looks like, and a remark for the person who finishes them."""
    missing = _missing_field(profile)
    key = "it repeats; if it names a person, make it kind: identifier and add a unit"
    for attempt in (
        _guess_empty,
        _guess_date,
        _guess_decimal_comma,
        _guess_signed_amount,
        _guess_identifier,
        _guess_boolean,
        _guess_grades,
        _guess_number,
        _guess_categories,
    ):
        found = attempt(name, profile)
        if found:
            fields, comment = found
            repeats = fields["kind"] == "integer" and _NAMES_A_KEY.search(name)
            return {**fields, **missing}, key if repeats else comment
    if _NAMES_A_KEY.search(name):
        return {"kind": "open", **missing}, key
    return {"kind": "open", **missing}, "too many different texts to list; a release buys the frequent ones"


AttributeGuess = tuple[dict[str, Any], str] | None


def _missing_field(profile: ColumnProfile) -> dict[str, Any]:
    spelled = sorted(profile.empties)
    if not spelled:
        return {}
    return {"missing": True} if spelled == [""] else {"missing": spelled}


def _guess_empty(name: str, profile: ColumnProfile) -> AttributeGuess:
    if profile.filled_cells:
        return None
    return {"kind": "open"}, "no cell was filled; say what it could hold, or remove it"


def _guess_decimal_comma(name: str, profile: ColumnProfile) -> AttributeGuess:
    if not all(re.fullmatch(r"-?[0-9.]*,?[0-9]+", text) for text in profile.counts):
        return None
    if not any("," in text for text in profile.counts):  # numbers, or versions such as 1.2.3
        return None
    return {"kind": "open"}, "numbers with a decimal comma are not read; write them with a point"


_SIGN = r"(?:[$€£¥₹%]|EUR|USD|GBP|CHF|JPY|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN|CZK|kr|zł|Kč)"
_WITH_SIGNS = re.compile(rf"[-+]?(?:{_SIGN}\s?)?[-+]?[0-9]+(?:[.,'\s][0-9]{{3}})*(?:[.,][0-9]+)?(?:\s?{_SIGN})?")


def _guess_signed_amount(name: str, profile: ColumnProfile) -> AttributeGuess:
    """Too many amounts to list, with signs beside or between their digits."""
    if _guess_categories(name, profile) or not all(_WITH_SIGNS.fullmatch(text) for text in profile.counts):
        return None
    if not any(re.search(f"[,']|{_SIGN}", text) for text in profile.counts):
        return None
    what = "numbers with a currency, a percent sign or commas between digits"
    return {"kind": "open"}, f"{what} are not read; write plain ones, such as 1793.08"


_NAMES_A_KEY = re.compile(r"(^|[^a-z])(id|uuid|guid|ssn|e-?mail|phone|key)$", re.IGNORECASE)


def _guess_identifier(name: str, profile: ColumnProfile) -> AttributeGuess:
    many = profile.crowded or profile.filled_cells >= 100
    once = many and all(times == 1 for times in profile.counts.values())
    numbered = profile.whole and profile.high is not None and profile.low is not None
    in_a_row = numbered and profile.high - profile.low < 2 * profile.filled_cells  # type: ignore[operator]
    if once and not profile.instant and (_NAMES_A_KEY.search(name) or in_a_row or not profile.number):
        return {"kind": "identifier"}, "every value occurs once; output: fresh numbers the rows anew"
    return None


def _guess_boolean(name: str, profile: ColumnProfile) -> AttributeGuess:
    return ({"kind": "boolean"}, "") if profile.truth else None


def _guess_date(name: str, profile: ColumnProfile) -> AttributeGuess:
    if not (profile.instant or profile.formats) or profile.first is None or profile.last is None:
        return None
    if profile.whole and not re.search(r"date|time|day|born|birth|dt", name, re.IGNORECASE):
        return None
    fields = {
        "kind": "datetime",
        "start": f"{profile.first.year:04}-01-01",
        "end": f"{profile.last.year:04}-12-31",
        "resolution": profile.grain,
    }
    if not profile.instant:
        fields["format"] = profile.formats[0]
    return fields, "earliest and latest possible"


def _guess_grades(name: str, profile: ColumnProfile) -> AttributeGuess:
    if not profile.whole or profile.padded or profile.crowded or profile.low is None or profile.high is None:
        return None
    if profile.endless or max(abs(profile.low), abs(profile.high)) >= MAX_CODE:
        return None
    span = int(profile.high - profile.low) + 1
    if profile.distinct <= MAX_GRADES and span <= 2 * profile.distinct:
        values = list(range(int(profile.low), int(profile.high) + 1))
        return {"kind": "ordinal", "values": values}, "all that are possible, in order"
    if profile.distinct <= MAX_DRAFT_CATEGORIES / 2 and span > 2 * profile.distinct:
        return {"kind": "categorical", "values": _parse_numbers(profile.counts)}, "all codes"
    return None


def _guess_number(name: str, profile: ColumnProfile) -> AttributeGuess:
    if not profile.number or profile.padded or profile.low is None or profile.high is None:
        return None
    places = min(profile.decimals, MAX_DECIMALS)
    if not _can_be_bounds(profile.low, profile.high, places):
        return None
    low, high = round_bounds(profile.low, profile.high, places)
    if not _can_be_bounds(low, high, places):
        return None
    kind = {"kind": "integer"} if places == 0 else {"kind": "real"}
    fields: dict[str, Any] = {**kind, "low": low, "high": high, **({"decimals": places} if places else {})}
    spikes = _find_spikes(profile, (high - low) * 10**places)
    return {**fields, **({"spikes": spikes} if spikes else {})}, "lowest and highest possible"


def _can_be_bounds(low: float, high: float, decimals: int) -> bool:
    """Whether a schema can have these bounds."""
    farthest = MAX_REAL_COORDINATE if decimals else MAX_LATTICE_STEPS
    return bool(max(abs(low), abs(high)) * 10**decimals < farthest and (high - low) * 10**decimals < MAX_LATTICE_STEPS)


def _find_spikes(profile: ColumnProfile, steps: float) -> list[float]:
    """Values so frequent that they deserve a cell of their own where cells are wide."""
    if steps <= MAX_GRID_CELLS:
        return []
    typical = median(profile.counts.values())
    least = max(10, profile.rows / 500, 20 * typical)
    often = [text for text, times in profile.counts.most_common(20) if times >= least]
    return [number for number in _parse_numbers(often) if number != 0]


def _parse_numbers(texts: Iterable[str]) -> list[float]:
    """The different finite numbers of some texts, ascending; whole ones are exact."""
    found = {number for number in map(read_number, texts) if number is not None and abs(number) != math.inf}
    return sorted(int(number) if number == int(number) else number for number in found)


def _guess_categories(name: str, profile: ColumnProfile) -> AttributeGuess:
    if profile.distinct > min(MAX_DRAFT_CATEGORIES, max(10, profile.filled_cells / 2)):
        return None
    fields: dict[str, Any] = {"kind": "categorical", "values": sorted(profile.counts)}
    catch_all = next((text for text in fields["values"] if text.lower() in ("other", "others", "unknown")), None)
    return {**fields, **({"other": catch_all} if catch_all else {})}, "all that are possible"


def round_bounds(low: float, high: float, decimals: int = 0) -> tuple[float, float]:
    """Bounds widened to round numbers of so many decimals, so that neither is that of a single row."""
    exact_low, exact_high = Fraction(str(low)), Fraction(str(high))
    span = exact_high - exact_low
    power = math.floor(math.log10(span / 2)) if span * 10**decimals >= 2 else -decimals
    unit = Fraction(10) ** power
    wide_low = 0 if 0 <= exact_low <= span else (math.ceil(exact_low / unit) - 1) * unit
    wide_high = 0 if -span <= exact_high <= 0 else (math.floor(exact_high / unit) + 1) * unit
    return (int(wide_low), int(wide_high)) if decimals == 0 else (float(wide_low), float(wide_high))
