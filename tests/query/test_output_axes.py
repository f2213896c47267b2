"""From measured codes to bins, cells and conditions."""

from __future__ import annotations

import numpy as np
import pytest

from dpsyn.encoding import Codec, Grouping, Recoding
from dpsyn.errors import QueryError
from dpsyn.query import query
from dpsyn.query.query import OutputAxis, compute_output_weights, contract_axes, make_output_axis, splits_codes
from dpsyn.schema import Categorical, Datetime, Integer, Schema

AGE = Integer(name="age", low=0, high=99, bins=(0, 18, 65), missing=True)
JOB = Categorical(name="job", values=("nurse", "cook", "clerk"), missing=True)


def cells(attribute: Integer | Categorical | Datetime, *conditions: str) -> np.ndarray:
    return attribute.select(conditions)


def test_bins_are_listed_under_their_labels() -> None:
    axis = make_output_axis(AGE, None, listed=True)

    assert axis.labels == ("0..17", "18..64", "65..99", "missing")
    assert axis.output_of.tolist() == AGE.bin_of_cell().tolist()


def test_a_part_of_a_bin_is_labeled_by_its_selected_values() -> None:
    axis = make_output_axis(AGE, cells(AGE, "10..30", "70", "missing"), listed=True)

    assert axis.labels == ("10..17", "18..30", "70", "missing")
    assert np.count_nonzero(axis.output_of >= 0) == 21 + 1 + 1


def test_several_parts_of_a_bin_have_one_label() -> None:
    axis = make_output_axis(AGE, cells(AGE, "20..22", "30", "40..41"), listed=True)

    assert axis.labels == ("20..22|30|40..41",)


def test_cells_are_listed_one_by_one_on_request() -> None:
    axis = make_output_axis(AGE, cells(AGE, "16..19"), listed=True, cells=True)

    assert axis.labels == ("16", "17", "18", "19")


def test_an_attribute_that_is_not_listed_has_one_output() -> None:
    axis = make_output_axis(JOB, cells(JOB, "nurse", "missing"), listed=False)

    assert axis.labels == ()
    assert axis.size == 1
    assert axis.output_of.tolist() == [0, -1, -1, 0]


def test_listed_values_and_dates_have_their_own_labels() -> None:
    seen = Datetime(name="seen", start="2020-01-01", end="2020-12-31", bins=("2020-01-01", "2020-07-01"))

    assert make_output_axis(JOB, cells(JOB, "cook", "missing"), listed=True).labels == ("cook", "missing")
    assert make_output_axis(seen, cells(seen, "2020-06-30..2020-07-02"), listed=True).labels == (
        "2020-06-30",
        "2020-07-01..2020-07-02",
    )


# ── weights ──────────────────────────────────────────────────────────────────────────────────────────────────

SCHEMA = Schema(attributes=(AGE, JOB))
CODEC = Codec(SCHEMA)
EVEN = {"age": np.ones(101), "job": np.ones(4)}


def test_codes_that_are_outputs_need_no_weights() -> None:
    column = Recoding.coarse(CODEC).columns[0]

    assert (
        compute_output_weights(column, CODEC.attributes, {"age": make_output_axis(AGE, None, listed=True)}, EVEN)
        is None
    )
    assert not splits_codes(None)


def test_a_range_that_cuts_a_bin_gets_its_share_of_the_histogram() -> None:
    column = Recoding.coarse(CODEC).columns[0]
    histogram = np.ones(101)
    histogram[20] = 11.0

    weights = compute_output_weights(
        column,
        CODEC.attributes,
        {"age": make_output_axis(AGE, cells(AGE, "0..20"), listed=True)},
        {**EVEN, "age": histogram},
    )

    assert weights is not None
    assert weights.tolist() == [[1.0, 0.0, 0.0, 0.0], [0.0, 13 / 57, 0.0, 0.0]]
    assert splits_codes(weights)


def test_whole_bins_are_not_cut() -> None:
    column = Recoding.coarse(CODEC).columns[0]

    weights = compute_output_weights(
        column, CODEC.attributes, {"age": make_output_axis(AGE, cells(AGE, "0..64"), listed=False)}, EVEN
    )

    assert weights is not None
    assert weights.tolist() == [[1.0, 1.0, 0.0, 0.0]]
    assert not splits_codes(weights)


def test_merged_values_are_divided_by_the_histogram() -> None:
    column = Recoding.coarse(CODEC).merge("job", Grouping(np.array([0, 1, 1, 2]))).columns[1]
    histogram = np.array([5.0, 30.0, 10.0, 1.0])

    weights = compute_output_weights(
        column, CODEC.attributes, {"job": make_output_axis(JOB, None, listed=True)}, {**EVEN, "job": histogram}
    )

    assert weights is not None
    assert weights.tolist() == [[1, 0, 0], [0, 0.75, 0], [0, 0.25, 0], [0, 0, 1]]


def test_values_without_weight_are_divided_evenly() -> None:
    column = Recoding.coarse(CODEC).columns[0]

    weights = compute_output_weights(
        column,
        CODEC.attributes,
        {"age": make_output_axis(AGE, cells(AGE, "0..8"), listed=False)},
        {**EVEN, "age": np.zeros(101)},
    )

    assert weights is not None
    assert weights[0] == pytest.approx([0.5, 0.0, 0.0, 0.0])


def test_a_joint_column_is_separated() -> None:
    recoding = Recoding.coarse(CODEC).join("both", ["age", "job"])
    axes = {
        "age": make_output_axis(AGE, None, listed=True),
        "job": make_output_axis(JOB, cells(JOB, "cook"), listed=False),
    }

    weights = compute_output_weights(recoding.columns[0], CODEC.attributes, axes, EVEN)

    counts = np.arange(16.0)  # age × job
    assert weights is not None
    assert weights @ counts == pytest.approx(counts.reshape(4, 4)[:, 1])


def test_a_joint_column_of_merged_codes_is_separated_by_the_histograms() -> None:
    recoding = Recoding.coarse(CODEC).join("both", ["age", "job"]).merge("both", Grouping(np.arange(16) // 8))
    histogram = {"age": EVEN["age"], "job": np.array([3.0, 1.0, 0.0, 0.0])}

    weights = compute_output_weights(
        recoding.columns[0], CODEC.attributes, {"job": make_output_axis(JOB, None, listed=True)}, histogram
    )

    assert weights is not None
    assert weights == pytest.approx(np.array([[0.75, 0.75], [0.25, 0.25], [0, 0], [0, 0]]))


def test_weights_of_all_outputs_sum_to_one() -> None:
    rng = np.random.default_rng(0)
    column = Recoding.coarse(CODEC).merge("age", Grouping(np.array([0, 1, 1, 0]))).columns[0]

    weights = compute_output_weights(
        column,
        CODEC.attributes,
        {"age": make_output_axis(AGE, None, listed=True, cells=True)},
        {"age": rng.random(101)},
    )

    assert weights is not None
    assert weights.sum(axis=0) == pytest.approx(1.0)


def test_a_table_is_contracted_along_every_axis() -> None:
    table = np.arange(12.0).reshape(3, 4)

    assert contract_axes(table, [None, np.ones((1, 4))]).tolist() == [[6.0], [22.0], [38.0]]
    assert contract_axes(table, [np.array([[0.5, 0, 0]]), None]).tolist() == [[0.0, 0.5, 1.0, 1.5]]


def test_too_many_outputs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "MAX_OUTPUT_WEIGHTS", 100)
    column = Recoding.coarse(CODEC).columns[0]

    with pytest.raises(QueryError, match="listed in too many values"):
        compute_output_weights(
            column, CODEC.attributes, {"age": make_output_axis(AGE, None, listed=True, cells=True)}, EVEN
        )


def test_no_labels_are_one_output() -> None:
    assert OutputAxis((), np.zeros(3, np.int64)).size == 1
