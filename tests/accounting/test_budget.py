from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn.accounting import (
    Account,
    Budget,
    Composition,
    Exponential,
    Gaussian,
    Laplace,
    MeasurementRecord,
    PartitionSelection,
    PrivacyUnit,
    Run,
    check_budget,
)
from dpsyn.accounting.composition import log_delta, pld_epsilon
from dpsyn.accounting.costs import MechanismCost
from dpsyn.errors import BudgetError
from tests.accounting import naive

PLANS = [
    (0.001, 1e-9, (), False),
    (0.1, 1e-9, (), True),
    (1, 1e-6, (), False),
    (1, 1e-30, (), False),
    (10, 1e-9, (), True),
    (50, 1e-9, (), False),
    (51, 1e-9, (1, 2), True),
    (1e6, 1e-9, (), False),
    (1, 1e-9, (0.1,), False),
    (1, 1e-9, (0.05,) * 8 + (0.01,) * 20, True),
    (10, 1e-9, (3, 2, 1), False),
    (1, 1e-13, (0.1,), False),
    (1, 1e-9, (0.25,) * 4, True),
    (1, 0, (0.5, 0.3, 0.2), False),
]
"""ε, δ, pure steps, thresholds."""


@pytest.mark.parametrize("plan", PLANS)
def test_the_worst_case_of_a_budget_is_certified_within_the_guarantee(
    plan: tuple[float, float, tuple[float], bool],
) -> None:
    budget = Budget.for_guarantee(plan[0], plan[1], pure_epsilons=plan[2], thresholds=plan[3])

    check_budget(budget)

    bounds = budget.worst_case.epsilon_bounds(budget.epsilon, budget.delta)
    assert bounds.epsilon <= budget.epsilon
    assert budget.delta * budget.epsilon == 0 or plan[1] < 1e-12 or bounds.epsilon > float(budget.epsilon) * 0.9999


@settings(max_examples=8, deadline=None)
@given(
    st.floats(math.log(0.01), math.log(50)).map(math.exp),
    st.floats(-12, -4).map(lambda x: 10**x),
    st.lists(st.sampled_from([0.01, 0.02, 0.05, 0.1]), max_size=6),
    st.booleans(),
)
def test_any_budget_is_certified_within_its_guarantee(
    epsilon: float, delta: float, pure: list[float], thresholds: bool
) -> None:
    budget = Budget.for_guarantee(epsilon, delta, pure_epsilons=[rho * epsilon for rho in pure], thresholds=thresholds)

    check_budget(budget)


def test_calibration_gives_away_less_than_a_ten_thousandth() -> None:
    budget = Budget.for_guarantee(1, 1e-9)

    assert 5.4952 < 1 / math.sqrt(2 * budget.rho) < 5.4953 * 1.0001


def test_thresholds_take_a_tenth_of_delta() -> None:
    budget = Budget.for_guarantee(1, "1e-9", thresholds=True)

    assert budget.threshold_delta == Fraction(1, 10**10)
    assert budget.rho < Budget.for_guarantee(1, "1e-9").rho


def test_pure_shares_add_up_to_epsilon_exactly() -> None:
    budget = Budget.for_pure_steps(1, [1, 4, 5, 0.7])

    assert sum(budget.pure_epsilons) == 1
    assert budget.rho == 0
    assert budget.worst_case.epsilon_bounds(budget.epsilon, budget.delta).epsilon == 1


@pytest.mark.parametrize(
    ("epsilon", "delta", "steps"),
    [(3, "1e-5", ["0.5"] * 6), (40, "1e-3", ["9.999"] * 4), (1, "1e-4", ["0.2"] * 5), (2, "1e-3", [1, 1])],
)
def test_pure_steps_that_take_all_of_epsilon_leave_a_budget_that_is_certified(
    epsilon: float, delta: str, steps: list[float | str]
) -> None:
    budget = Budget.for_guarantee(epsilon, delta, pure_epsilons=steps)

    check_budget(budget)
    assert len(budget.pure_epsilons) == len(steps)
    assert budget.rho < Fraction(1, 10_000)


@pytest.mark.parametrize("steps", [(0.3,), (0.3, 0.3, 0.3), (0.5, 0.2, 0.2, 0.1)])
@pytest.mark.parametrize("epsilon", [0.0, 0.25, 0.6])
def test_pure_steps_compose_as_by_enumerating_all_outcomes(steps: tuple[float, ...], epsilon: float) -> None:
    pure = tuple(Fraction(str(step)) for step in steps)
    expected = naive.responses_delta(epsilon, steps)

    nearly_no_gaussian = math.exp(log_delta(epsilon, 1e-9, pure))

    assert nearly_no_gaussian == pytest.approx(expected, abs=1e-8)


def test_the_formula_of_calibration_agrees_with_dp_accounting() -> None:
    pure = (Fraction(1, 10),) * 3 + (Fraction(1, 7),)
    gaussian = privacy_loss_distribution.from_gaussian_mechanism(8.0, value_discretization_interval=1e-5)
    for step in pure:
        parameters = privacy_loss_distribution.common.DifferentialPrivacyParameters(float(step))
        gaussian = gaussian.compose(privacy_loss_distribution.from_privacy_parameters(parameters, 1e-5))

    for epsilon in (0.1, 0.4, 0.9):
        result = math.exp(log_delta(epsilon, 1 / 8, pure))
        assert result == pytest.approx(gaussian.get_delta_for_epsilon(epsilon), rel=2e-3)
    assert pld_epsilon(Fraction(1, 64), pure, 1e-6, 1e-5) == pytest.approx(
        gaussian.get_epsilon_for_delta(1e-6), rel=1e-4
    )


def test_many_gaussians_are_one() -> None:
    sigmas = [40.0, 50.0, 50.0, 75.0]
    apart = privacy_loss_distribution.identity(1e-5)
    for sigma in sigmas:
        part = privacy_loss_distribution.from_gaussian_mechanism(sigma, value_discretization_interval=1e-5)
        apart = apart.compose(part)

    together = pld_epsilon(sum((1 / Fraction(s) ** 2 for s in sigmas), Fraction(0)), (), 1e-9, 1e-5)

    assert together == pytest.approx(apart.get_epsilon_for_delta(1e-9), rel=1e-5)


@pytest.mark.parametrize(("neighbors", "unit_shifts"), [("add-remove", 1), ("replace", 2)])
def test_replacing_is_the_composition_of_two_shifts(neighbors: str, unit_shifts: int) -> None:
    shift = privacy_loss_distribution.from_gaussian_mechanism(10.0, sensitivity=3.0, value_discretization_interval=1e-4)

    result = pld_epsilon(Fraction(9 * unit_shifts, 100), (), 1e-9, 1e-4)

    assert result == pytest.approx(shift.self_compose(unit_shifts).get_epsilon_for_delta(1e-9), rel=1e-5)


def test_discrete_gaussian_steps_certify_at_most_what_is_charged() -> None:
    discrete = privacy_loss_distribution.from_discrete_gaussian_mechanism(
        1024.0, sensitivity=256, value_discretization_interval=1e-5
    )
    cost = Gaussian(sensitivity_squared=Fraction(1), sigma=4.0, lattice=8)

    bounds = Composition.of([cost]).epsilon_bounds(Fraction(2), Fraction(1, 10**9))

    assert bounds.pld == pytest.approx(discrete.get_epsilon_for_delta(1e-9), rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"epsilon": 0, "delta": 1e-9}, "ε is 0"),
        ({"epsilon": 1, "delta": 1}, "δ is 1"),
        ({"epsilon": 1, "delta": -0.1}, "δ is"),
        ({"epsilon": 1, "delta": 0}, "δ = 0"),
        ({"epsilon": 1, "delta": 1e-40}, "δ is"),
        ({"epsilon": 1, "delta": 0, "pure_epsilons": [0.6, 0.6]}, "pure steps cost ε = 1.2"),
        ({"epsilon": 1, "delta": 1e-9, "pure_epsilons": [0.9, 0.9]}, "pure steps cost ε = 1.8"),
        ({"epsilon": 100, "delta": 1e-9, "pure_epsilons": [90, 90]}, "pure steps cost ε = 180"),
        ({"epsilon": 1, "delta": 1e-9, "pure_epsilons": [5000]}, "pure steps cost ε = 5000"),
        ({"epsilon": 1, "delta": 1e-9, "pure_epsilons": [-0.1]}, "pure step has"),
        ({"epsilon": 1, "delta": 0, "pure_epsilons": [1], "thresholds": True}, "δ is 0"),
    ],
)
def test_an_impossible_guarantee_is_refused(arguments: dict[str, float], words: str) -> None:
    with pytest.raises(BudgetError, match=words):
        Budget.for_guarantee(**arguments)  # type: ignore[arg-type]


def test_a_budget_that_exceeds_its_guarantee_is_refused() -> None:
    honest = Budget.for_guarantee(1, 1e-9)
    greedy = Budget(epsilon=honest.epsilon, delta=honest.delta, rho=honest.rho * Fraction(11, 10))

    for use in (check_budget, lambda budget: Run.open(budget, PrivacyUnit())):
        with pytest.raises(BudgetError, match="more than the guarantee"):
            use(greedy)


def test_a_budget_survives_json() -> None:
    budget = Budget.for_guarantee(1, 1e-9, pure_epsilons=[0.1, 0.2], thresholds=True)

    assert Budget.from_data(json.loads(json.dumps(budget.to_data()))) == budget


def measurement_of(cost: MechanismCost) -> MeasurementRecord:
    return MeasurementRecord(purpose="a marginal", cost=cost)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=40), st.integers(1, 18))
def test_all_of_a_budget_can_be_spent_and_nothing_more(weights: list[float], squared: int) -> None:
    budget = Budget.for_guarantee(1, 1e-9)
    account = Account(budget=budget)

    for rho in budget.split_rho(weights):
        account = account.charge(measurement_of(Gaussian.for_rho(rho, squared)))

    assert account.total.rho <= budget.rho
    assert account.total.mu_squared <= budget.worst_case.mu_squared
    with pytest.raises(BudgetError, match="ρ of Gaussian noise"):
        account.charge(measurement_of(Gaussian.for_rho(budget.rho / 10**6, squared)))


def test_pure_steps_must_match_planned_ones() -> None:
    account = Account(budget=Budget.for_guarantee(1, 1e-9, pure_epsilons=["0.2", "0.1"]))

    after = account.charge(measurement_of(Laplace.for_epsilon(Fraction("0.15"), 1)))

    assert after.charge(measurement_of(Laplace.for_epsilon(Fraction("0.1"), 1)))
    with pytest.raises(BudgetError, match="pure ε"):
        after.charge(measurement_of(Laplace.for_epsilon(Fraction("0.15"), 1)))
    with pytest.raises(BudgetError, match="pure ε"):
        account.charge(measurement_of(Exponential.for_epsilon(Fraction("0.03"), 1, selections=3)))


def test_any_number_of_pure_steps_may_share_the_only_one_that_is_planned() -> None:
    account = Account(budget=Budget.for_guarantee(1, 0, pure_epsilons=[1]))

    account = account.charge(measurement_of(Exponential.for_epsilon(Fraction("0.4"), 1, selections=7)))
    account = account.charge(measurement_of(Laplace.for_epsilon(Fraction("0.6"), 1)))

    assert sum(account.total.pure_epsilons) == 1
    assert account.total.epsilon_bounds(account.budget.epsilon, account.budget.delta).epsilon == 1
    with pytest.raises(BudgetError, match="pure ε"):
        account.charge(measurement_of(Laplace.for_epsilon(Fraction(1, 10**30), 1)))


def test_pure_steps_that_share_a_planned_one_keep_the_guarantee_beside_gaussian_noise() -> None:
    budget = Budget.for_guarantee(1, 1e-9, pure_epsilons=["0.7"], thresholds=True)
    account = Account(budget=budget).charge(measurement_of(Gaussian.for_rho(budget.rho, 1)))

    account = account.charge(measurement_of(Exponential.for_epsilon(Fraction("0.3"), 1, selections=60)))
    account = account.charge(measurement_of(Laplace.for_epsilon(Fraction("0.4"), 1)))

    assert account.total.epsilon_bounds(budget.epsilon, budget.delta).epsilon <= 1


def test_thresholds_must_fit_their_delta() -> None:
    budget = Budget.for_guarantee(1, 1e-9, thresholds=True)
    account = Account(budget=budget)
    half = PartitionSelection.for_delta(budget.threshold_delta / 2, Gaussian.for_rho(budget.rho / 4, 1))

    account = account.charge(measurement_of(half)).charge(measurement_of(half))

    with pytest.raises(BudgetError, match="δ of partition selection"):
        account.charge(measurement_of(half))


def test_losses_of_many_different_pure_steps_are_merged_and_stay_pessimistic() -> None:
    few = tuple(Fraction(n, 1000) for n in range(1, 15))
    many = tuple(Fraction(n, 1000) for n in range(1, 25))

    deltas = [log_delta(0.2, 0.02, pure) for pure in ((), few, many)]

    assert np.all(np.diff(deltas) > 0)


@pytest.mark.parametrize(
    ("unit", "cost"),
    [
        (PrivacyUnit(neighbors="replace"), Exponential.for_epsilon(Fraction(1), 1, monotone=True)),
        (PrivacyUnit(id="person", max_rows=3), Exponential.for_epsilon(Fraction(1), 2, monotone=True)),
        (PrivacyUnit(neighbors="replace"), Laplace.for_epsilon(Fraction(1), 1)),
    ],
)
def test_a_pure_step_that_is_charged_for_less_than_a_unit_changes_is_refused(
    unit: PrivacyUnit, cost: Exponential | Laplace
) -> None:
    run = Run.open(Budget.for_guarantee(1, 0, pure_epsilons=[1]), unit)

    with pytest.raises(BudgetError):
        run.charge("frequent items", cost)

    assert run.account.measurements == ()


@pytest.mark.parametrize(
    ("budget", "pure", "amount"),
    [
        (Budget.for_guarantee(1, 0, pure_epsilons=[1]), True, Fraction(1)),
        (Budget.for_guarantee(1, 1e-9, pure_epsilons=["0.3"]), False, None),
        (Budget.for_guarantee(1, 1e-9), False, None),
        (
            Budget(epsilon=Fraction(1), delta=Fraction(1, 10), rho=Fraction(0), pure_epsilons=(Fraction(2),)),
            False,
            Fraction(0),
        ),
        (
            Budget(
                epsilon=Fraction(1),
                delta=Fraction(1, 10),
                rho=Fraction(0),
                pure_epsilons=(Fraction(1),),
                threshold_delta=Fraction(1, 10),
            ),
            False,
            Fraction(0),
        ),
    ],
    ids=["pure", "mixed", "gaussian", "beyond ε", "with thresholds"],
)
def test_a_budget_is_pure_if_delta_is_never_needed(budget: Budget, pure: bool, amount: Fraction | None) -> None:
    assert budget.is_pure == pure
    assert budget.amount == (budget.rho if amount is None else amount)
