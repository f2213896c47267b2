"""The whitelist of row-wise queries: which expressions are accepted, and how they are written anew.

Every function here is deterministic, uses one row, and is total: it has a value, or null, for all operands. A node of
the parse tree that is not listed, or that has a detail that is not listed, is refused. So the list stays safe when a
new version of the parser knows more of SQL.

The kind of each expression is known here, so that no value makes an operator fail. Whole numbers are computed with 128
bits, and null if the result has more than 64. All other numbers are DOUBLE, which has infinities instead of overflows.
Casts are TRY_CAST, and functions of dates see the years 1 to 9999. DuckDB converts nothing by itself, because its
conversions may fail. Its function TRY is not used either: with several of them in one query, a row can change the
answer of another (seen in versions 1.3 to 2.0).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from dpsyn.sources.row_wise import Dialect, Kind, OutputColumn, quote
from dpsyn.sources.sql_terms import (
    CASTS,
    KIND_WORDS,
    RefusedQueryError,
    Term,
    common_kind,
    is_valid_cast,
    quote_text,
)


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

_COMPARISONS = {
    "EQ": "=",
    "NEQ": "<>",
    "LT": "<",
    "LTE": "<=",
    "GT": ">",
    "GTE": ">=",
    "NullSafeEQ": "IS NOT DISTINCT FROM",
    "NullSafeNEQ": "IS DISTINCT FROM",
}
_CONNECTIVES = {"And": "AND", "Or": "OR"}
_ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "IntDiv": "//", "Mod": "%"}
"""Operators of two operands, by their class in sqlglot."""

_TEXT_FUNCTIONS: dict[str, tuple[str, tuple[str, ...], Kind]] = {
    "Contains": ("contains", ("this", "expression"), "boolean"),
    "EndsWith": ("ends_with", ("this", "expression"), "boolean"),
    "Length": ("length", ("this",), "integer"),
    "Lower": ("lower", ("this",), "text"),
    "StartsWith": ("starts_with", ("this", "expression"), "boolean"),
    "Upper": ("upper", ("this",), "text"),
}
"""Functions of texts: the class in sqlglot, the name in DuckDB, the arguments in order, and what they return."""

_SLICES = {
    "Left": ("left", ("expression",)),
    "Right": ("right", ("expression",)),
    "Substring": ("substring", ("start", "length")),
}
"""Functions that cut texts, and their arguments, which must be whole numbers of the query itself."""

_CHOICES = {"Coalesce": "coalesce", "Greatest": "greatest", "Least": "least", "Nullif": "nullif"}
"""Functions that return one of their arguments."""

_DATE_FUNCTIONS = ("Year", "Month", "Day", "Quarter")

_TYPES: dict[str, tuple[str, Kind]] = {
    "BOOLEAN": ("BOOLEAN", "boolean"),
    "TINYINT": ("TINYINT", "integer"),
    "SMALLINT": ("SMALLINT", "integer"),
    "INT": ("INTEGER", "integer"),
    "BIGINT": ("BIGINT", "integer"),
    "UTINYINT": ("UTINYINT", "integer"),
    "USMALLINT": ("USMALLINT", "integer"),
    "UINT": ("UINTEGER", "integer"),
    "FLOAT": ("FLOAT", "number"),
    "DOUBLE": ("DOUBLE", "number"),
    "DECIMAL": ("DECIMAL", "number"),
    "TEXT": ("VARCHAR", "text"),
    "VARCHAR": ("VARCHAR", "text"),
    "DATE": ("DATE", "date"),
    "TIMESTAMP": ("TIMESTAMP", "timestamp"),
    "TIMESTAMPNTZ": ("TIMESTAMP", "timestamp"),
}
"""Types of a cast: the name in sqlglot, the name in DuckDB, and the kind. Times with a zone depend on settings."""

_DATE_PARTS = (
    *("century", "decade", "year", "quarter", "month", "week", "day", "dow", "isodow", "doy"),
    *("hour", "minute", "second"),
)
"""Parts of a date that ``extract``, ``date_part``, ``date_trunc`` and ``date_diff`` may name."""

MAX_POSITION = 10**6
"""The largest number of letters or digits that a query may name."""

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

    def render_condition(self, node: Any) -> str:
        """The condition of a WHERE."""
        return self.render(node).to("boolean")

    def render(self, node: Any) -> Term:
        """The expression in DuckDB's SQL; whatever is not on the whitelist is refused."""
        kind = type(node).__name__
        if kind in _COMPARISONS:
            return self._compare(node, _COMPARISONS[kind])
        if kind in _CONNECTIVES:
            left, right = (self.render(side).to("boolean") for side in take(node, "this", "expression"))
            return Term(f"({left} {_CONNECTIVES[kind]} {right})", "boolean")
        if kind in _ARITHMETIC:
            return self._calculate(node, _ARITHMETIC[kind])
        if kind in _TEXT_FUNCTIONS:
            name, arguments, returned = _TEXT_FUNCTIONS[kind]
            return Term(f"{name}({', '.join(self._texts(node, *arguments))})", returned)
        if kind in _SLICES:
            return self._slice(node, *_SLICES[kind])
        if kind in _CHOICES:
            return self._choose(node, _CHOICES[kind])
        if kind in _DATE_FUNCTIONS:
            (date,) = take(node, "this")
            return Term(f"date_part('{kind.lower()}', {self.render(date).to_moment()})", "integer")
        special: Callable[[Any], Term] | None = getattr(self, f"_render_{kind.lower()}", None)
        return special(node) if special else refuse(node)

    # ── operators ────────────────────────────────────────────────────────────────────────────────────────

    def _compare(self, node: Any, operator: str) -> Term:
        left, right = self._unify(*take(node, "this", "expression"))
        return Term(f"({left} {operator} {right})", "boolean")

    def _calculate(self, node: Any, operator: str) -> Term:
        left, right = (self.render(side) for side in take(node, "this", "expression"))
        kind = common_kind([left, right])
        if operator == "-" and kind in ("date", "timestamp"):
            return Term(f"date_diff('day', {right.to_moment()}, {left.to_moment()})", "integer")
        if kind == "integer" and operator == "/":
            kind, operator = ("integer", "//") if self._dialect == "postgres" else ("number", "/")
        if kind not in ("integer", "number", "null") or (operator == "//" and kind == "number"):
            raise RefusedQueryError(
                f"{operator} needs {'whole ' * (operator == '//')}numbers; cast its operands", mixes_rows=False
            )
        first, second = (side.to(kind) for side in (left, right))
        if operator in ("/", "//", "%"):
            second = f"NULLIF({second}, 0)"
        if kind == "number":
            return Term(f"({first} {operator} {second})", "number")
        return _within_64_bits(f"{_wide(first)} {operator} {_wide(second)}")

    def _render_neg(self, node: Any) -> Term:
        (inner,) = take(node, "this")
        term = self.render(inner)
        if term.kind == "number":
            return Term(f"(- {term.sql})", "number")
        return _within_64_bits(f"- {_wide(term.to('integer'))}")

    def _render_abs(self, node: Any) -> Term:
        (inner,) = take(node, "this")
        term = self.render(inner)
        if term.kind == "number":
            return Term(f"abs({term.sql})", "number")
        return _within_64_bits(f"abs({_wide(term.to('integer'))})")

    def _render_sign(self, node: Any) -> Term:
        (inner,) = take(node, "this")
        return Term(f"TRY_CAST(sign({self._number(inner)}) AS BIGINT)", "integer")

    def _render_floor(self, node: Any) -> Term:
        (inner,) = take(node, "this")
        return Term(f"{type(node).__name__.lower()}({self._number(inner)})", "number")

    _render_ceil = _render_floor

    def _render_round(self, node: Any) -> Term:
        number, digits = take(node, "this", "decimals")
        places = "" if digits is None else f", {_position(digits)}"
        return Term(f"round({self._number(number)}{places})", "number")

    def _render_not(self, node: Any) -> Term:
        (inner,) = take(node, "this")
        return Term(f"(NOT {self.render(inner).to('boolean')})", "boolean")

    def _render_is(self, node: Any) -> Term:
        tested, value = take(node, "this", "expression")
        if type(value).__name__ == "Null":
            return Term(f"({self.render(tested).sql} IS NULL)", "boolean")
        if type(value).__name__ != "Boolean":
            refuse(value)
        return Term(f"({self.render(tested).to('boolean')} IS {self.render(value).sql})", "boolean")

    def _render_between(self, node: Any) -> Term:
        value, low, high = self._unify(*take(node, "this", "low", "high"))
        return Term(f"({value} BETWEEN {low} AND {high})", "boolean")

    def _render_in(self, node: Any) -> Term:
        tested, values = take(node, "this", "expressions")
        value, *listed = self._unify(tested, *(values or []))
        return Term(f"({value} IN ({', '.join(listed)}))", "boolean")

    def _render_like(self, node: Any, escape: str = "") -> Term:
        tested, pattern, negate = take(node, "this", "expression", "negate")
        if not escape and self._dialect == "postgres":
            escape = "\\"  # DuckDB has no escape character unless one is given
        if escape:
            _check_pattern(pattern, escape)
        operator = ("NOT " if negate else "") + type(node).__name__.upper()
        ending = f" ESCAPE {quote_text(escape)}" if escape else ""
        value, like = self.render(tested).to("text"), self.render(pattern).to("text")
        return Term(f"({value} {operator} {like}{ending})", "boolean")

    _render_ilike = _render_like

    def _render_escape(self, node: Any) -> Term:
        like, escape = take(node, "this", "expression")
        if type(like).__name__ not in ("Like", "ILike") or type(escape).__name__ != "Literal":
            refuse(node)
        return self._render_like(like, str(escape.this))

    def _render_case(self, node: Any) -> Term:
        tested, cases, default = take(node, "this", "ifs", "default")
        pairs = [take(case, "this", "true") for case in cases]
        results = [result for _, result in pairs] + ([default] if default else [])
        kind, values = self._unify_kind(*results)
        if tested:
            operand, *conditions = self._unify(tested, *(condition for condition, _ in pairs))
        else:
            operand, conditions = "", [self.render(condition).to("boolean") for condition, _ in pairs]
        whens = [f"WHEN {condition} THEN {value}" for condition, value in zip(conditions, values, strict=False)]
        parts = ["CASE", *([operand] if operand else []), *whens, *([f"ELSE {values[-1]}"] if default else []), "END"]
        return Term(" ".join(parts), kind)

    def _render_if(self, node: Any) -> Term:
        condition, result, other = take(node, "this", "true", "false")
        kind, values = self._unify_kind(*([result, other] if other else [result]))
        ending = f" ELSE {values[1]}" if other else ""
        return Term(f"CASE WHEN {self.render(condition).to('boolean')} THEN {values[0]}{ending} END", kind)

    def _choose(self, node: Any, name: str) -> Term:
        this, expression, expressions = take(node, "this", "expression", "expressions")
        given = [this, *([expression] if expression else []), *(expressions or [])]
        kind, values = self._unify_kind(*given)
        return Term(f"{name}({', '.join(values)})", kind)

    # ── columns and constants ────────────────────────────────────────────────────────────────────────────

    def _render_column(self, node: Any) -> Term:
        name, column = self._find_column(*column_path(node, self._dialect))
        if column.kind is None:
            refuse(node, words=f"a computation with the column {name!r}, whose type can only be passed on")
        self.uses.add(name)
        self.growth += column.growth
        return Term(column.pattern.format(quote(name)), column.kind)

    def _render_literal(self, node: Any) -> Term:
        text = str(node.this)
        if node.args.get("is_string"):
            if "\0" in text:
                refuse(node, words="a text with a null character")
            return Term(quote_text(text), "text", text)
        if not re.fullmatch(r"(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", text, re.IGNORECASE | re.ASCII) or len(text) > 40:
            refuse(node, words=f"the number {text[:40]}")
        if text.isdigit() and int(text) < 2**63:
            return Term(str(int(text)), "integer")
        if not math.isfinite(float(text)):
            refuse(node, words=f"the number {text}")
        return Term(text if "e" in text.lower() else f"{text}e0", "number")

    def _render_boolean(self, node: Any) -> Term:
        return Term("TRUE" if node.this else "FALSE", "boolean")

    def _render_null(self, node: Any) -> Term:
        return Term("NULL", "null")

    def _render_paren(self, node: Any) -> Term:
        (inner,) = take(node, "this")
        return self.render(inner)

    def _render_cast(self, node: Any) -> Term:
        value, to = take(node, "this", "to")
        type_name, sizes, _ = take(to, "this", "expressions", "kind")
        name, kind = _TYPES.get(getattr(type_name, "name", str(type_name)), ("", "null"))
        digits = [str(size) for size in sizes or []]
        sized = len(digits) <= 2 and all(re.fullmatch(r"\d{1,2}", size, re.ASCII) for size in digits)
        term = self.render(value)
        if not name or (sizes and name != "DECIMAL") or not sized or kind not in CASTS[term.kind]:
            refuse(node, words=f"a cast of {KIND_WORDS[term.kind]} to {shorten(to)}")
        full = name + (f"({', '.join(digits)})" if digits else "")
        if term.literal is not None and not is_valid_cast(f"{term.sql} AS {full}"):  # it would be null for all rows
            raise RefusedQueryError(f"CAST({term.sql} AS {full}) has no value", mixes_rows=False)
        cast = f"TRY_CAST({term.sql} AS {full})"
        return Term(f"CAST({cast} AS DOUBLE)" if name == "DECIMAL" else cast, kind)

    _render_trycast = _render_cast

    # ── texts and dates ──────────────────────────────────────────────────────────────────────────────────

    def _render_dpipe(self, node: Any) -> Term:
        left, right = self._texts(node, "this", "expression")
        return Term(f"({left} || {right})", "text")

    def _render_concat(self, node: Any) -> Term:
        return Term(f"concat({', '.join(self._texts(node, 'expressions'))})", "text")

    def _slice(self, node: Any, name: str, arguments: Sequence[str]) -> Term:
        text, *positions = take(node, "this", *arguments)
        numbers = [_position(position) for position in positions if position is not None]
        return Term(f"{name}({', '.join([self.render(text).to_text(), *numbers])})", "text")

    def _render_trim(self, node: Any) -> Term:
        text, characters, position = take(node, "this", "expression", "position")
        name = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(position or "").upper())
        if name is None:
            refuse(node)
        given = [self.render(part).to_text() for part in (text, characters) if part]
        return Term(f"{name}({', '.join(given)})", "text")

    def _render_replace(self, node: Any) -> Term:
        text, old, new = take(node, "this", "expression", "replacement")
        if not all(type(part).__name__ == "Literal" for part in (old, new)) or len(new.this) > len(old.this):
            refuse(node, words="the function replace by a longer text, or by one that is not a literal")
        given = [self.render(part).to_text() for part in (text, old, new)]
        return Term(f"replace({', '.join(given)})", "text")

    def _render_extract(self, node: Any) -> Term:
        part, date = take(node, "this", "expression")
        return Term(f"date_part({_date_part(part)}, {self.render(date).to_moment()})", "integer")

    def _render_timestamptrunc(self, node: Any) -> Term:
        date, part = take(node, "this", "unit")
        return Term(
            f"TRY_CAST(date_trunc({_date_part(part)}, {self.render(date).to_moment()}) AS TIMESTAMP)", "timestamp"
        )

    _render_datetrunc = _render_timestamptrunc

    def _render_datediff(self, node: Any) -> Term:
        end, start, part = take(node, "this", "expression", "unit")
        moments = [self.render(date).to_moment() for date in (start, end)]
        return Term(f"date_diff({_date_part(part)}, {', '.join(moments)})", "integer")

    def _render_anonymous(self, node: Any) -> Term:
        """A function that sqlglot does not know: of these, ``date_part`` alone."""
        name, arguments = take(node, "this", "expressions")
        if str(name).lower() not in ("date_part", "datepart") or len(arguments or ()) != 2:
            refuse(node)
        return Term(f"date_part({_date_part(arguments[0])}, {self.render(arguments[1]).to_moment()})", "integer")

    # ── operands ─────────────────────────────────────────────────────────────────────────────────────────

    def _unify_kind(self, *nodes: Any) -> tuple[Kind, list[str]]:
        terms = [self.render(node) for node in nodes]
        kind = common_kind(terms)
        return kind, [term.to(kind) for term in terms]

    def _unify(self, *nodes: Any) -> list[str]:
        return self._unify_kind(*nodes)[1]

    def _texts(self, node: Any, *names: str) -> list[str]:
        parts = [part for given in take(node, *names) for part in (given if isinstance(given, list) else [given])]
        return [self.render(part).to_text() for part in parts if part is not None]

    def _number(self, node: Any) -> str:
        return self.render(node).to("number")


def _wide(sql: str) -> str:
    return f"CAST({sql} AS HUGEINT)"


def _within_64_bits(sql: str) -> Term:
    """The result of operands of 64 bits, computed with 128 bits; null if it needs more than 64."""
    return Term(f"TRY_CAST({sql} AS BIGINT)", "integer")


def _date_part(node: Any) -> str:
    part = str(getattr(node, "this", "")).lower()
    if part not in _DATE_PARTS:
        refuse(node, words=f"the part {part[:40]!r} of a date")
    return f"'{part}'"


def _position(node: Any) -> str:
    """A number of letters or digits, which the query itself must name: functions fail on very large ones."""
    sign, literal = ("-", node.this) if type(node).__name__ == "Neg" else ("", node)
    text = str(literal.this) if type(literal).__name__ == "Literal" and not literal.args.get("is_string") else ""
    if not text.isdigit() or int(text) > MAX_POSITION:
        refuse(node, words=f"a position that is not a whole number up to {MAX_POSITION:,}, {shorten(node)}")
    return f"{sign}{int(text)}"


def _check_pattern(pattern: Any, escape: str) -> None:
    """Refuse a pattern that fails once a text matches it up to its last character."""
    if type(pattern).__name__ != "Literal" or len(escape) != 1:
        refuse(pattern, words="a pattern that is not a literal, or an escape that is not one character")
    text = str(pattern.this)
    if (len(text) - len(text.rstrip(escape))) % 2:
        raise RefusedQueryError(f"the pattern {shorten(pattern)} ends with its escape character", mixes_rows=False)
