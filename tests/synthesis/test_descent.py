"""Descent changes records until all tables match at once."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpsyn.errors import UserError
from dpsyn.marginals import Estimate
from dpsyn.synthesis import DescentOptions, Records, descend, start, synthesize
from dpsyn.synthesis.forest import forest_start, mutual_information, spanning_forest

NAMES, SIZES = ("a", "b", "c", "d"), (3, 4, 2, 5)
PAIRS: list[tuple[str, ...]] = list(combinations(NAMES, 2))


def people(rows: int, seed: int = 0) -> NDArray[np.int32]:
    """Records whose attributes all depend on each other."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 60, rows)
    stray = [np.where(rng.random(rows) < 0.3, rng.integers(0, size, rows), 0) for size in SIZES]
    columns = [(hidden * size // 60 + move) % size for size, move in zip(SIZES, stray, strict=True)]
    return np.asfortranarray(np.stack(columns, axis=1).astype(np.int32))


def counted(records: NDArray[np.int32], clique: tuple[str, ...]) -> NDArray[np.float64]:
    places = [NAMES.index(name) for name in clique]
    counts = np.zeros([SIZES[place] for place in places])
    np.add.at(counts, tuple(records[:, place] for place in places), 1)
    return counts


def tables(records: NDArray[np.int32], cliques: list[tuple[str, ...]]) -> list[Estimate]:
    return [Estimate(clique, counted(records, clique), 1.0) for clique in cliques]


def squares(records: Records, targets: list[Estimate]) -> float:
    return sum(float(((counted(records, t.clique) - t.values * len(records) / t.total) ** 2).sum()) for t in targets)


def naive_descent(records: NDArray[np.int32], targets: list[Estimate], place: int, first: int) -> NDArray[np.int32]:
    """One attribute of every record in turn, with everything counted anew for each value that might be better."""
    records = records.copy()
    for number in range(len(records)):
        row = (first + number) % len(records)
        excess = 0.0
        for target in targets:
            if NAMES[place] in target.clique:
                cell = tuple(records[row, NAMES.index(name)] for name in target.clique)
                excess += counted(records, target.clique)[cell] - 1 - target.values[cell] * len(records) / target.total
        if excess <= 0:
            continue
        found = []
        for value in range(SIZES[place]):
            changed = records.copy()
            changed[row, place] = value
            found.append(squares(changed, targets))
        if min(found) < found[records[row, place]] - 1e-3:
            records[row, place] = int(np.argmin(found))
    return records


class Fixed:
    """A generator that visits attributes in order and begins where it is told."""

    def __init__(self, first: int) -> None:
        self._first = first

    def permutation(self, number: int) -> NDArray[np.int64]:
        return np.arange(number)

    def integers(self, high: int) -> int:
        return self._first % high


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sets(st.sampled_from([*PAIRS, ("a", "b", "c"), ("d",)]), min_size=1))
def test_a_sweep_is_that_of_its_definition(seed: int, cliques: set[tuple[str, ...]]) -> None:
    targets = tables(people(15, seed), sorted(cliques))  # as many records, so that all numbers are whole
    given_records = people(15, seed + 1)
    expected = given_records
    for place in range(len(NAMES)):
        if any(NAMES[place] in target.clique for target in targets):
            expected = naive_descent(expected, targets, place, 4)

    found = descend(given_records, NAMES, targets, rng=Fixed(4), options=DescentOptions(sweeps=1))  # type: ignore[arg-type]

    assert squares(found, targets) == pytest.approx(squares(expected, targets), rel=1e-3, abs=1e-2)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.lists(st.sampled_from(PAIRS), min_size=1, max_size=6, unique=True))
def test_the_error_only_falls_and_codes_stay_in_range(seed: int, cliques: list[tuple[str, ...]]) -> None:
    targets = tables(people(300, seed), cliques)
    before = people(200, seed + 1)[:, [0, 1, 2, 3]]

    after = descend(before, NAMES, targets, rng=np.random.default_rng(seed))

    assert squares(after, targets) <= squares(before, targets) + 1e-2
    assert after.shape == before.shape
    assert all(after[:, place].min() >= 0 and after[:, place].max() < size for place, size in enumerate(SIZES))
    untouched = set(NAMES) - {name for clique in cliques for name in clique}
    assert all((after[:, NAMES.index(name)] == before[:, NAMES.index(name)]).all() for name in untouched)


def test_all_pairs_match_nearly_to_rounding() -> None:
    truth = people(20_000)
    targets = tables(truth, PAIRS)

    found = synthesize(targets, NAMES, SIZES, 20_000, seed=1, options=DescentOptions())

    distances = [np.abs(counted(found, t.clique) - t.values).sum() / 2 / 20_000 for t in targets]
    assert np.mean(distances) <= 0.002
    assert max(distances) <= 0.005


def test_few_rows_and_many_rows_match_as_well_as_they_can() -> None:
    targets = tables(people(20_000), PAIRS)

    for rows, most in ((2_000, 0.01), (100_000, 0.002)):
        found = synthesize(targets, NAMES, SIZES, rows, seed=1, options=DescentOptions())

        distances = [np.abs(counted(found, t.clique) / rows - t.values / 20_000).sum() / 2 for t in targets]
        assert len(found) == rows
        assert np.mean(distances) <= most


def test_a_few_records_are_like_any_others() -> None:
    truth = people(20_000)
    truth[:, 2] = truth[:, 0] == 0  # which every record should keep
    targets = tables(truth, PAIRS)

    found = np.concatenate([synthesize(targets, NAMES, SIZES, 5, seed=s, options=DescentOptions()) for s in range(40)])

    assert np.mean(found[:, 2] == (found[:, 0] == 0)) >= 0.95


def test_a_seed_gives_the_same_records_whatever_the_number_of_threads() -> None:
    targets = tables(people(2000), [("a", "b"), ("b", "c"), ("a", "c"), ("d",)])

    one, two, other = (
        synthesize(targets, NAMES, SIZES, 1500, seed=seed, options=DescentOptions(), threads=threads)
        for seed, threads in ((3, 1), (3, 2), (4, 2))
    )

    assert one.tobytes() == two.tobytes() != other.tobytes()


def test_hard_tables_are_matched_too() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, 9000), rng.integers(0, 2, 9000)
    truth = np.asfortranarray(np.stack([a, a, b, (a + b) % 2], axis=1).astype(np.int32))  # a copy, and a parity
    cliques: list[tuple[str, ...]] = [("a", "b"), ("a", "c", "d"), ("b", "c"), ("b", "d")]

    found = synthesize(tables(truth, cliques), NAMES, SIZES, 9000, seed=1, options=DescentOptions())

    assert all(np.abs(counted(found, c) - counted(truth, c)).sum() / 2 / 9000 <= 0.01 for c in cliques)


def test_nothing_is_changed_without_tables_rows_or_sweeps() -> None:
    records, rng = people(50), np.random.default_rng(0)
    targets = tables(people(100, 1), PAIRS)

    assert descend(records, NAMES, [], rng=rng).tolist() == records.tolist()
    assert descend(records[:0], NAMES, targets, rng=rng).shape == (0, 4)
    assert descend(records, NAMES, targets, rng=rng, options=DescentOptions(sweeps=0)).tolist() == records.tolist()
    with pytest.raises(UserError, match="give 0 or more"):
        DescentOptions(sweeps=-1)


def test_a_table_of_zeros_counts_as_uniform() -> None:
    zeros = [Estimate(("a", "b"), np.zeros((3, 4)), 1.0)]

    found = descend(people(1200), NAMES, zeros, rng=np.random.default_rng(0))

    assert np.abs(counted(found, ("a", "b")) - 100).sum() / 2 / 1200 <= 0.02


# ── the start ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_forest_holds_the_strongest_pairs_and_no_cycle() -> None:
    truth = people(5000)
    targets = tables(truth, PAIRS)

    forest = spanning_forest(targets)

    strengths = sorted((mutual_information(t.values) for t in targets), reverse=True)
    assert len(forest) == 3
    assert mutual_information(forest[0].values) == pytest.approx(strengths[0])
    assert {name for table in forest for name in table.clique} == set(NAMES)


def test_the_start_matches_its_forest_to_rounding() -> None:
    targets = tables(people(5000), PAIRS)

    records = forest_start(targets, NAMES, 5000, np.random.default_rng(0))

    for table in spanning_forest(targets):
        assert np.abs(counted(records, table.clique) - table.values).max() <= 2
    flat = start(targets, NAMES, 5000, np.random.default_rng(0))
    assert squares(records, targets) < squares(flat, targets) / 3


def test_single_attributes_and_larger_cliques_are_part_of_a_forest() -> None:
    truth = people(1000)
    targets = tables(truth, [("a", "b", "c"), ("d",)])

    forest = spanning_forest(targets)

    assert sorted(len(table.clique) for table in forest) == [1, 2, 2]


@pytest.mark.parametrize(
    ("counts", "nats"), [([[5, 0], [0, 5]], np.log(2)), ([[4, 4], [2, 2]], 0.0), ([[0, 0], [0, 0]], 0.0)]
)
def test_mutual_information_is_that_of_the_book(counts: list[list[float]], nats: float) -> None:
    assert mutual_information(np.array(counts, np.float64)) == pytest.approx(nats)
