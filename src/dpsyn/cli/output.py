"""How commands print lines and tables, show progress, and write files."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dpsyn
from dpsyn import atomic_files
from dpsyn.errors import OutputError, describe_os_error
from dpsyn.progress import Progress, ignore_progress

if TYPE_CHECKING:
    from rich.text import Text

    from dpsyn import Synopsis


_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that move the cursor, begin a terminal sequence or change the direction of writing."""


def format_json(data: Any) -> str:
    """Plain data as JSON for people and programs: indented, readable letters, without NaN."""
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)


def print_line(text: str) -> None:
    """Print a line on standard output."""
    with _translate_output_errors():
        click.echo(text)


def print_written(target: str, then: str = "") -> None:
    """Print where a result was written, unless that is standard output."""
    if target != "-":
        print_line(f"Wrote {target}. {then}".rstrip())


def write_text(target: str, text: str, *, private: bool = False) -> None:
    """Write to a file, readable by its owner only if it is private, or to standard output for ``-``."""
    if target == "-":
        with _translate_output_errors():
            click.echo(
                text.encode(), nl=False
            )  # UTF-8 whatever the encoding of the terminal, because it may be redirected to a file
    else:
        atomic_files.write_text(Path(target), text, private=private)


def refuse_to_overwrite(target: str, force: bool) -> None:
    """Refuse to write over a file that exists, without ``--force``."""
    if target != "-" and os.path.exists(target) and not force:
        raise OutputError(f"{target} exists; give another name, or --force to overwrite it")


def print_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
    """Print a table as wide as the terminal; without a terminal, 200 characters wide. Long cells are folded."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    shown = Table(
        title=_escape_controls(title) if title else None, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold"
    )
    for position, heading in enumerate(headings):
        shown.add_column(heading, justify="right" if position in right else "left", overflow="fold")
    for row in rows:
        shown.add_row(*map(_escape_controls, row))
    with _translate_output_errors():
        console.print(shown)


def _escape_controls(text: str) -> Text:
    """A text in which control characters, which a terminal would obey, are spelled out."""
    from rich.text import Text

    return Text(_CONTROLS.sub(lambda match: f"\\x{ord(match.group()):02x}", text))


@contextlib.contextmanager
def show_status(phase: str, quiet: bool = False) -> Iterator[None]:
    """Show on a terminal what is going on: the phase, never a number of rows."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(phase)):
        yield


@contextlib.contextmanager
def _translate_output_errors() -> Iterator[None]:
    """Turn a failure of standard output into an OutputError; a reader that stops early, such as head, is no error."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        raise OutputError(f"standard output cannot be written: {describe_os_error(error)}") from None


# ── progress: a bar on a terminal, a plain line for each phase elsewhere, nothing with --quiet ─────────────────


@contextlib.contextmanager
def show_progress(quiet: bool) -> Iterator[Progress]:
    """Show progress on standard error while the block runs."""
    if quiet:
        yield ignore_progress
    elif sys.stderr.isatty():
        with _progress_bar() as progress:
            yield progress
    else:
        yield _PhaseLines()


class _PhaseLines:
    """Prints one line whenever a phase begins."""

    def __init__(self) -> None:
        self._phase = ""

    def __call__(self, phase: str, done: float) -> None:
        if phase != self._phase:
            click.echo(f"… {phase}", err=True)
            self._phase = phase


@contextlib.contextmanager
def _progress_bar() -> Iterator[Progress]:
    """Show the current phase and how much of it is done; finished phases leave a line."""
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Bars(*columns, console=console, transient=True) as bars:
        task = bars.add_task("starting", total=None)
        current = ""

        def progress(phase: str, done: float) -> None:
            nonlocal current
            if phase != current:
                if current:
                    console.print(Text(f"✓ {current}"))
                current = phase
                bars.reset(task, description=phase, total=None)
            if done > 0:
                bars.update(task, total=1.0, completed=done)

        yield progress


# ── synthetic tables as files, folders or standard output ────────────────────────────────────────────────────


def check_target(target: str, force: bool) -> None:
    """Refuse a path that cannot be written, before any budget is spent."""
    if target == "-":
        return
    if is_folder(target):
        if os.path.isdir(target) and os.listdir(target):
            raise OutputError(f"the folder {target} is not empty; remove it, or give another name")
    else:
        atomic_files.table_format(target)
        refuse_to_overwrite(target, force)
    atomic_files.check_writable(Path(target.rstrip("/")))


def write_rows(synopsis: Synopsis, table: Any, target: str, where: dict[str, str] | None = None) -> None:
    """Write an Arrow table of rows that were sampled from a synopsis."""
    if is_folder(target):
        synopsis.write_release(target, table, where=where)
    else:
        dpsyn.write_table(table, target, synthetic=True)


def print_written_rows(target: str) -> None:
    """Print where rows were written, and what else is there."""
    if is_folder(target):
        print_line(f"Wrote {target}: the rows, the synopsis they were sampled from, and the certificate.")
    else:
        print_line(f"Wrote {target}.")


def number_targets(target: str, count: int) -> list[str]:
    """Paths for several tables: rows.csv becomes rows-1.csv and so on, folder/ becomes folder-1/ and so on."""
    if target == "-":
        raise OutputError("several tables cannot go to standard output; give the name of a file")
    slash = target[len(target.rstrip("/")) :]
    path = Path(target)
    stem, dot, suffixes = path.name.partition(".")
    return [f"{path.with_name(f'{stem}-{number}{dot}{suffixes}')}{slash}" for number in range(1, count + 1)]


def is_folder(target: str) -> bool:
    """Whether a path means a release folder: it ends in a slash, or is a folder that exists."""
    return target.endswith(("/", os.sep)) or Path(target).is_dir()
