"""Every exception DPSyn raises on purpose.

DPSynError
├── UserError             something the caller can mend; the command line exits with 2
│   ├── SchemaError       a schema, or a line of its file, is not valid
│   ├── BudgetError       a privacy budget cannot be planned, or a step would exceed it
│   ├── LedgerError       the ledger cannot be read or written, or refuses a release
│   ├── JournalError      an interrupted run cannot be resumed, or what a run draws cannot be stored
│   ├── QueryError        a query to a synopsis cannot be answered as asked
│   ├── SourceError       a table cannot be read, or its structure does not fit the schema
│   ├── SynopsisError     a synopsis cannot be loaded, or numbers do not make one
│   ├── OutputError       a result cannot be written where it was asked for
│   └── MissingExtraError an optional library is not installed
└── InternalError         DPSyn broke a promise of its own; the command line exits with 1

A message says what is wrong, what was given and what to do. It never quotes a private value: what depends
on rows is shown by ``diagnose`` alone, whose output says that it is private.
"""

from __future__ import annotations

_MAX_MESSAGE_LENGTH = 300
"""Of what the system says about an error: more than any system's own words, and still a line or three."""


class DPSynError(Exception):
    """The root of the tree."""


class UserError(DPSynError):
    """Something the caller can mend."""


class SchemaError(UserError, ValueError):
    """A schema, or a line of its file, is not valid.

    ``path`` leads to the offending entry (``("attributes", "age", "low")``), so that the reader of a file
    can name its line.
    """

    def __init__(self, message: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.path = path


class BudgetError(UserError, ValueError):
    """A privacy budget cannot be planned, or a step would exceed it."""


class LedgerError(UserError):
    """The ledger cannot be read or written, or refuses a release."""


class JournalError(UserError):
    """An interrupted run cannot be resumed, or what a run draws cannot be stored."""


class QueryError(UserError):
    """A query to a synopsis cannot be answered as asked."""


class SourceError(UserError):
    """A table cannot be read, or its structure does not fit the schema."""


class SynopsisError(UserError):
    """A synopsis cannot be loaded, or numbers do not make one."""


class OutputError(UserError):
    """A result cannot be written where it was asked for."""


class MissingExtraError(UserError, ImportError):
    """An optional library is not installed."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {library}, which is not installed: pip install 'dpsyn[{extra}]'")


class InternalError(DPSynError):
    """DPSyn broke a promise of its own: please report it."""


def describe_os_error(error: OSError) -> str:
    """What the system says is wrong, on one short line: some libraries add pages to it."""
    words = " ".join((error.strerror or str(error) or type(error).__name__).lower().split())
    return words if len(words) <= _MAX_MESSAGE_LENGTH else f"{words[:_MAX_MESSAGE_LENGTH]} …"
