"""The obviously right, slow twins of everything fast."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np

from dpsyn.schema import Attribute, Boolean, Categorical, Datetime, Integer, Ranged, Real, parse_instant, text_of


def cell_of_text(attribute: Attribute, raw: bytes | None) -> int:
    """The fine code of one text cell, read by itself."""
    text = "" if raw is None else raw.decode("utf-8", "replace")
    if isinstance(attribute, Categorical | Boolean):
        found = None if raw is None else _place_in_list(attribute, text)
        if found is not None:
            return found
        return attribute.null_cell if raw is None or _means_nothing(attribute, text) else attribute.other_cell
    assert isinstance(attribute, Ranged)
    if _means_nothing(attribute, text):
        return attribute.null_cell
    coordinate = _date(attribute, text) if isinstance(attribute, Datetime) else _number(attribute, text)
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
    else:
        return False
    value = read(text)
    return value is not None and value in [read(spelling.strip()) for spelling in attribute.null_spellings]


def _place_in_list(attribute: Categorical | Boolean, text: str) -> int | None:
    if isinstance(attribute, Boolean):
        words = {"true": 1, "t": 1, "yes": 1, "y": 1, "1": 1, "1.0": 1, "on": 1}
        words |= {"false": 0, "f": 0, "no": 0, "n": 0, "0": 0, "0.0": 0, "off": 0}
        return words.get(text.strip().lower())
    values = attribute.all_values()
    texts = [text_of(value) for value in values]
    for candidate in (text, text.strip()):
        if candidate in texts:
            return texts.index(candidate)
    if all(isinstance(value, int | float) for value in values):
        number = _exact(text.strip())
        matches = [place for place, value in enumerate(values) if number is not None and Fraction(value) == number]
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


def _number(attribute: Ranged, text: str) -> int | None:
    bare = text.strip()
    if bare.lower() in ("inf", "+inf", "infinity", "+infinity"):
        return 2**70
    if bare.lower() in ("-inf", "-infinity"):
        return -(2**70)
    number = _exact(bare)
    if number is None:
        return None
    if isinstance(attribute, Real):
        low, high = (attribute.origin - 1) / attribute.scale, (attribute.origin + attribute.steps) / attribute.scale
        near = min(max(float(number) if abs(number) < 10**300 else math.copysign(1e300, number), low), high)
        return int(np.rint(near * attribute.scale))
    return round(number)


def _date(attribute: Datetime, text: str) -> int | None:
    instant = parse_instant(text)
    if instant is None:
        return None
    return int(np.datetime64(instant, "us").astype(f"datetime64[{attribute.unit}]").astype(np.int64))
