"""Synthetic rows compared with released marginals: sums by hand, a slow twin, and the noise floor."""

from __future__ import annotations

import doctest
import math
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.encoding import Codec, Grouping, Recoding
from dpsyn.encoding.code_labels import label_codes
from dpsyn.errors import SourceError, UserError
from dpsyn.marginals import Metric
from dpsyn.marginals.comparison import MAX_ATTRIBUTE_LABELS, MAX_PAIR_LABELS
from dpsyn.schema import Boolean, Categorical, Datetime, Integer, Schema
from dpsyn.synopsis import ReleaseComparison, Synopsis, compare_rows
from dpsyn.synopsis.comparison import PUBLISHABLE_NOTICE
from tests.synopsis.synopses import SCHEMA as JOINT_SCHEMA
from tests.synopsis.synopses import certificate
from tests.synopsis.synopses import synopsis as joint_synopsis

SCHEMA = Schema(attributes=(Categorical(name="a", values=("x", "y")), Categorical(name="b", values=("u", "v", "w"))))


def released(marginals: dict[tuple[str, ...], Any], std: float = 1.0) -> Synopsis:
    return Synopsis.from_marginals(SCHEMA, marginals, std=std, source="a test")


def table(*cells: str) -> pa.Table:
    return pa.table({"a": [cell[0] for cell in cells], "b": [cell[1] for cell in cells]})


def test_rows_that_match_have_a_distance_of_zero() -> None:
    synopsis = released({("a",): [2, 2], ("a", "b"): [[2, 0, 0], [0, 1, 1]]})

    comparison = compare_rows(synopsis, table("xu", "xu", "yv", "yw"))

    assert [marginal.distance.synthetic for marginal in comparison.marginals] == [0, 0]
    assert [marginal.rms_error for marginal in comparison.marginals] == [0, 0]
    assert (comparison.synthetic_rows, comparison.estimated_rows) == (4, 4)
    assert comparison.notice == PUBLISHABLE_NOTICE == next(iter(comparison.to_dict().values()))


def test_a_distance_and_its_baselines_equal_those_computed_by_hand() -> None:
    synopsis = released({("a", "b"): [[2, 0, 0], [0, 1, 1]]}, std=0.5)

    (pair,) = compare_rows(synopsis, table("xu", "xv", "yv", "yw")).pairs

    assert pair.distance.synthetic == pytest.approx(1 / 4)  # one of four rows would have to move
    assert pair.distance.floor == pytest.approx(6 * 0.5 * math.sqrt(2 / math.pi) / 2 / 4)
    shuffled = [[0.5, 1, 0.5], [0.5, 1, 0.5]]
    truth = [[2, 0, 0], [0, 1, 1]]
    assert pair.distance.independent == pytest.approx(np.abs(np.subtract(shuffled, truth)).sum() / 2 / 4)


def test_the_number_of_synthetic_rows_does_not_matter() -> None:
    synopsis = released({("a", "b"): [[2, 0, 0], [0, 1, 1]]})
    once = table("xu", "xv", "yv", "yw")

    few, many = compare_rows(synopsis, once), compare_rows(synopsis, pa.concat_tables([once] * 3))

    assert (few.synthetic_rows, many.synthetic_rows) == (4, 12)
    assert many.pairs == few.pairs
    assert many.attributes == few.attributes


@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_distances_equal_those_of_the_slow_twin(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(-2, 9, (2, 3)) + np.array([[9, 0, 0], [0, 0, 0]])
    cells = [("xy"[rng.integers(2)], "uvw"[rng.integers(3)]) for _ in range(rows)]
    synopsis = released({("a", "b"): counts.tolist(), ("b",): counts.sum(axis=0).tolist()})

    comparison = compare_rows(synopsis, table(*(one + other for one, other in cells)))

    total = max(synopsis.model.total, 1.0)
    apart = 0.0
    for i, one in enumerate("xy"):
        for j, other in enumerate("uvw"):
            apart += abs(cells.count((one, other)) * total / rows - counts[i, j])
    assert comparison.pairs[0].distance.synthetic == pytest.approx(apart / 2 / total)
    squares = [
        (sum(other == value for _, other in cells) * total / rows - counts[:, j].sum()) ** 2
        for j, value in enumerate("uvw")
    ]
    assert comparison.marginals[1].rms_error == pytest.approx(math.sqrt(sum(squares) / 3))


def test_rows_with_the_true_counts_are_at_the_noise_floor() -> None:
    # 900 cells of noise: the mean of |noise| has a relative std of 0.76/30, so an error of 10 % is 4 of them
    rng, side, std = np.random.default_rng(3), 30, 7.0
    schema = Schema(attributes=(Categorical(name="a", codes=side), Categorical(name="b", codes=side)))
    counts = rng.integers(20, 60, (side, side))
    first, second = np.indices(counts.shape)
    exact = pa.table({"a": np.repeat(first.ravel(), counts.ravel()), "b": np.repeat(second.ravel(), counts.ravel())})
    noisy = np.round(counts + rng.normal(0, std, counts.shape))
    synopsis = Synopsis.from_marginals(schema, {("a", "b"): noisy}, std=std, source="a test")

    (marginal,) = compare_rows(synopsis, exact).marginals

    assert marginal.rms_error == pytest.approx(1, rel=0.1)
    assert marginal.distance.synthetic == pytest.approx(marginal.distance.floor, rel=0.1)
    assert marginal.distance.independent > 1.3 * marginal.distance.synthetic


def test_a_histogram_over_cells_is_shown_over_bins_with_the_noise_of_its_sums() -> None:
    schema = Schema(attributes=(Integer(name="age", low=0, high=9, bins=(0, 4), missing=True),))
    synopsis = Synopsis.from_marginals(schema, {"age": [1, 0, 2, 1, 0, 0, 3, 0, 0, 1, 2]}, std=0.5, source="a test")

    (attribute,) = compare_rows(synopsis, pa.table({"age": [0, 1, 5, None]})).attributes

    assert (attribute.kind, attribute.labels) == ("integer", ("0..3", "4..9", "missing"))
    assert attribute.reference == pytest.approx((0.4, 0.4, 0.2))
    assert attribute.synthetic == pytest.approx((0.5, 0.25, 0.25))
    assert attribute.std == pytest.approx((0.5 * 2 / 10, 0.5 * math.sqrt(6) / 10, 0.5 / 10))


def test_a_pair_is_compared_by_the_least_noisy_marginal_that_contains_it() -> None:
    schema = Schema(attributes=tuple(Boolean(name=name) for name in "abc"))
    cube = np.arange(8.0).reshape(2, 2, 2)
    both = {("a", "b", "c"): cube, ("a", "b"): cube.sum(axis=2) + 100}
    rows = pa.table({name: [True, False, True] for name in "abc"})

    alone = compare_rows(Synopsis.from_marginals(schema, {("a", "b", "c"): cube}, std=1.0, source="t"), rows).pairs
    beside = compare_rows(
        Synopsis.from_marginals(schema, both, std={("a", "b", "c"): 1.0, ("a", "b"): 0.5}, source="t"), rows
    )

    assert [(pair.first, pair.second) for pair in alone] == list(combinations("abc", 2))
    total = cube.sum()
    assert alone[0].distance.floor == pytest.approx(4 * math.sqrt(2) * math.sqrt(2 / math.pi) / 2 / total)
    (direct,) = [shares for shares in beside.worst_pairs if {shares.first, shares.second} == {"a", "b"}]
    assert np.array(direct.reference).sum() > 1  # the direct one, whose counts are larger


def test_attributes_measured_as_one_are_named_by_their_combinations() -> None:
    synopsis = joint_synopsis(certificate())
    rows = synopsis.generate_arrow(50, seed=1)

    comparison = {attribute.name: attribute for attribute in compare_rows(synopsis, rows).attributes}

    assert list(comparison) == ["age", "sex", "job", "work"]
    assert comparison["work"].kind == "joint"
    assert comparison["work"].labels == ("3 combinations", "3 combinations", "3 combinations", "4, true")
    assert comparison["age"].labels == ("0..17", "18..64", "65..99")


def test_merged_values_are_labelled_by_their_count_or_as_a_range() -> None:
    attributes = (
        Integer(name="n", low=0, high=9, bins=10, missing=True),
        Categorical(name="c", values=("p", "q", "r"), missing=True),
        Datetime(name="d", start="2016-01-01", end="2016-01-04"),
    )
    coarse = Recoding.coarse(Codec(Schema(attributes=attributes)))
    merged = (
        coarse.merge("n", Grouping(np.array([0, 0, 0, 1, 1, 2, 3, 2, 3, 3, 4])))
        .merge("c", Grouping(np.array([0, 1, 1, 1])))
        .merge("d", Grouping(np.array([0, 0, 1, 1])))
    )

    named = [label_codes(column, attributes) for column in merged.columns]

    assert named[0] == ("0..2", "3..4", "rare values", "rare values", "missing")
    assert named[1] == ("p", "3 rare values")
    assert named[2] == ("2016-01-01..2016-01-02", "2016-01-03..2016-01-04")


def test_long_lists_of_labels_are_shortened() -> None:
    schema = Schema(attributes=(Categorical(name="c", codes=300), Boolean(name="b")))
    marginals = {("c", "b"): np.ones((300, 2))}
    synopsis = Synopsis.from_marginals(schema, marginals, std=1.0, source="a test")

    comparison = compare_rows(synopsis, pa.table({"c": [0, 1], "b": [True, False]}))

    attribute, (shares,) = comparison.attributes[0], comparison.worst_pairs
    assert len(attribute.labels) == MAX_ATTRIBUTE_LABELS
    assert attribute.labels[-1] == f"{attribute.folded} others" == "201 others"
    assert sum(attribute.reference) == pytest.approx(1)
    assert sum(attribute.synthetic) == pytest.approx(1)
    assert (len(shares.first_labels), len(shares.second_labels)) == (MAX_PAIR_LABELS, 2)
    assert np.array(shares.reference).sum() == pytest.approx(1)


def test_an_unsuitable_table_is_refused() -> None:
    synopsis = released({("a",): [2, 2], ("b",): [1, 1, 2]})

    with pytest.raises(SourceError, match="no rows"):
        synopsis.compare_rows(table("xu").slice(0, 0))
    with pytest.raises(SourceError, match="there is no column 'b'"):
        compare_rows(synopsis, table("xu").drop_columns(["b"]))
    with pytest.raises(UserError, match=r"a dict is not an Arrow table; dpsyn\.read_table"):
        compare_rows(synopsis, {"a": ["x"], "b": ["u"]})


def test_a_table_without_rows_has_shares_of_zero() -> None:
    synopsis = released({("a",): [2, 2], ("b",): [1, 1, 2]})

    comparison = compare_rows(synopsis, table("xu").slice(0, 0))

    assert comparison.synthetic_rows == 0
    assert [marginal.distance.synthetic for marginal in comparison.marginals] == pytest.approx([0.5, 0.5])
    assert {share for attribute in comparison.attributes for share in attribute.synthetic} == {0.0}


def test_synthetic_rows_need_no_column_of_the_privacy_unit() -> None:
    assert JOINT_SCHEMA.privacy_unit is None
    schema = Schema.from_yaml(
        "dpsyn_schema: 1\nprivacy_unit: {id: p, max_rows: 2}\n"
        "attributes:\n  p: {kind: identifier}\n  a: {kind: boolean}\n"
    )
    synopsis = Synopsis.from_marginals(schema, {"a": [1.0, 3.0]}, std=1.0, source="a test")

    comparison = compare_rows(synopsis, pa.table({"a": [True, True, False, True]}))

    assert comparison.attributes[0].distance == Metric(
        synthetic=0, floor=comparison.attributes[0].distance.floor, independent=0
    )


def test_the_example_in_the_docstring_runs() -> None:
    cases = doctest.DocTestFinder().find(ReleaseComparison, "ReleaseComparison")
    (example,) = (case for case in cases if case.examples)

    outcome = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example)

    assert (outcome.failed, outcome.attempted) == (0, 10)
