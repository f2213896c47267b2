"""Options are listed, set by dotted paths from text, and stored as data that reads back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

import dpsyn
from dpsyn.errors import UserError
from dpsyn.options import find_option_object, list_options, options_from_data, options_to_data, set_options, text_option


@dataclass(frozen=True, kw_only=True)
class Slow:
    """A decay.

    Attributes:
        start: where it begins.
    """

    name: ClassVar[str] = "slow"
    start: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Fast:
    name: ClassVar[str] = "fast"
    start: float = 2.0
    every: int = 3


@dataclass(frozen=True, kw_only=True)
class Inner:
    limit: int = 10


@dataclass(frozen=True, kw_only=True)
class Outer:
    """An algorithm.

    Attributes:
        decay: how it slows down,
            in two lines.
        mode: what it does.
    """

    name: ClassVar[str] = "outer"
    decay: Slow | Fast = Slow()
    inner: Inner = Inner()
    mode: Literal["mixture", "copy"] = "mixture"
    shares: tuple[int, int] = (1, 9)
    weights: Mapping[str, float] = field(default_factory=dict)
    safety: Fraction = Fraction(11, 10)
    beta: float | None = None
    exact: bool = False
    size: tuple[int, int] | None = text_option(
        None, parse=lambda text: tuple(int(part) for part in text.split("x")), type_words="AxB"
    )

    def __post_init__(self) -> None:
        if self.beta is not None and not 0 <= self.beta <= 1:
            raise UserError(f"beta is {self.beta}; give a number from 0 to 1")


FAMILY = {"outer": Outer}

API: Any = dpsyn
"""The package without its types, to give wrong ones."""


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"decay": "fast"}, {"decay": Fast()}),
        ({"decay.start": "0.2"}, {"decay": Slow(start=0.2)}),
        ({"decay.every": "7", "decay": "fast"}, {"decay": Fast(every=7)}),
        ({"inner.limit": "1_000"}, {"inner": Inner(limit=1000)}),
        ({"mode": "copy"}, {"mode": "copy"}),
        ({"shares": "2, 8"}, {"shares": (2, 8)}),
        ({"weights": "income=4,age=0.5"}, {"weights": {"income": 4.0, "age": 0.5}}),
        ({"safety": "1.2"}, {"safety": Fraction(6, 5)}),
        ({"beta": "0.3"}, {"beta": 0.3}),
        ({"beta": "none"}, {"beta": None}),
        ({"exact": "True"}, {"exact": True}),
        ({"size": "2x8"}, {"size": (2, 8)}),
        ({"beta": 0.5, "exact": True}, {"beta": 0.5, "exact": True}),
    ],
)
def test_text_sets_an_option(values: dict[str, Any], expected: dict[str, Any]) -> None:
    assert set_options(Outer(), values) == Outer(**expected)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"speed": "1"}, "outer has no option 'speed'; its options are decay, inner, mode, shares"),
        ({"mod": "copy"}, r"outer has no option 'mod'; did you mean mode\?"),
        ({"decay.every": "7"}, "decay is slow, which has no option 'decay.every'; its options are decay.start"),
        ({"inner": "3"}, "option inner holds options of its own; set one of them, such as inner.limit"),
        ({"mode.x": "1"}, "there is no option 'mode.x'; mode holds a value, not further options"),
        ({"decay": "none"}, "option decay is 'none'; it takes: slow|fast"),
        ({"decay.start": "much"}, "option decay.start is 'much'; it takes: number"),
        ({"mode": "all"}, r"option mode is 'all'; it takes: mixture\|copy"),
        ({"shares": "1"}, "option shares is '1'; it takes: 2 whole numbers, separated by commas"),
        ({"weights": "income"}, "option weights is 'income'; it takes: NAME=NUMBER"),
        ({"exact": "yes"}, "option exact is 'yes'; it takes: true"),
        ({"size": "2by8"}, "option size is '2by8'; it takes: AxB"),
        ({"beta": "2"}, "option beta is '2': beta is 2.0; give a number from 0 to 1"),
    ],
)
def test_what_cannot_be_set_is_refused_with_what_can(values: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        set_options(Outer(), values)


def test_options_are_listed_with_type_default_and_description() -> None:
    options = {option.path: option for option in list_options(Outer)}

    assert list(options) == [
        "decay", "decay.start", "inner.limit", "mode", "shares", "weights", "safety", "beta", "exact", "size",
    ]  # fmt: skip
    assert (options["decay"].type, options["decay"].default) == ("slow|fast", "slow")
    assert options["decay"].description == "how it slows down, in two lines."
    assert options["decay.start"].description == "where it begins."
    assert (options["size"].type, options["size"].default) == ("AxB", "none")
    assert (options["shares"].default, options["exact"].default) == ("1,9", "false")
    assert [option.path for option in list_options(Outer(decay=Fast()))][:3] == ["decay", "decay.start", "decay.every"]


@pytest.mark.parametrize(
    "target",
    [
        Outer(),
        Outer(
            decay=Fast(every=9), inner=Inner(limit=2), weights={"a": 2.0}, beta=0.1, exact=True, safety=Fraction(1, 3)
        ),
    ],
)
def test_options_read_back_from_their_data(target: Outer) -> None:
    data = options_to_data(target)

    assert data["name"] == "outer"
    assert options_from_data(data, FAMILY) == target


def test_an_unknown_object_or_field_is_refused() -> None:
    with pytest.raises(UserError, match="there is no thing 'inner'; there are outer"):
        find_option_object("inner", FAMILY, "thing", {})
    with pytest.raises(UserError, match="there is no 'x'"):
        options_from_data({"name": "x"}, FAMILY)
    with pytest.raises(UserError, match="outer has no option 'later'; it may come from a newer DPSyn"):
        options_from_data({"name": "outer", "later": 1}, FAMILY)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: API.PrivSyn(synthesis="gum"), "synthesis of PrivSyn is 'gum'; give an object: Gibbs"),
        (lambda: API.PrivSyn(rare_rows="many"), "rare_rows of PrivSyn is 'many'; give a value of this kind: number"),
        (lambda: API.PrivSyn(rare_rows=-5), "rare_rows of PrivSyn is -5; give at least 0"),
        (lambda: API.DPSyn(rare_rows=-5), "rare_rows of DPSyn is -5; give at least 0"),
        (lambda: API.Explore(rare_rows=-5), "rare_rows of Explore is -5; give at least 0"),
        (lambda: API.PrivSyn(budget_shares=(1, 0, 8)), r"budget_shares of PrivSyn is \(1, 0, 8\); give three numbers"),
        (lambda: API.PrivSyn(rare_sigmas=float("nan")), "rare_sigmas of PrivSyn is nan"),
        (lambda: API.PrivSyn(budget_shares=(1, 1)), "budget_shares of PrivSyn is .*: 3 numbers"),
        (lambda: API.PrivSyn(max_combined_cells=-1), "give at least 1"),
        (lambda: API.PrivSyn(max_combined_cells=5.5), "a value of this kind: whole number"),
        (lambda: API.PrivSyn(max_combined_cells=True), "a value of this kind: whole number"),
        (lambda: API.DPSyn(selection=3), "selection of DPSyn is 3; give an object of type AdaptiveSelection"),
        (lambda: API.DPSyn(weights=[1]), "weights of DPSyn is"),
        (lambda: API.AdaptiveSelection(second_round_ratio=float("inf")), "second_round_ratio of AdaptiveSelection"),
        (lambda: API.AdaptiveSelection(max_triples=-1), "give at least 0"),
        (lambda: API.PriView(views="covering:2x8"), "views of PriView is 'covering:2x8'; give an object"),
        (lambda: API.Planned(plan="plan.yaml"), "plan of Planned is 'plan.yaml'; give an object of type Plan"),
        (lambda: API.AdaptiveSelection(score_share=0), "score_share is 0; scores need a part of the budget"),
        (lambda: API.DPSyn(initial_share=0), "initial_share is 0; one-way marginals need"),
        (lambda: API.Direct(ways=0), "ways of Direct is 0; give at least 1"),
        (lambda: API.MWEM(rounds=0), "rounds of MWEM is 0"),
        (lambda: API.find_synthesis("gum", {"moves": "dupl"}), "option synthesis.moves is 'dupl'"),
        (lambda: API.find_recipe("privsyn", {"synthesis.decay.every": "0"}), "option synthesis.decay.every is '0': "),
        (
            lambda: API.find_recipe("privsyn", {"synthesis": "gibbs", "synthesis.rounds": "5"}),
            "synthesis is gibbs, which has no option 'synthesis.rounds'.*; its options are synthesis.max_sweeps",
        ),
        (lambda: API.list_options("privsyn"), "'privsyn' has no options; give a recipe"),
    ],
)
def test_a_wrong_option_is_refused_when_the_object_is_made(make: Callable[[], object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        make()


@pytest.mark.parametrize("name", dpsyn.RECIPES)
def test_every_recipe_lists_its_options_and_stores_them_as_data(name: str) -> None:
    recipe = dpsyn.find_recipe(name)

    options = dpsyn.list_options(recipe)

    assert all(option.description for option in options)
    assert json.loads(json.dumps(recipe.to_data()))["name"] == name
    plain = {option.path: option.default for option in options if option.default not in ("", "none")}
    assert dpsyn.find_recipe(name, plain) == recipe


def test_a_recipe_does_not_change_with_the_dictionary_it_was_made_from() -> None:
    weights = {"a": 2.0}
    recipe = dpsyn.DPSyn(weights=weights)

    weights["a"] = 3.0

    assert recipe.weights == {"a": 2.0}


def test_the_error_of_a_plan_file_is_shown_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text("dpsyn_plan: 1\nthreshold: .inf\n", "utf-8")

    with pytest.raises(dpsyn.PlanError, match="line 2: threshold is inf"):
        dpsyn.find_recipe("planned", {"plan": str(file)})
