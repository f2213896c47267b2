"""Schemas with rules, for tests."""

from __future__ import annotations

from hypothesis import strategies as st

from dpsyn.schema import AnyAttribute, Categorical, Datetime, Integer, Ordinal, Real, Schema
from tests import strategies

HOSPITAL = Schema.from_yaml(
    """
dpsyn_schema: 1
expected_size: 20000
attributes:
  region: {kind: categorical, values: [north, south, west]}
  sex: {kind: categorical, values: [f, m]}
  age: {kind: integer, low: 0, high: 99}
  marital: {kind: categorical, values: [single, married, widowed]}
  group: {kind: ordinal, values: [minor, adult]}
  ward: {kind: categorical, values: [a, b, c, d]}
  admitted: {kind: datetime, start: 2024-01-01, end: 2024-12-31}
  discharged: {kind: datetime, start: 2024-01-01, end: 2024-12-31, missing: true}
  wages: {kind: integer, low: 0, high: 500}
  rents: {kind: integer, low: 0, high: 500}
  income: {kind: integer, low: 0, high: 1000}
derive:
  group: {from: age, mapping: {0..17: minor}, otherwise: adult}
rules:
  - {rule: impossible, where: {age: 0..15, marital: [married, widowed]}}
  - {rule: impossible, where: {group: minor, ward: [c, d]}}
  - {rule: order, attributes: [admitted, discharged]}
  - {rule: sum, total: income, parts: [wages, rents]}
"""
)


@st.composite
def schemas_with_rules(draw: st.DrawFn) -> Schema:
    """Small attributes of all coded kinds, so that rules meet often."""
    attributes: list[AnyAttribute] = [
        Categorical(name="c", codes=3, missing=draw(st.booleans())),
        Ordinal(name="o", values=("low", "mid", "high")),
        Integer(name="i", low=-3, high=draw(st.integers(0, 40)), missing=draw(st.booleans())),
        Integer(name="j", low=0, high=draw(st.sampled_from([3, 5_000])), bins=draw(st.integers(1, 4))),
        Integer(name="k", low=0, high=draw(st.integers(1, 9_000))),
        Real(name="r", low=0, high=2.5, decimals=draw(st.sampled_from([0, 1])) or 1),
        Datetime(name="d", start="1969-11-20", end="1970-02-03", resolution="day", missing=True),
        Datetime(name="m", start="1969-06", end="1970-06", resolution="month"),
        Datetime(name="t", start="1969-12-01", end="1970-01-31", resolution="hour"),
    ]
    wanted = draw(st.lists(strategies.rules(attributes), min_size=1, max_size=5))
    return strategies.with_rules(Schema(attributes=tuple(attributes)), wanted)
