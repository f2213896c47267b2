"""The ``dpsyn`` command: a shell around the library, one file per command, each loaded when it is called."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from typing import Any

import click

from dpsyn import __version__
from dpsyn.errors import UserError

COMMANDS = {
    "demo": ("dpsyn.cli.demo", "Everything once, on a table that DPSyn makes up."),
    "schema": ("dpsyn.cli.schema", "Say what is public about a table: draft, import, approve, check."),
    "synthesize": ("dpsyn.cli.synthesize", "Turn a sensitive table into a synthetic one that can be published."),
    "measure": ("dpsyn.cli.measure", "Only the private part: keep the noisy tables as a synopsis."),
    "generate": ("dpsyn.cli.generate", "Make rows from a synopsis; costs no privacy."),
    "query": ("dpsyn.cli.query", "Ask a synopsis for any table of counts, with error bars; costs no privacy."),
    "inspect": ("dpsyn.cli.inspect", "What a synopsis holds: who paid what for which number."),
    "evaluate": ("dpsyn.cli.evaluate", "Is it any good? Compare a synthetic table with the real one; private."),
    "simulate": ("dpsyn.cli.simulate", "Make up a table for a schema, to try things on."),
    "explore": ("dpsyn.cli.explore", "A first look under a budget: which attributes depend on each other."),
    "plan": ("dpsyn.cli.plan", "Write down what you know about a table: draft, check, predict."),
    "itemsets": ("dpsyn.cli.itemsets", "The most frequent itemsets of a file of baskets."),
    "noise": ("dpsyn.cli.noise", "How much noise a promise costs, and which kind to take."),
    "ledger": ("dpsyn.cli.ledger", "What was promised and spent on each dataset: show, verify, cap, close."),
}
"""Name → module that holds the click command ``command``, and one line for ``--help``."""


class LazyCommands(click.Group):
    """A group whose commands are imported only when they are called, so that ``--help`` is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, as listed above."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command itself, imported now."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list for ``--help``, without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(
    cls=LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with:  dpsyn demo  — or with your own table:  dpsyn schema draft people.csv -o schema.yaml",
)
@click.version_option(__version__, prog_name="dpsyn")
def dpsyn() -> None:
    """Turn a sensitive table into a synthetic one that can be published, with a privacy guarantee.

    The idea: measure noisy counts of the table under a differential-privacy budget, and synthesize rows that match
    them. What that needs besides the table is a schema: what is publicly known about the columns. DPSyn is being
    built; the commands below are those that work today.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit: 0 if all is well, 2 for a mistake of the user's, 1 for one of ours."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command and give its exit code."""
    try:
        result: Any = dpsyn.main(arguments, prog_name="dpsyn", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        return 130
    except UserError as error:
        click.echo(f"dpsyn: {error}", err=True)
        return 2
    except SystemExit:  # click's answer where the reader of our output, such as head, has enough
        return 0
    except Exception as error:
        return _report_internal_error(error)


def _report_internal_error(error: Exception) -> int:
    """Say where DPSyn went wrong, without the error's own words: they may quote a cell of a private table."""
    if os.environ.get("DPSYN_TRACEBACK"):
        traceback.print_exc()
    place = traceback.extract_tb(error.__traceback__)[-1]
    click.echo(
        f"dpsyn: a mistake of DPSyn's own ({type(error).__name__} in {os.path.basename(place.filename)}, "
        f"line {place.lineno}); please report it. DPSYN_TRACEBACK=1 shows all, which may quote rows.",
        err=True,
    )
    return 1
