"""The mutations of ``bench.mutations`` still fit the source."""

from __future__ import annotations

import ast
from functools import cache, lru_cache
from pathlib import Path
from textwrap import dedent

import pytest
from bench.mutants import ROOT, MutantError, apply_mutation
from bench.mutations import MUTATIONS, Mutation
from bench.syntax import Change, Drop, Force, PlaceError, Replace, change_source

import dpsyn

SOURCE = Path(dpsyn.__file__).parent
NUMPY_NAMES = {"isin", "laplace"}
"""Attributes of numpy that new code uses although the source does not."""
NAME_FIELDS: dict[type[ast.AST], str] = {
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.alias, ast.ExceptHandler), "name"),
    **dict.fromkeys((ast.arg, ast.keyword), "arg"),
    ast.Attribute: "attr",
    ast.Name: "id",
}
"""The field in which a node of source code holds a name."""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_changes_one_definition_of_the_source(mutation: Mutation) -> None:
    before = statements((SOURCE / mutation.file).read_text("utf-8"))

    after = statements(apply_mutation(mutation, SOURCE))

    (changed,) = [name for (name, old), (_, new) in zip(before, after, strict=True) if old != new]
    assert changed == mutation.function.partition(".")[0]
    assert all((ROOT / test.partition("::")[0]).exists() for test in mutation.tests)


@lru_cache(maxsize=32)  # mutations of a file are near each other
def statements(text: str) -> list[tuple[str, str]]:
    """The statements of a module: what each defines, and its text."""
    lines = text.split("\n")
    body = ast.parse(text).body
    starts = [min([s.lineno, *(d.lineno for d in getattr(s, "decorator_list", ()))]) - 1 for s in body]
    texts = ("\n".join(lines[start : s.end_lineno]) for start, s in zip(starts, body, strict=True))
    return [(getattr(s, "name", ""), own) for s, own in zip(body, texts, strict=True)]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_new_code_uses_only_existing_names(mutation: Mutation) -> None:
    new = ast.parse(dedent(mutation.change.new)) if isinstance(mutation.change, Replace) else ast.Module([], [])

    attributes = {node.attr for node in ast.walk(new) if isinstance(node, ast.Attribute)}
    keywords = {node.arg for node in ast.walk(new) if isinstance(node, ast.keyword) and node.arg}

    assert attributes | keywords <= source_names() | NUMPY_NAMES


@cache
def source_names() -> frozenset[str]:
    nodes = (node for path in SOURCE.rglob("*.py") for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    named = ((node, NAME_FIELDS.get(type(node))) for node in nodes)
    return frozenset(name for node, field in named if field and (name := getattr(node, field)))


def test_names_are_unique() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)


def test_a_mutation_of_a_file_that_moved_is_an_error() -> None:
    mutation = Mutation(name="m", file="nowhere.py", function="", change=Drop("A"), tests=())

    with pytest.raises(MutantError, match=r"'m' does not fit nowhere\.py"):
        apply_mutation(mutation, SOURCE)


@pytest.mark.parametrize(
    ("old", "change", "new"),
    [
        ("return a < b", Replace("A < B", "A <= B"), "return a <= b"),
        ("return g(a, k=b)", Replace("G(..., k=X)", "X / 2"), "return g(a, k=b / 2)"),
        ("return g(a + b)", Replace("G(X)", "X / 2"), "return g((a + b) / 2)"),
        ("return g(k=a, l=b)", Replace("g(l=L, k=K)", "g(L, K)"), "return g(b, a)"),
        ("return g(a, b, k=1)", Replace("g(*R, k=1)", "max(*R)"), "return max(a, b)"),
        ("return [a.x for a in b]", Replace("[A.N for A in B]", "[A.N.N for A in B]"), "return [a.x.x for a in b]"),
        ('return f"{a}: {b}"', Replace('f"{A}: {B}"', 'f"{B}"'), 'return f"{b}"'),
        ("a = g(b)\nh()\nreturn a", Replace("A = (X := g(B))\n...\nreturn A", "B"), "a = b\nh()\nreturn a"),
        ("g(a)\nh(b)", Replace("g(A)\nB", "B\ng(A)"), "h(b)\ng(a)"),
        ("with a:\n    g()\n    h()", Replace("with A:\n    *B", "if A:\n    *B"), "if a:\n    g()\n    h()"),
        ("g(a)\nreturn b", Drop("g(A)"), "return b"),
        ("if a:\n    g(a)", Drop("g(A)"), "if a:\n    pass"),
        ("return g(a, b)", Drop("g(A, X)"), "return g(a)"),
        ("return g(a, k=b)", Drop("g(..., k=X)"), "return g(a)"),
        ("return 1, 2, 3", Drop("return ..., (X := 2), ..."), "return 1, 3"),
        ("if a < b:\n    return 1", Force("A < B", False), "if False:\n    return 1"),
        ("if a:\n    g()\nelif b < 1:\n    h()", Force("A < 1", True), "if a:\n    g()\nelif True:\n    h()"),
        ('a = "ρ"; return a', Replace('"ρ"', '"σ"'), 'a = "σ"; return a'),
    ],
)
def test_a_change_is_made_where_its_pattern_matches(old: str, change: Change, new: str) -> None:
    def within(body: str) -> str:
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        return f"# ρ\ndef f(a, b):  # kept\n{lines}\n\n\ndef g(a, b): return a < b  # kept\n"

    changed = change_source(within(old), "f", change)

    assert ast.unparse(ast.parse(changed)) == ast.unparse(ast.parse(within(new)))
    assert changed.startswith("# ρ\ndef f(a, b):  # kept\n    ")
    assert changed.endswith("\n\n\ndef g(a, b): return a < b  # kept\n")


@pytest.mark.parametrize(
    ("change", "matches"),
    [
        (Replace("A > B", "A"), 0),
        (Replace("A < A", "A"), 0),
        (Replace("A < 1", "A"), 0),  # 1.0 is another number
        (Replace("g(A)", "A"), 0),  # there is a second argument
        (Replace("g(A, B)", "A"), 0),  # and a keyword
        (Replace("A < B", "A"), 2),
        (Replace("A = g(...)\n...\nreturn B", "pass"), 2),
        (Drop("A = g(...)"), 2),
        (Drop("g(...)"), 0),  # no statement of its own
        (Force("A < B", False), 2),
        (Force("A", False), 2),
        (Force("A < B < C", True), 0),
    ],
)
def test_a_pattern_that_does_not_match_once_is_an_error(change: Change, matches: int) -> None:
    source = """
        def f(a, b):
            if a < b:
                pass
            if b < 1.0:
                pass
            c = g(a, 1, k=2)
            d = g(b, 1, k=2)
            return c, d
        """

    with pytest.raises(PlaceError, match=f"fits {matches} places of f, not one"):
        change_source(dedent(source), "f", change)


NESTED = dedent(
    """
    LIMIT = 1

    def f(a):
        def g(b):
            return b + 1
        return g(a) - 1

    class Case:
        LIMIT = 2

        def f(self, a):
            return a * 2

        class Deep:
            @property
            def f(self):
                return 3 / 1

    def h():
        pass

    if LIMIT:
        def h():
            return 4
    """
)


@pytest.mark.parametrize(
    ("function", "pattern"),
    [
        ("f", "A - 1"),
        ("f", "A + 1"),
        ("f.g", "A + 1"),
        ("Case.f", "A * 2"),
        ("Case.Deep.f", "A / 1"),
        ("", "LIMIT = (X := 1)"),
        ("Case", "LIMIT = (X := 2)"),
    ],
)
def test_a_function_is_found_by_its_qualified_name(function: str, pattern: str) -> None:
    assert change_source(NESTED, function, Replace(pattern, "7")).count("7") == 1


@pytest.mark.parametrize(
    ("function", "pattern"),
    [("f.g", "A - 1"), ("Case", "A * 2"), ("", "A + 1"), ("Case.f", "A / 1"), ("Case.Deep.f", "LIMIT = X")],
)
def test_other_functions_are_not_searched(function: str, pattern: str) -> None:
    with pytest.raises(PlaceError, match="fits 0 places"):
        change_source(NESTED, function, Replace(pattern, "7"))


@pytest.mark.parametrize(("function", "times"), [("g", 0), ("Case.g", 0), ("Case.f.g", 0), ("Deep.f", 0), ("h", 2)])
def test_a_function_that_is_not_defined_once_is_an_error(function: str, times: int) -> None:
    with pytest.raises(PlaceError, match=f"{function} is defined {times} times"):
        change_source(NESTED, function, Replace("return X", "7"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Replace("A + 1", "A + 1"), "changes nothing"),
        (Replace("A + 1", "unheard_of"), "speaks of unheard_of"),
        (Replace("A + 1", "B"), "speaks of B"),
        (Replace("return A + X", "a = 1"), "statements in the place of an expression"),
        (Drop("A + X"), "cannot be left out"),
    ],
)
def test_a_change_that_makes_no_mutant_is_an_error(change: Change, words: str) -> None:
    with pytest.raises(PlaceError, match=words):
        change_source(NESTED, "f", change)


def test_names_of_the_function_and_of_its_module_are_known() -> None:
    assert "return b + LIMIT + a + len(Case)" in change_source(
        NESTED, "f.g", Replace("A + 1", "A + LIMIT + a + len(Case)")
    )


def test_code_that_does_not_fit_into_its_line_is_an_error() -> None:
    with pytest.raises(PlaceError, match="cannot be written"):
        change_source("def f(a): print(a); return a\n", "f", Replace("print(A)", "if A:\n    print(A)"))
