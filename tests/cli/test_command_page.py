"""The page of the command line, which is written from the commands: ``python -m tests.cli.test_command_page``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click

from dpsyn.cli.main import COMMANDS
from dpsyn.cli.main import dpsyn as dpsyn_command

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"

INTRODUCTION = """\
# Command line

Every command, argument and option, written from the program itself (`python -m tests.cli.test_command_page`); a test
compares the two. Every command explains itself with `--help`, too. Exit codes: 0 success, 1 internal error, 2 a mistake
in the command or its input, 130 interrupted; `verify` and `audit` also end with 1 if they refuse, `verify` with 3 if no
key was given.

Wherever a synopsis is read, a release folder stands for the one in it; wherever a table is read, for its rows.
"""


def write_page() -> str:
    """The whole page: the commands in the order of ``dpsyn --help``, each with its subcommands."""
    parts = [INTRODUCTION]
    for name in COMMANDS:
        parts += describe_command(f"dpsyn {name}", find_command(name), level=2)
    return "\n".join(parts)


def find_command(name: str) -> click.Command:
    command = dpsyn_command.get_command(click.Context(dpsyn_command), name)
    assert command is not None
    return command


def describe_command(path: str, command: click.Command, level: int) -> Iterator[str]:
    """A heading, what the command does, its arguments and options, and its subcommands."""
    arguments = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
    options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden and p.name != "help"]
    usage = " ".join([path, *(["COMMAND"] if isinstance(command, click.Group) else []), *map(argument_name, arguments)])
    yield f"{'#' * level} {path}\n"
    yield f"```text\n{usage}\n```\n"
    yield from describe_text(command.help or "")
    if options:
        yield "| option | meaning |\n|---|---|"
        yield from (f"| {option_name(option)} | {option_meaning(option)} |" for option in options)
        yield ""
    for name, inner in getattr(command, "commands", {}).items():
        yield from describe_command(f"{path} {name}", inner, level + 1)


def describe_text(text: str) -> Iterator[str]:
    """The paragraphs of a help text; those that keep their lines, after a backspace, as code."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            yield f"```text\n{inspect.cleandoc(paragraph.removeprefix(chr(8)).strip(chr(10)))}\n```\n"
        else:
            yield escape(" ".join(paragraph.split())) + "\n"


def argument_name(argument: click.Argument) -> str:
    name = argument.metavar or str(argument.name).upper()
    return name if argument.required or name.startswith("[") else f"[{name}]"


def option_name(option: click.Option) -> str:
    """The spellings of an option, and what it takes."""
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    if option.is_flag or option.count:
        return names
    if isinstance(option.type, click.Choice):
        return f"{names} " + " or ".join(f"`{choice}`" for choice in option.type.choices)
    return f"{names} {escape(option.metavar or option.type.name.split()[0].upper())}"


def option_meaning(option: click.Option) -> str:
    """What an option means, and whether it is required, or its default."""
    lines = inspect.cleandoc(option.help or "").replace("\b", "").split("\n")
    text = escape(re.sub(r"\s+", " ", " ".join(lines))).strip()
    if option.required:
        return f"{text} **Required.**"
    shown = option.show_default and not option.is_flag and isinstance(option.default, str | int | float | Path)
    return f"{text} Default: {escape(str(option.default))}." if shown else text


def escape(text: str) -> str:
    """Text that Markdown shows as it is, but for spans of code."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(part if part.startswith("`") else _escape_signs(part) for part in parts)


def _escape_signs(text: str) -> str:
    return re.sub(r"([\\*_<>|\[\]{}~])", r"\\\1", text)


def test_the_page_of_the_command_line_is_that_of_the_program() -> None:
    assert PAGE.read_text("utf-8") == write_page(), "python -m tests.cli.test_command_page writes the page"


if __name__ == "__main__":
    PAGE.write_text(write_page(), "utf-8")
