"""Verdicts: what they say of good, middling and bad tables, and that worse than shuffled is never hidden."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

import dpsyn
from dpsyn.demo import people, people_schema
from dpsyn.evaluation import Evaluation, evaluate
from dpsyn.marginals import Metric
from dpsyn.report.evaluation_report import evaluation_verdict, score_rows
from dpsyn.report.release_report import comparison_verdict
from dpsyn.report.verdict import differs, is_worse_than_shuffled, join_names, judge_position, position_of
from dpsyn.schema import Categorical, Schema
from tests.report.pages import evaluation as club
from tests.report.pages import rows, shuffle_column, synopsis

SCHEMA = Schema(attributes=tuple(Categorical(name=name, codes=6) for name in "abcd"))
ROWS = 4_000


def real(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 6, ROWS)
    follow = {name: np.where(rng.random(ROWS) < 0.8, a, rng.integers(0, 6, ROWS)) for name in "bcd"}
    return {"a": a, **follow}


def judge(synthetic: dict[str, np.ndarray]) -> tuple[str, str, Evaluation]:
    result = evaluate(pa.table(real()), pa.table(synthetic), SCHEMA)
    verdict = evaluation_verdict(result)
    return verdict.tone, " ".join(verdict.lines), result


def test_a_fresh_sample_is_good() -> None:
    tone, words, _ = judge(real(seed=1))

    assert tone == "good"
    assert words == (
        "Pairs are kept nearly as well as by a fresh sample of the real rows; all single columns are kept."
    )


def test_a_column_that_differs_is_named() -> None:
    other = real(seed=1)
    other["c"] = np.where(np.arange(ROWS) % 10 == 0, 0, other["c"])

    tone, words, _ = judge(other)

    assert tone == "mixed"
    assert "; but 1 of 4 columns differs: c." in words
    assert re.search(r"c: [89]\.\d % of the rows would have to change \(a fresh sample: [12]\.\d %\)\.", words)


def test_shuffled_columns_have_lost_their_pairs() -> None:
    rng = np.random.default_rng(5)
    tone, words, _ = judge({name: rng.permutation(column) for name, column in real().items()})

    assert tone == "bad"
    assert words.startswith(("Pairs are mostly lost: about 0 %", "Pairs are worse than shuffled"))


def test_a_table_that_is_worse_than_shuffled_is_called_so_everywhere() -> None:
    opposite = real()
    opposite |= {"b": (opposite["b"] + 3) % 6, "d": (opposite["d"] + 2) % 6}

    tone, words, result = judge(opposite)

    assert tone == "bad"
    assert "worse than shuffled: with every column shuffled by itself the table would be closer" in words
    assert "Worse than shuffled: 5 of 6 pairs: " in words
    assert "Worse than shuffled, too: " in words
    assert any("NIST" in label for label, *_ in score_rows(result))


def test_columns_that_do_not_depend_on_each_other_are_not_judged_by_their_pairs() -> None:
    assert judge_position(position_of(Metric(synthetic=0.5, floor=0.02, independent=0.021)), "x") == (
        "good",
        "columns hardly depend on each other, so there is little to keep in pairs",
    )


@pytest.mark.parametrize(
    ("position", "tone", "words"),
    [
        (-0.1, "good", "nearly as well as by a sample"),
        (0.2, "good", "kept well, with about 80 %"),
        (0.5, "mixed", "in part, with about 50 %"),
        (0.9, "bad", "mostly lost: about 10 %"),
        (1.0, "bad", "worse than shuffled"),
        (3.0, "bad", "worse than shuffled"),
    ],
)
def test_a_position_has_its_words(position: float, tone: str, words: str) -> None:
    judged, said = judge_position(position, "a sample")

    assert judged == tone
    assert words in said


@pytest.mark.parametrize(
    ("synthetic", "floor", "independent", "expected"),
    [
        (0.05, 0.02, 0.5, (True, False)),
        (0.03, 0.02, 0.5, (False, False)),  # less than twice the floor
        (0.012, 0.004, 0.5, (False, False)),  # less than one row in a hundred
        (0.6, 0.02, 0.5, (True, True)),
        (0.505, 0.02, 0.5, (True, False)),
    ],
)
def test_what_differs_and_what_is_worse_than_shuffled(
    synthetic: float, floor: float, independent: float, expected: tuple[bool, bool]
) -> None:
    metric = Metric(synthetic=synthetic, floor=floor, independent=independent)

    assert (differs(metric), is_worse_than_shuffled(metric)) == expected


def test_long_lists_of_names_are_cut() -> None:
    assert join_names([]) == ""
    assert join_names(["a"]) == "a"
    assert join_names(["a", "b", "c"]) == "a, b and c"
    assert join_names([*"abcde"]) == "a, b, c and 2 more"


def test_rows_that_agree_with_a_release_are_good_and_others_are_not() -> None:
    released = synopsis()
    good = comparison_verdict(released, released.compare_rows(rows()))
    bad = comparison_verdict(released, released.compare_rows(shuffle_column(rows(), "size")))

    assert good.tone == "good"
    assert good.headline.startswith("The rows agree with the released counts as closely as their noise can tell; ")
    assert bad.tone != "good"
    assert "The rows differ from the released counts by " in bad.headline


def test_a_classifier_is_part_of_the_verdict_only_if_there_is_one() -> None:
    assert "AUC" not in " ".join(evaluation_verdict(club()).lines)


def test_a_release_without_pairs_is_called_so_even_if_attributes_were_joined() -> None:
    released = dpsyn.measure(people(rows=200), people_schema(), epsilon=5.0, recipe="independent")

    verdict = comparison_verdict(released, released.compare_rows(released.generate_arrow(200, seed=1)))

    assert verdict.tone == "bad"
    assert verdict.headline.startswith(
        "No pair was measured but within joint attributes, so other columns are independent of each other; "
    )
