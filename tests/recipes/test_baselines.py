"""What PriView is compared with: every table, Fourier coefficients, multiplicative weights."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import dpsyn
from dpsyn.accounting import Exponential, Laplace
from dpsyn.encoding import Recoding
from dpsyn.errors import UserError
from dpsyn.forecasts.reached import predict_reached
from dpsyn.query import collect_observations
from dpsyn.report.synopsis import pairs_were_measured
from dpsyn.schema import Categorical, Open, Schema
from tests.query.noisy_synopses import baskets, binary_schema, count_table

NO_NOISE = 10**6
ROWS = baskets(4000, 6)
TABLE = pa.table({f"x{place}": ROWS[:, place] for place in range(6)})


def off(answer: Any, places: tuple[int, ...]) -> float:
    """The share of rows in a wrong cell."""
    return float(np.abs(answer.counts - count_table(ROWS, places, [2] * 6)).sum() / 2 / len(ROWS))


def names(places: tuple[int, ...]) -> list[str]:
    return [f"x{place}" for place in places]


@pytest.mark.parametrize("recipe", ["direct", "fourier"])
def test_without_noise_every_table_of_so_many_attributes_is_told_exactly(recipe: str) -> None:
    synopsis = dpsyn.measure(
        TABLE, binary_schema(6), NO_NOISE, allow_large_epsilon=True, recipe=dpsyn.find_recipe(recipe, {"ways": 3})
    )

    for places in combinations(range(6), 3):
        answer = synopsis.marginal(*names(places))
        assert answer.source == "covered"
        assert off(answer, places) < 0.001
    assert off(synopsis.marginal(*names((0, 1, 2, 3))), (0, 1, 2, 3)) < 0.1


def test_the_errors_of_fourier_are_those_of_its_coefficients() -> None:
    synopsis = dpsyn.measure(TABLE, binary_schema(6), 1.0, recipe=dpsyn.Fourier(ways=2))

    answer = synopsis.marginal("x1", "x4")

    [release] = synopsis.releases
    [coefficients] = release.scores
    assert len(coefficients.cliques) == 1 + 6 + 15
    assert release.rounds == ()
    assert answer.source == "covered"
    assert answer.standard_errors == pytest.approx(coefficients.std * np.sqrt(4) / 4, rel=1e-6)


@pytest.mark.parametrize(("neighbors", "delta_of_one"), [("add-remove", 1), ("replace", 2)])
def test_a_coefficient_has_the_noise_of_the_paper(neighbors: Any, delta_of_one: int) -> None:
    """Laplace noise of scale m·Δ/ε for m coefficients; a replaced row changes each by 2 (Barak et al., theorem 5)."""
    schema = msgspec.structs.replace(binary_schema(6), neighbors=neighbors)

    synopsis = dpsyn.measure(TABLE, schema, 0.5, delta=0, recipe=dpsyn.Fourier(ways=2))

    [certificate] = synopsis.certificates
    assert certificate is not None
    [measurement] = certificate.account.measurements
    assert isinstance(measurement.cost, Laplace)
    assert measurement.cost.scale == pytest.approx(22 * delta_of_one / 0.5)
    assert synopsis.releases[0].scores[0].std == measurement.cost.std


def test_coefficients_are_counted_exactly_and_have_noise_of_their_standard_deviation() -> None:
    synopsis = dpsyn.measure(TABLE, binary_schema(6), 0.5, recipe=dpsyn.Fourier(ways=4))

    [scores] = synopsis.releases[0].scores
    signs = 1 - 2 * ROWS  # +1 for 0 and −1 for 1; the product over a set is its parity
    exact = np.array([signs[:, [int(n[1:]) for n in names]].prod(axis=1).sum() for names in scores.cliques])
    errors = (scores.values - exact) / scores.std
    assert len(errors) == 57
    assert 0.7 < np.sqrt((errors**2).mean()) < 1.35  # five standard deviations of the root mean square of 57


def test_coefficients_of_pairs_count_as_measured_and_no_error_of_marginals_is_reported() -> None:
    pairs, alone = (dpsyn.measure(TABLE, binary_schema(6), 1.0, recipe=dpsyn.Fourier(ways=ways)) for ways in (2, 1))

    assert pairs_were_measured(pairs)
    assert not pairs_were_measured(alone)
    assert predict_reached(pairs) is None


def test_the_one_way_error_of_views_is_that_of_their_noise() -> None:
    reached = predict_reached(dpsyn.measure(TABLE, binary_schema(6), 1.0, recipe=dpsyn.Direct()))

    assert reached is not None
    assert 1e-4 < reached.one_way < 0.05


def test_coefficients_tell_nothing_of_attributes_with_other_codes() -> None:
    synopsis = dpsyn.measure(TABLE, binary_schema(6), 1.0, recipe="fourier")
    recoding = synopsis.model.recoding
    exchanged = replace(recoding.columns[0], tables=(np.array([1, 0]),))

    def count_coefficients(recoding: Recoding) -> int:
        return len(collect_observations(synopsis.releases, recoding, ("x1", "x0")))

    assert count_coefficients(recoding) == 4
    assert count_coefficients(replace(recoding, columns=(exchanged, *recoding.columns[1:]))) == 2  # rows, and x1


def test_fourier_rows_follow_pairs() -> None:
    synopsis = dpsyn.measure(TABLE, binary_schema(6), NO_NOISE, allow_large_epsilon=True, recipe=dpsyn.Fourier(ways=2))

    synthetic = synopsis.generate(4000, seed=1)

    made = np.stack([synthetic[name].to_numpy() for name in TABLE.column_names], axis=1)
    for pair in combinations(range(6), 2):
        assert np.abs(count_table(made, pair, [2] * 6) - count_table(ROWS, pair, [2] * 6)).sum() / 8000 < 0.02


@pytest.mark.parametrize(("replay", "max_error"), [(0, 0.5), (100, 0.06)])
def test_multiplicative_weights_come_nearer_than_a_uniform_table(replay: int, max_error: float) -> None:
    synopsis = dpsyn.measure(TABLE, binary_schema(6), 20.0, recipe=dpsyn.MWEM(replay=replay))

    found = [off(synopsis.marginal(*names(pair)), pair) for pair in combinations(range(6), 2)]

    uniform = [np.abs(1000 - count_table(ROWS, pair, [2] * 6)).sum() / 2 / 4000 for pair in combinations(range(6), 2)]
    assert np.mean(found) < min(max_error, float(np.mean(uniform)))
    assert synopsis.marginal("x0", "x1", "x2").source == "model"
    [release] = synopsis.releases
    assert release.certificate is not None
    choices = [m for m in release.certificate.account.measurements if isinstance(m.cost, Exponential)]
    assert [m.purpose for m in choices] == ["which of 15 marginals is predicted worst"] * 10
    assert release.scores == ()  # only the choices were released, not the distances
    assert synopsis.generate(100, seed=1).num_rows == 100


def test_the_basic_variant_is_the_mean_of_all_tables_the_first_included() -> None:
    table = pa.table({"x0": [0] * 1000})

    synopsis = dpsyn.measure(table, binary_schema(1), NO_NOISE, allow_large_epsilon=True, recipe="mwem")

    zeros = [0.5]
    for _ in range(10):
        odds = zeros[-1] / (1 - zeros[-1]) * np.exp((1 - zeros[-1]) / 2 + (1 - zeros[-1]) / 2)
        zeros.append(odds / (1 + odds))
    [held] = synopsis.model.tables
    assert held.values / held.values.sum() == pytest.approx([np.mean(zeros), 1 - np.mean(zeros)], abs=1e-3)


def test_half_of_a_pure_budget_is_for_choices_as_in_the_paper() -> None:
    synopsis = dpsyn.measure(TABLE, binary_schema(6), 1.0, delta=0, recipe=dpsyn.MWEM(rounds=4, replay=100))

    [release] = synopsis.releases
    assert release.certificate is not None
    [_count, *costs] = [m.cost for m in release.certificate.account.measurements]
    spent = {kind: sum(sum(c.pure_epsilons) for c in costs if isinstance(c, kind)) for kind in (Exponential, Laplace)}
    assert spent[Exponential] == spent[Laplace] == pytest.approx(0.5, rel=0.02)


def test_choices_and_marginals_have_equal_parts_of_a_gaussian_budget() -> None:
    schema = binary_schema(6)

    budget = dpsyn.MWEM(rounds=7).plan_budget(schema, 1.0, 1e-9)

    allowed = float(dpsyn.Direct().plan_budget(schema, 1.0, 1e-9).rho)
    assert len(budget.pure_epsilons) == 7
    assert float(sum(step**2 / 2 for step in budget.pure_epsilons)) == pytest.approx(allowed / 2)
    assert allowed / 2 < budget.rho < allowed  # the certificate composes choices more tightly than by their ρ


@pytest.mark.parametrize(
    ("recipe", "schema", "words"),
    [
        ("fourier", Schema(attributes=(Categorical(name="a", codes=3),)), "for binary attributes"),
        ("fourier", Schema(attributes=(Categorical(name="a", codes=2, missing=True),)), "for binary attributes"),
        ("fourier", Schema(attributes=(Open(name="a"),)), "for binary attributes"),
        ("mwem", Schema(attributes=(Open(name="a"),)), "needs public values, but 'a' is open"),
        ("mwem", Schema(attributes=tuple(Categorical(name=n, codes=100) for n in "abc")), "1,000,000 cells"),
        ("mwem", Schema(attributes=tuple(Categorical(name=n, codes=512) for n in "ab")), "set fewer rounds or ways"),
    ],
)
def test_tables_that_a_recipe_is_not_for_are_refused_before_anything_is_reserved(
    recipe: str, schema: Schema, words: str, tmp_path: Any
) -> None:
    table, ledger = pa.table({name: ["1", "0"] for name in schema.names}), tmp_path / "ledger.db"

    with pytest.raises(UserError, match=words):
        dpsyn.measure(table, schema, 1.0, recipe=recipe, ledger=ledger, dataset="d")

    assert not ledger.exists()


@pytest.mark.parametrize("recipe", ["fourier", "mwem"])
def test_a_recipe_with_a_model_of_its_own_extends_nothing(recipe: str) -> None:
    before = dpsyn.measure(TABLE, binary_schema(6), 1.0, recipe="independent")

    with pytest.raises(UserError, match="cannot extend a synopsis"):
        dpsyn.measure(TABLE, binary_schema(6), 1.0, recipe=recipe, extend=before)


@pytest.mark.parametrize("recipe", [dpsyn.Direct(), dpsyn.Fourier(), dpsyn.MWEM(), dpsyn.MWEM(replay=100)])
@pytest.mark.parametrize("rows", [0, 1])
def test_tables_without_rows_are_no_trouble(recipe: dpsyn.Recipe, rows: int) -> None:
    synopsis = dpsyn.measure(TABLE.slice(0, rows), binary_schema(6), 1.0, recipe=recipe)

    assert synopsis.generate(10, seed=1).num_rows == 10
    assert np.isfinite(synopsis.marginal("x0", "x1", "x2").counts).all()


def test_too_many_parities_are_refused() -> None:
    wide = pa.table({f"x{place}": [0, 1] for place in range(60)})

    with pytest.raises(UserError, match="sets of up to 5 attributes; set fewer ways"):
        dpsyn.measure(wide, binary_schema(60), 1.0, recipe=dpsyn.Fourier(ways=5))
