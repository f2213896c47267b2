"""``dpsyn recipes``: the list of recipes, and the options of each."""

from __future__ import annotations

import dataclasses
import json
import shlex
from pathlib import Path

import pytest

import dpsyn
from dpsyn.cli.common_options import SYNTHESIS_METHODS
from dpsyn.cli.main import run
from dpsyn.cli.recipes import describe_recipe, example_command, list_method_options
from dpsyn.inference import DECAYS


def test_recipes_are_listed_with_baselines_in_a_section_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recipes"]) == 0

    recipes, _, rest = capsys.readouterr().out.partition("Baselines, for comparisons")
    baselines, _, methods = rest.partition("Synthesis methods, for --set synthesis=NAME")
    for name, recipe in dpsyn.RECIPES.items():
        section = baselines if recipe.is_baseline else recipes
        assert [line.split()[1:3] for line in section.splitlines() if line.split()[:1] == [name]] == [
            recipe.summary.split()[:2]
        ]
    assert all(f"\n  {name} " in methods for name in SYNTHESIS_METHODS)


@pytest.mark.parametrize("name", dpsyn.RECIPES)
def test_a_recipe_is_explained_with_all_of_its_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recipes", name]) == 0

    shown = capsys.readouterr().out
    paths = [line.split()[0] for line in shown.splitlines() if line.startswith("  ") and line.split()]
    assert dpsyn.RECIPES[name].summary in shown
    assert {option.path for option in dpsyn.list_options(dpsyn.RECIPES[name])} <= set(paths)
    assert ">>>" not in shown
    assert "Attributes:" not in shown
    assert "Example:  dpsyn " in shown


def test_json_has_every_recipe_and_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recipes", "--json"]) == 0
    everything = json.loads(capsys.readouterr().out)
    assert run(["recipes", "mwem", "--json"]) == 0
    mwem = json.loads(capsys.readouterr().out)

    assert [entry["name"] for entry in everything if entry["kind"] == "recipe"] == list(dpsyn.RECIPES)
    assert [entry["name"] for entry in everything if entry["kind"] == "synthesis"] == list(SYNTHESIS_METHODS)
    assert mwem in everything
    assert mwem["baseline"] is True
    assert {"path", "type", "default", "description"} == mwem["options"][0].keys()
    assert [option["default"] for option in mwem["options"] if option["path"] == "replay"] == ["0"]


def test_every_option_has_a_type_and_a_reason() -> None:
    for recipe in dpsyn.RECIPES.values():
        for option in dpsyn.list_options(recipe):
            assert option.type, (recipe.name, option.path)
            assert option.description, (recipe.name, option.path)


def test_an_unknown_recipe_is_refused_with_the_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recipes", "magic"]) == 2

    assert capsys.readouterr().err == (
        f"dpsyn: there is no recipe 'magic'; there are {', '.join(dpsyn.RECIPES)}, and the synthesis methods "
        f"{', '.join(SYNTHESIS_METHODS)}\n"
    )


@pytest.mark.parametrize("name", SYNTHESIS_METHODS)
def test_a_synthesis_method_is_explained_with_all_of_its_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recipes", name]) == 0

    shown = capsys.readouterr().out
    paths = {line.split()[0] for line in shown.splitlines() if line.startswith("  ") and line.split()}
    assert {f"synthesis.{option.path}" for option in dpsyn.list_options(dpsyn.find_synthesis(name))} <= paths
    assert ">>>" not in shown
    assert f"--set synthesis={name} " in shown


def test_every_decay_is_listed_with_its_options_and_they_can_be_set() -> None:
    listed = list_method_options("gum")

    for decay in DECAYS:
        options = listed.get(f"synthesis.decay={decay}", [])  # constant has none
        inner = {option.path.removeprefix("synthesis."): option.default for option in options}
        assert inner.keys() == {f"decay.{field.name}" for field in dataclasses.fields(DECAYS[decay])}
        assert dpsyn.find_synthesis("gum", {"decay": decay, **inner}) == dpsyn.GUM(decay=DECAYS[decay]())


@pytest.mark.parametrize("name", dpsyn.RECIPES)
def test_the_example_of_a_recipe_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("schema.yaml").write_text(
        "dpsyn_schema: 1\nattributes:\n" + "".join(f"  x{n}: {{kind: categorical, codes: 2}}\n" for n in range(4)),
        "utf-8",
    )
    Path("people.csv").write_text("x0,x1,x2,x3\n" + "0,1,1,0\n1,1,0,1\n" * 100, "utf-8")
    Path("plan.yaml").write_text("dpsyn_plan: 1\nmarginals: [[x0, x1]]\n", "utf-8")
    recipe = dpsyn.RECIPES[name]
    command = example_command(recipe, dpsyn.list_options(recipe))

    assert run([*shlex.split(command)[1:], "-q"]) == 0


def test_the_description_of_a_recipe_is_its_docstring_without_python() -> None:
    text = describe_recipe(dpsyn.DPSyn)

    assert text.startswith("The default recipe:")
    assert ">>>" not in text
