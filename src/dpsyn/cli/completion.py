"""``dpsyn completion``: let the Tab key of a shell complete commands, options and the names of recipes."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from dpsyn import atomic_files
from dpsyn.cli import output
from dpsyn.cli.command_group import CommandGroup
from dpsyn.errors import InternalError, OutputError, UserError, describe_os_error

SHELLS = ("bash", "zsh", "fish")

_STARTUP_FILES = {"bash": ".bashrc", "zsh": ".zshrc"}
"""What a shell reads when it starts, in the home folder. Fish needs no line there: it has a folder for completions."""

_PREPARATION = {"bash": "", "zsh": "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }; "}
"""What must be done before the script is read: zsh can complete only once its completion system is loaded."""

_SHELL = click.argument("shell", metavar="[SHELL]", type=click.Choice(SHELLS), required=False)


@click.group(cls=CommandGroup)
def command() -> None:
    """Let the Tab key complete commands, options, files and the names of recipes in your shell.

    \b
      dpsyn completion install             for the shell that you use
      dpsyn completion install zsh
      dpsyn completion show bash           the script itself, to install it by hand

    SHELL is bash (4.4 or newer), zsh or fish. By default it is the one that the variable SHELL names.
    """


@command.command(short_help="Install the completion, and show what was changed.")
@_SHELL
@click.option("--dry-run", is_flag=True, help="Show what would be changed, and change nothing.")
def install(shell: str | None, dry_run: bool) -> None:
    """Install the completion for a shell, and show what was changed. Doing it again changes nothing.

    A script is written into your data folder (for fish: into its folder for completions). For bash and zsh, one line is
    added at the end of .bashrc or .zshrc, which reads the script; no other line is touched. To undo it, remove both.

    \b
      dpsyn completion install
      dpsyn completion install fish --dry-run
    """
    shell = shell or find_shell()
    script, line = script_path(shell), startup_line(shell)
    startup = Path.home() / _STARTUP_FILES[shell] if line else None
    text = completion_script(shell)
    has_script = script.is_file() and script.read_text(encoding="utf-8") == text
    has_line = startup is None or line in _read_lines(startup)
    if not has_script:
        output.print_line(f"{'Would write' if dry_run else 'Writing'} {script}, the completion of dpsyn for {shell}.")
    if not has_line:
        output.print_line(f"{'Would add' if dry_run else 'Adding'} this line to {startup}:\n  {line}")
    if has_script and has_line:
        output.print_line(f"{script} is installed already; there is nothing to change.")
    if dry_run:
        return
    if not has_script:
        _write_script(script, text)
    if startup is not None and not has_line:
        _append_line(startup, line)
    output.print_line(f"Open a new {shell}, type dpsyn and a space, and press Tab.")


@command.command(short_help="Print the completion script of a shell.")
@_SHELL
def show(shell: str | None) -> None:
    """Print the completion script of a shell, to install it by hand or for all users of a machine.

    \b
      dpsyn completion show bash > /etc/bash_completion.d/dpsyn
    """
    output.write_text("-", completion_script(shell or find_shell()))


def find_shell() -> str:
    """The shell of the user, as the environment names it."""
    name = Path(os.environ.get("SHELL", "")).name
    if name not in SHELLS:
        known = f"SHELL names {name!r}" if name else "the variable SHELL is not set"
        raise UserError(f"the shell is not known: {known}; give one of {', '.join(SHELLS)}")
    return name


def script_path(shell: str) -> Path:
    """Where the script of a shell is installed."""
    if shell == "fish":
        return _user_folder("XDG_CONFIG_HOME", ".config") / "fish" / "completions" / "dpsyn.fish"
    return _user_folder("XDG_DATA_HOME", ".local/share") / "dpsyn" / f"completion.{shell}"


def _user_folder(variable: str, default: str) -> Path:
    given = os.environ.get(variable, "")
    return Path(given) if os.path.isabs(given) else Path.home() / default  # the standard ignores relative paths


def startup_line(shell: str) -> str:
    """The line of the startup file that reads the script, if there is one; empty for a shell that needs none."""
    if shell not in _STARTUP_FILES:
        return ""
    script = shlex.quote(str(script_path(shell)))
    return f"if [ -r {script} ]; then {_PREPARATION[shell]}. {script}; fi  # completion of dpsyn"


def completion_script(shell: str) -> str:
    """The script that asks dpsyn for completions."""
    root = click.get_current_context().find_root()
    complete = get_completion_class(shell)
    if complete is None:
        raise InternalError(f"click has no completion for {shell}")
    return complete(root.command, {}, "dpsyn", "_DPSYN_COMPLETE").source()


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise OutputError(f"{path} cannot be read: {describe_os_error(error)}") from None


def _write_script(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{path.parent} cannot be created: {describe_os_error(error)}") from None
    atomic_files.write_text(path, text)


def _append_line(path: Path, line: str) -> None:
    """Append a line to a file that a person wrote, which is never rewritten; it may lack its last line break."""
    before = _read_lines(path)
    try:
        unfinished = bool(before) and not path.read_bytes().endswith(b"\n")
        with path.open("a", encoding="utf-8") as file:
            file.write(("\n" if unfinished else "") + f"{line}\n")
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {describe_os_error(error)}") from None
