from __future__ import annotations

import doctest
import math
import re
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from dpsyn import inference
from dpsyn.errors import UserError
from dpsyn.inference import methods
from dpsyn.inference.methods import (
    DECAYS,
    GUM,
    MCF,
    SYNTHESIS_METHODS,
    ConstantDecay,
    ExponentialDecay,
    Gibbs,
    LinearDecay,
    SquareRootDecay,
    StepDecay,
)

OPTION_CLASSES: list[type[Any]] = [*SYNTHESIS_METHODS.values(), *DECAYS.values()]

every_option_class = pytest.mark.parametrize("option_class", OPTION_CLASSES, ids=lambda option_class: option_class.name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("step", [1, 1, 0.84, 0.84**4]),
        ("exponential", [1, math.exp(-0.152), math.exp(-0.16), math.exp(-0.792)]),
        ("linear", [1, 1 / 1.38, 1 / 1.4, 1 / 2.98]),
        ("square-root", [1, 1 / math.sqrt(3.28), 1 / math.sqrt(3.4), 1 / math.sqrt(12.88)]),
        ("constant", [1] * 4),
    ],
)
@pytest.mark.parametrize("alpha", [1.0, 0.2])
def test_alpha_falls_as_published_whatever_it_begins_with(name: str, expected: list[float], alpha: float) -> None:
    method = GUM(alpha=alpha, decay=DECAYS[name]())

    alphas = [method.step_size(number) for number in (0, 19, 20, 99)]

    assert alphas == pytest.approx([alpha * share for share in expected])


def test_methods_and_decays_are_known_by_name() -> None:
    assert dict(SYNTHESIS_METHODS) == {"gibbs": Gibbs, "gum": GUM, "mcf": MCF}
    assert dict(DECAYS) == {
        "step": StepDecay,
        "exponential": ExponentialDecay,
        "linear": LinearDecay,
        "square-root": SquareRootDecay,
        "constant": ConstantDecay,
    }


@every_option_class
def test_options_are_keyword_only_and_cannot_change(option_class: type[Any]) -> None:
    options = option_class()

    with pytest.raises(TypeError):
        option_class(1)
    for field in fields(options):
        with pytest.raises(FrozenInstanceError):
            setattr(options, field.name, 1)


@every_option_class
def test_every_field_is_documented(option_class: type[Any]) -> None:
    section = (option_class.__doc__ or "").partition("Attributes:")[2].split("Example:")[0]

    assert re.findall(r"^ {8}(\w+): ", section, re.MULTILINE) == [field.name for field in fields(option_class)]


@every_option_class
def test_defaults_are_plain_values_or_other_options(option_class: type[Any]) -> None:
    given = [getattr(option_class(), field.name) for field in fields(option_class)]
    values = [part for value in given for part in (value if isinstance(value, tuple) else [value])]

    assert all(value is None or isinstance(value, (int, float, str, *OPTION_CLASSES)) for value in values)


def test_the_examples_of_the_docstrings_run() -> None:
    results = doctest.testmod(methods)

    assert results.failed == 0
    assert results.attempted >= len(OPTION_CLASSES)


def test_every_name_of_the_package_can_be_loaded() -> None:
    assert all(getattr(inference, name) is not None for name in inference.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'run_gibbs'"):
        inference.run_gibbs  # noqa: B018 -- to look it up is the test


@pytest.mark.parametrize(
    ("module", "unneeded"),
    [
        ("dpsyn.inference.methods", ("numpy", "numba", "dpsyn.inference.gibbs")),
        ("dpsyn.selection", ("dpsyn.inference.gibbs", "dpsyn.inference.gum", "dpsyn.accounting", "dpsyn.encoding")),
    ],
)
def test_a_module_loads_nothing_that_it_does_not_need(module: str, unneeded: tuple[str, ...]) -> None:
    code = f"import sys, {module}; print([name for name in {unneeded!r} if name in sys.modules])"

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == "[]"


NUMBERS = [
    (option_class, field.name)
    for option_class in OPTION_CLASSES
    for field in fields(option_class)
    if isinstance(getattr(option_class(), field.name), (int, float)) or field.name == "beta"
]


@pytest.mark.parametrize("wrong", [-1, -0.5, math.nan, math.inf, "1", True], ids=repr)
@pytest.mark.parametrize(("option_class", "name"), NUMBERS)
def test_a_wrong_number_is_refused_by_name(option_class: type[Any], name: str, wrong: object) -> None:
    with pytest.raises(UserError, match=rf"^{name} of {option_class.__name__} is {wrong!r}; give a \w*"):
        option_class(**{name: wrong})


@pytest.mark.parametrize(
    ("option_class", "wrong", "message"),
    [
        (GUM, {"rounds": 2.5}, "rounds of GUM is 2.5; give a whole number of at least 0"),
        (GUM, {"moves": "S5"}, "moves of GUM is 'S5'; give one of mixture, replace, duplicate"),
        (GUM, {"beta": 1.5}, "beta of GUM is 1.5; give a number from 0 to 1"),
        (GUM, {"decay": "step"}, r"decay of GUM is 'step'; give one of StepDecay\(\), ExponentialDecay\(\)"),
        (GUM, {"decay": StepDecay}, r"decay of GUM is the class StepDecay; give one of StepDecay\(\)"),
        (MCF, {"min_changed_share": 2}, "min_changed_share of MCF is 2; give a number from 0 to 1"),
        (Gibbs, {"max_sweeps": 0}, "max_sweeps of Gibbs is 0; give a whole number of at least 1"),
        (Gibbs, {"averaging_sweeps": 0}, "averaging_sweeps of Gibbs is 0; give a whole number of at least 1"),
        (Gibbs, {"trust": 0.0}, "trust of Gibbs is 0.0; give a number above 0"),
        (StepDecay, {"every": 0}, "every of StepDecay is 0; give a whole number of at least 1"),
        (GUM, {"alpha": 0.0}, "alpha of GUM is 0.0; give a number above 0"),
        *(
            (GUM, {"duplicate_shares": wrong}, "duplicate_shares of GUM is .*; give two numbers from 0 to 1")
            for wrong in (0.5, (0.5,), (0.5, 1.5), (-0.1, 1), [0.5, 1.0], (0.5, "1"))
        ),
        (GUM, {"duplicate_shares": (0.5, 1), "moves": "replace"}, "leave it out, or take moves mixture"),
    ],
)
def test_options_without_a_meaning_are_refused(option_class: type[Any], wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        option_class(**wrong)
