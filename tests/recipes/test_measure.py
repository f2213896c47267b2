"""A table is measured, and rows are generated that match it."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import dpsyn
from dpsyn.accounting import Budget, Exponential, Ledger
from dpsyn.errors import BudgetError, LedgerError, SchemaError, UserError
from dpsyn.private import ReleaseLimits, open_private
from dpsyn.recipes import RECIPES, DPSyn, Independent
from dpsyn.recipes.candidates import Candidates
from dpsyn.schema import Categorical, Identifier, Integer, JointAttribute, Open, Real, Schema, UnitDeclaration
from dpsyn.schema.relations import NeighboringRelation
from dpsyn.selection import MarginalChoice

NO_NOISE = 10**6
"""An ε at which the noise is far below one row."""


def codes(**sizes: int) -> Schema:
    return Schema(attributes=tuple(Categorical(name=name, codes=size) for name, size in sizes.items()))


def dependent(rows: int, sizes: dict[str, int], seed: int = 0) -> pa.Table:
    """Columns that all follow a hidden one, more or less."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 12, rows)
    stray = {name: np.where(rng.random(rows) < 0.3, rng.integers(0, size, rows), 0) for name, size in sizes.items()}
    return pa.table({name: (hidden * size // 12 + stray[name]) % size for name, size in sizes.items()})


def tvd(one: pa.Table, other: pa.Table, clique: tuple[str, ...], schema: Schema) -> float:
    shape = [schema[name].cells for name in clique]

    def shares(table: pa.Table) -> NDArray[np.float64]:
        index = np.ravel_multi_index([table[name].to_numpy() for name in clique], shape)
        counts: NDArray[np.int64] = np.bincount(index, minlength=int(np.prod(shape)))
        return np.asarray(counts / table.num_rows)

    return float(np.abs(shares(one) - shares(other)).sum() / 2)


SIZES = {"a": 4, "b": 6, "c": 3, "d": 5}


def test_without_noise_one_marginal_matches_to_rounding() -> None:
    table, schema = dependent(5000, {"a": 7, "b": 9}), codes(a=7, b=9)

    synthetic = dpsyn.measure(table, schema, NO_NOISE, allow_large_epsilon=True, recipe="privsyn").generate(seed=1)

    assert synthetic.num_rows == 5000
    assert tvd(table, synthetic, ("a", "b"), schema) <= 63 / 2 / 5000  # every cell off by less than one row


def test_without_noise_disjoint_marginals_match_to_rounding() -> None:
    schema = codes(a=30, b=30, c=25, d=25)
    one, other = dependent(60, {"a": 30, "b": 30}, 1), dependent(60, {"c": 25, "d": 25}, 2)
    first, second = np.divmod(np.arange(3600), 60)  # every row of one with every row of the other: independent exactly
    table = pa.table([*one.take(first).columns, *other.take(second).columns], names=list("abcd"))

    synopsis = dpsyn.measure(table, schema, NO_NOISE, allow_large_epsilon=True, recipe="privsyn")
    synthetic = synopsis.generate(seed=1)

    assert {table.clique for table in synopsis.model.tables} == {("a", "b"), ("c", "d")}
    for pair in (("a", "b"), ("c", "d")):
        cells = len(set(zip(*(table[name].to_pylist() for name in pair), strict=True)))
        assert tvd(table, synthetic, pair, schema) <= cells / 2 / 3600


@pytest.mark.parametrize(("recipe", "mean", "most"), [("privsyn", 0.015, 0.06), ("dpsyn", 0.005, 0.01)])
def test_without_noise_overlapping_pairs_match_closely(recipe: str, mean: float, most: float) -> None:
    table, schema = dependent(20_000, SIZES), codes(**SIZES)

    synthetic = dpsyn.measure(table, schema, NO_NOISE, allow_large_epsilon=True, recipe=recipe).generate(seed=1)

    found = [tvd(table, synthetic, pair, schema) for pair in combinations(SIZES, 2)]
    assert np.mean(found) <= mean
    assert max(found) <= most


@pytest.mark.parametrize("recipe", ["dpsyn", "privsyn", "explore"])
def test_values_below_a_number_of_rows_are_merged_as_in_the_contest(recipe: str) -> None:
    """θ = max(4.5σ, 800): 900 rows are enough, those with 700 and 400 share a value."""
    table = pa.table({"a": np.repeat(range(4), (5000, 900, 700, 400)), "b": np.arange(7000) % 2})
    schema, contest = codes(a=4, b=2), {"rare_sigmas": "4.5", "rare_rows": "800"}

    plain, merged = (
        dpsyn.measure(
            table, schema, NO_NOISE, allow_large_epsilon=True, recipe=dpsyn.find_recipe(recipe, options)
        ).model.recoding
        for options in ({}, contest)
    )

    assert dict(zip(plain.names, plain.sizes, strict=True)) == {"a": 4, "b": 2}
    assert dict(zip(merged.names, merged.sizes, strict=True)) == {"a": 3, "b": 2}


def test_the_weights_of_the_budget_of_privsyn_may_be_decimals() -> None:
    table, schema = dependent(500, SIZES), codes(**SIZES)

    def first_rho(shares: str) -> float:
        recipe = dpsyn.find_recipe("privsyn", {"budget_shares": shares})
        certificate = dpsyn.measure(table, schema, 1.0, recipe=recipe).certificates[-1]
        assert certificate is not None
        return float(certificate.account.measurements[0].cost.rho)

    whole, decimal, other = (first_rho(shares) for shares in ("1,1,8", "0.1,0.1,0.8", "0.2,0.1,0.7"))

    assert whole == decimal
    assert other / whole == pytest.approx(2, rel=1e-6)


def test_the_default_recipe_finds_what_no_pair_tells() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (20_000, 5))
    bits[:, 2] = bits[:, 0] ^ bits[:, 1]  # each two of these three are independent
    bits[:, 4] = np.where(rng.random(20_000) < 0.9, bits[:, 3], bits[:, 4])
    schema = codes(**dict.fromkeys("abcde", 2))
    table = pa.table({name: bits[:, place] for place, name in enumerate("abcde")})

    synopsis = dpsyn.measure(table, schema, 10.0)

    assert tvd(table, synopsis.generate(seed=1), ("a", "b", "c"), schema) < 0.01
    assert any({"a", "b", "c"} <= {*found.clique} for found in synopsis.model.tables)


@pytest.mark.parametrize(("epsilon", "rounds"), [(0.1, 1), (1.5, 2)])
def test_pairs_are_looked_at_again_where_the_first_ones_tell_more_than_their_noise(epsilon: float, rounds: int) -> None:
    """Errors are some .7 of what pairs tell at ε = 0.1 and .1 at 1.5; the limit is .27."""
    sizes, rng = dict.fromkeys("abcdexyz", 6), np.random.default_rng(0)
    table = dependent(5_000, dict.fromkeys("abcde", 6))
    for name in "xyz":
        table = table.append_column(name, pa.array(rng.integers(0, 6, 5_000)))

    (release,) = dpsyn.measure(table, codes(**sizes), epsilon, delta=1e-9).releases

    assert [len(scores.cliques) for scores in release.scores] == [28] * rounds


def test_triples_are_scored_where_half_of_the_budget_pays_for_no_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """With three independent attributes and 4 000 rows at ε = 1 it is so in one release of a hundred."""
    rhos: list[float] = []
    choose = Candidates.choose

    def choose_nothing_with_half(self: Candidates, rho: float, one_way: Any) -> MarginalChoice:
        rhos.append(rho)
        nothing = MarginalChoice(np.empty(0, np.int64), np.empty(0))
        return nothing if rho == rhos[0] / 2 else choose(self, rho, one_way)

    monkeypatch.setattr(Candidates, "choose", choose_nothing_with_half)
    table = pa.table({name: np.random.default_rng(ord(name)).integers(0, 2, 4_000) for name in "abc"})

    (release,) = dpsyn.measure(table, codes(a=2, b=2, c=2), 100.0, allow_large_epsilon=True).releases

    assert rhos[0] / 2 in rhos
    assert [len(scores.cliques) for scores in release.scores] == [3, 4]


def test_what_hangs_together_is_measured_together_where_that_means_less_noise() -> None:
    rng = np.random.default_rng(3)
    ill = rng.random(20_000)
    names = "abcdefgh"
    table = pa.table({name: (ill + rng.normal(0, 0.3, 20_000) > 0.6).astype(int) for name in names})
    schema = codes(**dict.fromkeys(names, 2))

    together = dpsyn.measure(table, schema, 0.1)

    *_, stage = together.releases[0].rounds
    assert sum(len(m.clique) > 2 for m in stage.marginals) > 5
    covered = {pair for m in stage.marginals for pair in combinations(m.clique, 2)}
    assert covered == set(combinations(names, 2))

    alone = dpsyn.measure(table, schema, NO_NOISE, allow_large_epsilon=True)

    assert {len(m.clique) for stage in alone.releases[0].rounds for m in stage.marginals} <= {1, 2, 3}


def test_attributes_of_a_single_value_are_in_no_table_with_others() -> None:
    sizes = {**{f"c{number}": 1 for number in range(66)}, "a": 2, "b": 3}  # arrays have 64 axes at most

    synopsis = dpsyn.measure(dependent(500, sizes), codes(**sizes), 10.0)

    measured = {marginal.clique for stage in synopsis.releases[0].rounds for marginal in stage.marginals}
    assert {clique for clique in measured if len(clique) > 1} <= {("a", "b")}


def test_independent_matches_every_attribute_and_no_pair() -> None:
    table, schema = dependent(5000, SIZES), codes(**SIZES)

    synthetic = dpsyn.measure(table, schema, NO_NOISE, allow_large_epsilon=True, recipe="independent").generate(seed=1)

    assert all(tvd(table, synthetic, (name,), schema) <= size / 2 / 5000 for name, size in SIZES.items())
    assert min(tvd(table, synthetic, pair, schema) for pair in combinations(SIZES, 2)) > 0.1


@pytest.mark.parametrize("recipe", ["privsyn", "dpsyn"])
def test_dependence_survives_a_usual_budget(recipe: str) -> None:
    table, schema = dependent(30_000, SIZES), codes(**SIZES)

    synthetic = dpsyn.measure(table, schema, 1.0, recipe=recipe).generate(seed=1)
    shuffled = dpsyn.measure(table, schema, 1.0, recipe="independent").generate(seed=1)

    close, far = (
        np.mean([tvd(table, made, pair, schema) for pair in combinations(SIZES, 2)]) for made in (synthetic, shuffled)
    )
    assert close < far / 3


MANY = {f"x{place}": 2 + place % 5 for place in range(33)}  # arrays of numpy 1 have 32 axes at most
EDGES: dict[str, tuple[pa.Table, Schema]] = {
    "no rows": (dependent(0, SIZES), codes(**SIZES)),
    "one row": (dependent(1, SIZES), codes(**SIZES)),
    "one column": (dependent(500, {"a": 4}), codes(a=4)),
    "a constant column": (dependent(500, {"a": 1, "b": 3}), codes(a=1, b=3)),
    "only constant columns": (dependent(500, {"a": 1, "b": 1}), codes(a=1, b=1)),
    "20 000 categories": (dependent(3000, {"a": 20_000, "b": 5}), codes(a=20_000, b=5)),
    "33 columns": (dependent(500, MANY), codes(**MANY)),
    "all missing": (
        pa.table({"a": pa.nulls(500, pa.string()), "n": pa.nulls(500, pa.int64())}),
        Schema(
            attributes=(
                Categorical(name="a", values=("x", "y"), missing=True),
                Integer(name="n", low=0, high=10, missing=True),
            )
        ),
    ),
}

ANY_TABLE = sorted(set(RECIPES) - {"fourier", "mwem"})
"""Recipes for tables of every kind; ``test_baselines.py`` tells of the others."""


@pytest.mark.parametrize("recipe", ANY_TABLE)
@pytest.mark.parametrize("epsilon", [0.01, 1.0])
@pytest.mark.parametrize("edge", EDGES)
def test_any_table_gives_a_valid_one_of_the_same_schema(edge: str, epsilon: float, recipe: str) -> None:
    table, schema = EDGES[edge]

    synthetic = dpsyn.measure(table, schema, epsilon, recipe=recipe).generate(rows=50, seed=1)

    assert synthetic.num_rows == 50
    assert synthetic.column_names == list(schema.names)
    fit = dpsyn.check_table(schema, synthetic)
    assert not fit.problems
    assert all(attribute.inside + attribute.empty == 50 for attribute in fit.attributes)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_number_of_rows_is_estimated_unless_it_is_public(neighbors: NeighboringRelation) -> None:
    table = dependent(2000, SIZES)
    schema = Schema(attributes=codes(**SIZES).attributes, neighbors=neighbors)

    estimates = {dpsyn.measure(table, schema, 1.0, recipe="independent").rows for _ in range(4)}

    if neighbors == "replace":
        assert estimates == {2000}
    else:
        assert len(estimates) > 1  # four noisy estimates of deviation 30 and more are the same once in 10⁴ runs
        assert all(abs(estimate - 2000) < 800 for estimate in estimates)


def test_numbers_keep_their_spikes() -> None:
    rng = np.random.default_rng(0)
    income = np.where(rng.random(20_000) < 0.3, 0, rng.integers(1, 100_000, 20_000))
    income = np.where(rng.random(20_000) < 0.2, 50_000, income)
    schema = Schema(
        attributes=(Integer(name="income", low=0, high=100_000, spikes=(50_000,)), Categorical(name="b", codes=2))
    )
    table = pa.table({"income": income, "b": (income > 40_000).astype(int)})

    values = dpsyn.measure(table, schema, 3.0).generate(seed=1)["income"].to_numpy()

    assert abs(np.mean(values == 0) - np.mean(income == 0)) < 0.03
    assert abs(np.mean(values == 50_000) - np.mean(income == 50_000)) < 0.03


def test_values_of_open_attributes_are_bought() -> None:
    rng = np.random.default_rng(0)
    city = rng.choice(["Oslo", "Bergen", "Bodø"], 5000, p=[0.6, 0.39, 0.01])
    city[0] = "Nowhere"
    schema = Schema(attributes=(Open(name="city", other="elsewhere"), Categorical(name="b", codes=3)))

    synopsis = dpsyn.measure(pa.table({"city": city, "b": rng.integers(0, 3, 5000)}), schema, 2.0)
    found = set(synopsis.generate(seed=1)["city"].to_pylist())

    assert {"Oslo", "Bergen"} <= found <= {"Oslo", "Bergen", "Bodø", "elsewhere"}
    certificate = synopsis.certificates[0]
    assert certificate is not None
    assert certificate.account.total.delta > 0


def test_an_open_attribute_of_which_nothing_was_bought_is_pointed_out() -> None:
    table = pa.table({"city": [f"place {row}" for row in range(300)], "b": [row % 3 for row in range(300)]})
    schema = Schema(attributes=(Open(name="city", other="elsewhere"), Categorical(name="b", codes=3)))

    with pytest.warns(UserWarning, match="'city' is in enough rows.*every synthetic row has 'elsewhere'"):
        synopsis = dpsyn.measure(table, schema, 1.0)

    assert set(synopsis.generate(seed=1)["city"].to_pylist()) == {"elsewhere"}


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("recipe", sorted(set(RECIPES) - {"fourier"}))
def test_every_draw_of_a_release_is_in_its_certificate(recipe: str, epsilon: float) -> None:
    table, schema = dependent(3000, SIZES), codes(**SIZES)

    synopsis = dpsyn.measure(table, schema, epsilon, recipe=recipe)

    [release] = synopsis.releases
    assert release.certificate is not None
    marginals = [marginal for stage in release.rounds for marginal in stage.marginals]
    charged = release.certificate.account.measurements
    choices = [record for record in charged if isinstance(record.cost, Exponential)]  # of the marginal that follows
    assert len(choices) == (sum(len(marginal.clique) > 1 for marginal in marginals) if recipe == "mwem" else 0)
    assert len(charged) == len(marginals) + len(release.scores) + len(choices)
    budget, total = release.certificate.account.budget, release.certificate.account.total
    by_choices = sum(float(record.cost.rho) for record in choices)  # these steps were planned apart from ρ
    spent = float(sum(total.pure_epsilons)) if budget.is_pure else float(total.rho) - by_choices
    assert spent == pytest.approx(float(budget.amount), rel=1e-6)
    if choices:
        assert float(sum(total.pure_epsilons)) == pytest.approx(float(sum(budget.pure_epsilons)), rel=1e-6)


def test_extending_adds_a_release_and_lowers_the_error() -> None:
    table, schema = dependent(5000, SIZES), codes(**SIZES)
    before = dpsyn.measure(table, schema, 0.2, recipe="independent")

    after = dpsyn.measure(table, schema, 20.0, recipe="independent", extend=before)

    assert len(after.releases) == 2
    errors = [
        sum(tvd(table, made.generate(5000, seed=1), (name,), schema) for name in SIZES) for made in (before, after)
    ]
    assert errors[1] < errors[0] / 3


@pytest.mark.parametrize("recipe", ["privsyn", "dpsyn"])
def test_an_extended_synopsis_keeps_the_recoding_of_its_marginals(recipe: str) -> None:
    table, schema = dependent(20_000, SIZES), codes(**SIZES)
    before = dpsyn.measure(table, schema, 1.0, recipe=recipe)

    after = dpsyn.measure(table, schema, 1.0, recipe=recipe, extend=before)

    assert after.model.recoding is before.model.recoding
    assert {t.clique for t in before.model.tables if len(t.clique) > 1} <= {
        m.clique for release in after.releases for stage in release.rounds for m in stage.marginals
    }


@pytest.mark.parametrize(
    "other",
    [
        codes(a=4, b=6, c=3, d=6),
        Schema(attributes=codes(**SIZES).attributes, neighbors="replace"),
        Schema(attributes=codes(**SIZES).attributes, dataset="others"),
    ],
)
def test_a_synopsis_of_something_else_is_not_extended(other: Schema) -> None:
    table = dependent(300, SIZES)
    before = dpsyn.measure(table, codes(**SIZES), 1.0, recipe="independent")

    with pytest.raises(SchemaError, match="to extend"):
        dpsyn.measure(table, other, 1.0, extend=before)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_the_kind_of_table_that_came_in_comes_out(kind: str) -> None:
    import polars

    table = dependent(300, SIZES)
    given: Any = {"pandas": table.to_pandas, "polars": lambda: polars.from_arrow(table), "arrow": lambda: table}[kind]()

    synthetic = dpsyn.measure(given, codes(**SIZES), 1.0).generate(10)

    assert type(synthetic) is type(given)
    assert len(synthetic) == 10


def test_the_same_seed_gives_the_same_rows_and_another_does_not() -> None:
    synopsis = dpsyn.measure(dependent(3000, SIZES), codes(**SIZES), 1.0)

    first, again, other = (synopsis.generate(seed=seed) for seed in (7, 7, 8))

    assert first.equals(again)
    assert not first.equals(other)


def test_two_releases_of_the_same_table_have_other_noise() -> None:
    table, schema = dependent(3000, SIZES), codes(**SIZES)

    one, other = (dpsyn.measure(table, schema, 1.0, recipe="independent") for _ in range(2))

    assert one.releases[0].rounds[0].marginals[0].raw.tolist() != other.releases[0].rounds[0].marginals[0].raw.tolist()


def test_delta_follows_the_expected_size_and_a_large_one_warns() -> None:
    table = dependent(300, SIZES)
    schema = Schema(attributes=codes(**SIZES).attributes, expected_size=100_000)

    certificate = dpsyn.measure(table, schema, 1.0, recipe=Independent(noise="gaussian")).certificates[0]
    with pytest.warns(UserWarning, match="large for a table of about 100,000 rows"):
        dpsyn.measure(table, schema, 1.0, delta=1e-6, recipe="independent")

    assert certificate is not None
    assert float(certificate.account.budget.delta) == pytest.approx(1e-10)


def test_a_release_is_recorded_in_the_ledger_and_refused_beyond_its_cap(tmp_path: Path) -> None:
    table, schema = dependent(300, SIZES), codes(**SIZES)
    ledger = tmp_path / "ledger.db"
    Ledger.create(ledger).set_cap("people", dpsyn.Cap.for_guarantee(2, 1e-8))

    dpsyn.measure(table, schema, 1.0, ledger=ledger, dataset="people")

    with pytest.raises(UserError, match="cap of 'people'"):
        dpsyn.measure(table, schema, 1.9, ledger=ledger, dataset="people")
    [account] = dpsyn.Ledger(ledger).datasets()
    assert len(account.runs) == 1
    assert account.runs[0].closed


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"recipe": "privsin"}, UserError, "there is no recipe 'privsin'; did you mean privsyn"),
        ({"epsilon": 0}, BudgetError, "give a positive number"),
        ({"delta": 2.0}, BudgetError, "small probability"),
        ({"recipe": DPSyn(weights={"a": 1e-200})}, UserError, "from 1e-06 to below"),
    ],
)
def test_mistakes_are_told_before_anything_is_read(options: dict[str, Any], error: type[Exception], words: str) -> None:
    given = {"epsilon": 1.0, **options}

    with pytest.raises(error, match=words):
        dpsyn.measure("there-is-no-such-file.csv", codes(a=2), **given)


def test_a_synthesizer_fits_and_samples() -> None:
    table = dependent(500, SIZES).to_pandas()

    synthesizer = dpsyn.Synthesizer(codes(**SIZES), epsilon=1.0, recipe="independent")
    with pytest.raises(UserError, match="call fit first"):
        synthesizer.sample(5)
    sampled = synthesizer.fit(table).sample(25, seed=1)

    assert sampled.shape == (25, 4)
    assert sampled.equals(synthesizer.synopsis.generate(25, seed=1))


def test_a_synthesizer_follows_the_conventions_of_scikit_learn() -> None:
    from sklearn.base import clone
    from sklearn.utils.validation import check_is_fitted

    recipe = dpsyn.Independent()
    synthesizer = dpsyn.Synthesizer(codes(**SIZES), epsilon=2.0, recipe=recipe)

    copy = clone(synthesizer)
    params = copy.get_params()
    assert (params["epsilon"], params["recipe"]) == (2.0, recipe)
    assert copy.set_params(epsilon=3.0).epsilon == 3.0
    assert repr(copy).startswith("Synthesizer(epsilon=3.0, recipe=Independent(")
    with pytest.raises(UserError, match="no parameter 'eps'"):
        copy.set_params(eps=1)
    check_is_fitted(copy.fit(dependent(200, SIZES)))


def test_a_synthesizer_without_a_schema_says_what_to_give() -> None:
    with pytest.raises(UserError, match="a schema is needed"):
        dpsyn.Synthesizer(epsilon=1.0).fit(dependent(50, SIZES))


def test_a_second_fit_warns_that_it_spends_again() -> None:
    table = dependent(200, SIZES)
    synthesizer = dpsyn.Synthesizer(codes(**SIZES), epsilon=1.5, recipe="independent").fit(table)

    with pytest.warns(UserWarning, match=r"spends ε = 1\.5 again"):
        synthesizer.fit(table)


def test_persons_with_many_rows_are_protected_together() -> None:
    rng = np.random.default_rng(0)
    schema = Schema(
        attributes=(Identifier(name="who"), Categorical(name="a", codes=3), Real(name="x", low=0, high=1, decimals=2)),
        privacy_unit=UnitDeclaration(id="who", max_rows=2),
    )
    table = pa.table({"who": rng.integers(0, 200, 2000), "a": rng.integers(0, 3, 2000), "x": rng.random(2000)})

    synopsis = dpsyn.measure(table, schema, 50.0, allow_large_epsilon=True, recipe="independent")

    assert abs(synopsis.rows - 400) < 40  # two rows of each of 200 persons
    assert "at most 2 rows per who are used" in synopsis.certificates[0].text()  # type: ignore[union-attr]


@pytest.mark.check
def test_more_budget_never_makes_pairs_too_large_to_measure() -> None:
    rng = np.random.default_rng(0)
    a = np.minimum(rng.zipf(1.3, 40_000), 3000) - 1
    b = np.where(rng.random(40_000) < 0.7, a, rng.permutation(a))
    schema = codes(a=3000, b=3000)

    synthetic = dpsyn.measure(pa.table({"a": a, "b": b}), schema, NO_NOISE, allow_large_epsilon=True).generate(seed=1)

    assert np.mean(synthetic["a"].to_numpy() == synthetic["b"].to_numpy()) > 0.6


def test_a_release_that_is_in_a_ledger_is_extended_with_that_ledger_only(tmp_path: Path) -> None:
    table, schema = dependent(300, SIZES), codes(**SIZES)
    ledger = Ledger.create(tmp_path / "ledger.db")
    other = Ledger.create(tmp_path / "other.db")
    options: dict[str, Any] = {"recipe": "independent", "dataset": "people"}
    first = dpsyn.measure(table, schema, 1.0, ledger=ledger, **options)
    before = ledger.verify(), other.verify()

    with pytest.raises(LedgerError, match="was recorded in a ledger, and a release that extends it must be, too"):
        dpsyn.measure(table, schema, 1.0, extend=first, **options)
    with pytest.raises(LedgerError, match=r"recorded in another ledger: run \w+ is not in .*other\.db"):
        dpsyn.measure(table, schema, 1.0, extend=first, ledger=other, **options)
    assert (ledger.verify().head, other.verify().head) == (before[0].head, before[1].head)
    second = dpsyn.measure(table, schema, 1.0, extend=first, ledger=ledger, **options)

    assert len(second.releases) == 2
    assert len(ledger.datasets()[0].runs) == 2


def test_a_release_without_a_ledger_may_be_extended_with_one(tmp_path: Path) -> None:
    table, schema = dependent(300, SIZES), codes(**SIZES)
    ledger = Ledger.create(tmp_path / "ledger.db")
    options: dict[str, Any] = {"recipe": "independent", "dataset": "people"}
    first = dpsyn.measure(table, schema, 1.0, **options)

    second = dpsyn.measure(table, schema, 1.0, extend=first, ledger=ledger, **options)

    with pytest.raises(LedgerError, match="was recorded in a ledger"):
        dpsyn.measure(table, schema, 1.0, extend=second, **options)


def test_a_weak_synopsis_does_not_spoil_what_extends_it() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 40, 6000)
    table, schema = pa.table({"a": a, "b": a // 2, "c": rng.integers(0, 3, 6000)}), codes(a=40, b=20, c=3)
    weak = dpsyn.measure(table, schema, 0.05)

    extended = dpsyn.measure(table, schema, 5.0, extend=weak)

    assert tvd(table, extended.generate(6000, seed=1), ("a", "b"), schema) < 0.1


def test_weights_move_budget_to_what_matters() -> None:
    sizes = dict.fromkeys("abcdef", 8)
    table, schema = dependent(4000, sizes), codes(**sizes)

    plain, weighted = (
        dpsyn.measure(table, schema, 0.5, recipe=DPSyn(weights=weights)) for weights in ({}, {"f": 10.0})
    )

    def noise(synopsis: dpsyn.Synopsis, mattering: bool) -> float:
        marginals = [m for m in synopsis.releases[0].rounds[-1].marginals if ("f" in m.clique) == mattering]
        return min([m.std for m in marginals if len(m.clique) == 2], default=np.inf)

    assert noise(weighted, True) < noise(plain, True)
    assert noise(weighted, True) < noise(weighted, False)


@pytest.mark.parametrize("weights", ["a", ["a"], {"a": "much"}, {"a": None}])
def test_what_are_no_weights_is_refused(weights: Any) -> None:
    with pytest.raises(
        UserError, match=r"are no attribute weights; give numbers|give a dictionary such as \{'income': 4\}"
    ):
        dpsyn.measure(dependent(50, SIZES), codes(**SIZES), 1.0, recipe=DPSyn(weights=weights))


def test_the_weight_of_an_attribute_counts_where_it_is_measured_as_one_with_others() -> None:
    table = dependent(5000, dict.fromkeys("abcde", 4))
    schema = msgspec.structs.replace(
        codes(**dict.fromkeys("abcde", 4)), measure_together=(JointAttribute(name="both", attributes=("a", "b")),)
    )

    (release,) = dpsyn.measure(table, schema, 2.0, recipe=DPSyn(weights={"a": 100.0})).releases

    noise = {marginal.clique: marginal.std for marginal in release.rounds[-1].marginals}
    heaviest = max(deviation for clique, deviation in noise.items() if "both" in clique)
    assert all(deviation > 2 * heaviest for clique, deviation in noise.items() if "both" not in clique)


def test_triples_beyond_what_a_marginal_may_have_are_not_asked_for() -> None:
    rng = np.random.default_rng(0)
    columns = rng.integers(0, 6, (3, 20_000))
    columns[2] = (columns[0] + columns[1] + rng.integers(0, 3, 20_000)) % 6  # no pair tells anything, the triple much
    columns[1] = np.where(rng.random(20_000) < 0.2, columns[0], columns[1])
    table, budget = pa.table(dict(zip("abc", columns, strict=True))), Budget.for_guarantee(100, 1e-6)
    widest = []
    for cells in (1000, 100):
        with open_private(
            table, codes(a=6, b=6, c=6), budget, limits=ReleaseLimits(max_marginal_cells=cells)
        ) as private:
            found = DPSyn().measure(private)
        widest.append(max(len(marginal.clique) for stage in found.rounds for marginal in stage.marginals))

    assert widest == [3, 2]
