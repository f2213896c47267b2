"""Models that cannot be sampled cannot be built; releases report their recipe."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpsyn.errors import InternalError
from dpsyn.inference import Model, Release
from dpsyn.marginals import Estimate
from tests.synopsis.synopses import certificate, synopsis


def valid_model() -> Model:
    return synopsis(certificate()).model


def with_table(model: Model, value: float) -> dict[str, Any]:
    first = model.tables[0]
    values = np.full(first.values.shape, value)
    return {"tables": (Estimate(first.clique, values, first.variance), *model.tables[1:])}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda model: {"tables": model.tables[1:]}, "in no table"),
        (lambda model: {"histograms": {}}, "a histogram of every attribute"),
        (lambda model: {"histograms": dict(model.histograms) | {"wage": np.ones(3)}}, "a histogram of every attribute"),
        (lambda model: {"histograms": dict(model.histograms) | {"sex": np.ones(4)}}, "over its fine codes"),
        (lambda model: {"histograms": dict(model.histograms) | {"sex": -np.ones(3)}}, "not negative"),
        (lambda model: with_table(model, -1e-9), "not negative"),
        (lambda model: with_table(model, np.nan), "finite"),
        (lambda model: with_table(model, np.inf), "finite"),
        (lambda model: {"total": float("nan")}, "finite"),
        (lambda model: {"recoding": replace(model.recoding, columns=model.recoding.columns[:2])}, "fit its recoding"),
    ],
)
def test_an_invalid_model_is_refused(change: Any, words: str) -> None:
    model = valid_model()

    with pytest.raises(InternalError, match=words):
        replace(model, **change(model))


def test_a_model_that_loses_an_attribute_is_refused() -> None:
    model = valid_model()
    fewer = replace(model.recoding, columns=model.recoding.columns[:2])

    with pytest.raises(InternalError, match="its codes would be lost"):
        replace(model, recoding=fewer, tables=model.tables[:1])


def test_a_release_reports_the_recipe_of_its_certificate() -> None:
    certified = Release((), certificate=replace(certificate(), recipe={"name": "dpsyn", "max_triples": 3}))
    imported = Release((), source="the statistics office")

    assert (certified.title, certified.recipe) == ("recipe dpsyn", {"name": "dpsyn", "max_triples": 3})
    assert (imported.title, imported.recipe) == ("imported", {})
