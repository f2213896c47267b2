"""Expressions of row-wise queries with their kinds, and the conversions between kinds, which never fail on a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpsyn.errors import MissingExtraError
from dpsyn.sources.row_wise import Kind


class RefusedQueryError(Exception):
    """Why a query is not accepted; the reader makes an error for the user of it.

    Attributes:
        words: the construct that is refused, or what is not valid.
        mixes_rows: whether the construct may use several rows for one row of the answer, as opposed to a mistake.
        view: the view that contains it, if any.
    """

    def __init__(self, words: str, *, mixes_rows: bool = True) -> None:
        super().__init__(words)
        self.words, self.mixes_rows, self.view = words, mixes_rows, ""


KIND_WORDS: dict[Kind, str] = {
    "boolean": "a condition",
    "integer": "a whole number",
    "number": "a number",
    "text": "a text",
    "date": "a date",
    "timestamp": "a timestamp",
    "null": "null",
}
"""Kinds in messages."""

_DUCKDB_TYPES: dict[Kind, str] = {
    "boolean": "BOOLEAN",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
"""The types of DuckDB in which literals of a kind are written."""

CASTS: dict[Kind, tuple[Kind, ...]] = {
    "boolean": ("boolean", "integer", "number", "text"),
    "integer": ("boolean", "integer", "number", "text"),
    "number": ("boolean", "integer", "number", "text"),
    "text": ("boolean", "integer", "number", "text", "date", "timestamp"),
    "date": ("text", "date", "timestamp"),
    "timestamp": ("text", "date", "timestamp"),
    "null": ("boolean", "integer", "number", "text", "date", "timestamp"),
}
"""The kinds to which each kind can be cast."""


@dataclass(frozen=True, slots=True)
class Term:
    """An expression in DuckDB's SQL.

    Attributes:
        sql: the expression.
        kind: what its values are.
        literal: its text, if it is a text of the query itself; such a text may stand for a number or a date.
    """

    sql: str
    kind: Kind
    literal: str | None = None

    def to(self, kind: Kind) -> str:
        """The expression as another kind to which it can be converted without a loss; otherwise it is refused."""
        if kind == self.kind or self.kind == "null":
            return self.sql
        if self.literal is not None:
            return _cast_literal(self.sql, kind)
        if (self.kind, kind) == ("integer", "number"):
            return f"CAST({self.sql} AS DOUBLE)"
        if (self.kind, kind) == ("date", "timestamp"):
            return f"TRY_CAST({self.sql} AS TIMESTAMP)"
        raise RefusedQueryError(
            f"{self.sql[:60]} is {KIND_WORDS[self.kind]} where {KIND_WORDS[kind]} is needed; cast it",
            mixes_rows=False,
        )

    def to_text(self) -> str:
        """The expression as text, which every value has."""
        return self.sql if self.kind in ("text", "null") else f"CAST({self.sql} AS VARCHAR)"

    def to_moment(self) -> str:
        """The expression as a timestamp in the years 1 to 9999, otherwise null; functions of dates fail on others."""
        moment = self.to("timestamp") if self.kind != "null" else f"CAST({self.sql} AS TIMESTAMP)"
        years = "TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59'"
        return f"CASE WHEN {moment} BETWEEN {years} THEN {moment} END"


def common_kind(terms: Sequence[Term]) -> Kind:
    """The kind in which these expressions can be compared; texts of the query stand for the kind of the others."""
    kinds = {term.kind for term in terms if term.kind != "null" and term.literal is None}
    kinds = kinds or {term.kind for term in terms if term.kind != "null"}
    for pair, common in (({"integer", "number"}, "number"), ({"date", "timestamp"}, "timestamp")):
        if len(kinds) > 1 and kinds <= pair:
            return common  # type: ignore[return-value]
    if len(kinds) > 1:
        words = " with ".join(sorted(KIND_WORDS[kind] for kind in kinds))
        raise RefusedQueryError(f"it combines {words}; cast one of them", mixes_rows=False)
    return kinds.pop() if kinds else "null"


def quote_text(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def _cast_literal(sql: str, kind: Kind) -> str:
    """A text of the query as a number, date or condition; refused if it is none."""
    cast = f"{sql} AS {_DUCKDB_TYPES[kind]}"
    if not is_valid_cast(cast):
        raise RefusedQueryError(f"{sql[:60]} is not {KIND_WORDS[kind]}", mixes_rows=False)
    return f"CAST({cast})"


def is_valid_cast(cast: str) -> bool:
    """Whether a literal has a value of a type; no row is involved."""
    duckdb = import_duckdb("a query")
    try:
        duckdb.connect(":memory:").execute(f"SELECT CAST({cast})")
    except duckdb.Error:
        return False
    return True


def import_duckdb(purpose: str) -> Any:
    """The library duckdb, or a message that names the extra."""
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("duckdb", "duckdb", purpose) from None
    return duckdb
