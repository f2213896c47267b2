"""Reads a SELECT by the whitelist of row-wise queries; views, WITH and subqueries in FROM are expanded."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dpsyn.errors import MissingExtraError, SourceError
from dpsyn.sources.row_wise import BaseTable, Catalog, OutputColumn, RowWiseQuery, quote, select_all
from dpsyn.sources.source import PROTECT_ANSWER
from dpsyn.sources.sql_terms import RefusedQueryError
from dpsyn.sources.sql_whitelist import (
    Expression,
    column_path,
    identifier_text,
    present_details,
    refuse,
    shorten,
    take,
)

_NOT_ONE_SELECT = "it is not one SELECT; give one SELECT, or the name of a table"

MAX_GROWTH = 64
"""How often an expression may mention cells; texts can be joined, and a longer one could exceed the memory."""

MAX_NESTING = 20
"""Views and subqueries inside of each other; more are a mistake, or made to harm."""


def read_row_wise(query: str, catalog: Catalog, label: str) -> RowWiseQuery:
    """Read a SELECT, or the name of a table or view; a SourceError if it is not row-wise.

    Args:
        query: what the user gave.
        catalog: the tables and views that it may name.
        label: the query in messages, such as ``the query on people.csv``.
    """
    statement = query.strip().rstrip(";").strip()
    try:
        if len(statement.split()) == 1:
            return _read_table(statement, catalog)
        return _Reader(catalog).read_text(statement, _Scope())
    except RefusedQueryError as problem:
        place = f"{label}, in the view {problem.view}," if problem.view else label
        message = f"{place} is not valid: {problem.words}"
        if problem.mixes_rows:
            message = (
                f"{place} has {problem.words}, but a query must make each row of its answer from one row of the table, "
                f"by what docs/how-to/scale.md lists; write it without, or {PROTECT_ANSWER}"
            )
    except RecursionError:
        message = f"{label} nests too many expressions; write it with fewer"
    raise SourceError(message)


def _read_table(name: str, catalog: Catalog) -> RowWiseQuery:
    """The table with a name, as the user gave it: a name that contains dots, or one that is qualified."""
    whole = (name.strip('"'),)
    path = whole if catalog.find(whole, "") else tuple(part.strip('"') for part in name.split("."))
    return _Reader(catalog).read_name(path, _Scope())


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where names are looked up.

    Attributes:
        schema: the schema that is searched first; that of a view, in its SELECT.
        common: the subqueries that WITH names, and the scopes of their own names.
        depth: how many views and subqueries contain this one.
    """

    schema: str = ""
    common: Mapping[str, tuple[Any, _Scope]] = field(default_factory=dict)
    depth: int = 0

    def inside(self) -> _Scope:
        """The scope of a table or subquery in a FROM."""
        return replace(self, depth=self.depth + 1)


class _Reader:
    """Reads SELECTs by the whitelist."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def read_name(self, path: tuple[str, ...], scope: _Scope) -> RowWiseQuery:
        """A table, a subquery that WITH names, or a view, which is expanded."""
        if len(path) == 1:
            for name, (select, inner) in scope.common.items():
                if self._catalog.same_name(name, path[0]):
                    return self._read_select(select, inner)
        found = self._catalog.find(path, scope.schema)
        if found is None:
            raise RefusedQueryError(f"there is no table or view {'.'.join(path)!r}", mixes_rows=False)
        if isinstance(found, BaseTable):
            return select_all(found)
        try:
            return self.read_text(
                found.statement, _Scope(schema=found.schema, depth=scope.depth + 1), found.columns, is_view=True
            )
        except RefusedQueryError as problem:
            problem.view = problem.view or found.name
            raise

    def read_text(
        self, statement: str, scope: _Scope, names: tuple[str, ...] = (), *, is_view: bool = False
    ) -> RowWiseQuery:
        """A SELECT, or for a view the CREATE VIEW with it; ``names`` are other names for its columns."""
        tree = self._parse(statement)
        if is_view and type(tree).__name__ == "Create":
            declared, tree = tree.args.get("this"), tree.args.get("expression")
            if type(declared).__name__ == "Schema":
                names = tuple(self._name(column) for column in declared.expressions)
        if not isinstance(tree, _import_sqlglot().exp.Query):
            raise RefusedQueryError(_NOT_ONE_SELECT, mixes_rows=False)
        return _rename_columns(self._read_select(tree, scope), names)

    def _parse(self, statement: str) -> Any:
        sqlglot = _import_sqlglot()
        try:
            with _without_warnings():
                trees = sqlglot.parse(statement, read=self._catalog.dialect)
        except sqlglot.errors.SqlglotError as error:
            details = (getattr(error, "errors", None) or [{}])[0]
            near = f" near {details['highlight']!r}" if details.get("highlight") else ""
        else:
            if len(trees) == 1 and trees[0] is not None:
                return trees[0]
            raise RefusedQueryError(_NOT_ONE_SELECT, mixes_rows=False)
        raise RefusedQueryError(f"it cannot be parsed{near}", mixes_rows=False)

    # ── SELECT ───────────────────────────────────────────────────────────────────────────────────────────

    def _read_select(self, node: Any, scope: _Scope) -> RowWiseQuery:
        if scope.depth > MAX_NESTING:
            raise RefusedQueryError(f"it nests more than {MAX_NESTING} views and subqueries", mixes_rows=False)
        if type(node).__name__ == "Subquery" and "alias" not in present_details(node):  # SELECT in parentheses
            (inner,) = take(node, "this")
            return self._read_select(inner, scope)
        if type(node).__name__ != "Select":
            refuse(node, "joins" if "joins" in present_details(node) else "")
        items, tables, where, common, _ = take(
            node, "expressions", "from_ from", "where", "with_ with", "order"
        )  # the order of rows does not matter
        if tables is None:
            raise RefusedQueryError("it selects from no table; write FROM and the name of a table", mixes_rows=False)
        scope = self._add_common(common, scope)
        (table,) = take(tables, "this")
        source, alias = self._read_from(table, scope)
        columns = _Columns(self._catalog, source, alias)
        outputs: dict[str, OutputColumn] = {}
        shown: list[str] = []
        for item in items or ():
            for name, output in self._read_item(item, columns, shown):
                if any(self._catalog.same_name(name, other) for other in outputs):
                    raise RefusedQueryError(f"it has two columns named {name!r}; rename one with AS", mixes_rows=False)
                outputs[name] = output
        condition = Expression(columns.get, self._catalog.dialect)
        sql = None if where is None else condition.render_condition(*take(where, "this"))
        return RowWiseQuery(
            source=source.source if source.is_whole_table else source,
            columns=outputs,
            select_list=", ".join(shown),
            condition=sql,
            condition_uses=frozenset(condition.uses),
        )

    def _add_common(self, node: Any, scope: _Scope) -> _Scope:
        """The scope with the names that WITH introduces; each subquery sees those before it."""
        if node is None:
            return scope
        (tables,) = take(node, "expressions")
        for table in tables:
            select, alias, _ = take(table, "this", "alias", "materialized")
            name = self._alias(alias)
            others = {other: given for other, given in scope.common.items() if not self._catalog.same_name(other, name)}
            scope = replace(scope, common={**others, name: (select, scope.inside())})
        return scope

    def _read_from(self, node: Any, scope: _Scope) -> tuple[RowWiseQuery, str]:
        """What is selected from, and the name by which columns may be qualified."""
        if type(node).__name__ == "Subquery":
            select, alias = take(node, "this", "alias")
            return self._read_select(select, scope.inside()), self._alias(alias) if alias else ""
        if type(node).__name__ != "Table":
            refuse(node)
        table, schema, database, alias = take(node, "this", "db", "catalog", "alias")
        if type(table).__name__ != "Identifier":
            refuse(table, words=f"a table function, {shorten(table)}")
        path = tuple(self._name(part) for part in (database, schema, table) if part)
        return self.read_name(path, scope.inside()), self._alias(alias) if alias else path[-1]

    def _read_item(self, node: Any, columns: _Columns, shown: list[str]) -> Iterator[tuple[str, OutputColumn]]:
        """The columns of one item of the select list; how the item is shown is added to ``shown``."""
        if star := _find_star(node):
            if star is not node:
                columns.check_table(self._name(take(node, "this", "table")[1]))
            (left_out,) = take(star, "except_ except")
            names = [columns.find(self._name(_unwrap_column(column))) for column in left_out or ()]
            shown.append("*" + (f" EXCLUDE ({', '.join(map(quote, names))})" if names else ""))
            yield from ((name, column) for name, column in columns.all() if name not in names)
            return
        name, expression = self._split_alias(node)
        if type(expression).__name__ == "Column":
            below, output = columns.get(*column_path(expression, self._catalog.dialect))
            name = name or below
        else:
            computed = Expression(columns.get, self._catalog.dialect)
            term = computed.render(expression)
            if computed.growth > MAX_GROWTH:
                raise RefusedQueryError(
                    f"{shorten(expression)} mentions columns more than {MAX_GROWTH} times, counting those that other "
                    "columns are made of, so a text could become too long",
                    mixes_rows=False,
                )
            growth = max(1, computed.growth)
            output = OutputColumn(sql=term.sql, uses=frozenset(computed.uses), growth=growth, kind=term.kind)
        if not name:
            raise RefusedQueryError(
                f"it has a column without a name, {shorten(expression)}; give it one with AS", mixes_rows=False
            )
        shown.append(output.sql + (f" AS {quote(name)}" if output.sql != quote(name) else ""))
        yield name, output

    def _split_alias(self, node: Any) -> tuple[str, Any]:
        """The name and the expression of an item; a cast of a column keeps the column's name."""
        if type(node).__name__ == "Alias":
            expression, alias = take(node, "this", "alias")
            return self._name(alias), expression
        inner = node
        while type(inner).__name__ in ("Cast", "TryCast", "Paren"):
            inner = inner.this
        is_cast = inner is not node and type(inner).__name__ == "Column"
        return (column_path(inner, self._catalog.dialect)[1] if is_cast else ""), node

    def _alias(self, alias: Any) -> str:
        (name,) = take(alias, "this")
        return "" if name is None else self._name(name)

    def _name(self, node: Any) -> str:
        return identifier_text(node, self._catalog.dialect)


class _Columns:
    """The columns of what a SELECT selects from."""

    def __init__(self, catalog: Catalog, source: RowWiseQuery, alias: str) -> None:
        self._catalog, self._source, self._alias = catalog, source, alias

    def all(self) -> Iterator[tuple[str, OutputColumn]]:
        """All columns, passed on."""
        return ((name, self._pass_on(name)) for name in self._source.columns)

    def get(self, table: str, name: str) -> tuple[str, OutputColumn]:
        """The name of a column, and the column, passed on."""
        if table:
            self.check_table(table)
        found = self.find(name)
        return found, self._pass_on(found)

    def find(self, name: str) -> str:
        """The name of a column as the table has it."""
        found = [column for column in self._source.columns if self._catalog.same_name(column, name)]
        if not found:
            place = self._alias or "the table it selects from"
            raise RefusedQueryError(f"there is no column {name!r} in {place}", mixes_rows=False)
        if len(found) > 1:
            raise RefusedQueryError(
                f"the columns {' and '.join(map(repr, found))} differ in case only; rename one", mixes_rows=False
            )
        return found[0]

    def check_table(self, name: str) -> None:
        """Refuse the name of another table before a column."""
        if not self._catalog.same_name(name, self._alias):
            raise RefusedQueryError(f"there is no table {name!r} in its FROM", mixes_rows=False)

    def _pass_on(self, name: str) -> OutputColumn:
        column = self._source.columns[name]
        return replace(column, sql=quote(name), uses=frozenset([name]))


def _rename_columns(query: RowWiseQuery, names: tuple[str, ...]) -> RowWiseQuery:
    """The query with other names for its first columns, as a view may have."""
    given = list(query.columns)
    if not names or list(names) == given[: len(names)]:
        return query
    renamed = dict(zip([*names, *given[len(names) :]], given, strict=True))
    return RowWiseQuery(
        source=query,
        columns={
            new: replace(query.columns[old], sql=quote(old), uses=frozenset([old])) for new, old in renamed.items()
        },
        select_list=", ".join(f"{quote(old)} AS {quote(new)}" for new, old in renamed.items()),
    )


def _find_star(node: Any) -> Any:
    """The star of an item ``*`` or ``people.*``, otherwise None."""
    if type(node).__name__ == "Column":
        node = node.this
    return node if type(node).__name__ == "Star" else None


def _unwrap_column(node: Any) -> Any:
    return node.this if type(node).__name__ == "Column" and len(present_details(node)) == 1 else node


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    """Keep sqlglot from logging that it does not know a statement, which is refused anyway."""
    logger = logging.getLogger("sqlglot")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _import_sqlglot() -> Any:
    try:
        import sqlglot
        import sqlglot.errors
    except ImportError:
        raise MissingExtraError("sqlglot", "duckdb", "a query") from None
    return sqlglot
