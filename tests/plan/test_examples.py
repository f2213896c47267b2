"""The plans that people copy fit their schemas."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsyn.plan import Plan, pure_steps, resolve_plan
from dpsyn.schema import Schema

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def colorado() -> Schema:
    return Schema.load(EXAMPLES / "colorado" / "schema.yaml")


@pytest.mark.parametrize("schema", ["schema.yaml", "schema-text.yaml"])
def test_the_plan_of_fire_calls_fits_both_schemas(schema: str) -> None:
    plan = Plan.load(EXAMPLES / "fire" / "plan.yaml", Schema.load(EXAMPLES / "fire" / schema))

    assert plan.selection is True


@pytest.fixture(scope="module")
def fire() -> Schema:
    return Schema.load(EXAMPLES / "fire" / "schema.yaml")


@pytest.mark.parametrize(
    ("epsilon", "pairs", "uniform"),
    [
        (0.1, set(), {"Box", "Address"}),
        (1, {("Location - Lng", "Battalion"), ("Location - Lat", "Battalion")}, set()),
        (10, {("Box", "Grid"), ("Address", "Grid"), ("Grid", "Battalion")}, set()),
    ],
)
def test_the_contest_entry_treats_locations_by_budget(
    fire: Schema, epsilon: float, pairs: set[tuple[str, str]], uniform: set[str]
) -> None:
    plan = Plan.load(EXAMPLES / "fire" / "contest.yaml", fire)

    layout = resolve_plan(plan, fire, epsilon)

    cliques = {clique for planned in layout.marginals for clique in planned.cliques}
    places = {"Location - Lng", "Location - Lat", "Grid", "Box", "Address"}
    assert {clique for clique in cliques if places & set(clique) and {"Battalion", "Grid"} & set(clique)} >= pairs
    assert bool(pairs) == any(places & set(clique) for clique in cliques)
    assert layout.unmeasured == uniform


@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
def test_the_contest_entry_for_fire_calls_merges_below_800_rows(fire: Schema, epsilon: float) -> None:
    layout = resolve_plan(Plan.load(EXAMPLES / "fire" / "contest.yaml"), fire, epsilon)

    merged = set(layout.recoding.names) - {"Call Date"} - layout.unmeasured
    assert {(layout.rare[name].threshold, layout.rare[name].rows) for name in merged} == {(4.5, 800)}


@pytest.mark.parametrize("name", ["plan.yaml", "wages.yaml"])
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1, 8])
def test_the_plans_of_colorado_measure_wages_by_sex_and_city(colorado: Schema, name: str, epsilon: float) -> None:
    plan = Plan.load(EXAMPLES / "colorado" / name)

    layout = resolve_plan(plan, colorado, epsilon)

    assert list(pure_steps(layout, epsilon)) == [("INCWAGE", "SEX", "CITY")]
    assert list(layout.histograms) == ["INCWAGE"]


def test_the_contest_entry_has_four_groups(colorado: Schema) -> None:
    plan = Plan.load(EXAMPLES / "colorado" / "plan.yaml", colorado)

    assert len(plan.groups) == 4


def test_the_contest_entry_measures_three_attributes_by_themselves_only(colorado: Schema) -> None:
    layout = resolve_plan(Plan.load(EXAMPLES / "colorado" / "plan.yaml"), colorado, 1)

    alone = {"AGEMONTH", "DURUNEMP", "CITIZEN"}
    assert alone <= set(layout.one_way)
    assert not [clique for planned in layout.marginals for clique in planned.cliques if alone & set(clique)]
