"""Evaluations as text and JSON: every score is shown, and the worst attributes and pairs come first."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest

from dpsyn.evaluation import EVALUATION_NOTICE, Evaluation, evaluate
from dpsyn.report.evaluation_report import combined_line, evaluation_data, evaluation_title, score_rows, worst_rows
from dpsyn.schema import Boolean, Schema

SCHEMA = Schema(attributes=tuple(Boolean(name=name) for name in "abcdefg"))


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    real = {name: [True, False] * 50 for name in SCHEMA.names}
    synthetic = real | {"c": [True] * 100, "f": [False, True] * 50}
    return evaluate(pa.table(real), pa.table(synthetic), SCHEMA)


def test_the_title_names_what_is_compared(evaluation: Evaluation) -> None:
    named = dataclasses.replace(evaluation, real="r.csv", synthetic="s.csv", synthetic_rows=1, real_rows=2000)

    assert evaluation_title(named) == "s.csv against r.csv: 1 row against 2,000, 7 attributes"


def test_each_score_has_a_row_of_numbers_and_a_direction(evaluation: Evaluation) -> None:
    lines = {words: cells for words, *cells in score_rows(evaluation)}

    figure = evaluation.distances.one_way
    assert lines["distance of 7 one-way marginals"] == [
        f"{figure.synthetic:.4f}",
        f"{figure.floor:.4f}",
        "–",  # shuffling columns does not change them
        "less",
    ]
    assert lines["NIST mean (preset paper)"][3] == "more"
    assert lines["rows identical to a real row"] == ["0.0 %", "100.0 %", lines["rows identical to a real row"][2], "–"]
    assert not any("Spearman" in words or "Gini" in words or "predicted" in words for words in lines)


def test_the_worst_attributes_and_pairs_come_first(evaluation: Evaluation) -> None:
    names = [words for words, *_ in worst_rows(evaluation)]

    assert names[0] == "c"
    assert len(names) == 10
    assert all(" × " in name and ("c" in name or "f" in name) for name in names[5:])


def test_plain_data_of_several_tables_has_their_combined_score(evaluation: Evaluation) -> None:
    one, two = evaluation_data([evaluation]), evaluation_data([evaluation, evaluation])

    assert one == evaluation.to_dict()
    assert two["notice"] == EVALUATION_NOTICE
    assert two["evaluations"] == [one, one]
    assert two["combined"] == one["contest"]["mean"]
    assert combined_line([evaluation] * 2).startswith(
        f"NIST mean of 2 tables: {one['contest']['mean']['synthetic']:,.0f} ("
    )
