"""Hypothesis strategies for everything in a schema: whatever they draw is valid.

They lean towards what breaks files and parsers: names that YAML could take for something else, every optional
field, ranges of one value and of 2^53, bounds below zero and before 1970.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar, get_args

import msgspec
import numpy as np
from hypothesis import strategies as st

from dpsyn.errors import SchemaError
from dpsyn.schema import (
    MAX_JOINT_VALUES,
    MISSING,
    AnyAttribute,
    AnyRule,
    Attribute,
    Boolean,
    Categorical,
    Datetime,
    Derive,
    Identifier,
    Impossible,
    Integer,
    JointAttribute,
    Open,
    Order,
    Ordinal,
    Ranged,
    Real,
    Schema,
    Sum,
    Time,
    Total,
    UnitDeclaration,
    Value,
    canonical_text,
    parse_clock,
    parse_instant,
)
from dpsyn.schema.clock import ClockResolution
from dpsyn.schema.ranges import MAX_LATTICE_STEPS, MAX_REAL_COORDINATE, Resolution

WILD_TEXTS = (
    "no",
    "yes",
    "null",
    "~",
    "true",
    "1e5",
    "007",
    "0x1f",
    "1_000",
    "-",
    "- a",
    "a: b",
    "a #b",
    "#b",
    '"quoted"',
    "it's",
    " leading",
    "trailing ",
    "two  spaces",
    "line\nbreak",
    "tab\tstop",
    "carriage\rreturn",
    "Größe",
    "日本語",
    "🙂",
    "e\u0301",
    "next\x85line",
    "line\u2028separator",
    "\ufeffmark",
    "\x00",
    "\x1b[0m",
    "{a}",
    "[1, 2]",
    "&anchor",
    "*alias",
    "!tag",
    "%directive",
    "@at",
    "`tick`",
    "? key",
    "| bar",
    "> fold",
    "<<",
    "=",
    ".inf",
    ".5",
    "1.",
    "+1",
    "2016-01-01",
    "12:30:00",
    "30..39",
    "...",
    "---",
    "name",
    "kind",
    "C:\\folder\\file",
    "x" * 200,
    "x" * 1200,
)
"""Texts that a careless writer or reader of YAML would change."""

RESOLUTIONS: tuple[Resolution, ...] = get_args(Resolution)
_R = TypeVar("_R", bound=Ranged)
_MICROSECONDS = {
    "year": 366 * 86_400_000_000,
    "month": 31 * 86_400_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}


def texts() -> st.SearchStrategy[str]:
    """Texts, the empty one included."""
    return st.sampled_from(WILD_TEXTS) | st.text(max_size=12)


def names() -> st.SearchStrategy[str]:
    """Names of attributes."""
    return texts().filter(bool)


def listed_values() -> st.SearchStrategy[Value]:
    """Values of a category."""
    integers = st.integers(-20, 20) | st.integers(-(10**30), 10**30)
    return texts() | integers | st.floats(allow_nan=False, allow_infinity=False)


# ── attributes ───────────────────────────────────────────────────────────────────────────────────────────────


@st.composite
def _common(draw: st.DrawFn, forbidden: Iterable[str] = (), *, ranged: bool = False) -> dict[str, Any]:
    """The fields of every kind; ``forbidden`` texts, and values of a range, are not spellings of missing."""
    taken = set(forbidden)
    spellings = texts().filter(lambda text: text not in taken and not (ranged and _reads_as_a_value(text)))
    missing = st.booleans() | spellings | st.lists(spellings, max_size=3).map(tuple)
    return {
        "name": draw(names()),
        "missing": draw(st.just(False) if "" in taken else missing),  # a text file writes both alike
        "provenance": draw(st.sampled_from(["public", "data"])),
        "because": draw(st.just("") | texts()),
        "description": draw(st.just("") | texts()),
    }


def _reads_as_a_value(text: str) -> bool:
    try:
        Decimal(text)
    except InvalidOperation:
        return parse_instant(text) is not None or parse_clock(text) is not None
    return True


@st.composite
def _listed(draw: st.DrawFn, kind: type[Categorical], max_values: int = 6) -> Categorical:
    value = listed_values().filter(lambda value: canonical_text(value) != MISSING)
    if draw(st.booleans()):
        fields: dict[str, Any] = {"codes": draw(st.integers(1, max_values))}
        values: list[Value] = list(range(fields["codes"]))
    else:
        values = draw(st.lists(value, min_size=1, max_size=max_values, unique_by=canonical_text))
        fields = {"values": tuple(values)}
    other = draw(st.none() | st.sampled_from(values) | value)
    known = {canonical_text(v) for v in values} | ({canonical_text(other)} if other is not None else set())
    return kind(**fields, other=other, **draw(_common(known)))


def categoricals() -> st.SearchStrategy[Categorical]:
    """Lists of values and numbers of codes."""
    return _listed(Categorical)


def ordinals() -> st.SearchStrategy[Ordinal]:
    """Lists of values in order."""
    return _listed(Ordinal)  # type: ignore[return-value]


@st.composite
def booleans(draw: st.DrawFn) -> Boolean:
    """True or false."""
    return Boolean(other=draw(st.none() | st.booleans()), **draw(_common()))


@st.composite
def opens(draw: st.DrawFn) -> Open:
    """Text whose values are discovered by a release."""
    other = draw(texts().filter(lambda text: text != MISSING))
    return Open(other=other, **draw(_common([other])))


@st.composite
def identifiers(draw: st.DrawFn) -> Identifier:
    """Keys that are never measured."""
    return Identifier(output=draw(st.sampled_from(["drop", "fresh"])), **draw(_common()))


@st.composite
def integers(draw: st.DrawFn) -> Integer:
    """Whole numbers: ranges of one value, of a few, and of almost 2^53."""
    bound = MAX_LATTICE_STEPS - 1
    low = draw(st.integers(-150, 150) | st.integers(-bound, bound))
    span = min(bound - low, MAX_LATTICE_STEPS - 1)
    high = low + draw(st.integers(0, min(span, 300)) | st.integers(0, span))
    return _with_cuts(draw, Integer(low=low, high=high, **draw(_common(ranged=True))), int)


@st.composite
def reals(draw: st.DrawFn) -> Real:
    """Numbers with decimals: all precisions, left open or declared."""
    if draw(st.booleans()):
        places, largest, decimals = draw(st.integers(0, 3)), 10**6, None
    else:
        decimals = draw(st.integers(0, 15))
        places, largest = decimals, MAX_REAL_COORDINATE - 1
    lattice = st.integers(-300, 300) | st.integers(-largest, largest)
    low, high = sorted((draw(lattice), draw(lattice)))
    bounds = {"low": low / 10**places, "high": high / 10**places}
    return _with_cuts(draw, Real(**bounds, decimals=decimals, **draw(_common(ranged=True))), float)


@st.composite
def datetimes(draw: st.DrawFn) -> Datetime:
    """Dates and times of every resolution, from the year 1 to 9999."""
    resolution = draw(st.sampled_from(RESOLUTIONS))
    start = draw(st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2030, 1, 1)) | st.datetimes())
    room = (dt.datetime.max - start) // dt.timedelta(microseconds=1)
    # bare dates as start and end add up to a day each
    longest = min(room, (MAX_LATTICE_STEPS - 1) * _MICROSECONDS[resolution] - 2 * _MICROSECONDS["day"])
    length = draw(st.integers(0, min(longest, 400 * _MICROSECONDS[resolution])) | st.integers(0, longest))
    end = start + dt.timedelta(microseconds=length)
    first = draw(st.sampled_from([start.isoformat(), start.isoformat(" "), start.date().isoformat()]))
    last = draw(st.sampled_from([end.isoformat(), f"{end.isoformat()}Z", end.date().isoformat()]))
    formatted = draw(st.none() | st.sampled_from(["%d.%m.%Y", "%Y%m%d", "%m/%d/%y %I:%M %p"]))
    base = Datetime(start=first, end=last, resolution=resolution, format=formatted, **draw(_common(ranged=True)))
    return _with_cuts(draw, base, str)


@st.composite
def clock_times(draw: st.DrawFn) -> Time:
    """Times of day of every resolution, all day or a part of it."""
    resolution = draw(st.sampled_from(get_args(ClockResolution)))
    start, end = sorted((draw(st.times()), draw(st.times())))
    forms = st.sampled_from(["%H:%M", "%H:%M:%S", "%H:%M:%S.%f"])
    bounds: dict[str, Any] = {"start": start.strftime(draw(forms)), "end": end.strftime(draw(forms))}
    bounds = draw(st.sampled_from([{}, bounds]))
    return _with_cuts(draw, Time(resolution=resolution, **bounds, **draw(_common(ranged=True))), str)


def _with_cuts(draw: st.DrawFn, base: _R, typed: Callable[[str], Value]) -> _R:
    """The same range with bins, spikes and a home for what cannot be read."""
    steps = st.integers(0, min(base.steps - 1, 300)) | st.integers(0, base.steps - 1)

    def value_at(step: int) -> Value:
        return typed(_written(base, step))

    starts = st.lists(steps, min_size=1, max_size=5, unique=True).map(sorted)
    return msgspec.structs.replace(
        base,
        bins=draw(st.none() | st.integers(1, 60) | starts.map(lambda found: tuple(map(value_at, found)))),
        spikes=tuple(value_at(step) for step in draw(st.lists(steps, max_size=3))),
        other=draw(st.none() | steps.map(value_at)),
    )


def _written(base: Ranged, step: int) -> str:
    """The value at a step, as fine as a person may write it."""
    if isinstance(base, Datetime) and base.is_date:
        return str(base.values_at(np.array([step]))[0].astype("datetime64[D]"))
    return base.text_at(step)


def rangeds() -> st.SearchStrategy[Integer | Real | Datetime | Time]:
    """Kinds whose values form a range."""
    return st.one_of(integers(), reals(), datetimes(), clock_times())


def coded() -> st.SearchStrategy[Categorical | Boolean | Integer | Real | Datetime | Time]:
    """Kinds with codes."""
    return st.one_of(categoricals(), ordinals(), booleans(), integers(), reals(), datetimes(), clock_times())


def attributes() -> st.SearchStrategy[AnyAttribute]:
    """Attributes of every kind."""
    return st.one_of(coded(), opens(), identifiers())


# ── relations ────────────────────────────────────────────────────────────────────────────────────────────────


@st.composite
def _stated(draw: st.DrawFn) -> dict[str, Any]:
    return {"provenance": draw(st.sampled_from(["public", "data"])), "because": draw(st.just("") | texts())}


@st.composite
def conditions(draw: st.DrawFn, attribute: Attribute) -> Value | tuple[Value, ...]:
    """A value of an attribute, several, or ``missing``."""
    if isinstance(attribute, Ranged):
        edges = attribute.grid().edges.tolist()
        cells = st.tuples(*[st.integers(0, len(edges) - 2)] * 2).map(sorted)
        one: st.SearchStrategy[str] = cells.map(lambda pair: _range(attribute, edges[pair[0]], edges[pair[1] + 1] - 1))
        one |= st.just(MISSING) if attribute.has_missing else st.nothing()
    else:
        one = st.sampled_from(attribute.labels())
    return draw(one | st.lists(one, min_size=1, max_size=3).map(tuple))


def _range(attribute: Ranged, first: int, last: int) -> str:
    ends = [_written(attribute, step) for step in (first, last)]
    return ends[0] if first == last else "..".join(ends)


@st.composite
def derivations(draw: st.DrawFn, source: Attribute, target: Attribute) -> Derive:
    """A mapping from one attribute with listed values to another, total by itself or by ``otherwise``."""
    keys = source.labels()
    otherwise = draw(st.none() | st.sampled_from(target.labels()))
    if otherwise is not None:
        keys = tuple(draw(st.lists(st.sampled_from(keys), min_size=1, unique=True)))
    mapping = tuple((key, draw(st.sampled_from(target.labels()))) for key in keys)
    return Derive(name=target.name, source=source.name, mapping=mapping, otherwise=otherwise, **draw(_stated()))


@st.composite
def rules(draw: st.DrawFn, attributes: Sequence[AnyAttribute]) -> AnyRule:
    """A rule about some of the attributes."""
    conditioned = [attribute for attribute in attributes if attribute.coded]
    numbers = [attribute.name for attribute in attributes if isinstance(attribute, Integer | Real)]
    dates = [attribute.name for attribute in attributes if isinstance(attribute, Datetime)]
    times = [attribute.name for attribute in attributes if isinstance(attribute, Time)]
    comparable = [group for group in (numbers, dates, times) if len(group) > 1]
    choices: list[type[AnyRule]] = [Total, *([Impossible] if conditioned else [])]
    choices += [*([Order] if comparable else []), *([Sum] if len(numbers) > 1 else [])]
    stated = draw(_stated())
    kind = draw(st.sampled_from(choices))
    if kind is Order:
        group = draw(st.sampled_from(comparable))
        ordered = draw(st.lists(st.sampled_from(group), min_size=2, unique=True))
        return Order(attributes=tuple(ordered), strict=draw(st.booleans()), **stated)
    if kind is Sum:
        total, *parts = draw(st.lists(st.sampled_from(numbers), min_size=2, unique=True))
        return Sum(total=total, parts=tuple(parts), **stated)
    least = 1 if kind is Impossible else 0
    met = draw(st.lists(st.sampled_from(conditioned), min_size=least, max_size=3, unique=True)) if conditioned else []
    where = tuple((attribute.name, draw(conditions(attribute))) for attribute in met)
    if kind is Impossible:
        return Impossible(where=where, **stated)
    return Total(where=where, count=draw(st.integers(0, 10**12)), **stated)


# ── schemas ──────────────────────────────────────────────────────────────────────────────────────────────────


@st.composite
def schemas(draw: st.DrawFn, max_attributes: int = 5) -> Schema:
    """Schemas with everything a schema can have."""
    several = st.lists(attributes(), min_size=1, max_size=max_attributes, unique_by=lambda attribute: attribute.name)
    found = draw(several)
    if all(isinstance(attribute, Identifier) for attribute in found):
        found.append(Boolean(name=draw(_fresh_names(found))))
    derive = draw(_derivations_among(found))
    derived = {entry.name for entry in derive}
    measured = [a.name for a in found if not isinstance(a, Identifier) and a.name not in derived]
    ids = [attribute.name for attribute in found if isinstance(attribute, Identifier)]
    units = st.builds(UnitDeclaration, id=st.sampled_from(ids), max_rows=st.integers(1, 1000)) if ids else st.nothing()
    plain = Schema(
        attributes=tuple(draw(st.permutations(found))),
        dataset=draw(st.just("") | texts()),
        expected_size=draw(st.none() | st.integers(1, 10**12)),
        neighbors=draw(st.sampled_from(["add-remove", "replace"])),
        privacy_unit=draw(st.none() | units),
        derive=derive,
        measure_together=draw(_recodes_among(measured, found)),
    )
    ruled = with_rules(plain, draw(st.lists(rules(found), max_size=3)))
    listed = [attribute.name for attribute in ruled.modeled_attributes if attribute.coded]
    return ruled.with_groups(draw(st.lists(st.sampled_from(listed), unique=True)) if listed else ())


def with_rules(schema: Schema, wanted: Sequence[AnyRule]) -> Schema:
    """The schema with as many of the rules as can be satisfied together."""
    for rule in wanted:
        with contextlib.suppress(SchemaError):
            schema = msgspec.structs.replace(schema, rules=(*schema.rules, rule))
    return schema


def _fresh_names(attributes: Sequence[AnyAttribute]) -> st.SearchStrategy[str]:
    taken = {attribute.name for attribute in attributes}
    return names().filter(lambda name: name not in taken)


@st.composite
def _derivations_among(draw: st.DrawFn, found: list[AnyAttribute]) -> tuple[Derive, ...]:
    """Up to two derivations; the derived attributes join those found."""
    sources = [attribute for attribute in found if isinstance(attribute, Categorical | Boolean)]
    derive: list[Derive] = []
    for _ in range(draw(st.integers(0, 2)) if sources else 0):
        target = msgspec.structs.replace(draw(categoricals()), name=draw(_fresh_names(found)))
        derive.append(draw(derivations(draw(st.sampled_from(sources)), target)))
        found.append(target)
    return tuple(derive)


@st.composite
def _recodes_among(draw: st.DrawFn, measured: list[str], found: Sequence[AnyAttribute]) -> tuple[JointAttribute, ...]:
    """Up to two groups of measured attributes that share none."""
    left = list(draw(st.permutations(measured)))
    groups: dict[str, JointAttribute] = {}
    for _ in range(draw(st.integers(0, len(left) // 2))):
        parts = tuple(left.pop() for _ in range(draw(st.integers(2, len(left))) if len(left) > 1 else 0))
        name = draw(_fresh_names(found))
        sizes = [attribute.size for attribute in found if attribute.name in parts and attribute.coded]
        if parts and name not in groups and math.prod(sizes) <= MAX_JOINT_VALUES:
            groups[name] = JointAttribute(name=name, attributes=parts)
    return tuple(groups.values())
