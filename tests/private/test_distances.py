"""Distances from public tables: what is released, and that neighbors differ by no more than was charged."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from dpsyn.accounting import Budget, PrivacyUnit
from dpsyn.errors import DPSynError, InternalError
from dpsyn.private import DistanceQuery, PrivateTable, open_private
from dpsyn.private.distances import MAX_PUBLIC_ROWS, MAX_WEIGHT, distance_sensitivity, exact_distances
from dpsyn.schema import Boolean, Categorical, Schema, UnitDeclaration
from tests.private.noise_doubles import RecordingNoise, ReplayedNoise
from tests.private.test_sensitivity import BUDGET, Neighbors, answers, check, neighboring, schema

PAIRS = (("job", "ok"), ("job", "seen"))


@pytest.fixture(autouse=True)
def same_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both runs keep the same rows of a person."""
    monkeypatch.setattr("secrets.token_bytes", lambda size: b"k" * size)


def make_targets(table: PrivateTable, cliques: tuple[tuple[str, ...], ...], seed: int = 0) -> list[Any]:
    """The counts of 7 public rows, some cells and whole groups without any."""
    rng, targets = np.random.default_rng(seed), []
    groups = rng.integers(0, 4, 7)
    for clique in cliques:
        target = np.zeros([table.recoding.sizes[table.recoding.index_of(name)] for name in clique], np.int64)
        axes = [groups, *(rng.integers(0, size, 7) for size in target.shape[1:])]
        np.add.at(target, tuple(axes[: target.ndim]), 1)
        targets.append(target)
    return targets


def compare_with_public_tables(table: PrivateTable) -> None:
    """Everything that this module adds to the gate."""
    rho, targets = table.budget.rho / 8, make_targets(table, PAIRS)
    (one_way,) = make_targets(table, (("job",),))
    table.measure_distances(
        [
            DistanceQuery("mean", PAIRS, tuple(targets)),
            DistanceQuery("largest", (*PAIRS, ("job",)), (*targets, one_way), "max"),
            DistanceQuery("by group", PAIRS, tuple(targets), grouped=True),
            DistanceQuery("empty", (("job",),), (np.zeros_like(one_way),)),
        ],
        [rho, rho, rho, rho],
    )
    table.choose_nearest(PAIRS, [targets, make_targets(table, PAIRS, 1)], table.budget.pure_epsilons[0])
    weights = np.arange(-2, 4, dtype=np.int64)
    table.measure_sums([("job",), ("job",)], [weights, np.ones(6, np.int64)], [rho, rho], ["values", "rows"])


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("kept", [None, 1, 3])
def test_answers_on_neighbors_differ_by_no_more_than_was_charged(relation: Any, kept: int | None) -> None:
    under = schema(relation, UnitDeclaration(id="person", max_rows=kept) if kept else None)
    under = msgspec.structs.replace(under, attributes=under.attributes[:-1])

    @settings(max_examples=25)
    @given(neighboring(relation, kept is not None))
    def compare(pair: Neighbors) -> None:
        first = RecordingNoise()
        ones = answers(pair.first, under, compare_with_public_tables, first)
        others = answers(pair.second, under, compare_with_public_tables, ReplayedNoise(first))

        assert len(ones) == len(others) == 7
        for one, other in zip(ones, others, strict=True):
            check(one, other)

    compare()


# ── the lemmas, by brute force ───────────────────────────────────────────────────────────────────────────────

CELLS = 4
ROWS = [np.eye(CELLS, dtype=np.int64)[cell] for cell in range(CELLS)]
TARGETS = [np.array(t, np.int64) for t in [(0, 0, 0, 0), (1, 0, 0, 0), (1, 2, 0, 4), (5, 5, 5, 5), (0, 3, 1, 0)]]
TABLES = [
    sum((ROWS[cell] for cell in cells), np.zeros(CELLS, np.int64))
    for size in range(4)
    for cells in combinations_with_replacement(range(CELLS), size)
]


def changes(removed: int, added: int, *, grouped: bool) -> list[list[Fraction]]:
    """By how much distances change if up to so many rows are removed and added, over all small tables and targets."""
    found = []
    for target, common in product(TARGETS, TABLES):
        after = [exact_distances(_shape(common + r, grouped), _shape(target, grouped), grouped=grouped) for r in
                 [*_sums(removed), *_sums(added)]]  # fmt: skip
        for one, other in product(after[: len(_sums(removed))], after[len(_sums(removed)) :]):
            found.append([b - a for a, b in zip(one, other, strict=True)])
    return found


def _shape(counts: np.ndarray[Any, Any], grouped: bool) -> np.ndarray[Any, Any]:
    return counts.reshape(2, 2) if grouped else counts


def _sums(size: int) -> list[np.ndarray[Any, Any]]:
    return [table for table in TABLES if table.sum() == size]


@pytest.mark.parametrize(("removed", "added"), [(0, 1), (1, 1), (0, 2), (1, 2), (2, 2)])
def test_a_distance_changes_by_two_for_each_row_and_no_more(removed: int, added: int) -> None:
    largest = max(abs(change) for (change,) in changes(removed, added, grouped=False))

    assert largest == 2 * max(removed, added) == distance_sensitivity(PrivacyUnit(id="p", max_rows=max(removed, added)))


@pytest.mark.parametrize(("removed", "added"), [(0, 1), (1, 1), (0, 2), (2, 2)])
def test_distances_of_groups_change_by_no_more_than_twice_the_change_of_a_marginal(removed: int, added: int) -> None:
    unit = PrivacyUnit(neighbors="replace" if removed else "add-remove", id="p", max_rows=max(removed, added))
    query = DistanceQuery("", (("a", "b"),), (np.zeros((2, 2), np.int64),), grouped=True)

    largest = max(sum(change**2 for change in each) for each in changes(removed, added, grouped=True))

    assert largest == query.sensitivity_squared(unit) == 4 * unit.l2_sensitivity_squared


def test_distances_are_exact_for_tables_too_large_for_64_bits() -> None:
    counts, target = np.array([2**40, 3]), np.array([1, 2**39])

    (distance,) = exact_distances(counts, target)

    rows, public = 2**40 + 3, 2**39 + 1
    assert distance == abs(2**40 - Fraction(rows, public)) + abs(3 - Fraction(rows * 2**39, public))


# ── what is released ─────────────────────────────────────────────────────────────────────────────────────────

PEOPLE = Schema(attributes=(Categorical(name="sex", values=("f", "m")), Boolean(name="ok")))
TABLE = pa.table({"sex": ["f", "f", "f", "m"], "ok": [True, True, False, True]})


def open_people(noise: Any, budget: Budget = BUDGET) -> PrivateTable:
    return open_private(TABLE, PEOPLE, budget, mechanisms=noise)


def test_released_distances_are_twice_the_rows_that_would_have_to_change() -> None:
    noise = RecordingNoise()
    ok, both = np.array([1, 1], np.int64), np.array([[1, 1], [0, 1]], np.int64)
    with open_people(noise) as table:
        table.measure_distances(
            [
                DistanceQuery("ok", (("ok",),), (ok,)),
                DistanceQuery("mean", (("ok",), ("sex", "ok")), (ok, both)),
                DistanceQuery("largest", (("ok",), ("sex", "ok")), (ok, both), "max"),
                DistanceQuery("by sex", (("sex", "ok"),), (both,), grouped=True),
            ],
            [table.budget.rho / 4] * 4,
        )

    exact = [answer.exact.tolist() for answer in noise.answers]
    # ok: 1, 3 against 2, 2; both: [[1, 2], [0, 1]] against 4/3·[[1, 1], [0, 1]], so 1/3 + 2/3 + 1/3
    assert exact == [[2], [1], [2], [1, 0]]


def test_sums_add_the_weights_of_all_rows() -> None:
    noise = RecordingNoise()
    with open_people(noise) as table:
        table.measure_sums([("sex",)], [np.array([10, -3], np.int64)], [table.budget.rho], ["sum"])

    assert noise.answers[0].exact.tolist() == [27]
    assert noise.answers[0].cost.sensitivity_squared == 100  # type: ignore[union-attr]


def test_the_nearest_table_is_chosen_by_the_mean_distance() -> None:
    noise = RecordingNoise()
    far, near = np.array([4, 0], np.int64), np.array([1, 3], np.int64)
    with open_people(noise) as table:
        table.choose_nearest([("ok",)], [[far], [near]], table.budget.pure_epsilons[0])

    assert noise.answers[0].exact.tolist() == [-6, 0]
    assert noise.answers[0].cost.sensitivity == 2  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "ask",
    [
        lambda t: t.measure_distances([DistanceQuery("", (("ok",),), (np.array([1, -1], np.int64),))], [t.budget.rho]),
        lambda t: t.measure_distances([DistanceQuery("", (("ok",),), (np.array([1], np.int64),))], [t.budget.rho]),
        lambda t: t.measure_distances([DistanceQuery("", (("ok",),), (np.array([0.5, 1]),))], [t.budget.rho]),
        lambda t: t.measure_distances(
            [DistanceQuery("", (("ok",),), (np.array([1, MAX_PUBLIC_ROWS], np.int64),))], [t.budget.rho]
        ),
        lambda t: t.measure_distances(
            [DistanceQuery("", (("ok", "sex"), ("sex", "ok")), (np.ones((2, 2), np.int64),) * 2, grouped=True)],
            [t.budget.rho],
        ),
        lambda t: t.choose_nearest([("ok",)], [[np.array([1, -1], np.int64)]], t.budget.pure_epsilons[0]),
        lambda t: t.measure_sums([("ok",)], [np.array([1, MAX_WEIGHT + 1], np.int64)], [t.budget.rho], [""]),
        lambda t: t.measure_sums([("ok",)], [np.array([1, -MAX_WEIGHT - 1], np.int64)], [t.budget.rho], [""]),
    ],
)
def test_public_numbers_that_do_not_fit_are_refused_before_anything_is_charged(ask: Any) -> None:
    noise = RecordingNoise()
    with open_people(noise) as table:
        with pytest.raises(InternalError):
            ask(table)

        assert table.certificate().account.measurements == ()
    assert noise.answers == []


def test_more_than_the_budget_is_refused() -> None:
    with open_people(RecordingNoise()) as table, pytest.raises(DPSynError, match="budget"):
        table.measure_sums([("ok",)], [np.ones(2, np.int64)], [table.budget.rho * 2], ["rows"])


SEEN: list[Any] = []


class CuriousArray(np.ndarray[Any, Any]):
    """Remembers what it is combined with."""

    def __array_ufunc__(self, ufunc: Any, method: Any, *inputs: Any, **kwargs: Any) -> Any:
        plain = [a.view(np.ndarray) if isinstance(a, CuriousArray) else a for a in inputs]
        SEEN.append(plain)
        return getattr(ufunc, method)(*plain, **kwargs)


class CuriousQuery(DistanceQuery):
    """Remembers exact distances."""

    def summarize(self, distances: Any) -> Any:
        SEEN.append(distances)
        return super().summarize(distances)


CURIOUS = np.ones(2, np.int64).view(CuriousArray)


@pytest.mark.parametrize(
    "ask",
    [
        lambda t: t.measure_distances([DistanceQuery("", (("ok",),), (CURIOUS,))], [t.budget.rho]),
        lambda t: t.measure_distances([CuriousQuery("", (("ok",),), (np.ones(2, np.int64),))], [t.budget.rho]),
        lambda t: t.choose_nearest([("ok",)], [[CURIOUS]], t.budget.pure_epsilons[0]),
        lambda t: t.measure_sums([("ok",)], [CURIOUS], [t.budget.rho], [""]),
    ],
)
def test_objects_whose_methods_would_see_exact_counts_are_refused(ask: Any) -> None:
    SEEN.clear()
    with open_people(RecordingNoise()) as table, pytest.raises(InternalError, match="a subclass could look at"):
        ask(table)

    assert SEEN == []
