"""The draft of a schema: a first guess from the data, which a person completes.

Privacy: this reads the rows without privacy protection, for the data owner only. Every entry of the draft is marked
``provenance: data``, and a release refuses it until a person has declared it public.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Sequence
from fractions import Fraction
from statistics import median
from typing import Any

from dpsyn.diagnose.code_book import apply_code_book
from dpsyn.diagnose.file_syntax import DetectedSyntax, detect_file, detect_syntax, guess_mixed_dates
from dpsyn.diagnose.profile import ColumnProfile
from dpsyn.encoding import header_problems
from dpsyn.encoding.arrays import is_scalar, value_type
from dpsyn.encoding.cell_syntax import respell_batch
from dpsyn.encoding.entry_parser import read_number
from dpsyn.errors import SourceError
from dpsyn.schema import yaml_io
from dpsyn.schema.files import SCHEMA_FORMAT, SCHEMA_KEY
from dpsyn.schema.grid import MAX_GRID_CELLS
from dpsyn.schema.ranges import MAX_LATTICE_STEPS, MAX_REAL_COORDINATE
from dpsyn.sources import Source, describe_irregular_lines, open_source

MAX_DRAFT_ROWS = 1_000_000
"""Rows that a draft reads; more would hardly change the guess."""

MAX_SEARCHED_BYTES = 1 << 28
"""Bytes of a text file that a draft searches for irregular lines: a second of work."""

MAX_DRAFT_CATEGORIES = 100
"""Distinct texts up to which a column is considered a list of categories; with more it is open text."""

MAX_GRADES = 20
"""Distinct whole numbers up to which a column is considered grades or codes rather than amounts."""

MAX_CODE = 2**63
"""Whole numbers from here on are considered text, because they do not fit into a column of integers."""

MAX_DECIMALS = 9
"""Digits after the decimal point that a draft keeps; more are rarely intended."""

NO_ROWS_WARNING = (
    "The table has no rows, so the draft contains only the names of its columns; describe the values of each."
)

_HEADER = """\
Drafted from the data. This file is private as long as an entry has  provenance: data
Compare each attribute with what is publicly known (a code book, a form, the law):
  - values, low and high should be what is possible, not what occurs in these rows;
  - cells that cannot be read, or are not listed, count as missing, or as the first value without missing;
    add  other: NAME  to count them as another value;
  - open columns have no public list of values; a release discovers the frequent ones privately;
  - identifiers are left out of the synthetic table.
Then declare it public:  dpsyn schema approve THIS-FILE ATTRIBUTE... --because "code book 2024"
The certificate of a release lists what was drafted and approved; what you wrote yourself is  provenance: public
If one person can have several rows, add  privacy_unit: {id: COLUMN, max_rows: 3}  with an identifier column.
"""


def draft_schema(
    data: Any,
    *,
    query: str | None = None,
    rows: int | None = MAX_DRAFT_ROWS,
    encoding: str | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    missing: Sequence[str] | None = None,
) -> str:
    """Draft a schema for a table, as YAML text with comments for the person who completes it.

    How the file is written is detected and stored in the draft, unless it is given: the encoding, the separator, the
    decimal sign, and the codes for missing cells.

    It reads the first million rows, or as many as ``rows``; None means all.

    Privacy: reads the rows without privacy protection; the text is private until it is approved.
    """
    stated = {"encoding": encoding, "separator": separator, "decimal": decimal, "missing": missing}
    file, file_notes = detect_file(data, stated)
    source = open_source(data, query=query, syntax=file)
    _refuse_header(source)
    detected = detect_syntax(source, file, stated)
    profiles = _profile_columns(source, rows, detected)
    empty = not any(profile.rows for profile in profiles.values())
    notes = [NO_ROWS_WARNING] * empty
    notes += [f"{line[:1].upper()}{line[1:]}." for line in (*file_notes, *detected.notes)]
    notes += [f"{line[:1].upper()}{line[1:]}." for line in describe_irregular_lines(source, MAX_SEARCHED_BYTES)]
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    comments: dict[yaml_io.YamlPath, str] = {
        (): "".join(f"{note}\n" for note in notes) + _HEADER + _column_notes(source.schema.names, profiles),
        ("dataset",): "the name under which all releases of this table share a privacy budget",
        ("expected_size",): "a public estimate of the number of rows; it determines defaults",
        ("neighbors",): "add-remove hides whether a person is in the table; replace makes the number of persons public",
    }
    attributes = {}
    for name, guess in _guess_attributes(profiles).items():
        fields, comment = apply_code_book(source, detected.missing_codes, name, guess, profiles[name])
        attributes[name] = {**fields, **detected.number_fields(name, fields["kind"]), "provenance": "data"}
        comments["attributes", name, "kind"] = comment
    document = {
        SCHEMA_KEY: SCHEMA_FORMAT,
        "dataset": "",
        "expected_size": None,
        "neighbors": "add-remove",
        **detected.file_section(),
        "attributes": attributes,
    }
    return yaml_io.write_yaml(document, comments)


def _column_notes(names: list[str], profiles: dict[str, ColumnProfile]) -> str:
    """Notes about unusual columns."""
    omitted = [name for name in names if name not in profiles]
    notes = f"Left out, because their cells are not single values: {', '.join(omitted)}.\n" if omitted else ""
    if any(read_number(name) is not None for name in names):
        notes += "Some column names look like values: does the first line of the file hold the names?\n"
    return notes


def _refuse_header(source: Source) -> None:
    """Refuse names of columns that no schema can describe; all of them at once."""
    problems = header_problems(source.schema.names)
    if problems:
        raise SourceError(f"{source.label}: {'; '.join(problems)}")


def _profile_columns(source: Source, rows: int | None, detected: DetectedSyntax) -> dict[str, ColumnProfile]:
    profiles = {field.name: ColumnProfile() for field in source.schema if is_scalar(value_type(field.type))}
    if not profiles:
        raise SourceError(f"{source.label} has no column whose cells are single values")
    rows_read = 0
    for batch in source.batches(list(profiles)):
        batch = batch if rows is None else batch.slice(0, rows - rows_read)
        batch = respell_batch(batch, detected.respellings)
        for name, profile in profiles.items():
            profile.add(batch.column(name))
        rows_read += batch.num_rows
        if rows is not None and rows_read >= rows:
            break
    for profile in profiles.values():
        profile.finish()
    return profiles


def _guess_attributes(profiles: dict[str, ColumnProfile]) -> dict[str, tuple[dict[str, Any], str]]:
    """A guess for every column. If all look like keys, none becomes an identifier, as nothing would be measured."""
    guesses = {name: guess_attribute(name, profile) for name, profile in profiles.items()}
    if any(fields["kind"] != "identifier" for fields, _ in guesses.values()):
        return guesses
    comment = "every value occurs once; if it is a key, make it kind: identifier"
    return {name: (fields | {"kind": "open"}, comment) for name, (fields, _) in guesses.items()}


def guess_attribute(name: str, profile: ColumnProfile) -> tuple[dict[str, Any], str]:
    """The fields of an attribute that fits a column, and a comment for the person who completes them."""
    missing = _missing_field(profile)
    key = "values repeat; if it names a person, make it kind: identifier and add a privacy_unit"
    for attempt in (
        _guess_empty,
        _guess_date,
        _guess_time,
        guess_mixed_dates,
        _guess_signed_amount,
        _guess_identifier,
        _guess_boolean,
        _guess_grades,
        _guess_number,
        _guess_categories,
    ):
        guess = attempt(name, profile)
        if guess:
            fields, comment = guess
            repeats = fields["kind"] == "integer" and _NAMES_A_KEY.search(name)
            return {**fields, **missing}, key if repeats else comment
    if _NAMES_A_KEY.search(name):
        return {"kind": "open", **missing}, key
    return {
        "kind": "open",
        **missing,
    }, "too many distinct texts to list; a release discovers the frequent ones privately"


AttributeGuess = tuple[dict[str, Any], str] | None


def _missing_field(profile: ColumnProfile) -> dict[str, Any]:
    spelled = sorted(profile.empties)
    if not spelled:
        return {}
    return {"missing": True} if spelled == [""] else {"missing": spelled}


def _guess_empty(name: str, profile: ColumnProfile) -> AttributeGuess:
    if profile.filled_cells:
        return None
    return {"kind": "open"}, "all cells are empty; describe the values it can have, or remove it"


_SIGN = r"(?:[$€£¥₹%]|EUR|USD|GBP|CHF|JPY|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN|CZK|kr|zł|Kč)"
_WITH_SIGNS = re.compile(rf"[-+]?(?:{_SIGN}\s?)?[-+]?[0-9]+(?:[.,'\s][0-9]{{3}})*(?:[.,][0-9]+)?(?:\s?{_SIGN})?")


def _guess_signed_amount(name: str, profile: ColumnProfile) -> AttributeGuess:
    """Too many amounts to list, with currency or percent signs, or with separators between digits."""
    if _guess_categories(name, profile) or not all(_WITH_SIGNS.fullmatch(text) for text in profile.counts):
        return None
    if not any(re.search(f"[,']|{_SIGN}", text) for text in profile.counts):
        return None
    return {"kind": "open"}, "numbers with several currencies or signs cannot be read; write all of them in one way"


_NAMES_A_KEY = re.compile(r"(^|[^a-z])(id|uuid|guid|ssn|e-?mail|phone|key)$", re.IGNORECASE)


def _guess_identifier(name: str, profile: ColumnProfile) -> AttributeGuess:
    many = profile.crowded or profile.filled_cells >= 100
    once = many and all(times == 1 for times in profile.counts.values())
    numbered = profile.whole and profile.high is not None and profile.low is not None
    in_a_row = numbered and profile.high - profile.low < 2 * profile.filled_cells  # type: ignore[operator]
    if once and not profile.instant and (_NAMES_A_KEY.search(name) or in_a_row or not profile.number):
        return {"kind": "identifier"}, "every value occurs once; output: fresh gives synthetic rows new numbers"
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


def _guess_time(name: str, profile: ColumnProfile) -> AttributeGuess:
    if not profile.clock:
        return None
    resolution = "second" if profile.grain == "second" else "minute"
    return {"kind": "time", "resolution": resolution}, "times of day"


def _guess_grades(name: str, profile: ColumnProfile) -> AttributeGuess:
    if not profile.whole or profile.padded or profile.crowded or profile.low is None or profile.high is None:
        return None
    if profile.endless or max(abs(profile.low), abs(profile.high)) >= MAX_CODE:
        return None
    span = int(profile.high - profile.low) + 1
    if profile.distinct <= MAX_GRADES and span <= 2 * profile.distinct:
        values = list(range(int(profile.low), int(profile.high) + 1))
        return {"kind": "ordinal", "values": values}, "all possible values, in order"
    if profile.distinct <= MAX_DRAFT_CATEGORIES / 2 and span > 2 * profile.distinct:
        return {"kind": "categorical", "values": _parse_numbers(profile.counts)}, "all possible codes"
    return None


def _guess_number(name: str, profile: ColumnProfile) -> AttributeGuess:
    if not profile.number or profile.padded or profile.low is None or profile.high is None:
        return None
    decimals = min(profile.decimals, MAX_DECIMALS)
    if not _can_be_bounds(profile.low, profile.high, decimals):
        return None
    low, high = round_bounds(profile.low, profile.high, decimals)
    if not _can_be_bounds(low, high, decimals):
        return None
    kind = {"kind": "integer"} if decimals == 0 else {"kind": "real"}
    fields: dict[str, Any] = {**kind, "low": low, "high": high, **({"decimals": decimals} if decimals else {})}
    spikes = _find_spikes(profile, (high - low) * 10**decimals)
    return {**fields, **({"spikes": spikes} if spikes else {})}, "lowest and highest possible"


def _can_be_bounds(low: float, high: float, decimals: int) -> bool:
    """Whether a schema can have these bounds."""
    limit = MAX_REAL_COORDINATE if decimals else MAX_LATTICE_STEPS
    return bool(max(abs(low), abs(high)) * 10**decimals < limit and (high - low) * 10**decimals < MAX_LATTICE_STEPS)


def _find_spikes(profile: ColumnProfile, steps: float) -> list[float]:
    """Values that are frequent enough for a cell of their own, if cells are wider than one step."""
    if steps <= MAX_GRID_CELLS:
        return []
    typical = median(profile.counts.values())
    min_count = max(10, profile.rows / 500, 20 * typical)
    frequent = [text for text, count in profile.counts.most_common(20) if count >= min_count]
    return [number for number in _parse_numbers(frequent) if number != 0]


def _parse_numbers(texts: Iterable[str]) -> list[float]:
    """The distinct finite numbers of some texts, ascending; whole ones as integers."""
    numbers = {number for number in map(read_number, texts) if number is not None and abs(number) != math.inf}
    return sorted(int(number) if number == int(number) else number for number in numbers)


def _guess_categories(name: str, profile: ColumnProfile) -> AttributeGuess:
    if profile.distinct > min(MAX_DRAFT_CATEGORIES, max(10, profile.filled_cells / 2)):
        return None
    fields: dict[str, Any] = {"kind": "categorical", "values": sorted(profile.counts)}
    catch_all = next((text for text in fields["values"] if text.lower() in ("other", "others", "unknown")), None)
    return {**fields, **({"other": catch_all} if catch_all else {})}, "all possible values"


def round_bounds(low: float, high: float, decimals: int = 0) -> tuple[float, float]:
    """Bounds widened to round numbers with this many decimals, so neither is the value of a single row."""
    exact_low, exact_high = Fraction(str(low)), Fraction(str(high))
    span = exact_high - exact_low
    power = math.floor(math.log10(span / 2)) if span * 10**decimals >= 2 else -decimals
    unit = Fraction(10) ** power
    wide_low = 0 if 0 <= exact_low <= span else (math.ceil(exact_low / unit) - 1) * unit
    wide_high = 0 if -span <= exact_high <= 0 else (math.floor(exact_high / unit) + 1) * unit
    return (int(wide_low), int(wide_high)) if decimals == 0 else (float(wide_low), float(wide_high))
