from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.report.numbers import format_count, format_number, format_percent, format_rounded_down, format_rounded_up


@pytest.mark.parametrize(
    ("number", "text"),
    [(4.0000000002, "4"), (1e-9, "1e-9"), (0.25, "0.25"), (12345.6, "12,345.6"), (0, "0"), (2.5e12, "2.5e12")],
)
def test_numbers_are_short(number: float, text: str) -> None:
    assert format_number(number) == text


@given(st.floats(1e-6, 1e6))
def test_the_spent_budget_is_rounded_up_and_the_remaining_one_down(number: float) -> None:
    spent, left = (float(text.replace(",", "")) for text in (format_rounded_up(number), format_rounded_down(number)))

    assert number * 0.989 < left <= number * (1 + 2e-9)
    assert number * (1 - 2e-9) <= spent < number * 1.011


def test_shares_are_rounded_up() -> None:
    assert [format_percent(share) for share in (0, 1e-6, 0.5, 0.501, 1 + 1e-12, 1.2)] == [
        "0 %", "1 %", "50 %", "51 %", "100 %", "120 %",
    ]  # fmt: skip


def test_infinity_and_counts_are_formatted() -> None:
    assert format_rounded_up(math.inf) == "inf"
    assert [format_count(n, "run") for n in (0, 1, 2000)] == ["0 runs", "1 run", "2,000 runs"]
