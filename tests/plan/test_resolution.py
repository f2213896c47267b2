"""What a plan comes to at a budget: attributes, tables, shares."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.accounting import Budget, Laplace
from dpsyn.errors import BudgetError
from dpsyn.plan import (
    Plan,
    divide_budget,
    laplace_noise_warning,
    marginal_shares,
    one_way_shares,
    predict_noise,
    pure_steps,
    resolve_plan,
    split_by_cells,
)
from dpsyn.schema import Categorical, Integer, JointAttribute, Schema
from tests.plan.schemas import CALLS, EVERYTHING

PLAN = Plan.from_yaml(EVERYTHING)


def test_attributes_are_recoded_as_the_plan_says() -> None:
    layout = resolve_plan(PLAN, CALLS, 0.1)

    sizes = dict(zip(layout.recoding.names, layout.recoding.sizes, strict=True))
    assert sizes == {"received": 20, "times": 2 * 3, "unit_kind": 32, "month": 7, "address": 1, "wage": 4}
    assert layout.unmeasured == {"address"}
    assert set(layout.one_way) == {"received", "times", "unit_kind", "wage"}
    assert layout.finer == ("entered", "arrived", "wage")


def test_variants_differ_by_budget() -> None:
    low, high = resolve_plan(PLAN, CALLS, 0.1), resolve_plan(PLAN, CALLS, 1)

    assert [len(one.marginals) for one in (low, high)] == [3, 4]
    assert "address" in high.one_way
    assert high.rare["address"].max_codes == 50
    assert high.rare["wage"].rows == 10


def test_parts_of_a_joint_attribute_stand_for_it_in_marginals() -> None:
    layout = resolve_plan(PLAN, CALLS, 0.1)

    cliques = [clique for wanted in layout.marginals for clique in wanted.cliques]
    assert cliques == [("received", "unit_kind"), ("times", "received"), ("times", "unit_kind"), ("wage", "unit_kind")]


def test_groups_keep_attributes_apart_and_the_rest_is_a_group() -> None:
    layout = resolve_plan(Plan.from_yaml("dpsyn_plan: 1\ngroups: {g: [unit, kind]}"), CALLS, 1)

    assert layout.allows(["unit", "kind"])
    assert layout.allows(["received", "wage"])
    assert not layout.allows(["unit", "wage"])


def test_groups_joined_on_what_a_table_lacks_are_joined_by_row() -> None:
    text = "dpsyn_plan: 1\noptional: [box]\ngroups: {g: [unit, box], h: {attributes: [kind, box], join: box}}"

    layout = resolve_plan(Plan.from_yaml(text), CALLS, 1)

    assert layout.groups[:2] == (frozenset({"unit"}), frozenset({"kind"}))


def test_groups_of_the_schema_are_joined_unless_the_plan_takes_their_parts() -> None:
    schema = Schema(
        attributes=(*(Categorical(name=n, codes=3) for n in "abc"), Integer(name="d", low=0, high=5)),
        measure_together=(JointAttribute(name="ab", attributes=("a", "b")),),
    )

    assert resolve_plan(Plan(), schema, 1).recoding.names == ("ab", "c", "d")
    plan = Plan.from_yaml("dpsyn_plan: 1\ntransforms: [{transform: recode, to: bc, of: [b, c]}]")
    assert resolve_plan(plan, schema, 1).recoding.names == ("a", "bc", "d")


@given(
    singles=st.none() | st.floats(0.01, 0.3),
    selection=st.sampled_from([None, True, False, 0.1, "1/7"]),
    share=st.none() | st.floats(0.01, 0.3),
    rows=st.none() | st.integers(10, 10**7),
    epsilon=st.sampled_from([0.01, 1, 20]),
)
def test_shares_add_up_to_the_budget_exactly(
    singles: float | None, selection: bool | float | str | None, share: float | None, rows: int | None, epsilon: float
) -> None:
    given_share = "" if share is None else f", share: {share!r}"
    plan = Plan.from_yaml(
        f"""
dpsyn_plan: 1
transforms:
  - {{transform: recode, to: x, of: [unit, kind], share: 0.05}}
  - {{transform: mapping, of: month, from: received, share: 0.07}}
  - {{transform: bucketize, of: wage, starts: [0, 1, 10000], share: 0.02}}
marginals:
  - {{of: [x, received]{given_share}}}
  - {{of: [x, wage], share: 0.1}}
  - {{of: [x, arrived], share: 0.1, mechanism: laplace}}
"""
    )
    plan = Plan(transforms=plan.transforms, marginals=plan.marginals, one_way=singles, selection=selection)
    layout = resolve_plan(plan, CALLS, epsilon)
    budget = Budget.for_guarantee(epsilon, 1e-9, pure_epsilons=list(pure_steps(layout, epsilon).values()))

    found = divide_budget(plan, layout, rho=float(budget.rho), sensitivity=1.0, rows=rows).in_rho(budget.rho)

    parts = [
        found.one_way,
        found.rest,
        found.selection,
        *found.entries,
        *found.joint.values(),
        *found.histograms.values(),
        *found.mappings.values(),
    ]
    assert sum(parts) == budget.rho
    assert min(parts) >= 0
    assert sum(one_way_shares(layout, found).values()) - found.histograms["wage"] == found.one_way > 0
    assert (found.selection > 0) == (selection not in (None, False))


def test_what_nothing_else_takes_goes_to_single_attributes() -> None:
    plan = Plan.from_yaml("dpsyn_plan: 1\none_way: 0.1\nmarginals: [{of: [unit, kind], share: 0.2}]")

    found = divide_budget(plan, resolve_plan(plan, CALLS, 1), rho=1.0, sensitivity=1.0, rows=None)

    assert [found.one_way, *found.entries, found.selection] == [Fraction(8, 10), Fraction(2, 10), 0]


def test_marginals_that_matter_more_get_more() -> None:
    shares = split_by_cells(Fraction(1), {("a",): 8.0, ("b",): 8.0}, {"b": 8.0})

    assert sum(shares.values()) == 1
    assert float(shares["b",] / shares["a",]) == pytest.approx(4.0)


def test_a_histogram_can_have_a_share_of_its_own() -> None:
    plan = Plan.from_yaml(
        "dpsyn_plan: 1\ntransforms: [{transform: bucketize, of: wage, starts: [0, 1, 10000], share: 1/50}]"
    )
    layout = resolve_plan(plan, CALLS, 1)

    shares = divide_budget(plan, layout, rho=1.0, sensitivity=1.0, rows=None)

    assert one_way_shares(layout, shares)["cells", "wage"] == Fraction(1, 50)


def test_a_table_named_twice_is_measured_once_with_all_its_shares() -> None:
    plan = Plan.from_yaml(
        """
dpsyn_plan: 1
transforms: [{transform: recode, to: x, of: [unit, kind]}]
marginals:
  - {of: [month, received], share: 0.1}
  - {of: [received, month], share: 0.2}
  - {of: [unit, wage], share: 0.1, mechanism: laplace}
  - {of: [wage, x], share: 0.3, mechanism: laplace}
  - {pairs: [received, month, wage, kind]}
  - [wage, month]
"""
    )
    layout = resolve_plan(plan, CALLS, 1)
    cells = {clique: 10.0 for wanted in layout.marginals for clique in wanted.cliques}

    shares = divide_budget(plan, layout, rho=1.0, sensitivity=1.0, rows=None)
    found = marginal_shares(layout, shares, cells)

    assert pure_steps(layout, 1) == {("x", "wage"): Fraction(4, 10)}
    assert found["month", "received"] == Fraction(3, 10)
    rest = [("received", "wage"), ("received", "x"), ("month", "wage"), ("month", "x")]
    assert list(found) == [("month", "received"), *rest]
    assert sum(found.values()) == Fraction(3, 10) + shares.rest


def test_entries_that_only_repeat_others_keep_no_budget_back() -> None:
    plan = Plan.from_yaml("dpsyn_plan: 1\nmarginals: [{of: [unit, kind], share: 0.2}, [kind, unit]]")

    found = divide_budget(plan, resolve_plan(plan, CALLS, 1), rho=1.0, sensitivity=1.0, rows=None)

    assert [found.one_way, *found.entries, found.rest] == [Fraction(8, 10), Fraction(2, 10), 0]


# ── values that were bought ──────────────────────────────────────────────────────────────────────────────────


def test_bought_values_beyond_the_room_of_a_table_are_told_as_one() -> None:
    schema = Schema(attributes=tuple(Categorical(name=n, codes=c) for n, c in (("a", 100), ("b", 50), ("c", 3))))
    plan = Plan.from_yaml(
        "dpsyn_plan: 1\ntransforms: [{transform: recode, to: ab, of: [a, b]}, {transform: mapping, of: c, from: a}]"
    )
    plain = Plan.from_yaml("dpsyn_plan: 1\ntransforms: [{transform: recode, to: bc, of: [b, c]}]")
    mapped = Plan.from_yaml("dpsyn_plan: 1\ntransforms: [{transform: mapping, of: c, from: a}]")

    joint = resolve_plan(Plan(transforms=plan.transforms[:1]), schema, 1, discovered=["a"], max_cells=1_000)

    assert joint.recoding.sizes[joint.recoding.index_of("ab")] == 20 * 50
    assert joint.finer == ("a",)
    assert not resolve_plan(mapped, schema, 1, discovered=["a"], max_cells=200).mappings
    assert resolve_plan(mapped, schema, 1, discovered=["a"], max_cells=300).mappings
    assert resolve_plan(plain, schema, 1, discovered=["a"], max_cells=10).recoding.sizes == (
        100,
        150,
    )  # nothing in it was bought


# ── predictions ──────────────────────────────────────────────────────────────────────────────────────────────


def test_predicted_noise_costs_what_the_budget_allows() -> None:
    found = predict_noise(PLAN, CALLS, 1.0, delta=1e-9)

    gaussian = [entry for entry in found if entry.mechanism == "gaussian"]
    rho = Budget.for_guarantee(1.0, 1e-9, pure_epsilons=[0.1]).rho
    assert sum(1 / (2 * entry.std**2) for entry in gaussian) == pytest.approx(float(rho) * 0.9)  # less selection
    laplace = [entry for entry in found if entry.mechanism == "laplace"]
    assert [entry.std for entry in laplace] == [Laplace.for_epsilon(Fraction(1, 10), 1).std]
    assert {entry.kind for entry in found} == {"one-way", "histogram", "recoding", "mapping", "marginal"}


def test_noise_falls_with_the_budget_and_tables_drown_only_where_it_is_small() -> None:
    low, high = predict_noise(PLAN, CALLS, 0.01), predict_noise(PLAN, CALLS, 10)

    assert any(entry.is_mostly_noise for entry in low)
    assert not any(entry.is_mostly_noise for entry in high if entry.kind == "recoding")
    assert next(e for e in low if e.kind == "mapping").std > next(e for e in high if e.kind == "mapping").std


def test_laplace_noise_that_leaves_nothing_for_the_rest_is_refused() -> None:
    with pytest.raises(BudgetError, match="leave nothing for all others"):
        predict_noise(PLAN, CALLS, 100)


def test_no_table_is_predicted_to_have_more_cells_than_its_attributes() -> None:
    for epsilon in (0.01, 1, 40):
        for entry in predict_noise(PLAN, CALLS, epsilon):
            assert 1 <= entry.cells <= 1_000_000
            assert 0 < entry.error <= 1


@pytest.mark.parametrize(("share", "warned"), [("1/10", False), ("1e-6", True)])
def test_a_laplace_share_that_tells_nothing_is_warned_of(share: str, warned: bool) -> None:
    text = f"dpsyn_plan: 1\nmarginals: [{{of: [unit, kind], share: {share}, mechanism: laplace}}]"

    words = laplace_noise_warning(Plan.from_yaml(text), CALLS, 1.0)

    assert bool(words) == warned
    assert not warned or "1,414,214, exceeds the 20,000 expected rows" in str(words)
