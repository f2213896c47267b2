"""Replicates: their differences are those of other releases of other samples."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpsyn import Synopsis, UserError
from dpsyn.analysis.record import METADATA_KEY
from dpsyn.inference import Scores
from dpsyn.inference.redraw import ModelDraws
from dpsyn.inference.unmeasured import UnmeasuredPairs
from dpsyn.schema import Categorical, Schema
from tests.recipes.test_golden_rows import release

SCHEMA = Schema(attributes=tuple(Categorical(name=name, codes=2) for name in ("a", "b")))
ROWS, STD = 4_000, 40.0
COUNTS = np.array([[1_400.0, 600.0], [700.0, 1_300.0]])
DRAWS = 60


def synopsis() -> Synopsis:
    return Synopsis.from_marginals(SCHEMA, {("a", "b"): COUNTS}, std=STD, source="made up")


def cell_counts(released: Synopsis, uncertainty: Any) -> np.ndarray[Any, Any]:
    """The share of rows with a = b = 1, in every replicate."""
    tables = released.replicates(DRAWS, ROWS, seed=1, uncertainty=uncertainty, output_format="pandas")
    return np.array([((table["a"].astype(int) == 1) & (table["b"].astype(int) == 1)).mean() for table in tables])


@pytest.mark.parametrize(
    ("uncertainty", "expected"),
    [
        ("noise", STD * math.sqrt(3 / 4) / ROWS),  # the total of all cells cancels
        ("all", math.hypot(STD * math.sqrt(3 / 4) / ROWS, math.sqrt(0.325 * 0.675 / ROWS))),
    ],
)
def test_replicates_vary_as_releases_do(uncertainty: str, expected: float) -> None:
    deviation = float(cell_counts(synopsis(), uncertainty).std(ddof=1))

    # the ratio of variances is χ²/59: outside of these bounds in 2 of 10 000 runs, and the seed is fixed
    assert 0.68 < deviation / expected < 1.38


def test_replicates_of_rows_do_not_carry_the_noise() -> None:
    assert cell_counts(synopsis(), "rows").std(ddof=1) < 0.2 * STD / ROWS


def test_the_same_seed_gives_the_same_tables_however_many_there_are() -> None:
    some, more = (
        [table.to_pydict() for table in synopsis().replicates(count, 300, seed=3, output_format="arrow")]
        for count in (2, 3)
    )

    assert some == more[:2]
    assert some[0] != some[1]


def test_tables_say_which_replicate_they_are() -> None:
    arrow = list(synopsis().replicates(2, 100, seed=1, output_format="arrow"))
    frame = next(iter(synopsis().replicates(2, 100, seed=1, uncertainty="noise", output_format="pandas")))

    assert json.loads(arrow[1].schema.metadata[METADATA_KEY.encode()]) == {
        "number": 2,
        "of": 2,
        "rows": 100,
        "uncertainty": "all",
        "private_rows": 4000.0,
        "rows_per_unit": 1,
    }
    assert isinstance(frame, pd.DataFrame)
    assert frame.attrs[METADATA_KEY]["uncertainty"] == "noise"


def test_rows_of_one_person_make_sampling_more_uncertain() -> None:
    rng = np.random.default_rng(0)
    people = pa.table(
        {"id": np.repeat(np.arange(500), 4), "a": np.repeat(rng.integers(0, 2, 500), 4), "b": rng.integers(0, 2, 2_000)}
    )
    schema = Schema.from_yaml(
        "dpsyn_schema: 1\nprivacy_unit: {id: id, max_rows: 4}\nattributes:\n  id: {kind: identifier}\n"
        "  a: {kind: categorical, codes: 2}\n  b: {kind: categorical, codes: 2}\n"
    )
    released = release(people, schema, 20.0, recipe="independent")
    shares = [
        (table["a"].to_numpy().astype(int) == 1).mean()
        for table in released.replicates(40, 2_000, seed=1, output_format="arrow")
    ]

    # sampling alone: √(1/4/500) = .022 with persons, .011 if rows were independent; false alarms: 1 in 1 000
    assert np.std(shares, ddof=1) > 0.015


def test_unknown_uncertainty_is_refused() -> None:
    with pytest.raises(UserError, match="the uncertainty is 'noises'; use all, noise, rows"):
        synopsis().replicates(2, uncertainty="noises")  # type: ignore[call-overload]


def test_recipes_that_estimate_tables_themselves_cannot_be_redrawn() -> None:
    table = pa.table({"a": np.arange(400) % 2, "b": np.arange(400) // 2 % 2})
    released = release(table, SCHEMA, recipe="mwem")

    with pytest.raises(UserError, match=r'recipe mwem estimates its tables .* use uncertainty="rows"'):
        released.replicates(2)
    assert len(list(released.replicates(2, 50, uncertainty="rows"))) == 2


# ── dependence that was not measured ─────────────────────────────────────────────────────────────────────────


def unmeasured(score: float, std: float) -> Synopsis:
    """A release of two one-way marginals, and the score of their pair."""
    made = Synopsis.from_marginals(SCHEMA, {"a": COUNTS.sum(1), "b": COUNTS.sum(0)}, std=1.0, source="made up")
    scores = Scores("distance from the model", (("a", "b"),), np.array([score]), std)
    [only] = made.releases
    return Synopsis(SCHEMA, (type(only)(only.rounds, (scores,), None, only.source),), made.model)


def distances(released: Synopsis) -> np.ndarray[Any, Any]:
    """How far a and b are from independent in replicates, as shares of the rows."""
    found = []
    for table in released.replicates(20, ROWS, seed=1, output_format="pandas"):
        shares = pd.crosstab(table["a"], table["b"], normalize=True).to_numpy()
        found.append(np.abs(shares - np.outer(shares.sum(1), shares.sum(0))).sum())
    return np.array(found)


def test_pairs_that_were_not_measured_depend_as_their_score_allows() -> None:
    precise, vague, none = (distances(unmeasured(*score)) for score in ((800.0, 20.0), (200.0, 400.0), (0.0, 20.0)))

    assert precise.mean() == pytest.approx(0.2, abs=0.04)
    assert vague.std() > 3 * precise.std()
    assert none.mean() < 0.03


def test_the_direction_of_unmeasured_dependence_is_random() -> None:
    signs = {
        pd.crosstab(table["a"], table["b"]).to_numpy()[0, 0] * ROWS > COUNTS.sum(1)[0] * COUNTS.sum(0)[0]
        for table in unmeasured(800.0, 20.0).replicates(12, ROWS, seed=1, output_format="pandas")
    }

    assert signs == {True, False}


def test_measured_pairs_have_no_unmeasured_dependence() -> None:
    made = synopsis()
    scores = Scores("distance from the model", (("a", "b"),), np.array([800.0]), 20.0)
    [only] = made.releases
    released = [type(only)(only.rounds, (scores,), None, only.source)]

    assert UnmeasuredPairs.of(made.model, released, frozenset()).cliques == []


def test_numbers_depend_smoothly_where_nobody_measured() -> None:
    shares = {"a": np.full(20, 0.05), "b": np.full(20, 0.05)}
    pairs = UnmeasuredPairs([("a", "b")], np.eye(100)[[10]], shares, frozenset({"a", "b"}))
    [factor] = pairs.draw(np.random.default_rng(0))
    logs = np.log(factor.shares)

    assert np.abs(np.diff(logs, axis=0)).max() > 0.01
    assert np.abs(np.diff(logs, n=3, axis=0)).max() < 0.05 * np.abs(np.diff(logs, axis=0)).max()


def test_draws_follow_the_public_number_of_rows() -> None:
    schema = Schema.from_yaml(
        "dpsyn_schema: 1\nneighbors: replace\nattributes:\n  a: {kind: categorical, codes: 2}\n"
        "  b: {kind: categorical, codes: 2}\n"
    )
    table = pa.table({"a": np.arange(400) % 2, "b": np.arange(400) // 2 % 2})
    released = release(table, schema, recipe="independent")
    codes = np.column_stack([np.arange(1_000) % 2, np.arange(1_000) // 2 % 2]).astype(np.uint8)
    draws = ModelDraws(released.schema, released.model, released.releases, codes, sampling=True)

    assert {draws.draw(np.random.default_rng(seed)).total for seed in range(3)} == {400.0}


def test_unmeasured_dependence_leaves_one_way_marginals_as_they_are() -> None:
    shares = {"a": np.array([0.7, 0.2, 0.1]), "b": np.array([0.5, 0.3, 0.15, 0.05])}
    pairs = UnmeasuredPairs([("a", "b")], np.eye(100)[[60]], shares, frozenset({"b"}))
    [factor] = pairs.draw(np.random.default_rng(1))
    table = np.outer(shares["a"], shares["b"]) * factor.shares

    assert table.sum(1) / table.sum() == pytest.approx(shares["a"], abs=2e-3)
    assert table.sum(0) / table.sum() == pytest.approx(shares["b"], abs=2e-3)
    assert np.abs(table / table.sum() - np.outer(shares["a"], shares["b"])).sum() > 0.2
