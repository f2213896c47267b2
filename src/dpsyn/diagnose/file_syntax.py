"""What the draft and the check of a schema find out about how a file is written.

Privacy: detection reads the rows without privacy protection, for the data owner only. What it finds goes into the
draft, marked as taken from the data, or is reported by the check. A release detects nothing; it follows the schema.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from dpsyn.diagnose.code_book import missing_codes
from dpsyn.diagnose.profile import DATE_FORMATS, ColumnProfile, looks_iso, read_date
from dpsyn.encoding import arrays
from dpsyn.encoding.cell_syntax import Respelling, respell_column
from dpsyn.encoding.entry_parser import entry_texts, is_blank, read_number, text_of_bytes
from dpsyn.schema import FileSyntax, NumberSigns, parse_instant
from dpsyn.schema.file_syntax import PLAIN_FILE, PLAIN_NUMBERS, SPACES, normalize_encoding
from dpsyn.sources import Source, find_invalid_text, open_source, start_of_text

MAX_SEARCHED_BYTES = 1 << 28
"""Bytes of a text file that are searched for characters that are not UTF-8: less than a second of work."""

MAX_SAMPLED_TEXTS = 20_000
"""Distinct texts of a column that its signs are guessed from."""

MAX_SAMPLED_ROWS = 200_000
"""Rows that signs and codes are guessed from."""

MAX_TEXT_CODES = 3
"""Different words in a column of numbers up to which they are taken for codes of missing cells."""

MIN_NUMBERS = 0.5
"""The part of the cells of a column that must be numbers for its few words to be taken for such codes."""

MIN_CELLS = 10
"""Cells of a column from which on some of them are taken for codes."""

MAX_LISTED = 50
"""Different whole numbers up to which a draft lists them."""

NOT_NUMBERS = re.compile(r"[0-9]{1,2}\.[0-9]{1,2}\.?|[0-9]+(\.[0-9]+){2,}")
"""Texts with points that are rather dates or versions than numbers."""

MAX_MIXED_FORMATS = 3
"""Formats of one column; more are rather a sign that its texts are not dates."""

_SYMBOLS = ("%", "€", "$", "£", "¥", "₹", "EUR", "USD", "GBP", "CHF", "kr", "zł", "Kč")
_ENCODINGS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_WINDOWS_LETTERS = re.compile("[ÄÖÜäöüßÀ-ÖØ-öø-ÿŠšŽžŒœŸ€‚„“”‘’–—…§°©®«»·µ´²³]")


class DetectedSyntax(msgspec.Struct, frozen=True, kw_only=True):
    """How a table is written, as far as its files and cells show it.

    Attributes:
        file: the section of the schema; None if files are plain.
        columns: the signs of the numbers of each column whose signs are not plain.
        respellings: how the cells of columns become plain.
        notes: sentences for the data owner.
    """

    file: FileSyntax | None
    columns: Mapping[str, NumberSigns]
    respellings: Mapping[str, Respelling]
    notes: tuple[str, ...]

    def number_fields(self, name: str, kind: str) -> dict[str, Any]:
        """The fields of a number's entry in the schema that differ from those of the file."""
        if kind not in ("integer", "real") or name not in self.columns:
            return {}
        signs, file = self.columns[name], self.file or PLAIN_FILE
        fields: dict[str, Any] = {"symbol": signs.symbol} if signs.symbol else {}
        fields |= {"decimal": signs.decimal} if signs.decimal != file.decimal else {}
        if signs.thousands and signs.thousands != file.thousands:
            fields["thousands"] = signs.thousands
        return fields

    @property
    def missing_codes(self) -> tuple[str, ...]:
        """The codes for missing of the whole table."""
        return self.file.missing_codes if self.file else ()

    def file_section(self) -> dict[str, Any]:
        """The section ``file`` of the schema, if there is anything to declare."""
        if self.file is None:
            return {}
        fields = msgspec.to_builtins(self.file)
        return {"file": {**{name: fields[name] for name in fields if name != "provenance"}, "provenance": "data"}}


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────


def describe_encoding(data: Any, syntax: FileSyntax = PLAIN_FILE) -> list[str]:
    """Sentences about text that is not in the declared encoding; none if all of it is, or if there is no text file."""
    path = _text_file(data)
    if path is None or not normalize_encoding(syntax.encoding).startswith("utf-8"):
        return []
    problem = find_invalid_text(path, MAX_SEARCHED_BYTES)
    if problem is None:
        return []
    line, text = problem
    guess = guess_encoding(text)
    return [
        f"line {line:,} is not UTF-8, so its cells are read as unreadable; it looks like {_describe(guess)}: declare "
        f"file: {{encoding: {guess}}} in the schema"
    ]


def detect_file(data: Any, given: Mapping[str, Any]) -> tuple[FileSyntax, list[str]]:
    """The encoding and the separator of a text file, with notes; what is given overrules what is detected."""
    path = _text_file(data)
    found: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    notes: list[str] = []
    if path is None:
        return FileSyntax(**found), notes
    if "encoding" not in found:
        encoding = _ENCODINGS.get(start_of_text(path)[:2])
        problem = None if encoding else find_invalid_text(path, MAX_SEARCHED_BYTES)
        if problem is not None:
            line, text = problem
            encoding = guess_encoding(text)
            notes.append(
                f"line {line:,} is not UTF-8; it looks like {_describe(encoding)}, and is read so. If letters look "
                "wrong, give another encoding, such as cp850"
            )
        found |= {"encoding": encoding} if encoding else {}
    syntax = FileSyntax(**found)
    if syntax.separator is None:
        separator: str = getattr(open_source(data, syntax=syntax), "separator", ",")
        syntax = syntax if separator == "," else msgspec.structs.replace(syntax, separator=separator)
    return syntax, notes


def guess_encoding(raw: bytes) -> str:
    """The most likely encoding of text that is not UTF-8.

    Windows-1252 is the usual one in Western Europe and includes all letters of Latin-1. If its letters make no sense,
    the text may come from the command line of Windows or DOS (code page 850).
    """
    high = bytes(byte for byte in raw if byte >= 128)
    windows = len(_WINDOWS_LETTERS.findall(high.decode("cp1252", "replace")))
    dos = len(_WINDOWS_LETTERS.findall(high.decode("cp850", "replace"))) if b"\x81" in high or b"\x8d" in high else 0
    return "cp850" if dos > windows else "cp1252"


def _describe(encoding: str) -> str:
    return {"cp1252": "windows-1252 (cp1252)", "cp850": "code page 850 of DOS (cp850)"}.get(encoding, encoding)


def _text_file(data: Any) -> Path | None:
    """The path of a single text file; None for any other table."""
    if not isinstance(data, str | os.PathLike):
        return None
    path = Path(data)
    suffixes = {suffix.lower() for suffix in path.suffixes}
    return path if path.is_file() and suffixes & {".csv", ".tsv"} else None


# ── cells ────────────────────────────────────────────────────────────────────────────────────────────────────


def detect_syntax(source: Source, file: FileSyntax, given: Mapping[str, Any]) -> DetectedSyntax:
    """The signs of numbers and the codes for missing of a table, from its first rows.

    ``file`` is what is known about its files, and ``given`` what the data owner stated about cells.
    """
    texts = _count_texts(source)
    typed = bool(getattr(source, "has_typed_cells", False))
    codes = {name: _find_codes(counts) for name, counts in texts.items()}
    words = {code for found in codes.values() for code in found if read_number(code) is None}
    codes = {name: [*codes[name], *(word for word in words if word in counts and word not in codes[name])]
             for name, counts in texts.items()}  # fmt: skip
    declared = missing_codes(source)
    codes = {name: [] if name in declared else found for name, found in codes.items()}
    if given.get("missing") is not None:
        codes = {name: list(file.missing_codes) for name in texts}
    signs = {} if typed else {
        name: found
        for name, counts in texts.items()
        if (found := _guess_signs([t for t in counts if t not in codes[name]], given.get("decimal")))
    }  # fmt: skip
    file = _common_signs(file, signs.values(), given)
    signs = {name: each for name, each in signs.items() if _is_measure(texts[name]) or _are_those_of(file, each)}
    listed = sorted({code for found in codes.values() for code in found}, key=_code_order)
    if listed and given.get("missing") is None:
        file = msgspec.structs.replace(file, missing=tuple(_as_value(code) for code in listed))
    notes = []
    if listed:
        columns = sum(bool(found) for found in codes.values())
        notes.append(
            f"read as missing in {columns} column{'s' * (columns != 1)}: {', '.join(listed)} (file: missing); remove a "
            "code there if it is a value"
        )
    codes |= {name: [*codes[name], *declared[name]] for name in declared if name in codes}
    respellings = {
        name: respell_column(signs.get(name, PLAIN_NUMBERS), codes[name])
        for name in texts
        if codes[name] or name in signs
    }
    return DetectedSyntax(
        file=None if file == PLAIN_FILE else msgspec.structs.replace(file, provenance="data"),
        columns={**{name: PLAIN_NUMBERS for name in texts if _are_plain_decimals(texts[name])}, **signs},
        respellings=respellings,
        notes=tuple(notes),
    )


def _count_texts(source: Source) -> dict[str, Counter[str]]:
    """The distinct cells of each column of texts or numbers, among the first rows."""
    kinds = {field.name: arrays.value_type(field.type) for field in source.schema}
    names = [name for name, kind in kinds.items() if arrays.is_text(kind) or arrays.is_number(kind)]
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    rows = 0
    for batch in source.batches(names) if names else ():
        for name in names:
            if len(counts[name]) < MAX_SAMPLED_TEXTS:
                counts[name].update(_texts_of(batch.column(name)))
        rows += batch.num_rows
        if rows >= MAX_SAMPLED_ROWS:
            break
    return counts


def _texts_of(array: pa.Array) -> Counter[str]:
    counts: Counter[str] = Counter()
    for pair in entry_texts(array).value_counts().to_pylist():
        if pair["values"] is not None and not is_blank(text := text_of_bytes(pair["values"]).strip()):
            counts[text] += pair["counts"]
    return counts


def _find_codes(counts: Counter[str]) -> list[str]:
    """A few words in a column of numbers, which are codes for missing; numbers that are codes get a remark instead."""
    numbers = {text for text in counts if _read_any_number(text) is not None}
    words = [text for text in counts if text not in numbers]
    total = counts.total()
    if not numbers or sum(counts[text] for text in words) > (1 - MIN_NUMBERS) * total or len(words) > MAX_TEXT_CODES:
        return []
    if total < MIN_CELLS or not all(re.fullmatch(r"[^\W\d_][^\d]*", word) for word in words):
        return []  # too few to judge, or amounts with signs of another kind
    return words


def _read_any_number(text: str) -> float | None:
    """A number with either decimal sign; signs between thousands do not matter for its sign."""
    plain = text.strip("%€$£ \u00a0")
    return read_number(re.sub(f"[.,'’{SPACES}](?=[0-9]{{3}})", "", plain).replace(",", "."))


def _guess_signs(texts: Sequence[str], decimal: str | None) -> NumberSigns | None:
    """The signs by which all texts are numbers; None if plain signs do, or if none do."""
    if not texts or (all(read_number(text) is not None for text in texts) and decimal in (None, ".")):
        return None
    if all(NOT_NUMBERS.fullmatch(text) for text in texts):
        return None
    symbol = next((sign for sign in _SYMBOLS if sum(sign in text for text in texts) * 2 > len(texts)), "")
    for mark in (decimal,) if decimal else (",", "."):
        for thousands in ("", *(sign for sign in (".", ",", " ", "'") if sign != mark)):
            signs = NumberSigns(decimal=mark, thousands=thousands, symbol=symbol)
            if _all_fit(texts, signs) and (decimal or _is_needed(texts, signs)):
                return signs
    return None


def _all_fit(texts: Sequence[str], signs: NumberSigns) -> bool:
    plain = respell_column(signs, [])(pa.array([text.encode() for text in texts], pa.binary()))
    return all(read_number(text_of_bytes(cell)) is not None for cell in plain.to_pylist())


def _is_needed(texts: Sequence[str], signs: NumberSigns) -> bool:
    """Whether the texts contain a sign that is not plain: 1.234 alone may well be a number with three decimals."""
    inside = "".join(texts)
    shown = [signs.symbol] if signs.symbol else []
    shown += [signs.decimal] if signs.decimal == "," else []
    if signs.thousands and signs.thousands != ".":
        shown.append(signs.thousands)
    return any(sign in inside for sign in shown) or (
        signs.thousands == "." and any(text.count(".") > 1 for text in texts)
    )


def _are_plain_decimals(counts: Counter[str]) -> bool:
    """Whether a column has numbers with decimal points, which a file with decimal commas must declare."""
    return (
        bool(counts) and any("." in text for text in counts) and all(read_number(text) is not None for text in counts)
    )


def _common_signs(file: FileSyntax, columns: Iterable[NumberSigns], given: Mapping[str, Any]) -> FileSyntax:
    """The file with the signs that most of its columns have; other columns declare their own."""
    columns = list(columns)
    if not columns:
        return file
    decimals = Counter(signs.decimal for signs in columns)
    decimal = given.get("decimal") or decimals.most_common(1)[0][0]
    groups = Counter(signs.thousands for signs in columns if signs.thousands and signs.thousands != decimal)
    return msgspec.structs.replace(file, decimal=decimal, thousands=groups.most_common(1)[0][0] if groups else "")


def _is_measure(counts: Counter[str]) -> bool:
    """Whether a column has so many texts that it is drafted as a number; a list of texts has no signs."""
    return len(counts) > MAX_LISTED or any(re.search("[.,][0-9]{1,2}(?![0-9])", text) for text in counts)


def _are_those_of(file: FileSyntax, signs: NumberSigns) -> bool:
    return not signs.symbol and signs.decimal == file.decimal and signs.thousands in ("", file.thousands)


def _code_order(code: str) -> tuple[bool, float, str]:
    number = read_number(code)
    return number is None, -(number or 0.0), code


def _as_value(code: str) -> str | int:
    return int(code) if re.fullmatch("-?[1-9][0-9]*|0", code) else code


# ── dates ────────────────────────────────────────────────────────────────────────────────────────────────────


def guess_mixed_dates(name: str, profile: ColumnProfile) -> tuple[dict[str, Any], str] | None:
    """The fields of a column of dates in several formats, and a comment; None if it is not one."""
    found = detect_mixed_formats(list(profile.counts))
    if found is None:
        return None
    formats, dates = found
    fields = {"kind": "datetime", "start": f"{min(dates).year:04}-01-01", "end": f"{max(dates).year:04}-12-31"}
    fine = any((date.hour, date.minute, date.second) != (0, 0, 0) for date in dates)
    return {
        **fields,
        **({"resolution": "minute"} if fine else {}),
        "format": formats[0] if len(formats) == 1 else formats,
    }, "earliest and latest possible"


def detect_mixed_formats(texts: Sequence[str]) -> tuple[list[str], list[dt.datetime]] | None:
    """Several formats in which all texts are dates, and the dates; None if there are none. ISO 8601 needs no format.

    The format of most texts comes first.
    """
    iso = {text: instant for text in texts if looks_iso(text) and (instant := parse_instant(text))}
    left = [text for text in texts if text not in iso]
    formats: list[str] = []
    dates = list(iso.values())
    while left and len(formats) < MAX_MIXED_FORMATS:
        readings = {form: _read_all(left, form) for form in DATE_FORMATS}
        form = max(DATE_FORMATS, key=lambda each: len(readings[each]))
        if not readings[form]:
            return None
        formats.append(form)
        dates += readings[form].values()
        left = [text for text in left if text not in readings[form]]
    return None if left or not formats else (formats, dates)


def _read_all(texts: Iterable[str], form: str) -> dict[str, dt.datetime]:
    return {text: date for text in texts if (date := read_date(text, form))}
