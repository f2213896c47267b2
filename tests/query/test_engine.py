"""Queries to a synopsis, from the names of attributes to the answer."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpsyn
from dpsyn.encoding import Grouping
from dpsyn.errors import UserError
from dpsyn.inference import GUM, Scores, fit_model
from dpsyn.marginals import Clique
from dpsyn.query import query
from dpsyn.query.engine import UNKNOWN_MODEL_ERROR
from dpsyn.schema import Categorical, Derive, Identifier, Integer, Schema
from dpsyn.selection import parse_views
from dpsyn.synopsis import Synopsis
from tests.query.noisy_synopses import (
    PEOPLE,
    baskets,
    bin_ages,
    binary_schema,
    count_table,
    make_release,
    make_synopsis,
    make_view_synopsis,
    people_rows,
    people_synopsis,
    with_scores,
)

ROWS = people_rows()
EXACT = people_synopsis(ROWS, 0.01, None)
"""Without noise, although it declares a little."""


def people(*columns: int) -> np.ndarray:
    return count_table(bin_ages(ROWS), columns, [5, 2, 4])


# ── covered answers ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("names", "columns"), [(("sex",), (1,)), (("age", "sex"), (0, 1)), (("job", "sex"), (2, 1))])
def test_a_measured_table_is_answered_in_the_order_of_the_query(
    names: tuple[str, ...], columns: tuple[int, ...]
) -> None:
    answer = EXACT.marginal(*names)

    assert answer.source == "covered"
    assert answer.attributes == names
    assert answer.labels == tuple(PEOPLE[name].labels() for name in names)
    assert answer.counts == pytest.approx(people(*columns), abs=0.6)  # consistent to half a row
    assert answer.model_error == 0
    assert answer.interpolated_attributes == ()


def test_a_condition_on_a_listed_attribute_narrows_the_list() -> None:
    answer = EXACT.marginal("age", "sex", where={"age": "18..64", "sex": "F"})

    assert answer.labels == (("18..34", "35..64"), ("F",))
    assert answer.counts == pytest.approx(people(0, 1)[1:3, :1], abs=0.6)


def test_values_that_meet_a_condition_on_another_attribute_are_counted_together() -> None:
    answer = EXACT.marginal("sex", where={"age": ["missing", "0..17"]})

    assert answer.counts == pytest.approx(people(0, 1)[[0, 4]].sum(axis=0), abs=1.2)
    assert answer.source == "covered"


def test_a_count_is_one_number() -> None:
    answer = EXACT.count(age=(18, 64), sex="F")

    assert float(answer) == pytest.approx(people(0, 1)[1:3, 0].sum(), abs=1.2)
    assert answer.counts.shape == ()
    assert answer.attributes == ()


def test_one_attribute_is_answered_by_its_fine_histogram_if_a_range_cuts_its_bins() -> None:
    answer = EXACT.count(age=(30, 39))

    assert float(answer.interval_centers) == pytest.approx(
        np.count_nonzero((ROWS[:, 0] >= 30) & (ROWS[:, 0] <= 39)), abs=0.1
    )
    assert answer.interpolated_attributes == ()
    assert answer.source == "covered"


def test_several_attributes_are_interpolated_if_a_range_cuts_a_bin() -> None:
    answer = EXACT.marginal("age", "sex", where={"age": (30, 39)})

    inside = [np.count_nonzero((ROWS[:, 0] >= 30) & (ROWS[:, 0] <= 39) & (ROWS[:, 1] == sex)) for sex in (0, 1)]
    assert answer.labels[0] == ("30..34", "35..39")
    assert answer.interpolated_attributes == ("age",)
    assert answer.model_error is None  # how ages are spread within a bin was not measured for each sex
    assert answer.counts.sum(axis=0) == pytest.approx(inside, rel=0.1)


def test_cells_are_listed_on_request() -> None:
    answer = EXACT.marginal("age", cells=True)

    assert len(answer.labels[0]) == 101
    assert answer.interval_centers == pytest.approx(count_table(ROWS, [0], [101]), abs=0.1)


def test_errors_of_measured_tables_are_those_of_the_best_linear_estimate() -> None:
    rows = baskets(4000, 4)
    synopsis = make_view_synopsis(rows, [(0, 1, 2), (1, 2, 3)], 10.0, np.random.default_rng(0))

    pair, whole, count = synopsis.marginal("x1", "x2"), synopsis.marginal("x0", "x1", "x2"), synopsis.count(x1="1")

    # two views; two cells of each are summed
    assert pair.standard_errors == pytest.approx(math.sqrt(100 * 2 / 2))
    assert float(count.standard_errors) == pytest.approx(math.sqrt(100 * 4 / 2))  # four cells of each
    # half of its 8 components are in both views
    assert whole.standard_errors == pytest.approx(math.sqrt(100 * 6 / 8))


def test_a_public_number_of_rows_is_used() -> None:
    rows = baskets(4000, 2)
    schema = Schema(attributes=binary_schema(2).attributes, neighbors="replace")
    release = make_release(schema, {("x0", "x1"): count_table(rows, (0, 1), [2, 2])}, 10.0, np.random.default_rng(0))
    model = fit_model(schema, release.rounds[0].recoding, [release], total=4000, synthesis=GUM())

    answer = Synopsis(schema, (release,), model).marginal("x0", "x1")

    assert answer.standard_errors == pytest.approx(10 * math.sqrt(3 / 4))
    assert answer.counts.sum() == pytest.approx(4000)


# ── reconstructed answers ────────────────────────────────────────────────────────────────────────────────────


def test_a_chain_of_tables_is_reconstructed() -> None:
    answer = EXACT.marginal("age", "sex", "job")

    table = people(0, 1)[:, :, None] * people(1, 2)[None, :, :] / people(1)[None, :, None]
    assert answer.source == "reconstructed"
    assert answer.counts == pytest.approx(table, abs=1.0)


def test_any_table_is_reconstructed_from_views_of_all_pairs() -> None:
    rows = baskets(20_000, 8)
    views = [(0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 4, 5), (2, 3, 6, 7), (0, 1, 6, 7), (2, 3, 4, 5)]
    synopsis = make_view_synopsis(rows, views, 2.0, np.random.default_rng(0))

    answer = synopsis.marginal(*(f"x{index}" for index in range(8)))

    truth = count_table(rows, range(8), [2] * 8)
    error = math.sqrt(((answer.counts - truth) ** 2).mean())
    assert answer.source == "reconstructed"
    assert error / math.sqrt((truth**2).mean()) < 0.15
    assert answer.model_error is not None
    assert 0.3 < math.hypot(answer.model_error, float(np.sqrt((answer.standard_errors**2).mean()))) / error < 3


TRIPLES = [(0, 1, 2), (3, 4, 5), (0, 3, 4), (1, 4, 5), (2, 3, 5), (0, 2, 5), (1, 2, 4), (0, 1, 4), (0, 1, 3)]
"""Triples of six attributes that contain every pair."""


def test_the_model_error_is_estimated_from_measured_tables() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (20_000, 6))
    independent = make_view_synopsis(bits, TRIPLES, 3.0, rng)
    bits[:, 2], bits[:, 5] = bits[:, 0] ^ bits[:, 1], bits[:, 3] ^ bits[:, 4]  # dependences that no pair shows
    parity = make_view_synopsis(bits, TRIPLES, 3.0, rng)

    low, high = (synopsis.marginal("x1", "x2", "x3").model_error for synopsis in (independent, parity))

    assert low is not None
    assert high is not None
    assert low < 30 < 300 < high


def test_the_model_error_comes_from_a_released_score() -> None:
    synopsis = with_scores(EXACT, Scores("dependence", (("job", "age"),), np.array([400.0]), 5.0))

    answer = synopsis.marginal("age", "job")

    assert answer.model_errors is not None
    assert math.sqrt(2 / math.pi) * answer.model_errors.sum() == pytest.approx(400, rel=1e-3)
    assert answer.notes == ()


def test_the_model_error_grows_with_the_count() -> None:
    synopsis = with_scores(EXACT, Scores("dependence", (("job", "age"),), np.array([400.0]), 5.0))

    answer = synopsis.marginal("age", "job")

    assert answer.model_errors is not None
    shares = [people(axis) / len(ROWS) for axis in (0, 2)]
    expected = np.sqrt(answer.counts * np.multiply.outer(1 - shares[0], 1 - shares[1]))  # leverages of independence
    assert answer.model_errors / answer.model_errors.max() == pytest.approx(expected / expected.max(), abs=0.01)


def test_a_model_error_that_nothing_shows_is_as_large_as_the_counts() -> None:
    synopsis = people_synopsis(ROWS, 5.0, np.random.default_rng(0), pairs=False)

    answer = synopsis.marginal("age", "job")

    assert answer.source == "reconstructed"
    assert answer.notes == (UNKNOWN_MODEL_ERROR,)
    assert answer.model_error is not None
    assert 0.5 < answer.model_error / math.sqrt((answer.counts**2).mean()) < 1


def test_pairs_that_were_not_measured_are_judged_by_those_that_were() -> None:
    """Two attributes that no marginal has together, and no score: as dependent as the pairs that were measured."""
    rng = np.random.default_rng(0)
    bits, views = rng.integers(0, 2, (20_000, 3)), [(0, 1), (1, 2)]
    low = make_view_synopsis(bits, views, 3.0, rng).marginal("x0", "x2").model_error
    bits[:, 1] = np.where(rng.random(20_000) < 0.8, bits[:, 0], bits[:, 1])
    high = make_view_synopsis(bits, views, 3.0, rng).marginal("x0", "x2").model_error

    assert low is not None
    assert high is not None
    assert low < 60 < 600 < high


def test_rows_that_noise_has_hidden_are_within_the_interval() -> None:
    """A cell that has little of two sums, both of which were measured as nearly 0 rows with a noise of 150."""
    schema = binary_schema(3)
    tables: dict[Clique, Any] = {
        ("x0", "x1"): np.array([[900.0, 3], [500, 600]]), ("x1", "x2"): np.array([[400.0, 1000], [601, 2]]),
    }  # fmt: skip
    answer = make_synopsis(schema, make_release(schema, tables, 150.0, None)).marginal("x0", "x1", "x2")

    _, high = answer.interval()
    _, without = answer.interval(noise_only=True)

    assert answer.counts[0, 1, 1] < 0.1
    assert without[0, 1, 1] < 5
    assert high[0, 1, 1] > 100


AB: Clique = ("a", "b")
BC: Clique = ("b", "c")


def test_the_model_answers_if_other_attributes_imply_a_dependence() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, 20_000)
    rows = np.stack([a, (a + (rng.random(20_000) < 0.1)) % 4, a], axis=1)
    rows[:, 2] = (rows[:, 1] + (rng.random(20_000) < 0.1)) % 4
    schema = Schema(attributes=tuple(Categorical(name=name, codes=4) for name in "abc"))
    tables = {clique: count_table(rows, columns, [4] * 3) for clique, columns in ((AB, (0, 1)), (BC, (1, 2)))}
    release = make_release(schema, tables, 20.0, rng)
    synopsis = Synopsis(schema, (release,), fit_model(schema, release.rounds[0].recoding, [release]))

    answer = synopsis.marginal("a", "c")

    truth = count_table(rows, (0, 2), [4] * 3)
    assert answer.source == "model"
    assert np.abs(answer.counts - truth).sum() / 2 / 20_000 < 0.02  # as if independent: 0.6
    assert (answer.standard_errors > 0).all()
    assert synopsis.marginal("a", "c").counts.tolist() == answer.counts.tolist()


def test_the_reconstruction_answers_if_the_model_has_no_more_information() -> None:
    """By chance the model answers 3 of 100 queries, and 3 or more of 15 with probability 1 %."""
    rows = np.random.default_rng(0).integers(0, 2, (5000, 6))
    synopsis = make_view_synopsis(rows, [(index,) for index in range(6)], 5.0, np.random.default_rng(1))

    sources = [synopsis.marginal(f"x{one}", f"x{two}").source for one, two in combinations(range(6), 2)]

    assert sources.count("reconstructed") >= 13


@pytest.mark.parametrize("method", ["least norm", "linear program"])
def test_other_reconstruction_methods_can_be_used(method: Any) -> None:
    rows = baskets(5000, 4)
    synopsis = make_view_synopsis(rows, list(combinations(range(4), 2)), 1.0, np.random.default_rng(1))

    answer = synopsis.marginal("x0", "x1", "x2", "x3", method=method)

    best = synopsis.marginal("x0", "x1", "x2", "x3")
    assert answer.counts.sum() == pytest.approx(best.counts.sum(), rel=0.01)
    assert np.abs(answer.counts - best.counts).max() > 1


def test_contradicting_tables_are_noted() -> None:
    same, other = np.array([[900.0, 0.0], [0.0, 900.0]]), np.array([[0.0, 900.0], [900.0, 0.0]])
    schema = binary_schema(3)
    release = make_release(schema, {("x0", "x1"): same, ("x1", "x2"): same, ("x0", "x2"): other}, 1.0, None)
    synopsis = Synopsis(schema, (release,), fit_model(schema, release.rounds[0].recoding, [release], synthesis=GUM()))

    answer = synopsis.marginal("x0", "x1", "x2")

    assert "did not converge" in answer.notes[0]


# ── merged and joint columns ─────────────────────────────────────────────────────────────────────────────────


def merged_synopsis() -> tuple[Synopsis, np.ndarray]:
    """Jobs whose rare values share a code in marginals of several attributes."""
    rows = ROWS[:, 1:]
    schema = Schema(attributes=PEOPLE.attributes[1:])
    release = make_release(schema, {("job",): count_table(rows, (1,), [2, 4])}, 1.0, None)
    coarse = release.rounds[0].recoding
    merged = coarse.merge("job", Grouping(np.array([0, 1, 1, 2])))
    pair = count_table(rows, (0, 1), [2, 4])
    grouped = np.stack([pair[:, 0], pair[:, 1] + pair[:, 2], pair[:, 3]], axis=1)
    extra = type(release.rounds[0])(
        merged, (type(release.rounds[0].marginals[0])(("sex", "job"), (grouped * 2**10).astype(np.int64), 10, 1.0),)
    )
    both = type(release)((*release.rounds, extra), source="a test")
    return Synopsis(schema, (both,), fit_model(schema, merged, [both], synthesis=GUM())), pair


def test_merged_values_are_interpolated() -> None:
    synopsis, pair = merged_synopsis()

    answer = synopsis.marginal("sex", "job")

    assert answer.interpolated_attributes == ("job",)
    assert answer.counts[:, [0, 3]] == pytest.approx(pair[:, [0, 3]], abs=2)
    assert answer.counts.sum(axis=0) == pytest.approx(pair.sum(axis=0), abs=5)


def test_merged_values_of_one_attribute_are_answered_as_measured() -> None:
    synopsis, pair = merged_synopsis()

    answer = synopsis.marginal("job")

    assert answer.interpolated_attributes == ()
    assert answer.counts == pytest.approx(pair.sum(axis=0), abs=3)


def test_a_joint_column_answers_for_its_parts() -> None:
    rows, schema = ROWS[:, 1:], Schema(attributes=PEOPLE.attributes[1:])
    coarse = make_release(schema, {("sex",): np.ones(2)}, 1.0, None).rounds[0].recoding
    joint = coarse.join("both", ["sex", "job"])
    pair = count_table(rows, (0, 1), [2, 4])
    marginal = make_release(schema, {("sex", "job"): pair}, 1.0, None).rounds[0].marginals[0]
    extra = type(make_release(schema, {("sex",): np.ones(2)}, 1.0, None).rounds[0])(
        joint, (type(marginal)(("both",), marginal.raw.reshape(-1), marginal.lattice, 1.0),)
    )
    release = type(make_release(schema, {("sex",): np.ones(2)}, 1.0, None))((extra,), source="a test")
    synopsis = Synopsis(schema, (release,), fit_model(schema, joint, [release], synthesis=GUM()))

    both, alone = synopsis.marginal("job", "sex"), synopsis.marginal("job")

    assert both.counts == pytest.approx(pair.T, abs=1)
    assert alone.counts == pytest.approx(pair.sum(axis=0), abs=2)
    assert both.interpolated_attributes == alone.interpolated_attributes == ()


# ── invalid queries ──────────────────────────────────────────────────────────────────────────────────────────

WIDE = Schema(
    attributes=(
        Identifier(name="id"),
        Integer(name="n", low=0, high=10**6),
        Categorical(name="a", codes=400),
        Categorical(name="b", codes=400),
        Categorical(name="c", codes=400),
        Categorical(name="sum", codes=2),
    ),
    derive=(Derive(name="sum", source="a", mapping=(("0", "1"),), otherwise="0"),),
)


@pytest.mark.parametrize(
    ("names", "where", "words"),
    [
        ((), {}, "the query is empty"),
        (("agee",), {}, "there is no attribute 'agee'; there are n, a"),
        (("a",), {"agee": 1}, "there is no attribute 'agee' to put a condition on"),
        (("a", "a"), {}, "'a' is named twice"),
        (("id",), {}, "'id' is of kind identifier: no numbers are released"),
        (("sum",), {}, "'sum' follows from 'a'; ask for 'a'"),
        (("a",), {"b": "401"}, "'401' is not a value of 'b'"),
        (("a", "b", "c"), {}, "the answer would have 64,000,000 counts, more than 1,000,000"),
        (("a",), {"b": ["1", "2"], "c": "3"}, "a, b, c have 64,000,000 combinations of values, more than 1,000,000"),
        (("a",), {"n": "3..500"}, "ends inside a cell of 'n'"),
    ],
)
def test_an_invalid_query_is_refused(names: tuple[str, ...], where: dict[str, Any], words: str) -> None:
    tables: dict[Clique, Any] = {(name,): np.ones(WIDE[name].size) for name in ("n", "a", "b", "c")}
    release = make_release(WIDE, tables, 1.0, None)
    synopsis = Synopsis(WIDE, (release,), fit_model(WIDE, release.rounds[0].recoding, [release], synthesis=GUM()))

    with pytest.raises(UserError, match=words):
        synopsis.marginal(*names, where=where)


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(UserError, match="there is no reconstruction method 'magic'"):
        EXACT.marginal("sex", method="magic")  # type: ignore[arg-type]


def test_a_name_that_is_not_text_is_refused() -> None:
    with pytest.raises(UserError, match="there is no attribute"):
        EXACT.marginal(3)  # type: ignore[arg-type]


# ── from a file, without the table ───────────────────────────────────────────────────────────────────────────


def test_answers_need_only_the_file_and_are_the_same(tmp_path: Path) -> None:
    rows = baskets(3000, 6)
    table, data = pa.table({f"x{index}": rows[:, index] for index in range(6)}), tmp_path / "people.parquet"
    dpsyn.write_table(table, data, synthetic=False)
    synopsis = dpsyn.measure(data, binary_schema(6), 2.0, recipe=dpsyn.PriView(views=parse_views("covering:2x3")))
    synopsis.save(tmp_path / "s.dpsyn")
    answers = [synopsis.marginal(*names) for names in (("x1",), ("x0", "x1"), ("x0", "x1", "x2", "x3", "x5"))]
    data.unlink()

    loaded = Synopsis.load(tmp_path / "s.dpsyn")

    assert not data.exists()
    for answer in answers:
        again = loaded.marginal(*answer.attributes)
        assert again.counts.tolist() == answer.counts.tolist()
        assert again.standard_errors.tolist() == answer.standard_errors.tolist()
        assert again.source == answer.source


def test_the_maximum_number_of_cells_is_a_million() -> None:
    assert query.MAX_QUERY_CELLS == 1_000_000
