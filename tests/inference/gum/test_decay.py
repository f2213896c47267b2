from __future__ import annotations

import math

import pytest

from dpsyn.errors import UserError
from dpsyn.inference.gum import DECAYS, ConstantDecay, ExponentialDecay, LinearDecay, SquareRootDecay, StepDecay


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("step", [1, 1, 0.84, 0.84**4]),
        ("exponential", [1, math.exp(-0.152), math.exp(-0.16), math.exp(-0.792)]),
        ("linear", [1, 1 / 1.38, 1 / 1.4, 1 / 2.98]),
        ("root", [1, 1 / math.sqrt(3.28), 1 / math.sqrt(3.4), 1 / math.sqrt(12.88)]),
        ("constant", [0.2] * 4),
    ],
)
def test_alpha_falls_as_published(name: str, expected: list[float]) -> None:
    alphas = [DECAYS[name].step_size(number) for number in (0, 19, 20, 99)]

    assert alphas == pytest.approx(expected)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_a_decay_that_is_none_is_refused(wrong: float) -> None:
    for build in (
        lambda: StepDecay(start=wrong),
        lambda: ExponentialDecay(rate=wrong),
        lambda: LinearDecay(rate=wrong),
        lambda: SquareRootDecay(rate=wrong),
        lambda: ConstantDecay(start=wrong),
    ):
        with pytest.raises(UserError, match="give a number above 0"):
            build()
