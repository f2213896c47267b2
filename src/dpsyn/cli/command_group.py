"""Groups of commands: listed in their order, with a whole line each, and with suggestions for wrong names."""

from __future__ import annotations

import click

from dpsyn.suggestions import find_similar

_MAX_HELP_LENGTH = 1_000
"""Characters of a command's line in a list. Lines are short by themselves; click would cut them, and "..." helps
nobody."""


class CommandGroup(click.Group):
    """A group that shows its help if no command is given, and suggests a command if a name is wrong."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments; without any the help is shown, with exit code 0, because nobody made a mistake."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of their definition, which is that of their use."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command and its arguments; a wrong name is refused with the one that was probably meant."""
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            similar = find_similar(name, self.list_commands(ctx), 1)
            ctx.fail(f"No such command {name!r}." + (f" Did you mean {similar[0]}?" if similar else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands for ``--help``."""
        with formatter.section("Commands"):
            formatter.write_dl(self.help_lines(ctx))

    def help_lines(self, ctx: click.Context) -> list[tuple[str, str]]:
        """Each command and its line in the list."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        return [(name, command.get_short_help_str(_MAX_HELP_LENGTH)) for name, command in commands if command]
