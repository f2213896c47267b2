"""The obviously right, slow twins of everything fast."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np

from dpsyn.schema import (
    Attribute,
    Boolean,
    Categorical,
    Datetime,
    Integer,
    Ranged,
    Real,
    Time,
    canonical_text,
    parse_clock,
    parse_instant,
)


def cell_of_text(attribute: Attribute, raw: bytes | None) -> int:
    """The fine code of one text cell, read by itself."""
    text = "" if raw is None else raw.decode("utf-8", "replace")
    if isinstance(attribute, Categorical | Boolean):
        result = None if raw is None else _index_in_list(attribute, text)
        if result is not None:
            return result
        return attribute.null_cell if raw is None or _means_nothing(attribute, text) else attribute.other_cell
    assert isinstance(attribute, Ranged)
    if _means_nothing(attribute, text):
        return attribute.null_cell
    coordinate = (
        _date(attribute, text)
        if isinstance(attribute, Datetime)
        else _clock(attribute, text)
        if isinstance(attribute, Time)
        else _number(attribute, text)
    )
    if coordinate is None:
        return attribute.other_cell
    step = min(max(coordinate - attribute.origin, 0), attribute.steps - 1)
    edges = attribute.grid().edges.tolist()
    return next(cell for cell, (first, stop) in enumerate(pairwise(edges)) if first <= step < stop)


def _means_nothing(attribute: Attribute, text: str) -> bool:
    bare = text.strip()
    if bare.lower() in ("", "nan", "-nan", "+nan") or text in attribute.null_spellings:
        return True
    return bare in attribute.null_spellings or _equals_a_null(attribute, bare)


def _equals_a_null(attribute: Attribute, text: str) -> bool:
    """Whether a number or date is the one that spells missing, written differently."""
    read: Callable[[str], object]
    if isinstance(attribute, Integer | Real):
        read = _exact
    elif isinstance(attribute, Datetime) and attribute.format is None:
        read = parse_instant
    elif isinstance(attribute, Time):
        read = parse_clock
    else:
        return False
    value = _truth(text) if read is _exact and _truth(text) is not None else read(text)
    return value is not None and value in [read(spelling.strip()) for spelling in attribute.null_spellings]


def _index_in_list(attribute: Categorical | Boolean, text: str) -> int | None:
    if isinstance(attribute, Boolean):
        words = {"true": 1, "t": 1, "yes": 1, "y": 1, "1": 1, "1.0": 1, "on": 1}
        words |= {"false": 0, "f": 0, "no": 0, "n": 0, "0": 0, "0.0": 0, "off": 0}
        return words.get(text.strip().lower())
    values = attribute.all_values()
    texts = [canonical_text(value) for value in values]
    for candidate in (text, text.strip()):
        if candidate in texts:
            return texts.index(candidate)
    if all(isinstance(value, int | float) for value in values):
        number = _exact(text.strip())
        matches = [index for index, value in enumerate(values) if number is not None and Fraction(value) == number]
        return matches[0] if matches else None
    return None


def _exact(text: str) -> Fraction | None:
    """A number as 64-bit machines see it, exactly."""
    if re.fullmatch(r"[-+]?[0-9]+", text, re.ASCII):
        return Fraction(int(text))
    if re.fullmatch(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?", text, re.ASCII):
        value = float(text)
        return Fraction(value) if math.isfinite(value) else Fraction(10) ** 400 * (1 if value > 0 else -1)
    return None


def _truth(text: str) -> Fraction | None:
    """A truth value as a number."""
    return {"true": Fraction(1), "false": Fraction(0)}.get(text.lower())


def _number(attribute: Ranged, text: str) -> int | None:
    bare = text.strip()
    if bare.lower() in ("inf", "+inf", "infinity", "+infinity"):
        return 2**70
    if bare.lower() in ("-inf", "-infinity"):
        return -(2**70)
    number = _exact(bare) if _truth(bare) is None else _truth(bare)
    if number is None:
        return None
    if isinstance(attribute, Real):
        low, high = (attribute.origin - 1) / attribute.scale, (attribute.origin + attribute.steps) / attribute.scale
        near = min(max(float(number) if abs(number) < 10**300 else (1e300 if number > 0 else -1e300), low), high)
        return int(np.rint(near * attribute.scale))
    return round(number)


def _date(attribute: Datetime, text: str) -> int | None:
    instant = parse_instant(text)
    if instant is None:
        return None
    return int(np.datetime64(instant, "us").astype(f"datetime64[{attribute.unit}]").astype(np.int64))


def _clock(attribute: Time, text: str) -> int | None:
    micros = parse_clock(text)
    return None if micros is None else micros // attribute.unit_micros


def count(rows: list[list[int]], clique: tuple[int, ...], sizes: tuple[int, ...]) -> list[int]:
    """The contingency table of rows of codes over a clique, flat, one row after the other."""
    shape = [sizes[position] for position in clique]
    cells = [0] * math.prod(shape)
    for row in rows:
        cells[_cell_number([row[position] for position in clique], shape)] += 1
    return cells


def _cell_number(codes: list[int], shape: list[int]) -> int:
    every = itertools.product(*(range(size) for size in shape))
    return next(number for number, cell in enumerate(every) if list(cell) == codes)


def siphash(message: bytes, key: bytes) -> int:
    """SipHash-2-4 as its paper describes it (Aumasson and Bernstein 2012, section 2)."""
    mask = 2**64 - 1
    k0, k1 = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rotate(x: int, bits: int) -> int:
        return (x << bits | x >> (64 - bits)) & mask

    def sip_round() -> None:
        v[0], v[2] = (v[0] + v[1]) & mask, (v[2] + v[3]) & mask
        v[1], v[3] = rotate(v[1], 13) ^ v[0], rotate(v[3], 16) ^ v[2]
        v[0] = rotate(v[0], 32)
        v[2], v[0] = (v[2] + v[1]) & mask, (v[0] + v[3]) & mask
        v[1], v[3] = rotate(v[1], 17) ^ v[2], rotate(v[3], 21) ^ v[0]
        v[2] = rotate(v[2], 32)

    padded = message + bytes(7 - len(message) % 8) + bytes([len(message) % 256])
    for start in range(0, len(padded), 8):
        word = int.from_bytes(padded[start : start + 8], "little")
        v[3] ^= word
        sip_round()
        sip_round()
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(4):
        sip_round()
    return v[0] ^ v[1] ^ v[2] ^ v[3]
