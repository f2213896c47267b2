"""What commands print and write."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpsyn import outputs
from dpsyn.errors import OutputError, in_words

if TYPE_CHECKING:
    from rich.text import Text


_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that move the cursor, start a sequence for the terminal or turn the direction of writing round."""


def say(text: str) -> None:
    """A line for the person."""
    with _printing():
        click.echo(text)


def wrote(target: str, then: str = "") -> None:
    """Say where a result is, unless it went to standard output, where it can be seen."""
    if target != "-":
        say(f"Wrote {target}. {then}".rstrip())


def write_text(target: str, text: str, *, private: bool = False) -> None:
    """Write to a file, for its owner's eyes only if it is private, or to standard output for ``-``."""
    if target == "-":
        with _printing():
            click.echo(text.encode(), nl=False)  # UTF-8 whatever the terminal's own encoding: it may become a file
    else:
        outputs.write_text(Path(target), text, private=private)


def counted(number: int, thing: str) -> str:
    """A number of things: 1 row, 2 rows."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def refuse_to_overwrite(target: str, force: bool) -> None:
    """Keep a file that may hold someone's work."""
    if target != "-" and os.path.exists(target) and not force:
        raise OutputError(f"{target} exists; give another name, or --force to overwrite it")


def table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
    """A table on standard output, as wide as the terminal; nothing is cut where it goes to a file."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    shown = Table(title=_plain(title) if title else None, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    for place, heading in enumerate(headings):
        shown.add_column(heading, justify="right" if place in right else "left", overflow="fold")
    for row in rows:
        shown.add_row(*map(_plain, row))
    with _printing():
        console.print(shown)


def _plain(text: str) -> Text:
    """A text as it is, but for characters that would make the terminal do something: those are spelled out."""
    from rich.text import Text

    return Text(_CONTROLS.sub(lambda found: f"\\x{ord(found.group()):02x}", text))


@contextlib.contextmanager
def working(phase: str) -> Iterator[None]:
    """Show on a terminal that something is going on: the phase, never a number of rows."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(phase)):
        yield


@contextlib.contextmanager
def _printing() -> Iterator[None]:
    """Say so if standard output takes no more; a reader who has enough, such as head, is no error."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        raise OutputError(f"standard output cannot be written: {in_words(error)}") from None
