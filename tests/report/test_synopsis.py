"""The text and data of a synopsis: which measurement cost what."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from dpsyn.accounting import Budget, Exponential, Gaussian, Laplace, PartitionSelection, PrivacyUnit, Run
from dpsyn.encoding import Codec, Recoding
from dpsyn.inference import MeasurementRound, Release, Scores
from dpsyn.marginals import Marginal
from dpsyn.report.synopsis import (
    overview_lines,
    release_lines,
    score_lines,
    spending_entries,
    spending_rows,
    synopsis_data,
)
from dpsyn.synopsis import Synopsis
from tests.synopsis.synopses import SCHEMA, certificate, synopses, synopsis


def mixed_release() -> Release:
    """A release with every kind of mechanism that leaves a quarter of the Gaussian budget."""
    budget = Budget.for_guarantee(1, 1e-9, pure_epsilons=["0.1", "0.05"], thresholds=True)
    run = Run.open(budget, PrivacyUnit(), declared_public=["age: code book"])
    shares = budget.split_rho([1, 1, 1, 1])
    table, values, scores = (Gaussian.for_rho(share, 1) for share in shares[:3])
    laplace = Laplace.for_epsilon(budget.pure_epsilons[0], 1)
    run.charge("values of town", PartitionSelection.for_delta(budget.threshold_delta, values, 1))
    run.charge("distances of 3 marginals from predictions", scores)
    run.charge("marginal of age, sex (9 cells)", table)
    run.charge("marginal of sex", laplace)
    run.charge("frequent items", Exponential.for_epsilon(budget.pure_epsilons[1], 1))
    coarse = Recoding.coarse(Codec(SCHEMA))
    marginals = (
        Marginal(("sex",), np.zeros(3, np.int64), 0, laplace.std),
        Marginal(("age", "sex"), np.zeros((3, 3), np.int64), table.lattice, table.sigma),
    )
    return Release((MeasurementRound(coarse, marginals),), certificate=run.certificate())


def test_every_measurement_has_its_share_of_the_budget_and_the_rest_is_not_spent() -> None:
    release = mixed_release()
    assert release.certificate is not None
    sigma = spending_entries(release)[2].std

    rows = spending_rows(release)

    assert [row[0] for row in rows] == [
        "values of town",
        "distances of 3 marginals from predictions",
        "age, sex",
        "sex",
        "frequent items",
        "not spent",
    ]
    assert rows[2] == ("age, sex", "9", f"{sigma:.4g}", rows[0][3])
    assert rows[3][1:3] == ("3", f"{2**0.5 * 10:.4g}")
    assert rows[4][1:3] == ("—", "—")
    reserved = float(release.certificate.account.budget.reserved_rho)
    assert spending_entries(release)[3].budget_share == pytest.approx(0.1**2 / 2 / reserved)
    shares = [float(row[3].removesuffix(" %")) for row in rows]
    assert sum(shares) == pytest.approx(100, abs=1)


def test_a_marginal_without_a_measurement_is_shown_without_a_cost() -> None:
    release = mixed_release()
    foreign = Marginal(("job",), np.zeros(5, np.int64), 3, 2.0)
    louder = Marginal(("age", "sex"), np.zeros((3, 3), np.int64), 3, 2.0)
    extended = MeasurementRound(release.rounds[0].recoding, (*release.rounds[0].marginals, foreign, louder))

    rows = spending_rows(Release((extended,), certificate=release.certificate))

    assert ("job", "5", "2", "—") in rows
    assert ("age, sex", "9", "2", "—") in rows


def test_imported_marginals_are_shown_without_a_cost_and_as_not_verified() -> None:
    release = synopsis(None).releases[0]

    assert spending_rows(release) == [("age, sex", "9", "4", "—"), ("job", "5", "4", "—"), ("work", "4", "4", "—")]
    assert release_lines(release)[0].startswith("Guarantee not verified here.")
    assert "  the statistics office" in release_lines(release)


def test_the_text_of_the_certificate_leaves_out_the_measurements_that_the_table_shows() -> None:
    lines = release_lines(mixed_release())

    assert "Guarantee: ε = 1, δ = 1e-9." in lines
    assert "  age: code book" in lines
    assert not any("Draws" in line for line in lines)


def test_scores_are_summarized_by_count_noise_and_the_highest() -> None:
    pairs = tuple((f"a{i}", "b") for i in range(7))
    scores = Scores("distance", pairs, np.arange(7.0) * 1000, 12.3456)

    lines = score_lines(Release((), (scores, Scores("dependence", (), np.zeros(0), 1.0))))

    assert lines == [
        "distance: 7 scores, noise σ = 12.35; highest: a6, b 6,000; a5, b 5,000; a4, b 4,000; a3, b 3,000; a2, b 2,000",
        "dependence: 0 scores, noise σ = 1",
    ]


def test_the_overview_names_the_dataset_the_combined_cost_and_the_model() -> None:
    combined = synopsis(certificate(), certificate(private=False))

    lines = overview_lines(combined)

    assert lines[0] == f"Synopsis of people: 2 releases, 4 attributes, about {round(combined.model.total):,} rows."
    assert lines[1].startswith("NOT PRIVATE")
    assert lines[2].startswith("The guarantees add up to ε = 2, δ = 2e-9")
    assert lines[3] == "Model: 2 tables of 13 cells in all; the largest, of age, sex, has 9."
    assert lines[4] == "Merged or joined values: age (100 → 3), work from job and employed (10 → 4)."


def test_one_private_release_has_no_warning_and_no_combined_cost() -> None:
    assert len(overview_lines(synopsis(certificate()))) == 3


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(synopses())
def test_any_synopsis_can_be_described_as_text_and_json(any_synopsis: Synopsis) -> None:
    overview_lines(any_synopsis)
    for release in any_synopsis.releases:
        assert all(len(row) == 4 for row in spending_rows(release))
        release_lines(release)
        score_lines(release)

    data = json.loads(json.dumps(synopsis_data(any_synopsis), allow_nan=False))

    assert len(data["releases"]) == len(any_synopsis.releases)
    assert [release["verified"] for release in data["releases"]] == [
        r.certificate is not None for r in any_synopsis.releases
    ]
    assert data["model"]["rows"] == any_synopsis.model.total
