"""Attributes that agree are found, and measured as their differences from an anchor; others cost nothing."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpsyn
from dpsyn.accounting import Gaussian
from dpsyn.encoding import DifferenceCoding, expect_same_value
from dpsyn.recipes.anchors import MAX_QUESTION_SHARE, Link, choose_anchors, may_agree
from dpsyn.schema import Categorical, Integer, Schema, Total
from tests.recipes.test_golden_rows import release

ROWS = 20_000
LONG = 60


def codes(*names: str, size: int = LONG) -> Schema:
    return Schema(attributes=tuple(Categorical(name=name, codes=size) for name in names))


def repeated(rows: int = ROWS, *, exceptions: float = 0.0, size: int = LONG) -> dict[str, Any]:
    """``b`` repeats ``a`` but for some rows; ``c`` is another column of the same distribution."""
    rng = np.random.default_rng(3)
    weights = 1 / (5 + np.arange(size))
    a, other, c = (rng.choice(size, rows, p=weights / weights.sum()) for _ in range(3))
    return {"a": a, "b": np.where(rng.random(rows) < exceptions, other, a), "c": c}


def purposes(synopsis: dpsyn.Synopsis) -> list[str]:
    certificate = synopsis.certificates[0]
    assert certificate is not None
    return [record.purpose for record in certificate.account.measurements]


def anchors_of(synopsis: dpsyn.Synopsis) -> dict[str, str]:
    names = [name for name, _ in synopsis.model.recoding.origin]
    return {names[s]: names[d.anchor] for s, d in synopsis.model.recoding.difference_codings.items()}


# ── what is found ────────────────────────────────────────────────────────────────────────────────────────────


def test_columns_that_repeat_each_other_stay_equal() -> None:
    synopsis = release(pa.table(repeated()), codes("a", "b", "c"))
    rows = synopsis.generate(5_000, seed=1).to_pandas()

    assert anchors_of(synopsis) in ({"b": "a"}, {"a": "b"})
    assert (rows["a"] == rows["b"]).mean() > 0.99
    assert (rows["a"] == rows["c"]).mean() < 0.2


def test_a_long_list_and_its_copy_keep_their_joint_distribution() -> None:
    data = {name: column for name, column in repeated(30_000, size=1_500).items() if name != "c"}
    rows = release(pa.table(data), codes("a", "b", size=1_500)).generate(30_000, seed=1).to_pandas()

    real = np.bincount(data["a"] * 1_500 + data["b"], minlength=1_500**2)
    synthetic = np.bincount(rows["a"].astype(int) * 1_500 + rows["b"].astype(int), minlength=1_500**2)
    assert np.abs(real - synthetic).sum() / 2 / 30_000 < 0.2  # columns shuffled: .99


def test_exceptions_are_kept_in_their_share() -> None:
    synopsis = release(pa.table(repeated(exceptions=0.05)), codes("a", "b", "c"))
    rows = synopsis.generate(20_000, seed=1).to_pandas()

    assert len(anchors_of(synopsis)) == 1
    assert (rows["a"] != rows["b"]).mean() == pytest.approx(0.05, abs=0.015)


def test_columns_that_agree_in_half_of_the_rows_stay_as_they_are() -> None:
    synopsis = release(pa.table(repeated(exceptions=0.5)), codes("a", "b", "c"))

    assert any(purpose.startswith("marginal of b − a") for purpose in purposes(synopsis))
    assert not anchors_of(synopsis)


def test_a_value_that_only_one_list_has_is_kept_like_missing() -> None:
    rng = np.random.default_rng(4)
    data = repeated()
    late = np.where(rng.random(ROWS) < 0.6, LONG, data["a"])
    schema = Schema(attributes=(Categorical(name="a", codes=LONG), Categorical(name="late", codes=LONG + 1)))
    synopsis = release(pa.table({"a": data["a"], "late": late}), schema)
    rows = synopsis.generate(10_000, seed=1).to_pandas()

    assert anchors_of(synopsis) == {"late": "a"}
    assert (rows["late"] == LONG).mean() == pytest.approx(0.6, abs=0.02)
    assert ((rows["late"] == rows["a"]) | (rows["late"] == LONG)).mean() > 0.99


def test_numbers_that_differ_by_little_are_coded_as_differences() -> None:
    rng = np.random.default_rng(5)
    start = rng.integers(0, 200, ROWS)
    data = {
        "start": start,
        "end": np.where(rng.random(ROWS) < 0.1, 999, np.minimum(start + rng.integers(0, 2, ROWS), 199)),
    }
    schema = Schema(
        attributes=(
            Integer(name="start", low=0, high=199),
            Integer(name="end", low=0, high=199, missing=("999",)),
        )
    )
    synopsis = release(pa.table(data), schema)
    rows = synopsis.generate(10_000, seed=1).to_pandas()
    known = rows.dropna()

    assert anchors_of(synopsis) == {"end": "start"}
    assert rows["end"].isna().mean() == pytest.approx(0.1, abs=0.02)
    assert (known["end"] - known["start"]).isin([0, 1]).mean() > 0.95
    assert synopsis.marginal("end").counts.sum() == pytest.approx(ROWS, rel=0.02)


# ── what it costs ────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_is_asked_where_one_way_marginals_differ() -> None:
    data = repeated()
    data["b"] = (data["b"] + LONG // 2) % LONG
    data["c"] = LONG - 1 - data["c"]

    assert may_agree(codes("a", "b", "c"))
    assert not any("−" in purpose for purpose in purposes(release(pa.table(data), codes("a", "b", "c"))))


def test_nothing_is_asked_where_noise_would_hide_the_answer() -> None:
    """Noise adds to the rows of attributes with many values; there are no more rows to agree than in all."""
    few = pa.table(repeated(2_000, size=500))

    synopsis = release(few, codes("a", "b", "c", size=500), epsilon=0.2)

    assert not any("−" in purpose for purpose in purposes(synopsis))
    assert anchors_of(synopsis) == {}


@pytest.mark.parametrize(
    "schema",
    [
        codes("a", "b", size=32),
        Schema(attributes=(Categorical(name="a", codes=60), Categorical(name="b", values=tuple("abcdefgh") * 1))),
        Schema(attributes=(Categorical(name="a", codes=60), Integer(name="b", low=0, high=59))),
    ],
    ids=["short lists", "different lists", "different kinds"],
)
def test_attributes_of_few_or_other_values_cannot_agree(schema: Schema) -> None:
    assert not may_agree(schema)


def test_the_question_is_charged_within_its_share() -> None:
    synopsis = release(pa.table(repeated()), codes("a", "b", "c"))
    certificate = synopsis.certificates[0]
    assert certificate is not None
    asked = [r.cost for r in certificate.account.measurements if "−" in r.purpose]
    rho = sum((Fraction(cost.rho) for cost in asked), Fraction(0))

    assert len(asked) == 3
    assert 0 < rho <= Fraction(MAX_QUESTION_SHARE) * certificate.account.budget.rho


def test_the_question_is_a_histogram_of_rows() -> None:
    """A unit of three rows changes it by at most three."""
    schema = Schema(
        attributes=(*codes("a", "b").attributes, dpsyn.Identifier(name="who")),
        privacy_unit=dpsyn.schema.UnitDeclaration(id="who", max_rows=3),
    )
    data = {**repeated(60_000), "who": np.arange(60_000) // 3}
    del data["c"]
    synopsis = release(pa.table(data), schema, 5.0)
    certificate = synopsis.certificates[0]
    assert certificate is not None
    (asked,) = [record.cost for record in certificate.account.measurements if "−" in record.purpose]

    assert isinstance(asked, Gaussian)
    assert asked.sensitivity_squared == 9


# ── what must stay as it is ──────────────────────────────────────────────────────────────────────────────────


def test_a_target_and_an_attribute_with_a_public_total_are_never_differences() -> None:
    table = pa.table({name: column for name, column in repeated().items() if name != "c"})
    total = Total(count=5_000, where=dpsyn.Schema.from_yaml(TOTAL).rules[0].where)  # type: ignore[union-attr]
    with_total = Schema(attributes=codes("a", "b").attributes, rules=(total,))

    assert anchors_of(release(table, codes("a", "b"), target="a")) == {"b": "a"}
    assert anchors_of(release(table, codes("a", "b"), target="b")) == {"a": "b"}
    assert anchors_of(release(table, with_total)) == {"b": "a"}


TOTAL = """
dpsyn_schema: 1
attributes:
  a: {kind: categorical, codes: 60}
  b: {kind: categorical, codes: 60}
rules:
  - {rule: total, where: {a: 0}, count: 5000}
"""


def test_a_release_with_anchors_survives_saving_and_can_be_extended(tmp_path: Path) -> None:
    table = pa.table(repeated())
    synopsis = release(table, codes("a", "b", "c"))
    synopsis.save(tmp_path / "s.dpsyn")
    loaded = dpsyn.Synopsis.load(tmp_path / "s.dpsyn")
    extended = release(table, codes("a", "b", "c"), extend=loaded)

    assert loaded.generate(100, seed=2).equals(synopsis.generate(100, seed=2))
    assert anchors_of(extended) == anchors_of(synopsis)


# ── which attribute is the anchor ────────────────────────────────────────────────────────────────────────────


def link(attribute: str, anchor: str, equal: float, agreement: float = 1.0) -> Link:
    return Link(attribute, anchor, DifferenceCoding(0, np.arange(3), 3), equal, agreement)


def test_the_anchor_is_what_most_are_equal_to_and_has_none_itself() -> None:
    links = [link("b", "a", 0.9), link("a", "b", 0.9), link("c", "a", 0.99), link("c", "b", 0.95), link("b", "c", 0.9)]

    assert {name: found.anchor for name, found in choose_anchors(links).items()} == {"b": "a", "c": "a"}


def test_weak_links_are_left_out_and_each_takes_its_strongest_anchor() -> None:
    links = [
        *(link(name, "a", 0.92) for name in ("b", "c", "d")),
        *(link(name, "x", 0.91) for name in ("y", "z")),
        link("d", "x", 0.97, agreement=1.0),
        link("q", "a", 0.5, agreement=0.6),
    ]

    chosen = {name: found.anchor for name, found in choose_anchors(links).items()}
    assert chosen == {"b": "a", "c": "a", "d": "x", "y": "x", "z": "x"}


def test_lists_must_begin_alike() -> None:
    one = Categorical(name="one", values=("u", "v", "w"))
    longer = Categorical(name="longer", values=("u", "v", "w", "none"))
    other = Categorical(name="other", values=("v", "u", "w"))
    coding = expect_same_value(longer, one, 0)

    assert coding is not None
    assert coding.modulus == 3
    assert coding.encode(np.array([1, 3]), np.array([1, 1])).tolist() == [0, 3]
    assert expect_same_value(other, one, 0) is None
    assert expect_same_value(Integer(name="n", low=0, high=9), one, 0) is None
