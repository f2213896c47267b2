"""The draft of a schema: a first guess from the data, which a person completes.

Privacy: this reads the rows without privacy protection, for the data owner only. Every entry of the draft is marked
``provenance: data``, and a release refuses it until a person has declared it public.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsyn.diagnose.code_book import apply_code_book
from dpsyn.diagnose.column_blocks import merge_blocks
from dpsyn.diagnose.file_syntax import DetectedSyntax, detect_file, detect_syntax, guess_mixed_dates
from dpsyn.diagnose.profile import MAX_GRADES, ColumnProfile
from dpsyn.diagnose.proposals import MAX_COMPARED_ROWS, find_repetitions, propose_relations, read_columns
from dpsyn.diagnose.remarks import NAMES_A_KEY, contact_data, find_remark
from dpsyn.encoding import header_problems
from dpsyn.encoding.arrays import is_scalar, value_type
from dpsyn.encoding.cell_syntax import respell_batch
from dpsyn.encoding.entry_parser import read_number
from dpsyn.errors import SourceError
from dpsyn.schema import yaml_io
from dpsyn.schema.approval import draft_digest, states_facts
from dpsyn.schema.files import SCHEMA_FORMAT, SCHEMA_KEY
from dpsyn.schema.ranges import MAX_LATTICE_STEPS, MAX_REAL_COORDINATE
from dpsyn.schema.schema_draft import SchemaDraft
from dpsyn.sources import Source, describe_irregular_lines, open_source

MAX_DRAFT_ROWS = 1_000_000
"""Rows that a draft reads; more would hardly change the guess."""

MAX_SEARCHED_BYTES = 1 << 28
"""Bytes of a text file that a draft searches for irregular lines: a second of work."""

MAX_DRAFT_CATEGORIES = 100
"""Distinct texts up to which a column is considered a list of categories; with more it is open text."""

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
  - a  remark  is a question that only you can answer; correct the entry and remove the remark;
  - values, low and high should be what is possible, not what occurs in these rows;
  - cells that cannot be read, or are not listed, count as missing, or as the first value without missing;
    add  other: NAME  to count them as another value;
  - open columns have no public list of values; a release discovers the frequent ones privately;
  - identifiers are left out of the synthetic table; a column whose entry you remove is never read;
  - columns with  *NAME  have the same description as the column with  &NAME;
  - derive and rules are proposals; keep those that hold by definition, and remove the others.
Then declare it public, entry by entry:  dpsyn schema review THIS-FILE
or some entries at once:  dpsyn schema approve THIS-FILE ATTRIBUTE... --because "code book 2024"
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
) -> SchemaDraft:
    """Draft a schema for a table, with comments for the person who completes it.

    How the file is written is detected and stored in the draft, unless it is given. The draft counts what was
    recognized, and lists what needs a person and why. Notes about the table as a whole are warnings, too.

    Privacy: reads the rows without privacy protection; the draft is private until it is approved.

    >>> import pyarrow as pa
    >>> draft = draft_schema(pa.table({"sex": ["f", "m"] * 50, "age": [20, 30, 40, 55, 71] * 20}))
    >>> draft
    SchemaDraft(2 attributes, 2 not approved: sex, age)
    >>> draft = draft.edit("age", kind="integer", low=0, high=120).approve("age", because="code book 2024")
    >>> draft = draft.approve("sex", because="code book 2024", as_drafted=True)  # the code book has the same values
    >>> draft.to_schema()["age"].high
    120

    Args:
        data: the table, as for ``measure``.
        query: as for ``measure``.
        rows: how many rows are read, from the first; None means all.
        encoding: the encoding of a text file, such as ``cp1252``.
        separator: the character between its cells.
        decimal: the decimal sign of its numbers.
        missing: the codes for missing cells, in all columns, such as ``-9``.
    """
    stated = {"encoding": encoding, "separator": separator, "decimal": decimal, "missing": missing}
    file, file_notes = detect_file(data, stated)
    source = open_source(data, query=query, syntax=file)
    _refuse_header(source)
    detected = detect_syntax(source, file, stated)
    profiles, sample = _profile_columns(source, rows, detected)
    empty = not any(profile.rows for profile in profiles.values())
    notes = [NO_ROWS_WARNING] * empty
    irregular = describe_irregular_lines(source, MAX_SEARCHED_BYTES)
    notes += [f"{line[:1].upper()}{line[1:]}." for line in (*file_notes, *detected.notes, *irregular)]
    omitted = [name for name in source.schema.names if name not in profiles]
    guesses = _guess_attributes(source, profiles, detected)
    columns = read_columns({name: guess.fields for name, guess in guesses.items()}, sample)
    for name, other in find_repetitions(columns).items():
        guesses[name].remark = guesses[name].remark or f"it repeats {other} in every row; remove one of the two entries"
    blocks = merge_blocks(guesses)
    document: dict[str, Any] = {
        SCHEMA_KEY: SCHEMA_FORMAT,
        "dataset": _name_of(data),
        "expected_size": None,
        "neighbors": "add-remove",
        **detected.file_section(),
        "attributes": {name: guess.entry() for name, guess in guesses.items()},
    }
    propose_relations(document, columns)
    comments: dict[yaml_io.YamlPath, str] = {
        (): "".join(f"{note}\n" for note in notes) + _HEADER + _column_notes(source.schema.names, omitted),
        ("dataset",): "the name under which all releases of this table share a privacy budget",
        ("expected_size",): "a public estimate of the number of rows, such as 50000; it determines defaults",
        ("neighbors",): "add-remove hides whether a person is in the table; replace makes the number of persons public",
        **{("attributes", name, "kind"): guess.comment for name, guess in guesses.items()},
    }
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    return SchemaDraft(
        yaml_io.write_yaml(document, comments, {("attributes", name): block for name, block in blocks.items()}),
        columns=len(source.schema.names),
        left_out={
            **dict.fromkeys(omitted, "its cells are not single values"),
            **{
                name: guess.comment.partition(";")[0]
                for name, guess in guesses.items()
                if guess.fields["kind"] == "identifier" and not guess.remark
            },
        },
        notes=notes,
    )


def _name_of(data: Any) -> str:
    """The name of a dataset: that of its file or folder without the suffix; empty if there is none."""
    if not isinstance(data, str | Path) or re.search(r"[*?\[]|://", str(data)):
        return ""
    return Path(data).name.partition(".")[0]


def _column_notes(names: list[str], omitted: list[str]) -> str:
    """Notes about unusual columns."""
    notes = f"Left out, because their cells are not single values: {', '.join(omitted)}.\n" if omitted else ""
    if any(read_number(name) is not None for name in names):
        notes += "Some column names look like values: does the first line of the file hold the names?\n"
    return notes


def _refuse_header(source: Source) -> None:
    """Refuse names of columns that no schema can describe; all of them at once."""
    problems = header_problems(source.schema.names)
    if problems:
        raise SourceError(f"{source.label}: {'; '.join(problems)}")


def _profile_columns(
    source: Source, rows: int | None, detected: DetectedSyntax
) -> tuple[dict[str, ColumnProfile], list[pa.RecordBatch]]:
    """A profile of every column whose cells are single values, and the first rows, in plain spelling."""
    profiles = {
        field.name: ColumnProfile(has_levels=_has_levels(field))
        for field in source.schema
        if is_scalar(value_type(field.type))
    }
    if not profiles:
        raise SourceError(f"{source.label} has no column whose cells are single values")
    rows_read = 0
    first: list[pa.RecordBatch] = []
    for batch in source.batches(list(profiles)):
        batch = batch if rows is None else batch.slice(0, rows - rows_read)
        batch = respell_batch(batch, detected.respellings)
        for name, profile in profiles.items():
            profile.add(batch.column(name))
        first += [batch.slice(0, MAX_COMPARED_ROWS - rows_read)] if rows_read < MAX_COMPARED_ROWS else []
        rows_read += batch.num_rows
        if rows is not None and rows_read >= rows:
            break
    for profile in profiles.values():
        profile.finish()
    return profiles, first


def _has_levels(field: pa.Field) -> bool:
    """Whether the dictionary of a column holds the levels of its type, and not values of other columns as well."""
    return pa.types.is_dictionary(field.type) and not any(b"_PL_CATEGORICAL" in key for key in field.metadata or ())


@dataclass(slots=True)
class Guess:
    """The guess for one column: the fields of its entry, a comment, and a question; empty if there is none."""

    fields: dict[str, Any]
    comment: str = ""
    remark: str = ""

    def entry(self) -> dict[str, Any]:
        """The entry of the schema file."""
        remark = {"remark": self.remark} if self.remark else {}
        digest = {"drafted": draft_digest(self.fields)} if states_facts(self.fields) else {}
        return {**self.fields, "provenance": "data", **remark, **digest}


def _guess_attributes(source: Source, profiles: dict[str, ColumnProfile], detected: DetectedSyntax) -> dict[str, Guess]:
    """A guess for every column. If all look like keys, none becomes an identifier, as nothing would be measured."""
    guesses = {}
    for name, profile in profiles.items():
        fields, comment = guess_attribute(name, profile)
        fields, comment = apply_code_book(source, detected.missing_codes, name, (fields, comment), profile)
        guesses[name] = _add_remark(name, profile, fields | detected.number_fields(name, fields["kind"]), comment)
    if any(guess.fields["kind"] != "identifier" for guess in guesses.values()):
        return guesses
    remark = "every value occurs once; if it is a key, make it kind: identifier"
    return {name: Guess({**guess.fields, "kind": "open"}, "", remark) for name, guess in guesses.items()}


def _add_remark(name: str, profile: ColumnProfile, fields: dict[str, Any], comment: str) -> Guess:
    if fields["kind"] == "open" and comment != OPEN_COMMENT:  # texts that could be something else
        return Guess(fields, remark=comment)
    return Guess(fields, comment, find_remark(name, profile, fields))


def guess_attribute(name: str, profile: ColumnProfile) -> tuple[dict[str, Any], str]:
    """The fields of an attribute that fits a column, and a comment for the person who completes them."""
    missing = _missing_field(profile)
    for attempt in (
        _guess_levels,
        _guess_empty,
        _guess_date,
        _guess_time,
        guess_mixed_dates,
        _guess_contact_data,
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
            if fields["kind"] == "integer" and NAMES_A_KEY.search(name):
                break
            return {**fields, **missing}, comment
    if NAMES_A_KEY.search(name):
        return {"kind": "identifier", **missing}, "a key; output: fresh gives synthetic rows new numbers"
    return {"kind": "open", **missing}, OPEN_COMMENT


OPEN_COMMENT = "too many distinct texts to list; a release discovers the frequent ones privately"

AttributeGuess = tuple[dict[str, Any], str] | None


def _missing_field(profile: ColumnProfile) -> dict[str, Any]:
    spelled = sorted(profile.empties)
    if not spelled:
        return {}
    return {"missing": True} if spelled == [""] else {"missing": spelled}


def _guess_levels(name: str, profile: ColumnProfile) -> AttributeGuess:
    """The levels of the type of a column, such as an ordered categorical of pandas or an Enum of polars."""
    levels = [text for text in profile.levels or () if text not in profile.empties]
    if not levels or not profile.counts.keys() <= set(levels) or profile.truth or profile.instant or profile.clock:
        return None
    if not profile.ordered and len(levels) > MAX_DRAFT_CATEGORIES:
        return None
    numbers = [read_number(text) for text in levels]
    whole = [int(n) for n in numbers if n is not None and abs(n) < MAX_CODE and n == int(n)]
    values: list[Any] = whole if list(map(str, whole)) == levels else levels
    if profile.ordered:
        return {"kind": "ordinal", "values": values}, "the levels of the column's type, in order"
    return {"kind": "categorical", "values": values}, "the levels of the column's type"


def _guess_contact_data(name: str, profile: ColumnProfile) -> AttributeGuess:
    what = contact_data(name, profile)
    return ({"kind": "identifier"}, f"{what}, which name persons") if what else None


def _guess_empty(name: str, profile: ColumnProfile) -> AttributeGuess:
    if profile.filled_cells:
        return None
    return {"kind": "open"}, "all cells are empty; describe the values that it can have, or remove this entry"


_SIGN = r"(?:[$€£¥₹%]|EUR|USD|GBP|CHF|JPY|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN|CZK|kr|zł|Kč)"
_WITH_SIGNS = re.compile(rf"[-+]?(?:{_SIGN}\s?)?[-+]?[0-9]+(?:[.,'\s][0-9]{{3}})*(?:[.,][0-9]+)?(?:\s?{_SIGN})?")


def _guess_signed_amount(name: str, profile: ColumnProfile) -> AttributeGuess:
    """Too many amounts to list, with currency or percent signs, or with separators between digits."""
    if _guess_categories(name, profile) or not all(_WITH_SIGNS.fullmatch(text) for text in profile.counts):
        return None
    if not any(re.search(f"[,']|{_SIGN}", text) for text in profile.counts):
        return None
    return {"kind": "open"}, "numbers with several currencies or signs cannot be read; write all of them in one way"


def _guess_identifier(name: str, profile: ColumnProfile) -> AttributeGuess:
    many = profile.crowded or profile.filled_cells >= 100
    once = many and all(times == 1 for times in profile.counts.values())
    numbered = profile.whole and profile.high is not None and profile.low is not None
    in_a_row = numbered and profile.high - profile.low < 2 * profile.filled_cells  # type: ignore[operator]
    if once and not profile.instant and (NAMES_A_KEY.search(name) or in_a_row or not profile.number):
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
    high = min([high, *(code - 1 for code in profile.codes if code > profile.high)])
    if not _can_be_bounds(low, high, decimals):
        return None
    kind = {"kind": "integer"} if decimals == 0 else {"kind": "real"}
    fields: dict[str, Any] = {**kind, "low": low, "high": high, **({"decimals": decimals} if decimals else {})}
    return fields, "lowest and highest possible"


def _can_be_bounds(low: float, high: float, decimals: int) -> bool:
    """Whether a schema can have these bounds."""
    limit = MAX_REAL_COORDINATE if decimals else MAX_LATTICE_STEPS
    return bool(max(abs(low), abs(high)) * 10**decimals < limit and (high - low) * 10**decimals < MAX_LATTICE_STEPS)


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
