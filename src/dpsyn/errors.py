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
│   ├── OutputError       a result cannot be written to the requested path
│   └── MissingExtraError an optional library is not installed
└── InternalError         a bug in DPSyn; the command line exits with 1

A message states what is wrong, what was given and what to do. It never quotes a private value. Only ``diagnose``
shows anything that depends on rows, and it marks its output as private.
"""

from __future__ import annotations

_MAX_MESSAGE_LENGTH = 300
"""Characters of a message of the operating system. Its own messages are shorter, but some libraries add pages."""


class DPSynError(Exception):
    """The base class of all exceptions of DPSyn."""


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
    """A schema, or a line of its file, is not valid."""


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


class OutputError(UserError):
    """A result cannot be written to the requested path."""


class MissingExtraError(UserError, ImportError):
    """An optional library is not installed."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {library}, which is not installed: pip install 'dpsyn[{extra}]'")


class InternalError(DPSynError):
    """A bug in DPSyn: please report it."""


def describe_os_error(error: OSError) -> str:
    """The message of the operating system, on one line of limited length."""
    message = " ".join((error.strerror or str(error) or type(error).__name__).lower().split())
    return message if len(message) <= _MAX_MESSAGE_LENGTH else f"{message[:_MAX_MESSAGE_LENGTH]} …"
