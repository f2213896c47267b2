"""The contest's metrics together, and several files together."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from dpsyn.errors import UserError
from dpsyn.evaluation.enumerations import read_enumerations
from dpsyn.evaluation.nist_contest import (
    MATCH3,
    PAPER,
    PRESETS,
    IncomeColumns,
    Preset,
    combine_scores,
    find_preset,
    score_contest,
)
from dpsyn.evaluation.reader import open_tables, read_sources
from dpsyn.evaluation.results import ContestScore
from dpsyn.schema import Boolean, Categorical, Integer, Schema
from tests.evaluation.small_tables import table_of

SCHEMA = Schema(
    attributes=(
        Categorical(name="city", values=("A", "B")),
        Categorical(name="sex", values=("1", "2")),
        Integer(name="wage", low=0, high=1000),
        Boolean(name="last"),
    )
)
INCOME = IncomeColumns(region="city", sex="sex", income="wage")
REAL = [("AB"[n % 2], "12"[n % 3 == 0], 100 * (n % 2) + n, n % 5 == 0) for n in range(100)]
OTHER = [(city, sex, wage // 2, last or wage < 90) for city, sex, wage, last in REAL]


def score(synthetic: Any, preset: Preset, income: IncomeColumns | None = None, seed: int = 0) -> ContestScore:
    sources = open_tables(table_of(SCHEMA, REAL), table_of(SCHEMA, synthetic), SCHEMA)
    enumerations = read_enumerations(sources, SCHEMA, {}, seed=seed) if preset.enumerations else None
    return score_contest(read_sources(sources, SCHEMA), preset, income, enumerations=enumerations, seed=seed)


def test_presets_have_the_official_parameters() -> None:
    assert dataclasses.asdict(PAPER) == {
        "name": "paper",
        "triples": 300,
        "queries": 300,
        "chance": 0.33,
        "enumerations": False,
    }
    assert dataclasses.asdict(MATCH3) == {
        "name": "match3",
        "triples": 100,
        "queries": 300,
        "chance": 0.10,
        "enumerations": True,
    }
    assert [find_preset(name) for name in PRESETS] == [PAPER, MATCH3]


def test_an_unknown_preset_is_refused_with_the_one_that_was_probably_meant() -> None:
    with pytest.raises(UserError, match="there is no preset 'match4'; did you mean match3"):
        find_preset("match4")


@pytest.mark.parametrize("preset", [PAPER, MATCH3])
def test_identical_tables_score_a_million(preset: Preset) -> None:
    perfect = score(REAL[::-1], preset, INCOME)

    assert perfect.density.synthetic == perfect.range_queries.synthetic == perfect.mean.synthetic == 1_000_000
    assert perfect.income is not None
    assert perfect.income.score.synthetic == 1_000_000


@pytest.mark.parametrize("preset", [PAPER, MATCH3])
def test_the_mean_is_that_of_the_metrics(preset: Preset) -> None:
    three, two = score(OTHER, preset, INCOME), score(OTHER, preset)

    assert three.income is not None
    assert three.density == two.density
    assert three.range_queries == two.range_queries
    for part in ("synthetic", "floor", "independent"):
        parts = [getattr(f, part) for f in (three.density, three.range_queries, three.income.score)]
        assert getattr(three.mean, part) == pytest.approx(sum(parts) / 3)
        assert getattr(two.mean, part) == pytest.approx(sum(parts[:2]) / 2)
    assert three.density.synthetic < 1_000_000


def test_the_match_ignores_the_density_of_the_last_column() -> None:
    other = [(*row[:3], not row[3]) for row in REAL]

    paper, match = (score(other, preset) for preset in (PAPER, MATCH3))

    assert paper.density.synthetic < match.density.synthetic == 1_000_000
    assert (paper.triples, match.triples) == (4, 100)


def test_the_seed_decides_the_queries() -> None:
    scores = [score(OTHER, PAPER, seed=seed).range_queries.synthetic for seed in (0, 0, 1)]

    assert scores[0] == scores[1] != scores[2]


def test_several_files_score_the_mean_of_all_metrics() -> None:
    good, bad = (score(table, PAPER, INCOME) for table in (REAL, OTHER))

    combined = combine_scores([good, bad])

    assert bad.income is not None
    metrics = [bad.density.synthetic, bad.range_queries.synthetic, bad.income.score.synthetic]
    assert combined.synthetic == pytest.approx((3_000_000 + sum(metrics)) / 6)


def test_scores_with_different_parameters_are_not_combined() -> None:
    paper, match, richer = (
        score(OTHER, preset, income) for preset, income in ((PAPER, None), (MATCH3, None), (PAPER, INCOME))
    )

    for other in (match, richer):
        with pytest.raises(UserError, match="cannot be combined"):
            combine_scores([paper, other])
    with pytest.raises(UserError, match="no scores"):
        combine_scores([])
