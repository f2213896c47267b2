"""Attributes that were measured together at coarse levels only: answered at these levels, with intervals that hold."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpsyn.encoding import Codec, Grouping, Recoding
from dpsyn.inference import GUM, MeasurementRound, Release, fit_model
from dpsyn.marginals import Clique, Marginal
from dpsyn.schema import Categorical, Integer, Schema
from dpsyn.synopsis import Synopsis

SCHEMA = Schema(
    attributes=(
        Integer(name="age", low=0, high=63, bins=tuple(range(0, 64, 4))),
        Integer(name="pay", low=0, high=63, bins=tuple(range(0, 64, 4))),
        Categorical(name="job", codes=3),
    )
)
CODEC = Codec(SCHEMA)
BINS = Recoding.coarse(CODEC)
LEVEL = Grouping(np.arange(16) // 4)
COARSE = BINS.merge("age", LEVEL).merge("pay", LEVEL)
LATTICE = 10


def make_rows(count: int = 4_000) -> NDArray[np.int64]:
    rng = np.random.default_rng(0)
    age = np.clip(rng.normal(30, 12, count), 0, 63)
    pay = np.clip(age + rng.normal(0, 8, count), 0, 63)
    return np.stack([age, pay, (pay > 30) + (rng.random(count) < 0.3)], axis=1).astype(np.int64)


ROWS = make_rows()


def measure(recoding: Recoding, clique: Clique, std: float, rng: np.random.Generator) -> Marginal:
    columns = [recoding.columns[recoding.index_of(name)] for name in clique]
    codes = [column.tables[0][ROWS[:, CODEC.names.index(column.name)]] for column in columns]
    counts = np.zeros([column.size for column in columns])
    np.add.at(counts, tuple(codes), 1)
    raw = np.rint((counts + rng.normal(0, std, counts.shape)) * 2**LATTICE).astype(np.int64)
    return Marginal(clique, raw, LATTICE, std)


def make_synopsis(rng: np.random.Generator, std: float = 20.0) -> Synopsis:
    one_way = tuple(measure(BINS, (name,), std, rng) for name in CODEC.names)
    pairs = (measure(COARSE, ("age", "pay"), std, rng),)
    release = Release((MeasurementRound(BINS, one_way), MeasurementRound(COARSE, pairs)))
    return Synopsis(SCHEMA, (release,), fit_model(SCHEMA, BINS, [release], synthesis=GUM()))


def true_count(age: tuple[int, int], pay: tuple[int, int]) -> int:
    inside = [(ROWS[:, index] >= low) & (ROWS[:, index] <= high) for index, (low, high) in enumerate((age, pay))]
    return int((inside[0] & inside[1]).sum())


RANGES = [(0, 15), (16, 31), (32, 47), (48, 63), (16, 47), (0, 63)]


def test_intervals_of_whole_groups_hold_the_true_count_at_their_level() -> None:
    rng, inside, errors = np.random.default_rng(1), [], []
    for _ in range(40):
        synopsis = make_synopsis(rng)
        for age in RANGES:
            for pay in RANGES:
                answer = synopsis.count(age=age, pay=pay)
                low, high = answer.interval(0.9)
                inside.append(bool(low <= true_count(age, pay) <= high))
                errors.append(abs(float(answer) - true_count(age, pay)) / float(answer.standard_errors))
                assert answer.source == "covered"
                assert answer.interpolated_attributes == ()

    assert 0.87 <= np.mean(inside) <= 0.93  # 1 440 counts, many of which share noise
    assert np.mean(errors) < 0.9  # 0.8 for normal errors; counts are closer than the centers of intervals


def test_dependence_that_only_a_coarse_table_shows_is_in_the_answer() -> None:
    synopsis = make_synopsis(np.random.default_rng(2), 5.0)
    answer = synopsis.marginal("age", "pay")

    truth = np.zeros((16, 16))
    np.add.at(truth, (ROWS[:, 0] // 4, ROWS[:, 1] // 4), 1)
    independent = np.outer(truth.sum(axis=1), truth.sum(axis=0)) / len(ROWS)
    assert np.abs(answer.counts - truth).sum() < 0.6 * np.abs(independent - truth).sum()
    assert answer.interpolated_attributes == ("age", "pay")
    assert answer.model_error is None


def test_a_range_of_two_attributes_has_the_sum_of_its_parts() -> None:
    synopsis = make_synopsis(np.random.default_rng(3))
    listed = synopsis.marginal("age", "pay")
    cuts = [(0, 11), (12, 39), (40, 63)]

    parts = [synopsis.count(age=age, pay=pay) for age in cuts for pay in cuts]

    for found in ("counts", "interval_centers"):
        total = float(getattr(synopsis.count(age=(0, 63), pay=(0, 63)), found))
        assert total == pytest.approx(sum(float(getattr(part, found)) for part in parts), abs=1e-6)
        assert total == pytest.approx(float(getattr(listed, found).sum()), abs=1e-6)


def test_a_condition_on_a_third_attribute_is_answered_as_before() -> None:
    answer = make_synopsis(np.random.default_rng(4)).count(age=(0, 31), pay=(0, 31), job="0")

    assert answer.source != "covered"
