"""Formulas of regressions: ``income ~ age + sex + age:sex``, as in R and statsmodels."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from dpsyn.errors import QueryError, quote_argument
from dpsyn.suggestions import suggest_names

_TOKENS = re.compile(r"`(?P<quoted>[^`]+)`|(?P<sign>[~+*:()])|(?P<plain>[^`~+*:()]+)")

_EXAMPLE = "write OUTCOME ~ TERM + TERM, such as 'income ~ age + C(district) + age:sex'"


@dataclass(frozen=True, slots=True)
class Factor:
    """An attribute in a term; ``as_category`` is whether ``C( )`` makes categories of its numbers."""

    name: str
    as_category: bool = False


Term = tuple[Factor, ...]
"""One attribute, or several that are multiplied with each other: an interaction."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A regression: its outcome and its terms; the intercept is always among them."""

    outcome: str
    terms: tuple[Term, ...]

    @property
    def attributes(self) -> tuple[str, ...]:
        """All attributes, the outcome first."""
        return tuple(dict.fromkeys((self.outcome, *(factor.name for term in self.terms for factor in term))))


def parse_formula(text: str, names: Collection[str]) -> Formula:
    """A formula from its text: ``+`` adds a term, ``a:b`` is an interaction, ``a*b`` is ``a + b + a:b``.

    >>> parse_formula("income ~ age*sex", ["income", "age", "sex"]).terms[-1]
    (Factor(name='age', as_category=False), Factor(name='sex', as_category=False))

    Args:
        text: the formula. A name with signs such as ``+`` in it is written between backticks.
        names: the names of the attributes.
    """
    if not isinstance(text, str):
        raise QueryError(f"the formula is {quote_argument(text)}; {_EXAMPLE}")
    tokens = list(_split(text))
    signs = [sign for kind, sign in tokens if kind == "sign"]
    if signs.count("~") != 1 or tokens[1:2] != [("sign", "~")]:
        raise QueryError(f"the formula {quote_argument(text)} cannot be read; {_EXAMPLE}")
    parser = _Parser(text, tokens[2:], names)
    outcome = parser.require_name(tokens[0][1])
    terms = tuple(dict.fromkeys(parser.terms()))
    if any(factor.name == outcome for term in terms for factor in term):
        raise QueryError(f"{quote_argument(outcome)} is both the outcome and a term of the formula; leave the term out")
    _require_lower_terms(terms)
    return Formula(outcome, terms)


def _require_lower_terms(terms: tuple[Term, ...]) -> None:
    """Refuse an interaction without the terms that it modifies: dummy coding would force one of its effects to zero."""
    sets = [frozenset(term) for term in terms]
    for term in terms:
        for left_out in term if len(term) > 1 else ():
            lower = [factor for factor in term if factor != left_out]
            if frozenset(lower) not in sets:
                shown, needed = (":".join(factor.name for factor in some) for some in (term, lower))
                raise QueryError(f"the interaction {shown} needs the term {needed} beside it; add it, or write a*b")


def _split(text: str) -> Iterator[tuple[str, str]]:
    for match in _TOKENS.finditer(text):
        kind, part = str(match.lastgroup), match.group(str(match.lastgroup)).strip()
        if part:
            yield ("sign", part) if kind == "sign" else ("name", part)


class _Parser:
    """Reads the terms of a formula from left to right."""

    def __init__(self, text: str, tokens: list[tuple[str, str]], names: Collection[str]) -> None:
        self._text, self._waiting, self._names = text, tokens, names

    def require_name(self, name: str) -> str:
        """A name, if it is that of an attribute."""
        if name not in self._names:
            raise QueryError(f"there is no attribute {quote_argument(name)}; {suggest_names(name, [*self._names])}")
        return name

    def terms(self) -> Iterator[Term]:
        """The main effects of a product come before the product."""
        while True:
            factors, signs = [self._factor()], set()
            while self._next_sign() in (":", "*"):
                signs.add(self._take())
                factors.append(self._factor())
            if "*" in signs:
                if signs != {"*"} or len(factors) != 2:
                    raise QueryError(
                        f"the formula {quote_argument(self._text)} has a product of more than two attributes; write "
                        "its terms one by one: a + b + c + a:b + a:b:c"
                    )
                yield from ((factor,) for factor in factors)
            yield tuple(dict.fromkeys(factors))
            if not self._waiting:
                return
            if self._take() != "+":
                raise self._unreadable()

    def _factor(self) -> Factor:
        name = self._take("name")
        if name == "C" and self._next_sign() == "(":
            self._take()
            factor = Factor(self.require_name(self._take("name")), as_category=True)
            if self._take() != ")":
                raise self._unreadable()
            return factor
        return Factor(self.require_name(name))

    def _next_sign(self) -> str:
        kind, part = self._waiting[0] if self._waiting else ("", "")
        return part if kind == "sign" else ""

    def _take(self, kind: str = "sign") -> str:
        if not self._waiting or self._waiting[0][0] != kind:
            raise self._unreadable()
        return self._waiting.pop(0)[1]

    def _unreadable(self) -> QueryError:
        return QueryError(
            f"the formula {quote_argument(self._text)} cannot be read; {_EXAMPLE}. For other models, fit each "
            "replicate with a library of your choice and pool the results"
        )
