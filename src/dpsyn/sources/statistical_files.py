"""Files of statistics programs, read by ReadStat: SPSS (.sav, .zsav), Stata (.dta), SAS (.sas7bdat, .xpt).

They hold a code book, too: labels of columns and of values, and codes for missing values. It is public metadata, which
a draft takes into the schema. A release does not need it: it reads values as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from dpsyn.errors import MissingExtraError, SourceError
from dpsyn.schema.file_syntax import PLAIN_FILE, FileSyntax
from dpsyn.sources.files import FilePiece, redact_path
from dpsyn.sources.source import attempt, guard_batches

CHUNK_ROWS = 1 << 18
"""Rows that are read at a time; the reader starts anew for each part, so parts are large."""

READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}

_BROKEN = "it may be damaged, or its format may not match its suffix"

_EPOCHS = {"sav": "1582-10-14", "dta": "1960-01-01", "sas": "1960-01-01"}
_SPSS_DATES = ("DATE", "ADATE", "EDATE", "SDATE", "JDATE", "QYR", "MOYR", "WKYR")
_SAS_DATES = r"(DATE|DAY|(DD)?MMDDYY|DDMMYY[BCDNPS]?|MMDDYY[BCDNPS]?|YYMMDD[BCDNPS]?|[EB]8601DA|WORDDATX?|JULIAN|MONYY)"
_SAS_DATETIMES = r"(DATETIME|[EB]8601D[TZ]|DATEAMPM|MDYAMPM)"
_SAS_TIMES = r"(TIME|HHMM|TOD|TIMEAMPM|[EB]8601TM)"

_MIN_DAY, _MAX_DAY = -719_162, 2_932_896
"""The days of the years 1 … 9999, since 1970; dates further out are moved to the nearer one."""
_DAY_MICROS = 86_400_000_000

Moment = Literal["date", "datetime", "time"]


@dataclass(frozen=True, slots=True)
class CodeBook:
    """The public metadata of a file.

    Attributes:
        labels: the description of each column that has one.
        value_labels: for each column with labelled values, the label of each value.
        missing: for each column with codes for missing values, single codes, and the ends of ranges of them.
        ordinal: the columns whose values have an order.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    value_labels: Mapping[str, Mapping[Any, str]] = field(default_factory=dict)
    missing: Mapping[str, Sequence[tuple[Any, Any]]] = field(default_factory=dict)
    ordinal: frozenset[str] = frozenset()


class StatisticalFileSource:
    """A file of SPSS, Stata or SAS; values that its code book calls missing stay values, which a schema declares.

    Privacy: texts are decoded here, not by the reader, and dates are computed here, because the reader would fail on a
    single text in another encoding or on a date after the year 9999.
    """

    rereadable = True

    def __init__(self, path: Path, syntax: FileSyntax = PLAIN_FILE) -> None:
        self.label = redact_path(path)
        self.byte_size: int | None = path.stat().st_size
        self._path, self._syntax = path, syntax
        self.paths = (path,)
        if not path.is_file():
            raise SourceError(f"{self.label} is not a file; give the path of a file of SPSS, Stata or SAS")
        self._program = {".sav": "sav", ".zsav": "sav", ".dta": "dta"}.get(path.suffix.lower(), "sas")
        self._options: dict[str, Any] = {"user_missing": True} if self._program == "sav" else {}
        options = self._options | self._stated_encoding()
        meta = attempt(lambda: self._call(metadataonly=True, **options)[1], self.label, _BROKEN)
        self._encoding = syntax.encoding if self._stated_encoding() else (meta.file_encoding or "utf-8")
        self._moments = {name: kind for name in meta.column_names if (kind := self._moment(meta, name))}
        texts = {name for name in meta.column_names if meta.readstat_variable_types.get(name) == "string"}
        kinds = {"date": pa.date32(), "datetime": pa.timestamp("us"), "time": pa.time64("us")}
        self.schema = pa.schema(
            [
                (name, pa.large_binary() if name in texts else kinds.get(self._moments.get(name, ""), pa.float64()))
                for name in meta.column_names
            ]
        )
        self.code_book = _read_code_book(meta)

    def _stated_encoding(self) -> dict[str, str]:
        return {} if self._syntax.encoding == PLAIN_FILE.encoding else {"encoding": self._syntax.encoding}

    def _call(self, **options: Any) -> Any:
        pyreadstat = _import_pyreadstat()
        return getattr(pyreadstat, READERS[self._path.suffix.lower()])(str(self._path), output_format="dict", **options)

    def _moment(self, meta: Any, name: str) -> Moment | None:
        """Whether a column of numbers holds dates, dates with times, or times of day, by its declared format."""
        shown = (meta.original_variable_types.get(name) or "").upper()
        form = re.sub("[0-9.]*$", "", shown)
        if meta.readstat_variable_types.get(name) == "string":
            return None
        if self._program == "dta":
            if shown.startswith(("%TCHH", "%-TCHH")):
                return "time"
            return "date" if shown.startswith(("%TD", "%D", "%-TD")) else "datetime" if "%TC" in shown else None
        if self._program == "sav":
            kinds: dict[str, Moment] = dict.fromkeys(_SPSS_DATES, "date") | {"TIME": "time"}  # type: ignore[assignment]
            return kinds.get(form, "datetime" if form in ("DATETIME", "YMDHMS") else None)
        for pattern, kind in ((_SAS_DATETIMES, "datetime"), (_SAS_DATES, "date"), (_SAS_TIMES, "time")):
            if re.fullmatch(pattern, form):
                return kind  # type: ignore[return-value]
        return None

    def pieces(self) -> list[FilePiece]:
        """The file as a whole."""
        return [FilePiece(path=str(self._path), syntax=self._syntax)]

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows."""
        return guard_batches(lambda: self._read(columns), self.label, _BROKEN)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        raw_names = {name: name.encode(self._encoding, "replace").decode("latin-1") for name in columns}
        offset = 0
        while True:
            cells, _ = self._call(
                row_offset=offset,
                row_limit=CHUNK_ROWS,
                usecols=list(raw_names.values()),
                encoding="LATIN1",  # every byte is a character, so no text can fail
                disable_datetime_conversion=True,
                **self._options,
            )
            rows = len(next(iter(cells.values()), ()))
            if not rows:
                return
            arrays = [self._array(name, cells[raw_names[name]]) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))
            offset += rows
            if rows < CHUNK_ROWS:
                return

    def _array(self, name: str, cells: Sequence[Any]) -> pa.Array:
        kind = self.schema.field(name).type
        if pa.types.is_large_binary(kind):
            return pa.array([_decode(cell, self._encoding) for cell in cells], kind)
        numbers = np.array([np.nan if cell is None else cell for cell in cells], np.float64)
        missing = np.isnan(numbers)
        if name not in self._moments:
            return pa.array(numbers, mask=missing)
        micros = self._microseconds(name, np.nan_to_num(numbers, posinf=1e30, neginf=-1e30))
        if self._moments[name] == "time":
            missing |= (micros < 0) | (micros >= _DAY_MICROS)
            return pa.array(np.where(missing, 0, micros).astype(np.int64), mask=missing).view(kind)
        if self._moments[name] == "date":
            return pa.array((micros // _DAY_MICROS).astype(np.int32), mask=missing).view(kind)
        return pa.array(micros.astype(np.int64), mask=missing).view(kind)

    def _microseconds(self, name: str, numbers: Any) -> Any:
        """Microseconds since 1970, or since midnight, of the numbers by which a program counts days or seconds."""
        if self._moments[name] == "time":
            return np.clip(np.rint(numbers * (1e3 if self._program == "dta" else 1e6)), -1, _DAY_MICROS)
        days_since_1970 = int(np.datetime64(_EPOCHS[self._program], "D").astype(np.int64))
        unit = _DAY_MICROS if self._moments[name] == "date" and self._program != "sav" else 1_000_000
        unit = 1_000 if self._program == "dta" and self._moments[name] == "datetime" else unit
        low, high = ((day - days_since_1970) * _DAY_MICROS for day in (_MIN_DAY, _MAX_DAY))
        clipped = np.clip(numbers * unit, low, high)
        return np.rint(clipped).astype(np.int64) + days_since_1970 * _DAY_MICROS


def _decode(cell: str | None, encoding: str) -> bytes | None:
    """A text that was read as Latin-1, in UTF-8; bytes that the encoding lacks stay, and are unreadable."""
    if cell is None:
        return None
    raw = cell.encode("latin-1", "replace")
    if encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
        return raw
    try:
        return raw.decode(encoding, "surrogateescape").encode("utf-8", "surrogatepass")
    except (LookupError, UnicodeError):
        return raw


def _read_code_book(meta: Any) -> CodeBook:
    ranges = {
        name: [(each["lo"], each["hi"]) for each in given]
        for name, given in (meta.missing_ranges or {}).items()
        if given
    }
    return CodeBook(
        labels={name: label for name, label in (meta.column_names_to_labels or {}).items() if label},
        value_labels=dict(meta.variable_value_labels or {}),
        missing=ranges,
        ordinal=frozenset(name for name, kind in (meta.variable_measure or {}).items() if kind == "ordinal"),
    )


def _import_pyreadstat() -> Any:
    try:
        import pyreadstat
    except ImportError:
        raise MissingExtraError("pyreadstat", "office", "reading a file of SPSS, Stata or SAS") from None
    return pyreadstat
