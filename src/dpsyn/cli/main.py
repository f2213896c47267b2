"""The ``dpsyn`` command: a shell around the library with one module per command, loaded when it is called."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import signal
import sys
import threading
import traceback
from typing import Any

import click
from click.shell_completion import CompletionItem

from dpsyn import __version__
from dpsyn.cli import output
from dpsyn.cli.command_group import CommandGroup
from dpsyn.errors import MAX_MESSAGE_LENGTH, UserError, describe_os_error, shorten

COMMANDS = {
    "demo": ("dpsyn.cli.demo", "Every step once, on an artificial table."),
    "app": ("dpsyn.cli.app", "A workbench in the browser, from a table to a release."),
    "schema": ("dpsyn.cli.schema", "Declare what is public about a table: draft, review, check."),
    "forecast": ("dpsyn.cli.forecast", "What a release will be worth at several ε; reads no data."),
    "synthesize": ("dpsyn.cli.synthesize", "Turn a sensitive table into a synthetic one."),
    "measure": ("dpsyn.cli.measure", "Only the private part: keep noisy counts as a synopsis."),
    "generate": ("dpsyn.cli.generate", "Sample rows from a synopsis; costs no privacy."),
    "query": ("dpsyn.cli.query", "Counts, means and regressions with error bars."),
    "pool": ("dpsyn.cli.pool", "Combine analyses of replicates, with intervals."),
    "inspect": ("dpsyn.cli.inspect", "What a synopsis holds, and what each number cost."),
    "keys": ("dpsyn.cli.keys", "Keys that sign releases: make one, show one."),
    "sign": ("dpsyn.cli.sign", "Vouch for a release, with your private key."),
    "verify": ("dpsyn.cli.verify", "Check a release that somebody published."),
    "evaluate": ("dpsyn.cli.evaluate", "Compare a synthetic table with the real one or the release."),
    "choose": ("dpsyn.cli.choose", "Release by several recipes, and choose one privately."),
    "recipes": ("dpsyn.cli.recipes", "List the algorithms of synthesize and measure."),
    "explore": ("dpsyn.cli.explore", "A first look under a budget: which attributes depend."),
    "plan": ("dpsyn.cli.plan", "Write down what you know about a table: draft, check."),
    "ledger": ("dpsyn.cli.ledger", "The privacy budget that releases of a dataset share."),
    "compare-noise": ("dpsyn.cli.compare_noise", "How much noise a budget means, by mechanism."),
    "audit": ("dpsyn.cli.audit", "Attack this installation on tables of its own; reads no data."),
    "simulate": ("dpsyn.cli.simulate", "Make an artificial table for a schema."),
    "contest": ("dpsyn.cli.contest", "A contest on generated data: make it, score submissions."),
    "itemsets": ("dpsyn.cli.itemsets", "The most frequent itemsets of a file of baskets."),
    "completion": ("dpsyn.cli.completion", "Let the Tab key complete commands in your shell."),
}
"""Name → the module that defines its click command as ``command``, and one line for ``--help``."""


class LazyCommands(CommandGroup):
    """A group that imports a command only when it is called, which keeps ``--help`` fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order above."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command itself, imported now."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
        return command

    def help_lines(self, ctx: click.Context) -> list[tuple[str, str]]:
        """Each command and its line, without importing any."""
        return [(name, line) for name, (_, line) in COMMANDS.items()]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands that a shell may complete, without importing any."""
        names = [CompletionItem(n, help=line) for n, line in self.help_lines(ctx) if n.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(
    cls=LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Start with dpsyn demo, or with your own table: dpsyn schema draft people.csv -o schema.yaml

    \b
    Exit codes:
      0    success
      1    internal error of DPSyn; please report it
      2    a mistake in the command, its options or its input; the message explains it
      130  interrupted
    """,
)
@click.version_option(__version__, prog_name="dpsyn")
def dpsyn() -> None:
    """Turn a sensitive table into a synthetic one that can be published, with a privacy guarantee.

    DPSyn measures noisy counts of the table within a differential-privacy budget, and synthesizes rows that match them.
    Besides the table it needs a schema, which states what is publicly known about the columns.

    \b
      dpsyn synthesize people.csv -s schema.yaml --epsilon 1 -o synthetic.csv

    Every command explains itself with --help. Commands that show progress or notes have -q, with which they print
    nothing but errors and the results asked for.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit: 0 for success, 2 for a mistake of the user, 1 for an internal error."""
    code = run(arguments)
    _forget_unwritten_output()
    sys.exit(code)


def run(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    _interrupt_on_termination()
    output.allow_any_encoding()
    try:
        _require_working_folder()
        result: Any = dpsyn.main(arguments, prog_name="dpsyn", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        return _report_usage_error(error)
    except (click.Abort, KeyboardInterrupt):
        _print_error("interrupted")
        return 130
    except UserError as error:
        _print_error(f"dpsyn: {error}")
        return 2
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:  # such as a path of more than 4,096 characters
            return _report_internal_error(error)
        _print_error(f"dpsyn: {shorten(str(error.filename), 100)} cannot be used: {describe_os_error(error)}")
        return 2
    except SystemExit:  # raised by click when the reader of the output, such as head, stops early
        return 0
    except Exception as error:
        return _report_internal_error(error)


def _interrupt_on_termination() -> None:
    """Treat a request to terminate and a closed terminal like Ctrl-C, so partial files are removed.

    A signal that is ignored, as by nohup, stays ignored. Only the main thread can handle signals.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def _require_working_folder() -> None:
    """Refuse to run in a folder that was removed: no relative path would mean anything."""
    try:
        os.getcwd()
    except OSError as error:
        reason = describe_os_error(error)
        raise UserError(f"the working folder cannot be used: {reason}; change to a folder that exists") from None


def _report_usage_error(error: click.ClickException) -> int:
    """Report a mistake in the command or its options, as click words it."""
    text = io.StringIO()
    error.show(text)
    _print_error(shorten(text.getvalue().rstrip(), MAX_MESSAGE_LENGTH))
    return 2


def _print_error(text: str) -> None:
    with contextlib.suppress(OSError, UserError):  # a closed standard error changes no exit code
        output.print_line(text, to_stderr=True)


def _forget_unwritten_output() -> None:
    """Drop what standard output could not take, such as on a full disk: it was reported, and Python would try again."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_internal_error(error: Exception) -> int:
    """Report where DPSyn failed, without the message of the error, which may quote a cell of a private table."""
    if os.environ.get("DPSYN_TRACEBACK"):
        traceback.print_exc()
    frame = traceback.extract_tb(error.__traceback__)[-1]
    _print_error(
        f"dpsyn: internal error ({type(error).__name__} in {os.path.basename(frame.filename)}, line {frame.lineno}); "
        "please report it. DPSYN_TRACEBACK=1 shows the traceback, which may quote private rows."
    )
    return 1
