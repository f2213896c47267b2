"""Matrices: the colors and numbers of pairs, the largest first, and what is left out."""

from __future__ import annotations

from itertools import combinations

import pytest

from dpsyn.marginals import PairTable
from dpsyn.report.content import Matrix, MatrixGroup
from dpsyn.report.matrices import (
    DIVERGING,
    HEAT,
    MAX_CORRELATED_ATTRIBUTES,
    MAX_HEAT_MAP_ATTRIBUTES,
    Correlation,
    correlation_group,
    diverging_color,
    heat_color,
    heat_map,
    pair_group,
)


def correlate(reference: dict[frozenset[str], float], change: float = 0.0) -> MatrixGroup | None:
    synthetic = {pair: value + change for pair, value in reference.items()}
    names = sorted({name for pair in reference for name in pair})
    return correlation_group(
        Correlation(heading="r", explanation="x", reference=reference, synthetic=synthetic, signed=True),
        names,
        "real",
    )


def pairs_of(names: list[str], value: float = 0.5) -> dict[frozenset[str], float]:
    return {frozenset(pair): value for pair in combinations(names, 2)}


def texts(matrix: Matrix) -> list[list[str | None]]:
    return [[None if cell is None else cell.text for cell in line] for line in matrix.cells]


def test_colors_go_from_none_to_strong_and_from_less_to_more() -> None:
    assert [heat_color(share) for share in (-1, 0, 0.5, 1, 7)] == ["h0", "h0", "h4", "h8", "h8"]
    assert [diverging_color(share) for share in (-9, -1, 0, 0.1, 0.3, 1)] == ["l4", "l4", "e", "e", "m1", "m4"]
    assert len(HEAT) == len(DIVERGING) == 9


def test_correlations_stand_side_by_side_with_their_difference() -> None:
    group = correlate({frozenset("ab"): -0.35, frozenset("ac"): 0.996, frozenset("bc"): 0.001}, 0.125)

    assert group is not None
    real, synthetic, difference = group.matrices
    assert [each.title for each in group.matrices] == ["real", "synthetic", "synthetic minus real, at most 0.12"]
    assert texts(real) == [[None, "−.35", "1"], ["−.35", None, ".00"], ["1", ".00", None]]
    assert texts(synthetic)[0] == [None, "−.22", "1"]
    assert texts(difference)[1] == [".12", None, ".12"]
    assert real.cells[0][1] is not None
    assert real.cells[0][1].color == "l1"


def test_two_attributes_have_no_matrix() -> None:
    assert correlate({frozenset("ab"): 0.5}) is None


def test_of_many_attributes_those_with_the_largest_differences_are_shown() -> None:
    names = [f"n{index:02}" for index in range(MAX_CORRELATED_ATTRIBUTES + 4)]
    reference = pairs_of(names)
    synthetic = reference | {frozenset(("n00", names[-1])): 0.9}

    group = correlation_group(
        Correlation(heading="r", explanation="x", reference=reference, synthetic=synthetic, signed=False), names, "real"
    )

    assert group is not None
    assert len(group.matrices[0].lines) == MAX_CORRELATED_ATTRIBUTES
    assert {"n00", names[-1]} <= {*group.matrices[0].lines}
    assert group.note == "4 attributes with smaller differences are not shown."


def test_the_heat_map_begins_with_the_largest_values_and_marks_pairs() -> None:
    names = [f"n{index}" for index in range(MAX_HEAT_MAP_ATTRIBUTES + 5)]
    values = {frozenset((names[k], names[k + 1])): k / 100 for k in range(len(names) - 1)}
    last = frozenset(names[-2:])

    group = heat_map(
        values, heading="h", explanation="x", top=1.0, format_value="{:.1f}".format, marked=frozenset([last])
    )

    assert group is not None
    (matrix,) = group.matrices
    assert len(matrix.lines) == MAX_HEAT_MAP_ATTRIBUTES
    assert matrix.lines[0] == names[-1]
    assert "n0" not in matrix.lines
    assert group.note == "5 attributes with smaller values are not shown."
    marked = [cell for line in matrix.cells for cell in line if cell is not None and cell.marked]
    assert [cell.text for cell in marked] == ["0.6", "0.6"]
    assert group.ends == ("0.0", "1.0")


def test_without_pairs_there_is_no_heat_map() -> None:
    assert heat_map({}, heading="h", explanation="x", top=1.0, format_value=str) is None


@pytest.mark.parametrize(("change", "color"), [(0.3, "m4"), (0.0005, "m1"), (-0.3, "l4")])
def test_a_tiny_difference_of_a_pair_looks_tiny(change: float, color: str) -> None:
    table = PairTable(
        first="a",
        second="b",
        first_labels=("x", "y"),
        second_labels=("u", "v"),
        reference=((0.4, 0.1), (0.5, 0.0)),
        synthetic=((0.4 + change, 0.1), (0.5, 0.0)),
    )

    group = pair_group(0, table, "real")

    real, _, difference = group.matrices
    assert texts(real) == [["40.00", "10.00"], ["50.00", "0.00"]]
    assert difference.cells[0][0] is not None
    assert difference.cells[0][0].color == color
    assert f"at most {abs(change):.2%} of all rows" in difference.title
