"""Rows sampled from a synopsis: under conditions, several times, and by each synthesis method."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsyn import Synopsis
from dpsyn.encoding import Codec, Recoding
from dpsyn.errors import UserError
from dpsyn.inference import GUM, MCF, ConstantDecay, Gibbs, Model, Synthesis, fit_distribution, fit_model
from dpsyn.inference.gibbs import GibbsModel
from dpsyn.progress import Progress
from dpsyn.sampling import sampler
from dpsyn.schema import Categorical, Integer, Schema, Total

SCHEMA = Schema(
    attributes=(
        Categorical(name="sex", values=("F", "M")),
        Integer(name="age", low=0, high=99, bins=10, missing=True),
        Categorical(name="job", values=("none", "nurse", "cook", "pope")),
    )
)
JOBS: dict[str, list[float]] = {"F": [400, 300, 299, 1], "M": [500, 100, 399.99, 0.01]}


def synopsis() -> Synopsis:
    """Exact tables: jobs by sex, one of them very rare, and ages by sex."""
    ages = np.ones((2, 11)) * np.array([[100], [1]])
    ages[1, 3] = 1000 - 10
    return Synopsis.from_marginals(
        SCHEMA,
        {("sex", "job"): np.array([JOBS["F"], JOBS["M"]]), ("sex", "age"): ages * 1000 / ages.sum(1, keepdims=True)},
        std=0.001,
        source="made up",
    )


def sample(rows: int, where: Mapping[str, Any], seed: int = 1) -> dict[str, list[Any]]:
    table: dict[str, list[Any]] = synopsis().generate(rows, seed=seed, where=where, output_format="arrow").to_pydict()
    return table


@pytest.mark.parametrize(
    "where",
    [{"sex": "F"}, {"age": (30, 39)}, {"age": "30..34|missing"}, {"sex": "M", "job": ["nurse", "cook"], "age": 37}],
)
def test_every_row_meets_the_conditions(where: dict[str, Any]) -> None:
    rows = sample(3_000, where)

    allowed: dict[Any, set[Any]] = {
        "F": {"F"},
        "M": {"M"},
        (30, 39): set(range(30, 40)),
        "30..34|missing": {30, 31, 32, 33, 34, None},
        37: {37},
    }
    for name, given in where.items():
        values: set[Any] = set(given) if isinstance(given, list) else allowed[given]
        assert len(rows[name]) == 3_000
        assert set(rows[name]) <= values


def test_other_attributes_follow_their_conditional_distribution() -> None:
    """Standard deviations of 6 000 rows are below .0065; at four of them a false alarm comes once in 10 000 runs."""
    jobs = sample(6_000, {"sex": "F"})["job"]
    sexes = sample(6_000, {"job": "nurse"})["sex"]

    assert jobs.count("none") / 6_000 == pytest.approx(0.4, abs=0.026)
    assert jobs.count("nurse") / 6_000 == pytest.approx(0.3, abs=0.026)
    assert sexes.count("F") / 6_000 == pytest.approx(0.75, abs=0.026)


def test_a_part_of_a_bin_has_its_share_of_the_histogram() -> None:
    """P(M | age 30..34 or 0..9) by Bayes: half of the bin 30..39 counts."""
    sexes = sample(6_000, {"age": ["30..34", "0..9"]})["sex"]

    women, men = 91 + 91 / 2, 1 + 990 / 2
    assert sexes.count("M") / 6_000 == pytest.approx(men / (men + women), abs=0.03)


def test_a_condition_of_one_in_a_hundred_thousand_gives_all_rows_that_were_requested() -> None:
    rows = sample(2_000, {"job": "pope", "sex": "M"})

    assert set(rows["job"]) == {"pope"}
    assert set(rows["sex"]) == {"M"}
    assert np.mean([age is not None and 30 <= age <= 39 for age in rows["age"]]) > 0.95  # as for all men


def test_rows_meet_a_condition_that_has_a_count_of_zero() -> None:
    released = Synopsis.from_marginals(
        SCHEMA,
        {("sex", "job"): [[10, 0, 5, 0], [0, 10, 0, 0]], "age": np.ones(11)},
        std=0.001,
        source="made up",
    )

    rows = released.generate(50, seed=0, where={"sex": "M", "job": "cook"}, output_format="arrow").to_pydict()

    assert set(rows["sex"]) == {"M"}
    assert set(rows["job"]) == {"cook"}


def test_a_distribution_is_fitted_for_conditions_if_the_model_has_none() -> None:
    independent = Synopsis.from_marginals(
        SCHEMA, {"sex": [11, 33], "age": np.full(11, 4), "job": [11, 11, 11, 11]}, std=0.001, source="made up"
    )

    rows = independent.generate(4_000, seed=0, where={"age": "missing"}, output_format="arrow").to_pydict()

    assert independent.model.distribution is None
    assert set(rows["age"]) == {None}
    assert rows["sex"].count("M") / 4_000 == pytest.approx(0.75, abs=0.03)


def test_a_condition_on_an_unknown_attribute_is_refused() -> None:
    with pytest.raises(UserError, match="no attribute 'height'"):
        sample(10, {"height": 1})


def test_few_rows_have_the_distribution_of_many() -> None:
    released = synopsis()

    jobs = [
        job for seed in range(60) for job in released.generate(5, seed=seed, output_format="arrow")["job"].to_pylist()
    ]

    assert jobs.count("none") / 300 == pytest.approx(0.45, abs=0.13)  # 4.5 standard deviations


def test_zero_rows_are_a_table_with_the_same_columns() -> None:
    assert synopsis().generate(0, where={"sex": "F"}, output_format="arrow").column_names == ["sex", "age", "job"]
    assert synopsis().generate(0, output_format="arrow").num_rows == 0


def test_a_model_of_zero_rows_can_be_sampled() -> None:
    none = {("sex",): np.zeros(2), ("age",): np.zeros(11), ("job",): np.zeros(4)}
    nobody = Synopsis.from_marginals(SCHEMA, none, std=1.0, source="made up")

    assert nobody.generate(0, output_format="arrow").column_names == ["sex", "age", "job"]
    assert nobody.generate(3, output_format="arrow").num_rows == 3


def test_replicates_differ_and_are_the_same_for_the_same_seed() -> None:
    released = synopsis()

    first, second = (
        [t.to_pydict() for t in released.replicates(3, 50, seed=4, output_format="arrow")] for _ in range(2)
    )

    assert first == second
    assert first[0] != first[1] != first[2]


def test_the_first_replicates_do_not_depend_on_their_number() -> None:
    released = synopsis()

    one, two = (
        next(iter(released.replicates(count, 50, seed=4, output_format="arrow"))).to_pydict() for count in (1, 5)
    )

    assert one == two


@pytest.mark.parametrize("count", [0, 2.5, "3", True])
def test_the_number_of_replicates_is_a_positive_integer(count: Any) -> None:
    with pytest.raises(UserError, match="give a whole number from 1"):
        synopsis().replicates(count)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"seed": True}, "the seed is True; give a whole number from 0"),
        ({"seed": -1}, "the seed is -1; give a whole number from 0"),
        ({"seed": "7"}, "the seed is '7'; give a whole number from 0"),
        ({"rows": 1.5}, "the number of rows is 1.5"),
        ({"where": {"sex": "X"}}, "'X' is not a value of 'sex'"),
        ({"where": {"sex": "F"}, "synthesis": "gum"}, "gum cannot sample rows under conditions"),
        ({"where": {"sex": "F"}, "synthesis": "mcf"}, "mcf cannot sample rows under conditions"),
    ],
)
def test_generate_and_replicates_refuse_the_same_arguments_when_they_are_called(
    arguments: dict[str, Any], words: str
) -> None:
    released = synopsis()

    with pytest.raises(UserError, match=words):
        released.generate(**arguments)
    with pytest.raises(UserError, match=words):
        released.replicates(2, **arguments)  # before the first table is asked for


# ── synthesis methods ────────────────────────────────────────────────────────────────────────────────────────


def job_distance(table: Any) -> float:
    """The total variation distance of sex and job from the exact tables."""
    rows = list(zip(table["sex"].to_pylist(), table["job"].to_pylist(), strict=True))
    shares = {
        (sex, job): count / 2_000 for sex in "FM" for job, count in zip(SCHEMA["job"].labels(), JOBS[sex], strict=True)
    }
    return sum(abs(rows.count(pair) / len(rows) - share) for pair, share in shares.items()) / 2


@pytest.mark.parametrize("synthesis", [Gibbs(), GUM(), GUM(rounds=20), MCF(), "gibbs", "gum", "mcf"])
def test_every_synthesis_method_matches_the_tables(synthesis: Synthesis | str) -> None:
    table = synopsis().generate(2_000, seed=1, synthesis=synthesis, output_format="arrow")

    assert table.num_rows == 2_000
    assert job_distance(table) < 0.005  # two thousand independent rows would differ by 0.015


def test_the_method_of_the_model_is_the_default() -> None:
    gibbs, gum = synopsis(), with_synthesis(GUM())

    for released, name in ((gibbs, "gibbs"), (gum, "gum")):
        default, named = (released.generate_arrow(500, seed=1, synthesis=method) for method in (None, name))
        assert default.equals(named)
    assert not gibbs.generate_arrow(500, seed=1).equals(gibbs.generate_arrow(500, seed=1, synthesis="gum"))


def with_synthesis(synthesis: Synthesis) -> Synopsis:
    """The synopsis whose model is made for another synthesis method."""
    released = synopsis()
    recoding = Recoding.coarse(Codec(SCHEMA))
    return Synopsis(SCHEMA, released.releases, fit_model(SCHEMA, recoding, released.releases, synthesis=synthesis))


def test_a_distribution_is_fitted_for_gibbs_alone() -> None:
    assert synopsis().model.distribution is not None
    for method in (GUM(), MCF()):
        model = with_synthesis(method).model
        assert (model.synthesis, model.distribution) == (method, None)


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[Gibbs]:
    """The options of every distribution that is fitted for sampling."""
    options: list[Gibbs] = []

    def count_fits(schema: Schema, model: Model, synthesis: Gibbs, progress: Progress) -> GibbsModel | None:
        options.append(synthesis)
        return fit_distribution(schema, model, synthesis, progress)

    monkeypatch.setattr(sampler, "fit_distribution", count_fits)
    return options


def test_gibbs_fits_a_model_that_was_made_for_another_method_once(fits: list[Gibbs]) -> None:
    released = with_synthesis(MCF())

    tables = list(released.replicates(3, 2_000, seed=1, uncertainty="rows", synthesis=Gibbs(), output_format="arrow"))

    assert fits == [Gibbs()]
    assert not tables[0].equals(tables[1])
    assert max(job_distance(table) for table in tables) < 0.005


def test_gibbs_fits_a_model_again_only_with_other_options(fits: list[Gibbs]) -> None:
    released = synopsis()

    for method in (None, Gibbs(), Gibbs(trust=0.5)):
        released.generate_arrow(500, seed=1, synthesis=method)

    assert fits == [Gibbs(trust=0.5)]


def test_options_of_gum_are_used() -> None:
    """Tables that form a cycle are fitted, and without rounds the attributes stay independent."""
    rng = np.random.default_rng(0)
    cycle = {("sex", "job"): (2, 4), ("sex", "age"): (2, 11), ("age", "job"): (11, 4)}
    released = Synopsis.from_marginals(
        SCHEMA, {clique: rng.random(shape) * 100 for clique, shape in cycle.items()}, std=0.1, source="made up"
    )

    tables = [released.generate_arrow(2_000, seed=1, synthesis=GUM(rounds=rounds)) for rounds in (0, 100)]

    assert not tables[0].equals(tables[1])


@pytest.mark.parametrize("method", ["gum", "mcf"])
def test_a_method_that_cannot_sample_under_conditions_is_refused_there(method: str) -> None:
    with pytest.raises(UserError, match=f"{method} cannot sample rows under conditions; use gibbs"):
        synopsis().sampler(300, where={"sex": "F"}, synthesis=method)


def test_conditions_hold_where_the_recipe_synthesizes_by_gum() -> None:
    released = synopsis()
    model = dataclasses.replace(released.model, synthesis=GUM(), distribution=None)

    table = Synopsis(released.schema, released.releases, model).generate_arrow(300, seed=1, where={"sex": "F"})

    assert set(table["sex"].to_pylist()) == {"F"}


def test_public_totals_of_a_condition_are_refused_with_mcf() -> None:
    released = synopsis()
    schema = Schema(attributes=SCHEMA.attributes, rules=(Total(where=(("sex", "F"),), count=900),))

    with pytest.raises(UserError, match="public totals"):
        Synopsis(schema, released.releases, released.model).sampler(300, synthesis=MCF())


@pytest.mark.parametrize(
    ("synthesis", "words"),
    [
        ("magic", "no synthesis method 'magic'; there are gibbs, gum, mcf"),
        (3, "3 is not a synthesis method"),
        (GUM, "not a synthesis method"),
    ],
)
def test_an_unknown_synthesis_method_is_refused(synthesis: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        synopsis().generate(10, synthesis=synthesis)


def test_the_synthesis_method_is_saved(tmp_path: Path) -> None:
    for method in (Gibbs(trust=0.2), GUM(rounds=7, alpha=0.3, decay=ConstantDecay(), beta=0.5), MCF(passes=3)):
        released = with_synthesis(method)
        released.save(tmp_path / "s.dpsyn")

        loaded = Synopsis.load(tmp_path / "s.dpsyn")

        assert loaded.model.synthesis == method
        assert loaded.generate_arrow(100, seed=1).equals(released.generate_arrow(100, seed=1))
