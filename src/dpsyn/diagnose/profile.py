"""A profile of one column, for the draft of a schema.

Privacy: it describes private rows without privacy protection, for the data owner only.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import statistics
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dpsyn.encoding import entry_parser
from dpsyn.encoding.arrays import as_binary, instant_texts, is_instant, is_text
from dpsyn.schema import parse_clock, parse_instant
from dpsyn.schema.attributes import MISSING, NULL_SPELLINGS

MAX_DISTINCT_VALUES = 5_000
"""Distinct values of a column that are stored; beyond that, only their type and range are tracked."""

NULL_LIKE_TEXTS = frozenset({*NULL_SPELLINGS, "?", "-", ".", "--"})
"""Texts that a person would read as an empty cell."""

DATE_FORMATS = (
    "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d.%m.%y", "%m-%d-%Y", "%d-%m-%Y", "%Y/%m/%d", "%d %b %Y", "%d-%b-%Y",
    "%d %B %Y", "%m/%d/%Y %H:%M", "%m/%d/%Y %I:%M:%S %p", "%d/%m/%Y %H:%M", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S",
)  # fmt: skip
"""Date formats that are tried if ISO 8601 does not fit; the first that fits all cells is used, or several of them."""


MISSING_CODES = frozenset(
    {sign * int(digit * length) for digit in "789" for length in range(1, 10) for sign in (1, -1)}
    | {sign * (10**length - below) for length in range(2, 10) for below in range(1, 6) for sign in (1, -1)}
    | set(range(-9, 0))
)
"""Numbers that code books use for *no answer* or *not applicable*: 9, 99, 998, -1 … -9, -99, 8888."""

MAX_GRADES = 20
"""Distinct whole numbers up to which a column is considered grades or codes rather than amounts."""


class ColumnProfile:
    """The distinct texts of a column, and the types that all of them can be read as.

    ``has_levels`` states that the levels of a dictionary are those of the column's type, including unused ones, and
    not merely the texts that occur.
    """

    def __init__(self, *, has_levels: bool = False) -> None:
        self.rows = 0
        self.levels: dict[str, None] | None = {} if has_levels else None
        self.ordered = False
        self.code_texts: dict[float, set[str]] = {}
        self.codes: tuple[float, ...] = ()
        self.counts: Counter[str] = Counter()
        self.crowded = False
        self.empties: Counter[str] = Counter()
        self.whole = self.number = self.truth = self.instant = self.clock = True
        self.padded = self.endless = False
        self.decimals = 0
        self.low: float | None = None
        self.high: float | None = None
        self.first: dt.datetime | None = None
        self.last: dt.datetime | None = None
        self.grain = "day"
        self.formats = list(DATE_FORMATS)

    @property
    def filled_cells(self) -> int:
        """The number of cells that are not empty."""
        return self.rows - self.empties.total()

    @property
    def distinct(self) -> int:
        """The number of distinct values that were stored."""
        return len(self.counts)

    def add(self, array: pa.Array) -> None:
        """Add more cells."""
        self.rows += len(array)
        if pa.types.is_dictionary(array.type) and self.levels is not None:
            texts = map(entry_parser.text_of_entry, _countable(array.dictionary).to_pylist())
            self.levels |= dict.fromkeys(text.strip() for text in texts if text is not None)
            self.ordered = array.type.ordered
        for value, count in _count_values(array):
            text = entry_parser.text_of_entry(value)
            self._add_text(text if text is None else text.strip(), count)

    def finish(self) -> None:
        """Decide which texts count as empty, now that all are known: codes of missing values, and ``missing``.

        A schema cannot list the text ``missing`` as a value if other cells are empty.
        """
        self.codes = self._find_missing_codes() if self.number else ()
        for number, texts in self.code_texts.items():
            if number in self.codes:
                for text in texts:
                    self.empties[text] += self.counts.pop(text, 0)
            elif self.number:
                self._extend_bounds(number)
        if self.empties and MISSING in self.counts:
            self.empties[MISSING] = self.counts.pop(MISSING)

    def _find_missing_codes(self) -> tuple[float, ...]:
        """The numbers that look like codes of missing values: usual codes that are apart from all other numbers."""
        others = [count for text, count in self.counts.items() if entry_parser.read_number(text) not in self.code_texts]
        if self.low is None or self.high is None or len(others) < 2:
            return ()
        negative = sorted(code for code in self.code_texts if code < 0)
        above = sorted(code for code in self.code_texts if code > self.high)
        runs = [negative] if negative and self.low >= 0 and (self.low - negative[-1] > 1 or len(negative) == 1) else []
        if above and above[0] - self.high >= max(2, above[0] / 10):
            runs.append(above)
        min_count = 2 if len(self.counts) <= MAX_GRADES else max(2, statistics.median(others))
        counts = {code: sum(self.counts[text] for text in texts) for code, texts in self.code_texts.items()}
        return tuple(code for run in runs for code in run if sum(counts[each] for each in run) >= min_count)

    def _add_text(self, text: str | None, count: int) -> None:
        if text is None or text in NULL_LIKE_TEXTS:
            self.empties[text or ""] += count
            return
        known = text in self.counts
        if known or not self.crowded:
            self.counts[text] += count
            self.crowded = self.distinct > MAX_DISTINCT_VALUES
        if not known:
            self._consider(text)

    def _consider(self, text: str) -> None:
        """Exclude the types that this text cannot be read as."""
        if self.number:
            self._consider_number(text)
        self.truth = self.truth and text.lower() in ("true", "false", "yes", "no", "t", "f", "y", "n")
        if self.clock:
            self._consider_clock(text)
        if self.instant:
            self._consider_instant(text)
        if self.formats and not self.instant:
            self.formats = [form for form in self.formats if self._matches_format(text, form)]

    def _consider_number(self, text: str) -> None:
        number = entry_parser.read_number(text)
        if number is None:
            self.number = self.whole = False
            return
        if abs(number) == math.inf:  # beyond every bound, so it does not extend the range
            self.endless = True
            return
        number = int(number) if number == int(number) else number
        if number in MISSING_CODES:
            self.code_texts.setdefault(number, set()).add(text)
        else:
            self._extend_bounds(number)
        self.decimals = max(self.decimals, _count_decimals(number))
        self.whole = self.decimals == 0
        self.padded = self.padded or bool(re.match(r"[-+]?0[0-9]", text))

    def _extend_bounds(self, number: float) -> None:
        self.low = number if self.low is None else min(self.low, number)
        self.high = number if self.high is None else max(self.high, number)

    def _consider_instant(self, text: str) -> None:
        instant = parse_instant(text) if looks_iso(text) else None
        if instant is None:
            self.instant = False
            self.formats = [
                form for form in DATE_FORMATS if all(self._matches_format(known, form) for known in self.counts)
            ]
        else:
            self._extend_range(instant)

    def _consider_clock(self, text: str) -> None:
        micros = parse_clock(text)
        self.clock = micros is not None
        if micros and micros % 60_000_000:
            self.grain = "second"

    def _matches_format(self, text: str, form: str) -> bool:
        instant = read_date(text, form)
        if instant is None:
            return False
        self._extend_range(instant)
        return True

    def _extend_range(self, instant: dt.datetime) -> None:
        self.first = instant if self.first is None else min(self.first, instant)
        self.last = instant if self.last is None else max(self.last, instant)
        if instant.second or instant.microsecond:
            self.grain = "second"
        elif (instant.hour or instant.minute) and self.grain == "day":
            self.grain = "minute"


def looks_iso(text: str) -> bool:
    """Whether a text may be a date in a form of ISO 8601, rather than a long number."""
    return bool(re.match(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}", text)) and not re.fullmatch(r"[0-9]{9,}", text)


def read_date(text: str, form: str) -> dt.datetime | None:
    """The date that a text is in a format; None if it is none."""
    if not text.isascii():  # Python reads the digits of all scripts, Arrow only ASCII digits
        return None
    if form.endswith("%y") and len(text) != len("14.04.21"):  # 1.2.10 is more likely a version than a date
        return None
    try:
        return dt.datetime.strptime(text, form)
    except ValueError:
        return None


def _count_values(array: pa.Array) -> Iterable[tuple[Any, int]]:
    """The values of an array with their numbers of cells; a value may occur more than once."""
    if pa.types.is_dictionary(array.type):
        values = _countable(array.dictionary).to_pylist()
        return [(None if index is None else values[index], count) for index, count in _count_values(array.indices)]
    array = _countable(array)
    try:
        return [(entry["values"], entry["counts"]) for entry in pc.value_counts(array).to_pylist()]
    except pa.ArrowNotImplementedError:  # not implemented for narrow decimals so far
        return Counter(array.to_pylist()).items()


def _countable(array: pa.Array) -> pa.Array:
    """The same cells in a type that can be counted, and whose texts are those that categories are compared with."""
    if is_text(array.type):
        return as_binary(array)
    if is_instant(array.type) or pa.types.is_time(array.type):
        return instant_texts(array)
    return entry_parser.entry_texts(array) if pa.types.is_duration(array.type) else array


def _count_decimals(number: float) -> int:
    """Digits after the decimal point."""
    return 0 if isinstance(number, int) else max(0, -int(Decimal(repr(number)).normalize().as_tuple().exponent))
