"""``dpsyn recipes``: the algorithms that a release can use, its synthesis methods, and the options of each."""

from __future__ import annotations

import dataclasses
import inspect
from typing import TYPE_CHECKING, Any

import click

import dpsyn
from dpsyn.cli import output
from dpsyn.cli.common_options import DEFAULT_RECIPE, SYNTHESIS_METHODS, common_options, complete_recipes
from dpsyn.errors import UserError, quote_argument
from dpsyn.suggestions import find_similar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpsyn import Option, Recipe


@click.command()
@click.argument("name", metavar="[NAME]", required=False, shell_complete=complete_recipes)
@common_options("json")
def command(name: str | None, as_json: bool) -> None:
    """List the recipes: the algorithms that decide what is measured and how rows are synthesized.

    With NAME, explain one recipe or one synthesis method and list all of its options, with type, default and reason.
    Give a recipe with --recipe NAME, a synthesis method with --set synthesis=NAME, and an option with
    --set PATH=VALUE. Baselines are for comparisons, not for releases.

    \b
      dpsyn recipes
      dpsyn recipes privsyn
      dpsyn recipes privsyn --json
      dpsyn recipes gum                             options of a synthesis method, also for dpsyn generate
      dpsyn synthesize people.csv -s schema.yaml --epsilon 1 --recipe privsyn --set rare_rows=800 -o synthetic.csv
    """
    if name is not None and name not in dpsyn.RECIPES and name not in SYNTHESIS_METHODS:
        similar = find_similar(name, (*dpsyn.RECIPES, *SYNTHESIS_METHODS), 1)
        guess = f"; did you mean {similar[0]}? There" if similar else "; there"
        raise UserError(
            f"there is no recipe {quote_argument(name)}{guess} are {', '.join(dpsyn.RECIPES)}, and the "
            f"synthesis methods {', '.join(SYNTHESIS_METHODS)}"
        )
    if as_json:
        names = (*dpsyn.RECIPES, *SYNTHESIS_METHODS) if name is None else (name,)
        data = [_recipe_data(dpsyn.RECIPES[n]) if n in dpsyn.RECIPES else _method_data(n) for n in names]
        output.print_json(data if name is None else data[0])
    elif name is None:
        _show_recipes()
    elif name in dpsyn.RECIPES:
        _show_recipe(dpsyn.RECIPES[name])
    else:
        _show_method(name)


def _show_recipes() -> None:
    for title, is_baseline in (("Recipes", False), ("Baselines, for comparisons", True)):
        recipes = [recipe for recipe in dpsyn.RECIPES.values() if recipe.is_baseline == is_baseline]
        rows = [(recipe.name, recipe.summary) for recipe in recipes]
        output.print_table(title, ("name", "what it does"), rows)
    methods = [(name, _summarize(dpsyn.find_synthesis(name))) for name in SYNTHESIS_METHODS]
    output.print_table("Synthesis methods, for --set synthesis=NAME", ("name", "how rows are made"), methods)
    output.print_line(
        f"The default is {DEFAULT_RECIPE}. Options of a recipe or of a synthesis method: dpsyn recipes NAME"
    )


def _show_recipe(recipe: type[Recipe]) -> None:
    kind = "Baseline" if recipe.is_baseline else "Recipe"
    output.print_line(f"{kind} {recipe.name}: {recipe.summary}\n")
    output.print_line(describe_recipe(recipe) + "\n")
    options = _sort_options(dpsyn.list_options(recipe))
    _show_options("Options, for --set PATH=VALUE", options)
    if any(option.path == "synthesis" for option in options):
        output.print_line(f"Options of each synthesis method: dpsyn recipes {'|'.join(SYNTHESIS_METHODS)}")
    output.print_line(f"Example:  {example_command(recipe, options)}")


def _show_options(title: str, options: Sequence[Option]) -> None:
    rows = [(o.path, o.type, o.default, o.description.replace("``", "")) for o in options]
    output.print_table(title, ("path", "type", "default", "what it does"), rows)


def describe_recipe(recipe: object) -> str:
    """The docstring of a recipe for users of the command line: without Python examples and the list of fields."""
    text = (inspect.getdoc(recipe) or "").partition("\nAttributes:")[0]
    paragraphs = [part.strip("\n") for part in text.split("\n\n")]
    return "\n\n".join(part for part in paragraphs if part.strip() and not part.startswith(">>>")).replace("``", "")


def example_command(recipe: type[Recipe], options: Sequence[Option]) -> str:
    """A command that uses the recipe and sets one of its own options."""
    if recipe is dpsyn.Explore:
        return "dpsyn explore people.csv -s schema.yaml --epsilon 0.1 -o first.dpsyn"
    if recipe is dpsyn.Planned:
        return "dpsyn synthesize people.csv -s schema.yaml --epsilon 1 --plan plan.yaml -o synthetic.csv"
    values = {o.path: o.default if o.default != "none" else o.type.partition("|")[0] for o in options if _is_own(o)}
    settings = [f" --set {path}={value}" for path, value in values.items() if value]
    words = f"--recipe {recipe.name}{settings[0] if settings else ''}"
    return f"dpsyn synthesize people.csv -s schema.yaml --epsilon 1 {words} -o synthetic.csv"


def _is_own(option: Option) -> bool:
    """Whether an option belongs to the recipe itself rather than to its synthesis method."""
    return not f"{option.path}.".startswith("synthesis.")


def _sort_options(options: Sequence[Option]) -> list[Option]:
    """The options of the recipe itself, then those of its synthesis method."""
    return sorted(options, key=lambda option: not _is_own(option))


def _recipe_data(recipe: type[Recipe]) -> dict[str, Any]:
    options = _sort_options(dpsyn.list_options(recipe))
    return {
        "kind": "recipe",
        "name": recipe.name,
        "summary": recipe.summary,
        "description": describe_recipe(recipe),
        "baseline": recipe.is_baseline,
        "options": [
            {"path": o.path, "type": o.type, "default": o.default, "description": o.description} for o in options
        ],
        "example": example_command(recipe, options),
    }


# ── synthesis methods ────────────────────────────────────────────────────────────────────────────────────────


def _show_method(name: str) -> None:
    output.print_line(f"Synthesis method {name}, for --set synthesis={name}\n")
    output.print_line(describe_recipe(dpsyn.find_synthesis(name)) + "\n")
    for choice, options in list_method_options(name).items():
        _show_options(f"Options with --set {choice}", options)
    output.print_line(f"Example:  dpsyn generate s.dpsyn --set synthesis={name} -o rows.csv")


def list_method_options(name: str) -> dict[str, list[Option]]:
    """The options of a synthesis method by the choice that they belong to, such as ``synthesis=gum``.

    An option that takes one of several objects, such as ``synthesis.decay``, is followed by the options of each object.
    """
    options = dpsyn.list_options(dpsyn.find_synthesis(name))
    own = [option for option in options if "." not in option.path]
    listed = {f"synthesis={name}": [_prefix_path(option) for option in own]}
    nested = {option.path.partition(".")[0] for option in options if "." in option.path}
    for chooser in (option for option in own if option.path in nested):
        for choice in chooser.type.split("|"):
            inner = dpsyn.list_options(dpsyn.find_synthesis(name, {chooser.path: choice}))
            below = [_prefix_path(option) for option in inner if option.path.startswith(f"{chooser.path}.")]
            if below:
                listed[f"synthesis.{chooser.path}={choice}"] = below
    return listed


def _prefix_path(option: Option) -> Option:
    return dataclasses.replace(option, path=f"synthesis.{option.path}")


def _summarize(method: object) -> str:
    """The first sentence of a method's description."""
    return describe_recipe(method).partition("\n\n")[0].replace("\n", " ")


def _method_data(name: str) -> dict[str, Any]:
    method = dpsyn.find_synthesis(name)
    return {
        "kind": "synthesis",
        "name": name,
        "summary": _summarize(method),
        "description": describe_recipe(method),
        "options": [
            {"with": choice, **dataclasses.asdict(option)}
            for choice, options in list_method_options(name).items()
            for option in options
        ],
        "example": f"dpsyn generate s.dpsyn --set synthesis={name} -o rows.csv",
    }
