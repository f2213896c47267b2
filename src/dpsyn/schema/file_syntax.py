"""How the files of a table are written: encoding, separator, decimal sign, codes for missing."""

from __future__ import annotations

import codecs

import msgspec

from dpsyn.errors import SchemaError, quote_argument
from dpsyn.schema.attributes import canonical_text
from dpsyn.schema.relations import Statement

UNICODE = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")
"""The encodings of more than one byte that are read."""

_PROBE_TEXT = r"\n\x41\u0041" + "".join(map(chr, range(128)))
_PROBE = _PROBE_TEXT.encode() + bytes(range(128, 256))
"""Every byte, and texts that some codecs of Python take for escapes."""

SPACES = " \u00a0\u2009\u202f"
"""The spaces that programs write between groups of digits; one of them stands for all."""

_DECIMAL_SIGNS = ".,"
_THOUSANDS_SIGNS = f".,'’_{SPACES}"
_QUOTES = "\"'"


def require_text(value: object, field: str) -> None:
    """Refuse a value that is not text, such as a table in the wrong position."""
    if not isinstance(value, str):
        raise SchemaError(f"{field} is {quote_argument(value)}; it must be text", (field,))


class NumberSigns(msgspec.Struct, frozen=True, kw_only=True):
    """The signs in the texts of numbers.

    Attributes:
        decimal: the sign before the decimals.
        thousands: the sign between groups of three digits; empty if there is none.
        symbol: what stands before or after each number and is no part of it, such as ``%``; empty if there is none.
    """

    decimal: str = "."
    thousands: str = ""
    symbol: str = ""

    def __post_init__(self) -> None:
        for sign in ("decimal", "thousands", "symbol"):
            require_text(getattr(self, sign), sign)
        if self.decimal not in _DECIMAL_SIGNS or len(self.decimal) != 1:
            raise SchemaError(f"decimal is {quote_argument(self.decimal)}; it must be '.' or ','", ("decimal",))
        if self.thousands and (self.thousands not in _THOUSANDS_SIGNS or len(self.thousands) != 1):
            raise SchemaError(
                f"thousands is {quote_argument(self.thousands)}; it must be '.', ',', an apostrophe, '_' or a space",
                ("thousands",),
            )
        if self.thousands == self.decimal:
            raise SchemaError(
                f"{self.decimal!r} is both the decimal sign and the sign between thousands; change one of them",
                ("thousands",),
            )
        if self.symbol != self.symbol.strip() or any(letter in "0123456789+-.," for letter in self.symbol):
            raise SchemaError(
                f"symbol is {quote_argument(self.symbol)}; it must be a sign such as % or €, without digits or signs "
                "of numbers, and without spaces around it",
                ("symbol",),
            )

    @property
    def are_plain(self) -> bool:
        """Whether these are the signs of numbers that need no declaration."""
        return self == PLAIN_NUMBERS


PLAIN_NUMBERS = NumberSigns()


class FileSyntax(Statement, frozen=True, kw_only=True):
    """How the files of a table are written. A release reads them as declared here, and never guesses.

    Attributes:
        encoding: the encoding of text files, such as cp1252 (Windows), latin-1 or utf-16; utf-8 if left out.
        separator: the character between the cells of a text file; if left out, the one of , ; | and tab that is most
            frequent in the first line.
        quote: the character around cells of a text file that contain a separator or a line break.
        decimal: the decimal sign of numbers that are text, a point or a comma.
        thousands: the sign between groups of three digits of numbers that are text, such as a point; none if left out.
        missing: the codes that mean an empty cell, in all columns, such as -9 or "k.A."; an attribute in whose domain a
            code is keeps it as a value.
        sheet: the sheet of a spreadsheet; the first one if left out.
    """

    encoding: str = "utf-8"
    separator: str | None = None
    quote: str = '"'
    decimal: str = "."
    thousands: str = ""
    missing: str | int | float | tuple[str | int | float, ...] = ()
    sheet: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for part in (
            "encoding",
            "quote",
            *(name for name in ("separator", "sheet") if getattr(self, name) is not None),
        ):
            require_text(getattr(self, part), part)
        for code in self.missing if isinstance(self.missing, tuple) else (self.missing,):
            if not isinstance(code, str | int | float):
                raise SchemaError(f"missing is {quote_argument(code)}; list texts or numbers", ("missing",))
        require_encoding(self.encoding)
        if self.quote not in _QUOTES or len(self.quote) != 1:
            raise SchemaError(f"quote is {quote_argument(self.quote)}; it must be \" or '", ("quote",))
        if self.separator is not None:
            require_separator(self.separator)
            if self.separator == self.quote:
                raise SchemaError("the separator is also the quote; change one of them", ("separator",))
        NumberSigns(decimal=self.decimal, thousands=self.thousands)  # refuses signs that contradict each other

    @property
    def missing_codes(self) -> tuple[str, ...]:
        """The codes for missing, as texts."""
        given = self.missing if isinstance(self.missing, tuple) else (self.missing,)
        return tuple(text for code in given if (text := canonical_text(code).strip()))


def require_encoding(name: str) -> None:
    """Refuse an encoding in which a damaged character could hide a separator or a line break.

    Privacy: then one row could change how the next one is read. In UTF-8, in UTF-16 and in encodings of one byte per
    character whose first half is ASCII, a character never takes in what follows it.
    """
    try:
        known = codecs.lookup(name).name
        decoded = _PROBE.decode(known, "surrogateescape") if known not in UNICODE else _PROBE_TEXT
    except Exception:  # a codec may raise anything, and some of Python's are not about text
        known, decoded = "", ""
    if known in UNICODE or (len(decoded) == len(_PROBE) and decoded.startswith(_PROBE_TEXT)):
        return
    raise SchemaError(
        f"encoding {quote_argument(name)} is not supported; use utf-8, utf-16, or one of a byte per character such as "
        "cp1252, latin-1 or cp850; convert other files to UTF-8",
        ("encoding",),
    )


def require_separator(separator: str) -> None:
    """Refuse a separator that is no single character, or that could be a part of a name or a number."""
    if len(separator) != 1 or not (separator == "\t" or (separator.isascii() and separator.isprintable())):
        raise SchemaError(
            f'separator is {quote_argument(separator)}; it must be one character, such as ";" or "\\t"', ("separator",)
        )
    if separator.isalnum() or separator in '"':
        raise SchemaError(
            f"separator is {quote_argument(separator)}; letters, digits and quotes cannot be one", ("separator",)
        )


def normalize_encoding(name: str) -> str:
    """The name under which Python knows an encoding, such as cp1252 for Windows-1252."""
    return codecs.lookup(name).name


PLAIN_FILE = FileSyntax()
"""How files are read if a schema declares nothing."""
