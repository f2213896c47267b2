"""Row-wise queries: SELECTs whose answer has at most one row for each row of one base table, made from that row alone.

A query stands between the base rows and a release. The guarantee holds for base rows only if each of them decides about
one row of the answer and about no other. So a query is accepted by a whitelist on its parse tree: columns, literals,
and the operators and functions listed below, in the select list and in WHERE, over one base table. Views, subqueries in
FROM and WITH are expanded and read by the same rules. Everything else is refused: a window, an aggregate, a join, a
subquery in an expression, DISTINCT, LIMIT, a random or unknown function, and whatever a later version of SQL adds.

What is accepted is written anew, in DuckDB's dialect, and only this text is run. So the parser, sqlglot, need not
understand SQL exactly as the database does. ORDER BY is left out, because the order of rows does not matter. Casts
become TRY_CAST, and other operators are made total too, so a value that one cannot handle gives a null instead of an
error (see ``sql_whitelist``).

Privacy: adding or removing one base row adds or removes at most one row of the answer and changes no other (stability
1); a row that fails a condition is left out. No value makes a query fail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Dialect = Literal["duckdb", "postgres"]

Kind = Literal["boolean", "integer", "number", "text", "date", "timestamp", "null"]
"""What the values of an expression are; in DuckDB an integer has at most 64 bits, and a number is DOUBLE or FLOAT."""

PASSED_ON = "{}"
"""How most columns are used in an expression: as they are."""

AS_NUMBER = "TRY_CAST({} AS DOUBLE)"
"""How decimals and very large whole numbers are used in an expression."""


# ── what a catalog knows ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseColumn:
    """How a column of a base table is used in an expression.

    Attributes:
        kind: what its values are; None if its type is of no such kind, so that it can only be passed on.
        pattern: the column as an expression of this kind, such as ``TRY_CAST({} AS DOUBLE)``.
    """

    kind: Kind | None = None
    pattern: str = PASSED_ON


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseTable:
    """A table whose rows are stored.

    Attributes:
        name: its name in SQL, as a certificate shows it.
        columns: its columns.
    """

    name: str
    columns: Mapping[str, BaseColumn]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A stored SELECT.

    Attributes:
        name: its name in messages.
        statement: the SELECT, or the CREATE VIEW with it.
        schema: where the names in it are looked up first.
        columns: its names for the columns; empty if they are those of the SELECT.
    """

    name: str
    statement: str
    schema: str
    columns: tuple[str, ...] = ()


class Catalog(Protocol):
    """The tables and views that a query may name.

    Attributes:
        dialect: the dialect of SQL in which queries and views are written.
    """

    dialect: Dialect

    def find(self, path: tuple[str, ...], schema: str) -> BaseTable | View | None:
        """The table or view with this name, qualified or not; a name that is not is looked up in ``schema`` first."""

    def same_name(self, one: str, other: str) -> bool:
        """Whether two names of columns or tables are the same."""


# ── what a query is made of ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputColumn:
    """A column of the answer.

    Attributes:
        sql: the expression.
        uses: the columns of the table below that it uses.
        origin: the base column that it passes on unchanged; None if it is computed.
        growth: how many times as long as the cells of a row its text may be.
        kind: what its values are, see ``BaseColumn``.
        pattern: how it is used in an expression, see ``BaseColumn``.
    """

    sql: str
    uses: frozenset[str]
    origin: str | None = None
    growth: int = 1
    kind: Kind | None = None
    pattern: str = PASSED_ON


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWiseQuery:
    """One SELECT of columns and conditions, on a base table or on another such SELECT.

    Attributes:
        source: what it selects from.
        columns: the columns of the answer, in order.
        select_list: the columns as they are shown, with the stars of the query.
        condition: the condition on rows; None if all rows are kept.
        condition_uses: the columns of the source that the condition uses.
    """

    source: RowWiseQuery | BaseTable
    columns: Mapping[str, OutputColumn]
    select_list: str = "*"
    condition: str | None = None
    condition_uses: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """The query in normal form, as a certificate shows it."""
        source = self.source.name if isinstance(self.source, BaseTable) else f"({self.source.text})"
        return f"SELECT {self.select_list} FROM {source}" + (f" WHERE {self.condition}" if self.condition else "")

    @property
    def is_whole_table(self) -> bool:
        """Whether it is a base table, with all of its columns and rows."""
        return isinstance(self.source, BaseTable) and self.select_list == "*" and self.condition is None

    @property
    def keeps_all_rows(self) -> bool:
        """Whether the answer has exactly one row for each base row, so that both have the same number of rows."""
        return self.condition is None and (isinstance(self.source, BaseTable) or self.source.keeps_all_rows)

    @property
    def computes_nothing(self) -> bool:
        """Whether the answer consists of base columns of all base rows."""
        return self.keeps_all_rows and all(column.origin is not None for column in self.columns.values())

    @property
    def unchanged(self) -> frozenset[str]:
        """The columns of the answer that pass the base column of their name on unchanged."""
        return frozenset(
            name
            for name, column in self.columns.items()
            if column.origin is not None and column.origin.casefold() == name.casefold()
        )

    @property
    def base(self) -> BaseTable:
        """The base table."""
        return self.source if isinstance(self.source, BaseTable) else self.source.base

    def base_columns(self, wanted: Sequence[str]) -> list[str]:
        """The base columns that are read for these columns of the answer, in the order of the base table."""
        uses = self._uses(wanted)
        if isinstance(self.source, RowWiseQuery):
            return self.source.base_columns(sorted(uses))
        return [name for name in self.source.columns if name in uses]

    def to_sql(self, wanted: Sequence[str], base: str) -> str:
        """The query for these columns of the answer, to be run by DuckDB on the table that is called ``base`` there."""
        source = base
        if isinstance(self.source, RowWiseQuery):
            source = f"({self.source.to_sql(sorted(self._uses(wanted)), base)}) AS answer"
        selected = ", ".join(f"{self.columns[name].sql} AS {quote(name)}" for name in wanted) or "NULL"
        return f"SELECT {selected} FROM {source}" + (f" WHERE {self.condition}" if self.condition else "")

    def _uses(self, wanted: Sequence[str]) -> frozenset[str]:
        return self.condition_uses.union(*(self.columns[name].uses for name in wanted))


def select_all(table: BaseTable) -> RowWiseQuery:
    """The query that passes on all columns of a base table."""
    return RowWiseQuery(
        source=table,
        columns={
            name: OutputColumn(
                sql=quote(name), uses=frozenset([name]), origin=name, kind=column.kind, pattern=column.pattern
            )
            for name, column in table.columns.items()
        },
    )


def quote(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'
