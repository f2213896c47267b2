from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dpsyn.accounting import (
    Account,
    Budget,
    Certificate,
    Composition,
    Exponential,
    Gaussian,
    Laplace,
    LedgerHead,
    MeasurementRecord,
    PartitionSelection,
    PrivacyUnit,
    Run,
)
from dpsyn.errors import BudgetError, InternalError

PEOPLE = PrivacyUnit(neighbors="replace", id="person", max_rows=3)


def mixed_run(*, uses_real_noise: bool = True, declared_public: tuple[str, ...] = ()) -> Run:
    """A run with one step of every kind."""
    budget = Budget.for_guarantee(1, 1e-9, pure_epsilons=["0.1", "0.05", "0.05"], thresholds=True)
    run = Run.open(budget, PEOPLE, uses_real_noise=uses_real_noise, declared_public=declared_public)
    first, second = budget.split_rho([1, 2])
    run.charge("frequent items", Exponential.for_epsilon(Fraction("0.1"), PEOPLE.score_sensitivity(), selections=2))
    run.charge(
        "places",
        PartitionSelection.for_delta(
            budget.threshold_delta, Laplace.for_epsilon(Fraction("0.1"), PEOPLE.l1_sensitivity), 3
        ),
    )
    run.charge("marginal age", Gaussian.for_rho(first, PEOPLE.l2_sensitivity_squared))
    run.charge("marginal age, sex", Gaussian.for_rho(second, PEOPLE.l2_sensitivity_squared))
    return run


def test_150_different_scales_are_certified_within_the_guarantee_in_seconds() -> None:
    budget = Budget.for_guarantee(0.1, 1e-9)
    run = Run.open(budget, PrivacyUnit())
    for i, rho in enumerate(budget.split_rho([1 + i**1.5 for i in range(150)])):
        run.charge(f"marginal {i}", Gaussian.for_rho(rho, 1))

    start = time.monotonic()
    certificate = run.certificate()

    assert time.monotonic() - start < 10  # a few seconds on a busy machine
    assert (
        len(
            {
                measurement.cost.sigma
                for measurement in run.account.measurements
                if isinstance(measurement.cost, Gaussian)
            }
        )
        == 150
    )
    assert certificate.epsilon_bounds.pld is not None
    assert 0.0999 < certificate.epsilon_bounds.pld <= 0.1
    assert certificate.epsilon_bounds.zcdp == pytest.approx(0.1060, abs=1e-4)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("rows", [1, 4])
def test_neighbors_and_rows_scale_the_noise_and_not_the_certificate(neighbors: str, rows: int) -> None:
    unit = PrivacyUnit(neighbors=neighbors, id="person", max_rows=rows)
    budget = Budget.for_guarantee(1, 1e-9)
    run = Run.open(budget, unit)

    cost = Gaussian.for_rho(budget.rho, unit.l2_sensitivity_squared)
    run.charge("marginal", cost)

    factor = rows * (1 if neighbors == "add-remove" else 2**0.5)
    assert cost.sigma == pytest.approx(5.4953 * factor, rel=1e-4)
    assert 0.9999 < run.certificate().epsilon_bounds.epsilon <= 1


def test_every_kind_of_step_is_certified_together() -> None:
    certificate = mixed_run().certificate()

    assert certificate.epsilon_bounds.pld is not None
    assert 0.999 < certificate.epsilon_bounds.pld <= 1
    assert certificate.epsilon_bounds.zcdp > 1
    assert certificate.epsilon_bounds.basic is None


def test_pure_steps_alone_are_added_up() -> None:
    budget = Budget.for_pure_steps(1, [1, 4, 5])
    run = Run.open(budget, PrivacyUnit())
    for epsilon in budget.pure_epsilons:
        run.charge("bins", Laplace.for_epsilon(epsilon, 1))

    certificate = run.certificate()

    assert certificate.epsilon_bounds.basic is not None
    assert certificate.epsilon_bounds.epsilon <= 1
    assert "by adding up the pure steps" in certificate.text()


def test_above_fifty_the_certified_epsilon_is_that_of_zcdp() -> None:
    budget = Budget.for_guarantee(1000, 1e-9)
    run = Run.open(budget, PrivacyUnit())
    run.charge("marginal", Gaussian.for_rho(budget.rho, 1))

    bounds = run.certificate().epsilon_bounds

    assert bounds.pld is None
    assert 999.99 < bounds.epsilon <= 1000
    assert bounds.epsilon == bounds.zcdp


def test_an_overspend_is_refused_and_not_recorded() -> None:
    run = mixed_run()
    before = run.account

    with pytest.raises(BudgetError, match="marginal too many"):
        run.charge("marginal too many", Gaussian.for_rho(Fraction(1, 10**9), 1))

    assert run.account is before


def test_measurements_beyond_the_guarantee_are_never_certified() -> None:
    budget = Budget.for_guarantee(1, 1e-9)
    measurement = MeasurementRecord(purpose="marginal", cost=Gaussian.for_rho(budget.rho * 2, 1))
    forged = Account(budget=budget, measurements=(measurement,), total=Composition.of([measurement.cost]))

    with pytest.raises(InternalError, match="do not publish"):
        Certificate.from_account(forged, PrivacyUnit())


def test_a_threshold_for_fewer_rows_than_a_person_has_is_refused() -> None:
    budget = Budget.for_guarantee(1, 1e-9, thresholds=True)
    run = Run.open(budget, PEOPLE)

    with pytest.raises(BudgetError, match="a unit has 3"):
        run.charge("places", PartitionSelection.for_delta(budget.threshold_delta, Gaussian.for_rho(budget.rho, 18), 1))


@pytest.mark.parametrize("uses_real_noise", [True, False])
def test_a_certificate_survives_json_and_so_does_its_privacy_flag(uses_real_noise: bool) -> None:
    certificate = replace(
        mixed_run(uses_real_noise=uses_real_noise, declared_public=("age: 0 to 120",)).certificate(),
        ledger_head=LedgerHead(7, "ab" * 32),
    )

    again = Certificate.from_data(json.loads(json.dumps(certificate.to_data())))

    assert again == certificate
    assert ("NOT PRIVATE" in again.text()) is not uses_real_noise


@pytest.mark.parametrize("flag", [False, None, 0, 1, "true", [True]])
def test_only_true_marks_a_certificate_as_private(flag: object) -> None:
    data = mixed_run().certificate().to_data() | {"differentially_private": flag}

    certificate = Certificate.from_data(data)

    assert certificate.uses_real_noise is False
    assert "NOT PRIVATE" in certificate.text()


def test_a_certificate_without_a_privacy_flag_is_refused() -> None:
    data = mixed_run().certificate().to_data()
    del data["differentially_private"]

    with pytest.raises(BudgetError, match="differentially_private"):
        Certificate.from_data(data)


def test_a_certificate_that_was_edited_is_refused() -> None:
    data = mixed_run().certificate().to_data()
    cheaper = data | {"measurements": data["measurements"][:-1]}
    smaller = data | {"certified_epsilon": 0.5}
    looser = data | {"guarantee": data["guarantee"] | {"rho": "1"}}
    nobody = data | {"privacy_unit": data["privacy_unit"] | {"id": ["person"]}}
    garbled = {key: value for key, value in data.items() if key != "guarantee"}
    newer = data | {"format": 99}

    for edited, words in (
        (cheaper, "changed"),
        (smaller, "changed"),
        (looser, "exceeds its guarantee"),
        (nobody, "unit"),
        (garbled, "guarantee"),
        (newer, "format 99"),
    ):
        with pytest.raises(BudgetError, match=words):
            Certificate.from_data(edited)


@pytest.mark.parametrize("uses_real_noise", [True, False])
def test_a_certificate_is_proved_again_by_a_closed_formula(uses_real_noise: bool) -> None:
    certificate = mixed_run(uses_real_noise=uses_real_noise).certificate()

    assert Certificate.from_data(certificate.to_data(), recompute=False) == certificate


@pytest.mark.parametrize("epsilon", [0.01, 1, 30])
@pytest.mark.parametrize("delta", [1e-6, 1e-12])
@pytest.mark.parametrize("pure", [(), (0.1, 0.1, 0.05)])
def test_the_closed_formula_proves_the_true_epsilon_and_none_below_it(
    epsilon: float, delta: float, pure: tuple[float, ...]
) -> None:
    budget = Budget.for_guarantee(epsilon, delta, pure_epsilons=[rho * epsilon for rho in pure])
    total = budget.worst_case
    epsilon_by_pld = total.epsilon_bounds(budget.epsilon, budget.delta).pld
    enough = math.nextafter(epsilon, 0)
    assert epsilon_by_pld is not None

    kept = total.epsilon_bounds(budget.epsilon, budget.delta, stated_epsilon=enough)
    denied = total.epsilon_bounds(budget.epsilon, budget.delta, stated_epsilon=epsilon_by_pld * 0.98)
    beyond = total.epsilon_bounds(budget.epsilon, budget.delta, stated_epsilon=epsilon * 1.01)

    assert kept.pld == enough
    assert denied.pld == beyond.pld == epsilon_by_pld


@pytest.mark.parametrize(
    "budget",
    [
        Budget.for_guarantee(0.01, 1e-12),
        Budget.for_guarantee(1, 1e-9, pure_epsilons=["0.1", "0.2"], thresholds=True),
        Budget.for_guarantee(50, 1e-9),
        Budget.for_guarantee(1000, 1e-9),
        Budget.for_guarantee(1, 1e-13, pure_epsilons=["0.1"]),
        Budget.for_pure_steps(1, [1, 4, 5]),
    ],
)
def test_closed_formulas_prove_the_guarantee_of_a_budget_and_not_half_of_it(budget: Budget) -> None:
    worst = budget.worst_case

    assert worst.satisfies(budget.epsilon, budget.delta)
    assert not worst.satisfies(budget.epsilon / 2, budget.delta)
    assert not replace(worst, delta=budget.delta * 2).satisfies(budget.epsilon, budget.delta) or not budget.delta


def test_absurd_budgets_are_judged_at_once() -> None:
    start = time.monotonic()

    assert not Composition(rho=Fraction(100), mu_squared=Fraction(200)).satisfies(Fraction(1), Fraction(1, 10**9))
    assert not Composition(rho=Fraction(10**9), mu_squared=Fraction(10**9)).satisfies(
        Fraction(1, 10**9), Fraction(1, 10)
    )
    assert time.monotonic() - start < 2


@pytest.mark.parametrize("stated", [0.0, -1.0, float("inf"), float("nan")])
def test_a_stated_epsilon_that_is_not_valid_is_computed(stated: float) -> None:
    budget = Budget.for_guarantee(1, 1e-9)

    assert budget.worst_case.epsilon_bounds(budget.epsilon, budget.delta, stated) == budget.worst_case.epsilon_bounds(
        budget.epsilon, budget.delta
    )


def test_a_certificate_that_was_edited_is_refused_by_the_closed_formula_too() -> None:
    data = mixed_run().certificate().to_data()
    smaller = data | {"certified_epsilon": 0.9, "epsilon_bounds": data["epsilon_bounds"] | {"pld": 0.9}}
    cheaper = data | {
        "measurements": data["measurements"][:-1],
        "epsilon_bounds": data["epsilon_bounds"] | {"pld": 0.5},
    }

    for edited in (smaller, cheaper):
        with pytest.raises(BudgetError, match="changed"):
            Certificate.from_data(edited, recompute=False)


def test_the_recipe_is_recorded_as_data_and_shown_in_one_line() -> None:
    recipe: dict[str, Any] = {
        "name": "privsyn",
        "budget_shares": (1, 1, 8),
        "synthesis": {"name": "gum"},
        "extends": [],
        "plan": None,
    }
    run = Run.open(Budget.for_guarantee(1, 1e-9), PrivacyUnit(), recipe=recipe)

    certificate = run.certificate()

    assert certificate.to_data()["recipe"] == recipe | {"budget_shares": [1, 1, 8]}
    assert Certificate.from_data(json.loads(json.dumps(certificate.to_data()))) == certificate
    assert "Recipe: privsyn. Its options are in the JSON certificate.\n\n" in certificate.text()
    assert "Recipe" not in mixed_run().certificate().text()


@pytest.mark.parametrize("recipe", ["privsyn", ["privsyn"], {"name": {1}}, {"rho": Fraction(1, 3)}, None])
def test_a_recipe_that_is_no_plain_data_is_refused(recipe: Any) -> None:
    deep: Any = []
    for _ in range(900):
        deep = [deep]

    for wrong in (recipe, {"name": "deep", "options": deep}):
        with pytest.raises(BudgetError, match="a recipe"):
            Run.open(Budget.for_guarantee(1, 1e-9), PrivacyUnit(), recipe=wrong)
        with pytest.raises(BudgetError, match="a recipe"):
            Certificate.from_data(mixed_run().certificate().to_data() | {"recipe": wrong})


def test_the_measurements_can_be_left_out_of_the_text() -> None:
    certificate = mixed_run().certificate()

    assert "Measurements: " in certificate.text()
    assert "Measurements: " not in certificate.text(measurements=False)


def test_the_text_states_what_a_data_owner_must_know() -> None:
    text = mixed_run(declared_public=("sex: F, M (code book 2024)",)).certificate().text()
    text = f"{text} {' '.join(text.split())}"  # sentences are wrapped

    for words in (
        "ε = 1, δ = 1e-9",
        "Privacy unit: all rows with the same person (at most 3 rows per person are used).",
        "Neighboring tables differ by replacing the rows of one person.",
        "at most 2.72 times as likely",
        "Certified: the guarantee holds.",
        "privacy loss distributions",
        "tight conversion",
        "marginal age, sex: Gaussian noise",
        "Declared public by the data owner, and not protected:\n  sex: F, M (code book 2024)",
        "this run only",
        "Its charges were recorded by its own journal alone",
    ):
        assert words in text


@pytest.mark.parametrize("privacy_unit", [PrivacyUnit(), PrivacyUnit(id="person", max_rows=3, neighbors="replace")])
def test_the_summary_has_ten_lines_that_explain_both_figures_and_the_text_begins_with_it(
    privacy_unit: PrivacyUnit,
) -> None:
    budget = Budget.for_guarantee(1, 1e-9 / 9)
    run = Run.open(budget, privacy_unit, dataset="clinic-visits", declared_public=tuple("abcdefg"))
    run.charge("marginal", Gaussian.for_rho(budget.rho, privacy_unit.l2_sensitivity_squared))
    certificate = run.certificate()

    summary = certificate.summary()

    lines = [line for line in summary.splitlines() if line]
    assert len(lines) <= 10
    assert max(map(len, lines)) <= 110
    words = " ".join(summary.split())
    second = next(line.split()[0] for line in certificate.text().splitlines() if "tight conversion" in line)
    assert f"formula yields {second} for the same measurements" in words
    assert "upper bounds on one cost, so the smaller one counts" in words
    assert "Not covered: 7 facts that the data owner declared public; other releases" in words
    assert certificate.text().startswith(summary)


@pytest.mark.parametrize(
    ("epsilon", "odds"), [(1, "2.72"), (1.5, "4.49"), (8, "2,981"), (20, "485,165,196"), (30, "e^30")]
)
def test_the_odds_are_readable_and_never_rounded_down(epsilon: float, odds: str) -> None:
    summary = Run.open(Budget.for_guarantee(epsilon, 1e-9), PrivacyUnit()).certificate().summary()

    assert f"is at most {odds} times as likely as it would be without this row" in " ".join(summary.split())


def test_delta_is_short_and_never_rounded_down() -> None:
    certificate = Run.open(Budget.for_guarantee(1, Fraction(10, 9) * Fraction(1, 10**13)), PrivacyUnit()).certificate()

    assert "Guarantee: ε = 1, δ = 1.12e-13.\n" in certificate.summary()


def test_the_text_rounds_epsilon_up() -> None:
    certificate = mixed_run().certificate()
    line = next(line for line in certificate.text().splitlines() if "privacy loss" in line)

    assert certificate.epsilon_bounds.pld is not None
    assert float(line.split()[0]) >= certificate.epsilon_bounds.pld


def test_an_unused_budget_costs_nothing() -> None:
    run = Run.open(Budget.for_guarantee(1, 1e-9), PrivacyUnit())

    assert run.certificate().epsilon_bounds.epsilon == 0


def test_the_package_imports_without_its_heavy_libraries() -> None:
    code = "import sys, dpsyn.accounting; print({'dp_accounting', 'scipy'} & set(sys.modules))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("holder", "words"),
    [
        ([], "'approved'"),
        (["guarantee"], "'guarantee approved'"),
        (["epsilon_bounds"], "'epsilon_bounds approved'"),
        (["measurements", 1, "mechanism"], "it|approved"),
    ],
)
def test_a_certificate_with_an_entry_that_dpsyn_does_not_write_is_refused(holder: list[Any], words: str) -> None:
    data = json.loads(json.dumps(mixed_run().certificate().to_data()))
    place = data
    for key in holder:
        place = place[key]
    place["approved"] = "by the authority"

    with pytest.raises(BudgetError, match=words):
        Certificate.from_data(data, recompute=False)
