"""Groups of rows: their distances by hand, error bars, flags, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import dpsyn
from dpsyn.errors import UserError
from dpsyn.marginals.comparison import SMALL_GROUP_ROWS
from dpsyn.report.evaluation_report import private_report
from dpsyn.report.groups import group_lines, group_rows
from dpsyn.report.release_report import publishable_report
from dpsyn.schema import Boolean, Categorical, Integer, Schema

SCHEMA = Schema(
    attributes=(
        Categorical(name="sex", values=("f", "m", "x")),
        Boolean(name="a"),
        Categorical(name="b", codes=3),
    )
)


def make_rows(counts: dict[str, list[tuple[bool, int]]]) -> pa.Table:
    rows = [(sex, a, b) for sex, cells in counts.items() for a, b in cells]
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(("sex", "a", "b"))})


def test_the_distance_of_a_group_is_the_mean_over_other_attributes_within_it() -> None:
    real = make_rows({"f": [(True, 0), (False, 1)] * 100, "m": [(True, 2)] * 50})
    synthetic = make_rows({"f": [(True, 0), (True, 1)] * 10, "m": [(True, 2)] * 7, "x": [(True, 0)]})

    women, men, others = dpsyn.evaluate(real, synthetic, SCHEMA, by=["sex"]).groups

    assert [women.group, men.group, others.group] == ["f", "m", "x"]
    assert [women.rows, men.rows, others.rows] == [200, 50, 0]
    assert [women.synthetic_rows, men.synthetic_rows, others.synthetic_rows] == [20, 7, 1]
    assert women.distance.synthetic == pytest.approx((0.5 + 0) / 2)
    assert men.distance.synthetic == 0
    assert others.distance.synthetic == 1  # nobody to compare with
    assert [women.small, men.small, others.small] == [False, True, True]
    assert women.attributes == 2
    assert men.error == 0
    assert 0 < women.error < 0.1


def test_distances_and_errors_agree_with_evaluations_of_the_groups_alone() -> None:
    rng = np.random.default_rng(4)

    def sample(rows: int, tilt: float) -> pa.Table:
        sex = rng.choice(["f", "m"], rows)
        a = rng.random(rows) < np.where(sex == "f", 0.5 + tilt, 0.3)
        return pa.table({"sex": sex, "a": a, "b": rng.integers(0, 3, rows)})

    real, synthetic = sample(4_000, 0.0), sample(3_000, 0.2)

    groups = dpsyn.evaluate(real, synthetic, SCHEMA, by=["sex"]).groups

    spread = [
        [g.distance.synthetic for g in dpsyn.evaluate(sample(4_000, 0), sample(3_000, 0.2), SCHEMA, by=["sex"]).groups]
        for _ in range(15)
    ]
    for index, group in enumerate(groups):
        parts = [table.filter(pc.equal(table["sex"], group.group)) for table in (real, synthetic)]
        alone = dpsyn.evaluate(parts[0], parts[1], SCHEMA).attributes
        assert group.distance.synthetic == pytest.approx(np.mean([each.distance.synthetic for each in alone[1:]]))
        assert group.error == pytest.approx(np.std([each[index] for each in spread]), rel=0.7)
    assert groups[0].distance.excess > 5 * groups[0].error
    assert "sex = f" in group_lines(groups)[0]
    assert group_rows(groups)[0][0] == "sex = f"


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (["nobody"], "'nobody' is not compared"),
        ("sex", "give a list"),
        (["sex", "sex"], "twice"),
        (["n"], "at most 100"),
    ],
)
def test_groups_that_make_no_sense_are_refused(by: list[str], message: str) -> None:
    schema = Schema(attributes=(*SCHEMA.attributes, Integer(name="n", low=0, high=999, bins=500)))
    table = make_rows({"f": [(True, 0)]}).append_column("n", pa.array([1]))

    with pytest.raises(UserError, match=message):
        dpsyn.evaluate(table, table, schema, by=by)


def test_groups_of_a_release_are_compared_as_far_as_marginals_hold_them() -> None:
    counts: dict[tuple[str, ...], Any] = {("sex", "a"): [[400, 100], [150, 350], [-3, 2]], ("b",): [600, 300, 99]}
    synopsis = dpsyn.Synopsis.from_marginals(SCHEMA, counts, std=5, source="a survey")
    rows = make_rows({"f": [(False, 0)] * 30 + [(True, 1)] * 20, "m": [(True, 2)] * 35 + [(False, 0)] * 15})

    comparison = synopsis.compare_rows(rows, by=["sex", "b"])

    women, men, others = comparison.groups
    assert women.distance.synthetic == pytest.approx(abs(30 / 50 - 0.8), abs=0.002)
    assert men.distance.synthetic == pytest.approx(0, abs=0.002)
    assert women.distance.floor == pytest.approx(np.sqrt(2 / np.pi) * 5 / 500)
    assert women.error == pytest.approx(np.sqrt((1 - 2 / np.pi) * 50) / 1000)
    assert (women.rows, women.synthetic_rows, women.attributes) == (500, 50, 1)
    assert others.small
    assert others.rows < SMALL_GROUP_ROWS
    assert not women.small
    assert any("holds b together" in line for line in group_lines(comparison.groups, ["sex", "b"]))
    with pytest.raises(UserError, match="'c' is not compared"):
        synopsis.compare_rows(rows, by=["c"])


def test_both_reports_have_a_section_of_groups_if_there_are_any() -> None:
    pytest.importorskip("vl_convert")
    table = make_rows({"f": [(True, 0)] * 150, "m": [(False, 1)] * 20})
    evaluation = dpsyn.evaluate(table, table, SCHEMA, by=["sex"])
    counts: dict[tuple[str, ...], Any] = {("sex", "a"): [[1, 150], [20, 1], [0, 0]], ("b",): [150, 20, 0]}
    synopsis = dpsyn.Synopsis.from_marginals(SCHEMA, counts, std=1, source="a survey")

    pages = [private_report(evaluation), publishable_report(synopsis, table, by=["sex"])]

    for page in pages:
        assert 'id="groups"' in page
        assert "Too small to judge: sex = m" in page
    assert 'id="groups"' not in publishable_report(synopsis, table)


def test_the_groups_of_the_schema_are_compared_unless_others_are_asked_for() -> None:
    declared = SCHEMA.with_groups(["sex"])
    table = make_rows({"f": [(True, 0)] * 150, "m": [(False, 1)] * 20})
    counts: dict[tuple[str, ...], Any] = {("sex", "a"): [[1, 150], [20, 1], [0, 0]], ("a", "b"): np.ones((2, 3))}
    synopsis = dpsyn.Synopsis.from_marginals(declared, counts, std=1, source="a survey")

    def attributes(comparison: Any) -> set[str]:
        return {group.attribute for group in comparison.groups}

    compare: list[Any] = [
        lambda **by: dpsyn.evaluate(table, table, declared, **by),
        lambda **by: synopsis.compare_rows(table, **by),
        lambda **by: dpsyn.release_evaluation(table, table.slice(0), declared, 1.0, **by),
    ]
    for compared in compare:
        assert attributes(compared()) == {"sex"}
        assert attributes(compared(by=["b"])) == {"b"}
        assert attributes(compared(by=[])) == set()
    small = {group.group: group.small for group in dpsyn.evaluate(table, table, declared).groups}
    assert small == {"f": False, "m": True}


def test_a_comparison_leaves_out_declared_groups_that_became_too_many() -> None:
    attributes = (Integer(name="n", low=0, high=999, bins=101), Boolean(name="a"))
    schema = Schema(attributes=attributes, groups=("n", "a"))
    counts: dict[tuple[str, ...], Any] = {("n", "a"): np.ones((schema["n"].size, 2))}
    synopsis = dpsyn.Synopsis.from_marginals(schema, counts, std=1, source="a survey")

    groups = synopsis.compare_rows(pa.table({"n": [1, 2], "a": [True, False]})).groups

    assert {group.attribute for group in groups} == {"a"}
    with pytest.raises(UserError, match="at most 100"):
        dpsyn.evaluate(pa.table({"n": [1], "a": [True]}), pa.table({"n": [1], "a": [True]}), schema)
