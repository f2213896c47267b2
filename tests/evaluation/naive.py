"""Slow, obviously correct twins of the metrics. Rows are tuples of values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

Row = tuple[Any, ...]


def distance(real: Sequence[Row], other: Sequence[Row], clique: tuple[int, ...]) -> Fraction:
    """Half the sum of absolute differences of shares over all combinations of values."""
    first, second = (Counter(tuple(row[index] for index in clique) for row in rows) for rows in (real, other))
    shares = [abs(Fraction(first[cell], len(real)) - Fraction(second[cell], len(other))) for cell in {*first, *second}]
    return sum(shares, Fraction(0)) / 2


def matches(rows: Sequence[Row], query: Sequence[tuple[int, set[Any]]]) -> int:
    """How many rows have one of the named values at each named index."""
    return sum(all(row[index] in values for index, values in query) for row in rows)


def gini(wages: Sequence[float]) -> float:
    """1 − 2·Σ cumwage/(N·W), or 1 if all wages are 0."""
    if not sum(wages):
        return 1.0
    poorest_first = sorted(wages)
    cumulated = [sum(poorest_first[: index + 1]) for index in range(len(wages))]
    return 1 - 2 * sum(cumulated) / (len(wages) * sum(wages))


def cramers_v(rows: Sequence[tuple[Any, Any]]) -> float:
    """The textbook's formula: χ² of observed against expected counts over all cells."""
    firsts, seconds = ({row[index] for row in rows} for index in (0, 1))
    least = min(len(firsts), len(seconds))
    if least < 2:
        return 0.0
    chi_square = 0.0
    for first in firsts:
        for second in seconds:
            expected = sum(a == first for a, _ in rows) * sum(b == second for _, b in rows) / len(rows)
            chi_square += (sum(row == (first, second) for row in rows) - expected) ** 2 / expected
    return math.sqrt(chi_square / len(rows) / (least - 1))


def spearman(rows: Sequence[tuple[Any, Any]]) -> float:
    """Pearson's correlation of mean ranks over the rows in which nothing is missing; 0 if one value is constant."""
    kept = [row for row in rows if None not in row]
    one, two = (_ranks([row[index] for row in kept]) for index in (0, 1))
    if len({*one}) < 2 or len({*two}) < 2:
        return 0.0
    mean = (len(kept) + 1) / 2
    product = sum((a - mean) * (b - mean) for a, b in zip(one, two, strict=True))
    return product / math.sqrt(sum((a - mean) ** 2 for a in one) * sum((b - mean) ** 2 for b in two))


def _ranks(values: Sequence[Any]) -> list[float]:
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2 for value in values
    ]


def area_under_curve(positive: Sequence[bool], chances: Sequence[float]) -> float:
    """How often a row of the class gets a higher probability than another row; ties count as half."""
    ours = [chance for chance, yes in zip(chances, positive, strict=True) if yes]
    theirs = [chance for chance, yes in zip(chances, positive, strict=True) if not yes]
    wins = sum((a > b) + (a == b) / 2 for a in ours for b in theirs)
    return wins / (len(ours) * len(theirs))
