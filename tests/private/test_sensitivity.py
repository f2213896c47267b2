"""Neighboring tables give answers that differ by no more than was charged, for every recipe there is.

A recipe runs on a table, then on a neighbor with the first run's released values replayed, so that both ask the same
questions. The answers before noise are compared with the sensitivities in the ledger's spends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn.accounting import Budget, Exponential, Gaussian, Laplace, PartitionSelection
from dpsyn.encoding import Codec, DifferenceCoding, Grouping, Recoding
from dpsyn.marginals import Marginal
from dpsyn.plan import Plan
from dpsyn.private import PrivateTable, open_private
from dpsyn.public import open_public
from dpsyn.recipes import RECIPES, Planned
from dpsyn.recipes.baselines import MWEM
from dpsyn.schema import (
    AnyAttribute,
    Boolean,
    Categorical,
    Datetime,
    Identifier,
    Integer,
    Open,
    Real,
    Schema,
    UnitDeclaration,
)
from tests.private.noise_doubles import RecordedAnswer, RecordingNoise, ReplayedNoise

BUDGET = Budget.for_guarantee(2, 1e-6, pure_epsilons=[0.1], thresholds=True)
PURE = Budget.for_guarantee(2, 0, pure_epsilons=[2])
COLUMNS = ("person", "age", "weight", "job", "seen", "ok", "city")


def everything(table: PrivateTable) -> Sequence[Marginal]:
    """Every question the gate answers, and questions that depend on earlier answers."""
    rho = table.budget.rho / 8
    table = table.discover_range("age", rho)
    table = table.discover_values("city", rho, table.budget.threshold_delta)
    table = table.refine_cells({"weight": [3, 7]})
    marginals = [table.measure_fine_histogram("age", rho)]
    size = table.recoding.sizes[table.recoding.index_of("job")]
    recoded = table.recode(table.recoding.join("both", ["job", "ok"])).recode(
        table.recoding.merge("job", Grouping(np.arange(size) // 2))
    )
    codec = Codec(table.schema)
    jobs, cities = codec.names.index("job"), codec.names.index("city")
    expected = DifferenceCoding(jobs, np.zeros(6, np.int64), codec.fine_sizes[cities])
    differing = table.recode(Recoding.fine(codec).code_differences({cities: expected}))
    apart = differing.measure([("city", "job")], [rho / 2])
    pairs = [("age", "ok"), ("job", "city"), ("weight", "seen")]
    marginals += recoded.measure([pairs[0], ("job",)], [rho, rho])
    marginals += table.measure_laplace([("ok", "job")], [table.budget.pure_epsilons[0] / 2])
    predictions = [np.rint(marginals[1].counts), *(np.full(_shape(recoded, pair), 0.6) for pair in pairs[1:])]
    scores = recoded.score_predictions(pairs, predictions, rho)
    recoded.score_indif(pairs, rho)
    recoded.choose_worst_prediction(pairs, predictions, table.budget.pure_epsilons[0] / 2)
    best = pairs[int(np.argmax(scores.values))]
    return [*marginals, *apart, *recoded.measure([best], [rho / 2])]


def _shape(table: PrivateTable, clique: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(table.recoding.sizes[table.recoding.index_of(name)] for name in clique)


def schema(neighbors: Any, unit: UnitDeclaration | None) -> Schema:
    attributes: tuple[AnyAttribute, ...] = (
        Identifier(name="person"),
        Integer(name="age", low=-1000, high=10**4, missing=True),
        Real(name="weight", low=0, high=200, decimals=1, bins=4),
        Categorical(name="job", codes=6),
        Datetime(name="seen", start="2016-01-01", end="2016-12-31", bins=5, missing=True),
        Boolean(name="ok", missing=True),
        Open(name="city"),
    )
    return Schema(attributes=attributes, neighbors=neighbors, privacy_unit=unit)


def rows() -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(
        st.sampled_from(["p1", "p2", "p3", None]),
        st.sampled_from(["3", "-7", "x", "2500", "", "30"]),
        st.sampled_from(["70.5", "0", "abc", "1e9"]),
        st.sampled_from(["0", "1", "5", "77"]),
        st.sampled_from(["2016-02-03", "2016-12-31T10:00:00", "", "bad"]),
        st.sampled_from(["true", "no", ""]),
        st.sampled_from(["Oslo", "Bergen", "Å", ""]),
    )


@dataclass(frozen=True)
class Neighbors:
    first: list[tuple[Any, ...]]
    second: list[tuple[Any, ...]]


@st.composite
def neighboring(draw: st.DrawFn, relation: str, with_unit: bool) -> Neighbors:
    """Two tables that differ in one unit: its rows are gone, or others."""
    table = draw(st.lists(rows(), min_size=0 if relation == "add-remove" else 1, max_size=12))
    several = st.lists(rows(), min_size=1, max_size=6) if with_unit else st.lists(rows(), min_size=1, max_size=1)
    if not with_unit:
        common = table
        one, other = draw(several), draw(several)
    else:
        common = [row for row in table if row[0] != "p1"]
        one, other = ([("p1", *row[1:]) for row in draw(several)] for _ in range(2))
    second = common + (other if relation == "replace" else [])
    return Neighbors(draw(st.permutations(common + one)), draw(st.permutations(second)))


def width(table: list[tuple[Any, ...]]) -> int:
    return len(table[0]) if table else len(COLUMNS)


def answers(
    table: list[tuple[Any, ...]], under: Schema, recipe: Any, noise: Any, budget: Budget = BUDGET
) -> list[RecordedAnswer]:
    columns = {name: pa.array([row[i] for row in table], pa.string()) for i, name in enumerate(COLUMNS[: width(table)])}
    with open_private(pa.table(columns), under, budget, mechanisms=noise) as private:
        recipe(private)
    marginals: list[RecordedAnswer] = noise.answers
    return marginals


def check(one: RecordedAnswer, other: RecordedAnswer) -> None:
    cost = one.cost
    if isinstance(cost, PartitionSelection):
        check_listing(one.exact, other.exact, cost)
        return
    difference = np.asarray(one.exact, dtype=object) - np.asarray(other.exact, dtype=object)
    if isinstance(cost, Gaussian):
        assert Fraction(int((difference**2).sum())) <= cost.sensitivity_squared
    elif isinstance(cost, Laplace):
        assert Fraction(int(np.abs(difference).sum())) <= cost.sensitivity
    else:
        assert not cost.monotone
        assert Fraction(int(np.abs(difference).max())) <= cost.sensitivity


def check_listing(one: dict[str, int], other: dict[str, int], cost: PartitionSelection) -> None:
    common = one.keys() & other.keys()
    assert isinstance(cost.noise, Gaussian)
    assert sum((one[key] - other[key]) ** 2 for key in common) <= cost.noise.sensitivity_squared
    for one_side, other_side in ((one, other), (other, one)):
        unshared = one_side.keys() - other_side.keys()
        assert len(unshared) <= cost.max_rows
        assert all(one_side[key] <= cost.max_rows for key in unshared)


@pytest.fixture(autouse=True)
def same_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both runs keep the same rows of a person."""
    monkeypatch.setattr("secrets.token_bytes", lambda size: b"k" * size)


PLAN = Plan.from_yaml("""
dpsyn_plan: 1
transforms:
  - {transform: bucketize, of: weight, starts: [0, 50, 150]}
  - {transform: recode, to: job_ok, of: [job, ok]}
  - {transform: availability, to: times, of: [seen]}
  - {transform: compress, rows: 2}
marginals:
  - {of: [age, job_ok], share: 1/20, mechanism: laplace}
  - {of: [weight, times, job]}
""")
"""Every step that a planned release can take; BUDGET plans the one pure step, a twentieth of ε."""

MAPPED = Plan.from_yaml("""
dpsyn_plan: 1
transforms:
  - {transform: mapping, of: job, from: ok, share: 0.2}
  - {transform: random, of: [seen]}
marginals: [{of: [age, ok], share: 1/20, mechanism: laplace}, [job, weight]]
""")

PUBLIC = pa.table(
    {
        "age": ["3", "2500", "30", "30"] * 10,
        "weight": ["70.5", "0", "0", "70.5"] * 10,
        "job": ["0", "1", "1", "5"] * 10,
        "ok": ["true", "no", "no", ""] * 10,
    }
)
"""Public rows that depend on each other; they lack a column, and some of their cells are unreadable."""


def with_public_rows(table: PrivateTable) -> Any:
    """The default recipe with a prior: its predictions decide what is asked, and are what scores are taken against."""
    prior = open_public(PUBLIC, table.schema, "they are made up")
    return RECIPES["dpsyn"]().measure(table, public=prior)  # type: ignore[call-arg]


RUNS: dict[str, Any] = {
    "dpsyn with public rows": with_public_rows,
    "a plan": Planned(plan=PLAN).measure,
    "a plan with a mapping": Planned(plan=MAPPED).measure,
    **{
        name: recipe().measure for name, recipe in RECIPES.items() if name not in ("fourier", "planned")
    },  # for binary attributes, see test_fourier_sensitivity.py
    "mwem-practical": MWEM(rounds=2, replay=2).measure,
    "everything": everything,
}

EXAMPLES = {"everything": (12, 36), "dpsyn with public rows": (4, 7)}
"""Examples where the unit is a row, and where it is a person; a release with public rows takes as long as five others,
and asks for what the one without them asks for."""


@pytest.mark.parametrize("recipe", RUNS)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("with_unit", [False, True], ids=["rows", "persons"])
def test_answers_on_neighbors_differ_by_no_more_than_was_charged(recipe: str, relation: Any, with_unit: bool) -> None:
    run, (of_rows, of_persons) = RUNS[recipe], EXAMPLES.get(recipe, (12, 18))

    @settings(max_examples=of_persons if with_unit else of_rows)
    @given(neighboring(relation, with_unit), st.integers(1, 3) if with_unit else st.none())
    def compare(pair: Neighbors, kept: int | None) -> None:
        under = schema(relation, UnitDeclaration(id="person", max_rows=kept) if kept else None)
        if recipe != "everything":
            under = msgspec.structs.replace(under, attributes=under.attributes[:-1])
        first = RecordingNoise()
        second = ReplayedNoise(first)
        ones = answers(pair.first, under, run, first)

        others = answers(pair.second, under, run, second)

        assert len(ones) == len(others) > 0
        for one, other in zip(ones, others, strict=True):
            check(one, other)

    compare()


PURE_RUNS: dict[str, Any] = {
    **{name: RECIPES[name]().measure for name in ("independent", "direct", "priview", "mwem")},
    "a fine histogram": lambda table: table.measure_fine_histogram("weight", table.budget.amount),
}


@pytest.mark.parametrize("recipe", PURE_RUNS)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("kept", [None, 2])
def test_answers_of_pure_releases_differ_by_no_more_than_was_charged(
    recipe: str, relation: Any, kept: int | None
) -> None:
    """Noise is Laplace noise, choices are pure, and the ε that are charged add up to that of the guarantee exactly."""
    under = schema(relation, UnitDeclaration(id="person", max_rows=kept) if kept else None)
    under = msgspec.structs.replace(under, attributes=under.attributes[:-1])

    @settings(max_examples=6)
    @given(neighboring(relation, kept is not None))
    def compare(pair: Neighbors) -> None:
        first = RecordingNoise()
        second = ReplayedNoise(first)
        ones = answers(pair.first, under, PURE_RUNS[recipe], first, PURE)

        others = answers(pair.second, under, PURE_RUNS[recipe], second, PURE)

        assert len(ones) == len(others) > 0
        for one, other in zip(ones, others, strict=True):
            assert isinstance(one.cost, Laplace | Exponential)
            check(one, other)
        assert sum(one.cost.pure_epsilons[0] for one in ones) == 2

    compare()
