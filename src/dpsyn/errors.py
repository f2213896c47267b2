"""Every exception DPSyn raises on purpose.

DPSynError
├── UserError             the caller can fix it; the command line exits with 2
│   ├── DocumentError     an entry of a file that people write is not valid; it carries the path of the entry
│   │   ├── SchemaError   a schema, or a line of its file, is not valid
│   │   └── PlanError     a plan, or a line of its file, is not valid or does not fit the schema
│   ├── QueryError        a query or a condition on rows cannot be answered as asked
│   ├── BudgetError       a privacy budget cannot be planned, or a step would exceed it
│   ├── LedgerError       the ledger cannot be read or written, or refuses a release
│   ├── JournalError      an interrupted run cannot be resumed, or the answers of a run cannot be stored
│   ├── SourceError       a table cannot be read, or its structure does not fit the schema
│   ├── SynopsisError     a synopsis cannot be loaded, or the given numbers do not form one
│   ├── SignatureError    a key cannot be used, or a release cannot be signed
│   ├── OutputError       a result cannot be written to the requested path
│   └── MissingExtraError an optional library is not installed
└── InternalError         a bug in DPSyn; the command line exits with 1

A message states what is wrong, what was given and what to do. It never quotes a private value. Only ``diagnose``
shows anything that depends on rows, and it marks its output as private.
"""

from __future__ import annotations

import os
import re
from numbers import Number
from typing import Any

MAX_MESSAGE_LENGTH = 2_000
"""Characters of a whole message. A message that lists every column of a wide table is longer than anyone reads."""

_MAX_QUOTE_LENGTH = 100
"""Characters of one value that a message quotes."""

_MAX_QUOTED_ELEMENTS = 8
"""Elements of a list or a dictionary that a message quotes: an argument of that size was written by hand. A longer one
may be a column of a private table."""

_MAX_QUOTED_DEPTH = 3
"""Containers inside one another that a message quotes."""

_MAX_OS_MESSAGE_LENGTH = 300
"""Characters of a message of the operating system. Its own messages are shorter, but some libraries add pages."""


class DPSynError(Exception):
    """The base class of all exceptions of DPSyn."""

    def __str__(self) -> str:
        message = super().__str__()
        if len(message) <= MAX_MESSAGE_LENGTH:
            return message
        half = MAX_MESSAGE_LENGTH // 2 - 20  # what is wrong stands at the beginning, and what to do at the end
        return f"{message[:half]} … (shortened) … {message[-half:]}"


class UserError(DPSynError):
    """An error that the caller can fix."""


class DocumentError(UserError, ValueError):
    """An entry of a file that people write, such as a schema or a plan, is not valid.

    ``path`` leads to the entry, such as ``("attributes", "age", "low")``. The reader of the file turns it into a line
    number.
    """

    def __init__(self, message: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.path = path


class SchemaError(DocumentError):
    """A schema, or a line of its file, is not valid.

    ``private_details`` says what the message of an error about a draft leaves out, because it may quote private rows;
    only a private look shows it.
    """

    def __init__(self, message: str, path: tuple[str | int, ...] = (), private_details: str = "") -> None:
        super().__init__(message, path)
        self.private_details = private_details


class PlanError(DocumentError):
    """A plan, or a line of its file, is not valid or does not fit the schema."""


class QueryError(UserError, ValueError):
    """A query or a condition on rows cannot be answered as asked, for example because an attribute does not exist."""


class BudgetError(UserError, ValueError):
    """A privacy budget cannot be planned, or a step would exceed it."""


class LedgerError(UserError):
    """The ledger cannot be read or written, or refuses a release."""


class JournalError(UserError):
    """An interrupted run cannot be resumed, or the answers of a run cannot be stored."""


class SourceError(UserError):
    """A table cannot be read, or its structure does not fit the schema."""


class SynopsisError(UserError):
    """A synopsis cannot be loaded, or the given numbers do not form one."""


class SignatureError(UserError):
    """A key cannot be read or used, or a release cannot be signed."""


class OutputError(UserError):
    """A result cannot be written to the requested path."""


class MissingExtraError(UserError, ImportError):
    """An optional library is not installed."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        listed = _list_packages(extra)
        named = [] if any(re.match(rf"{library}\b", package) for package in listed) else [library]
        packages = " ".join(f"'{package}'" for package in (*named, *listed))
        super().__init__(
            f"{purpose} needs {library}, which is not installed: pip install {packages} (the extra {extra!r} of DPSyn; "
            f"in a clone of DPSyn also: pip install '.[{extra}]')"
        )


class InternalError(DPSynError):
    """A bug in DPSyn: please report it."""


def _list_packages(extra: str) -> list[str]:
    """What an extra of the installed DPSyn consists of; nothing if DPSyn is not installed, such as beside its source.

    A message names these packages instead of dpsyn[extra], which pip would look up on an index that may not have it.
    """
    from importlib.metadata import PackageNotFoundError, requires

    try:
        entries = [entry.partition(";") for entry in requires("dpsyn") or ()]
    except PackageNotFoundError:
        return []
    return [package.strip() for package, _, marker in entries if re.search(rf"extra == ['\"]{extra}['\"]", marker)]


def quote_argument(value: Any) -> str:
    """An argument as a message may show it: text, numbers and small containers of them; of anything else, its type.

    An argument may be anything that a caller has at hand, such as a private table in the wrong position. Of a
    dictionary only the keys are shown: it may be a row, and its keys the names of the columns.

    >>> quote_argument("add-remove"), quote_argument([1, None]), quote_argument(object())
    ("'add-remove'", '[1, None]', 'an object')
    """
    return _quote(value, _MAX_QUOTED_DEPTH)


def _quote(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return repr(shorten(str(value), _MAX_QUOTE_LENGTH))
    if isinstance(value, os.PathLike):
        return repr(shorten(str(value), _MAX_QUOTE_LENGTH))
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 256:
        return "a whole number of more than 77 digits"
    if value is None or isinstance(value, Number):
        return shorten(str(value), _MAX_QUOTE_LENGTH)
    if type(value) in (list, tuple, dict) and len(value) <= _MAX_QUOTED_ELEMENTS and depth:
        if isinstance(value, dict):
            content = [f"{_quote(key, depth - 1)}: …" for key in value]
            return shorten(f"{{{', '.join(content)}}}", _MAX_QUOTE_LENGTH)
        content = [_quote(part, depth - 1) for part in value]
        opening, closing = "[]" if isinstance(value, list) else "()"
        comma = "," if closing == ")" and len(content) == 1 else ""
        return shorten(f"{opening}{', '.join(content)}{comma}{closing}", _MAX_QUOTE_LENGTH)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def shorten(text: str, length: int) -> str:
    """A text of at most so many characters; what was left out of a longer one is marked by …."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def describe_os_error(error: OSError) -> str:
    """The message of the operating system, on one line of limited length."""
    message = " ".join((error.strerror or str(error) or type(error).__name__).lower().split())
    return shorten(message, _MAX_OS_MESSAGE_LENGTH)
