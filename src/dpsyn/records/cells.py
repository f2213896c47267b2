"""How one text cell is read. This is the specification; ``columns`` reads whole arrays by it, faster.

A cell is always read by itself: what it becomes never depends on the cells around it. Otherwise one person's
row could change the codes of another's, and a marginal would have more than its sensitivity.
"""

from __future__ import annotations

import math
import re

from dpsyn.schema import Value

_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_WHOLE = re.compile(r"[-+]?[0-9]+", re.ASCII)
_INFINITE = re.compile(r"[-+]?inf(?:inity)?", re.ASCII | re.IGNORECASE)
_MOST_DIGITS = 4_000
"""Python refuses to read much longer numbers; they are infinite for our purposes."""

TRUE = frozenset({"true", "t", "yes", "y", "1", "1.0", "on"})
FALSE = frozenset({"false", "f", "no", "n", "0", "0.0", "off"})


def text_of_bytes(raw: bytes) -> str:
    """Text of any bytes; those that are not UTF-8 become replacement marks."""
    return raw.decode("utf-8", errors="replace")


def text_of_cell(value: object) -> str | None:
    """The text of a cell of any type, in the spelling that categories are compared in; None if it is null."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return text_of_bytes(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def bytes_of_object(value: object) -> bytes | None:
    """The text of any Python object as bytes; a replacement mark for one that has none, whatever the reason."""
    try:
        if str(value) in ("<NA>", "NaT") and type(value).__module__.startswith("pandas"):
            return None
        text = text_of_cell(value)
        return None if text is None else text.encode("utf-8", "replace")
    except Exception:  # an object's own methods may raise anything, and one cell must not stop the reading
        return "\ufffd".encode()


def read_number(text: str) -> int | float | None:
    """A number in plain or scientific notation; None if it is not one.

    Spaces around it do not matter. Groups of digits ("1,234") are not read, because the comma is a decimal
    sign to half of the world.
    """
    bare = text.strip()
    if _WHOLE.fullmatch(bare) and len(bare) <= _MOST_DIGITS:
        return int(bare)
    if _NUMBER.fullmatch(bare) or _INFINITE.fullmatch(bare):
        return float(bare)
    return None


def read_boolean(text: str) -> bool | None:
    """A truth value in one of its usual spellings; None if it is not one."""
    word = text.strip().lower()
    if word in TRUE:
        return True
    return False if word in FALSE else None


def is_blank(text: str) -> bool:
    """Whether a cell holds nothing, or a float's not-a-number, which means the same."""
    return text.strip().lower() in ("", "nan", "-nan", "+nan")


def numeric(values: tuple[Value, ...]) -> bool:
    """Whether all values are numbers, so that cells can be compared with them as numbers."""
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
