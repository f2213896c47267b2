"""``dpsyn recipes``: the algorithms that a release can use, and their options."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

import click

import dpsyn
from dpsyn.cli import output
from dpsyn.cli.common_options import DEFAULT_RECIPE, common_options
from dpsyn.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpsyn import Option, Recipe


@click.command()
@click.argument("name", metavar="[NAME]", required=False)
@common_options("json")
def command(name: str | None, as_json: bool) -> None:
    """List the recipes: the algorithms that decide what is measured and how rows are synthesized.

    With NAME, explain one recipe and list all of its options, with type, default and reason. Give a recipe with
    --recipe NAME, and an option with --set PATH=VALUE. Baselines are for comparisons, not for releases.

    \b
      dpsyn recipes
      dpsyn recipes privsyn
      dpsyn recipes privsyn --json
      dpsyn synthesize people.csv -s schema.yaml --epsilon 1 --recipe privsyn --set rare_rows=800 -o synthetic.csv
    """
    if name is not None and name not in dpsyn.RECIPES:
        raise UserError(f"there is no recipe {name!r}; there are {', '.join(dpsyn.RECIPES)}")
    if as_json:
        data = (
            [_recipe_data(recipe) for recipe in dpsyn.RECIPES.values()]
            if name is None
            else _recipe_data(dpsyn.RECIPES[name])
        )
        output.print_line(json.dumps(data, indent=2, ensure_ascii=False))
    elif name is None:
        _show_recipes()
    else:
        _show_recipe(dpsyn.RECIPES[name])


def _show_recipes() -> None:
    for title, is_baseline in (("Recipes", False), ("Baselines, for comparisons", True)):
        recipes = [recipe for recipe in dpsyn.RECIPES.values() if recipe.is_baseline == is_baseline]
        rows = [(recipe.name, recipe.summary) for recipe in recipes]
        output.print_table(title, ("name", "what it does"), rows)
    output.print_line(f"The default is {DEFAULT_RECIPE}. Options of a recipe: dpsyn recipes NAME")


def _show_recipe(recipe: type[Recipe]) -> None:
    kind = "Baseline" if recipe.is_baseline else "Recipe"
    output.print_line(f"{kind} {recipe.name}: {recipe.summary}\n")
    output.print_line(describe_recipe(recipe) + "\n")
    options = _sort_options(dpsyn.list_options(recipe))
    rows = [(o.path, o.type, o.default, o.description.replace("``", "")) for o in options]
    output.print_table("Options, for --set PATH=VALUE", ("path", "type", "default", "what it does"), rows)
    output.print_line(f"Example:  {example_command(recipe, options)}")


def describe_recipe(recipe: type[Recipe]) -> str:
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
        "name": recipe.name,
        "summary": recipe.summary,
        "description": describe_recipe(recipe),
        "baseline": recipe.is_baseline,
        "options": [
            {"path": o.path, "type": o.type, "default": o.default, "description": o.description} for o in options
        ],
        "example": example_command(recipe, options),
    }
