"""Columns as the scorer of the contest's third match read them: each is an enumeration of the codes 0 … maxval.

Numbers are codes like any other, derived columns are columns like any other, and no value is merged with another one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding import check_structure
from dpsyn.errors import SchemaError, UserError, quote_argument
from dpsyn.evaluation.reader import TableSources, read_sources
from dpsyn.evaluation.tables import Domain, EvaluationTables
from dpsyn.schema import Categorical, Identifier, Integer, Ranged, Schema
from dpsyn.schema.files import read_bytes
from dpsyn.schema.schema import AnyAttribute

MaxCodes = Mapping[str, int]
"""The largest code of columns, by name."""

MAX_CODE = 2**52
"""The largest code: a number in a schema has at most 2⁵³ values."""

MAX_CODE_SET = 1 << 20
"""Codes of a set. Only ranges of more than about 10¹² codes, such as microseconds, could have more before a repeat."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Enumerations:
    """The tables, with every column as an enumeration.

    Attributes:
        tables: both tables and the baselines, in exact codes.
        code_counts: for each column, how many codes there are: the steps of a whole number from 0 (or from the lowest
            value, if that is negative) to ``maxval``, or the values of a list. If cells can be missing, −1 is another.

    Privacy: it holds the real rows.
    """

    tables: EvaluationTables
    code_counts: tuple[int, ...]


def read_enumerations(sources: TableSources, schema: Schema, max_codes: MaxCodes, *, seed: int = 0) -> Enumerations:
    """Read two tables as enumerations: all columns of the schema that both have, but for identifiers.

    Without a published maximum, the codes of a column end with its largest value in the schema.

    Privacy: reads the real rows without protection and charges nothing. What is computed from the result is private.
    """
    shared = set.intersection(*(set(source.schema.names) for source in sources))
    derived = {derive.name for derive in schema.derive}
    attributes = [
        _enumerate_attribute(attribute, max_codes.get(attribute.name))
        for attribute in schema
        if not isinstance(attribute, Identifier) and (attribute.name in shared or attribute.name not in derived)
    ]
    enumerated = Schema(attributes=tuple(attributes))
    for source in sources:
        check_structure(enumerated, source.schema, source.label)
    tables = read_sources(sources, enumerated, seed=seed)
    counts = tuple(_count_codes(domain, max_codes.get(domain.name)) for domain in tables.domains)
    return Enumerations(tables, counts)


class _ColumnSpec(msgspec.Struct):
    """What the contest's file of specifications says about a column; further fields are ignored."""

    maxval: int | None = None


def load_max_codes(codes: MaxCodes | str | Path | None, schema: Schema) -> dict[str, int]:
    """Largest codes that fit a schema, given by name, or in the contest's file: ``{"AGE": {"maxval": 108}, …}``.

    Codes that do not fit are refused before any row is read.
    """
    loaded = _read_specs(codes) if isinstance(codes, str | Path) else dict(codes or {})
    for name, code in loaded.items():
        attribute = schema[name]
        if isinstance(code, bool) or not isinstance(code, int) or not 0 <= code <= MAX_CODE:
            raise UserError(
                f"maxval of column {name!r} is {quote_argument(code)}; give a whole number from 0 to {MAX_CODE:,}"
            )
        if not isinstance(_enumerate_attribute(attribute, code), Integer):
            raise UserError(f"column {name!r} is {attribute.kind} without whole numbers; leave out its maxval")
    return loaded


def _read_specs(path: str | Path) -> dict[str, int]:
    try:
        specs = msgspec.json.decode(read_bytes(path), type=dict[str, _ColumnSpec])
    except (msgspec.DecodeError, RecursionError):
        specs = {}
    found = {name: spec.maxval for name, spec in specs.items() if spec.maxval is not None}
    if not found:
        example = '{"AGE": {"maxval": 108}}'
        raise UserError(f"{path} does not state the largest codes of columns; give JSON such as {example}")
    return found


def _enumerate_attribute(attribute: AnyAttribute, max_code: int | None) -> AnyAttribute:
    """Whole numbers from 0 on for an attribute whose values are whole numbers; any other attribute as it is."""
    if isinstance(attribute, Integer):
        low, high = attribute.low, attribute.high
    elif isinstance(attribute, Categorical):
        values = [value for value in attribute.all_values() if isinstance(value, int)]
        if len(values) < attribute.proper_cells:
            return attribute
        low, high = min(values), max(values)
    else:
        return attribute
    try:
        return Integer(name=attribute.name, low=min(0, low), high=max(high, max_code or 0), missing=attribute.missing)
    except SchemaError:  # a spelling of missing, such as 99, lies among the numbers
        return attribute


def _count_codes(domain: Domain, max_code: int | None) -> int:
    attribute = domain.attribute
    if isinstance(attribute, Integer) and max_code is not None:
        return max_code - attribute.low + 1
    return attribute.steps if isinstance(attribute, Ranged) else attribute.proper_cells


# ── random sets of codes ─────────────────────────────────────────────────────────────────────────────────────


MISSING_CODE = -1
"""The code of a missing value in a set; a number has its step, a value of a list its position."""


def sample_code_set(domain: Domain, code: int, codes: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which codes of a domain are in a random set: that of a row, and random ones until one repeats."""
    first = MISSING_CODE if code == domain.missing else code if domain.steps is None else int(domain.steps[code])
    low = MISSING_CODE if domain.attribute.has_missing else 0
    return mark_codes(domain, sample_until_repeat(first, low, codes, rng))


def mark_codes(domain: Domain, accepted: Sequence[int] | NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which codes of a domain are in a set. A domain of numbers has only those that occur."""
    known = np.arange(domain.missing) if domain.steps is None else domain.steps
    return np.asarray(np.isin(np.append(known, MISSING_CODE)[: domain.size], accepted), np.bool_)


def sample_until_repeat(first: int, low: int, stop: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The code ``first``, and codes sampled uniformly out of low … stop−1 until one of them repeats an earlier one."""
    sampled = np.array([first])
    while len(sampled) < MAX_CODE_SET:
        more = rng.integers(low, stop, min(16 + 2 * math.isqrt(stop - low), MAX_CODE_SET))
        sampled = np.append(sampled, more)[:MAX_CODE_SET]
        order = np.argsort(sampled, kind="stable")
        repeats = order[1:][sampled[order[1:]] == sampled[order[:-1]]]
        if len(repeats):
            return sampled[: repeats.min()]
    return sampled
