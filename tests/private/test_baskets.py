"""The gate charges before it counts, refuses without a charge, and shows nothing of the baskets."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpsyn.accounting import Budget, Cap, Certificate, Exponential, Laplace, Ledger
from dpsyn.errors import BudgetError, InternalError, JournalError, LedgerError, SchemaError
from dpsyn.private import PrivateBaskets, SystemNoise, open_baskets, open_private
from dpsyn.schema import BasketSchema, Boolean, Schema, UnitDeclaration
from tests.private.noise_doubles import NoNoise, RecordingNoise, ScaledNoise

SECRET = "Zaphod"
BASKETS = [["1", "2", "3", SECRET]] * 30 + [["1", "2"]] * 20 + [["3"]] * 10 + [[]] * 5
SCHEMA = BasketSchema(items=tuple(map(str, range(1, 9))), because="the range 1..8", dataset="shop")
BUDGET = Budget.for_guarantee(1, 0, pure_epsilons=[1])
QUARTER = Fraction(1, 4)
Question = Callable[[PrivateBaskets, Fraction], object]

QUESTIONS: dict[str, Question] = {
    "rank near itemset": lambda baskets, epsilon: baskets.choose_item_rank(3, 5, epsilon),
    "rank near frequency": lambda baskets, epsilon: baskets.choose_item_rank(Fraction(1, 2), 5, epsilon),
    "pair rank": lambda baskets, epsilon: baskets.choose_pair_rank((0, 1, 2), Fraction(1, 2), 5, epsilon),
    "items": lambda baskets, epsilon: baskets.choose_frequent_items(2, epsilon),
    "pairs": lambda baskets, epsilon: baskets.choose_frequent_pairs((0, 1, 2), 2, epsilon),
    "bases": lambda baskets, epsilon: baskets.measure_bases([(0, 1), (2,)], [epsilon / 2, epsilon / 2]),
}


def opened(
    data: Any = BASKETS, schema: BasketSchema = SCHEMA, budget: Budget = BUDGET, **options: Any
) -> PrivateBaskets:
    return open_baskets(data, schema, budget, **{"mechanisms": NoNoise(), **options})


# ── what they answer ─────────────────────────────────────────────────────────────────────────────────────────


def test_without_noise_the_answers_are_those_of_the_baskets() -> None:
    with opened() as baskets:
        items = baskets.choose_frequent_items(3, QUARTER)
        pairs = baskets.choose_frequent_pairs(items, 1, QUARTER)
        rank = baskets.choose_item_rank(5, 8, QUARTER)
        (basis,) = baskets.measure_bases([(0, 2)], [QUARTER])

    assert items == (0, 1, 2)
    assert pairs == ((0, 1),)
    assert rank == 3  # {1}, {2}, {1,2} are in 50 baskets, {3} in 40, {1,3} in 30: three items reach 30
    assert basis.clique == ("1", "3")
    assert basis.counts.tolist() == [[5, 10], [20, 30]]
    assert basis.std == Laplace.for_epsilon(QUARTER, 1).std < math.sqrt(2) * 4


@pytest.mark.parametrize(
    ("near", "items", "pairs"),
    [(1, 2, 1), (3, 2, 1), (4, 3, 1), (5, 3, 3), (99, 8, 3), (Fraction(41, 65), 2, 1), (Fraction(40, 65), 3, 1)],
)
def test_ranks_are_how_many_reach_a_level(near: int | Fraction, items: int, pairs: int) -> None:
    """{1}, {2} and {1, 2} are in 50 baskets, {3} in 40, {1, 3}, {2, 3} and {1, 2, 3} in 30; others in none."""
    with opened() as baskets:
        result = baskets.choose_item_rank(near, 8, QUARTER), baskets.choose_pair_rank((0, 1, 2), near, 9, QUARTER)

    assert result == (items, pairs)


def test_frequent_items_are_discovered_and_secrets_are_not() -> None:
    budget = Budget.for_guarantee(3, 1e-6, pure_epsilons=[1], thresholds=True)
    rare = [*BASKETS, [f"{SECRET}{SECRET}"]]
    with opened(rare, BasketSchema(items=None), budget) as baskets:
        discovered = baskets.discover_items(budget.rho, budget.threshold_delta, max_items=4)
        items = discovered.choose_frequent_items(2, Fraction(1))

    assert discovered.items == ("1", "2", "3", SECRET)
    assert items == (0, 1)
    assert discovered.certificate().declared_public == ()


def test_the_number_of_baskets_is_returned_only_if_it_is_public() -> None:
    replaced = BasketSchema(items=SCHEMA.items, neighbors="replace")
    with opened() as one, opened(schema=replaced) as two:
        assert one.public_basket_count() is None
        assert two.public_basket_count() == len(BASKETS)
    table = {"basket": [1], "item": ["1"], "who": ["p"]}
    of_persons = BasketSchema(items=SCHEMA.items, neighbors="replace", privacy_unit=UnitDeclaration(id="who"))
    with opened(pa.table(table), of_persons) as three:
        assert three.public_basket_count() is None


# ── what they cost ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("neighbors", "rows", "sides"), [("add-remove", 1, 1), ("add-remove", 3, 1), ("replace", 1, 2), ("replace", 3, 2)]
)
def test_scales_follow_the_neighbors_and_the_unit(neighbors: Any, rows: int, sides: int) -> None:
    """exp(ε′/k·support) where units come and go, exp(ε′/2k·support) where they are replaced; all times the rows."""
    schema = BasketSchema(
        items=SCHEMA.items, neighbors=neighbors, privacy_unit=UnitDeclaration(id="who", max_rows=rows)
    )
    noise = RecordingNoise()
    with opened(pa.table({"basket": [1], "item": ["1"], "who": ["p"]}), schema, mechanisms=noise) as baskets:
        baskets.choose_item_rank(2, 5, QUARTER)
        baskets.choose_frequent_items(4, QUARTER)
        baskets.choose_frequent_pairs((0, 1, 2), 2, QUARTER)
        baskets.measure_bases([(0, 1), (2,)], [QUARTER / 2, QUARTER / 2])

    rank, items, pairs, one, two = (answer.cost for answer in noise.answers)
    assert isinstance(rank, Exponential)
    assert rank.scale == 2 * rows * sides / QUARTER  # −|s − θ| is not monotone
    assert isinstance(items, Exponential)
    assert items.scale == 4 * rows * sides / QUARTER
    assert isinstance(pairs, Exponential)
    assert pairs.scale == 2 * rows * sides / QUARTER
    for basis in (one, two):
        assert isinstance(basis, Laplace)
        assert basis.scale == 2 * rows * sides / QUARTER  # two bases


def test_entries_of_the_ledger_add_up_to_the_guarantee_exactly(tmp_path: Path) -> None:
    ledger, third = Ledger.create(tmp_path / "l.db"), Budget.for_guarantee("0.3", 0, pure_epsilons=["0.3"])
    first, second, rest = third.pure_epsilons[0] / 7, third.pure_epsilons[0] / 3, third.pure_epsilons[0]
    with opened(budget=third, ledger=ledger) as baskets:
        grains = [Fraction(int(part * 10**36), 10**36) for part in (first, second)]
        baskets.choose_frequent_items(3, grains[0])
        baskets.choose_frequent_pairs((0, 1, 2), 2, grains[1])
        baskets.measure_bases([(0,)], [rest - sum(grains)])
        certificate = baskets.certificate()

    (dataset,) = ledger.datasets()
    charges = certificate.account.measurements
    assert [measurement.to_data() for measurement in charges] == list(dataset.runs[0].measurements)
    assert (
        sum(epsilon for measurement in charges for epsilon in measurement.cost.pure_epsilons)
        == third.epsilon
        == Fraction(3, 10)
    )
    assert certificate.epsilon_bounds.epsilon == Fraction(3, 10)
    assert Certificate.from_data(certificate.to_data()) == certificate
    assert "Neighboring tables differ by adding or removing one basket." in certificate.text()
    assert "the universe of 8 items: the range 1..8" in certificate.text()
    assert ledger.verify().faults == ()


# ── count, charge, return ───────────────────────────────────────────────────────────────────────────────────────────


class Watching:
    """An engine that notes the number of charges in the ledger when it counts, and then fails."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.charges: list[int] = []

    def _asked(self, *_: object) -> Any:
        (dataset,) = self.ledger.datasets()
        self.charges.append(len(dataset.runs[-1].measurements))
        raise RuntimeError(f"the disk with {SECRET} is gone")

    count = supports = pair_supports = nth_support = count_bins = count_items = _asked


@pytest.mark.parametrize("question", QUESTIONS)
def test_nothing_is_charged_if_counting_fails(tmp_path: Path, question: str) -> None:
    ledger = Ledger.create(tmp_path / "l.db")
    baskets = opened(ledger=ledger)
    watching = Watching(ledger)
    baskets._engine = watching  # type: ignore[assignment]

    with pytest.raises(InternalError, match=r"counting rows failed \(RuntimeError\)") as caught:
        QUESTIONS[question](baskets, QUARTER)
    baskets.close()

    assert watching.charges == [0]
    assert caught.value.__context__ is None
    (dataset,) = ledger.datasets()
    assert dataset.rho == 0


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_answer_is_returned_if_its_charge_is_not_recorded(
    tmp_path: Path, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise LedgerError("no room")

    baskets = opened(ledger=Ledger.create(tmp_path / "l.db"))
    monkeypatch.setattr(Ledger, "record", fails)

    with pytest.raises(LedgerError, match="no room"):
        QUESTIONS[question](baskets, QUARTER)

    assert baskets.certificate().account.measurements == ()


def test_items_are_not_charged_if_counting_fails(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.db")
    budget = Budget.for_guarantee(3, 1e-6, pure_epsilons=[1], thresholds=True)
    schema = BasketSchema(items=None, dataset="shop")
    baskets = opened(schema=schema, budget=budget, ledger=ledger)
    watching = Watching(ledger)
    baskets._engine = watching  # type: ignore[assignment]

    with pytest.raises(InternalError):
        baskets.discover_items(budget.rho, budget.threshold_delta, 3)

    assert baskets.certificate().account.measurements == ()


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_overspend_is_refused_and_no_basket_is_counted(tmp_path: Path, question: str) -> None:
    ledger = Ledger.create(tmp_path / "l.db")
    baskets = opened(ledger=ledger)
    baskets.choose_frequent_items(1, Fraction(9, 10))
    watching = Watching(ledger)
    baskets._engine = watching  # type: ignore[assignment]

    with pytest.raises(BudgetError):
        QUESTIONS[question](baskets, QUARTER)

    assert watching.charges == []


@pytest.mark.parametrize(
    ("ask", "complaint"),
    [
        (lambda b: b.choose_frequent_items(9, QUARTER), "9 of 8 candidates"),
        (lambda b: b.choose_frequent_items(0, QUARTER), "0 of 8 candidates"),
        (lambda b: b.choose_frequent_pairs((0, 1), 2, QUARTER), "2 of 1 candidates"),
        (lambda b: b.choose_item_rank(10**6, 5, QUARTER), "rank 1,000,000"),
        (lambda b: b.choose_item_rank(3, 0, QUARTER), "rank 0"),
        (lambda b: b.measure_bases([], []), "at least one"),
        (lambda b: b.measure_bases([(0, 0)], [QUARTER]), "each only once"),
        (lambda b: b.measure_bases([tuple(range(8))] * 8000, [QUARTER] * 8000), "noisy values"),
        (lambda b: b.discover_items(QUARTER, Fraction(1, 10**9), 3), "public already"),
    ],
)
def test_invalid_questions_are_refused_without_a_charge(
    ask: Callable[[PrivateBaskets], object], complaint: str
) -> None:
    with opened() as baskets:
        with pytest.raises((InternalError, SchemaError, BudgetError), match=complaint):
            ask(baskets)
        certificate = baskets.certificate()

    assert certificate.account.measurements == ()


def test_the_budget_is_reserved_before_a_basket_is_read(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.db")
    ledger.set_cap("shop", Cap.for_guarantee("0.01", 1e-9))

    class Untouchable(list[Any]):
        def __getitem__(self, _: Any) -> Any:
            raise AssertionError("a basket was read")

    with pytest.raises(LedgerError, match="cap of 'shop'"):
        opened(Untouchable(BASKETS), ledger=ledger)


def test_baskets_and_rows_of_one_dataset_do_not_add_up(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.db")
    with opened(ledger=ledger) as baskets:
        baskets.choose_frequent_items(1, QUARTER)

    with pytest.raises(LedgerError, match="one basket; this one would protect against adding or removing one row"):
        open_private(pa.table({"a": [True]}), Schema(attributes=(Boolean(name="a"),), dataset="shop"), BUDGET, ledger)


# ── nothing else leaks ───────────────────────────────────────────────────────────────────────────────────────


def test_private_baskets_show_nothing_and_cannot_be_copied() -> None:
    with opened() as baskets:
        assert repr(baskets) == "PrivateBaskets(8 items)"
        assert SECRET not in f"{baskets!r} {baskets._engine!r}"
        with pytest.raises(InternalError):
            copy.deepcopy(baskets)
    with opened(
        schema=BasketSchema(items=None), budget=Budget.for_guarantee(1, 1e-9, pure_epsilons=[0.7], thresholds=True)
    ) as unknown:
        assert repr(unknown) == "PrivateBaskets(items to be discovered)"
        with pytest.raises(InternalError, match="not been discovered"):
            unknown.items  # noqa: B018 -- the look-up is the act


def test_no_two_runs_use_the_same_baskets_of_a_person() -> None:
    persons = 64
    columns = {"basket": range(2 * persons), "item": ["1", "2"] * persons, "who": [n // 2 for n in range(2 * persons)]}
    schema = BasketSchema(items=("1", "2"), privacy_unit=UnitDeclaration(id="who", max_rows=1))

    used = []
    for _ in range(3):
        with opened(pa.table(columns), schema) as baskets:
            used.append(baskets._engine._baskets.id_hashes.tobytes())  # type: ignore[union-attr]

    assert len(set(used)) == 3


# ── an interrupted run continues ───────────────────────────────────────────────────────────────────────────────


def ask(baskets: PrivateBaskets, stop_after: int = 99) -> list[object]:
    """A small run whose questions depend on earlier answers."""
    answers: list[object] = []

    def note(answer: object) -> None:
        answers.append(answer)
        if len(answers) == stop_after:
            raise KeyboardInterrupt

    number = baskets.choose_item_rank(4, 6, QUARTER)
    note(number)
    items = baskets.choose_frequent_items(max(2, number), QUARTER)
    note(items)
    pairs = baskets.choose_frequent_pairs(items, 1, QUARTER)
    note(pairs)
    note([basis.raw.tolist() for basis in baskets.measure_bases([pairs[0], (items[0],)], [QUARTER / 2, QUARTER / 2])])
    return answers


@pytest.mark.parametrize("with_ledger", [True, False])
@pytest.mark.parametrize("stop_after", [1, 2, 3, 4])
def test_an_interrupted_run_is_resumed_without_a_second_charge(
    tmp_path: Path, with_ledger: bool, stop_after: int
) -> None:
    ledger = Ledger.create(tmp_path / "l.db") if with_ledger else None
    journal = tmp_path / "run.journal"
    options: dict[str, Any] = {
        "ledger": ledger,
        "journal": journal,
        "recipe": {"name": "p"},
        "mechanisms": SystemNoise(),
    }
    with pytest.raises(KeyboardInterrupt), opened(**options) as baskets:
        ask(baskets, stop_after)
    charged = len(baskets._session.run.account.measurements)

    with opened(resume=True, **options) as baskets:
        recorded = len(baskets._session.run.account.measurements)
        answers = ask(baskets)
        certificate = baskets.certificate()
    with opened(resume=True, **options) as baskets:
        again = ask(baskets)

    assert recorded == charged
    assert (
        sum(epsilon for measurement in certificate.account.measurements for epsilon in measurement.cost.pure_epsilons)
        == 1
    )
    assert answers == again
    assert certificate.uses_real_noise


@pytest.mark.parametrize("lost", [1, 2])
def test_bases_whose_counts_are_lost_are_left_out_if_nothing_is_left(tmp_path: Path, lost: int) -> None:
    journal = tmp_path / "run.journal"
    options: dict[str, Any] = {"ledger": Ledger.create(tmp_path / "l.db"), "journal": journal}
    with contextlib.suppress(KeyboardInterrupt), opened(**options) as baskets:
        baskets.choose_frequent_items(2, Fraction(1, 2))
        baskets.measure_bases([(0, 1), (2,)], [QUARTER, QUARTER])
        raise KeyboardInterrupt
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-lost]))

    with pytest.warns(UserWarning, match="lacks answers that were charged"):
        baskets = opened(resume=True, **options)
    with baskets:
        assert baskets.choose_frequent_items(2, Fraction(1, 2)) == (0, 1)
        if lost == 2:
            with pytest.raises(BudgetError, match="answers that are stored are not enough for a release"):
                baskets.measure_bases([(0, 1), (2,)], [QUARTER, QUARTER])
            return
        (basis,) = baskets.measure_bases([(0, 1), (2,)], [QUARTER, QUARTER])

    assert basis.clique == ("1", "2")
    assert baskets.certificate().left_out == ("marginal of 3",)


def test_a_journal_of_another_universe_or_recipe_is_refused(tmp_path: Path) -> None:
    options: dict[str, Any] = {"journal": tmp_path / "run.journal", "recipe": {"name": "p"}}
    with pytest.raises(KeyboardInterrupt), opened(**options) as baskets:
        ask(baskets, 1)

    with pytest.raises(JournalError, match="the schema"):
        opened(schema=BasketSchema(items=("1",), dataset="shop"), resume=True, **options)
    with pytest.raises(JournalError, match=r"the recipe \(name\)"):
        opened(resume=True, **{**options, "recipe": {"name": "q"}})


# ── noise of the right scale, from both sides ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("factor", [1.0, 0.9, 1.1])
def test_bins_have_the_noise_that_was_charged(factor: float) -> None:
    """With 32 768 noisy values the variance of Laplace noise is known to 1.2 %; the limits are five times that away.

    A scale that is off by a tenth moves the variance by 19 or 21 %, at least nine standard errors beyond the limits.
    """
    noise: Any = SystemNoise() if factor == 1 else ScaledNoise(factor)
    bases = [tuple(range(8))] * 128
    with opened(mechanisms=noise) as baskets:
        result = baskets.measure_bases(bases, [Fraction(1, 128)] * 128)
        exact = baskets._engine.count_bins(bases[:1])[0]

    errors = np.array([(basis.counts - exact) / basis.std for basis in result]).ravel()

    error = math.sqrt(5 / len(errors))
    accepted = abs(np.mean(errors**2) - 1) < 5 * error and abs(errors.mean()) < 5 / math.sqrt(len(errors))
    assert result[0].std == Laplace.for_epsilon(Fraction(1, 128), 1).std
    assert accepted == (factor == 1)
