from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dpsyn
from dpsyn.accounting import Ledger, PartitionSelection
from dpsyn.errors import UserError
from dpsyn.forecasts import closed_form, simulated_releases
from dpsyn.forecasts.closed_form import expect_errors, expect_thresholds
from dpsyn.forecasts.reached import predict_reached
from dpsyn.forecasts.results import ExpectedErrors, Forecast
from dpsyn.recipes.adaptive_selection import TARGET_WEIGHT
from dpsyn.recipes.dpsyn import MAX_SHARE_WITH_TARGET
from dpsyn.schema import Categorical, Integer, Open, Schema
from dpsyn.simulation import simulate

CODED = Schema(attributes=tuple(Categorical(name=f"c{number}", codes=3 + number % 4) for number in range(8)))
WITH_TEXT = Schema(
    attributes=(
        Categorical(name="a", codes=3),
        Open(name="street"),
        Open(name="job"),
        Integer(name="n", low=0, high=9),
    ),
    expected_size=400,
)


@pytest.fixture(scope="module")
def expected() -> Forecast:
    return dpsyn.forecast(CODED, (5.0, 0.1), rows=1_000)


def test_a_larger_budget_means_smaller_errors(expected: Forecast) -> None:
    low, high = expected.budgets

    assert (low.epsilon, high.epsilon) == (0.1, 5.0)
    for name in ("weak", "moderate", "strong"):
        assert getattr(low, name).two_way > 2 * getattr(high, name).two_way
        assert getattr(low, name).one_way > 2 * getattr(high, name).one_way
    assert low.attributes[0].survives > 10 * high.attributes[0].survives


def test_baselines_do_not_depend_on_the_budget(expected: Forecast) -> None:
    low, high = expected.budgets

    assert low.moderate.shuffled == high.moderate.shuffled
    assert low.moderate.sampling == high.moderate.sampling < low.moderate.shuffled


def test_the_verdict_states_from_which_budget_pairs_are_kept(expected: Forecast) -> None:
    assert not expected.budgets[0].moderate.keeps_pairs
    assert expected.pairs_from == 5.0
    assert "At ε = 0.1 most pairs will be noise" in expected.verdict
    assert "Pairs are kept from ε = 5" in str(expected)
    assert expected.notice in str(expected)


def test_a_forecast_is_plain_data(expected: Forecast) -> None:
    data = json.loads(json.dumps(expected.to_dict()))

    assert next(iter(data)) == "notice"
    assert data["pairs_from"] == 5.0
    assert data["budgets"][0]["moderate"]["two_way"] == expected.budgets[0].moderate.two_way
    low, high = data["budgets"][0]["two_way_range"]
    assert low < data["budgets"][0]["moderate"]["two_way"] < high


def test_pairs_are_lost_where_no_budget_keeps_them(expected: Forecast) -> None:
    poor = replace(expected, budgets=expected.budgets[:1])

    assert poor.pairs_from is None
    assert "Pairs are lost at every ε up to 0.1" in poor.verdict


@pytest.mark.parametrize(
    ("two_way", "words"),
    [(0.2, "most pairs will be noise"), (0.08, "about 57% of their dependence"), (0.04, "about as good as in another")],
)
def test_a_verdict_follows_from_the_baselines(two_way: float, words: str) -> None:
    errors = ExpectedErrors(one_way=0.01, two_way=two_way, shuffled=0.12, sampling=0.05)

    assert words in errors.verdict


def test_large_tables_are_simulated_smaller_with_as_much_less_noise() -> None:
    """The logarithm of the ratio of the two errors has a standard deviation of .07: a false alarm is one of 5 sigma."""
    small = dpsyn.forecast(CODED, 1.0, rows=2_000, recipe="independent", releases=10)
    large = dpsyn.forecast(CODED, 0.1, rows=20_000, recipe="independent", releases=10)

    assert small.scaling == ""
    assert large.simulated_rows == 2_000
    assert "2,000 rows instead of 20,000" in large.scaling
    assert large.budgets[0].moderate.sampling < small.budgets[0].moderate.sampling / 2
    assert large.budgets[0].moderate.one_way == pytest.approx(small.budgets[0].moderate.one_way, rel=0.5)
    assert large.budgets[0].attributes[0].survives == pytest.approx(
        10 * small.budgets[0].attributes[0].survives, rel=0.2
    )


def test_some_of_many_columns_are_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_releases, "MAX_SIMULATED_ATTRIBUTES", 4)

    expected = dpsyn.forecast(CODED, 1.0, rows=300, recipe=dpsyn.DPSyn(weights={"c5": 2.0}))

    assert "4 columns instead of 8" in expected.scaling
    assert "c5" in [attribute.name for attribute in expected.budgets[0].attributes]


def test_a_drafted_schema_and_open_attributes_can_be_forecast() -> None:
    drafted = Schema(attributes=(*WITH_TEXT.attributes, Categorical(name="d", codes=2, provenance="data")))

    expected = dpsyn.forecast(drafted, 0.2, rows=400)

    listed = {attribute.name: attribute.listed for attribute in expected.budgets[0].attributes}
    assert listed["a"] is None
    assert listed["street"] is not None
    assert listed["street"] > 80
    assert expected.empty_attributes(0.2) == ("street", "job")
    assert "no text is listed for street, job" in expected.verdict


def test_nothing_is_read_or_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a forecast needs no ledger")

    monkeypatch.setenv("DPSYN_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(Ledger, "__init__", refuse)
    monkeypatch.chdir(tmp_path)

    dpsyn.forecast(CODED, 1.0, rows=100, recipe="independent")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rows": None}, "no expected_size"),
        ({"epsilon": 0.0}, "positive numbers"),
        ({"epsilon": ()}, "positive numbers"),
        ({"epsilon": "1"}, "positive numbers"),
        ({"releases": 0}, "releases is 0"),
        ({"recipe": 5}, "name of a recipe"),
        ({"target": "nobody"}, "not measured"),
    ],
)
def test_bad_input_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        dpsyn.forecast(CODED, **{"epsilon": 1.0, "rows": 100, **options})


# ── the closed form ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("epsilon", "releases"), [(0.3, 8), (5.0, 2)])  # at a low ε, one may be off by half
def test_the_closed_form_agrees_with_the_simulation(epsilon: float, releases: int) -> None:
    [simulated] = dpsyn.forecast(CODED, epsilon, rows=1_000, releases=releases).budgets

    quick = expect_errors(CODED, epsilon, rows=1_000)

    assert 1 / 1.5 < quick.two_way / simulated.moderate.two_way < 1.5
    assert 1 / 2 < quick.one_way / simulated.moderate.one_way < 2


def test_the_closed_form_has_the_shuffled_columns_of_the_simulation(expected: Forecast) -> None:
    assert expect_errors(CODED, 5.0, rows=1_000).shuffled == expected.budgets[1].moderate.shuffled


def test_without_pairs_the_closed_form_has_better_columns_and_no_dependence() -> None:
    alone, together = (expect_errors(CODED, 5.0, rows=1_000, pairs=pairs) for pairs in (False, True))

    assert alone.one_way < together.one_way
    assert alone.two_way > together.two_way
    assert alone.two_way >= alone.shuffled


def test_a_target_has_better_pairs_and_others_worse_ones() -> None:
    """Weights alone shift the budget, too, but by them no error is reported apart."""
    without, with_target, weighted = (
        expect_errors(CODED, 1.0, rows=1_000, **options)
        for options in ({}, {"target": CODED.names[0]}, {"weights": {CODED.names[0]: 4.0}})
    )

    assert without.with_target is weighted.with_target is None
    assert with_target.with_target is not None
    assert with_target.with_target < with_target.two_way
    assert with_target.one_way >= without.one_way
    assert weighted.two_way != without.two_way


def test_the_closed_form_follows_the_constants_of_the_recipe() -> None:
    assert closed_form.MAX_ONE_WAY_SHARE_WITH_TARGET == MAX_SHARE_WITH_TARGET
    assert closed_form.TARGET_WEIGHT == TARGET_WEIGHT


def test_a_simulated_forecast_reports_pairs_with_the_target() -> None:
    expected = dpsyn.forecast(CODED, 20.0, rows=300, target=CODED.names[0])

    errors = expected.budgets[0].moderate
    assert errors.with_target is not None
    assert 0 < errors.with_target < errors.shuffled


@pytest.mark.filterwarnings("ignore:no value of the open attribute:UserWarning")
@pytest.mark.parametrize("numbers", [True, False])
def test_the_closed_form_has_the_thresholds_of_a_release(numbers: bool) -> None:
    wide = Integer(name="n", low=0, high=99_999) if numbers else Integer(name="n", low=0, high=9)
    schema = Schema(attributes=(*WITH_TEXT.attributes[:3], wide), expected_size=400)
    synopsis = dpsyn.measure(simulate(schema, 50, 1).table(), schema, 0.7, delta=1e-8)
    costs = [record.cost for record in synopsis.certificates[0].account.measurements]  # type: ignore[union-attr]

    thresholds = expect_thresholds(schema, 0.7, rows=400, delta=1e-8)

    assert list(thresholds.values()) == [cost.threshold for cost in costs if isinstance(cost, PartitionSelection)]
    assert expect_thresholds(CODED, 1.0, rows=100) == {}


def test_one_column_has_no_pairs() -> None:
    schema = Schema(attributes=(Categorical(name="a", codes=4),))

    errors = expect_errors(schema, 1.0, rows=500)

    assert 0 < errors.one_way < 0.2
    assert errors.shuffled == errors.sampling == 0


# ── what was reached ─────────────────────────────────────────────────────────────────────────────────────────


def test_what_was_reached_is_predicted_from_released_numbers() -> None:
    table = simulate(CODED, 4_000, 4).table()
    reached = [predict_reached(dpsyn.measure(table, CODED, epsilon)) for epsilon in (0.5, 5.0)]

    assert all(each is not None and each.two_way is not None for each in reached)
    low, high = (each for each in reached if each is not None)
    assert low.one_way > 2 * high.one_way
    assert (low.two_way or 0) > 1.5 * (high.two_way or 0)
    assert 0.3 < (high.two_way or 0) / high.expected.two_way < 3
    assert "Forecast for ε = 5 and about " in high.description


def test_pairs_that_nobody_measured_are_not_known() -> None:
    reached = predict_reached(dpsyn.measure(simulate(CODED, 300, 4).table(), CODED, 1.0, recipe="independent"))

    assert reached is not None
    assert reached.two_way is None
    assert "about pairs they tell nothing" in reached.description


def test_imported_numbers_have_no_forecast() -> None:
    schema = Schema(attributes=(Categorical(name="a", codes=2), Categorical(name="b", codes=2)))
    counts = {("a", "b"): [[2, 0], [0, 2]]}

    assert predict_reached(dpsyn.Synopsis.from_marginals(schema, counts, std=0.5, source="a survey")) is None
