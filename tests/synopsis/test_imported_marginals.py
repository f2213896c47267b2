"""Marginals that were measured in another system become a release without a certificate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dpsyn.encoding import Codec
from dpsyn.errors import SynopsisError
from dpsyn.schema import Boolean, Categorical, Derive, Identifier, Integer, Open, Schema
from dpsyn.synopsis.imported_marginals import MAX_IMPORTED_COUNT, import_marginals

SCHEMA = Schema(
    attributes=(
        Integer(name="age", low=0, high=99, bins=(0, 18, 65)),
        Categorical(name="sex", values=("F", "M"), missing=True),
        Categorical(name="town", codes=4),
        Categorical(name="region", values=("N", "S")),
        Open(name="job"),
        Identifier(name="id"),
        Boolean(name="employed"),
    ),
    derive=(Derive(name="region", source="town", mapping=((0, "N"), (1, "N"), (2, "S"), (3, "S"))),),
)


def test_marginals_over_bins_and_over_cells_become_two_rounds() -> None:
    codec = Codec(SCHEMA)
    ages = np.linspace(-5, 5, 100)

    release = import_marginals(
        SCHEMA,
        {("sex", "age"): np.arange(9).reshape(3, 3), "age": ages, "sex": [5, 6, 0]},
        std=2.0,
        source="them",
    )

    coarse, fine = release.rounds
    assert (release.title, release.recipe, release.certificate, release.source) == ("imported", {}, None, "them")
    assert [marginal.clique for marginal in coarse.marginals] == [("sex", "age"), ("sex",)]
    assert [marginal.clique for marginal in fine.marginals] == [("age",)]
    assert (coarse.recoding.sizes, fine.recoding.sizes) == (codec.coarse_sizes, codec.fine_sizes)
    assert coarse.marginals[0].counts.tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert np.abs(fine.marginals[0].counts - ages).max() < 2.0 / 1000


@given(
    arrays.arrays(np.float64, 3, elements=st.floats(-MAX_IMPORTED_COUNT, MAX_IMPORTED_COUNT)),
    st.floats(1e-300, 1e300),
)
def test_counts_are_kept_to_a_thousandth_of_their_noise_or_to_the_last_bit(counts: Any, std: float) -> None:
    marginal = import_marginals(SCHEMA, {"sex": counts}, std=std, source="them").rounds[0].marginals[0]

    last_bit = np.spacing(max(1.0, np.abs(counts).max()))
    assert np.abs(marginal.counts - counts).max() <= max(std / 1000, last_bit)
    assert marginal.std == std
    assert 0 <= marginal.lattice <= 1000


def test_whole_counts_stay_what_they_are() -> None:
    counts = np.array([2**40, -3, 0])

    release = import_marginals(SCHEMA, {"sex": counts}, std=0.5, source="them")

    assert release.rounds[0].marginals[0].counts.tolist() == counts.tolist()


def test_each_marginal_can_have_its_own_standard_deviation() -> None:
    tables: dict[Any, Any] = {("sex",): [1, 2, 3], "employed": [4.0, 5.0]}

    release = import_marginals(SCHEMA, tables, std={"sex": 3, ("employed",): 4.0}, source="them")

    assert [marginal.std for marginal in release.rounds[0].marginals] == [3.0, 4.0]


@pytest.mark.parametrize(
    ("marginals", "words"),
    [
        ({}, "no marginals were given"),
        ({"wage": [1]}, "the marginal of wage: there is no attribute 'wage' in the schema; did you mean age?"),
        ({"job": [1]}, "'job' is open"),
        ({"id": [1]}, "'id' is an identifier"),
        ({"region": [1, 2]}, "'region' is derived from another"),
        ({(): 3}, "does not name attributes"),
        ({("sex", "sex"): np.zeros((3, 3))}, "each once"),
        ({frozenset({"age", "sex"}): np.zeros((3, 3))}, "a name or a tuple of names"),
        ({3: [1, 2, 3]}, "a name or a tuple of names"),
        ({(3,): [1, 2, 3]}, "there is no attribute 3"),
        ({"sex": [1, 2, 3], ("sex",): [1, 2, 3]}, "given twice"),
        ({"sex": [1, 2]}, r"has shape \(2,\), but the schema asks for \(3,\); .* in this order: sex: F, M, missing"),
        ({"age": [1, 2]}, r"asks for \(3,\), or \(100,\) for its finest cells; .*: age: 0..17, 18..64, 65..99"),
        ({("age", "sex"): np.zeros((100, 3))}, r"has shape \(100, 3\), but the schema asks for \(3, 3\)"),
        ({"sex": 3.0}, r"has shape \(\)"),
        ({"sex": [1, float("nan"), 2]}, "the marginal of sex holds counts that are not finite"),
        ({"sex": [1, float("inf"), 2]}, "not finite"),
        ({"sex": [1, 2.0**54, 2]}, r"beyond 2\^53"),
        ({"sex": ["1", "2", "3"]}, "not an array of numbers"),
        ({"sex": [1, [2], 3]}, "not an array of numbers"),
        ({"sex": [1j, 2, 3]}, "not an array of numbers"),
        ({"sex": [True, False, True]}, "not an array of numbers"),
        ({"sex": [None, 2, 3]}, "not an array of numbers"),
    ],
)
def test_marginals_that_do_not_fit_are_refused_with_what_would(marginals: Any, words: str) -> None:
    with pytest.raises(SynopsisError, match=words):
        import_marginals(SCHEMA, marginals, std=1.0, source="them")


@pytest.mark.parametrize(
    ("std", "words"),
    [
        (0, "its standard deviation is 0"),
        (-1.0, "positive"),
        (float("nan"), "positive"),
        (float("inf"), "positive"),
        ("1", "positive"),
        ({}, "the marginal of sex has no standard deviation"),
        ({"sex": 0}, "positive"),
        ({"sex": 1, "age": 2}, "no marginal for"),
    ],
)
def test_noise_that_cannot_be_is_refused(std: Any, words: str) -> None:
    with pytest.raises(SynopsisError, match=words):
        import_marginals(SCHEMA, {"sex": [1, 2, 3]}, std=std, source="them")


@pytest.mark.parametrize("source", ["", "  ", None])
def test_a_source_must_be_named(source: Any) -> None:
    with pytest.raises(SynopsisError, match="state who measured"):
        import_marginals(SCHEMA, {"sex": [1, 2, 3]}, std=1, source=source)
