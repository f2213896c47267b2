"""The page of the guarantee is in step with the code: functions, tests and mutants exist, no gate method is missing."""

from __future__ import annotations

import ast
import inspect
import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from bench.mutations import MUTATIONS
from hypothesis import given
from hypothesis import strategies as st

import dpsyn
from dpsyn.accounting import PrivacyUnit
from dpsyn.private import PrivateBaskets, PrivateTable
from dpsyn.private.gate import PrivacyGate
from dpsyn.private.table import _exact_indif

SOURCE, TESTS = Path(dpsyn.__file__).parent, Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "explanation" / "guarantee.md").read_text("utf-8")
MUTANTS = {mutation.name: mutation for mutation in MUTATIONS}


class Statement(NamedTuple):
    """A theorem, lemma or claim of the page: its heading, and the names that it refers to."""

    heading: str
    code: list[str]
    tests: list[str]
    mutants: list[str]


def find_statements(page: str) -> list[Statement]:
    """Every section that proves something: it ends with three lists."""
    found = []
    for section in re.split(r"^#{2,3} ", page, flags=re.MULTILINE)[1:]:
        lists = dict(re.findall(r"^- (code|tests|mutants): (.*)$", section, re.MULTILINE))
        if lists or "∎" in section:
            code, tests = (re.findall(r"`([^`]+)`", lists.get(each, "")) for each in ("code", "tests"))
            mutants = re.findall(r'"([^"]+)"', lists.get("mutants", ""))
            found.append(Statement(section.partition("\n")[0], code, tests, mutants))
    return found


STATEMENTS = find_statements(PAGE)


@cache
def defined_names(path: Path) -> frozenset[str]:
    """The functions, classes and methods of a file, by their qualified names."""
    names = set()

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                names.add(prefix + child.name)
                visit(child, f"{prefix}{child.name}.")

    visit(ast.parse(path.read_text("utf-8")), "")
    return frozenset(names)


def missing_references(statement: Statement) -> list[str]:
    """What a statement refers to and does not exist; a statement without code, tests or mutants is incomplete."""
    missing = [
        f"{statement.heading}: no {name}" for name in ("code", "tests", "mutants") if not getattr(statement, name)
    ]
    for root, references in ((SOURCE, statement.code), (TESTS, statement.tests)):
        for reference in references:
            file, _, name = reference.partition("::")
            if not (root / file).is_file() or name not in defined_names(root / file):
                missing.append(reference)
    return missing + [name for name in statement.mutants if name not in MUTANTS]


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.heading)
def test_the_functions_tests_and_mutants_of_a_statement_exist(statement: Statement) -> None:
    assert missing_references(statement) == []


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.heading)
def test_a_mutant_of_a_statement_breaks_a_file_that_it_names(statement: Statement) -> None:
    """Otherwise its mutants show nothing about the statement."""
    broken = {MUTANTS[name].file for name in statement.mutants}

    assert broken & {reference.partition("::")[0] for reference in statement.code}


def test_every_method_of_the_gate_has_a_statement() -> None:
    proven = {reference.rpartition(".")[2] for statement in STATEMENTS for reference in statement.code}
    methods = {
        name
        for gate in (PrivateTable, PrivateBaskets)
        for name, member in inspect.getmembers(gate, inspect.isfunction)
        if not name.startswith("_") and not hasattr(PrivacyGate, name)
    }

    assert len(methods) > 20
    assert methods - proven == set()


def test_the_checker_finds_what_does_not_exist() -> None:
    page = (
        "### Theorem X\n\n*Statement.* ∎\n\n- code: `private/table.py::PrivateTable.peek`\n"
        '- tests: `private/test_table.py::test_nothing`\n- mutants: "σ is tripled"\n\n### Theorem Y\n\n*Statement.* ∎\n'
    )

    first, second = find_statements(page)

    assert missing_references(first) == [
        "private/table.py::PrivateTable.peek",
        "private/test_table.py::test_nothing",
        "σ is tripled",
    ]
    assert len(missing_references(second)) == 3


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("k", [1, 3])
def test_the_table_of_sensitivities_is_that_of_the_code(relation: str, k: int) -> None:
    row = re.search(rf"^\| {relation} \| (\d*)k \| (\d*)k² \| (\d*)c·k \|$", PAGE, re.MULTILINE)
    assert row
    first, second, score = (int(factor or 1) for factor in row.groups())
    unit = PrivacyUnit(neighbors=relation, id="person", max_rows=k)

    assert unit.l1_sensitivity == first * k
    assert unit.l2_sensitivity_squared == second * k**2
    assert unit.score_sensitivity(5) == score * 5 * k


counts = st.lists(st.lists(st.integers(0, 6), min_size=3, max_size=3), min_size=3, max_size=3).map(np.array)


def indif_matrix(table: np.ndarray) -> np.ndarray:
    """M − n·p⊗q in exact fractions; zero for an empty table."""
    rows = int(table.sum())
    exact = np.array([[Fraction(int(cell)) for cell in line] for line in table], object)
    return exact - np.multiply.outer(exact.sum(axis=1), exact.sum(axis=0)) / rows if rows else 0 * exact


@given(counts, st.integers(0, 2), st.integers(0, 2))
def test_the_change_of_indif_is_the_product_of_the_proof(table: np.ndarray, i: int, j: int) -> None:
    rows = int(table.sum())
    more = table.copy()
    more[i, j] += 1

    change = indif_matrix(more) - indif_matrix(table)

    if rows:
        exact = np.array([[Fraction(int(cell)) for cell in line] for line in table], object)
        row, column = (np.array([Fraction(0)] * 3, object) for _ in range(2))
        row[i], column[j] = Fraction(1), Fraction(1)
        p, q = exact.sum(axis=1) / rows, exact.sum(axis=0) / rows
        assert (change == Fraction(rows, rows + 1) * np.multiply.outer(row - p, column - q)).all()
    assert np.abs(change).sum() < 4
    assert abs(_exact_indif(more) - _exact_indif(table)) <= 4
    assert _exact_indif(table) == int(np.abs(indif_matrix(table)).sum())
