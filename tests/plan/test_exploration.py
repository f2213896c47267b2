"""A first look tells what belongs together, and becomes a plan."""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import dpsyn
from dpsyn.diagnose import explore_public_data
from dpsyn.errors import UserError
from dpsyn.plan import Exploration, Plan, entries
from dpsyn.schema import JointAttribute, Total
from tests.plan.schemas import CALLS, calls


def test_a_public_table_is_looked_at_exactly() -> None:
    found = explore_public_data(calls(5_000), CALLS)

    strongest = {frozenset(d.pair) for d in found.dependences[:4]}
    follows = {(name, source) for name, source, _ in found.mappings()}
    assert found.exact
    assert frozenset({"received", "entered"}) in strongest
    assert ("month", "received") in follows
    assert all(d.std == 0 for d in found.dependences)
    assert len(found.dependences) == 28
    by_pair = {frozenset(d.pair): d for d in found.dependences}
    perfect = by_pair[frozenset({"received", "month"})]
    assert max(perfect.forward, perfect.backward) == pytest.approx(1.0, abs=1e-9)  # the month follows from the date


def test_groups_that_are_proposed_belong_together() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 5, 3_000)
    table = pa.table({"a": x, "b": (x + 1) % 5, "c": rng.integers(0, 5, 3_000)})
    schema = dpsyn.Schema.from_yaml(
        "dpsyn_schema: 1\nattributes:\n" + "".join(f"  {n}: {{kind: categorical, codes: 5}}\n" for n in "abc")
    )

    assert explore_public_data(table, schema).groups() == [("a", "b")]


def test_an_exploration_that_was_paid_for_becomes_a_plan_that_fits(tmp_path: object) -> None:
    synopsis = dpsyn.measure(calls(20_000), CALLS, 2.0, recipe="explore")

    plan = Plan.draft(synopsis)

    plan.check(CALLS)
    assert Plan.from_yaml(plan.to_yaml()) == plan
    assert any(isinstance(entry, entries.LearnedMapping) for entry in plan.transforms)
    taken = [n for t in plan.transforms for n in ((t.of,) if isinstance(t, entries.LearnedMapping) else t.mentions())]
    assert len(taken) == len(set(taken))
    certificate = synopsis.certificates[0]
    assert certificate is not None
    assert {draw.purpose.split(" of ")[0] for draw in certificate.account.measurements} == {"marginal", "dependence"}
    assert Exploration.from_synopsis(synopsis).rows == pytest.approx(20_000, rel=0.1)


def test_what_the_schema_declares_as_one_is_drafted_by_its_parts() -> None:
    schema = msgspec.structs.replace(
        CALLS, measure_together=(JointAttribute(name="what", attributes=("unit", "kind")),)
    )
    sizes = {"received": 20, "entered": 20, "what": 32, "month": 7}
    even = {name: np.full(size, 1_000 / size) for name, size in sizes.items()}
    pairs = [("received", "what"), ("entered", "what"), ("month", "what")]
    found = Exploration.build(
        even, pairs, np.array([1_700.0, 700.0, 1_700.0]), rows=1_000, parts={"what": ("unit", "kind")}
    )

    plan = Plan.draft(found)

    plan.check(schema)
    assert {part for entry in plan.transforms for part in entry.mentions()} == {"received", "month", "unit", "kind"}
    assert [entry.of for entry in plan.marginals] == [("entered", "unit")]


def test_a_synopsis_without_scores_is_refused() -> None:
    synopsis = dpsyn.measure(calls(500), CALLS, 1.0, recipe="independent")

    with pytest.raises(UserError, match="dpsyn explore"):
        Plan.draft(synopsis)


@pytest.mark.parametrize(
    "entry",
    [
        "{transform: mapping, of: month, from: received}",
        "{transform: availability, to: t, of: [entered, arrived], anchor: received}",
    ],
)
def test_a_synopsis_in_which_attributes_are_told_by_others_is_refused(entry: str) -> None:
    plan = Plan.from_yaml(f"dpsyn_plan: 1\nselection: true\ntransforms:\n  - {entry}\n")
    synopsis = dpsyn.measure(calls(2_000), CALLS, 2.0, recipe=dpsyn.Planned(plan=plan))
    assert synopsis.releases[0].scores

    with pytest.raises(UserError, match="dpsyn explore"):
        Plan.draft(synopsis)


def test_a_draft_proposes_no_mapping_that_the_schema_forbids() -> None:
    counted = msgspec.structs.replace(
        CALLS, rules=tuple(Total(where=((name, 3),), count=100) for name in ("month", "kind"))
    )
    exploration = explore_public_data(calls(20_000), counted)
    assert {name for name, *_ in exploration.mappings()} & {"month", "kind"}

    plan = Plan.draft(exploration)

    plan.check(counted)
    assert Plan.draft(explore_public_data(calls(20_000), CALLS)) != plan


def test_a_synopsis_of_the_default_recipe_becomes_a_plan_too() -> None:
    synopsis = dpsyn.measure(calls(20_000), CALLS, 1.0)

    Plan.draft(synopsis).check(CALLS)
