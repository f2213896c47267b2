"""A plan is measured, and rows come out that match it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpsyn
from dpsyn.accounting import Gaussian, Laplace, Ledger
from dpsyn.encoding import Codec
from dpsyn.errors import BudgetError, PlanError, SchemaError, UserError
from dpsyn.plan import Plan
from dpsyn.recipes import Planned
from dpsyn.schema import Categorical, JointAttribute, Open, Schema
from tests.plan.schemas import CALLS, EVERYTHING, calls

PLAN = Plan.from_yaml(EVERYTHING)
NO_NOISE = 40.0
TABLE = calls(20_000)


@pytest.fixture(scope="module")
def released() -> dict[float, dpsyn.Synopsis]:
    return {
        epsilon: dpsyn.measure(TABLE, CALLS, epsilon, allow_large_epsilon=True, recipe=Planned(plan=PLAN))
        for epsilon in (0.1, 1.0, NO_NOISE)
    }


def agreeing(table: pa.Table, one: str, other: str) -> float:
    """The part of the rows in which two columns are equal, missing ones left out."""
    frame = table.to_pandas()[[one, other]].dropna()
    return float((frame[one] == frame[other]).mean())


def test_the_plan_decides_how_rows_are_synthesized_unless_the_recipe_is_told() -> None:
    plan = Plan.from_yaml("dpsyn_plan: 1\nmarginals: [[a, b], [b, c], [a, c]]\nsynthesis: {name: gum, alpha: 0.2}\n")
    rng = np.random.default_rng(0)
    table = pa.table({name: rng.integers(3, size=500) for name in "abc"})
    schema = Schema(attributes=tuple(Categorical(name=name, codes=3) for name in "abc"))

    released = dpsyn.measure(table, schema, 1.0, recipe=Planned(plan=plan))

    assert released.model.synthesis == dpsyn.GUM(alpha=0.2)
    assert released.generate(rows=200, seed=1).num_rows == 200
    assert dpsyn.find_recipe("planned", {"plan": plan, "synthesis.rounds": "7"}).synthesis == dpsyn.GUM(
        alpha=0.2, rounds=7
    )
    assert dpsyn.find_recipe("planned", {"plan": plan, "synthesis": "gibbs"}).synthesis == dpsyn.Gibbs()
    assert Planned(plan=plan, synthesis=dpsyn.Gibbs()).synthesis == dpsyn.Gibbs()
    assert Planned(plan=Plan()).synthesis == dpsyn.Gibbs()


def test_all_attributes_come_out_at_every_budget(released: dict[float, dpsyn.Synopsis]) -> None:
    for synopsis in released.values():
        rows = synopsis.generate(rows=2_000, seed=1)

        assert rows.column_names == list(CALLS.names)
        assert dpsyn.check_table(CALLS, rows).problems == ()


def test_transforms_keep_what_they_were_made_for(released: dict[float, dpsyn.Synopsis]) -> None:
    # at ε = 1 the noise of a merged code is 0.01 of the rows at most: 6 deviations, a false alarm in 10⁸ runs
    for epsilon, tolerance in ((1.0, 0.06), (NO_NOISE, 0.02)):
        rows = released[epsilon].generate(rows=20_000, seed=1)

        frame = rows.to_pandas()
        assert agreeing(rows, "received", "entered") == pytest.approx(0.95, abs=tolerance)
        assert agreeing(rows, "received", "arrived") == pytest.approx(1.0, abs=tolerance)
        assert frame["arrived"].isna().mean() == pytest.approx(0.3, abs=tolerance)
        assert (frame["month"] == frame["received"] // 3).mean() == pytest.approx(1.0, abs=tolerance)
        assert (frame["kind"] == 2 * frame["unit"]).mean() == pytest.approx(0.97, abs=tolerance)


def test_recoding_what_was_generated_gives_the_codes_that_were_drawn(released: dict[float, dpsyn.Synopsis]) -> None:
    for synopsis in released.values():
        recoding, rng = synopsis.model.recoding, np.random.default_rng(3)
        codes = np.stack([rng.integers(0, size, 500) for size in recoding.sizes], axis=1)
        weights = [synopsis.model.histograms[name] for name in Codec(CALLS).names]

        fine = recoding.expand(codes, weights, rng)

        assert np.array_equal(recoding.apply(fine), codes)


def test_every_transform_is_paid_for_and_the_whole_budget_is_spent(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.db")

    synopsis = dpsyn.measure(TABLE, CALLS, 1.0, recipe=Planned(plan=PLAN), ledger=ledger, dataset="calls")

    certificate = synopsis.certificates[0]
    assert certificate is not None
    draws = certificate.account.measurements
    purposes = [draw.purpose.partition(" (")[0] for draw in draws]
    assert purposes[:5] == [
        "mapping, read off the marginal of received, month",
        "histogram of entered",
        "histogram of arrived",
        "histogram of wage",
        "marginal of received",
    ]
    assert {"recoding, counts of times", "recoding, counts of unit_kind", "marginal of received, unit_kind"} <= {
        *purposes
    }
    laplace = [draw.cost for draw in draws if isinstance(draw.cost, Laplace)]
    assert [spend.pure_epsilons for spend in laplace] == [(Fraction(1, 10),)]
    rho = sum(draw.cost.rho for draw in draws if isinstance(draw.cost, Gaussian))
    budget = certificate.account.budget
    assert budget.rho * Fraction(999_999, 1_000_000) < rho <= budget.rho
    assert certificate.epsilon_bounds.epsilon <= 1.0
    assert f"plan {PLAN.digest()}: all that a plan can say" in certificate.declared_public
    marginals = sum(len(stage.marginals) for stage in synopsis.releases[0].rounds)
    assert len(draws) == marginals + len(synopsis.releases[0].scores)


def test_the_answers_of_a_planned_synopsis_are_about_its_rows(released: dict[float, dpsyn.Synopsis]) -> None:
    synopsis = released[NO_NOISE]

    for names in (("received",), ("entered",), ("arrived",), ("unit", "kind"), ("month", "received"), ("wage",)):
        answer = synopsis.marginal(*names)

        # 1 002 cells of wages with a noise of 6.7 each: 6 deviations of their sum are 1 300, a false alarm in 10⁸ runs
        assert answer.counts.sum() == pytest.approx(20_000, abs=1_300)
    entered = np.bincount(TABLE["entered"].to_numpy(), minlength=20)
    assert np.abs(synopsis.marginal("entered").counts - entered).sum() / 20_000 < 0.06
    month = synopsis.marginal("month", where={"received": 0}).counts
    assert month.argmax() == 0
    assert "difference" in synopsis.marginal("entered").notes[0]


def test_conditions_are_met_and_those_on_differences_are_refused(released: dict[float, dpsyn.Synopsis]) -> None:
    synopsis = released[1.0]

    rows = synopsis.generate(rows=300, seed=1, where={"received": (3, 4), "kind": 2})

    assert set(rows["received"].to_pylist()) <= {3, 4}
    assert set(rows["kind"].to_pylist()) == {2}
    with pytest.raises(UserError, match="put the condition on 'received'"):
        synopsis.generate(rows=10, where={"entered": 3})


def test_a_planned_synopsis_survives_its_file(released: dict[float, dpsyn.Synopsis], tmp_path: Path) -> None:
    released[1.0].save(tmp_path / "s.dpsyn")

    loaded = dpsyn.Synopsis.load(tmp_path / "s.dpsyn")

    again, before = (s.generate(rows=500, seed=4) for s in (loaded, released[1.0]))
    assert again.equals(before)
    assert loaded.model.recoding.difference_codings.keys() == released[1.0].model.recoding.difference_codings.keys()
    assert loaded.compare_rows(again).pairs


def test_groups_are_joined_on_what_they_share(released: dict[float, dpsyn.Synopsis]) -> None:
    cliques = [set(table.clique) for table in released[1.0].model.tables]

    assert all(clique <= {"received", "times", "month", "unit_kind"} or clique <= {"unit_kind", "wage", "address"}
               for clique in cliques)  # fmt: skip


def test_a_plan_that_says_nothing_leaves_all_to_selection() -> None:
    synopsis = dpsyn.measure(TABLE, CALLS, 1.0, recipe=Planned(plan=Plan()))

    assert set(synopsis.model.recoding.names) == set(CALLS.names)
    assert any(len(table.clique) > 1 for table in synopsis.model.tables)


def test_a_plan_can_buy_the_values_of_open_attributes() -> None:
    rng = np.random.default_rng(0)
    city = rng.choice(["Oslo", "Bergen"], 5_000)
    schema = Schema(attributes=(Open(name="city"), Categorical(name="b", codes=2), Categorical(name="c", codes=3)))
    table = pa.table({"city": city, "b": (city == "Oslo").astype(int), "c": rng.integers(0, 3, 5_000)})

    synopsis = dpsyn.measure(
        table, schema, 2.0, recipe=Planned(plan=Plan.from_yaml("dpsyn_plan: 1\nmarginals: [[city, b]]"))
    )

    rows = synopsis.generate(seed=1).to_pandas()
    assert ((rows["city"] == "Oslo") == (rows["b"] == 1)).mean() > 0.95


def test_bought_values_too_many_for_a_table_are_no_reason_to_stop_after_paying(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsyn.recipes.from_plan.MAX_TABLE_CELLS", 1_000)  # a million would take half a minute to draw
    schema = Schema(
        attributes=(Open(name="street"), Categorical(name="box", codes=50), Categorical(name="station", codes=20)),
    )
    street = np.random.default_rng(0).integers(0, 100, 20_000)
    table = pa.table({"street": [f"s{n}" for n in street], "box": street // 2, "station": street // 5})
    plan = Plan.from_yaml(
        "dpsyn_plan: 1\nmarginals: [[place, station]]\ntransforms:\n"
        "  - {transform: mapping, of: station, from: street}\n"
        "  - {transform: recode, to: place, of: [street, box]}\n"
    )

    synopsis = dpsyn.measure(table, schema, 8.0, recipe=Planned(plan=plan))

    certificate = synopsis.certificates[0]
    assert certificate is not None
    spent = sum(draw.cost.rho for draw in certificate.account.measurements)
    assert certificate.account.budget.rho * Fraction(999_999, 1_000_000) < spent <= certificate.account.budget.rho
    assert synopsis.model.recoding.names == ("place", "station")
    rows = synopsis.generate(seed=1)
    assert len(set(rows["street"].to_pylist())) >= 100  # values that share a code are drawn apart


def test_a_share_that_tells_nothing_is_warned_of_before_anything_is_paid() -> None:
    plan = Plan.from_yaml("dpsyn_plan: 1\nmarginals: [{of: [unit, kind], share: 1e-6, mechanism: laplace}]")

    with pytest.warns(UserWarning, match="so small a share of ε"):
        dpsyn.measure(calls(50), CALLS, 1.0, recipe=Planned(plan=plan))


@pytest.mark.parametrize("rows", [0, 1, 50])
@pytest.mark.parametrize("epsilon", [0.01, 1.0])
def test_tables_of_any_size_give_rows(rows: int, epsilon: float) -> None:
    synopsis = dpsyn.measure(calls(rows), CALLS, epsilon, recipe=Planned(plan=PLAN))

    assert synopsis.generate(rows=20, seed=1).num_rows == 20


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (
            {"recipe": Planned(plan=Plan.from_yaml("dpsyn_plan: 1\nmarginals: [[sender]]"))},
            PlanError,
            "no attribute 'sender'",
        ),
        ({"epsilon": 1000.0, "allow_large_epsilon": True}, BudgetError, "leave nothing"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_spent(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    ledger = Ledger.create(tmp_path / "l.db")
    chosen = {"recipe": Planned(plan=PLAN), "epsilon": 1.0, **options}

    with pytest.raises(error, match=words):
        dpsyn.measure(TABLE, CALLS, ledger=ledger, dataset="calls", **chosen)

    assert not (tmp_path / "l.db").exists() or ledger.datasets() == ()


def test_a_plan_that_draws_too_much_is_refused_before_its_first_table_is_paid_for(tmp_path: Path) -> None:
    schema = Schema(attributes=tuple(Categorical(name=name, codes=1_000) for name in "abcde"))
    table = pa.table({name: [0, 1] for name in "abcde"})
    plan = Plan.from_yaml(
        "dpsyn_plan: 1\ntransforms:\n  - {transform: mapping, of: a, from: b}\n"
        "  - {transform: mapping, of: c, from: b}\n  - {transform: recode, to: de, of: [d, e]}\n"
    )
    journal = tmp_path / "journal"

    with pytest.raises(BudgetError, match="3,001,000 noisy values, more than 2,000,000"):
        dpsyn.measure(table, schema, 1.0, recipe=Planned(plan=plan), journal=journal)

    assert not journal.exists()  # a run that has paid keeps it


def test_an_interrupted_plan_goes_on_without_paying_twice(tmp_path: Path) -> None:
    journal = tmp_path / "j"

    def dying(phase: str, done: float) -> None:
        if phase.startswith("measuring 3"):
            raise KeyboardInterrupt

    plan = Plan.from_yaml(EVERYTHING.replace("selection: 0.1\n", ""))
    with pytest.raises(KeyboardInterrupt):
        dpsyn.measure(TABLE, CALLS, 0.1, recipe=Planned(plan=plan), journal=journal, progress=dying)
    with pytest.raises(UserError):
        dpsyn.measure(TABLE, CALLS, 0.1, recipe=Planned(plan=PLAN), journal=journal, resume=True)

    synopsis = dpsyn.measure(TABLE, CALLS, 0.1, recipe=Planned(plan=plan), journal=journal, resume=True)

    certificate = synopsis.certificates[0]
    assert certificate is not None
    purposes = [draw.purpose for draw in certificate.account.measurements]
    assert len(purposes) == len(set(purposes))


def test_a_run_that_lost_answers_is_completed_with_what_is_left(tmp_path: Path) -> None:
    journal, ledger = tmp_path / "j", tmp_path / "l.db"
    dpsyn.Ledger.create(ledger)

    def dying(phase: str, done: float) -> None:
        if journal.exists() and journal.read_bytes().count(b"\n") > 2:
            raise KeyboardInterrupt

    plan = Plan.from_yaml(EVERYTHING.replace("selection: 0.1\n", ""))
    options: dict[str, Any] = {"recipe": Planned(plan=plan), "dataset": "d", "ledger": ledger, "journal": journal}
    with pytest.raises(KeyboardInterrupt):
        dpsyn.measure(TABLE, CALLS, 0.1, progress=dying, **options)
    paid = len(dpsyn.Ledger(ledger).datasets()[0].runs[0].measurements)
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))

    with pytest.warns(UserWarning, match="What is left of the budget is divided among the measurements to come"):
        synopsis = dpsyn.measure(TABLE, CALLS, 0.1, resume=True, **options)

    certificate = synopsis.certificates[0]
    assert certificate is not None
    assert len(certificate.account.measurements) > paid
    assert certificate.epsilon_bounds.epsilon <= 0.1
    assert dpsyn.Ledger(ledger).verify().faults == ()


# ── groups of the schema ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("recipe", ["dpsyn", "privsyn", "independent", "priview", "direct"])
def test_attributes_that_the_schema_groups_are_measured_as_one(recipe: str) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 6, 8_000)
    table = pa.table({"a": a, "b": (a * 3) % 7, "c": rng.integers(0, 4, 8_000)})
    schema = Schema(
        attributes=tuple(Categorical(name=n, codes=s) for n, s in (("a", 6), ("b", 7), ("c", 4))),
        measure_together=(JointAttribute(name="ab", attributes=("a", "b")),),
    )

    synopsis = dpsyn.measure(table, schema, 2.0, recipe=recipe)

    rows = synopsis.generate(seed=1).to_pandas()
    assert synopsis.model.recoding.names == ("ab", "c")
    assert (rows["b"] == (rows["a"] * 3) % 7).mean() > 0.95
    assert np.abs(synopsis.marginal("b").counts - np.bincount(table["b"].to_numpy(), minlength=7)).sum() < 800


def test_a_group_of_too_many_combinations_is_refused_when_the_schema_is_read() -> None:
    with pytest.raises(SchemaError, match="4,000,000 combinations of values"):
        Schema(
            attributes=(Categorical(name="a", codes=2_000), Categorical(name="b", codes=2_000)),
            measure_together=(JointAttribute(name="ab", attributes=("a", "b")),),
        )
