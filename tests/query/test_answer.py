"""An answer as intervals, tables, data frames, plain data and a number."""

from __future__ import annotations

import datetime as dt
import functools
import json
import math

import numpy as np
import pyarrow as pa
import pytest

import dpsyn
from dpsyn.accounting import Laplace, exact_fraction
from dpsyn.errors import InternalError, QueryError
from dpsyn.query.answer import Answer


def answer(**changed: object) -> Answer:
    fields = {
        "attributes": ("age", "sex"),
        "labels": (("0..17", "18..99"), ("F", "M", "missing")),
        "counts": np.arange(6.0).reshape(2, 3),
        "standard_errors": np.full((2, 3), 2.0),
        "interval_centers": np.arange(6.0).reshape(2, 3) - 1,
        "model_errors": np.zeros((2, 3)),
        "source": "covered",
    }
    return Answer(**{**fields, **changed})  # type: ignore[arg-type]


def test_an_interval_is_symmetric_around_its_center() -> None:
    low, high = answer().interval(0.95)

    assert (low + high) / 2 == pytest.approx(np.arange(6.0).reshape(2, 3) - 1)
    assert high - low == pytest.approx(2 * 1.96 * 2, rel=1e-4)


def reconstructed(**changed: object) -> Answer:
    """Counts of 0 … 5 with a noise of 3 and a model error of 4 rows."""
    errors = {"standard_errors": np.full((2, 3), 3.0), "model_errors": np.full((2, 3), 4.0)}
    counts = np.arange(6.0).reshape(2, 3)
    return answer(**{"source": "reconstructed", "interval_centers": counts, **errors, **changed})


def test_an_interval_of_a_reconstructed_count_includes_the_model_error_and_is_not_negative() -> None:
    low, high = reconstructed().interval(0.95)

    assert reconstructed().total_errors == pytest.approx(5.0)
    assert (low == 0).all()
    assert high == pytest.approx(np.arange(6.0).reshape(2, 3) + 1.96 * 5, rel=1e-3)
    low, high = reconstructed(interval_centers=np.full((2, 3), 100.0)).interval(0.95)
    assert high - low == pytest.approx(2 * 1.96 * 5, rel=1e-4)


@pytest.mark.parametrize("laplace", [False, True])
def test_an_interval_can_leave_out_the_model_error(laplace: bool) -> None:
    low, high = reconstructed(laplace=laplace).interval(0.95, noise_only=True)

    expected = answer(standard_errors=np.full((2, 3), 3.0), interval_centers=reconstructed().counts, laplace=laplace)
    assert low.tolist() == expected.interval(0.95)[0].tolist()
    assert high.tolist() == expected.interval(0.95)[1].tolist()


def test_an_unknown_model_error_leaves_the_noise() -> None:
    unknown = reconstructed(model_errors=None)

    assert unknown.model_error is None
    assert unknown.total_errors.tolist() == unknown.standard_errors.tolist()
    assert unknown.to_arrow()["model_error"].null_count == 6
    assert unknown.interval(0.95)[1] == pytest.approx(unknown.counts + 1.96 * 3, rel=1e-3)


def test_a_reconstructed_count_shows_which_part_of_its_error_is_noise() -> None:
    one = reconstructed(
        attributes=(),
        labels=(),
        counts=np.array(70.0),
        standard_errors=np.array(3.0),
        interval_centers=np.array(70.0),
        model_errors=np.array(4.0),
    )

    assert repr(one) == "Answer(70.0 ± 5.0 rows, of which noise 3.0, reconstructed)"
    assert one.model_error == 4.0


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 95.0])
def test_a_confidence_that_is_no_probability_is_refused(confidence: float) -> None:
    with pytest.raises(QueryError, match=f"the confidence is {confidence}; give a probability between 0 and 1"):
        answer().interval(confidence)


def test_a_table_has_a_row_for_each_count() -> None:
    table = answer().to_arrow()

    assert table.column_names == ["age", "sex", "count", "standard_error", "model_error", "low", "high"]
    assert table.num_rows == 6
    assert table.slice(4, 1).to_pylist()[0]["sex"] == "M"
    assert table.slice(4, 1).to_pylist()[0]["count"] == 4.0


def test_an_attribute_may_have_the_name_of_a_column_of_numbers() -> None:
    table = answer(attributes=("count", "low")).to_arrow()

    assert table.column_names == ["count", "low", "count_", "standard_error", "model_error", "low_", "high"]
    assert table["count"].to_pylist()[:3] == ["0..17"] * 3
    assert table["count_"].to_pylist() == [*range(6)]
    assert answer(attributes=("count", "count_")).to_arrow().column_names[2] == "count__"


def test_pandas_and_polars_frames_hold_the_same_counts() -> None:
    frame, other = answer().to_pandas(), answer().to_polars()

    assert frame.shape == other.shape == (6, 7)
    assert frame["count"].tolist() == other["count"].to_list() == [0, 1, 2, 3, 4, 5]


def test_plain_data_is_json() -> None:
    data = json.loads(json.dumps(answer(model_errors=None).to_data(), allow_nan=False))

    assert data["attributes"] == ["age", "sex"]
    assert data["counts"][0] == {
        "age": "0..17", "sex": "F", "count": 0.0, "standard_error": 2.0, "model_error": None,
        "low": pytest.approx(-4.92, abs=0.01), "high": pytest.approx(2.92, abs=0.01),
    }  # fmt: skip
    assert data["model_error"] is None


def test_one_count_is_a_number() -> None:
    one = answer(
        attributes=(),
        labels=(),
        counts=np.array(7.5),
        standard_errors=np.array(1.0),
        interval_centers=np.array(7.0),
        model_errors=np.array(0.0),
    )

    assert float(one) == 7.5
    assert repr(one) == "Answer(7.5 ± 1.0 rows, covered)"
    assert one.to_arrow().to_pylist()[0]["count"] == 7.5


def test_a_table_cannot_be_converted_to_a_number() -> None:
    with pytest.raises(QueryError, match="a table over age, sex, not one number"):
        float(answer())


def test_arrays_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        answer().counts[0, 0] = 3.0


@pytest.mark.parametrize(
    "changed",
    [
        {"counts": np.zeros((3, 2))},
        {"standard_errors": np.zeros(6)},
        {"interval_centers": np.zeros(3)},
        {"model_errors": np.zeros(3)},
        {"attributes": ("age",)},
    ],
)
def test_arrays_of_other_shapes_are_refused(changed: dict[str, object]) -> None:
    with pytest.raises(InternalError, match="answer"):
        answer(**changed)


def discrete_laplace_tail(scale: float, count: int) -> float:
    """P(|noise| ≥ count) for a count of at least 1."""
    q = math.exp(-1 / scale)
    return 2 * q**count / (1 + q)


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
@pytest.mark.parametrize("scale", [0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 5.0, 14.0, 140.0])
def test_intervals_hold_for_laplace_noise(scale: float, confidence: float) -> None:
    """Exact: the probability that the noise of one cell leaves the interval is at most 1 − confidence."""
    std = Laplace.for_epsilon(1 / exact_fraction(scale), 1).std
    cell = answer(standard_errors=np.full((2, 3), std), laplace=True)

    low, high = cell.interval(confidence)

    reach = float((high - low)[0, 0]) / 2
    assert discrete_laplace_tail(scale, math.floor(reach) + 1) <= 1 - confidence
    assert confidence < 0.95 or reach <= 1 - scale * math.log(1 - confidence)  # that of continuous noise, rounded up


@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.905, 0.95, 0.99])
@pytest.mark.parametrize("cells", [2, 3, 5, 10, 50])
def test_intervals_hold_for_sums_of_laplace_noise(cells: int, confidence: float) -> None:
    """The distribution of the sum is computed by convolution."""
    scale, steps = 3.0, np.arange(-150, 151)
    one = np.exp(-np.abs(steps) / scale)
    distribution = functools.reduce(np.convolve, [one / one.sum()] * cells)
    std = math.sqrt(cells) * Laplace.for_epsilon(1 / exact_fraction(scale), 1).std

    low, high = answer(standard_errors=np.full((2, 3), std), laplace=True).interval(confidence)

    reach = float((high - low)[0, 0]) / 2
    distance = np.abs(np.arange(len(distribution)) - len(distribution) // 2)
    assert distribution[distance > reach].sum() <= 1 - confidence


# ── the types of values ──────────────────────────────────────────────────────────────────────────────────────


def test_numbers_truth_values_and_dates_come_back_in_their_type() -> None:
    schema = dpsyn.Schema(
        attributes=(
            dpsyn.Boolean(name="truth", missing=True),
            dpsyn.Ordinal(name="grade", values=(1, 2, 3)),
            dpsyn.Integer(name="size", low=0, high=2, missing=True),
            dpsyn.Integer(name="age", low=0, high=99, bins=10),
            dpsyn.Datetime(name="day", start="2020-01-01", end="2020-01-03", bins=3),
            dpsyn.Categorical(name="text", values=("a", "b"), missing=True),
        )
    )
    rows = pa.table({name: pa.array([None], pa.string()) for name in schema.names})
    synopsis = dpsyn.measure(rows, schema, epsilon=1, recipe="independent")
    values = {name: synopsis.marginal(name).to_arrow().column(name) for name in schema.names}

    assert values["truth"].to_pylist() == [False, True, None]
    assert values["grade"].to_pylist() == [1, 2, 3]
    assert values["size"].to_pylist() == [0, 1, 2, None]
    assert values["age"].to_pylist()[:2] == ["0..9", "10..19"]
    assert values["day"].to_pylist() == [dt.date(2020, 1, day) for day in (1, 2, 3)]
    assert values["text"].to_pylist() == ["a", "b", "missing"]
    assert str(synopsis.marginal("size").to_pandas().dtypes["size"]) == "float64"
    assert synopsis.marginal("day").to_data()["counts"][0]["day"] == "2020-01-01"
    selected = synopsis.marginal(["grade", "truth"], where={"grade": [1, 3]}).to_arrow()
    assert selected.column("grade").to_pylist() == [1, 1, 1, 3, 3, 3]
    assert selected.column("truth").to_pylist() == [False, True, None] * 2
