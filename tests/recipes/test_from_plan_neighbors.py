"""Plans of all kinds on neighboring tables: no answer differs by more than was charged, and nothing else differs.

A plan is drawn at random over a schema with dates, rules, derived and open attributes. It runs on a table, then on a
neighbor with the first run's released values replayed. What it found must be the same to the last code: then it
follows from the plan, the schema and the released values alone.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpsyn.encoding import Codec
from dpsyn.errors import PlanError
from dpsyn.plan import Plan, budget_for_plan, resolve_plan
from dpsyn.private import ReleaseLimits, open_private
from dpsyn.recipes import Planned
from dpsyn.recipes.base import Measurements
from dpsyn.schema import Schema, UnitDeclaration
from tests.private.noise_doubles import RecordedAnswer, RecordingNoise, ReplayedNoise
from tests.private.test_sensitivity import check

EPSILON = 2.0

SCHEMA = Schema.from_yaml("""
dpsyn_schema: 1
attributes:
  person: {kind: identifier}
  sent: {kind: datetime, start: 2024-01-01, end: 2024-01-12, bins: 4}
  came: {kind: datetime, start: 2024-01-03, end: 2024-01-20, bins: 3, missing: true}
  left: {kind: datetime, start: 2024-01-01, end: 2024-01-31, missing: true}
  code: {kind: categorical, codes: 9}
  chapter: {kind: categorical, codes: 3}
  near: {kind: categorical, codes: 4, missing: true}
  ok: {kind: boolean, missing: true}
  wage: {kind: integer, low: 0, high: 60, bins: 5}
  rent: {kind: integer, low: 0, high: 30, bins: 5}
  income: {kind: integer, low: 0, high: 90, bins: 5}
  city: {kind: open}
derive:
  chapter: {from: code, mapping: {0: 0, 1: 0, 2: 0, 3: 1, 4: 1, 5: 1}, otherwise: 2}
rules:
  - {rule: order, attributes: [sent, came]}
  - {rule: sum, total: income, parts: [wage, rent]}
  - {rule: impossible, where: {chapter: 1, ok: true}}
  - {rule: total, where: {ok: false}, count: 5}
""")
COLUMNS = ("person", "sent", "came", "left", "code", "chapter", "near", "ok", "wage", "rent", "income", "city")

TRANSFORMS = [
    "{transform: bucketize, of: wage, starts: [0, 1, 40]}",
    "{transform: bucketize, of: rent, starts: [0, 7], fine: false}",
    "{transform: bucketize, of: income, starts: [0, 30], share: 1/10}",
    "{transform: recode, to: both, of: [code, near]}",
    "{transform: recode, to: home, of: [ok, city], share: 1/10, max_codes: 4}",
    "{transform: recode, to: paid, of: [wage, rent], threshold: 0, rows: 1}",
    "{transform: availability, to: times, of: [came, left]}",
    "{transform: availability, to: times, of: [came, left], anchor: sent, keep: [0, 1, -1]}",
    "{transform: availability, to: times, of: [left], anchor: came, fine: false, share: 1/20}",
    "{transform: mapping, of: near, from: code, share: 1/10}",
    "{transform: mapping, of: code, from: city, share: 1/10, max_codes: 3}",
    "{transform: mapping, of: city, from: near}",
    "{transform: random, of: [income]}",
    "{transform: random, of: [city, left]}",
    "{transform: compress, of: [city, code], max_codes: 3}",
    "{transform: compress, threshold: 0.5}",
]
MARGINALS = [
    "[sent, code]",
    "[ok, wage, near]",
    "{pairs: [sent, came, left]}",
    "{pairs: [city], with: [ok, income]}",
    "{of: [wage, rent, income], share: 1/10}",
    "{of: [near, code], share: 1/20, mechanism: laplace}",
    "{pairs: [came, ok, city], share: 1/10, mechanism: laplace}",
    "{of: [city], share: 1/20, mechanism: laplace}",
]
GROUPS = [
    "",
    "groups: {money: {attributes: [wage, rent, income]}}",
    "groups: {one: {attributes: [sent, came, left, ok]}, two: {attributes: [wage, rent, income, ok], join: ok}}",
]
SELECTIONS = ["", "selection: true", "selection: 0.3", "selection: false", "one_way: 0.4"]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Plans that fit the schema; most draws of transforms and marginals do."""
    transforms = draw(st.lists(st.sampled_from(TRANSFORMS), max_size=5, unique=True))
    marginals = draw(st.lists(st.sampled_from(MARGINALS), max_size=4, unique=True))
    lines = ["dpsyn_plan: 1", draw(st.sampled_from(GROUPS)), draw(st.sampled_from(SELECTIONS))]
    lines += ["transforms:", *(f"  - {one}" for one in transforms)] if transforms else []
    lines += ["marginals:", *(f"  - {one}" for one in marginals)] if marginals else []
    plan = Plan.from_yaml("\n".join(lines))
    try:
        plan.check(SCHEMA)
    except PlanError:
        assume(False)
    return plan


def rows() -> st.SearchStrategy[tuple[str | None, ...]]:
    dates: list[str | None] = ["2024-01-01", "2024-01-02", "2024-01-11", "2024-01-12T03:00:00", "2030-01-01", "", "bad"]
    numbers: list[str | None] = ["0", "1", "7", "30", "59", "1e3", "", "x"]
    texts: list[list[str | None]] = [
        ["p1", "p2", "p3", None],
        dates,
        dates,
        dates,
        ["0", "1", "4", "8", "77"],
        ["0", "2"],
        ["0", "3", ""],
        ["true", "no", ""],
        numbers,
        numbers,
        numbers,
        ["Oslo", "Bergen", "Å", "", None],
    ]
    return st.tuples(*map(st.sampled_from, texts))


@st.composite
def neighboring(draw: st.DrawFn, relation: str, with_unit: bool) -> tuple[list[Any], list[Any]]:
    """Two tables that differ in one row, or in all rows of a person; many rows are alike, so that values are bought."""
    common = draw(st.lists(rows(), max_size=5)) * draw(st.sampled_from([1, 1, 40]))
    several = st.lists(rows(), min_size=1, max_size=5 if with_unit else 1)
    one, other = draw(several), draw(several)
    if with_unit:
        common = [row for row in common if row[0] != "p1"]
        one, other = ([("p1", *row[1:]) for row in them] for them in (one, other))
    if relation == "add-remove":
        other = []
    return [*common, *one], [*other, *common]


def run(
    table: list[Any], schema: Schema, plan: Plan, noise: RecordingNoise | ReplayedNoise
) -> tuple[Measurements, list[RecordedAnswer]]:
    columns = {name: pa.array([row[place] for row in table], pa.string()) for place, name in enumerate(COLUMNS)}
    budget = budget_for_plan(resolve_plan(plan, schema, EPSILON), EPSILON, 1e-6, thresholds=True)
    with open_private(
        pa.table(columns), schema, budget, mechanisms=noise, limits=ReleaseLimits(max_marginal_cells=100_000)
    ) as private:
        found = Planned(plan=plan).measure(private)
    return found, noise.answers


def told(found: Measurements) -> object:
    """All that a release keeps of a run, in a form that can be compared."""
    columns = [
        [
            (c.name, c.sources, [t.tolist() for t in c.tables], None if c.merged is None else c.merged.tolist())
            for c in recoding.columns
        ]
        + [
            (place, r.anchor, r.expected_codes.tolist(), r.modulus)
            for place, r in sorted(recoding.difference_codings.items())
        ]
        for recoding in (found.recoding, *(stage.recoding for stage in found.rounds))
    ]
    marginals = [(m.clique, m.std, m.lattice, m.raw.tolist()) for stage in found.rounds for m in stage.marginals]
    scores = [(s.kind, s.cliques, s.values.tolist(), s.std) for s in found.scores]
    return found.schema, columns, marginals, scores, sorted(found.zeroed_attributes), found.row_count


@pytest.fixture(autouse=True)
def same_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both runs keep the same rows of a person."""
    monkeypatch.setattr("secrets.token_bytes", lambda size: b"k" * size)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("kept", [None, 1, 3])
def test_plans_on_neighbors_tell_the_same_but_for_what_was_charged(relation: Any, kept: int | None) -> None:
    unit = UnitDeclaration(id="person", max_rows=kept) if kept else None
    schema = msgspec.structs.replace(SCHEMA, neighbors=relation, privacy_unit=unit)

    @settings(max_examples=5)
    @given(plans(), neighboring(relation, kept is not None))
    def compare(plan: Plan, tables: tuple[list[Any], list[Any]]) -> None:
        first = RecordingNoise()
        one, ones = run(tables[0], schema, plan, first)

        other, others = run(tables[1], schema, plan, ReplayedNoise(first))

        assert len(ones) == len(others) > 0
        for before, after in zip(ones, others, strict=True):
            check(before, after)
        assert told(one) == told(other)

    compare()


@settings(max_examples=15)
@given(plans(), st.lists(rows(), max_size=30), st.integers(0, 2**32))
def test_codes_of_any_plan_survive_their_values(plan: Plan, few: list[Any], seed: int) -> None:
    found, _ = run(few * 5, SCHEMA, plan, RecordingNoise())
    codec, rng = Codec(found.schema), np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, 40) for size in found.recoding.sizes], axis=1)
    weights = [rng.random(size) * rng.integers(0, 2, size) for size in codec.fine_sizes]

    fine = found.recoding.expand(codes, weights, rng)
    again = codec.encode(codec.decode(fine, rng))

    assert np.array_equal(found.recoding.apply(fine), codes)
    assert np.array_equal(found.recoding.apply(again), codes)
