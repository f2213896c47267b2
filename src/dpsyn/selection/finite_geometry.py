"""Finite geometries: sets of points such that every two, or every three, points lie in exactly one set.

No design covers all pairs, or all triples, with fewer sets of that size, so they are the best covering designs where
they fit (Gordon, Kuperberg, Patashnik: New constructions for covering designs, 1995). Two more designs, of symmetric
sets, hold some pairs or triples more than once; they are the smallest that were found for their numbers of points.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, product

from dpsyn.errors import InternalError

Line = tuple[int, ...]
"""The points of a line."""

FIELD_ORDERS = (2, 3, 4, 5, 7, 8, 9, 11, 13, 16)
"""The orders of the finite fields of the planes; lines have up to 17 points."""

QUADRUPLE_EXPONENTS = (3, 4, 5, 6)
"""The exponents m for which quadruples on 2^m points are listed: 14, 140, 1 240 and 10 416 quadruples."""

_IRREDUCIBLE = {4: (1, 1), 8: (1, 1, 0), 9: (1, 0), 16: (1, 1, 0, 0)}
"""For fields of non-prime order, an irreducible polynomial xⁿ + … with these lower coefficients, the constant first."""


def affine_plane(order: int) -> list[Line]:
    """The q² + q lines of q points each of the affine plane over the field of q elements, on the points 0 … q²−1."""
    add, times = _field(order)
    points = {pair: index for index, pair in enumerate(product(range(order), repeat=2))}
    vertical = [tuple(points[x, y] for y in range(order)) for x in range(order)]
    sloped = [
        tuple(points[x, add[times[slope][x]][shift]] for x in range(order))
        for slope, shift in product(range(order), repeat=2)
    ]
    return vertical + sloped


def projective_plane(order: int) -> list[Line]:
    """The q² + q + 1 lines of q + 1 points each of the projective plane: parallel lines meet in an added point."""
    lines = affine_plane(order)
    directions = [order**2 + index // order for index in range(len(lines))]
    return [(*line, point) for line, point in zip(lines, directions, strict=True)] + [tuple(sorted(set(directions)))]


def inversive_plane(order: int) -> list[Line]:
    """The q³ + q circles of q + 1 points each of the inversive plane, in which three points determine a circle.

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
        norms = [
            add[add[times[x][x]][times[s][times[x][y]]]][times[t][times[y][y]]]
            for x, y in product(range(order), repeat=2)
        ]
        if norms.count(0) == 1:
            return norms
    raise InternalError(f"there is no irreducible quadratic form over the field of {order} elements")


def boolean_quadruples(power: int) -> list[Line]:
    """The sets {a, b, c, a⊕b⊕c} on 2^m points: every three points are in exactly one set."""
    triples = combinations(range(2**power), 3)
    return sorted({tuple(sorted((a, b, c, a ^ b ^ c))) for a, b, c in triples})


_SUBSPACES = (
    (1, 2, 16),
    (1, 4, 18),
    (1, 6, 18),
    (1, 8, 18),
    (1, 10, 18),
    (1, 12, 18),
    (1, 14, 18),
    (2, 4, 9),
    (2, 5, 24),
    (2, 8, 20),
    (2, 12, 21),
    (3, 4, 8),
    (3, 5, 24),
    (3, 9, 21),
    (3, 13, 20),
    (4, 10, 18),
    (4, 11, 16),
    (4, 11, 17),
    (4, 11, 18),
    (5, 8, 16),
    (5, 9, 17),
    (5, 10, 18),
    (5, 11, 18),
    (6, 8, 17),
    (6, 10, 16),
    (7, 9, 16),
    (7, 10, 17),
)
"""27 three-dimensional subspaces of GF(2)⁵, by a basis of each, that contain every two-dimensional one; no fewer do
(Eisfeld and Metsch 1997). Found by integer programming."""


def binary_flats() -> list[Line]:
    """108 flats of 8 of the 32 points of GF(2)⁵: every three points are in at least one of them.

    Three points a, b, c are in a translate of each subspace that contains a ⊕ b and a ⊕ c.
    """
    flats = set()
    for a, b, c in _SUBSPACES:
        subspace = [0, a, b, a ^ b, c, a ^ c, b ^ c, a ^ b ^ c]
        flats |= {tuple(sorted(point ^ shift for point in subspace)) for shift in range(32)}
    return sorted(flats)


_CYCLIC_BLOCKS = (
    (0, 2, 5, 11, 14, 20, 32, 37),
    (0, 5, 11, 13, 36, 41, 43, 44),
    (1, 5, 11, 22, 28, 34, 35, 42),
    (1, 6, 14, 15, 26, 33, 40, 41),
    (1, 8, 16, 24, 27, 29, 37, 43),
    (2, 8, 15, 18, 21, 22, 26, 30),
    (3, 5, 9, 10, 15, 16, 24, 26),
    (4, 6, 7, 10, 18, 30, 35, 37),
    (4, 10, 22, 29, 32, 38, 39, 41),
    (5, 6, 11, 12, 13, 18, 21, 29),
    (7, 16, 20, 22, 24, 40, 43, 44),
    (12, 15, 26, 27, 31, 32, 35, 44),
    (12, 17, 19, 22, 25, 33, 36, 37),
    (18, 20, 27, 28, 31, 33, 39, 42),
)
"""14 sets of 8 of 45 points, the first of each orbit of a cyclic group of order 3. Found by simulated annealing over
designs with this symmetry (Nurmela and Östergård 1993)."""


def cyclic_design() -> list[Line]:
    """42 sets of 8 of 45 points that hold every two points: 14 sets, turned three times within threes of points."""
    turned = [
        [point - point % 3 + (point + shift) % 3 for point in block] for block in _CYCLIC_BLOCKS for shift in range(3)
    ]
    return sorted(tuple(sorted(block)) for block in turned)


@cache
def _field(order: int) -> tuple[list[list[int]], list[list[int]]]:
    """The tables of addition and multiplication; an element is the integer whose digits are its coefficients."""
    prime = next(p for p in (2, 3, 5, 7, 11, 13) if order % p == 0)
    degree = next(n for n in range(1, 9) if prime**n == order)
    lower = _IRREDUCIBLE.get(order, ())

    def digits(number: int) -> list[int]:
        return [number // prime**power % prime for power in range(degree)]

    def number_of(coefficients: list[int]) -> int:
        return sum(c % prime * prime**power for power, c in enumerate(coefficients))

    def plus(one: int, other: int) -> int:
        return number_of([a + b for a, b in zip(digits(one), digits(other), strict=True)])

    def times(one: int, other: int) -> int:
        result = [0] * (2 * degree - 1)
        for i, a in enumerate(digits(one)):
            for j, b in enumerate(digits(other)):
                result[i + j] += a * b
        for high in range(2 * degree - 2, degree - 1, -1):  # xⁿ = −(lower coefficients)
            for power, c in enumerate(lower):
                result[high - degree + power] -= result[high] * c
        return number_of(result[:degree])

    elements = range(order)
    return [[plus(a, b) for b in elements] for a in elements], [[times(a, b) for b in elements] for a in elements]
