"""Fourier coefficients of neighboring tables differ by no more than was charged."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings

from dpsyn.accounting import Budget
from dpsyn.recipes.baselines import Fourier
from dpsyn.schema import Categorical, Identifier, Schema, UnitDeclaration
from tests.private.noise_doubles import RecordingNoise, ReplayedNoise
from tests.private.test_sensitivity import BUDGET, COLUMNS, PURE, Neighbors, answers, check, neighboring


@pytest.fixture(autouse=True)
def same_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both runs keep the same rows of a person."""
    monkeypatch.setattr("secrets.token_bytes", lambda size: b"k" * size)


@pytest.fixture(scope="module")
def designs_made_once() -> Iterator[None]:
    """Every run needs the same few covering designs, which depend on the schema alone and take longest."""
    with pytest.MonkeyPatch.context() as patched:
        module = importlib.import_module("dpsyn.recipes.baselines.fourier")
        patched.setattr(module, "build_covering_design", functools.cache(module.build_covering_design))
        yield


@pytest.mark.usefixtures("designs_made_once")
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("kept", [None, 2])
@pytest.mark.parametrize("budget", [BUDGET, PURE], ids=["gaussian", "pure"])
def test_parities_of_neighbors_differ_by_no_more_than_was_charged(
    relation: Any, kept: int | None, budget: Budget
) -> None:
    under = Schema(
        attributes=(
            Identifier(name="person"),
            *(Categorical(name=name, values=("true", "no"), other="no") for name in COLUMNS[1:5]),
        ),
        neighbors=relation,
        privacy_unit=UnitDeclaration(id="person", max_rows=kept) if kept else None,
    )

    @settings(max_examples=12)
    @given(neighboring(relation, kept is not None))
    def compare(pair: Neighbors) -> None:
        tables = [[(row[0], *row[5:1:-1]) for row in table] for table in (pair.first, pair.second)]
        first = RecordingNoise()
        second = ReplayedNoise(first)
        ones = answers(tables[0], under, Fourier(ways=3).measure, first, budget)

        others = answers(tables[1], under, Fourier(ways=3).measure, second, budget)

        [one], [other] = ones, others
        assert len(one.exact) == 1 + 4 + 6 + 4
        check(one, other)

    compare()
