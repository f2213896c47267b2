"""Finite geometries: points and sets of them such that every two, or every three, points lie in exactly one set.

There is no way to cover all pairs, or all triples, with fewer sets of that size, so that they are the best covering
designs where they fit (Gordon, Kuperberg, Patashnik: New constructions for covering designs, 1995).
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, product

from dpsyn.errors import InternalError

Line = tuple[int, ...]
"""The points of a line."""

FIELD_ORDERS = (2, 3, 4, 5, 7, 8, 9, 11, 13, 16)
"""Sizes of the fields that planes are made over: lines of up to 17 points."""

QUADRUPLE_EXPONENTS = (3, 4, 5, 6)
"""Exponents m for which quadruples on 2^m points are listed: 14, 140, 1 240 and 10 416 of them."""

_IRREDUCIBLE = {4: (1, 1), 8: (1, 1, 0), 9: (1, 0), 16: (1, 1, 0, 0)}
"""For fields that are not those of a prime: xⁿ + … with these lower coefficients, the constant first."""


def affine_plane(order: int) -> list[Line]:
    """The q² + q lines of q points each of the affine plane over the field of q elements, on the points 0 … q²−1."""
    add, times = _field(order)
    points = {pair: number for number, pair in enumerate(product(range(order), repeat=2))}
    upright = [tuple(points[x, y] for y in range(order)) for x in range(order)]
    sloping = [
        tuple(points[x, add[times[slope][x]][shift]] for x in range(order))
        for slope, shift in product(range(order), repeat=2)
    ]
    return upright + sloping


def projective_plane(order: int) -> list[Line]:
    """The q² + q + 1 lines of q + 1 points each of the projective plane: parallel lines meet in a point added."""
    lines = affine_plane(order)
    directions = [order**2 + place // order for place in range(len(lines))]
    return [(*line, point) for line, point in zip(lines, directions, strict=True)] + [tuple(sorted(set(directions)))]


def inversive_plane(order: int) -> list[Line]:
    """The q³ + q circles of q + 1 points each of the inversive plane, in which three points make a circle.

    Its points are those of the affine plane, and one more that lies on all lines. A circle is a line, or the solutions
    of N(x, y) + bx + cy + d = 0 where N(x, y) = 0 for x = y = 0 only.
    """
    add, times = _field(order)
    points, elements = list(product(range(order), repeat=2)), range(order)
    norms = _norms(order)
    circles = []
    for b, c, d in product(elements, repeat=3):
        zero = [n for n, (x, y) in enumerate(points) if add[add[norms[n]][times[b][x]]][add[times[c][y]][d]] == 0]
        circles += [tuple(zero)] if len(zero) > 1 else []
    return [(*line, order**2) for line in affine_plane(order)] + circles


def _norms(order: int) -> list[int]:
    """N(x, y) = x² + sxy + ty² for all points, with s and t such that it vanishes at the origin alone."""
    add, times = _field(order)
    for s, t in product(range(order), repeat=2):
        found = [
            add[add[times[x][x]][times[s][times[x][y]]]][times[t][times[y][y]]]
            for x, y in product(range(order), repeat=2)
        ]
        if found.count(0) == 1:
            return found
    raise InternalError(f"there is no irreducible form over {order} elements")


def boolean_quadruples(power: int) -> list[Line]:
    """The sets {a, b, c, a⊕b⊕c} on 2^m points: every three points are in exactly one."""
    triples = combinations(range(2**power), 3)
    return sorted({tuple(sorted((a, b, c, a ^ b ^ c))) for a, b, c in triples})


@cache
def _field(order: int) -> tuple[list[list[int]], list[list[int]]]:
    """The tables of addition and multiplication; an element is the number its coefficients spell, constant first."""
    prime = next(p for p in (2, 3, 5, 7, 11, 13) if order % p == 0)
    degree = next(n for n in range(1, 9) if prime**n == order)
    lower = _IRREDUCIBLE.get(order, ())

    def digits(number: int) -> list[int]:
        return [number // prime**place % prime for place in range(degree)]

    def number(coefficients: list[int]) -> int:
        return sum(c % prime * prime**place for place, c in enumerate(coefficients))

    def plus(one: int, other: int) -> int:
        return number([a + b for a, b in zip(digits(one), digits(other), strict=True)])

    def times(one: int, other: int) -> int:
        result = [0] * (2 * degree - 1)
        for i, a in enumerate(digits(one)):
            for j, b in enumerate(digits(other)):
                result[i + j] += a * b
        for high in range(2 * degree - 2, degree - 1, -1):  # xⁿ = −(lower coefficients)
            for place, c in enumerate(lower):
                result[high - degree + place] -= result[high] * c
        return number(result[:degree])

    elements = range(order)
    return [[plus(a, b) for b in elements] for a in elements], [[times(a, b) for b in elements] for a in elements]
