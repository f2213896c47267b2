"""A first look tells what belongs together, and becomes a plan."""

from __future__ import annotations

from itertools import product

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import dpsyn
from dpsyn.diagnose import explore_public_data
from dpsyn.errors import UserError
from dpsyn.plan import Exploration, Plan, entries, select_forest
from dpsyn.private import ReleaseLimits, open_private
from dpsyn.schema import Categorical, JointAttribute, Total
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
    certificate = synopsis.certificates[0]
    assert certificate is not None
    assert {draw.purpose.split(" of ")[0] for draw in certificate.account.measurements} == {"marginal", "dependence"}
    assert float(certificate.account.total.rho) == pytest.approx(float(certificate.account.budget.reserved_rho))
    assert Exploration.from_synopsis(synopsis).rows == pytest.approx(20_000, rel=0.1)


def test_what_the_schema_declares_as_one_is_drafted_by_its_parts() -> None:
    schema = msgspec.structs.replace(
        CALLS, measure_together=(JointAttribute(name="what", attributes=("unit", "kind")),)
    )
    sizes = {"received": 4, "entered": 20, "what": 32, "month": 7}
    even = {name: np.full(size, 1_000 / size) for name, size in sizes.items()}
    pairs = [("received", "what"), ("entered", "what"), ("month", "what")]
    found = Exploration.build(
        even, pairs, np.array([1_700.0, 700.0, 1_700.0]), rows=1_000, parts={"what": ("unit", "kind")}
    )

    plan = Plan.draft(found)

    plan.check(schema)
    assert {part for entry in plan.transforms for part in entry.mentions()} == {"received", "month", "unit", "kind"}
    assert plan.selection is True


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


# ── tables of strong pairs ───────────────────────────────────────────────────────────────────────────────────


def test_a_forest_has_the_first_pairs_that_close_no_cycle() -> None:
    pairs = [("a", "b"), ("b", "c"), ("a", "c"), ("d", "e"), ("c", "d"), ("a", "e")]

    assert select_forest(pairs, 9) == [("a", "b"), ("b", "c"), ("d", "e"), ("c", "d")]
    assert select_forest(pairs, 2) == [("a", "b"), ("b", "c")]


def test_an_exploration_holds_the_tables_of_the_strongest_pairs() -> None:
    synopsis = dpsyn.measure(calls(20_000), CALLS, 2.0, recipe="explore")

    found = Exploration.from_synopsis(synopsis)

    measured = [table.clique for table in found.tables]
    strengths = {dependence.pair: dependence.indif for dependence in found.dependences}
    assert measured == sorted(measured, key=lambda pair: -strengths[pair[0], pair[1]])
    assert select_forest(measured, len(measured)) == measured
    assert {frozenset(pair) for pair in measured} >= {frozenset({"unit", "kind"})}
    for table in found.tables:
        assert synopsis.marginal(*table.clique).source == "covered"
    units, exact = (
        next(table for table in tables if set(table.clique) == {"unit", "kind"})
        for tables in (found.tables, explore_public_data(calls(20_000), CALLS).tables)
    )
    noisy, true = (dict(zip(product(*table.labels), table.counts.ravel(), strict=True)) for table in (units, exact))
    errors = [noisy[cell] - true[cell] for cell in noisy.keys() & true.keys()]  # without merged values
    assert len(errors) >= 16
    assert np.abs(errors).max() < 6 * units.std  # at most 32 cells: beyond it in one run of 10 million
    assert {cell.values for cell in units.largest_cells(4)} == {("0", "0"), ("1", "2"), ("2", "4"), ("3", "6")}


def test_a_synopsis_with_joint_attributes_can_be_explored_further() -> None:
    plan = Plan(transforms=(entries.Recode(to="unit+kind", of=("unit", "kind")),), selection=True)
    before = dpsyn.measure(calls(3_000), CALLS, 2.0, recipe=dpsyn.Planned(plan=plan))

    synopsis = dpsyn.measure(calls(3_000), CALLS, 2.0, recipe="explore", extend=before)

    assert len(synopsis.releases) == 2
    assert "unit+kind" in {name for scores in synopsis.releases[1].scores for pair in scores.cliques for name in pair}


def test_tables_beyond_the_limit_of_noisy_values_are_left_out() -> None:
    rng = np.random.default_rng(4)
    first = rng.integers(0, 40, 20_000)
    table = pa.table({name: rng.permutation(40)[first] for name in "abcdefgh"})
    schema = dpsyn.Schema(attributes=tuple(Categorical(name=name, codes=40) for name in "abcdefgh"))
    recipe = dpsyn.find_recipe("explore")
    limits = ReleaseLimits(max_noisy_values=8 * 40 + 28 + 5 * 1600 - 1)  # one-way, scores, not quite 5 tables

    with open_private(table, schema, recipe.plan_budget(schema, 5.0, 1e-9), limits=limits) as private:
        measured = recipe.measure(private)

    assert [len(marginal.clique) for marginal in measured.rounds[-1].marginals] == [2, 2, 2, 2]


@pytest.mark.parametrize(("epsilon", "options"), [(2.0, {"max_tables": 0}), (0.001, {})])
def test_without_tables_their_budget_goes_to_one_way_marginals(epsilon: float, options: dict[str, int]) -> None:
    recipe = dpsyn.find_recipe("explore", options)
    synopsis = dpsyn.measure(calls(3_000), CALLS, epsilon, recipe=recipe)

    certificate = synopsis.certificates[0]
    assert certificate is not None
    assert not Exploration.from_synopsis(synopsis).tables
    assert float(certificate.account.total.rho) == pytest.approx(float(certificate.account.budget.reserved_rho))


def test_agreement_is_cohens_kappa_of_the_rows_without_missing_values() -> None:
    from sklearn.metrics import cohen_kappa_score

    rng = np.random.default_rng(2)
    first = rng.integers(0, 6, 2_000)
    second = np.where(rng.random(2_000) < 0.7, first, rng.integers(0, 6, 2_000))
    gone = rng.random(2_000) < 0.2
    schema = dpsyn.Schema.from_yaml(
        "dpsyn_schema: 1\nattributes:\n  a: {kind: integer, low: 0, high: 5}\n"
        "  b: {kind: integer, low: 0, high: 5, missing: true}\n"
    )
    found = explore_public_data(pa.table({"a": first, "b": pa.array(second, mask=gone)}), schema)

    assert found.tables[0].agreement == pytest.approx(cohen_kappa_score(first[~gone], second[~gone]))


def test_one_way_marginals_are_shown_over_the_values_of_the_schema() -> None:
    synopsis = dpsyn.measure(calls(20_000), CALLS, 1.0, recipe="explore")

    found = Exploration.from_synopsis(synopsis)

    exact = explore_public_data(calls(20_000), CALLS)
    assert found.one_way.keys() == exact.one_way.keys()
    for name, table in found.one_way.items():
        assert table.labels == exact.one_way[name].labels
        error = np.abs(table.counts - exact.one_way[name].counts)
        assert error.mean() < 2 * table.std  # the mean of half-normal noise is 0.8 standard deviations
    assert found.one_way["month"].largest_cells(1)[0].share == pytest.approx(3 / 20, abs=0.02)


# ── drafts ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_dates_of_one_event_are_drafted_as_one_attribute() -> None:
    plan = Plan.draft(dpsyn.measure(calls(20_000), CALLS, 2.0, recipe="explore"))

    (event,) = (entry for entry in plan.transforms if isinstance(entry, entries.Availability))
    assert {event.anchor, *event.of} == {"received", "entered", "arrived"}
    assert event.anchor != "arrived"  # it may be missing
    plan.check(CALLS)


def test_rare_events_that_agree_by_chance_are_not_drafted_as_one() -> None:
    rng = np.random.default_rng(1)
    rare = [np.where(rng.random(20_000) < 0.05, rng.integers(1, 9, 20_000), 0) for _ in range(2)]
    schema = dpsyn.Schema.from_yaml(
        "dpsyn_schema: 1\nattributes:\n" + "".join(f"  {n}: {{kind: integer, low: 0, high: 9}}\n" for n in "ab")
    )
    found = explore_public_data(pa.table(dict(zip("ab", rare, strict=True))), schema)

    assert np.mean(rare[0] == rare[1]) > 0.9
    assert not [entry for entry in Plan.draft(found).transforms if isinstance(entry, entries.Availability)]


def places(rows: int) -> tuple[pa.Table, dpsyn.Schema]:
    """Addresses, of which a district follows; streets, most of them rare; and two attributes that depend on neither."""
    rng = np.random.default_rng(3)
    address = rng.integers(0, 4_000, rows)
    street = np.minimum(rng.geometric(0.02, rows) - 1, 399)
    side = rng.integers(0, 3, rows)
    table = pa.table({"address": address, "district": address % 7, "street": street, "side": side, "same": side})
    sizes = {"address": 4_000, "district": 7, "street": 400, "side": 3, "same": 3}
    lines = "".join(f"  {name}: {{kind: categorical, codes: {size}}}\n" for name, size in sizes.items())
    return table, dpsyn.Schema.from_yaml("dpsyn_schema: 1\nattributes:\n" + lines)


def test_nothing_is_mapped_from_a_column_of_thousands_of_values() -> None:
    found = explore_public_data(*places(100_000))

    dependence = next(d for d in found.dependences if set(d.pair) == {"address", "district"})
    assert dependence.forward > 0.99
    assert not [entry for entry in found.mappings() if entry[1] == "address"]
    drafted = [entry for entry in Plan.draft(found).transforms if isinstance(entry, entries.LearnedMapping)]
    assert "address" not in {entry.source for entry in drafted}


def test_a_long_list_that_noise_hides_is_drafted_uniform_below_some_epsilon() -> None:
    found = explore_public_data(*places(100_000))

    plan = Plan.draft(found)

    uniform = {entry.of: entry.condition for entry in plan.transforms if isinstance(entry, entries.Unmeasured)}
    assert uniform.keys() == {("address",)}
    assert uniform["address",].holds(0.1)
    assert not uniform["address",].holds(10)
    assert not [entry for entry in plan.transforms if isinstance(entry, entries.Compress)]
    assert found.schema is not None
    for epsilon in (0.1, 10):  # the prediction that the condition was made from
        (address,) = (
            entry
            for entry in Plan(selection=True).predict(found.schema, epsilon, rows=100_000)
            if entry.clique == ("address",)
        )
        assert address.is_mostly_noise == uniform["address",].holds(epsilon)


def test_a_long_list_with_few_frequent_values_is_drafted_compressed_below_some_epsilon() -> None:
    rng = np.random.default_rng(5)
    table = pa.table({"code": np.where(rng.random(5_000) < 0.9, 7, rng.integers(0, 3_000, 5_000))})
    schema = dpsyn.Schema.from_yaml("dpsyn_schema: 1\nattributes:\n  code: {kind: categorical, codes: 3000}\n")

    plan = Plan.draft(explore_public_data(table, schema))

    (compressed,) = plan.transforms
    assert isinstance(compressed, entries.Compress)
    assert (compressed.of, compressed.threshold, compressed.rows) == (("code",), 4.5, 10)
    noisy = {epsilon: plan.predict(schema, epsilon, rows=5_000)[0].is_mostly_noise for epsilon in (0.1, 10)}
    assert noisy == {epsilon: compressed.condition.holds(epsilon) for epsilon in (0.1, 10)}
    assert noisy[0.1]


def test_a_transform_is_drafted_for_the_budgets_that_its_noise_allows() -> None:
    drafts = [Plan.draft(explore_public_data(calls(rows), CALLS)) for rows in (300, 20_000)]

    few, many = ({type(entry).__name__: entry.when for entry in plan.transforms} for plan in drafts)
    assert many["LearnedMapping"] == ""
    assert few.get("LearnedMapping", "never") != ""
    for plan, rows in zip(drafts, (300, 20_000), strict=True):
        for entry in plan.transforms:
            if isinstance(entry, entries.LearnedMapping):
                low = max(entry.condition.low, 0.1)
                predictions = plan.predict(CALLS, low, rows=rows)
                (used,) = (p for p in predictions if p.clique == (entry.source, entry.of) and p.kind == "mapping")
                assert not used.is_mostly_noise


def test_attributes_that_cannot_depend_on_each_other_are_drafted_as_groups() -> None:
    table, schema = places(100_000)
    names = ["district", "side", "same", "twin"]
    table = table.append_column("twin", table["district"]).select(names)
    kept = tuple(a for a in schema.attributes if a.name in names)
    twin = msgspec.structs.replace(schema["district"], name="twin")
    schema = msgspec.structs.replace(schema, attributes=(*kept, twin), expected_size=100_000)

    drafted = Plan.draft(explore_public_data(table, schema))
    noisy = Plan.draft(dpsyn.measure(table, schema, 0.02, recipe="explore"))

    assert [group.attributes for group in drafted.groups] == [("district", "twin"), ("side", "same")]
    drafted.check(schema)
    assert not noisy.groups  # with so much noise, nothing is known to be independent
