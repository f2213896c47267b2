from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpsyn.errors import InternalError
from dpsyn.inference.gum import Records, gradual_update, initialize_records, run_gum
from dpsyn.inference.gum.gradual_update import iterate_gum_rounds
from dpsyn.inference.methods import GUM, ConstantDecay, Moves
from dpsyn.marginals import Estimate
from tests.inference.gum import naive, tables

MOVES: tuple[Moves, ...] = ("mixture", "replace", "duplicate")


def in_cells(counts: list[int], seed: int) -> Records:
    """Records whose first attribute has these counts; the second identifies them, whatever happens to the first."""
    cells = np.repeat(np.arange(len(counts)), counts)
    np.random.default_rng(seed).shuffle(cells)
    return np.array([cells, np.arange(len(cells))], np.int32).T


def one(target: list[int]) -> list[Estimate]:
    return [Estimate(("cell",), np.array(target, float), 1.0)]


def run(records: Records, targets: list[Estimate], seed: int = 0, **options: Any) -> Records:
    names = ["cell", "id"] if targets[0].clique == ("cell",) else [str(index) for index in range(records.shape[1])]
    return run_gum(records, names, targets, rng=np.random.default_rng(seed), options=GUM(**options))


# ── one update ───────────────────────────────────────────────────────────────────────────────────────────────


def test_five_records_with_alpha_2_and_beta_one_half() -> None:
    # the shape of the paper's example, with figures of its own: α and β both bind, half is copied
    records = np.array([[0, 0], [0, 1], [0, 2], [0, 3], [1, 4]], np.int32)

    after = run(records, one([0, 5]), rounds=1, alpha=2.0, decay=ConstantDecay(), beta=0.5)

    assert np.bincount(after[:, 0]).tolist() == [2, 3]  # −min(4−0, ½·4), +min(5−1, 2·1)
    assert np.sum(after[:, 1] == 4) == 2  # one record is a copy of the fifth,
    arrived = after[(after[:, 0] == 1) & (after[:, 1] != 4)]
    assert len(arrived) == 1  # and one came over and stayed what it was otherwise
    changed = np.flatnonzero(np.any(after != records, axis=1))
    assert len(changed) == 2


@given(tables.recounts(), st.sampled_from([Fraction(1, 5), Fraction(1), Fraction(2)]), st.sampled_from(MOVES))
def test_an_update_moves_the_amounts_of_the_formulas(
    cells: tuple[list[int], list[int]], alpha: Fraction, moves: Moves
) -> None:
    counts, target = cells
    records = in_cells(counts, 0)

    after = run(records, one(target), rounds=1, alpha=float(alpha), decay=ConstantDecay(), moves=moves)

    change = np.bincount(after[:, 0], minlength=len(counts)) - counts
    gets, gives = np.maximum(change, 0), np.maximum(-change, 0)
    added = naive.additions(counts, target, alpha, fill=moves != "duplicate")
    removed = naive.removals(counts, target, naive.balance(counts, target, Fraction(int(gets.sum()))))
    assert all(abs(got - float(amount)) < 1 + 1e-9 for got, amount in zip(gets, added, strict=True))
    assert all(abs(gave - float(amount)) < 1 + 1e-9 for gave, amount in zip(gives, removed, strict=True))
    assert abs(gets.sum() - float(sum(added))) < 1


@given(tables.recounts(), st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.integers(0, 10))
def test_a_given_beta_moves_the_smaller_of_the_two_sums(
    cells: tuple[list[int], list[int]], beta: float, seed: int
) -> None:
    counts, target = cells

    after = run(in_cells(counts, 0), one(target), seed, rounds=1, alpha=0.5, decay=ConstantDecay(), beta=beta)

    change = np.bincount(after[:, 0], minlength=len(counts)) - counts
    added = naive.additions(counts, target, Fraction(1, 2))
    removed = naive.removals(counts, target, Fraction(beta))
    assert abs(np.maximum(change, 0).sum() - min(sum(added), sum(removed))) < 1 + 1e-9
    assert all(
        0 <= move <= max(0, should - has) for move, has, should in zip(np.maximum(change, 0), *cells, strict=True)
    )


def test_cells_that_are_done_give_no_more_when_sums_are_rounded_up() -> None:
    counts, target = [4, 10, 10, 10, 0], [2, 9, 9, 9, 5]  # β = ⅛: they give ½, 1, 1 and 1, which may become 4

    moved = set()
    for seed in range(40):
        after = run(
            in_cells(counts, 0),
            one(target),
            seed,
            rounds=1,
            moves="replace",
            alpha=1.0,
            decay=ConstantDecay(),
            beta=0.125,
        )
        result = np.bincount(after[:, 0], minlength=5)
        assert np.all(result[:4] >= target[:4])
        assert result[0] >= 3
        moved.add(int(result[4]))

    assert moved == {3, 4}


@given(tables.recounts(), st.integers(0, 10))
def test_replacing_touches_the_cliques_attributes_only(cells: tuple[list[int], list[int]], seed: int) -> None:
    records = in_cells(cells[0], seed)

    after = run(records, one(cells[1]), moves="replace")

    assert np.array_equal(after[:, 1], records[:, 1])


@given(tables.recounts(), st.integers(0, 10))
def test_duplicating_makes_only_records_that_were_there(cells: tuple[list[int], list[int]], seed: int) -> None:
    records = in_cells(cells[0], seed)

    after = run(records, one(cells[1]), moves="duplicate")

    assert {*map(tuple, after.tolist())} <= {*map(tuple, records.tolist())}


def test_freed_and_copied_records_are_random() -> None:
    records = in_cells([10, 10], 0)
    first, second = (records[records[:, 0] == cell][:, 1] for cell in (0, 1))

    kept, copied = np.zeros(20), np.zeros(20)
    for seed in range(2000):
        after = run(records, one([5, 15]), seed, rounds=1, moves="duplicate")
        kept += np.isin(np.arange(20), after[after[:, 0] == 0][:, 1])
        copied += np.bincount(after[after[:, 0] == 1][:, 1], minlength=20) == 2

    # each is a count of 2000 samples of one half, standard deviation 22: five times that once in 40 000 runs
    assert np.all(np.abs(kept[first] - 1000) < 112)
    assert np.all(np.abs(copied[second] - 1000) < 112)


def test_replaced_records_meet_cells_at_random() -> None:
    records = np.array([np.repeat([2, 3], 10), np.arange(20)], np.int32).T  # in order, so that chance is not theirs
    came_from_two = np.zeros(2)

    for seed in range(500):
        after = run(records, one([10, 10, 0, 0]), seed, rounds=1, moves="replace")
        came_from_two += [np.sum(records[after[:, 0] == cell, 0] == 2) for cell in (0, 1)]

    # hypergeometric, 500 samples of standard deviation 1.15 around 5: five times 26 once in a million runs
    assert np.all(np.abs(came_from_two - 2500) < 130)


def test_which_freed_records_are_replaced_is_random() -> None:
    records = in_cells([10, 10], 0)
    own, kept = records[records[:, 0] == 0][:, 1], np.zeros(20)

    for seed in range(2000):
        after = run(records, one([0, 20]), seed, rounds=1)  # five of ten are replaced, five become copies
        kept += np.isin(np.arange(20), after[:, 1])

    assert np.all(np.abs(kept[own] - 1000) < 112)  # as above
    assert np.all(np.delete(kept, own) == 2000)


# ── whole runs ───────────────────────────────────────────────────────────────────────────────────────────────

SIZES = [3, 4, 2, 5, 3, 6]


def overlapping(rows: int, seed: int) -> tuple[list[Estimate], Records]:
    """All pairs of connected attributes, and a start for them."""
    given = tables.dependent_records(rows, SIZES, seed)
    targets = [tables.table(given, pair, SIZES) for pair in combinations(range(len(SIZES)), 2)]
    return targets, initialize_records(targets, tables.names(SIZES), rows, np.random.default_rng(seed))


def test_one_table_is_matched_to_rounding() -> None:
    given = tables.dependent_records(3000, SIZES, 1)
    target = [tables.table(given, [5, 1, 3], SIZES)]
    begin = initialize_records(target, ["5", "1", "3"], 3000, np.random.default_rng(0))

    after = run_gum(begin, ["5", "1", "3"], target, rng=np.random.default_rng(0))

    assert naive.count_cells(after, [0, 1, 2], [6, 4, 5]).tolist() == target[0].values.tolist()


def test_disjoint_tables_are_matched_to_rounding() -> None:
    given = tables.dependent_records(3000, SIZES, 2)
    targets = [tables.table(given, pair, SIZES) for pair in ([0, 1], [2, 3], [4, 5])]
    begin = initialize_records(targets, tables.names(SIZES), 3000, np.random.default_rng(0))

    after = run(begin, targets)

    assert tables.distances(after, targets).tolist() == [0, 0, 0]


def test_overlapping_pairs_are_nearly_matched() -> None:
    targets, begin = overlapping(20_000, 3)

    before, after = tables.distances(begin, targets), tables.distances(run(begin, targets), targets)

    assert before.mean() > 0.08
    assert after.mean() < 0.005
    assert after.max() < 0.015


def test_tables_are_scaled_to_the_records() -> None:
    target = one([30, 10])

    after = run(in_cells([8, 0], 0), target)

    assert np.bincount(after[:, 0]).tolist() == [6, 2]


@pytest.mark.parametrize("moves", MOVES)
def test_rows_stay_as_many_and_codes_in_range(moves: Moves) -> None:
    targets, begin = overlapping(500, 4)

    after = run(begin, targets, rounds=10, moves=moves)

    assert (after.shape, str(after.dtype), after.flags.f_contiguous) == (begin.shape, "int32", True)
    assert np.all((after >= 0) & (after < SIZES))


def test_a_seed_gives_the_same_bytes_and_another_one_others() -> None:
    targets, begin = overlapping(500, 5)
    given = begin.copy()

    runs = [run(begin, targets, seed, rounds=5).tobytes() for seed in (1, 1, 2)]

    assert runs[0] == runs[1] != runs[2]
    assert np.array_equal(begin, given)  # whoever gave the records keeps them


def test_a_full_log_of_copies_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    targets, begin = overlapping(500, 6)
    roomy = run(begin, targets, rounds=5)
    monkeypatch.setattr(gradual_update, "_LOGGED", 1)

    cramped = run(begin, targets, rounds=5)

    assert np.array_equal(cramped, roomy)


def test_errors_hardly_ever_rise_from_round_to_round() -> None:
    courses = []
    for seed in range(8):
        targets, begin = overlapping(2000, seed)
        rounds = iterate_gum_rounds(
            begin, tables.names(SIZES), targets, rng=np.random.default_rng(seed), options=GUM(rounds=15)
        )
        courses.append(
            [tables.distances(begin, targets).mean(), *(tables.distances(r, targets).mean() for r in rounds)]
        )

    mean = np.mean(courses, axis=0)

    assert np.all(np.diff(mean) < 0.003)
    assert mean[-1] < mean[0] / 5


def test_a_run_ends_when_nothing_is_left_to_move() -> None:
    reported: list[tuple[str, float]] = []
    begin = in_cells([4, 4], 0)

    run_gum(
        *(begin, ["cell", "id"], one([2, 6])),
        rng=np.random.default_rng(0),
        progress=lambda *words: reported.append(words),
    )

    assert [fraction for _, fraction in reported] == [0.01, 0.02, 1.0]  # moved, nothing left, done


def test_an_empty_cell_stays_empty_where_records_are_only_duplicated() -> None:
    after = run(in_cells([4, 4, 0], 0), one([1, 3, 4]), moves="duplicate")

    assert np.bincount(after[:, 0], minlength=3).tolist() == [4, 4, 0]


def test_the_table_with_the_largest_error_comes_first() -> None:
    small, large = one([5, 5]), one([10, 0])

    after = run(in_cells([0, 10], 0), [*small, *large], rounds=1, moves="replace")

    assert np.bincount(after[:, 0]).tolist() == [5, 5]  # what comes last is matched


@pytest.mark.parametrize(
    ("moves", "shares"), [("mixture", [0.5, 1, 0.5]), ("replace", [0] * 3), ("duplicate", [1] * 3)]
)
def test_copies_have_their_share_of_each_round(moves: Moves, shares: list[float]) -> None:
    options = GUM(moves=moves)

    assert [options.duplicate_share(number) for number in range(3)] == shares


def test_a_mixture_can_shift_to_copies_over_the_rounds() -> None:
    options = GUM(rounds=5, duplicate_shares=(0.2, 1.0))

    assert [options.duplicate_share(number) for number in range(5)] == pytest.approx([0.2, 1, 0.6, 1, 1])
    assert GUM(rounds=1, duplicate_shares=(0.2, 1.0)).duplicate_share(0) == 0.2


@pytest.mark.parametrize(("share", "copies"), [(0.0, 0), (0.25, 2), (1.0, 8)])
def test_the_share_of_copies_in_a_mixture_is_the_one_given(share: float, copies: int) -> None:
    after = run(in_cells([12, 8], 0), one([4, 16]), rounds=1, duplicate_shares=(share, 1.0))

    assert np.bincount(after[:, 0]).tolist() == [4, 16]
    assert len(after) - len(np.unique(after[:, 1])) == copies  # a record that is copied keeps its id


@pytest.mark.parametrize("rows", [0, 1])
def test_none_and_one_record_are_fitted(rows: int) -> None:
    after = run(in_cells([rows, 0], 0), one([0, 7]))

    assert after[:, 0].tolist() == [1] * rows


def test_without_rounds_or_tables_records_stay() -> None:
    records = in_cells([3, 1], 0)

    assert np.array_equal(run(records, one([0, 4]), rounds=0), records)
    assert np.array_equal(run_gum(records, ["cell", "id"], [], rng=np.random.default_rng(0)), records)


@pytest.mark.parametrize("wrong", [np.array([[2, 0]]), np.array([[-1, 0]])])
def test_codes_outside_of_a_table_are_refused(wrong: NDArray[np.int64]) -> None:
    with pytest.raises(InternalError, match="outside"):
        run(wrong.astype(np.int32), one([0, 4]))
