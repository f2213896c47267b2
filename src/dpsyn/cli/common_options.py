"""Arguments and options that several commands share, each declared once.

``@common_options("schema", "force", "quiet")`` gives a command these three. A command whose option differs in a detail,
such as its help text, changes that detail alone: ``@common_options("rows", rows={"help": "…"})``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

_Command = TypeVar("_Command", bound=Callable[..., Any])

DEFAULT_RECIPE = "dpsyn"

RECIPES = {
    DEFAULT_RECIPE: "selects by scores against a model; default",
    "privsyn": "PrivSyn of the paper: InDif and GUM",
    "priview": "views for queries not known yet",
    "planned": "what a plan names; see --plan",
    "explore": "a first look; see dpsyn explore",
}
BASELINES = {
    "independent": "every attribute by itself",
    "direct": "every pair, none selected",
    "fourier": "for binary attributes",
    "mwem": "for few attributes",
}
SYNTHESIS_METHODS = ("gibbs", "gum", "mcf")
"""Names for ``--help``, which must not load the recipes; a test compares all of them with the library's."""


def _list_recipes(recipes: Mapping[str, str]) -> str:
    """A line for each recipe, which click leaves as it is."""
    return "\b\n" + "\n".join(f"{name:<11} {words}" for name, words in recipes.items())


DEFAULT_WEIGHT = 4.0
"""The weight of an attribute whose ``--weight`` gives no number: its errors count four times as much as others."""

_FILE = click.Path(path_type=Path)


def complete_files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let a shell complete the names of files, where a value may also be something else."""
    return [CompletionItem(incomplete, type="file")]


def complete_recipes(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Let a shell complete the name of a recipe."""
    return [name for name in (*RECIPES, *BASELINES) if name.startswith(incomplete)]


_ARGUMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "data": ("data", {"metavar": "DATA", "shell_complete": complete_files}),
    "synopsis": ("synopsis", {"metavar": "SYNOPSIS", "type": _FILE}),  # or a release folder, which holds one
}

_OPTIONS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "schema": (
        ("-s", "--schema"),
        {
            "required": True,
            "type": _FILE,
            "metavar": "FILE",
            "help": "What is public about the table; see dpsyn schema.",
        },
    ),
    "epsilon": (
        ("--epsilon",),
        {"required": True, "type": float, "metavar": "E", "help": "ε of the privacy guarantee; 1 is a usual value."},
    ),
    "delta": (
        ("--delta",),
        {
            "type": float,
            "metavar": "D",
            "help": "δ of the privacy guarantee; by default 1e-9, or 1/expected_size² if that is smaller. 0 is pure ε, "
            "for recipes whose steps can all be pure: priview, independent, direct, fourier, mwem.",
        },
    ),
    "allow_large_epsilon": (
        ("--allow-large-epsilon",),
        {"is_flag": True, "help": "Allow an ε above 20, which is no meaningful guarantee; the certificate says so."},
    ),
    "recipe": (
        ("--recipe",),
        {
            "metavar": "NAME",
            "shell_complete": complete_recipes,
            "help": f"How to choose what to measure; dpsyn recipes explains them:\n\n{_list_recipes(RECIPES)}\n\n"
            f"Baselines, for comparisons only:\n\n{_list_recipes(BASELINES)}",
        },
    ),
    "set": (
        ("--set", "settings"),
        {
            "multiple": True,
            "metavar": "PATH=VALUE",
            "help": "An option of the recipe, such as synthesis=gum; dpsyn recipes NAME lists them. "
            "May be given several times.",
        },
    ),
    "weight": (
        ("--weight", "weights"),
        {
            "multiple": True,
            "metavar": "NAME[=W]",
            "help": "An attribute that matters more, such as a label: errors in marginals that contain it count W "
            f"times, {DEFAULT_WEIGHT:g} times by default. May be given several times.",
        },
    ),
    "target": (
        ("--target", "predicted"),
        {
            "metavar": "NAME",
            "help": "The attribute that others will be used to predict, such as a label: marginals with it, also of "
            f"three to five attributes, get a larger part of the budget. Its weight is {DEFAULT_WEIGHT:g} unless "
            "--weight gives another one.",
        },
    ),
    "analysis": (
        ("--analysis", "analyses"),
        {
            "multiple": True,
            "metavar": "TEXT",
            "help": "An analysis that will be made of the release: a regression 'income ~ age + sex', means by group "
            "'income by sex', or a cross table 'sex, region'. The tables that it needs are measured in any case. "
            "May be given several times.",
        },
    ),
    "plan": (
        ("--plan",),
        {
            "type": _FILE,
            "metavar": "FILE",
            "help": "What you know about the table: recodings, groups, marginals to measure; see dpsyn plan. "
            "Selects the recipe planned.",
        },
    ),
    "public": (
        ("--public",),
        {
            "metavar": "FILE",
            "shell_complete": complete_files,
            "help": "Rows that are public anyway, as a prior: a table with some of the same columns, read as DATA is, "
            "or a synopsis about other people. They are trusted as far as released numbers agree with them; see "
            "docs/how-to/public-data.md. Needs --public-because.",
        },
    ),
    "public_because": (
        ("--public-because",),
        {
            "metavar": "REASON",
            "help": "Who declares those rows public, and why they hold none of the private ones. The certificate "
            "repeats it.",
        },
    ),
    "public_schema": (
        ("--public-schema",),
        {
            "type": _FILE,
            "metavar": "FILE",
            "help": "How the file of --public is written, if not as DATA: a schema of its own, such as dpsyn schema "
            "draft makes. It needs no approval, and what it derives counts as a column.",
        },
    ),
    "ledger": (
        ("--ledger",),
        {
            "type": _FILE,
            "metavar": "FILE",
            "help": "Record the privacy budget of this release here; dpsyn ledger new begins one.",
        },
    ),
    "dataset": (
        ("--dataset",),
        {"metavar": "NAME", "help": "Name of the dataset in the ledger, if it differs from the schema's."},
    ),
    "query": (
        ("--query",),
        {
            "metavar": "SQL",
            "help": "A SELECT, or the name of a table, if the table is in a DuckDB or PostgreSQL database; or a SELECT "
            "on its files, which are called data there.",
        },
    ),
    "protect": (
        ("--protect-query-rows", "protect"),
        {
            "flag_value": "query rows",
            "default": "base rows",
            "help": "Rows of the table are protected, so a query must make each row of its answer from one of them. "
            "With this flag it may be any SELECT, such as one with a join, and the rows of its answer are protected "
            "instead. The certificate shows the query and states which.",
        },
    ),
    "engine": (
        ("--engine",),
        {
            "default": "auto",
            "show_default": True,
            "type": click.Choice(["auto", "memory", "stream", "spark"]),
            "help": "How rows are counted: held in memory as codes, streamed from the file for each query, or by "
            "Spark; auto decides by the size of the file.",
        },
    ),
    "resume": (
        ("--resume",),
        {"is_flag": True, "help": "Continue an interrupted run without spending its budget twice."},
    ),
    "rows": (
        ("--rows",),
        {
            "type": click.IntRange(min=0),
            "metavar": "N",
            "help": "Number of rows; by default the estimated size of the private table.",
        },
    ),
    "seed": (
        ("--seed",),
        {
            "type": click.IntRange(min=0),
            "metavar": "N",
            "help": "The same seed samples the same rows. Privacy noise cannot be seeded.",
        },
    ),
    "where": (
        ("--where", "conditions"),
        {
            "multiple": True,
            "metavar": "CONDITION",
            "help": "Only rows that satisfy it: sex=F, age=30..39, job=nurse|cook, job=missing. If it is given several "
            "times, rows satisfy all conditions.",
        },
    ),
    "output": (
        ("-o", "--output", "target"),
        {
            "required": True,
            "metavar": "FILE",
            "shell_complete": complete_files,
            "help": "Where to write: .csv, .csv.gz, .parquet, .arrow, .xlsx, .sav, .dta; FOLDER/ for a release folder; "
            "- for standard output.",
        },
    ),
    "escape_formulas": (
        ("--escape-formulas",),
        {
            "is_flag": True,
            "help": "In CSV: put an apostrophe before texts that a spreadsheet would take for a formula, because they "
            "begin with =, +, -, @, a tab or a carriage return.",
        },
    ),
    "keep_synopsis": (
        ("--synopsis",),
        {"type": _FILE, "metavar": "FILE", "help": "Also keep the noisy counts, as a synopsis."},
    ),
    "sign": (
        ("--sign", "signing_key"),
        {
            "type": _FILE,
            "metavar": "KEY",
            "help": "Sign the release with this private key; dpsyn keys new makes one, dpsyn verify checks it.",
        },
    ),
    "card": (
        ("--card",),
        {
            "is_flag": True,
            "help": "Also write a deployment card, in the fields of the registry of OpenDP and NIST, and Croissant "
            "metadata into the release folder; fill in the empty fields of the card.",
        },
    ),
    "with_verifier": (
        ("--with-verifier",),
        {
            "is_flag": True,
            "help": "Also write verify_release.py into the release folder: it verifies releases without DPSyn.",
        },
    ),
    "json": (("--json", "as_json"), {"is_flag": True, "help": "Print JSON."}),
    "force": (("--force",), {"is_flag": True, "help": "Overwrite files that exist."}),
    "quiet": (("-q", "--quiet"), {"is_flag": True, "help": "Print nothing but errors and the results asked for."}),
    "because": (
        ("--because",),
        {"required": True, "metavar": "REASON", "help": "Why it is public, such as the code book that lists it."},
    ),
}

RECIPE_OPTIONS = ("recipe", "set", "target", "weight", "analysis", "plan")
PUBLIC_OPTIONS = ("public", "public_because", "public_schema")
LEDGER_OPTIONS = ("ledger", "dataset")
RELEASE_OPTIONS = (
    *("data", "schema", "epsilon", "delta", "allow_large_epsilon", *RECIPE_OPTIONS, *PUBLIC_OPTIONS, *LEDGER_OPTIONS),
    *("query", "protect", "engine", "resume"),
)
"""What every command takes that releases numbers from a private table."""

TEXT_OUTPUT = {"required": False, "default": "-", "help": "Where to write; standard output by default."}
"""The ``output`` of a command that writes text."""

SYNOPSIS_OUTPUT = {"help": "Where to write the synopsis, such as s.dpsyn."}
"""The ``output`` of a command that writes a synopsis."""


def common_options(*names: str, **changes: Mapping[str, Any]) -> Callable[[_Command], _Command]:
    """Give a command shared arguments and options, in this order; ``changes`` replaces details of single options."""

    def decorate(command: _Command) -> _Command:
        for name in reversed(names):
            if name in _ARGUMENTS:
                parameter, details = _ARGUMENTS[name]
                command = click.argument(parameter, **{**details, **changes.get(name, {})})(command)
            else:
                parameters, details = _OPTIONS[name]
                command = click.option(*parameters, **{**details, **changes.get(name, {})})(command)
        return command

    return decorate
