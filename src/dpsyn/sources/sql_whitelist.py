"""The whitelist of row-wise queries: which expressions are accepted, and how they are written anew.

Every function here is deterministic and uses one row. A node of the parse tree that is not listed, or that has a detail
that is not listed, is refused. So the list stays safe when a new version of the parser knows more of SQL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from dpsyn.errors import MissingExtraError
from dpsyn.sources.row_wise import Dialect, OutputColumn, quote


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


def refuse(node: Any, detail: str = "", words: str = "") -> NoReturn:
    """Refuse a node of the parse tree, or a detail of it. Nothing but the query itself is shown."""
    kind = type(node).__name__
    words = words or _CONSTRUCTS.get(detail or kind) or (f"{detail.strip('_').upper()} in {kind}" if detail else "")
    if not words:
        name = node.args.get("this") if kind == "Anonymous" else None
        function = name or (node.sql_name().lower() if hasattr(node, "sql_name") else "")
        words = f"the function {str(function)[:40]}" if function else f"{kind}, {shorten(node)}"
    raise RefusedQueryError(words)


def take(node: Any, *names: str) -> list[Any]:
    """The named details of a node; any other detail is refused. A detail may have two names, by version of sqlglot."""
    details = present_details(node)
    taken = [next((details.pop(name) for name in both.split() if name in details), None) for both in names]
    for name in details:
        if name not in _HARMLESS:
            refuse(node, name)
    return taken


def present_details(node: Any) -> dict[str, Any]:
    """The details of a node that are there at all."""
    return {
        name: value for name, value in node.args.items() if value is not None and value is not False and value != []
    }


def identifier_text(node: Any, dialect: Dialect) -> str:
    """A name; PostgreSQL reads one without quotes in lower case."""
    if type(node).__name__ != "Identifier":
        refuse(node)
    fold = dialect == "postgres" and not node.args.get("quoted")
    return str(node.this).lower() if fold else str(node.this)


def column_path(node: Any, dialect: Dialect) -> tuple[str, str]:
    """The table (or nothing) and the name of a column."""
    name, table = take(node, "this", "table")
    return (identifier_text(table, dialect) if table else ""), identifier_text(name, dialect)


def shorten(node: Any) -> str:
    """A part of a query in messages."""
    text = " ".join(str(node).split())
    return text if len(text) <= 60 else f"{text[:60]}…"


# ── the lists ────────────────────────────────────────────────────────────────────────────────────────────────

_OPERATORS = {
    "And": "AND",
    "Or": "OR",
    "EQ": "=",
    "NEQ": "<>",
    "LT": "<",
    "LTE": "<=",
    "GT": ">",
    "GTE": ">=",
    "NullSafeEQ": "IS NOT DISTINCT FROM",
    "NullSafeNEQ": "IS DISTINCT FROM",
    "Add": "+",
    "Sub": "-",
    "Mul": "*",
    "Div": "/",
    "IntDiv": "//",
    "Mod": "%",
    "DPipe": "||",
}
"""Operators of two expressions, by their class in sqlglot."""

_CONDITIONS = (
    *("And", "Or", "Not", "EQ", "NEQ", "LT", "LTE", "GT", "GTE", "NullSafeEQ", "NullSafeNEQ"),
    *("Is", "In", "Between", "Like", "ILike", "Escape", "Boolean"),
)
"""Expressions whose value is Boolean, whatever their operands are."""

_FUNCTIONS = {
    "Abs": ("abs", ("this",)),
    "Ceil": ("ceil", ("this",)),
    "Coalesce": ("coalesce", ("this", "expressions")),
    "Concat": ("concat", ("expressions",)),
    "Contains": ("contains", ("this", "expression")),
    "Day": ("day", ("this",)),
    "EndsWith": ("ends_with", ("this", "expression")),
    "Floor": ("floor", ("this",)),
    "Greatest": ("greatest", ("this", "expressions")),
    "Least": ("least", ("this", "expressions")),
    "Left": ("left", ("this", "expression")),
    "Length": ("length", ("this",)),
    "Lower": ("lower", ("this",)),
    "Month": ("month", ("this",)),
    "Nullif": ("nullif", ("this", "expression")),
    "Quarter": ("quarter", ("this",)),
    "Right": ("right", ("this", "expression")),
    "Round": ("round", ("this", "decimals")),
    "Sign": ("sign", ("this",)),
    "StartsWith": ("starts_with", ("this", "expression")),
    "Substring": ("substring", ("this", "start", "length")),
    "Upper": ("upper", ("this",)),
    "Year": ("year", ("this",)),
}
"""Functions of one row: the class in sqlglot, the name in DuckDB, and the arguments in order. Each is deterministic,
and its result is no longer than its arguments together."""

_TYPES = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INT": "INTEGER",
    "BIGINT": "BIGINT",
    "UTINYINT": "UTINYINT",
    "USMALLINT": "USMALLINT",
    "UINT": "UINTEGER",
    "UBIGINT": "UBIGINT",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "DECIMAL": "DECIMAL",
    "TEXT": "VARCHAR",
    "VARCHAR": "VARCHAR",
    "DATE": "DATE",
    "TIMESTAMP": "TIMESTAMP",
    "TIMESTAMPNTZ": "TIMESTAMP",
}
"""Types of a cast: the name in sqlglot and the name in DuckDB. Times with a zone depend on settings."""

_DATE_PARTS = (
    *("century", "decade", "year", "quarter", "month", "week", "day", "dow", "isodow", "doy"),
    *("hour", "minute", "second"),
)
"""Parts of a date that ``extract``, ``date_part``, ``date_trunc`` and ``date_diff`` may name."""

_HARMLESS = frozenset(["safe", "typed", "coalesce", "ignore_nulls", "date_part_boundary", "nested"])
"""Details of a node that say how another dialect would write it, not what it means."""

_CONSTRUCTS = {
    "joins": "a join",
    "group": "GROUP BY",
    "having": "HAVING",
    "qualify": "QUALIFY",
    "distinct": "DISTINCT",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "sample": "a sample of rows",
    "windows": "a window",
    "laterals": "LATERAL",
    "pivots": "PIVOT or UNPIVOT",
    "locks": "FOR UPDATE",
    "recursive": "WITH RECURSIVE",
    "when": "an earlier version of a table",
    "only": "ONLY",
    "ordinality": "WITH ORDINALITY",
    "rows_from": "ROWS FROM",
    "symmetric": "BETWEEN SYMMETRIC",
    "query": "a subquery",
    "replace": "REPLACE after a star",
    "rename": "RENAME after a star",
    "columns": "new names for the columns of a table; name them in the select list",
    # classes
    "Window": "a window function",
    "Subquery": "a subquery",
    "Select": "a subquery",
    "Exists": "a subquery",
    "Union": "UNION",
    "Except": "EXCEPT",
    "Intersect": "INTERSECT",
    "Values": "VALUES",
    "Explode": "the function unnest",
    "Unnest": "the function unnest",
    "Lateral": "LATERAL",
    "Interval": "an interval",
    "Placeholder": "a parameter",
    "Parameter": "a parameter",
    "PositionalColumn": "a column given by its position",
    "Columns": "COLUMNS",
    "Star": "a star that is not an item of the select list",
    "Filter": "FILTER",
    "Distinct": "DISTINCT",
    "AtTimeZone": "a time zone",
    "Collate": "COLLATE",
}
"""What is refused, in words: details of a node, and classes of sqlglot."""


# ── expressions ──────────────────────────────────────────────────────────────────────────────────────────────


class Expression:
    """Writes an expression anew, in DuckDB's dialect.

    Attributes:
        uses: the columns that it uses.
        growth: how often it mentions the cells of a row: a text that it makes is at most as many times as long.
    """

    def __init__(self, find_column: Callable[[str, str], tuple[str, OutputColumn]], dialect: Dialect) -> None:
        self.uses: set[str] = set()
        self.growth = 0
        self._find_column, self._dialect = find_column, dialect

    def render(self, node: Any) -> str:
        """The expression in DuckDB's SQL; whatever is not on the whitelist is refused."""
        kind = type(node).__name__
        if kind in _OPERATORS:
            return self._operator(node, _OPERATORS[kind])
        if kind in _FUNCTIONS:
            return self._function(node, *_FUNCTIONS[kind])
        special: Callable[[Any], str] | None = getattr(self, f"_render_{kind.lower()}", None)
        return special(node) if special else refuse(node)

    def render_condition(self, node: Any) -> str:
        """The expression as a condition. DuckDB would cast one that is not Boolean, and fail on a value."""
        while type(node).__name__ in ("Paren", "Try"):
            (node,) = take(node, "this")
        sql, kind = self.render(node), type(node).__name__
        is_condition = kind in _CONDITIONS or (kind in ("Cast", "TryCast") and sql.endswith(" AS BOOLEAN)"))
        return sql if is_condition else f"TRY_CAST({sql} AS BOOLEAN)"

    def _operator(self, node: Any, operator: str) -> str:
        left, right = take(node, "this", "expression")
        if operator == "/" and self._dialect == "postgres":
            refuse(node, words="a division by /, which depends on the types of its operands in PostgreSQL")
        return f"({self.render(left)} {operator} {self.render(right)})"

    def _function(self, node: Any, name: str, arguments: Sequence[str]) -> str:
        taken = take(node, *arguments)
        flat = [part for given in taken for part in (given if isinstance(given, list) else [given]) if part is not None]
        return f"{name}({', '.join(self.render(part) for part in flat)})"

    def _render_column(self, node: Any) -> str:
        name, column = self._find_column(*column_path(node, self._dialect))
        if column.pattern is None:
            refuse(node, words=f"a computation with the column {name!r}, whose type can only be passed on")
        self.uses.add(name)
        self.growth += column.growth
        return column.pattern.format(quote(name))

    def _render_literal(self, node: Any) -> str:
        text = str(node.this)
        if node.args.get("is_string"):
            if "\0" in text:
                refuse(node, words="a text with a null character")
            return _quote_text(text)
        if not re.fullmatch(r"\d+(\.\d*)?(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?", text, re.IGNORECASE | re.ASCII):
            refuse(node, words=f"the number {text[:40]}")
        return text

    def _render_boolean(self, node: Any) -> str:
        return "TRUE" if node.this else "FALSE"

    def _render_null(self, node: Any) -> str:
        return "NULL"

    def _render_paren(self, node: Any) -> str:
        (inner,) = take(node, "this")
        return self.render(inner)

    def _render_try(self, node: Any) -> str:
        (inner,) = take(node, "this")
        return f"TRY({self.render(inner)})"

    def _render_not(self, node: Any) -> str:
        (inner,) = take(node, "this")
        return f"(NOT {self.render(inner)})"

    def _render_neg(self, node: Any) -> str:
        (inner,) = take(node, "this")
        return f"(- {self.render(inner)})"

    def _render_is(self, node: Any) -> str:
        tested, value = take(node, "this", "expression")
        if type(value).__name__ not in ("Null", "Boolean"):
            refuse(value)
        return f"({self.render(tested)} IS {self.render(value)})"

    def _render_between(self, node: Any) -> str:
        tested, low, high = take(node, "this", "low", "high")
        value = self.render(tested)  # written twice, because TRY does not catch every error of DuckDB's BETWEEN
        return f"(({value} >= {self.render(low)}) AND ({value} <= {self.render(high)}))"

    def _render_in(self, node: Any) -> str:
        tested, values = take(node, "this", "expressions")
        return f"({self.render(tested)} IN ({', '.join(self.render(value) for value in values or [])}))"

    def _render_like(self, node: Any, escape: str = "") -> str:
        tested, pattern, negate = take(node, "this", "expression", "negate")
        if not escape and self._dialect == "postgres":
            escape = "\\"  # DuckDB has no escape character unless one is given
        if escape:
            _check_pattern(pattern, escape)
        operator = ("NOT " if negate else "") + type(node).__name__.upper()
        ending = f" ESCAPE {_quote_text(escape)}" if escape else ""
        return f"({self.render(tested)} {operator} {self.render(pattern)}{ending})"

    _render_ilike = _render_like

    def _render_escape(self, node: Any) -> str:
        like, escape = take(node, "this", "expression")
        if type(like).__name__ not in ("Like", "ILike") or type(escape).__name__ != "Literal":
            refuse(node)
        return self._render_like(like, str(escape.this))

    def _render_case(self, node: Any) -> str:
        tested, cases, default = take(node, "this", "ifs", "default")
        parts = ["CASE", *([self.render(tested)] if tested else [])]
        for case in cases:
            condition, result = take(case, "this", "true")
            parts.append(f"WHEN {self.render(condition)} THEN {self.render(result)}")
        return " ".join([*parts, *([f"ELSE {self.render(default)}"] if default else []), "END"])

    def _render_if(self, node: Any) -> str:
        condition, result, other = take(node, "this", "true", "false")
        default = self.render(other) if other else "NULL"
        return f"CASE WHEN {self.render(condition)} THEN {self.render(result)} ELSE {default} END"

    def _render_cast(self, node: Any) -> str:
        value, to = take(node, "this", "to")
        kind, sizes, _ = take(to, "this", "expressions", "kind")
        name = _TYPES.get(getattr(kind, "name", str(kind)))
        if name is None or (sizes and name != "DECIMAL"):
            refuse(node, words=f"a cast to {shorten(to)}")
        digits = [str(size.this.this) for size in sizes or []]
        if not all(re.fullmatch(r"\d{1,2}", size, re.ASCII) for size in digits):
            refuse(node, words=f"a cast to {shorten(to)}")
        cast = f"{self.render(value)} AS {name}" + (f"({', '.join(digits)})" if digits else "")
        if type(value).__name__ != "Literal":
            return f"TRY_CAST({cast})"
        if not _is_valid_cast(cast):  # as a TRY_CAST it would be null for all rows
            raise RefusedQueryError(f"CAST({cast}) has no value", mixes_rows=False)
        return f"CAST({cast})"

    _render_trycast = _render_cast

    def _render_trim(self, node: Any) -> str:
        text, characters, position = take(node, "this", "expression", "position")
        name = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(position or "").upper())
        if name is None:
            refuse(node)
        return f"{name}({', '.join(self.render(part) for part in (text, characters) if part)})"

    def _render_replace(self, node: Any) -> str:
        text, old, new = take(node, "this", "expression", "replacement")
        if not all(type(part).__name__ == "Literal" for part in (old, new)) or len(new.this) > len(old.this):
            refuse(node, words="the function replace by a longer text, or by one that is not a literal")
        return f"replace({self.render(text)}, {self.render(old)}, {self.render(new)})"

    def _render_extract(self, node: Any) -> str:
        part, date = take(node, "this", "expression")
        return f"date_part({self._date_part(part)}, {self._instant(date)})"

    def _render_timestamptrunc(self, node: Any) -> str:
        date, part = take(node, "this", "unit")
        return f"date_trunc({self._date_part(part)}, {self._instant(date)})"

    _render_datetrunc = _render_timestamptrunc

    def _render_datediff(self, node: Any) -> str:
        end, start, part = take(node, "this", "expression", "unit")
        return f"date_diff({self._date_part(part)}, {self._instant(start)}, {self._instant(end)})"

    def _render_anonymous(self, node: Any) -> str:
        """A function that sqlglot does not know: of these, ``date_part`` alone."""
        name, arguments = take(node, "this", "expressions")
        if str(name).lower() not in ("date_part", "datepart") or len(arguments or ()) != 2:
            refuse(node)
        return f"date_part({self._date_part(arguments[0])}, {self._instant(arguments[1])})"

    def _instant(self, node: Any) -> str:
        """An expression as a timestamp: of some other types a part is not implemented, which TRY does not catch."""
        sql = self.render(node)
        is_instant = sql.startswith("TRY_CAST(") and sql.endswith(" AS TIMESTAMP)")
        return sql if is_instant else f"TRY_CAST({sql} AS TIMESTAMP)"

    def _date_part(self, node: Any) -> str:
        part = str(getattr(node, "this", "")).lower()
        if part not in _DATE_PARTS:
            refuse(node, words=f"the part {part[:40]!r} of a date")
        return f"'{part}'"


def _quote_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _check_pattern(pattern: Any, escape: str) -> None:
    """Refuse a pattern that fails once a text matches it up to its last character; TRY does not catch this error."""
    if type(pattern).__name__ != "Literal" or len(escape) != 1:
        refuse(pattern, words="a pattern that is not a literal, or an escape that is not one character")
    text = str(pattern.this)
    if (len(text) - len(text.rstrip(escape))) % 2:
        raise RefusedQueryError(f"the pattern {shorten(pattern)} ends with its escape character", mixes_rows=False)


def _is_valid_cast(cast: str) -> bool:
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
