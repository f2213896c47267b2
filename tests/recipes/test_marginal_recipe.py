"""Releases of marginals alone: pure ε with δ = 0, and Laplace noise where it is less than Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpsyn
from dpsyn.accounting import Budget, Exponential, Gaussian, Laplace, Ledger, exact_fraction
from dpsyn.errors import BudgetError, LedgerError, UserError
from dpsyn.private import open_private
from dpsyn.recipes import MWEM, RECIPES, Direct, Fourier, Independent, PriView
from dpsyn.recipes.marginal_recipe import MarginalRecipe
from dpsyn.schema import Boolean, Categorical, Integer, JointAttribute, Open, Schema
from dpsyn.selection import parse_views
from tests.private.noise_doubles import RecordingNoise

RNG = np.random.default_rng(3)
ROWS = 400
NAMES = ("a", "b", "c", "d")
TABLE = pa.table({name: RNG.integers(0, 2, ROWS) for name in NAMES})


def columns(count: int, **options: Any) -> Schema:
    return Schema(
        attributes=tuple(Categorical(name=f"c{i}", codes=4) for i in range(count)), dataset="few columns", **options
    )


BINARY = Schema(attributes=tuple(Categorical(name=name, codes=2) for name in NAMES), dataset="flags")
PURE_RECIPES: Mapping[str, MarginalRecipe] = {
    "independent": Independent(),
    "direct": Direct(),
    "fourier": Fourier(),
    "mwem": MWEM(rounds=3),
    "priview": PriView(),
    "priview of a scheme": PriView(views=parse_views("covering:2x3")),
}


# ── the choice ───────────────────────────────────────────────────────────────────────────────────────────────


def laplace_std(epsilon: float) -> float:
    """The standard deviation of discrete Laplace noise, summed up term by term."""
    steps = np.arange(-4_000, 4_001)
    weights = np.exp(-np.abs(steps) * epsilon)
    return math.sqrt(float((weights * steps**2).sum() / weights.sum()))


@pytest.mark.parametrize(
    ("neighbors", "epsilon", "gaussian", "last"),
    [  # the σ of one marginal at δ = 1e-9, as published for the analytic Gaussian mechanism
        ("add-remove", 0.1, 50.21, 12),
        ("add-remove", 1.0, 5.495, 15),
        ("add-remove", 10.0, 0.6502, 21),
        ("replace", 0.1, 50.21 * math.sqrt(2), 6),
        ("replace", 1.0, 5.495 * math.sqrt(2), 7),
        ("replace", 10.0, 0.6502 * math.sqrt(2), 10),
    ],
)
def test_laplace_noise_is_taken_as_long_as_it_is_less(
    neighbors: Any, epsilon: float, gaussian: float, last: int
) -> None:
    sensitivity = 2 if neighbors == "replace" else 1
    for count, kind in ((last, "laplace"), (last + 1, "gaussian")):
        chosen = Independent().choose_noise(columns(count, neighbors=neighbors), epsilon, 1e-9, in_ledger=False)

        less = laplace_std(epsilon / count / sensitivity) < gaussian * math.sqrt(count)
        assert (chosen.kind, "laplace" if less else "gaussian") == (kind, kind)
        assert f"the {count} marginals" in chosen.reason


@pytest.mark.parametrize(
    ("recipe", "schema", "options", "reason"),
    [
        (Independent(), columns(3), {"in_ledger": True}, "the ledger adds up releases as ρ"),
        (Independent(noise="gaussian"), columns(3), {}, "asked for"),
        (PriView(), columns(3), {}, "depends on noisy answers"),
        (Independent(), Schema(attributes=(Open(name="city"),)), {}, "open attributes"),
        (Direct(), columns(7), {}, "less than laplace noise for the 21 marginals"),
        (RECIPES["dpsyn"](), columns(1), {}, ""),
    ],
)
def test_otherwise_noise_is_gaussian(recipe: Any, schema: Schema, options: Any, reason: str) -> None:
    chosen = recipe.choose_noise(schema, 1.0, 1e-9, **{"in_ledger": False} | options)

    assert chosen.kind == "gaussian"
    assert reason in chosen.reason


@pytest.mark.parametrize(
    "recipe",
    [Independent(noise="laplace"), Direct(), Direct(ways=3), Fourier(), PriView(views=parse_views("all:2"))],
)
def test_a_release_of_few_marginals_is_pure(recipe: MarginalRecipe) -> None:
    synopsis = dpsyn.measure(TABLE, BINARY, 1.0, recipe=recipe)

    (certificate,) = synopsis.certificates
    assert certificate is not None
    assert certificate.account.budget.delta == 0
    assert certificate.epsilon_bounds.basic == 1
    assert all(isinstance(measurement.cost, Laplace) for measurement in certificate.account.measurements)
    assert "δ = 0." in certificate.text()
    assert f"Noise: {certificate.recipe['noise_choice']}." in certificate.text()
    assert certificate.recipe["noise_choice"].startswith("laplace: ")


NUMBERS = Schema(
    attributes=(
        Integer(name="age", low=0, high=99, bins=(0, 18, 65)),
        Integer(name="income", low=0, high=99_999, bins=8),
        Boolean(name="works"),
        Categorical(name="sex", codes=2),
        Categorical(name="job", codes=5),
    ),
    measure_together=(JointAttribute(name="both", attributes=("sex", "job")),),
    expected_size=ROWS,
)
PEOPLE = pa.table(
    {
        "age": RNG.integers(0, 100, ROWS),
        "income": RNG.integers(0, 1000, ROWS) * 100,
        "works": RNG.random(ROWS) < 0.5,
        "sex": RNG.integers(0, 2, ROWS),
        "job": RNG.integers(0, 5, ROWS),
    }
)


@pytest.mark.parametrize("budget", [Budget.for_guarantee(1, 1e-9), Budget.for_guarantee(1, 0, pure_epsilons=[1])])
@pytest.mark.parametrize(
    ("recipe", "table", "schema", "first"),
    [
        (Independent(), TABLE, BINARY, 0),
        (Direct(), TABLE, BINARY, 1),  # a first count of the rows
        (PriView(views=parse_views("covering:2x3")), TABLE, BINARY, 1),
    ],
)
def test_marginals_get_the_parts_that_were_compared(
    recipe: MarginalRecipe, table: pa.Table, schema: Schema, first: int, budget: Budget
) -> None:
    noise = RecordingNoise()
    with open_private(table, schema, budget, mechanisms=noise) as private:
        recipe.measure(private)

    costs = [answer.cost for answer in noise.answers][first:]
    spent = [cost.rho if isinstance(cost, Gaussian) else sum(cost.pure_epsilons) for cost in costs]
    parts = sorted(float(part / budget.amount) for part in spent)
    assert parts == pytest.approx(sorted(recipe.planned_shares(schema)))


@pytest.mark.parametrize("budget", [Budget.for_guarantee(1, 1e-9), Budget.for_guarantee(1, 0, pure_epsilons=[1])])
def test_coefficients_have_the_noise_of_the_parts_that_were_compared(budget: Budget) -> None:
    noise = RecordingNoise()
    with open_private(TABLE, BINARY, budget, mechanisms=noise) as private:
        Fourier().measure(private)

    [answer] = noise.answers
    shares = Fourier().planned_shares(BINARY)
    part = budget.amount * exact_fraction(shares[0])
    alone = Laplace.for_epsilon(part, 1) if budget.is_pure else Gaussian.for_rho(part, 1)
    assert answer.exact.shape == (len(shares),)
    assert isinstance(answer.cost, Laplace | Gaussian)
    assert answer.cost.std == pytest.approx(alone.std)


@pytest.mark.parametrize("budget", [Budget.for_guarantee(1, 1e-9), Budget.for_guarantee(1, 0, pure_epsilons=[1])])
def test_numbers_are_measured_as_often_as_planned(budget: Budget) -> None:
    noise = RecordingNoise()
    with open_private(PEOPLE, NUMBERS, budget, mechanisms=noise) as private:
        Independent().measure(private)

    costs = [answer.cost for answer in noise.answers]
    spent = [cost.rho if isinstance(cost, Gaussian) else sum(cost.pure_epsilons) for cost in costs]
    planned = Independent().planned_shares(NUMBERS)
    assert float(sum(spent)) == pytest.approx(float(budget.amount))
    assert len(spent) == len(planned)  # the first round is equal parts, the others follow from it
    assert sorted(float(part / budget.amount) for part in spent)[:3] == pytest.approx(sorted(planned)[:3])


# ── δ = 0 ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("recipe", PURE_RECIPES)
def test_a_release_with_delta_0_is_certified_saved_and_queried(recipe: str, neighbors: Any, tmp_path: Path) -> None:
    schema = Schema(attributes=BINARY.attributes, neighbors=neighbors, dataset="flags")
    ledger = Ledger.create(tmp_path / "l.db")

    synopsis = dpsyn.measure(TABLE, schema, 1.0, delta=0, recipe=PURE_RECIPES[recipe], ledger=ledger)

    synopsis.save(tmp_path / "s.dpsyn")
    (certificate,) = dpsyn.Synopsis.load(tmp_path / "s.dpsyn").certificates
    assert certificate is not None
    recorded = [measurement.cost for measurement in certificate.account.measurements]
    costs = [cost for cost in recorded if isinstance(cost, Laplace | Exponential)]
    assert costs == recorded
    assert sum(sum(cost.pure_epsilons) for cost in costs) == 1
    coefficients = 1 + len(NAMES) + math.comb(len(NAMES), 2) if recipe == "fourier" else 1
    assert {cost.sensitivity for cost in costs} == {coefficients * (2 if neighbors == "replace" else 1)}
    assert ledger.verify([dpsyn.read_ledger_checkpoint(tmp_path / "s.dpsyn")]).faults == ()
    answer = synopsis.marginal("a", "b")
    low, high = answer.interval(noise_only=True)
    assert answer.laplace
    assert (low % 1 == 0).all()
    assert (high > low).all()
    assert synopsis.generate(rows=10, seed=0).num_rows == 10


@pytest.mark.parametrize("recipe", [*sorted(set(RECIPES) - {"independent", "direct", "fourier", "mwem", "priview"})])
def test_other_recipes_refuse_delta_0_before_anything_is_read(recipe: str) -> None:
    with pytest.raises(UserError, match=r"δ is 0, but recipe '\w+' uses Gaussian.*: priview, independent, direct, fou"):
        dpsyn.measure("no such file.csv", BINARY, 1.0, delta=0, recipe=recipe)
    if recipe != "planned":  # it needs a plan
        with pytest.raises(UserError, match=r"δ is 0, but recipe '\w+' uses Gaussian"):
            dpsyn.forecast(BINARY, 1.0, delta=0, rows=100, recipe=recipe)


def test_delta_0_is_refused_with_gaussian_noise() -> None:
    with pytest.raises(UserError, match="with noise 'auto' or 'laplace'"):
        dpsyn.measure("no such file.csv", BINARY, 1.0, delta=0, recipe=Independent(noise="gaussian"))


@pytest.mark.parametrize(
    ("recipe", "delta", "words"),
    [
        (Independent(), 0, r"δ is 0, but discovering values by partition selection needs a δ.* list the values in the"),
        (Independent(noise="laplace"), 1e-9, r"noise is 'laplace', but the attribute 'city' is open.* list the values"),
    ],
)
def test_open_attributes_need_a_delta(recipe: MarginalRecipe, delta: float, words: str) -> None:
    schema = Schema(attributes=(Open(name="city"),))
    with pytest.raises(UserError, match=words):
        dpsyn.measure("no such file.csv", schema, 1.0, delta=delta, recipe=recipe)
    with pytest.raises(UserError, match=words):
        dpsyn.forecast(schema, 1.0, delta=delta, rows=100, recipe=recipe)


def test_scores_are_refused_by_a_pure_budget() -> None:
    with open_private(TABLE, BINARY, Budget.for_guarantee(1, 0, pure_epsilons=[1])) as private:
        with pytest.raises(BudgetError, match="ρ of Gaussian noise"):
            private.score_indif([("a", "b")], private.budget.amount)

        assert private.certificate().account.measurements == ()


def test_pure_releases_of_a_dataset_add_up_to_its_cap(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.db", {"flags": dpsyn.Cap.for_guarantee(2, 1e-9)})
    for _ in range(2):
        dpsyn.measure(TABLE, BINARY, 1.0, delta=0, recipe="independent", ledger=ledger)

    for delta in (0, 1e-9):
        with pytest.raises(LedgerError, match="more than is left of the cap"):
            dpsyn.measure(TABLE, BINARY, 0.1, delta=delta, recipe="independent", ledger=ledger)


# ── resuming ─────────────────────────────────────────────────────────────────────────────────────────────────


class Stop(Exception):  # noqa: N818
    """What interrupts a run."""


def interrupt(folder: Path, monkeypatch: pytest.MonkeyPatch, with_ledger: bool) -> dict[str, Any]:
    """Interrupt a pure release after its last measurement; return the options that resume it."""
    options: dict[str, Any] = {"delta": 0, "recipe": Independent(), "journal": folder / "j"}
    options |= {"ledger": Ledger.create(folder / "l.db")} if with_ledger else {}
    measure = Independent.measure

    def stopping(self: Independent, *args: Any, **named: Any) -> Any:
        measure(self, *args, **named)
        raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(Independent, "measure", stopping)
        with pytest.raises(Stop):
            dpsyn.measure(PEOPLE, NUMBERS_IN_LEDGER, 1.0, **options)
    return options | {"resume": True}


NUMBERS_IN_LEDGER = Schema(attributes=NUMBERS.attributes, dataset="people")


@pytest.mark.parametrize("with_ledger", [True, False])
def test_a_pure_release_is_resumed_without_spending_twice(
    with_ledger: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = interrupt(tmp_path, monkeypatch, with_ledger)
    stored = (tmp_path / "j").read_bytes()

    synopsis = dpsyn.measure(PEOPLE, NUMBERS_IN_LEDGER, 1.0, **options)

    (certificate,) = synopsis.certificates
    assert certificate is not None
    assert (tmp_path / "j").read_bytes().startswith(stored)
    assert sum(sum(m.cost.pure_epsilons) for m in certificate.account.measurements) == 1
    assert certificate.lost_answers == 0


def test_what_a_damaged_journal_lost_stays_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = interrupt(tmp_path, monkeypatch, with_ledger=True)
    lines = (tmp_path / "j").read_bytes().splitlines(keepends=True)
    (tmp_path / "j").write_bytes(b"".join(lines[:-2]))

    with pytest.warns(UserWarning, match="lacks answers"), pytest.warns(UserWarning, match="nothing is left of the"):
        synopsis = dpsyn.measure(PEOPLE, NUMBERS_IN_LEDGER, 1.0, **options)

    (certificate,) = synopsis.certificates
    assert certificate is not None
    assert certificate.lost_answers == 2
    assert len(certificate.left_out) == 2
    assert sum(sum(m.cost.pure_epsilons) for m in certificate.account.measurements) == 1


@pytest.mark.parametrize("delta", [-1.0, 5.0, 1e-40])
def test_a_wrong_delta_is_refused_whatever_the_noise(delta: float) -> None:
    with pytest.raises(BudgetError, match="δ"):
        dpsyn.measure(TABLE, BINARY, 1.0, delta=delta, recipe=Independent(noise="laplace"))


@pytest.mark.parametrize("recipe", ["direct", "priview"])
def test_a_table_of_open_attributes_alone_can_be_measured(recipe: str) -> None:
    attributes = (Open(name="a"), Open(name="b"))
    schema = Schema(attributes=attributes, neighbors="replace", expected_size=ROWS)
    table = pa.table({name: RNG.choice(["x", "y", "z"], ROWS) for name in "ab"})
    synopsis = dpsyn.measure(table, schema, 5.0, delta=1e-6, recipe=recipe)
    assert synopsis.rows == ROWS
