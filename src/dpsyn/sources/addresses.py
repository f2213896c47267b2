"""Addresses of databases: recognized before anything takes one for a path, and shown without their password."""

from __future__ import annotations

import os
import re
from glob import glob

from dpsyn.errors import SourceError

_POSTGRES = re.compile(r"postgres(?:ql)?://", re.IGNORECASE)
_SCHEME = re.compile(r"([a-z][a-z0-9+.\-]{1,30}):/{1,2}|(postgres|postgresql|mysql|mariadb|jdbc):", re.IGNORECASE)
"""The scheme of an address. One letter before a colon is the drive of a path on Windows."""

_CREDENTIALS = re.compile(r"@|\b(?:password|passwd|pwd)\s*=", re.IGNORECASE)
"""What a text contains that may hold a password, such as user:password@host, or host=… password=…"""

_SHOWN = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.\-]*)://(?:[^@:/?#\s]*(?::[^@/?#\s]*)?@)?(?P<host>[\w.\-]*|\[[0-9a-f:.]+\])(?::\d+)?"
    r"(?P<path>(?:/[^@:?#\s]*)?)(?:\?[^@]*)?",
    re.IGNORECASE,
)
"""An address whose parts can be told apart for sure. A password with /, @, ? or # in it makes them ambiguous."""


def is_postgres_address(data: object) -> bool:
    """Whether something is the address of a PostgreSQL database."""
    return isinstance(data, str) and bool(_POSTGRES.match(data))


def normalize_postgres_address(address: str) -> str:
    """The address with a scheme in lower case, as the driver needs it."""
    return _POSTGRES.sub(lambda match: match[0].lower(), address, count=1)


def redact_address(address: str) -> str:
    """The address in messages: scheme, host and path. If these cannot be told apart for sure, nothing of it is shown.

    Privacy: without user, password, port and options.
    """
    match = _SHOWN.fullmatch(address)
    return f"{match['scheme'].lower()}://{match['host']}{match['path']}" if match else "the given address"


def refuse_other_addresses(data: str) -> None:
    """Refuse a text that is no path and may hold a password, without showing it."""
    if os.path.exists(data):
        return
    if scheme := _SCHEME.match(data):
        name = (scheme[1] or scheme[2]).lower()
        raise SourceError(
            f"an address that begins with {name}: is not read; give a path, or the address of a PostgreSQL database as "
            "postgresql://user@host/database"
        )
    if _CREDENTIALS.search(data) and not glob(data, recursive=True):
        raise SourceError(
            "there is no file or folder with the given name, which may be an address with a password and is therefore "
            "not shown; give a path, or the address of a PostgreSQL database as postgresql://user@host/database"
        )
